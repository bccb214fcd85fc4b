"""Saved corpora and maps in memory, shared by all sessions; they never change."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import streamlit as st

from neuralviz.embedders import EmbedderSpec
from neuralviz.embedders.specs import labels_by_spec, method_labels
from neuralviz.errors import NeuralvizError
from neuralviz.lazy import Lazy
from neuralviz.maps.clusters import cluster_centres
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.map_points import MapPoints, group_rows
from neuralviz.maps.neighbourhoods import knn_accuracy, knn_right
from neuralviz.maps.neighbours import Neighbours, neighbours_of_points
from neuralviz.maps.searching import find_embedder, neighbours_at_once
from neuralviz.maps.settings import SCORED_NEIGHBOURS, is_large
from neuralviz.plots.point_colours import cluster_names
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.corpus.opened import OpenCorpus
from neuralviz.ui.pace import WARMING
from neuralviz.ui.session import is_served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from neuralviz.jobs.mapping import SampledNeighbours
    from neuralviz.maps.clusters import Clusters
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbourhoods import KnnAccuracy
    from neuralviz.plots.point_colours import PointColour
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

T = TypeVar("T")

COLOURS = 8  # cached per map, 40 MB each for 10 million texts
VIEWS = 12  # cached per large map
NEAR = 200  # texts of a large map whose neighbours are cached
CENTRE = 2000  # texts that place the name of a large map's cluster


@dataclass(frozen=True, eq=False)
class OpenMap:
    """A saved map in memory; everything derived from it is computed when it is first needed.

    Attributes:
        store: that keeps it.
        corpus: that is on it.
        kept: what is known of it.
        name: of its method, where that has to be told from another map's; else the method's own.
    """

    store: CorpusStore
    corpus: Corpus
    kept: KeptMap
    name: str = ""
    _parts: Lazy = field(default_factory=Lazy, repr=False)
    _colours: Lazy = field(default_factory=lambda: Lazy(COLOURS), repr=False)
    _views: Lazy = field(default_factory=lambda: Lazy(VIEWS), repr=False)
    _near: Lazy = field(default_factory=lambda: Lazy(NEAR), repr=False)

    @property
    def coordinates(self) -> np.ndarray:
        """[text, dimensions] the points."""
        return self._points[0]

    @property
    def clusters(self) -> Clusters:
        """Which cluster each text is in."""
        return self._points[1]

    @property
    def _points(self) -> tuple[np.ndarray, Clusters]:
        return self._parts.get("points", lambda: KeptMaps(self.store).points(self.kept))

    @property
    def is_large(self) -> bool:
        """Whether its corpus is large: see `OpenCorpus`."""
        return is_large(self.corpus.n_texts)

    @property
    def plane(self) -> MapPoints:
        """The points of a map in two dimensions, for questions about parts of it."""
        return self._parts.get("plane", lambda: MapPoints.from_coordinates(self.coordinates))

    @property
    def by_cluster(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers sorted by cluster, the largest first; and where each cluster begins.

        Texts in no cluster come last.
        """

        def group() -> tuple[np.ndarray, np.ndarray]:
            labels, n = self.clusters.labels, self.clusters.n
            return group_rows(np.where(labels < 0, np.int32(n), labels), n + 1)

        return self._parts.get("by cluster", group)

    def cluster_rows(self, cluster: int) -> np.ndarray:
        """Rows of the texts in a cluster."""
        rows, starts = self.by_cluster
        return rows[starts[cluster] : starts[cluster + 1]]

    @property
    def cluster_sizes(self) -> np.ndarray:
        """[cluster] texts."""
        return np.diff(self.by_cluster[1])[:-1]

    def view(self, name: object, make: Callable[[], T]) -> T:
        """A view of a large map, made when it is first needed; the last few are cached."""
        return self._views.get(name, make)

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours of every text in the space that was projected; not of a large map."""
        return self._parts.get("neighbours", lambda: KeptMaps(self.store).neighbours(self.kept))

    def near(self, row: int, k: int, new_neighbours: Neighbours | None = None) -> Neighbours | None:
        """The ``k`` nearest texts of one text; a large map's index may miss a few.

        None where finding them compares all vectors: `neuralviz.ui.corpus.neighbours` offers that.

        Args:
            row: of the text.
            k: neighbours.
            new_neighbours: what was found just now, if anything was.
        """
        if not self.is_large:
            return _take_row(self.neighbours.first(k), row)
        cached = self._near.peek((row, k))
        if cached is not None:
            return cached
        if new_neighbours is None:
            new_neighbours = self._find_in_sample(row, k)
        if new_neighbours is None:
            new_neighbours = neighbours_at_once(self.store, self.corpus, self.kept, row, k)
        return None if new_neighbours is None else self._near.get((row, k), lambda: new_neighbours)

    def _find_in_sample(self, row: int, k: int) -> Neighbours | None:
        sample = self.sampled(None)
        if sample is None or sample.near.k < k:
            return None
        place = int(np.searchsorted(sample.rows, row))
        is_there = place < len(sample.rows) and sample.rows[place] == row
        return _take_row(sample.near.first(k), place) if is_there else None

    def sampled(self, new_sample: SampledNeighbours | None) -> SampledNeighbours | None:
        """The neighbours of a sample of a large map's texts; None until they are known.

        Args:
            new_sample: what was found just now, if anything was.
        """
        if new_sample is not None:
            return self._parts.get("sampled", lambda: new_sample)
        return self._parts.peek("sampled")

    @property
    def neighbours_on_map(self) -> Neighbours:
        """The neighbours of every text on the map itself; not of a large map."""
        return self._parts.get(
            "neighbours on map",
            lambda: neighbours_of_points(self.coordinates, SCORED_NEIGHBOURS),
        )

    @property
    def embedder(self) -> KeptEmbedder:
        """The embedder of the vectors.

        Raises:
            StoreError: the vectors are gone.
        """
        return self._parts.get("embedder", lambda: find_embedder(self.store, self.kept))

    @property
    def spec(self) -> EmbedderSpec:
        """The settings that make the embedder again."""
        return self._parts.get("spec", lambda: EmbedderSpec.from_json(self.embedder.spec))

    @property
    def label(self) -> str:
        """Name of the method, different from those of the other maps on the page."""
        return self.name or method_labels([self.spec])[0]

    @property
    def axes(self) -> tuple[str, ...] | None:
        """Names of the axes; None where they mean nothing."""
        return self._parts.get("axes", self._name_axes)

    def _name_axes(self) -> tuple[str, ...] | None:
        if self.kept.settings.reducer != "pca":
            return None
        shares = KeptMaps(self.store).fitted(self.kept)["explained_variance_ratio"]
        return tuple(f"component {i} ({share:.0%})" for i, share in enumerate(shares, 1))

    @property
    def losses(self) -> np.ndarray:
        """[text, 2] the first and the last loss, NaN where the method does not learn."""

        def read() -> np.ndarray:
            keys = self.store.keys(self.corpus)
            return self.store.vectors.losses(self.embedder, keys)

        return self._parts.get("losses", read)

    def accuracy(self, name: str, labels: np.ndarray, k: int) -> KnnAccuracy:
        """How often ``k`` neighbours vote for a text's own label, of a column of the corpus."""
        return self._parts.get(
            ("accuracy", name, k), lambda: knn_accuracy(self.neighbours, labels.tolist(), k)
        )

    def hits(self, name: str, labels: np.ndarray, k: int) -> np.ndarray:
        """[text with a label] whether ``k`` neighbours vote for it, of a column of the corpus."""
        return self._parts.get(
            ("hits", name, k), lambda: knn_right(self.neighbours, labels.tolist(), k)
        )

    @property
    def clusters_named(self) -> tuple[tuple[str, np.ndarray], ...]:
        """The name of each cluster, the largest first, and its place on the map."""

        def find() -> tuple[tuple[str, np.ndarray], ...]:
            names = cluster_names(self.kept.cluster_words)
            points, clusters = self._points
            if self.is_large:  # some of each are enough
                rows_by_cluster = (self.cluster_rows(cluster) for cluster in range(clusters.n))
                samples = [rows[:: 1 + len(rows) // CENTRE] for rows in rows_by_cluster]
                labels = np.repeat(np.arange(clusters.n), list(map(len, samples)))
                points = points[np.concatenate(samples)] if samples else points[:0]
                clusters = replace(clusters, labels=labels)
            return tuple(zip(names, cluster_centres(points, clusters), strict=True))

        return self._parts.get("clusters named", find)

    def colour(self, name: str, make: Callable[[], PointColour]) -> PointColour:
        """The colours under ``name``, made when they are first needed; the last few are cached."""
        return self._colours.get(name, make)


def _run_soon(method: Callable[[], None]) -> None:
    """Call a method in the background, unless its object has been deleted by then."""
    WARMING.call_soon(partial(_call, weakref.WeakMethod(method)))


def _call(held: weakref.WeakMethod[Callable[[], None]]) -> None:
    method = held()
    if method is not None:
        method()


def _take_row(near: Neighbours, row: int) -> Neighbours:
    span = slice(row, row + 1)
    return replace(near, indices=near.indices[span], distances=near.distances[span])


@st.cache_resource(max_entries=4, show_spinner=False)
def _open_corpus(folder: Path, corpus_id: str) -> OpenCorpus:
    store = CorpusStore(folder)
    opened = OpenCorpus(store, store.corpus(corpus_id))
    if opened.is_large and is_served():
        threading.Thread(target=opened.read_ahead, daemon=True).start()  # while points are read
        _run_soon(opened.prepare)
    return opened


@st.cache_resource(max_entries=8, show_spinner=False)
def _open_map(folder: Path, corpus_id: str, map_id: str) -> OpenMap:
    store = CorpusStore(folder)
    corpus = store.corpus(corpus_id)
    opened = OpenMap(store, corpus, KeptMaps(store).by_id(corpus, map_id))
    _ = opened.coordinates  # read now, before anything deletes the map
    return opened


def open_corpus(corpus: Corpus) -> OpenCorpus:
    """A saved corpus in memory."""
    return _open_corpus(CorpusStore().folder, corpus.id)


def open_map(corpus: Corpus, kept: KeptMap) -> OpenMap:
    """A saved map in memory.

    Raises:
        StoreError: it is gone.
    """
    return _open_map(CorpusStore().folder, corpus.id, kept.id)


def open_maps(corpus: Corpus, kept: Sequence[KeptMap]) -> list[OpenMap]:
    """Saved maps in memory; no two methods of them have the same name.

    Raises:
        StoreError: one is gone.
    """
    maps = [open_map(corpus, kept_map) for kept_map in kept]
    names = labels_by_spec(opened.spec for opened in maps)
    return [replace(opened, name=names[opened.spec]) for opened in maps]


def open_ahead() -> None:
    """Read the newest map of the newest large corpus, so that its first visitor need not wait.

    Does nothing where there is none.
    """
    with suppress(NeuralvizError):  # the page shows the error
        store = CorpusStore()
        for corpus in store.corpora():
            kept = KeptMaps(store).list_maps(corpus) if is_large(corpus.n_texts) else ()
            if kept:
                newest = open_map(corpus, max(kept, key=lambda kept_map: kept_map.created))
                open_corpus(corpus).read_ahead()
                if newest.coordinates.shape[1] == 2:
                    _ = newest.plane
                return


def other_maps(corpus: Corpus, maps: Sequence[OpenMap]) -> tuple[OpenMap, ...]:
    """One saved map of the corpus for every method that ``maps`` do not show."""
    shown_ids = {opened.kept.embedder for opened in maps}
    usable_ids = {embedder.id for embedder in CorpusStore().vectors.embedders() if embedder.spec}
    by_embedder: dict[str, KeptMap] = {}
    for kept in KeptMaps(CorpusStore()).list_maps(corpus):
        if kept.embedder in usable_ids - shown_ids:
            by_embedder.setdefault(kept.embedder, kept)
    return tuple(open_map(corpus, kept) for kept in by_embedder.values())
