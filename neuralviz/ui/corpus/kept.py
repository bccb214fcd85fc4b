"""What the page holds of kept corpora in memory, shared by all sessions: none of it changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.embedders import EmbedderSpec
from neuralviz.embedders.labels import method_labels
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import Placer
from neuralviz.maps.neighbours import neighbours_of_points
from neuralviz.maps.settings import SCORED_NEIGHBOURS
from neuralviz.reading.texts import ID_COLUMNS
from neuralviz.store.corpora import CorpusStore

if TYPE_CHECKING:
    from neuralviz.maps.clusters import Clusters
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.settings import ProjectionSettings
    from neuralviz.plots.point_colours import PointColour
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

MOST_CATEGORIES = 1000  # different labels of a column that texts are told apart by
TEXTS_A_LABEL = 3  # on average, at least; names and ids have fewer
TEXTS_A_NUMBER = 5
FEW_NUMBERS = 12  # different whole numbers that may as well be names, as in a column of classes


@dataclass(frozen=True)
class MapChoice:
    """A map as asked for: how texts are embedded, and how the vectors are projected."""

    spec: EmbedderSpec
    settings: ProjectionSettings


class OpenCorpus:
    """A corpus in memory; its parts are read when they are first asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._labels: dict[str, np.ndarray] = {}

    @cached_property
    def texts(self) -> list[str]:
        """All texts."""
        return CorpusStore().texts(self.corpus)

    @cached_property
    def folded(self) -> list[str]:
        """All texts in lower case, for searching."""
        return [text.casefold() for text in self.texts]

    @cached_property
    def ids(self) -> list[str]:
        """All ids."""
        return CorpusStore().ids(self.corpus)

    @cached_property
    def lengths(self) -> np.ndarray:
        """[text] characters."""
        return np.array([len(text) for text in self.texts])

    def labels(self, name: str) -> np.ndarray:
        """[text] a column of labels: strings or numbers."""
        if name not in self._labels:
            self._labels[name] = CorpusStore().labels(self.corpus, name)
        return self._labels[name]

    @cached_property
    def categories(self) -> dict[str, np.ndarray]:
        """Columns that tell texts apart, by name: [text] strings, blank where there is none."""
        found = {}
        for column in self.corpus.columns:
            if column.name.strip().lower() in ID_COLUMNS:
                continue
            values = self.labels(column.name)
            if column.kind == "number":
                known = values[np.isfinite(values)]
                n = len(np.unique(known))
                if n > FEW_NUMBERS or (known % 1 != 0).any() or len(known) < TEXTS_A_NUMBER * n:
                    continue
                values = np.array([f"{v:.0f}" if np.isfinite(v) else "" for v in values])
            n = len(set(values) - {""})
            if 1 < n <= min(MOST_CATEGORIES, max(2, len(values) // TEXTS_A_LABEL)):
                found[column.name] = values
        return found

    @cached_property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers."""
        return [column.name for column in self.corpus.columns if column.kind == "number"]


class OpenMap:
    """A kept map in memory."""

    def __init__(self, corpus: Corpus, kept: KeptMap) -> None:
        self.corpus = corpus
        self.kept = kept
        self.coordinates: np.ndarray
        self.clusters: Clusters
        self.coordinates, self.clusters = KeptMaps(CorpusStore()).points(kept)
        self.colours: dict[str, PointColour] = {}

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbours of every text in the space that was projected."""
        return KeptMaps(CorpusStore()).neighbours(self.kept)

    @cached_property
    def embedder(self) -> KeptEmbedder:
        """Who made the vectors."""
        for embedder in CorpusStore().vectors.embedders():
            if embedder.id == self.kept.embedder:
                return embedder
        raise StoreError("The vectors of this map are not there any more; make it again.")

    @cached_property
    def spec(self) -> EmbedderSpec:
        """How to make the embedder again."""
        return EmbedderSpec.from_json(self.embedder.spec)

    @property
    def placer(self) -> Placer:
        """The vectors, for new sentences."""
        return _placer(str(CorpusStore().folder), self)

    @cached_property
    def axes(self) -> tuple[str, ...] | None:
        """Names of the axes, where they mean something."""
        if self.kept.settings.reducer != "pca":
            return None
        shares = KeptMaps(CorpusStore()).fitted(self.kept)["explained_variance_ratio"]
        return tuple(f"component {i} ({share:.0%})" for i, share in enumerate(shares, 1))

    @cached_property
    def neighbours_on_map(self) -> Neighbours:
        """The neighbours of every text on the map itself."""
        return neighbours_of_points(self.coordinates, SCORED_NEIGHBOURS)

    @property
    def label(self) -> str:
        """Name of the method."""
        return method_labels([self.spec])[0]

    @cached_property
    def losses(self) -> np.ndarray:
        """[text, 2] the first and the last loss, NaN where nothing was learnt."""
        store = CorpusStore()
        return store.vectors.losses(self.embedder, store.keys(self.corpus))


@st.cache_resource(max_entries=4, show_spinner=False)
def _open_corpus(folder: str, corpus_id: str) -> OpenCorpus:
    return OpenCorpus(CorpusStore().corpus(corpus_id))


@st.cache_resource(max_entries=2, show_spinner=False, hash_funcs={OpenMap: lambda one: one.kept.id})
def _placer(folder: str, shown: OpenMap) -> Placer:
    """All vectors of a map: few are held at a time."""
    return Placer(CorpusStore(), shown.corpus, shown.kept)


@st.cache_resource(max_entries=8, show_spinner=False)
def _open_map(folder: str, corpus_id: str, map_id: str) -> OpenMap:
    store = CorpusStore()
    corpus = store.corpus(corpus_id)
    kept = next((one for one in KeptMaps(store).of(corpus) if one.id == map_id), None)
    if kept is None:
        raise StoreError("This map is not there any more; it was deleted meanwhile.")
    return OpenMap(corpus, kept)


def open_corpus(corpus: Corpus) -> OpenCorpus:
    """A corpus to look into."""
    return _open_corpus(str(CorpusStore().folder), corpus.id)


def open_map(corpus: Corpus, kept: KeptMap) -> OpenMap:
    """A map to look at.

    Raises:
        StoreError: it is gone.
    """
    return _open_map(str(CorpusStore().folder), corpus.id, kept.id)


def find_map(corpus: Corpus, choice: MapChoice) -> KeptMap | None:
    """The kept map of a choice, without loading a model: by what was asked for when it was made.

    The last one, where the model behind a name has changed since.
    """
    store = CorpusStore()
    wanted = choice.spec.to_json()
    for embedder in reversed(store.vectors.embedders()):
        if embedder.spec == wanted:
            kept = KeptMaps(store).find(corpus, embedder, choice.settings)
            if kept is not None:
                return kept
    return None


def n_embedded(corpus: Corpus, choice: MapChoice) -> int:
    """Different texts of a corpus that have a vector by a choice's method already."""
    store = CorpusStore()
    wanted = choice.spec.to_json()
    keys = np.unique(store.keys(corpus))
    known = [one for one in store.vectors.embedders() if one.spec == wanted]
    return max((int(store.vectors.has(one, keys).sum()) for one in known), default=0)


def maps_by_method(corpus: Corpus) -> dict[str, KeptMap]:
    """For every method by which the corpus was put on a map, one of its maps."""
    store = CorpusStore()
    specs = {embedder.id: embedder.spec for embedder in store.vectors.embedders()}
    found: dict[str, KeptMap] = {}
    for kept in KeptMaps(store).of(corpus):
        if specs.get(kept.embedder):
            found.setdefault(kept.embedder, kept)
    try:
        labels = method_labels([EmbedderSpec.from_json(specs[one]) for one in found])
    except NeuralvizError:
        labels = tuple(found)
    return dict(zip(labels, found.values(), strict=True))
