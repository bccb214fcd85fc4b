"""From the kept vectors of a corpus to a kept map, and new vectors on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import Stopped, StoreError, TextError, never
from neuralviz.maps.clusters import find_clusters, name_clusters
from neuralviz.maps.kept import ROWS, KeptMaps
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.placing import (
    BLOCK,
    PlaceBlock,
    distinct_texts,
    drawn_texts,
    place_texts,
    prepared_map,
)
from neuralviz.maps.projecting import place, project
from neuralviz.maps.projection import Projection, ProjectionEvent
from neuralviz.maps.settings import FEWEST_TEXTS, FITTED
from neuralviz.store.index import build_index, index_texts
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.placing import Mapper
    from neuralviz.maps.settings import ProjectionSettings
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.index import VectorIndex
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
    most_fitted: int = FITTED,
    mapper: Mapper | None = None,
    block: int = BLOCK,
    on_progress: Callable[[ProjectionEvent], None] = lambda event: None,
    should_stop: ShouldStop = never,
) -> KeptMap:
    """The kept map of a corpus by an embedder with some settings; made when there is none.

    Args:
        store: that keeps the corpus, its vectors and the map.
        corpus: all of it embedded.
        embedder: whose vectors are projected.
        settings: of the map.
        most_fitted: texts; of a corpus with more, a random sample of so many different texts is
            projected, and the others are placed on it block by block: no more of their vectors
            are in memory at a time. Equal texts have one point then.
        mapper, block: of the placing, as of `neuralviz.maps.placing.place_texts`.
        on_progress, should_stop: as of `project`; the stage ``clusters`` comes last.

    Raises:
        TextError, SettingsError, Stopped: as of `project`.
        StoreError: a text is not embedded yet, or the map cannot be kept.
    """
    kept = KeptMaps(store).find(corpus, embedder, settings)
    if kept is not None:
        return kept
    index: VectorIndex | None = None
    rows: np.ndarray | None = None
    if corpus.n_texts > most_fitted:
        on_progress(ProjectionEvent("index"))
        index = build_index(store.database, embedder)
        index_texts(store, corpus)
        _raise_if(should_stop)
        projection = _on_a_sample(
            store, corpus, embedder, settings, most_fitted,
            partial(place_texts, mapper=mapper, block=block), on_progress, should_stop,
        )  # fmt: skip
        rows = projection.fitted[ROWS]
    else:
        vectors = store.vectors.get(embedder, store.keys(corpus))
        projection = project(vectors, settings, on_progress=on_progress, should_stop=should_stop)
    on_progress(ProjectionEvent("clusters"))
    _raise_if(should_stop)
    clusters = find_clusters(projection.coordinates)
    _raise_if(should_stop)
    named = clusters if rows is None else replace(clusters, labels=clusters.labels[rows])
    words = name_clusters(store.texts(corpus, rows), named, CLUSTER_WORDS)
    store.check_kept(corpus)
    _raise_if(should_stop)
    recall = None if index is None else index.recall
    return KeptMaps(store).put(corpus, embedder, projection, clusters, words, recall=recall)


def _on_a_sample(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    n: int,
    place_others: Callable[..., np.ndarray],
    on_progress: Callable[[ProjectionEvent], None],
    should_stop: ShouldStop,
) -> Projection:
    """A map that is fitted to ``n`` different texts, with all others on it."""
    keys = store.keys(corpus)
    firsts, of = distinct_texts(keys)
    keys = keys[firsts]
    drawn = drawn_texts(len(keys), n)
    vectors = store.vectors.get(embedder, keys[drawn])
    made = project(vectors, settings, on_progress=on_progress, should_stop=should_stop)
    points = np.empty((len(keys), settings.dimensions), dtype=np.float32)
    points[drawn] = made.coordinates
    others = np.ones(len(keys), dtype=bool)
    others[drawn] = False
    if others.any():
        with prepared_map(store.folder, vectors, made) as prepared:
            place = PlaceBlock(store.folder, embedder, prepared)
            points[others] = place_others(
                place, keys[others], on_progress=on_progress, should_stop=should_stop
            )
    note = (
        f"The map was fitted on {len(drawn):,} of {many(corpus.n_texts, 'text')}; the others were "
        "placed on it."
    )
    fitted = {**made.fitted, ROWS: firsts[drawn].astype(np.int32)}
    return Projection(points[of], settings, None, (*made.notes, note), MappingProxyType(fitted))


def _raise_if(should_stop: ShouldStop) -> None:
    if should_stop():
        raise Stopped


class Placer:
    """A kept map with its vectors in memory, for placing new ones and finding their neighbours.

    Of a map that was fitted to a sample, the vectors and the points of the sample alone are.

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
        self.rows, self.projection = KeptMaps(store).sample(kept)
        rows = None if kept.n_fitted is None else self.rows
        self.vectors: np.ndarray = store.vectors.get(self.embedder, store.keys(corpus, rows))

    def near(self, vectors: np.ndarray, k: int) -> Neighbours:
        """The ``k`` texts of the corpus nearest to each of some [new, dim] vectors."""
        if self.kept.n_fitted is not None:
            # of the sample alone, until `neuralviz.maps.nearby.nearest_in_corpus` is there
            found = nearest(self.vectors, vectors, k, self.projection.settings.metric)
            return replace(found, indices=self.rows[found.indices])
        return nearest(self.vectors, vectors, k, self.projection.settings.metric)

    def land(self, vectors: np.ndarray, *, should_stop: ShouldStop = never) -> np.ndarray:
        """[new, dimensions] where new vectors land; as of `neuralviz.maps.projecting.place`."""
        return place(self.vectors, self.projection, vectors, should_stop=should_stop)
