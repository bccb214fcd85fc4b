"""Nearest texts in the store: by the index for cosine, which may miss some, or by a full scan."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import ShouldStop, Stopped, StoreError, never
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import (
    Neighbours,
    all_distances,
    check_queries,
    check_search,
    sort_keys,
    split_keys,
)
from neuralviz.maps.projection import SEED
from neuralviz.store.index import nearest_keys, read_index, rows_of_keys, vectors_of_keys
from neuralviz.store.vectors import KEY_BYTES, match_keys, not_embedded_error, vectors_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

INDEXED = "cosine"  # the metric of the index
MOST_FETCHED = 4000  # candidates per query before a full scan
MARGIN = 1.3  # safety factor on the expected number of candidates
WIDER = 4  # growth factor after too few results
SAMPLED = 1000  # sampled texts for scoring a large corpus

KeyDistances = tuple[np.ndarray, np.ndarray]  # [found] text keys and float64 distances


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
    """The ``k`` nearest embedded texts of each [query, dim] vector; equal texts all count.

    ``leaving_out`` is [query] one row to exclude; ``on_progress`` gets texts scanned and their
    total. Raises SettingsError for an unknown metric, ``k`` below 1 or a wrong dimension, TextError
    for invalid values, StoreError if the corpus is gone or has fewer than ``k`` texts embedded,
    Stopped.
    """
    search = _Search(store, corpus, embedder, queries, k, metric, leaving_out)
    pending = search.by_index(should_stop)
    if len(pending):
        search.exactly(pending, on_progress, should_stop)
    return Neighbours(*split_keys(search.keys), metric)


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
    """The ``k`` nearest other texts by vector: as saved, or searched for a sampled map."""
    check_search(kept.settings.metric, k)
    if kept.n_fitted is None:
        return KeptMaps(store).neighbours(kept, rows).first(k)
    embedder = find_embedder(store, kept)
    return nearest_in_corpus(
        store,
        corpus,
        embedder,
        store.vectors.get(embedder, store.keys(corpus, rows)),
        k,
        kept.settings.metric,
        leaving_out=rows,
        on_progress=on_progress,
        should_stop=should_stop,
    )


def neighbours_at_once(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, row: int, k: int
) -> Neighbours | None:
    """`neighbours_of_rows` for one text; None if it needs a full scan."""

    def refuse(n_done: int, total: int) -> None:
        raise Stopped

    try:
        return neighbours_of_rows(store, corpus, kept, np.array([row]), k, on_progress=refuse)
    except Stopped:
        return None


def find_embedder(store: CorpusStore, kept: KeptMap) -> KeptEmbedder:
    """The embedder of a map. Raises StoreError if its vectors were deleted."""
    for embedder in store.vectors.embedders():
        if embedder.id == kept.embedder:
            return embedder
    raise StoreError("The embeddings of this map were deleted. Embed the corpus again.")


def sampled_rows(corpus: Corpus) -> np.ndarray:
    """[row] fixed random sample of a corpus's rows, ascending."""
    drawn = np.random.default_rng(SEED).choice(corpus.n_texts, min(SAMPLED, corpus.n_texts), False)
    return np.sort(drawn)


@dataclass(frozen=True, eq=False)
class SampledNeighbours:
    """Some texts of a large corpus, always the same, and what is near them."""

    rows: np.ndarray  # [text] row numbers
    near: Neighbours  # by the vectors, among all texts; an index may miss a few


class _Search:
    def __init__(
        self,
        store: CorpusStore,
        corpus: Corpus,
        embedder: KeptEmbedder,
        queries: ArrayLike,
        k: int,
        metric: str,
        leaving_out: np.ndarray | None,
    ) -> None:
        check_search(metric, k)
        self.queries = check_queries(queries, embedder.dim)
        self._store, self._corpus, self._embedder = store, corpus, embedder
        self._metric = metric
        n, self._k = len(self.queries), min(int(k), corpus.n_texts - (leaving_out is not None))
        self._itself = np.full(n, -1) if leaving_out is None else np.asarray(leaving_out)
        self.keys = np.zeros((n, self._k), dtype=np.int64)

    def by_index(self, should_stop: ShouldStop) -> np.ndarray:
        """Search the index; returns the queries that need an exact search."""
        store = self._store
        index = read_index(store.database, self._embedder) if self._metric == INDEXED else None
        if index is None:
            return np.arange(len(self.queries))
        has_direction = np.abs(self.queries).max(axis=1, initial=0) > 0
        pending = np.flatnonzero(has_direction)
        with store.database.reading():
            table = store.database.open(vectors_table(self._embedder))
            n_vectors = table.count_rows()
        share = min(self._corpus.n_distinct / max(n_vectors, 1), 1.0)
        n = self._k + 1 if share == 1 else math.ceil(MARGIN * (self._k + 1) / share)
        while len(pending) and n <= MOST_FETCHED:
            candidates = []
            for query in pending.tolist():
                if should_stop():
                    raise Stopped
                with store.database.reading():
                    keys, vectors = nearest_keys(table, index, self.queries[query], n)
                vector = self.queries[query : query + 1].astype(np.float64)
                distances = all_distances(vector, vectors.astype(np.float64), INDEXED)
                candidates.append((keys, distances[0]))
            pending = pending[~np.array(self._fill_in(pending, candidates))]
            n *= WIDER
        return np.concatenate([np.flatnonzero(~has_direction), pending])

    def exactly(
        self, pending: np.ndarray, on_progress: Callable[[int, int], None], should_stop: ShouldStop
    ) -> None:
        queries, n = self.queries[pending].astype(np.float64), self._k + 1
        on_progress(0, self._corpus.n_distinct)
        corpus_keys = np.unique(self._store.keys(self._corpus))
        best = np.full((len(queries), 0), np.inf)
        keys = np.zeros((len(queries), 0), dtype=f"S{KEY_BYTES}")
        n_seen = 0
        for piece_keys, piece in vectors_of_keys(self._store.database, self._embedder, corpus_keys):
            if should_stop():
                raise Stopped
            _, is_mine = match_keys(corpus_keys, piece_keys)
            distances = all_distances(queries, piece[is_mine].astype(np.float64), self._metric)
            best = np.concatenate([best, distances], axis=1)
            some_keys = np.broadcast_to(piece_keys[is_mine], distances.shape)
            keys = np.concatenate([keys, some_keys], axis=1)
            if best.shape[1] > n:
                first = np.argpartition(best, n - 1, axis=1)[:, :n]
                best = np.take_along_axis(best, first, axis=1)
                keys = np.take_along_axis(keys, first, axis=1)
            n_seen += distances.shape[1]
            on_progress(n_seen, len(corpus_keys))
        if not all(self._fill_in(pending, list(zip(keys, best, strict=True)))):
            _, rows = rows_of_keys(self._store, self._corpus, np.unique(keys))
            n_texts = self._corpus.n_texts  # too few texts have a vector
            raise not_embedded_error(n_texts - len(rows), n_texts)

    def _fill_in(self, queries: np.ndarray, candidates: list[KeyDistances]) -> list[bool]:
        """Fill in results; returns whether each query has enough."""
        different = np.unique(np.concatenate([keys for keys, _ in candidates]))
        places, rows = rows_of_keys(self._store, self._corpus, different)
        ends = np.searchsorted(places, np.arange(len(different) + 1))
        are_enough = []
        for query, (keys, distances) in zip(queries.tolist(), candidates, strict=True):
            positions = np.searchsorted(different, keys)
            counts = ends[positions + 1] - ends[positions]
            steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            numbers = rows[np.repeat(ends[positions], counts) + steps]
            near = np.sort(sort_keys(np.repeat(distances, counts)[None], numbers)[0])
            near = near[split_keys(near)[0] != self._itself[query]][: self._k]
            are_enough.append(len(near) == self._k)
            if are_enough[-1]:
                self.keys[query] = near
        return are_enough
