"""The points of a large map by where they lie: those of a window or within a lasso are found fast.

Points are sorted once into the cells of a grid, so that a question looks at few of them: 10 million
points take a second, and after that a window or a lasso tens of milliseconds. Questions about the
whole map need no sorting, where it has more cells than are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.lazy import Lazy
from neuralviz.maps.areas import covered_cells, cut_cells, is_inside_area

POINTS_A_CELL = 8  # on average
FINEST, COARSEST = 1024, 64  # cells across
FEWEST_BINS = 32  # across or up, of a window
MOST_CORNERS = 2000  # of an area; of more, every second, third … one counts


@dataclass(frozen=True)
class Window:
    """A part of a map that is looked at, in the map's own units.

    Raises:
        ValueError: on making it, it has no area, or a side is no finite number.
    """

    left: float
    right: float
    bottom: float
    top: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.left, self.right, self.bottom, self.top))):
            raise ValueError("a window needs finite sides")
        if self.left >= self.right or self.bottom >= self.top:
            raise ValueError("a window needs an area")

    def grown(self, share: float) -> Window:
        """The window and so much of its width and height more on every side."""
        across, up = share * (self.right - self.left), share * (self.top - self.bottom)
        return Window(self.left - across, self.right + across, self.bottom - up, self.top + up)

    def holds(self, inner: Window) -> bool:
        """Whether another window lies in this one."""
        return (
            self.left <= inner.left
            and inner.right <= self.right
            and self.bottom <= inner.bottom
            and inner.top <= self.top
        )

    def meets(self, window: Window) -> bool:
        """Whether another window lies in part in this one."""
        return (
            self.left < window.right
            and window.left < self.right
            and self.bottom < window.top
            and window.bottom < self.top
        )

    def cut(self, window: Window) -> Window:
        """The part of the window that lies in another one, which it meets."""
        return Window(
            max(self.left, window.left),
            min(self.right, window.right),
            max(self.bottom, window.bottom),
            min(self.top, window.top),
        )


@dataclass(frozen=True, eq=False)
class PointGrid:
    """The points of a map in two dimensions, in the cells of a grid.

    Attributes:
        coordinates: [text, 2] the points.
        bounds: the smallest window with all points.
        size: cells across and up.
        starts: [size · size + 1] int64 where each cell begins among the sorted points, which go
            cell by cell: from the left, then from the bottom.
    """

    coordinates: np.ndarray
    bounds: Window
    size: int
    starts: np.ndarray
    _parts: Lazy = field(default_factory=Lazy, repr=False)

    @classmethod
    def build(cls, coordinates: np.ndarray, size: int | None = None) -> PointGrid:
        """The grid of some points.

        Args:
            coordinates: [text, 2] finite, at least one.
            size: cells across and up; by default a power of 2 that suits the number of points.
        """
        n = len(coordinates)
        if size is None:
            fitting = 2 ** round(math.log2(max(1.0, n / POINTS_A_CELL)) / 2)
            size = min(FINEST, max(COARSEST, fitting))
        x, y = _axes(coordinates)
        bounds = _bounds(x, y)
        counts = np.bincount(_cells_of_points(x, y, bounds, size), minlength=size * size)
        return cls(coordinates, bounds, size, np.concatenate([[0], np.cumsum(counts)]))

    def __len__(self) -> int:
        return len(self.coordinates)

    @property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[text] int32 row numbers, cell by cell, and float32 coordinates in this order."""

        def sort() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            x, y = _axes(self.coordinates)
            cells = _cells_of_points(x, y, self.bounds, self.size)
            rows, _ = group_rows(cells, self.size * self.size)
            return rows, x[rows], y[rows]

        return self._parts.get("sorted", sort)

    def sort(self) -> None:
        """Sort the points now; else the first question about a part of the map does."""
        _ = self._sorted

    def in_window(self, window: Window | None) -> np.ndarray:
        """[found] row numbers of the points in a window, in no order; of all, if it is None."""
        if window is None or window.holds(self.bounds):
            return np.arange(len(self), dtype=np.int32)
        runs = list(self._runs(window))
        return _concatenate(self._sorted[0], runs)[self._is_in(window, runs)]

    def sample(
        self, window: Window | None, max_points: int, within: np.ndarray | None = None
    ) -> tuple[np.ndarray, int]:
        """Some of the points in a window, always the same, and how many there are.

        A point that is drawn of a window is drawn of every smaller one that it lies in.

        Args:
            window: None for the whole map.
            max_points: points; all, where there are no more.
            within: [text] whether a filter lets them through; None where there is none.

        Returns:
            [drawn] int32 row numbers in their order, and the points of which they are drawn.
        """
        rows = self.in_window(window)
        if within is not None:
            rows = rows[within[rows]]
        n = len(rows)
        if n > max_points:
            order = _draw_order(rows)
            # a few more than are wanted, so that few have to be sorted
            bound = int(min(1.0, (max_points + 6 * math.sqrt(max_points) + 6) / n) * (2**32 - 1))
            likely = np.flatnonzero(order <= bound)
            if len(likely) < max_points:
                likely = np.arange(n)
            rows = rows[likely[np.argpartition(order[likely], max_points - 1)[:max_points]]]
        return np.sort(rows), n

    def counts(self, window: Window | None, max_bins: int) -> tuple[np.ndarray, Window]:
        """How many points lie in each bin of a window, and what the bins cover.

        Of a large window bins are made of whole cells, so that no point is looked at: they cover a
        little more than the window, as far as there are points. Bins of a small one are squares, as
        fine as its points are many.

        Args:
            window: None for the whole map.
            max_bins: bins across or up.

        Returns:
            [up, across] int64 from the left and the bottom, and what they cover.
        """
        window = window or self.bounds
        cells = self._cells_of(window)
        if cells is None:
            return np.zeros((1, 1), dtype=np.int64), window
        lowest, highest, first, last = cells
        longest = max(highest - lowest, last - first) + 1
        if longest > max_bins // 2:
            return self._counts_of_cells(cells, -(-longest // max_bins))
        runs = list(self._runs(window))
        is_in = self._is_in(window, runs)
        x, y = (_concatenate(axis, runs)[is_in] for axis in self._sorted[1:])
        visible = window.cut(self.bounds)
        wide, high = visible.right - visible.left, visible.top - visible.bottom
        side = math.sqrt(wide * high * POINTS_A_CELL / max(1, len(x)))
        side = min(side, max(wide, high) / FEWEST_BINS)
        across, up = (min(max_bins, max(1, math.ceil(length / side))) for length in (wide, high))
        bins = _cells(y, visible.bottom, visible.top, up) * np.int32(across)
        bins += _cells(x, visible.left, visible.right, across)
        return np.bincount(bins, minlength=up * across).reshape(up, across), visible

    def _counts_of_cells(
        self, cells: tuple[int, int, int, int], side: int
    ) -> tuple[np.ndarray, Window]:
        """As of `counts`, of bins of ``side`` · ``side`` cells."""
        lowest, highest, first, last = cells
        cell_counts = np.diff(self.starts).reshape(self.size, self.size)
        counts = cell_counts[lowest : highest + 1, first : last + 1]
        up, across = (-(-length // side) for length in counts.shape)
        counts = np.pad(
            counts, [(0, up * side - counts.shape[0]), (0, across * side - counts.shape[1])]
        )
        counts = counts.reshape(up, side, across, side).sum(axis=(1, 3))
        wide = (self.bounds.right - self.bounds.left) / self.size
        high = (self.bounds.top - self.bounds.bottom) / self.size
        x_low, y_low = self.bounds.left + first * wide, self.bounds.bottom + lowest * high
        return counts, Window(x_low, x_low + across * side * wide, y_low, y_low + up * side * high)

    def inside(self, areas: Iterable[np.ndarray]) -> np.ndarray:
        """[text] whether a point lies in one of some areas.

        Where an area overlaps itself, what is enclosed twice is outside (even-odd rule).

        Args:
            areas: [corner, 2] each, the last joined to the first.
        """
        is_inside = np.zeros(len(self), dtype=bool)
        for area in areas:
            is_inside[self._in_area(np.asarray(area, dtype=np.float64))] = True
        return is_inside

    def _in_area(self, corners: np.ndarray) -> np.ndarray:
        """[found] row numbers: whole cells first, then the points of those that it cuts."""
        corners = corners[:: max(1, -(-len(corners) // MOST_CORNERS))]
        rows, x, y = self._sorted
        if len(corners) < 3:
            return rows[:0]
        low = np.array([self.bounds.left, self.bounds.bottom])
        high = np.array([self.bounds.right, self.bounds.top])
        cell_corners = (corners - low) * (self.size / (high - low))
        ends = np.roll(cell_corners, -1, axis=0)
        cut = cut_cells(cell_corners, ends, self.size)
        whole = covered_cells(cell_corners, ends, self.size) & ~cut
        positions = self._points_of(np.flatnonzero(cut.ravel()))
        positions = positions[is_inside_area(x[positions], y[positions], corners)]
        inside = self._points_of(np.flatnonzero(whole.ravel()))
        return np.concatenate([rows[inside], rows[positions]])

    def _points_of(self, cells: np.ndarray) -> np.ndarray:
        """[found] places of the points of some cells."""
        starts = self.starts[cells]
        sizes = self.starts[cells + 1] - starts
        before = np.cumsum(sizes) - sizes
        return np.repeat(starts - before, sizes) + np.arange(sizes.sum())

    def _cells_of(self, window: Window) -> tuple[int, int, int, int] | None:
        """The lowest and highest row and the first and last column of cells in a window."""
        bounds, size = self.bounds, self.size
        if not window.meets(bounds):
            return None
        up = np.array([window.bottom, window.top], dtype=np.float32)
        across = np.array([window.left, window.right], dtype=np.float32)
        lowest, highest = _cells(up, bounds.bottom, bounds.top, size).tolist()
        first, last = _cells(across, bounds.left, bounds.right, size).tolist()
        return lowest, highest, first, last

    def _runs(self, window: Window) -> Iterator[slice]:
        """Where the points lie that may be in a window: a run a row of cells."""
        cells = self._cells_of(window)
        if cells is None:
            return
        lowest, highest, first, last = cells
        if first == 0 and last == self.size - 1:
            yield slice(*self.starts[[lowest * self.size, (highest + 1) * self.size]].tolist())
            return
        rows = np.arange(lowest, highest + 1) * self.size
        starts, ends = self.starts[rows + first].tolist(), self.starts[rows + last + 1].tolist()
        yield from (slice(*run) for run in zip(starts, ends, strict=True) if run[0] < run[1])

    def _is_in(self, window: Window, runs: Sequence[slice]) -> np.ndarray:
        """[point of the runs] whether it is in the window."""
        x, y = (_concatenate(axis, runs) for axis in self._sorted[1:])
        is_in = (x >= np.float32(window.left)) & (x <= np.float32(window.right))
        is_in &= y >= np.float32(window.bottom)
        is_in &= y <= np.float32(window.top)
        return is_in


def group_rows(groups: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows by group, in their order within each, found by counting.

    Args:
        groups: [row] int32 number of each row's group.
        n_groups: of which some may be empty.

    Returns:
        [row] int32 row numbers, and [n_groups + 1] int64 where each group begins among them.
    """
    n = len(groups)
    columns = np.arange(n + 1, dtype=np.int32)  # one entry each, which then lie by row
    entries = scipy.sparse.csc_array(
        (np.ones(n, np.int8), groups, columns), shape=(n_groups, n)
    ).tocsr()
    return entries.indices.astype(np.int32, copy=False), entries.indptr.astype(np.int64)


def _axes(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[text] float32 each."""
    x, y = (np.ascontiguousarray(axis, dtype=np.float32) for axis in coordinates.T)
    return x, y


def _bounds(x: np.ndarray, y: np.ndarray) -> Window:
    """The smallest window with all points; not without an area, where they lie on a line."""
    sides = []
    for values in (x, y):
        low, high = float(values.min()), float(values.max())
        if low == high:
            low, high = low - 0.5 * max(1.0, abs(low)), high + 0.5 * max(1.0, abs(high))
        sides += [low, high]
    return Window(*sides)


def _cells_of_points(x: np.ndarray, y: np.ndarray, bounds: Window, size: int) -> np.ndarray:
    """[text] int32 the number of each point's cell."""
    cells = _cells(y, bounds.bottom, bounds.top, size) * np.int32(size)
    cells += _cells(x, bounds.left, bounds.right, size)
    return cells


def _cells(values: np.ndarray, low: float, high: float, size: int) -> np.ndarray:
    """[value] int32 the one of ``size`` equal parts from ``low`` to ``high`` in which each lies."""
    scaled = (values - np.float32(low)) * np.float32(size / (high - low))
    return np.clip(scaled, 0, size - 1).astype(np.int32)


def _concatenate(values: np.ndarray, runs: Sequence[slice]) -> np.ndarray:
    if len(runs) <= 1:
        return values[runs[0]] if runs else values[:0]
    return np.concatenate([values[run] for run in runs])


def _draw_order(rows: np.ndarray) -> np.ndarray:
    """[row] uint32 in which order rows are drawn at random, no two alike (murmur3's last step)."""
    mixed = rows.astype(np.uint32)
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
