"""The points of a large map by where they lie, compared with plain numpy and an even-odd test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neuralviz.maps.opened import MapPoints, TextFilter, Window, category_names
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore

WINDOWS = (
    Window(-1, 1, -1, 1),
    Window(-0.01, 0.3, 0.2, 0.21),
    Window(-50, 50, -0.5, 0.5),
    Window(-50, 50, -50, 50),
    Window(40, 50, 40, 50),
)


@pytest.fixture(scope="module")
def coordinates() -> np.ndarray:
    draw = np.random.default_rng(0)
    clouds = draw.normal(size=(4_000, 2)) * draw.choice([0.1, 1.0], size=(4_000, 1))
    return np.concatenate([clouds, clouds[:50]]).astype(np.float32)


@pytest.fixture(scope="module")
def points(coordinates: np.ndarray) -> MapPoints:
    return MapPoints.from_coordinates(coordinates)


def rows_in(coordinates: np.ndarray, window: Window) -> np.ndarray:
    low = np.float32([window.left, window.bottom])
    high = np.float32([window.right, window.top])
    return np.flatnonzero(((coordinates >= low) & (coordinates <= high)).all(axis=1))


def in_polygon(coordinates: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Even-odd rule, one point after the other."""
    inside = []
    for x, y in coordinates.astype(float).tolist():
        odd = False
        for (u, v), (to_u, to_v) in zip(
            corners.tolist(), np.roll(corners, -1, axis=0).tolist(), strict=True
        ):
            if (v <= y) != (to_v <= y) and x < u + (y - v) * ((to_u - u) / (to_v - v)):
                odd = not odd
        inside.append(odd)
    return np.array(inside)


def test_a_sample_is_always_the_same_and_holds_that_of_the_whole(coordinates, points) -> None:
    whole, n = points.sample(None, 1000)
    assert (len(whole), n, len(np.unique(whole))) == (1000, len(coordinates), 1000)
    assert 0.4 < np.mean(whole < len(coordinates) / 2) < 0.6
    inside = rows_in(coordinates, WINDOWS[0])
    drawn, n = points.sample(WINDOWS[0], 1000)
    assert (len(drawn), n) == (1000, len(inside))
    assert set(whole.tolist()) & set(inside.tolist()) <= set(drawn.tolist())
    within = np.arange(len(coordinates)) % 3 == 0
    drawn, n = points.sample(None, 500, within)
    assert (len(drawn), n) == (500, within.sum())
    assert within[drawn].all()


@pytest.mark.parametrize("window", [None, *WINDOWS])
def test_bins_hold_all_points_of_a_window_once(coordinates, points, window) -> None:
    inside = coordinates if window is None else coordinates[rows_in(coordinates, window)]
    np.testing.assert_array_equal(coordinates[points.sample(window, 10**6)[0]], inside)
    for most in (16, 64, 1024):
        counts, covered = points.counts(window, most)
        up, across = counts.shape
        assert max(up, across) <= most
        bins = np.histogram2d(
            *inside.T[::-1],
            bins=(up, across),
            range=((covered.bottom, covered.top), (covered.left, covered.right)),
        )[0]
        assert counts.sum() == len(inside)
        assert np.abs(counts - bins).sum() <= 8  # points on the line between two bins


@pytest.mark.parametrize("n_corners", [3, 9, 200])
def test_an_area_holds_what_an_even_odd_test_says(coordinates, n_corners: int) -> None:
    some = coordinates[:3000]
    draw = np.random.default_rng(n_corners)
    corners = draw.normal(size=(n_corners, 2)) * 1.5  # overlaps itself
    inside = MapPoints.from_coordinates(some).inside([corners])
    np.testing.assert_array_equal(inside, in_polygon(some, corners))


def test_areas_beyond_the_points_and_around_all_at_one_place(points):
    everything = np.array([[-99, -99], [99, -99], [99, 99], [-99, 99]], float)
    assert points.inside([everything]).all()
    assert not points.inside([everything + 500]).any()
    assert not points.inside([everything[:2], everything[:0], np.ones((3, 2))]).any()
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    alike = MapPoints.from_coordinates(np.full((10, 2), 0.5, dtype=np.float32))
    assert alike.counts(None, 8)[0].sum() == 10
    assert alike.inside([square]).all()
    both = points.inside([square, square - 1])
    np.testing.assert_array_equal(both, points.inside([square]) | points.inside([square - 1]))
    with pytest.raises(ValueError, match="window"):
        Window(0, math.inf, 0, 1)


def test_filters_combine_and_say_how_many_texts_are_shown() -> None:
    topics = np.array([0, 1, -1, 1, 2]), ("cooking", "music", "money")
    words = np.array([3, 9, 5, np.nan, 4.0])

    def shown(filtered: TextFilter) -> tuple[list[int], str]:
        within = filtered.within({"topic": topics}.__getitem__, {"words": words}.__getitem__, 5)
        return np.flatnonzero(within).tolist(), filtered.describe(int(within.sum()), 5)

    assert not TextFilter()
    assert shown(TextFilter())[0] == [0, 1, 2, 3, 4]
    assert shown(TextFilter({"topic": ("music", "")})) == (
        [1, 2, 3],
        "3 of 5 texts: topic is music or no value",
    )
    assert shown(TextFilter({"topic": ("music", "cooking")}, {"words": (-2, 5)})) == (
        [0],
        "1 of 5 texts: topic is music or cooking, and words is −2 to 5",
    )
    assert shown(TextFilter(ranges={"words": (4, 9)}))[0] == [1, 2, 4]  # no number: out


def test_a_label_of_few_texts_is_one_and_a_name_is_not() -> None:
    store = CorpusStore()
    texts = tuple(f"Text {i} is about something." for i in range(10))
    labels = {
        "kind": ("sport", "sport", "sport", "food", "food", "food", "money", "money", "money", "x"),
        "author": tuple(f"writer {i // 2 if i < 4 else i}" for i in range(10)),
        "all": ("same",) * 10,
    }
    assert category_names(store, store.add("mine", ReadTexts(texts, labels=labels))) == ("kind",)
