"""The texts of a corpus that are nearest to some vectors, found in the store.

Never more than a piece of the vectors is in memory. Through the index of the vectors, where there
is one and the distance is the cosine, a query takes some milliseconds and may miss a few texts;
else all vectors are looked at, and none is missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import SettingsError, ShouldStop, Stopped, never
from neuralviz.maps.distances import (
    all_distances,
    check_metric,
    check_vectors,
    sort_keys,
    split_keys,
)
from neuralviz.maps.neighbours import Neighbours
from neuralviz.store.index import index_of, nearest_keys, rows_of_keys, vectors_of_keys
from neuralviz.store.vectors import KEY_BYTES, not_embedded, vectors_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.index import VectorIndex
    from neuralviz.store.vectors import KeptEmbedder

INDEXED = "cosine"  # the distance that indexes serve
MOST_FETCHED = 4000  # vectors near a query, before all are looked at
MARGIN = 1.3  # times as many as are expected to belong to the corpus
WIDER = 4  # times as many when they were too few
ROWS = 4096  # vectors compared at once
_PREFIX = ">u8"  # the first half of a key tells the texts of a corpus apart from others

KeyDistances = tuple[np.ndarray, np.ndarray]
"""[found] keys of texts, and [found] float64 distances, of one query."""


def nearest_in_corpus(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    queries: ArrayLike,
    k: int,
    metric: str = "cosine",
    *,
    leaving_out: np.ndarray | None = None,
    on_progress: Callable[[int, int], None] = lambda n_done, total: None,
    should_stop: ShouldStop = never,
) -> Neighbours:
    """The ``k`` texts of a corpus nearest to each of some vectors.

    The store has one index for all corpora: of what it finds, only texts of this corpus count, and
    it is asked for more until there are enough.

    Args:
        store: that keeps the corpus and the vectors.
        corpus: all of it embedded.
        embedder: whose vectors they are.
        queries: [query, dim].
        k: texts a query; cut to the number of texts.
        metric: one of ``METRICS``.
        leaving_out: [query] a row for each that does not count: itself.
        on_progress: told how many different texts were looked at, and of how many, where all are.
        should_stop: asked between queries, or pieces of the vectors.

    Returns:
        indices [query, k] are rows of the corpus; of equal texts each counts.

    Raises:
        SettingsError: an unknown metric, ``k`` below 1, or vectors of another length.
        TextError: a query holds something that is no usable number.
        StoreError: the corpus was deleted, or fewer than ``k`` of its texts have a vector.
        Stopped: ``should_stop`` said so.
    """
    search = _search(corpus, embedder, queries, k, metric, leaving_out)
    pending = np.arange(len(search.queries))
    index = find_index(store, embedder, metric)
    if index is not None:
        pending = _search_index(store, corpus, embedder, index, search, should_stop)
    if len(pending):
        pending_queries = search.queries[pending]
        candidates = _search_exactly(
            store, corpus, embedder, pending_queries, k + 1, metric, on_progress, should_stop
        )
        for query, near in zip(pending.tolist(), _rows_of(store, corpus, candidates), strict=True):
            if not search.take(query, near):
                # all that have a vector are near, and they are too few
                raise not_embedded(corpus.n_texts - len(near), corpus.n_texts)
    is_approximate = len(pending) < len(search.queries)
    return Neighbours(search.rows, search.distances, metric, is_approximate)


def nearest_by_index(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    index: VectorIndex,
    queries: ArrayLike,
    k: int,
    *,
    leaving_out: np.ndarray | None = None,
) -> Neighbours | None:
    """As of `nearest_in_corpus`, by `find_index` alone; None where it finds too little.

    Args, Raises:
        As of `nearest_in_corpus`.
    """
    search = _search(corpus, embedder, queries, k, INDEXED, leaving_out)
    if len(_search_index(store, corpus, embedder, index, search, never)):
        return None
    return Neighbours(search.rows, search.distances, INDEXED, is_approximate=True)


def find_index(store: CorpusStore, embedder: KeptEmbedder, metric: str) -> VectorIndex | None:
    """The index of the vectors, where there is one and it serves this distance."""
    return index_of(store.database, embedder) if metric == INDEXED else None


@dataclass(frozen=True, eq=False)
class _Search:
    """Queries, and arrays for their results.

    Attributes:
        queries: [query, dim].
        itself: [query] a row that does not count, or -1.
        rows, distances: [query, k].
    """

    queries: np.ndarray
    itself: np.ndarray
    rows: np.ndarray
    distances: np.ndarray

    def take(self, query: int, near: np.ndarray) -> bool:
        """Fill in the first of what is near a query, sorted; whether there is enough of it."""
        numbers, near_distances = split_keys(near)
        is_other = numbers != self.itself[query]
        k = self.rows.shape[1]
        if is_other.sum() < k:
            return False
        self.rows[query] = numbers[is_other][:k]
        self.distances[query] = near_distances[is_other][:k]
        return True


def _search(
    corpus: Corpus,
    embedder: KeptEmbedder,
    queries: ArrayLike,
    k: int,
    metric: str,
    leaving_out: np.ndarray | None,
) -> _Search:
    checked = check_vectors(queries, "query")
    check_metric(metric)
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")
    if checked.shape[1] != embedder.dim:
        raise SettingsError(
            f"The new vectors have {checked.shape[1]:,} values, those of the corpus "
            f"{embedder.dim:,}. Embed both with the same method."
        )
    itself = np.full(len(checked), -1) if leaving_out is None else np.asarray(leaving_out)
    k = min(int(k), corpus.n_texts - (leaving_out is not None))
    rows = np.zeros((len(checked), k), dtype=np.int32)
    return _Search(checked, itself, rows, np.zeros((len(checked), k), dtype=np.float32))


def _search_index(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    index: VectorIndex,
    search: _Search,
    should_stop: ShouldStop,
) -> np.ndarray:
    """Fill in what the index finds; the numbers of the queries for which that is too little."""
    has_direction = np.abs(search.queries).max(axis=1, initial=0) > 0
    pending = np.flatnonzero(has_direction)
    with store.database.reading():
        table = store.database.open(vectors_table(embedder))
        n_vectors = table.count_rows()
    k = search.rows.shape[1]
    share = min(corpus.n_distinct / max(n_vectors, 1), 1.0)
    n = k + 1 if share == 1 else math.ceil(MARGIN * (k + 1) / share)
    while len(pending) and n <= MOST_FETCHED:
        candidates = []
        for query in pending.tolist():
            if should_stop():
                raise Stopped
            with store.database.reading():
                keys, vectors = nearest_keys(table, index, search.queries[query], n)
            vector = search.queries[query : query + 1].astype(np.float64)
            candidates.append((keys, all_distances(vector, vectors.astype(np.float64), INDEXED)[0]))
        near = zip(pending.tolist(), _rows_of(store, corpus, candidates), strict=True)
        pending = pending[~np.array([search.take(query, rows) for query, rows in near])]
        n *= WIDER
    return np.concatenate([np.flatnonzero(~has_direction), pending])


def _rows_of(
    store: CorpusStore, corpus: Corpus, candidates: list[KeyDistances]
) -> list[np.ndarray]:
    """By query, sorted `sort_keys` of all rows of the corpus that have the keys that were found."""
    different = np.unique(np.concatenate([keys for keys, _ in candidates]))
    places, rows = rows_of_keys(store, corpus, different)
    ends = np.searchsorted(places, np.arange(len(different) + 1))
    near = []
    for keys, distances in candidates:
        positions = np.searchsorted(different, keys)
        counts = ends[positions + 1] - ends[positions]
        firsts = np.repeat(ends[positions], counts)
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        key_distances = np.repeat(distances, counts)[None]
        near.append(np.sort(sort_keys(key_distances, rows[firsts + steps])[0]))
    return near


def _search_exactly(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    queries: np.ndarray,
    n: int,
    metric: str,
    on_progress: Callable[[int, int], None],
    should_stop: ShouldStop,
) -> list[KeyDistances]:
    """By query, the ``n`` nearest different texts of a corpus, from a look at all of them."""
    exact_queries = queries.astype(np.float64)
    corpus_keys = np.unique(store.keys(corpus))
    prefixes = _prefixes(corpus_keys)
    best = np.full((len(queries), 0), np.inf)
    keys = np.zeros((len(queries), 0), dtype=f"S{KEY_BYTES}")
    n_seen = 0
    on_progress(n_seen, len(corpus_keys))
    for stored, vectors in vectors_of_keys(store.database, embedder, corpus_keys):
        for start in range(0, len(stored), ROWS):
            if should_stop():
                raise Stopped
            block_keys = stored[start : start + ROWS]
            positions = np.minimum(
                np.searchsorted(prefixes, _prefixes(block_keys)), len(prefixes) - 1
            )
            is_mine = prefixes[positions] == _prefixes(block_keys)
            block = vectors[start : start + ROWS][is_mine].astype(np.float64)
            block_distances = all_distances(exact_queries, block, metric)
            best = np.concatenate([best, block_distances], axis=1)
            keys = np.concatenate(
                [keys, np.broadcast_to(block_keys[is_mine], block_distances.shape)], axis=1
            )
            if best.shape[1] > n:
                first = np.argpartition(best, n - 1, axis=1)[:, :n]
                best = np.take_along_axis(best, first, axis=1)
                keys = np.take_along_axis(keys, first, axis=1)
            n_seen += len(block)
            on_progress(n_seen, len(corpus_keys))
    return list(zip(keys, best, strict=True))


def _prefixes(keys: np.ndarray) -> np.ndarray:
    """[key] the first half of each, in the order of the keys."""
    return np.ascontiguousarray(keys).view(_PREFIX)[::2].astype(np.uint64)
