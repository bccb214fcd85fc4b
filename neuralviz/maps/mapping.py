"""From the kept vectors of a corpus to a kept map, and new vectors on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neuralviz.errors import Stopped, TextError, never
from neuralviz.maps.asking import find_embedder
from neuralviz.maps.clusters import CLUSTER_WORDS, find_clusters, name_clusters
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.large import Fitting, make_large_map
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.projecting import place, project
from neuralviz.maps.projection import ProjectionEvent
from neuralviz.maps.searching import nearest_in_corpus
from neuralviz.maps.settings import FEWEST_TEXTS

if TYPE_CHECKING:
    import numpy as np

    from neuralviz.errors import ShouldStop
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.projection import Projection
    from neuralviz.maps.settings import ProjectionSettings
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder


DEFAULT = Fitting()


def check_enough_texts(corpus: Corpus) -> None:
    """Find out before a corpus is embedded whether there can be a map of it.

    Raises:
        TextError: fewer than 5 texts differ.
    """
    if corpus.n_distinct < FEWEST_TEXTS:
        raise TextError(
            f"A map needs at least {FEWEST_TEXTS} different texts; “{corpus.name}” has "
            f"{corpus.n_distinct}."
        )


def make_map(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    *,
    on_progress: Callable[[ProjectionEvent], None] = lambda event: None,
    should_stop: ShouldStop = never,
    fitting: Fitting = DEFAULT,
) -> KeptMap:
    """The kept map of a corpus by an embedder with some settings; made when there is none.

    Of more than 200,000 texts, the map is fitted to a random sample of so many, which the seed
    decides, and the others are placed on it, block by block. Only the vectors of the sample are in
    memory then.

    Args:
        store: that keeps the corpus, its vectors and the map.
        corpus: all of it embedded.
        embedder: whose vectors are projected.
        settings: of the map.
        on_progress, should_stop: as of `project`; the stage ``clusters`` comes last, and before it
            ``placing`` where texts are placed. An index that is being made cannot be interrupted.
        fitting: how the map of a large corpus is made.

    Raises:
        TextError, SettingsError, Stopped: as of `project`.
        StoreError: a text is not embedded yet, or the map cannot be kept.
    """
    kept = KeptMaps(store).find(corpus, embedder, settings)
    if kept is not None:
        return kept
    if corpus.n_texts > fitting.n_fitted:
        return make_large_map(
            store,
            corpus,
            embedder,
            settings,
            fitting,
            on_progress=on_progress,
            should_stop=should_stop,
        )
    vectors = store.vectors.get(embedder, store.keys(corpus))
    projection = project(vectors, settings, on_progress=on_progress, should_stop=should_stop)
    on_progress(ProjectionEvent("clusters"))
    _raise_if(should_stop)
    clusters = find_clusters(projection.coordinates)
    _raise_if(should_stop)
    words = name_clusters(store.texts(corpus), clusters, CLUSTER_WORDS)
    store.check_kept(corpus)
    _raise_if(should_stop)
    return KeptMaps(store).put(corpus, embedder, projection, clusters, words)


def _raise_if(should_stop: ShouldStop) -> None:
    if should_stop():
        raise Stopped


class Placer:
    """A kept map with its vectors in memory, for placing new ones and finding their neighbours.

    Of a map that was fitted to a sample, only the vectors of the sample are; neighbours come from
    the store.

    Args:
        store: that keeps all of it.
        corpus: on the map.
        kept: the map.

    Raises:
        StoreError: the map or a vector is gone.
    """

    def __init__(self, store: CorpusStore, corpus: Corpus, kept: KeptMap) -> None:
        self.kept = kept
        self.embedder = find_embedder(store, kept)
        self._store, self._corpus = store, corpus
        rows = None if kept.n_fitted is None else KeptMaps(store).sample(kept)
        self.vectors: np.ndarray = store.vectors.get(self.embedder, store.keys(corpus, rows))
        self.projection: Projection = KeptMaps(store).projection(kept)

    def near(self, vectors: np.ndarray, k: int) -> Neighbours:
        """The ``k`` texts of the corpus nearest to each of some [new, dim] vectors."""
        metric = self.projection.settings.metric
        if self.kept.n_fitted is None:
            return nearest(self.vectors, vectors, k, metric)
        return nearest_in_corpus(self._store, self._corpus, self.embedder, vectors, k, metric)

    def land(self, vectors: np.ndarray, *, should_stop: ShouldStop = never) -> np.ndarray:
        """[new, dimensions] where new vectors land; as of `neuralviz.maps.projecting.place`."""
        placed = place(self.vectors, self.projection, vectors, should_stop=should_stop)
        if self.kept.n_fitted is not None and self.projection.settings.reducer != "pca":
            near = self.near(vectors, 1)
            is_there = near.distances[:, 0] == 0
            if is_there.any():
                rows = near.indices[is_there, 0]
                placed[is_there] = KeptMaps(self._store).points_of(self.kept, rows)
        return placed
