"""Find the points of a large map in a window or lasso."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.projection import is_large
from neuralviz.reading.table import cell_text
from neuralviz.reading.texts import ID_COLUMNS
from neuralviz.store.corpora import are_whole
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.store.corpora import Corpus, CorpusStore


POINTS_A_BIN = 8  # on average
FEWEST_BINS = 32  # along the longer side
MOST_CORNERS = 2000  # of an area; larger areas are thinned out


@dataclass(frozen=True)
class Window:
    """A rectangle in map units. Raises ValueError if it has no area."""

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
        across, up = share * (self.right - self.left), share * (self.top - self.bottom)
        return Window(self.left - across, self.right + across, self.bottom - up, self.top + up)

    def holds(self, inner: Window) -> bool:
        return (
            self.left <= inner.left
            and inner.right <= self.right
            and self.bottom <= inner.bottom
            and inner.top <= self.top
        )

    def cut(self, window: Window) -> Window | None:
        left, right = max(self.left, window.left), min(self.right, window.right)
        bottom, top = max(self.bottom, window.bottom), min(self.top, window.top)
        return Window(left, right, bottom, top) if left < right and bottom < top else None


@dataclass(frozen=True, eq=False)
class MapPoints:
    x: np.ndarray  # [text] float32
    y: np.ndarray  # [text] float32
    bounds: Window  # the smallest window with all points

    @classmethod
    def from_coordinates(cls, coordinates: np.ndarray) -> MapPoints:
        """Make from [text, 2] finite coordinates."""
        x, y = (np.ascontiguousarray(axis, dtype=np.float32) for axis in coordinates.T)
        return cls(x, y, Window(*_find_ends(x), *_find_ends(y)))

    @cached_property
    def _draw_order(self) -> np.ndarray:
        """[text] int32 fixed random order."""
        return np.random.default_rng(0).permutation(np.arange(len(self.x), dtype=np.int32))

    def in_window(self, window: Window | None) -> np.ndarray:
        """[found] rows in a window, ascending; all for None."""
        if window is None or window.holds(self.bounds):
            return np.arange(len(self.x), dtype=np.int32)
        is_in = (self.x >= np.float32(window.left)) & (self.x <= np.float32(window.right))
        is_in &= self.y >= np.float32(window.bottom)
        is_in &= self.y <= np.float32(window.top)
        return np.flatnonzero(is_in).astype(np.int32)

    def sample(
        self, window: Window | None, max_points: int, within: np.ndarray | None = None
    ) -> tuple[np.ndarray, int]:
        """[drawn] random rows in a window, consistent when zooming, and the number in it."""
        rows = self.in_window(window)
        if within is not None:
            rows = rows[within[rows]]
        n = len(rows)
        if n > max_points:
            rows = rows[np.argpartition(self._draw_order[rows], max_points - 1)[:max_points]]
        return np.sort(rows), n

    def counts(self, window: Window | None, max_bins: int) -> tuple[np.ndarray, Window]:
        """[up, across] points per square bin, from the bottom left, and the window covered."""
        window = window or self.bounds
        visible = window.cut(self.bounds)
        if visible is None:
            return np.zeros((1, 1), dtype=np.int64), window
        rows = self.in_window(window)
        wide, high = visible.right - visible.left, visible.top - visible.bottom
        side = math.sqrt(wide * high * POINTS_A_BIN / max(1, len(rows)))
        side = min(side, max(wide, high) / FEWEST_BINS)
        across, up = (min(max_bins, max(1, math.ceil(length / side))) for length in (wide, high))
        bins = _number_bins(self.y[rows], visible.bottom, visible.top, up) * np.int32(across)
        bins += _number_bins(self.x[rows], visible.left, visible.right, across)
        return np.bincount(bins, minlength=up * across).reshape(up, across), visible

    def inside(self, areas: Iterable[np.ndarray]) -> np.ndarray:
        """[text] whether a point is in any [corner, 2] area (even-odd rule)."""
        is_inside = np.zeros(len(self.x), dtype=bool)
        for area in areas:
            corners = np.asarray(area, dtype=np.float64)
            corners = corners[:: max(1, -(-len(corners) // MOST_CORNERS))]
            if len(corners) >= 3:
                is_inside[self._find_inside(corners)] = True
        return is_inside

    def _find_inside(self, corners: np.ndarray) -> np.ndarray:
        """[found] rows whose ray to the right crosses an odd number of edges."""
        (left, bottom), (right, top) = corners.min(axis=0), corners.max(axis=0)
        near = (self.x >= left) & (self.x <= right) & (self.y >= bottom) & (self.y <= top)
        rows = np.flatnonzero(near)
        rows = rows[np.argsort(self.y[rows])]  # limits the points tested per edge
        x, y = self.x[rows].astype(np.float64), self.y[rows].astype(np.float64)
        is_odd = np.zeros(len(rows), dtype=bool)
        ends = np.roll(corners, -1, axis=0)
        heights = np.sort([corners[:, 1], ends[:, 1]], axis=0)
        for (u, v), (to_u, to_v), first, last in zip(
            corners, ends, *np.searchsorted(y, heights), strict=True
        ):
            if v != to_v:
                part = slice(first, last)
                is_odd[part] ^= x[part] < u + (y[part] - v) * ((to_u - u) / (to_v - v))
        return rows[is_odd]


def group_rows(groups: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """[row] int32 rows sorted by group, and [n_groups + 1] int64 starts of the groups."""
    small = groups.astype(np.min_scalar_type(n_groups))  # radix sort
    sizes = np.bincount(groups, minlength=n_groups)
    return np.argsort(small, kind="stable").astype(np.int32), np.concatenate([[0], sizes.cumsum()])


def _find_ends(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = 0.5 * max(1.0, abs(low)) if low == high else 0.0
    return low - room, high + room


def _number_bins(values: np.ndarray, low: float, high: float, n_bins: int) -> np.ndarray:
    scaled = (values - np.float32(low)) * np.float32(n_bins / (high - low))
    return np.clip(scaled, 0, n_bins - 1).astype(np.int32)


MOST_CATEGORIES = 1000  # labels in a categorical column
TEXTS_A_LABEL = 2  # minimum average; names and IDs have fewer
TEXTS_A_NUMBER = 5
LOOKED_AT = 20_000  # sampled texts of a large corpus
FEW_NUMBERS = 12  # distinct whole numbers that may be categories


@dataclass(frozen=True)
class TextFilter:
    # by column, the allowed values; "" is no value
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # by numeric column, lowest and highest; missing numbers do not pass
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.labels or self.ranges)

    def within(
        self,
        codes: Callable[[str], tuple[np.ndarray, Sequence[str]]],  # as `CorpusStore.label_codes`
        numbers: Callable[[str], np.ndarray],  # [text] values of a column
        n_texts: int,
    ) -> np.ndarray:
        mask = np.ones(n_texts, dtype=bool)
        for name, allowed in self.labels.items():
            text_codes, names = codes(name)
            mask &= np.array([*(label in allowed for label in names), "" in allowed])[text_codes]
        for name, (low, high) in self.ranges.items():
            values = numbers(name)
            mask &= (values >= low) & (values <= high)  # false for NaN
        return mask

    def describe(self, n_shown: int, n_texts: int) -> str:
        reasons = [
            f"{name} is {' or '.join(value or 'no value' for value in allowed)}"
            for name, allowed in self.labels.items()
        ]
        reasons += [
            f"{name} is {number(low)} to {number(high)}"
            for name, (low, high) in self.ranges.items()
        ]
        return f"Showing {n_shown:,} of {many(n_texts, 'text')}: {', and '.join(reasons)}."


@dataclass(frozen=True, eq=False)
class Selection:
    """A set of texts."""

    mask: np.ndarray  # [text] bool

    @classmethod
    def from_rows(cls, rows: np.ndarray, n_texts: int) -> Selection:
        mask = np.zeros(n_texts, dtype=bool)
        mask[rows[rows < n_texts]] = True
        return cls(mask)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(self.mask.tobytes(), digest_size=12).hexdigest()

    def rows(self) -> np.ndarray:
        return np.flatnonzero(self.mask)


def category_names(store: CorpusStore, corpus: Corpus) -> tuple[str, ...]:
    """Columns with categorical labels; large corpora are judged by a sample."""
    n, rows = corpus.n_texts, None
    if is_large(n):
        rows = np.sort(np.random.default_rng(0).choice(n, min(n, LOOKED_AT), replace=False))
    return tuple(find_categories(corpus, lambda name: store.labels(corpus, name, rows)))


def find_categories(corpus: Corpus, labels: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Categorical columns as [text] strings, blank for none; ``labels`` reads a column."""
    categories = {}
    for column in corpus.columns:
        if column.name.strip().lower() in ID_COLUMNS:
            continue
        values = labels(column.name)
        if column.kind == "number":
            finite = values[np.isfinite(values)]
            n = len(np.unique(finite))
            if n > FEW_NUMBERS or not are_whole(finite) or len(finite) < TEXTS_A_NUMBER * n:
                continue
            values = np.array([cell_text(v) if np.isfinite(v) else "" for v in values.tolist()])
        n = len(set(values) - {""})
        if 1 < n <= min(MOST_CATEGORIES, max(2, len(values) // TEXTS_A_LABEL)):
            categories[column.name] = values
    return categories
