"""Which texts are nearest to which, by their vectors (see `neuralviz.maps.distances`).

Distances are kept in float32. Equally near texts come in their own order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.base import unit_vectors
from neuralviz.errors import SettingsError, ShouldStop, Stopped, TextError, never
from neuralviz.maps.distances import (
    ROWS,
    all_distances,
    check_metric,
    check_same_length,
    check_vectors,
    distinct_rows,
    pair_distances,
    smallest_keys,
    sort_keys,
    split_keys,
)
from neuralviz.maps.numba_turn import numba_turn

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
    check_metric(metric)
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")
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
        group_neighbours = descend(vectors[rows], k, metric, seed, should_stop, on_wait)
    else:
        group_neighbours = _find_exactly(vectors[rows], min(k, len(rows) - 1), metric, should_stop)
    return _expand_groups(_add_itself(group_neighbours), group, k)


def neighbours_of_points(coordinates: np.ndarray, k: int) -> Neighbours:
    """The nearest points of every point of a map, exactly, by straight distance.

    Args:
        coordinates: [text, 2 or 3], finite.
        k: neighbours of each; fewer where there are fewer points.
    """
    from scipy.spatial import KDTree

    n = len(coordinates)
    k = min(k, n - 1)
    distances, indices = KDTree(coordinates).query(coordinates, k + 1)
    is_itself = indices == np.arange(n)[:, None]
    # among many points at one place it may not find itself
    is_itself[~is_itself.any(axis=1), -1] = True
    shape = (n, k)
    return Neighbours(
        indices[~is_itself].reshape(shape).astype(np.int32),
        distances[~is_itself].reshape(shape).astype(np.float32),
        "euclidean",
    )


def nearest(vectors: np.ndarray, queries: np.ndarray, k: int, metric: str = "cosine") -> Neighbours:
    """The texts nearest to new vectors, by exact search.

    Args:
        vectors: [text, dim] of the texts, as `find_neighbours` takes them.
        queries: [query, dim].
        k: texts a query; cut to the number of texts.
        metric: one of ``METRICS``.

    Returns:
        indices and distances [query, k]; a text with the query's own vector counts, at distance 0.

    Raises:
        SettingsError: an unknown metric, ``k`` below 1, or vectors of another length.
        TextError: a query holds something that is no usable number.
    """
    queries = check_vectors(queries, "query")
    check_metric(metric)
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")
    check_same_length(vectors, queries)
    k = min(int(k), len(vectors))
    indices = np.zeros((len(queries), k), dtype=np.int32)
    distances = np.zeros((len(queries), k), dtype=np.float32)
    step = ROWS
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        batch = queries[rows].astype(np.float64)
        kept = np.zeros((len(batch), 0), dtype=np.int64)
        for first in range(0, len(vectors), ROWS):
            block = vectors[first : first + ROWS].astype(np.float64)
            keys = sort_keys(all_distances(batch, block, metric), first)
            kept = smallest_keys(np.concatenate([kept, smallest_keys(keys, k)], axis=1), k)
        indices[rows], distances[rows] = split_keys(np.sort(kept, axis=1))
    return Neighbours(indices, distances, metric)


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
    peak = np.abs(vectors).max()
    # Tiny numbers have no squares in float32.
    scaled = unit_vectors(vectors) if metric == "cosine" else vectors / peak
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


def _add_itself(neighbours: Neighbours) -> Neighbours:
    """[text, 1 + k], the text itself first."""
    itself = np.arange(len(neighbours), dtype=np.int32)[:, None]
    zeros = np.zeros(itself.shape, dtype=np.float32)
    return Neighbours(
        np.concatenate([itself, neighbours.indices], axis=1),
        np.concatenate([zeros, neighbours.distances], axis=1),
        neighbours.metric,
    )


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


def _expand_groups(group_neighbours: Neighbours, group: np.ndarray, k: int) -> Neighbours:
    """Neighbours of texts from those of the groups of equal texts.

    Args:
        group_neighbours: of groups, each itself first.
        group: [text] of each.
        k: neighbours of a text.
    """
    members = np.argsort(group, kind="stable").astype(np.int32)
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    indices = np.zeros((len(group), k), dtype=np.int32)
    distances = np.zeros((len(group), k), dtype=np.float32)
    for first in range(0, len(group_neighbours), ROWS):
        near = group_neighbours.indices[first : first + ROWS]
        far = group_neighbours.distances[first : first + ROWS]
        ends = np.cumsum(sizes[near], axis=1)
        n_groups = len(near)
        slots = np.zeros((n_groups, k + 1), dtype=np.int32)
        slot_distances = np.zeros((n_groups, k + 1), dtype=np.float32)
        numbers = np.arange(n_groups)
        for slot in range(k + 1):  # the place-th member of the column-th group fills it
            column = (ends <= slot).sum(axis=1)
            groups = near[numbers, column]
            place = slot - (ends[numbers, column] - sizes[groups])
            slots[:, slot] = members[starts[groups] + place]
            slot_distances[:, slot] = far[numbers, column]
        # equally near groups: their members in the order of the texts
        keys = np.sort(sort_keys(slot_distances, slots.astype(np.int64)), axis=1)
        slots, slot_distances = split_keys(keys)
        texts = members[starts[first] : (starts[first] + sizes[first : first + n_groups].sum())]
        rows = group[texts] - first
        without_itself = _drop_itself(
            Neighbours(slots[rows], slot_distances[rows], group_neighbours.metric), texts
        )
        indices[texts], distances[texts] = without_itself.indices, without_itself.distances
    return Neighbours(indices, distances, group_neighbours.metric)
