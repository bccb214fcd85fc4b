"""Saved corpora and maps in memory, for any number of sessions; they never change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from neuralviz.embedders import EmbedderSpec
from neuralviz.errors import NeuralvizError
from neuralviz.lazy import Lazy
from neuralviz.maps.clusters import Clusters, cluster_centres, cluster_names
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.map_points import MapPoints, category_names, group_rows
from neuralviz.maps.neighbours import Neighbours, neighbours_of_points, sampled_right
from neuralviz.maps.projection import REDUCERS, SCORED_NEIGHBOURS, is_large
from neuralviz.maps.searching import SampledNeighbours, find_embedder, neighbours_at_once
from neuralviz.store.corpora import Corpus, CorpusStore, are_whole
from neuralviz.store.vectors import KeptEmbedder

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
        """[text] values of a column of numbers."""
        return self.columns.get(("numbers", name), lambda: self.store.labels(self.corpus, name))

    @property
    def number_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.corpus.columns if column.kind == "number")

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
        values = self.store.labels(self.corpus, name)  # not cached: few large ones fit
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

    def read_colours(self) -> None:
        """Read the labels that colour a map at first."""
        with suppress(NeuralvizError):  # raised again where the labels are used
            for name in self.label_names[:1]:
                self.codes(name)

    def read_filters(self) -> None:
        """Find what filters offer."""
        with suppress(NeuralvizError):  # raised again where the filter is drawn
            labels, numbers = self.filters
            _ = [*map(self.sizes, labels), *map(self.span, numbers)]


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
        """The method and the projection, such as ``mean · UMAP``."""
        settings = self.kept.settings
        reducer = REDUCERS[settings.reducer] + " 3-D" * (settings.dimensions == 3)
        return f"{self.label} · {reducer}"

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

    @shared_property
    def named_clusters(self) -> tuple[tuple[str, np.ndarray], ...]:
        """The name and place of each cluster, the largest first."""
        points, clusters = self.points
        samples = [self.cluster_rows(cluster) for cluster in range(clusters.n)]
        samples = [rows[:: 1 + len(rows) // CENTRE] for rows in samples]
        sampled = points[np.concatenate(samples)] if samples else points[:0]
        labels = np.repeat(np.arange(clusters.n), list(map(len, samples)))
        centres = cluster_centres(sampled, replace(clusters, labels=labels))
        return tuple(zip(cluster_names(self.kept.cluster_words), centres, strict=True))

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

    def near(self, row: int, k: int, found: Neighbours | None = None) -> Neighbours | None:
        """The ``k`` nearest texts, ``found`` or by an index, which may miss a few; else None."""
        sample = self.sample()
        if sample is not None and sample.near.k >= min(k, self.corpus.n_texts - 1):
            place = int(np.searchsorted(sample.rows, row))
            if place < len(sample.rows) and sample.rows[place] == row:
                near, here = sample.near.first(k), slice(place, place + 1)
                return replace(near, indices=near.indices[here], distances=near.distances[here])
        if found is not None:
            return self.recent.get(("near", row, k), lambda: found)
        known = self.recent.peek(("near", row, k))
        store, corpus = self.corpus.store, self.corpus.corpus
        return known or neighbours_at_once(store, corpus, self.kept, row, k)

    @shared
    def hits(self, name: str, k: int) -> np.ndarray:
        """[labelled text of `sample`] whether ``k`` neighbours vote for its own label."""
        sample = self.sample()
        assert sample is not None
        return sampled_right(sample.near, self.corpus.codes(name)[0], sample.rows, k)

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
