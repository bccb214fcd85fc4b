"""Neighbours on a map of a large corpus, asked for when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.neighbours import Neighbours, nearest

if TYPE_CHECKING:
    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Corpus, CorpusStore


def neighbours_of_rows(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, rows: np.ndarray, k: int
) -> Neighbours:
    """The nearest other texts of some texts.

    Args:
        store: that keeps the corpus.
        corpus: on the map.
        kept: the map.
        rows: [row] row numbers of the texts.
        k: neighbours of each.
    """
    embedder = next(one for one in store.vectors.embedders() if one.id == kept.embedder)
    vectors = store.vectors.get(embedder, store.keys(corpus))
    found = nearest(vectors, vectors[rows], k + 1, kept.settings.metric)
    return Neighbours(found.indices[:, 1:], found.distances[:, 1:], found.metric)


def sampled_neighbours(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, k: int, n: int = 1000
) -> tuple[np.ndarray, Neighbours]:
    """Row numbers of ``n`` texts drawn at random, always the same, and their neighbours."""
    some = np.random.default_rng(0).choice(corpus.n_texts, min(n, corpus.n_texts), replace=False)
    rows = np.sort(some)
    return rows, neighbours_of_rows(store, corpus, kept, rows, k)
