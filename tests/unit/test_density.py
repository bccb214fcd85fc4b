"""What is drawn of a large map: shades, points as columns, bits of a selection."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from neuralviz.maps.neighbours import find_neighbours, knn_right, sampled_right
from neuralviz.plots.corpus_map import (
    PointColour,
    Standout,
    colour_by_code,
    colour_by_number,
    encode_bits,
    large_map_figure,
    large_points,
    levels,
)

COVERED = (0.0, 4.0, 10.0, 12.0)  # left, right, bottom, top
COUNTS = np.array([[0, 1, 3, 7], [0, 0, 0, 1]])
POINTS = np.array([[0, 10], [1, 11], [2, 12], [3, 11], [4, 10]], dtype=np.float32)
ROWS = np.array([4, 10, 11, 20, 99], dtype=np.int32)


def drawn(colour: PointColour | None):
    return large_points(POINTS, ROWS, colour, COUNTS, COVERED)


def test_shades_are_by_the_logarithm_of_counts() -> None:
    np.testing.assert_array_equal(levels(COUNTS), [[0, 85, 170, 255], [0, 0, 0, 85]])
    assert levels(np.array([[10**7, 1]])).tolist() == [[255, 11]]
    (density,) = (one for one in drawn(None).traces.data if one.type == "heatmap")
    assert (density.x0, density.dx, density.y0, density.dy) == (0.5, 1, 10.5, 1)
    assert density.z is None  # it is in the columns
    assert (density.zmin, density.zmax) == (0, 255)


def test_columns_hold_the_points_in_the_order_of_their_groups() -> None:
    codes = np.array([1, 0, 0, -1, 0], dtype=np.int32)
    colour = colour_by_code("kind", codes, ["a", "b"])
    made = drawn(colour)
    parts = {
        trace.name: trace.meta["points"] for trace in made.traces.data if "points" in trace.meta
    }
    assert parts == {"no value": [0, 1], "a": [1, 4], "b": [4, 5]}
    assert made.rows.tolist() == [20, 10, 11, 99, 4]
    about, content = made.content.split(b"\n", 1)
    assert json.loads(about) == {"n": 5, "values": False, "density": [2, 4]}
    np.testing.assert_array_equal(np.frombuffer(content, "<f4", 5), [3, 1, 2, 4, 0])
    np.testing.assert_array_equal(np.frombuffer(content, "<f4", 5, 20), [11, 11, 12, 10, 10])
    np.testing.assert_array_equal(np.frombuffer(content, "<i4", 5, 40), [20, 10, 11, 99, 4])
    np.testing.assert_array_equal(np.frombuffer(content[60:], "u1"), levels(COUNTS).ravel())


def test_numbers_are_columns_and_their_scale_is_that_of_all() -> None:
    colour = colour_by_number("score", [1.0, 2.0, np.nan, 4.0, 5.0])
    made = drawn(PointColour(**{**vars(colour), "ends": (0.0, 50.0)}))
    assert made.values is not None
    np.testing.assert_array_equal(made.values, [np.nan, 1, 2, 4, 5])
    trace = made.traces.data[-1]
    assert (trace.marker.cmin, trace.marker.cmax) == (0, 50)
    assert trace.meta == {"points": [1, 5], "values": True}


def test_a_selection_is_a_bit_a_point_and_the_figure_holds_no_points() -> None:
    selected = np.array([True, False, False, True, True])
    assert base64.b64decode(encode_bits(selected) or "") == bytes([0b11001])
    assert encode_bits(None) is None
    figure = large_map_figure(
        drawn(None),
        title="<b>",
        bounds=COVERED,
        selected=selected,
        undrawn=(np.array([7]), np.array([[2.0, 11.0]])),
        highlighted=np.array([3.0, 11.0]),
        standout=Standout(near=POINTS[:2], names=[("<i>", POINTS[0])]),
    )
    assert figure.layout.meta["selected"] == encode_bits(selected)
    assert figure.layout.title.text == "&lt;b&gt;"
    assert "<i>" not in figure.to_json()
    assert max(len(trace.x) for trace in figure.data if "x" in trace and trace.x is not None) == 6
    (beside,) = (trace for trace in figure.data if trace.name == "selected")
    assert list(beside.customdata) == [7]
    corners = [list(trace.x) for trace in figure.data if trace.x is not None]
    assert [0, 4] in corners


@pytest.mark.parametrize("missing", [False, True])
def test_a_sample_votes_as_all_texts_do(missing: bool) -> None:
    draw = np.random.default_rng(0)
    near = find_neighbours(draw.normal(size=(200, 4)), 15)
    codes = draw.integers(-missing, 3, size=200).astype(np.int32)
    labels = ["abc"[code] if code >= 0 else "" for code in codes]
    everybody = np.zeros(200, dtype=bool)
    everybody[codes >= 0] = knn_right(near, labels, 5)
    rows = np.sort(draw.choice(200, 60, replace=False))
    some = type(near)(near.indices[rows], near.distances[rows], near.metric)
    right = sampled_right(some, codes, rows, 5)
    np.testing.assert_array_equal(right, everybody[rows][codes[rows] >= 0])
