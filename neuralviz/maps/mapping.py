"""From the kept vectors of a corpus to a kept map, and new vectors on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neuralviz.errors import Stopped, StoreError, TextError, never
from neuralviz.maps.clusters import find_clusters, name_clusters
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.projecting import place, project
from neuralviz.maps.projection import ProjectionEvent
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

CLUSTER_WORDS = 4


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
) -> KeptMap:
    """The kept map of a corpus by an embedder with some settings; made when there is none.

    Args:
        store: that keeps the corpus, its vectors and the map.
        corpus: all of it embedded.
        embedder: whose vectors are projected.
        settings: of the map.
        on_progress, should_stop: as of `project`; the stage ``clusters`` comes last.

    Raises:
        TextError, SettingsError, Stopped: as of `project`.
        StoreError: a text is not embedded yet, or the map cannot be kept.
    """
    kept = KeptMaps(store).find(corpus, embedder, settings)
    if kept is not None:
        return kept
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

    Args:
        store: that keeps all of it.
        corpus: on the map.
        kept: the map.

    Raises:
        StoreError: the map or a vector is gone.
    """

    def __init__(self, store: CorpusStore, corpus: Corpus, kept: KeptMap) -> None:
        embedders = {one.id: one for one in store.vectors.embedders()}
        if kept.embedder not in embedders:
            raise StoreError("The embeddings of this map were deleted. Embed the corpus again.")
        self.kept = kept
        self.embedder = embedders[kept.embedder]
        self.vectors: np.ndarray = store.vectors.get(self.embedder, store.keys(corpus))
        self.projection: Projection = KeptMaps(store).projection(kept)

    def near(self, vectors: np.ndarray, k: int) -> Neighbours:
        """The ``k`` texts of the corpus nearest to each of some [new, dim] vectors."""
        return nearest(self.vectors, vectors, k, self.projection.settings.metric)

    def land(self, vectors: np.ndarray, *, should_stop: ShouldStop = never) -> np.ndarray:
        """[new, dimensions] where new vectors land; as of `neuralviz.maps.projecting.place`."""
        return place(self.vectors, self.projection, vectors, should_stop=should_stop)
