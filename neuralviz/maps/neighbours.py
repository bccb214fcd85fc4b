"""Which texts are nearest to which, by their vectors (see `neuralviz.maps.distances`).

Distances are kept in float32. Equally near texts come in their own order.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.errors import ShouldStop, Stopped, TextError, never
from neuralviz.maps.distances import (
    ROWS,
    all_distances,
    check_queries,
    check_search,
    check_vectors,
    distinct_rows,
    pair_distances,
    smallest_keys,
    sort_keys,
    split_keys,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

EXACT_UP_TO = 4096  # texts; UMAP draws the line at the same place


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The texts nearest to each text, or to each query.

    Attributes:
        indices: [text, k] int32 numbers of texts, the nearest first; never the text itself.
        distances: [text, k] float32, not falling along a row.
        metric: ``cosine``, ``euclidean`` or ``manhattan``.
        is_approximate: whether they come from an index of the store, which misses a few.
    """

    indices: np.ndarray
    distances: np.ndarray
    metric: str
    is_approximate: bool = False

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def k(self) -> int:
        """Neighbours of one text."""
        return self.indices.shape[1]

    def first(self, k: int) -> Neighbours:
        """The ``k`` nearest alone; all, if there are fewer."""
        return replace(self, indices=self.indices[:, :k], distances=self.distances[:, :k])


def find_neighbours(
    vectors: ArrayLike,
    k: int,
    metric: str = "cosine",
    seed: int = 42,
    *,
    should_stop: ShouldStop = never,
    on_wait: Callable[[], None] = lambda: None,
) -> Neighbours:
    """The ``k`` nearest other texts of every text.

    Up to 4,096 texts, all distances are computed. Beyond, neighbours are found by nearest
    neighbour descent with UMAP's settings on one thread, so that the seed decides the result, and
    a few of them may be missed; texts of the same vector are found exactly.

    Args:
        vectors: [text, dim].
        k: neighbours of a text; cut to the number of the other texts.
        metric: one of ``METRICS``.
        seed: of the descent, 0 … 2³² − 1.
        should_stop: asked between blocks of texts, and while waiting for the turn; the descent
            itself, and its compilation of some 20 s in a fresh process, cannot be interrupted.
        on_wait: called once if another thread has numba at the moment.

    Raises:
        SettingsError: an unknown metric, or ``k`` below 1.
        TextError: fewer than two vectors, or something in them that is no usable number.
        Stopped: ``should_stop`` said so.
    """
    vectors = check_vectors(vectors)
    check_search(metric, k)
    n = len(vectors)
    if n < 2:
        raise TextError("Finding neighbours needs at least 2 texts.")
    k = min(int(k), n - 1)
    if n <= EXACT_UP_TO:
        return _find_exactly(vectors, k, metric, should_stop)
    rows, group = distinct_rows(vectors)
    if len(rows) == n:
        return descend(vectors, k, metric, seed, should_stop, on_wait)
    if len(rows) > EXACT_UP_TO:
        near_groups = descend(vectors[rows], k, metric, seed, should_stop, on_wait)
    else:
        near_groups = _find_exactly(vectors[rows], min(k, len(rows) - 1), metric, should_stop)
    return _expand_groups(near_groups, group, k)


def neighbours_of_points(coordinates: np.ndarray, k: int) -> Neighbours:
    """The nearest points of every point of a map, exactly, by straight distance."""
    from scipy.spatial import KDTree

    n = len(coordinates)
    k = min(k, n - 1)
    distances, indices = KDTree(coordinates).query(coordinates, k + 1)
    near = Neighbours(indices.astype(np.int32), distances.astype(np.float32), "euclidean")
    return _drop_itself(near, np.arange(n))


def nearest(vectors: np.ndarray, queries: np.ndarray, k: int, metric: str = "cosine") -> Neighbours:
    """The texts nearest to new vectors, by exact search.

    Args:
        vectors: [text, dim] of the texts, as `find_neighbours` takes them.
        queries: [query, dim].
        k: texts a query; cut to the number of texts.
        metric: one of ``METRICS``.

    Returns:
        indices and distances [query, k]; a text with the query's own vector counts, at distance 0.
    """
    queries = check_queries(queries, vectors.shape[1])
    check_search(metric, k)
    k = min(int(k), len(vectors))
    keys = np.zeros((len(queries), k), dtype=np.int64)
    for start in range(0, len(queries), ROWS):
        batch = queries[start : start + ROWS].astype(np.float64)
        kept = np.zeros((len(batch), 0), dtype=np.int64)
        for first in range(0, len(vectors), ROWS):
            block = vectors[first : first + ROWS].astype(np.float64)
            block_keys = sort_keys(all_distances(batch, block, metric), first)
            kept = np.concatenate([kept, smallest_keys(block_keys, k)], axis=1)
            kept = smallest_keys(kept, k)
        keys[start : start + ROWS] = np.sort(kept, axis=1)
    return Neighbours(*split_keys(keys), metric)


def _find_exactly(vectors: np.ndarray, k: int, metric: str, should_stop: ShouldStop) -> Neighbours:
    """From all distances, which fit into memory block by block."""
    n = len(vectors)
    everything = vectors.astype(np.float64)
    best_keys = np.zeros((n, k), dtype=np.int64)
    for start in range(0, n if k else 0, 512):
        if should_stop():
            raise Stopped
        rows = slice(start, start + 512)
        keys = sort_keys(all_distances(everything[rows], everything, metric))
        keys[np.arange(len(keys)), start + np.arange(len(keys))] = np.iinfo(np.int64).max
        best_keys[rows] = np.sort(smallest_keys(keys, k), axis=1)
    return Neighbours(*split_keys(best_keys), metric)


def descend(
    vectors: np.ndarray,
    k: int,
    metric: str,
    seed: int,
    should_stop: ShouldStop = never,
    on_wait: Callable[[], None] = lambda: None,
) -> Neighbours:
    """Neighbours by nearest neighbour descent, of any number of vectors that all differ."""
    n = len(vectors)
    # tiny numbers have no squares in float32
    scaled = unit_vectors(vectors) if metric == "cosine" else vectors / np.abs(vectors).max()
    with numba_turn(should_stop, on_wait), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows with too few neighbours, filled below
        from pynndescent import NNDescent

        index = NNDescent(
            np.ascontiguousarray(scaled, dtype=np.float32),
            n_neighbors=k + 1,
            metric=metric,
            random_state=seed,
            n_trees=min(64, 5 + round(n**0.5 / 20)),
            n_iters=max(5, round(np.log2(n))),
            max_candidates=60,
            n_jobs=1,
        )
        graph = np.asarray(index.neighbor_graph[0])
    keys = np.zeros((n, k + 1), dtype=np.int64)
    step = 1 + 2 * ROWS // (k + 1)
    for start in range(0, n, step):
        if should_stop():
            raise Stopped
        rows = slice(start, start + step)
        near = graph[rows]
        distances = pair_distances(
            vectors[rows].astype(np.float64), vectors[near].astype(np.float64), metric
        )
        keys[rows] = sort_keys(distances, near.astype(np.int64) & 0xFFFFFFFF)
    itself = np.arange(n)[:, None]
    keys[(graph == itself) | (graph < 0)] = np.iinfo(np.int64).max
    best_keys = np.sort(keys, axis=1)[:, :k]
    indices, distances = split_keys(best_keys)
    missed = np.flatnonzero(best_keys[:, -1] == np.iinfo(np.int64).max)
    if len(missed):
        exact = _drop_itself(nearest(vectors, vectors[missed], k + 1, metric), missed)
        indices[missed], distances[missed] = exact.indices, exact.distances
    return Neighbours(indices, distances, metric)


def _drop_itself(neighbours: Neighbours, texts: np.ndarray) -> Neighbours:
    """[text, k - 1]: each row without its own text, or without the last if that is not in it."""
    is_itself = neighbours.indices == texts[:, None]
    is_itself[~is_itself.any(axis=1), -1] = True
    shape = (len(texts), neighbours.k - 1)
    return Neighbours(
        neighbours.indices[~is_itself].reshape(shape),
        neighbours.distances[~is_itself].reshape(shape),
        neighbours.metric,
    )


def _expand_groups(near: Neighbours, group: np.ndarray, k: int) -> Neighbours:
    """Neighbours of texts from those of groups of equal texts; ``group`` is [text] of each."""
    order = np.argsort(group, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(group))[:-1])
    keys = np.zeros((len(group), k), dtype=np.int64)
    for number, texts in enumerate(members):
        some = [members[other][: k + 1] for other in (number, *near.indices[number].tolist())]
        distances = np.repeat([0, *near.distances[number]], list(map(len, some)))
        candidates = np.sort(sort_keys(distances[None], np.concatenate(some)))[:, : k + 1]
        others = split_keys(candidates)[0] != texts[:, None]
        is_first = others & (np.cumsum(others, axis=1) <= k)
        keys[texts] = np.broadcast_to(candidates, others.shape)[is_first].reshape(-1, k)
    return Neighbours(*split_keys(keys), near.metric)


_numba = threading.Lock()


@contextmanager
def numba_turn(
    should_stop: ShouldStop = never, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """The process's one turn at numba: UMAP, pynndescent and what else uses its threads.

    Two at once can abort the whole process where numba has no threading layer but its own. Not to
    be entered twice by the same thread. Where others have their turn, ``on_wait`` is called once,
    and ``should_stop`` asked every tenth of a second.
    """
    if not _numba.acquire(blocking=False):
        on_wait()
        while not _numba.acquire(timeout=0.1):
            if should_stop():
                raise Stopped
    try:
        import numba

        n_threads = numba.get_num_threads()  # UMAP leaves another number behind when it is stopped
        # numba's OpenMP layer changes the number that torch's kernels use on this thread
        torch = sys.modules.get("torch")
        n_torch_threads = torch.get_num_threads() if torch is not None else 0
        try:
            yield
        finally:
            numba.set_num_threads(n_threads)
            if torch is not None:
                torch.set_num_threads(n_torch_threads)
    finally:
        _numba.release()
