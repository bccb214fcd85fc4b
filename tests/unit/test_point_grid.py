"""The points of a large map by where they lie, compared with looking at every single one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neuralviz.maps import point_grid
from neuralviz.maps.point_grid import PointGrid, Window
from neuralviz.maps.selection import Selection

WINDOWS = (
    Window(-1, 1, -1, 1),
    Window(-0.01, 0.3, 0.2, 0.21),
    Window(-50, 50, -0.5, 0.5),
    Window(-50, 50, -50, 50),
    Window(40, 50, 40, 50),
)


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    draw = np.random.default_rng(0)
    clouds = draw.normal(size=(20_000, 2)) * draw.choice([0.1, 1.0], size=(20_000, 1))
    return np.concatenate([clouds, clouds[:50]]).astype(np.float32)


@pytest.fixture(scope="module")
def grid(points: np.ndarray) -> PointGrid:
    return PointGrid.build(points)


def rows_in(points: np.ndarray, window: Window) -> np.ndarray:
    x, y = points.T
    left, right, bottom, top = np.float32(
        [window.left, window.right, window.bottom, window.top]
    ).tolist()
    return np.flatnonzero((x >= left) & (x <= right) & (y >= bottom) & (y <= top))


def in_polygon(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Even-odd rule, one point after the other."""
    found = []
    for x, y in points.astype(float).tolist():
        odd = False
        for (u, v), (to_u, to_v) in zip(
            corners.tolist(), np.roll(corners, -1, axis=0).tolist(), strict=True
        ):
            if (v <= y) != (to_v <= y) and x < u + (y - v) * ((to_u - u) / (to_v - v)):
                odd = not odd
        found.append(odd)
    return np.array(found)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_points_of_a_window(points: np.ndarray, grid: PointGrid, window: Window) -> None:
    expected = rows_in(points, window)
    np.testing.assert_array_equal(np.sort(grid.in_window(window)), expected)
    rows, n = grid.sample(window, 100_000)
    np.testing.assert_array_equal(rows, expected)
    assert n == len(expected)


def test_a_sample_is_always_the_same_and_holds_that_of_the_whole(
    points: np.ndarray, grid: PointGrid
) -> None:
    whole, n = grid.sample(None, 1000)
    assert (len(whole), n, len(np.unique(whole))) == (1000, len(points), 1000)
    np.testing.assert_array_equal(PointGrid.build(points, 7).sample(None, 1000)[0], whole)
    window = WINDOWS[0]
    drawn, n = grid.sample(window, 1000)
    assert (len(drawn), n) == (1000, len(rows_in(points, window)))
    assert set(whole.tolist()) & set(rows_in(points, window).tolist()) <= set(drawn.tolist())
    within = np.arange(len(points)) % 3 == 0
    drawn, n = grid.sample(None, 500, within)
    assert (len(drawn), n) == (500, within.sum())
    assert within[drawn].all()
    share = np.mean(whole < len(points) / 2)
    assert 0.4 < share < 0.6


@pytest.mark.parametrize("window", [None, *WINDOWS])
@pytest.mark.parametrize("most", [16, 64, 1024])
def test_bins_hold_all_points_once(
    points: np.ndarray, grid: PointGrid, window: Window | None, most: int
) -> None:
    counts, covered = grid.counts(window, most)
    up, across = counts.shape
    assert max(up, across) <= most
    inside = points if window is None else points[rows_in(points, window)]
    if window is None:
        assert counts.sum() == len(points)
    elif covered == window or (window.meets(grid.bounds) and covered == window.cut(grid.bounds)):
        bins = np.histogram2d(
            inside[:, 1],
            inside[:, 0],
            bins=(up, across),
            range=((covered.bottom, covered.top), (covered.left, covered.right)),
        )[0]
        assert counts.sum() == len(inside)
        assert np.abs(counts - bins).sum() <= 8  # points on the line between two bins
    else:
        assert counts.sum() >= len(inside)


def test_questions_about_the_whole_map_sort_no_points(
    points: np.ndarray, grid: PointGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = PointGrid.build(points)
    everywhere = Window(-99, 99, -99, 99)

    def sort(*_: object) -> None:
        raise AssertionError("the points are sorted")

    with monkeypatch.context() as patched:
        patched.setattr(point_grid, "group_rows", sort)
        for window in (None, everywhere):
            fresh.sample(window, 1000)
            fresh.counts(window, 16)
        with pytest.raises(AssertionError, match="sorted"):
            fresh.sample(WINDOWS[0], 1000)
    fresh.sort()
    with monkeypatch.context() as patched:
        patched.setattr(point_grid, "group_rows", sort)
        for mine, other in zip(
            fresh.sample(WINDOWS[0], 1000), grid.sample(WINDOWS[0], 1000), strict=True
        ):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("n_corners", [3, 4, 9, 200])
@pytest.mark.parametrize("size", [None, 8, 500])
def test_an_area_holds_what_an_even_odd_test_says(
    points: np.ndarray, n_corners: int, size: int | None
) -> None:
    some = points[:3000]
    draw = np.random.default_rng(n_corners)
    corners = draw.normal(size=(n_corners, 2)) * 1.5  # overlaps itself
    found = PointGrid.build(some, size).inside([corners])
    np.testing.assert_array_equal(found, in_polygon(some, corners))


def test_areas_beyond_the_points_and_areas_that_are_none(
    points: np.ndarray, grid: PointGrid
) -> None:
    everything = np.array([[-99, -99], [99, -99], [99, 99], [-99, 99]], float)
    assert grid.inside([everything]).all()
    assert not grid.inside([everything + 500]).any()
    assert not grid.inside([everything[:2], everything[:0]]).any()
    assert not grid.inside([]).any()
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    both = grid.inside([square, square - 1])
    np.testing.assert_array_equal(both, grid.inside([square]) | grid.inside([square - 1]))


@pytest.mark.parametrize("place", [0.0, 3.5])
def test_points_at_one_place(place: float) -> None:
    grid = PointGrid.build(np.full((10, 2), place, dtype=np.float32))
    assert len(grid.in_window(None)) == 10
    assert grid.counts(None, 8)[0].sum() == 10
    corners = place + np.array([[-1, -1], [1, -1], [0, 1]], float)
    assert grid.inside([corners]).all()


@pytest.mark.parametrize("sides", [(0, 0, 0, 1), (1, 0, 0, 1), (0, math.inf, 0, 1)])
def test_a_window_has_an_area(sides: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="window"):
        Window(*sides)


def test_a_selection_says_what_is_selected() -> None:
    rows = np.array([0, 3, 8, 17, 90])
    chosen = Selection.from_rows(rows, 20)
    assert (len(chosen), chosen.n_texts, len(chosen.bits)) == (4, 20, 3)
    np.testing.assert_array_equal(chosen.rows(), [0, 3, 8, 17])
    np.testing.assert_array_equal(chosen.is_selected(np.array([17, 1, 3])), [True, False, True])
    assert chosen.bits[0] == 0b1001
    assert chosen.digest == Selection.from_mask(chosen.mask()).digest
    assert chosen.digest != Selection.from_rows(rows[:2], 20).digest
