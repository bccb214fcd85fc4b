"""Maps of a corpus: what is drawn for each point, colours, names, and no HTML of a user's."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from neuralviz.plots.corpus_map import FADED, Standout, map_figure, marker_look
from neuralviz.plots.label_accuracy import accuracy_figure
from neuralviz.plots.point_colours import COLOURS, GREY, MAX_CATEGORIES, by_category, by_number
from neuralviz.plots.standalone import standalone_html
from neuralviz.plots.theme import SIGNED_POINTS, method_colour, style


def points(n: int, dimensions: int = 2) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, dimensions)).astype(np.float32)


def named(figure: object) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data}


def test_every_point_is_drawn_once_with_its_row_and_nothing_else() -> None:
    coordinates, rows = points(60), np.arange(60) * 7
    labels = [None if i % 10 == 0 else f"topic {i % 3}" for i in range(60)]
    figure = map_figure(coordinates, rows, by_category("topic", labels), title="map")
    drawn = {
        row: (x, y)
        for trace in figure.data
        for row, x, y in zip(trace.customdata, trace.x, trace.y, strict=True)
    }
    assert sum(len(trace.customdata) for trace in figure.data) == 60
    assert drawn == {7 * i: tuple(place) for i, place in enumerate(coordinates)}
    for trace in figure.data:
        assert (trace.x.dtype, trace.customdata.dtype) == (np.float32, np.int32)
        assert trace.text is None
    assert figure.data[0].marker.color == GREY  # below the others
    assert figure.layout.yaxis.scaleanchor == "x"


def test_categories_go_by_size_and_numbers_by_their_order() -> None:
    assert by_category("topic", ["b", "a", "a", "", " ", float("nan"), None]).categories == (
        "a",
        "b",
    )
    colour = by_category("year", [10.0, 9.0, 9.0, 100.0, None])
    assert colour.categories == ("9", "10", "100")
    np.testing.assert_array_equal(colour.codes, [1, 0, 0, 2, -1])


def test_beyond_24_categories_the_smallest_are_others() -> None:
    labels = [f"{i:02d}" for i in range(30) for _ in range(30 - i)]
    figure = map_figure(points(len(labels)), np.arange(len(labels)), by_category("n", labels),
                        title="map")  # fmt: skip
    traces = named(figure)
    assert len(traces) == MAX_CATEGORIES + 1 == 25
    assert len(traces["6 others"].x) == 6 + 5 + 4 + 3 + 2 + 1
    assert traces["6 others"].marker.color == GREY
    looks = {(trace.marker.color, trace.marker.symbol) for trace in figure.data[1:]}
    assert len(looks) == 24
    assert {colour for colour, _ in looks} == set(COLOURS)
    ranks = [traces[f"{i:02d}"].legendrank for i in range(24)]
    assert ranks == sorted(ranks)
    assert traces["6 others"].legendrank > ranks[-1]


def test_numbers_are_coloured_over_most_of_their_range_and_signed_ones_centred() -> None:
    values = np.append(np.arange(1000.0), [np.nan, 1e6])
    figure = map_figure(points(1002), np.arange(1002), by_number("length", values), title="map")
    missing, known = figure.data
    assert (list(missing.customdata), missing.name) == ([1000], "no value")
    assert known.marker.color.dtype == np.float32
    assert (known.marker.cmin, known.marker.cmax) == (pytest.approx(10), pytest.approx(990))
    assert known.marker.colorscale is None  # the template's, which is seen on each ground
    signed = map_figure(
        points(3), np.arange(3), by_number("gain", [-1, 0.2, 0.5]), title="map"
    ).data[0]
    assert signed.marker.cmin == -signed.marker.cmax
    assert [colour for _, colour in signed.marker.colorscale] == [c for _, c in SIGNED_POINTS]


@pytest.mark.parametrize("values", [[], [np.nan, np.inf], [3, 3, 3]])
def test_numbers_that_are_missing_or_all_equal_can_be_drawn(values: list[float]) -> None:
    n = len(values)
    figure = map_figure(points(n), np.arange(n), by_number("x", values), title="map")
    assert json.loads(style(figure, dark=True).to_json())


@pytest.mark.parametrize("dimensions", [2, 3])
def test_what_is_not_selected_fades(dimensions: int) -> None:
    coordinates, rows = points(40, dimensions), np.arange(40) + 100
    colour = by_category("topic", ["a"] * 20 + ["b"] * 20)
    selected = np.array([100, 105, 120, 999])
    figure = map_figure(coordinates, rows, colour, title="map", standout=Standout(selected))
    bright = []
    for trace in figure.data:
        if dimensions == 2:
            assert trace.unselected.marker.opacity == FADED
            bright += [int(trace.customdata[at]) for at in trace.selectedpoints]
        elif trace.marker.opacity > FADED:
            bright += list(trace.customdata)
    assert sorted(bright) == [100, 105, 120]
    assert sum(len(trace.x) for trace in figure.data) == 40
    assert [trace.name for trace in figure.data if trace.showlegend] == ["a", "b"]
    none = Standout(np.array([], dtype=int))
    nothing = map_figure(coordinates, rows, colour, title="map", standout=none)
    if dimensions == 2:
        assert [trace.selectedpoints for trace in nothing.data] == [(), ()]
    else:
        assert {trace.marker.opacity for trace in nothing.data} == {FADED}


def test_a_users_words_are_never_html_nor_variables() -> None:
    evil = "<b>&%{x}"
    figure = map_figure(
        points(2),
        np.arange(2),
        by_category(evil, [evil, "b"]),
        title=evil,
        texts=[f"{evil} {'word ' * 60}", "short"],
        standout=Standout(placed=[(evil, np.zeros(2))]),
        axes=(evil, "second"),
    )
    assert "<b>" not in figure.layout.title.text + figure.layout.xaxis.title.text
    first = next(trace for trace in figure.data if trace.customdata is not None)
    assert first.name.startswith("&lt;b&gt;&amp;")
    assert first.hovertemplate.count("%{") == 1  # the text's own
    lines = first.text[0].split("<br>")
    assert len(lines) == 2
    assert lines[0].startswith("&lt;b&gt;&amp;%{x} word")
    assert all(len(line) < 80 for line in lines)
    assert figure.layout.annotations[0].text == "<b>&lt;b&gt;&amp;%{x}</b>"


def test_new_sentences_and_the_highlighted_row_lie_on_top() -> None:
    coordinates = points(5)
    standout = Standout(highlighted=4, placed=[("new", coordinates[0] + 1)])
    figure = map_figure(coordinates, np.arange(5) * 2, title="map", standout=standout)
    _, ring, star = figure.data
    np.testing.assert_array_equal(ring.x, [coordinates[2, 0]] * 2)
    assert star.marker.symbol == "star"
    assert ring.customdata is star.customdata is None  # never part of a lasso's rows
    assert figure.layout.annotations[0].text == "<b>new</b>"
    absent = map_figure(coordinates, np.arange(5), title="map", standout=Standout(highlighted=77))
    assert len(absent.data) == 1


def test_few_points_are_large_and_many_can_be_seen_through() -> None:
    looks = [marker_look(n) for n in (0, 50, 500, 5_000, 50_000)]
    sizes, opacities = zip(*looks, strict=True)
    assert sorted(sizes, reverse=True) == list(sizes)
    assert sorted(opacities, reverse=True) == list(opacities)
    assert sizes[-1] >= 2.5
    assert opacities[-1] >= 0.6


def test_a_hundred_thousand_points_are_sent_as_little_and_at_once() -> None:
    n = 100_000
    coordinates, rows = points(n), np.arange(n)
    colour = by_category("topic", [f"topic {i % 10}" for i in range(n)])
    start = time.perf_counter()
    sent = style(map_figure(coordinates, rows, colour, title="map"), dark=False).to_json(
        validate=False
    )
    assert time.perf_counter() - start < 1  # 0.05 s on a machine that is free
    assert len(sent) < 20 * n  # two floats and a row number each, in base64


def test_accuracies_are_bars_by_method_with_the_most_frequent_label_as_a_line() -> None:
    values = np.array([[0.8, 0.7, 0.85], [0.5, 0.4, 0.6], [np.nan] * 3])
    figure = accuracy_figure(
        ["neural", "mean", "mean (layer 3)"], {"topic": values, "<i>": values}, {"topic": 0.25,
        "<i>": 0.5}
    )  # fmt: skip
    bars = [trace for trace in figure.data if trace.type == "bar"]
    colours = [method_colour(method) for method in ("neural", "mean", "mean")]
    assert [bar.marker.color for bar in bars] == colours
    assert bars[1].marker.pattern.shape != bars[2].marker.pattern.shape
    np.testing.assert_allclose(bars[0].y, [80, 80])
    np.testing.assert_allclose(bars[0].error_y.arrayminus, [10, 10])
    np.testing.assert_allclose(bars[0].error_y.array, [5, 5])
    lines = [trace for trace in figure.data if trace.type == "scatter"]
    assert [line.y[0] for line in lines] == [25, 50]
    assert figure.layout.xaxis.ticktext == ("topic", "&lt;i&gt;")


def test_a_page_of_its_own_is_laid_out_for_its_width_and_sends_nothing_anywhere() -> None:
    figure = map_figure(points(3), np.arange(3), by_category("a", ["b", "c", "d"]), title="map")
    page = standalone_html(figure)
    assert '"showSendToCloud": false' in page
    assert '"orientation":"v"' in page
    assert figure.layout.legend.orientation is None  # the figure itself is as it was


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_nothing_and_one_point_can_be_drawn(n: int, dimensions: int) -> None:
    for colour in (None, by_category("a", ["b"] * n), by_number("a", [np.nan] * n)):
        figure = map_figure(
            points(n, dimensions),
            np.arange(n),
            colour,
            title="",
            standout=Standout(np.arange(n), placed=[("new", np.zeros(dimensions))]),
            axes=["first", "second", "third"][:dimensions],
        )
        assert sum(len(trace.x) for trace in figure.data) == n + 1
