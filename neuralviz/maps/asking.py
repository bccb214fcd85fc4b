"""The nearest texts of a kept map's texts, whatever the size of its corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import SettingsError, ShouldStop, StoreError, never
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.searching import find_index, nearest_by_index, nearest_in_corpus
from neuralviz.maps.settings import SEED

if TYPE_CHECKING:
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

SAMPLED = 1000  # texts by which a large corpus is scored


def neighbours_of_rows(
    store: CorpusStore,
    corpus: Corpus,
    kept: KeptMap,
    rows: np.ndarray,
    k: int,
    *,
    on_progress: Callable[[int, int], None] = lambda n_done, total: None,
    should_stop: ShouldStop = never,
) -> Neighbours:
    """The texts nearest to some texts of a map, by the vectors.

    They are those that were kept with the map, or, where it was fitted to a sample, come from the
    index of the vectors: then they are approximate.

    Args:
        store: that keeps all of it.
        corpus: on the map.
        kept: the map.
        rows: of the texts, in any order.
        k: neighbours of each, fewer where so many are not kept or there are not so many texts.
        on_progress: as of `neuralviz.maps.searching.nearest_in_corpus`.
        should_stop: asked now and then where they are not kept.

    Returns:
        [row, k] rows of the corpus, never the text itself.

    Raises:
        SettingsError: ``k`` is below 1.
        StoreError: the map, the corpus or a vector is gone.
        Stopped: ``should_stop`` said so.
    """
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")
    rows = np.asarray(rows, dtype=np.int64)
    if kept.n_fitted is None:
        return KeptMaps(store).neighbours_of(kept, rows).first(k)
    embedder = find_embedder(store, kept)
    vectors = store.vectors.get(embedder, store.keys(corpus, rows))
    return nearest_in_corpus(
        store,
        corpus,
        embedder,
        vectors,
        k,
        kept.settings.metric,
        leaving_out=rows,
        on_progress=on_progress,
        should_stop=should_stop,
    )


def neighbours_at_once(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, row: int, k: int
) -> Neighbours | None:
    """`neighbours_of_rows` of one text, if that takes a moment.

    Returns:
        [1, k] rows of the corpus; None where all vectors would have to be looked at: there is no
        index of them, or it does not serve the distance of the map, or finds too little.

    Raises:
        As `neighbours_of_rows`.
    """
    rows = np.array([row], dtype=np.int64)
    if kept.n_fitted is None:
        return neighbours_of_rows(store, corpus, kept, rows, k)
    embedder = find_embedder(store, kept)
    index = find_index(store, embedder, kept.settings.metric)
    if index is None:
        return None
    vectors = store.vectors.get(embedder, store.keys(corpus, rows))
    return nearest_by_index(store, corpus, embedder, index, vectors, k, leaving_out=rows)


def find_embedder(store: CorpusStore, kept: KeptMap) -> KeptEmbedder:
    """The embedder of a map.

    Raises:
        StoreError: its vectors were deleted.
    """
    embedders = {embedder.id: embedder for embedder in store.vectors.embedders()}
    if kept.embedder not in embedders:
        raise StoreError("The embeddings of this map were deleted. Embed the corpus again.")
    return embedders[kept.embedder]


def sampled_rows(corpus: Corpus, n: int = SAMPLED) -> np.ndarray:
    """[n] rows of a random sample of the texts, rising: the same for every map of a corpus.

    Args:
        corpus: whose.
        n: texts of the sample; all where there are not so many.
    """
    return np.sort(
        np.random.default_rng(SEED).choice(corpus.n_texts, min(n, corpus.n_texts), False)
    )
