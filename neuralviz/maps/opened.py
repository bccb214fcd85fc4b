"""Saved corpora and maps in memory, for any number of sessions."""

from __future__ import annotations

import hashlib
import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from neuralviz.embedders import EmbedderSpec
from neuralviz.lazy import Lazy
from neuralviz.maps.clusters import Clusters, cluster_centres
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import SampledNeighbours, find_embedder, neighbours_at_once
from neuralviz.maps.neighbours import K, Neighbours, neighbours_of_points, sampled_right
from neuralviz.maps.projection import REDUCERS, SCORED_NEIGHBOURS, SETTING_NAMES, is_large
from neuralviz.maps.trends import Trend, find_trend
from neuralviz.reading.dates import count_days
from neuralviz.reading.table import ID_COLUMNS
from neuralviz.store.corpora import Column, Corpus, CorpusStore, are_whole
from neuralviz.store.vectors import KeptEmbedder
from neuralviz.words import many, number

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

MOST_FILTERS = 8  # columns of labels, and as many columns of numbers
HELD = 12  # cached columns of a large corpus, or colours and views of a map: 40 MB for 10 million
CENTRE = 2000  # texts that place the name of a cluster


def shared(compute: F) -> F:
    """A method that computes a value once for all sessions, when it is first needed."""

    @wraps(compute)
    def find(opened: Any, *arguments: Any) -> Any:
        name = compute.__name__, *arguments
        return opened.parts.get(name, lambda: compute(opened, *arguments))

    return cast("F", find)


def shared_property(compute: Callable[[Any], R]) -> R:
    """A property that is computed once for all sessions."""
    return cast("R", property(shared(compute)))


@dataclass(frozen=True, eq=False)
class OpenCorpus:
    """A saved corpus in memory. Of a large one, only arrays hold all texts at once."""

    store: CorpusStore
    corpus: Corpus
    parts: Lazy = field(default_factory=Lazy, repr=False)
    columns: Lazy = field(default_factory=lambda: Lazy(HELD), repr=False)
    groups: Lazy = field(default_factory=lambda: Lazy(HELD), repr=False)  # of near-duplicates

    @property
    def n_texts(self) -> int:
        return self.corpus.n_texts

    @property
    def is_large(self) -> bool:
        """Whether it has too many texts to hold them all in memory."""
        return is_large(self.n_texts)

    @shared_property
    def texts(self) -> tuple[str, ...]:
        """All texts; not for a large corpus."""
        return tuple(self.store.texts(self.corpus))

    def texts_at(self, rows: Sequence[int] | np.ndarray) -> list[str]:
        if self.is_large:
            return self.store.texts(self.corpus, rows)
        return [self.texts[row] for row in rows]

    def numbers(self, name: str) -> np.ndarray:
        """[text] values of a column of numbers; days since 1970 of one of dates."""
        return self.columns.get(("numbers", name), lambda: self._read_numbers(name))

    def _read_numbers(self, name: str) -> np.ndarray:
        read = self.store.days if name in self.date_names else self.store.labels
        return read(self.corpus, name)

    @property
    def number_names(self) -> tuple[str, ...]:
        """Columns of numbers and of dates."""
        kinds = ("number", "date")
        return tuple(column.name for column in self.corpus.columns if column.kind in kinds)

    @property
    def date_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.corpus.columns if column.kind == "date")

    @shared_property
    def label_names(self) -> tuple[str, ...]:
        """Columns that tell texts apart; in a large corpus, as judged by a sample."""
        return category_names(self.store, self.corpus)

    def codes(self, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """[text] index of each text's value among the names returned with it, -1 for none."""
        return self.columns.get(("codes", name), lambda: self.store.label_codes(self.corpus, name))

    def labels_at(self, name: str, rows: np.ndarray) -> np.ndarray:
        """[row] values of a column of labels, blank where there is none."""
        codes, names = self.codes(name)
        return np.array([*names, ""], dtype=object)[codes[rows]]

    @shared
    def sizes(self, name: str) -> Mapping[str, int]:
        """The number of texts by name, in the order of `codes`."""
        codes, names = self.codes(name)
        sizes = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
        return MappingProxyType(dict(zip(names, sizes, strict=True)))

    @shared
    def span(self, name: str) -> tuple[float, float] | None:
        """The lowest and highest number of a column, integers if all are; None without any."""
        values = self._read_numbers(name)  # not cached: few large ones fit
        finite = values[np.isfinite(values)]
        if not len(finite):
            return None
        kind = int if are_whole(finite) else float
        return kind(finite.min()), kind(finite.max())

    @property
    def filters(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Columns that texts can be filtered by: of labels, and of numbers."""
        labels = self.label_names
        numbers = tuple(name for name in self.number_names if name not in labels)
        return labels[:MOST_FILTERS], numbers[:MOST_FILTERS]


@dataclass(frozen=True, eq=False)
class OpenMap:
    corpus: OpenCorpus
    kept: KeptMap
    label: str = ""  # tells its method apart from those of maps beside it
    parts: Lazy = field(default_factory=Lazy, repr=False)
    recent: Lazy = field(default_factory=lambda: Lazy(HELD), repr=False)

    @property
    def maps(self) -> KeptMaps:
        return KeptMaps(self.corpus.store)

    @shared_property
    def points(self) -> tuple[np.ndarray, Clusters]:
        """[text, dimensions] places, and the cluster of each text."""
        return self.maps.points(self.kept)

    @property
    def coordinates(self) -> np.ndarray:
        return self.points[0]

    @property
    def clusters(self) -> Clusters:
        return self.points[1]

    @property
    def is_drawn_by_parts(self) -> bool:
        """Whether the browser gets a sample of the visible points and the density of all."""
        return self.corpus.is_large and self.coordinates.shape[1] == 2

    @property
    def title(self) -> str:
        """The method and the projection, such as ``mean · UMAP, distance euclidean``."""
        settings = self.kept.settings
        reducer = REDUCERS[settings.reducer] + " 3-D" * (settings.dimensions == 3)
        changed = [
            f"{SETTING_NAMES.get(name, name)} {value}"
            for name, value in settings.relevant().items()
            if name not in ("reducer", "dimensions") and value != getattr(type(settings), name)
        ]
        return ", ".join([f"{self.label} · {reducer}", *changed])

    @shared_property
    def home(self) -> Window | None:
        """The middle 98% of each axis with a margin, seen at first; None in three dimensions."""
        points = self.coordinates
        if points.shape[1] != 2:
            return None
        ends = np.quantile(points, [0.01, 0.99], axis=0), [points.min(axis=0), points.max(axis=0)]
        (low, high), (lowest, highest) = ends
        room = MARGIN * (high - low)
        low, high = np.maximum(low, lowest) - room, np.minimum(high, highest) + room
        (left, bottom), (right, top) = low.tolist(), high.tolist()
        with suppress(ValueError):  # all points are in one line
            return Window(left, right, bottom, top)
        return None

    @shared_property
    def n_outside(self) -> int:
        """Points that are not seen at first."""
        return (
            0 if self.home is None else len(self.coordinates) - len(self.plane.in_window(self.home))
        )

    @shared_property
    def plane(self) -> MapPoints:
        """The points of a two-dimensional map, for queries of parts of it."""
        return MapPoints.from_coordinates(self.coordinates)

    @shared_property
    def grouped(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows by cluster, the largest first, then those in none; and where each cluster begins."""
        labels, n = self.clusters.labels, self.clusters.n
        return group_rows(np.where(labels < 0, np.int32(n), labels), n + 1)

    def cluster_rows(self, cluster: int) -> np.ndarray:
        rows, starts = self.grouped
        return rows[starts[cluster] : starts[cluster + 1]]

    @property
    def cluster_sizes(self) -> np.ndarray:
        """[cluster] number of texts."""
        return np.diff(self.grouped[1])[:-1]

    @property
    def named_clusters(self) -> tuple[tuple[str, np.ndarray], ...]:
        """The name and place of each cluster, the largest first."""
        return tuple(zip(self.kept.cluster_names, self._cluster_places, strict=True))

    @property
    def numbered_clusters(self) -> list[str]:
        """Names with numbers from 1, which differ where names do not: ``3 bounce error``."""
        return [f"{number} {name}" for number, name in enumerate(self.kept.cluster_names, 1)]

    @shared_property
    def _cluster_places(self) -> np.ndarray:
        """[cluster, dimensions]"""
        points, clusters = self.points
        samples = [self.cluster_rows(cluster) for cluster in range(clusters.n)]
        samples = [rows[:: 1 + len(rows) // CENTRE] for rows in samples]
        sampled = points[np.concatenate(samples)] if samples else points[:0]
        labels = np.repeat(np.arange(clusters.n), list(map(len, samples)))
        return cluster_centres(sampled, replace(clusters, labels=labels))

    @shared_property
    def neighbours(self) -> Neighbours:
        """Neighbours of every text by the vectors; not for a large map."""
        return self.maps.neighbours(self.kept)

    @shared_property
    def neighbours_on_map(self) -> Neighbours:
        """Neighbours of every text among the points; not for a large map."""
        return neighbours_of_points(self.coordinates, SCORED_NEIGHBOURS)

    def sample(self, found: SampledNeighbours | None = None) -> SampledNeighbours | None:
        """Texts that measure the map: all, or ``found`` ones of a large corpus, None until then."""
        if not self.corpus.is_large:
            return SampledNeighbours(np.arange(self.corpus.n_texts), self.neighbours)
        if found is not None:
            return self.parts.get("sample", lambda: found)
        return self.parts.peek("sample")

    def near(self, row: int, found: Neighbours | None = None) -> Neighbours | None:
        """The `K` nearest texts, ``found`` or by an index, which may miss a few; else None."""
        sample = self.sample()
        if sample is not None and row in sample.rows:
            near, here = sample.near.first(K), sample.rows == row
            return Neighbours(near.indices[here], near.distances[here])
        if found is not None:
            return self.recent.get(("near", row), lambda: found)
        known = self.recent.peek(("near", row))
        return known or neighbours_at_once(self.corpus.store, self.corpus.corpus, self.kept, row, K)

    @shared
    def hits(self, name: str, k: int) -> np.ndarray:
        """[labelled text of `sample`] whether ``k`` neighbours vote for its own label."""
        sample = self.sample()
        assert sample is not None
        return sampled_right(sample.near, self.corpus.codes(name)[0], sample.rows, k)

    def trend(self, name: str, numbers: np.ndarray) -> Trend | None:
        """Whether near texts of `sample` have similar [text] ``numbers``, which have a name."""
        sample = self.sample()
        assert sample is not None
        near, rows = sample.near.first(K), sample.rows
        key = "trend", name, numbers[rows].tobytes()  # losses have one name for all methods
        return self.parts.get(key, lambda: find_trend(near, rows, numbers))

    @shared_property
    def embedder(self) -> KeptEmbedder:
        """The embedder of the vectors; raises StoreError where these are gone."""
        return find_embedder(self.corpus.store, self.kept)

    @shared_property
    def spec(self) -> EmbedderSpec:
        """The settings from which the embedder can be made again."""
        return EmbedderSpec.from_json(self.embedder.spec)

    @shared_property
    def axes(self) -> tuple[str, ...] | None:
        """Names of the axes; None where they mean nothing."""
        if self.kept.settings.reducer != "pca":
            return None
        shares = self.maps.fitted(self.kept)["explained_variance_ratio"]
        return tuple(f"component {i} ({share:.0%})" for i, share in enumerate(shares, 1))

    @shared_property
    def losses(self) -> np.ndarray:
        """[text, 2] the first and the last loss, NaN where the method does not learn."""
        store = self.corpus.store
        return store.vectors.losses(self.embedder, store.keys(self.corpus.corpus))


MARGIN = 0.08  # of the width of the middle points, on each side of what is seen at first
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
        wide, high = self.right - self.left, self.top - self.bottom
        if not (0 < wide < math.inf and 0 < high < math.inf):
            raise ValueError("a window needs an area and finite sides")

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
    # by column of numbers or dates, lowest and highest; missing ones do not pass
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

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
            if isinstance(low, date):  # until the end of the last day
                low, high = count_days(low), np.nextafter(count_days(high) + 1, 0)
            mask &= (values >= low) & (values <= high)  # false for NaN
        return mask

    def describe(self, n_shown: int, n_texts: int) -> str:
        reasons = [
            f"{name} is {' or '.join(value or 'no value' for value in allowed)}"
            for name, allowed in self.labels.items()
        ]
        reasons += [
            f"{name} is {_write_end(low)} to {_write_end(high)}"
            for name, (low, high) in self.ranges.items()
        ]
        return f"{n_shown:,} of {many(n_texts, 'text')}: {', and '.join(reasons)}"


def _write_end(end: float | date) -> str:
    return end.isoformat() if isinstance(end, date) else number(end)


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

    def pack(self) -> str:
        """The set as ASCII, a bit for a text before it is compressed."""
        return b64encode(zlib.compress(np.packbits(self.mask).tobytes())).decode()

    @classmethod
    def unpack(cls, packed: str, n_texts: int) -> Selection:
        """The set that `pack` wrote, of a corpus with as many texts."""
        bits = np.frombuffer(zlib.decompress(b64decode(packed)), np.uint8)
        return cls.from_rows(np.flatnonzero(np.unpackbits(bits)), n_texts)


def category_names(store: CorpusStore, corpus: Corpus) -> tuple[str, ...]:
    """Columns with categorical labels; large corpora are judged by a sample."""
    n, rows = corpus.n_texts, None
    if is_large(n):
        rows = np.sort(np.random.default_rng(0).choice(n, min(n, LOOKED_AT), replace=False))
    return tuple(
        column.name
        for column in corpus.columns
        if column.name.strip().lower() not in ID_COLUMNS
        and _has_categories(column, store.labels(corpus, column.name, rows))
    )


def _has_categories(column: Column, values: np.ndarray) -> bool:
    if column.kind == "number":
        values = values[np.isfinite(values)]
    different = set(values) - {""}
    if column.kind != "text":
        is_short = len(different) <= min(FEW_NUMBERS, len(values) // TEXTS_A_NUMBER)
        if not is_short or (column.kind == "number" and not are_whole(values)):
            return False
    return 1 < len(different) <= min(MOST_CATEGORIES, max(2, len(values) // TEXTS_A_LABEL))
