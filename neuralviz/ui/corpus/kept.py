"""What the page holds of kept corpora in memory, shared by all sessions: none of it changes."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import streamlit as st

from neuralviz.embedders import EmbedderSpec
from neuralviz.embedders.labels import labels_by_spec, method_labels
from neuralviz.embedders.registry import make_embedder
from neuralviz.embedders.specs import models_now
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.maps import settings
from neuralviz.maps.asking import neighbours_of_rows
from neuralviz.maps.clusters import cluster_centres
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbourhoods import knn_accuracy, knn_right
from neuralviz.maps.neighbours import Neighbours, neighbours_of_points
from neuralviz.maps.point_grid import PointGrid, grouped
from neuralviz.maps.search import find_words
from neuralviz.models.shared import LOADERS, NotHeldError, held_model
from neuralviz.models.trained import trained_encoder
from neuralviz.plots.point_colours import cluster_names
from neuralviz.reading.texts import ID_COLUMNS
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.vectors import embedder_ids
from neuralviz.ui.lazy import Lazy
from neuralviz.ui.session import is_served

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from neuralviz.embedders.registry import Loaders
    from neuralviz.jobs.mapping import MapChoice, SampledNear
    from neuralviz.maps.clusters import Clusters
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbourhoods import KnnAccuracy
    from neuralviz.plots.point_colours import PointColour
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

T = TypeVar("T")

MOST_CATEGORIES = 1000  # different labels of a column that texts are told apart by
TEXTS_A_LABEL = 3  # on average, at least; names and ids have fewer
TEXTS_A_NUMBER = 5
COLOURS = 24  # of a map, that are held
HELD: Loaders = {kind: partial(held_model, kind) for kind in LOADERS}
LOOKED_AT = 20_000  # texts of a large corpus by which columns that tell texts apart are found
VIEWS = 12  # of a large map, that are held
NEAR = 200  # texts of a large map whose neighbours are held
CENTRE = 2000  # texts of a cluster by which its place is found, of a large map
FEW_NUMBERS = 12  # different whole numbers that may as well be names, as in a column of classes


@dataclass(frozen=True, eq=False)
class OpenCorpus:
    """A corpus in memory; its parts are read when they are first asked for, and never change.

    Attributes:
        store: that keeps it.
        corpus: what is known of it.
    """

    store: CorpusStore
    corpus: Corpus
    _parts: Lazy = field(default_factory=Lazy, repr=False)

    @property
    def is_large(self) -> bool:
        """Whether it is too large to be held as a whole: what is of all texts is in arrays."""
        return self.corpus.n_texts > settings.MOST_WHOLE

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts; not of a large corpus."""
        return self._parts.get("texts", lambda: tuple(self.store.texts(self.corpus)))

    @property
    def folded(self) -> tuple[str, ...]:
        """All texts in lower case, for searching; not of a large corpus."""
        return self._parts.get("folded", lambda: tuple(text.casefold() for text in self.texts))

    def texts_at(self, rows: Sequence[int] | np.ndarray) -> list[str]:
        """The texts of some rows."""
        if self.is_large:
            return self.store.texts(self.corpus, rows)
        return [self.texts[row] for row in rows]

    def id_at(self, row: int) -> str:
        """The id of a row."""
        if self.is_large:
            return self.store.ids(self.corpus, [row])[0]
        return self._parts.get("ids", lambda: tuple(self.store.ids(self.corpus)))[row]

    def find(self, query: str) -> np.ndarray:
        """Rows of the texts that hold all words of a query."""
        if self.is_large:
            return self.store.rows_with_words(self.corpus, query)
        return find_words(self.folded, query)

    @property
    def lengths(self) -> np.ndarray:
        """[text] characters; not of a large corpus."""
        return self._parts.get("lengths", lambda: np.array([len(text) for text in self.texts]))

    def labels(self, name: str) -> np.ndarray:
        """[text] a column of labels: strings or numbers."""
        return self._parts.get(("labels", name), lambda: self.store.labels(self.corpus, name))

    def label_at(self, name: str, row: int) -> object:
        """The value of a column of a row: a string or a number."""
        if self.is_large:
            return self.store.labels(self.corpus, name, [row])[0]
        return self.labels(name)[row]

    @property
    def categories(self) -> Mapping[str, np.ndarray]:
        """Columns that tell texts apart, by name: [text] strings, blank where there is none.

        Not of a large corpus: it has `category_names` and `codes`.
        """
        return self._parts.get("categories", lambda: MappingProxyType(self._find_categories(None)))

    @property
    def category_names(self) -> tuple[str, ...]:
        """Names of the columns that tell texts apart; of a large corpus found by a sample."""
        if not self.is_large:
            return tuple(self.categories)

        def find() -> tuple[str, ...]:
            n = self.corpus.n_texts
            rows = np.random.default_rng(0).choice(n, min(n, LOOKED_AT), replace=False)
            return tuple(self._find_categories(np.sort(rows)))

        return self._parts.get("category names", find)

    def categories_at(self, name: str, rows: np.ndarray) -> np.ndarray:
        """[row] the values of a column that tells texts apart, blank where there is none."""
        if not self.is_large:
            return self.categories[name][rows]
        codes, names = self.codes(name)
        return np.array([*names, ""], dtype=object)[codes[rows]]

    def codes(self, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """[text] which of some names each text has in a column, -1 for none; and the names."""
        return self._parts.get(("codes", name), lambda: self.store.label_codes(self.corpus, name))

    def sizes(self, name: str) -> np.ndarray:
        """[name] texts that have each of the names of `codes`."""

        def count() -> np.ndarray:
            codes, names = self.codes(name)
            return np.bincount(codes[codes >= 0], minlength=len(names))

        return self._parts.get(("sizes", name), count)

    def ends(self, name: str) -> tuple[float, float] | None:
        """The lowest and the highest of a column of numbers; None where there is none."""

        def find() -> tuple[float, float] | None:
            values = self.labels(name)
            finite = values[np.isfinite(values)]
            return (float(finite.min()), float(finite.max())) if len(finite) else None

        return self._parts.get(("ends", name), find)

    def is_whole(self, name: str) -> bool:
        """Whether all of a column of numbers are whole ones."""

        def look() -> bool:
            values = self.labels(name)
            return bool((values[np.isfinite(values)] % 1 == 0).all())

        return self._parts.get(("is whole", name), look)

    def prepare(self) -> None:
        """Read what a first visit of a large corpus asks for: it is there when it is needed."""
        with suppress(NeuralvizError):  # whoever needs it meets the error
            for name in self.category_names:
                self.sizes(name)
            for name in self.numbers:
                self.ends(name)

    def _find_categories(self, rows: np.ndarray | None) -> dict[str, np.ndarray]:
        """By name, the values of some rows, or of all."""
        found = {}
        for column in self.corpus.columns:
            if column.name.strip().lower() in ID_COLUMNS:
                continue
            if rows is None:
                values = self.labels(column.name)
            else:
                values = self.store.labels(self.corpus, column.name, rows)
            if column.kind == "number":
                finite = values[np.isfinite(values)]
                n = len(np.unique(finite))
                if n > FEW_NUMBERS or (finite % 1 != 0).any() or len(finite) < TEXTS_A_NUMBER * n:
                    continue
                values = np.array([f"{v:.0f}" if np.isfinite(v) else "" for v in values])
            n = len(set(values) - {""})
            if 1 < n <= min(MOST_CATEGORIES, max(2, len(values) // TEXTS_A_LABEL)):
                found[column.name] = values
        return found

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(column.name for column in self.corpus.columns if column.kind == "number")


@dataclass(frozen=True, eq=False)
class OpenMap:
    """A kept map in memory; what is made of it is made when it is first asked for.

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
        """Whether its corpus is: see `OpenCorpus`."""
        return self.corpus.n_texts > settings.MOST_WHOLE

    @property
    def grid(self) -> PointGrid:
        """The points by where they lie, of a map in two dimensions."""
        return self._parts.get("grid", lambda: PointGrid.of(self.coordinates))

    @property
    def by_cluster(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers by cluster, the largest first; and where each cluster begins among them.

        Texts in no cluster come last.
        """

        def group() -> tuple[np.ndarray, np.ndarray]:
            labels, n = self.clusters.labels, self.clusters.n
            return grouped(np.where(labels < 0, np.int32(n), labels), n + 1)

        return self._parts.get("by cluster", group)

    def rows_of(self, cluster: int) -> np.ndarray:
        """Rows of the texts in a cluster."""
        rows, starts = self.by_cluster
        return rows[starts[cluster] : starts[cluster + 1]]

    @property
    def cluster_sizes(self) -> np.ndarray:
        """[cluster] texts."""
        return np.diff(self.by_cluster[1])[:-1]

    def view(self, name: object, make: Callable[[], T]) -> T:
        """What is drawn of a large map, made when it is first asked for; the last few are held."""
        return self._views.get(name, make)

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours of every text in the space that was projected; not of a large map."""
        return self._parts.get("neighbours", lambda: KeptMaps(self.store).neighbours(self.kept))

    def near(self, row: int, k: int) -> Neighbours:
        """The ``k`` nearest texts of one text; of a large map by its index, a few may be missed."""
        if not self.is_large:
            of_all = self.neighbours.first(k)
            one = slice(row, row + 1)
            return Neighbours(of_all.indices[one], of_all.distances[one], of_all.metric)
        rows = np.array([row])
        return self._near.get(
            (row, k), lambda: neighbours_of_rows(self.store, self.corpus, self.kept, rows, k)
        )

    def sampled(self, found: SampledNear | None) -> SampledNear | None:
        """The neighbours of some texts of a large map: those that were found before, or just now.

        Args:
            found: what was found just now, if anything was.
        """
        if found is not None:
            return self._parts.get("sampled", lambda: found)
        return self._parts.known("sampled")

    @property
    def neighbours_on_map(self) -> Neighbours:
        """The neighbours of every text on the map itself; not of a large map."""
        return self._parts.get(
            "neighbours on map",
            lambda: neighbours_of_points(self.coordinates, settings.SCORED_NEIGHBOURS),
        )

    @property
    def embedder(self) -> KeptEmbedder:
        """Who made the vectors.

        Raises:
            StoreError: the vectors are gone.
        """
        return self._parts.get("embedder", self._find_embedder)

    def _find_embedder(self) -> KeptEmbedder:
        for embedder in self.store.vectors.embedders():
            if embedder.id == self.kept.embedder:
                return embedder
        raise StoreError("The embeddings of this map were deleted. Make the map again.")

    @property
    def spec(self) -> EmbedderSpec:
        """How to make the embedder again."""
        return self._parts.get("spec", lambda: EmbedderSpec.from_json(self.embedder.spec))

    @property
    def label(self) -> str:
        """Name of the method, with what sets it apart from a namesake on the page."""
        return self.name or method_labels([self.spec])[0]

    @property
    def axes(self) -> tuple[str, ...] | None:
        """Names of the axes, where they mean something."""
        return self._parts.get("axes", self._name_axes)

    def _name_axes(self) -> tuple[str, ...] | None:
        if self.kept.settings.reducer != "pca":
            return None
        shares = KeptMaps(self.store).fitted(self.kept)["explained_variance_ratio"]
        return tuple(f"component {i} ({share:.0%})" for i, share in enumerate(shares, 1))

    @property
    def losses(self) -> np.ndarray:
        """[text, 2] the first and the last loss, NaN where nothing was learnt."""

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
                every = (self.rows_of(one) for one in range(clusters.n))
                some = [rows[:: 1 + len(rows) // CENTRE] for rows in every]
                labels = np.repeat(np.arange(clusters.n), list(map(len, some)))
                points = points[np.concatenate(some)] if some else points[:0]
                clusters = replace(clusters, labels=labels)
            return tuple(zip(names, cluster_centres(points, clusters), strict=True))

        return self._parts.get("clusters named", find)

    def colour(self, name: str, make: Callable[[], PointColour]) -> PointColour:
        """The colours of a name, made when they are first asked for; the last few are held."""
        return self._colours.get(name, make)


@st.cache_resource(max_entries=4, show_spinner=False)
def _open_corpus(folder: Path, corpus_id: str) -> OpenCorpus:
    store = CorpusStore(folder)
    found = OpenCorpus(store, store.corpus(corpus_id))
    if found.is_large and is_served():  # while its points are read
        threading.Thread(target=found.prepare, daemon=True).start()
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def _open_map(folder: Path, corpus_id: str, map_id: str) -> OpenMap:
    store = CorpusStore(folder)
    corpus = store.corpus(corpus_id)
    kept = next((one for one in KeptMaps(store).of(corpus) if one.id == map_id), None)
    if kept is None:
        raise StoreError("This map was deleted in the meantime. Make it again.")
    found = OpenMap(store, corpus, kept)
    _ = found.coordinates  # read now, while it is there
    return found


def open_corpus(corpus: Corpus) -> OpenCorpus:
    """A corpus to look into."""
    return _open_corpus(CorpusStore().folder, corpus.id)


def open_map(corpus: Corpus, kept: KeptMap) -> OpenMap:
    """A map to look at.

    Raises:
        StoreError: it is gone.
    """
    return _open_map(CorpusStore().folder, corpus.id, kept.id)


def open_maps(corpus: Corpus, kept: Sequence[KeptMap]) -> list[OpenMap]:
    """Maps to look at beside each other: no two methods have the same name.

    Raises:
        StoreError: one is gone.
    """
    found = [open_map(corpus, one) for one in kept]
    names = labels_by_spec(one.spec for one in found)
    return [replace(one, name=names[one.spec]) for one in found]


@dataclass(frozen=True)
class Saved:
    """What is kept of a choice of settings, found without loading a model.

    Attributes:
        map: the map, if there is one; where no model is in memory to compare with, the last one.
        is_outdated: whether there is only a map by a model that has changed since.
        may_be_outdated: whether the map is by a model in a folder, which may have changed since:
            that is not known before it is loaded. Of an encoder that was trained here it is known.
        embedders: those whose vectors a map is made of, the oldest first.
    """

    map: KeptMap | None
    is_outdated: bool
    may_be_outdated: bool
    embedders: tuple[KeptEmbedder, ...]


def _is_older(kept: KeptMap | None, since: float) -> bool:
    """Whether a map was made before a time, in seconds since 1970."""
    return kept is not None and datetime.fromisoformat(kept.created).timestamp() < since


def find_saved(corpus: Corpus, choice: MapChoice) -> Saved:
    """What is kept of a choice."""
    store, wanted = CorpusStore(), choice.spec.to_json()
    by_name = [one for one in store.vectors.embedders() if one.spec == wanted]
    maps = {one: KeptMaps(store).find(corpus, one, choice.settings) for one in by_name}
    try:
        ids = embedder_ids(make_embedder(choice.spec, HELD))
    except (NotHeldError, NeuralvizError):  # or this method is not for this model
        models = models_now([choice.spec])
        trained = [one for model in models if (one := trained_encoder(model.id)) is not None]
        since = max((one.changed() for one in trained), default=0.0)
        ids = tuple(one.id for one in by_name if not _is_older(maps[one], since))
        is_folder = sum(one.files is not None for one in models) > len(trained)
    else:
        is_folder = False
    embedders = tuple(one for one in by_name if one.id in ids)
    found = next((kept for one in reversed(embedders) if (kept := maps[one])), None)
    return Saved(
        found,
        is_outdated=found is None and any(maps.values()),
        may_be_outdated=found is not None and is_folder,
        embedders=embedders,
    )


def n_embedded(corpus: Corpus, embedders: Sequence[KeptEmbedder]) -> int:
    """Different texts of a corpus that have a vector by one of these already."""
    store = CorpusStore()
    version = store.vectors.version
    return max((_count(store.folder, corpus.id, one, version(one)) for one in embedders), default=0)


@st.cache_data(max_entries=64, show_spinner=False)
def _count(folder: Path, corpus_id: str, embedder: KeptEmbedder, version: int) -> int:
    """Different texts of a corpus that have a vector; counted anew when the vectors change."""
    store = CorpusStore(folder)
    keys = np.unique(store.keys(store.corpus(corpus_id)))
    return int(store.vectors.has(embedder, keys).sum())


def other_maps(corpus: Corpus, shown: Sequence[OpenMap]) -> tuple[OpenMap, ...]:
    """For every method that is not shown, and by which the corpus was put on a map, a map."""
    have = {one.kept.embedder for one in shown}
    known = {one.id for one in CorpusStore().vectors.embedders() if one.spec}
    found: dict[str, KeptMap] = {}
    for kept in KeptMaps(CorpusStore()).of(corpus):
        if kept.embedder in known - have:
            found.setdefault(kept.embedder, kept)
    return tuple(open_map(corpus, kept) for kept in found.values())
