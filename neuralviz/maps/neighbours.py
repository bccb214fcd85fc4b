"""Which texts are nearest to which, by their vectors.

Distances are computed in float64 and kept in float32: the cosine distance is 1 − the product of
vectors of length 1 (0 … 2; 1 from a vector of zeros to any other, 0 to another of zeros), the
Euclidean and the Manhattan distance are those of the vectors as they are. Equally near texts come
in their own order. Two vectors that differ by less than float32 can hold are at distance 0.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.base import unit_vectors
from neuralviz.errors import SettingsError, ShouldStop, Stopped, TextError, never

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

METRICS = ("cosine", "euclidean", "manhattan")
EXACT_UP_TO = 4096  # texts; UMAP draws the line at the same place
LARGEST = 1e15  # of a value: its square times the length of a vector fits in float32
ROWS = 1024  # of vectors whose distances are computed at once: they stay in the CPU's cache
SAME_COSINE = 1e-12  # distances below are rounding
SAME_SQUARE = 1e-14  # squared distances below, relative to the squared lengths, are rounding

_numba = threading.Lock()


@contextmanager
def numba_turn(
    should_stop: ShouldStop = never, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """The process's one turn at numba: UMAP, pynndescent and what else uses its threads.

    Two at once can abort the whole process where numba has no threading layer but its own. Not to
    be entered twice by the same thread.

    Args:
        should_stop: asked every tenth of a second while others have their turn.
        on_wait: called once if others have their turn.

    Raises:
        Stopped: ``should_stop`` said so before the turn came.
    """
    if not _numba.acquire(blocking=False):
        on_wait()
        while not _numba.acquire(timeout=0.1):
            if should_stop():
                raise Stopped
    try:
        import numba

        n_threads = numba.get_num_threads()  # UMAP leaves another number behind when it is stopped
        try:
            yield
        finally:
            numba.set_num_threads(n_threads)
    finally:
        _numba.release()


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The texts nearest to each text, or to each query.

    Attributes:
        indices: [text, k] int32 numbers of texts, the nearest first; never the text itself.
        distances: [text, k] float32, not falling along a row.
        metric: ``cosine``, ``euclidean`` or ``manhattan``.
    """

    indices: np.ndarray
    distances: np.ndarray
    metric: str

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def k(self) -> int:
        """Neighbours of one text."""
        return self.indices.shape[1]

    def first(self, k: int) -> Neighbours:
        """The ``k`` nearest alone; all, if there are fewer."""
        return Neighbours(self.indices[:, :k], self.distances[:, :k], self.metric)


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
    _check_metric(metric)
    if k < 1:
        raise SettingsError("The number of neighbours has to be at least 1.")
    n = len(vectors)
    if n < 2:
        raise TextError("Neighbours need at least 2 texts.")
    k = min(int(k), n - 1)
    if n <= EXACT_UP_TO:
        return _exactly(vectors, k, metric, should_stop)
    rows, group = _distinct_rows(vectors)
    if len(rows) == n:
        return descend(vectors, k, metric, seed, should_stop, on_wait)
    if len(rows) > EXACT_UP_TO:
        found = descend(vectors[rows], k, metric, seed, should_stop, on_wait)
    else:
        found = _exactly(vectors[rows], min(k, len(rows) - 1), metric, should_stop)
    return _for_all(_with_itself(found), group, k)


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
    own = indices == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # among many points at one place it may not find itself
    shape = (n, k)
    return Neighbours(
        indices[~own].reshape(shape).astype(np.int32),
        distances[~own].reshape(shape).astype(np.float32),
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
    _check_metric(metric)
    if k < 1:
        raise SettingsError("The number of neighbours has to be at least 1.")
    check_same_length(vectors, queries)
    k = min(int(k), len(vectors))
    indices = np.zeros((len(queries), k), dtype=np.int32)
    distances = np.zeros((len(queries), k), dtype=np.float32)
    step = ROWS
    for start in range(0, len(queries), step):
        at = slice(start, start + step)
        some = queries[at].astype(np.float64)
        kept = np.zeros((len(some), 0), dtype=np.int64)
        for first in range(0, len(vectors), ROWS):
            block = vectors[first : first + ROWS].astype(np.float64)
            keys = _keys(_distances(some, block, metric), first)
            kept = _smallest(np.concatenate([kept, _smallest(keys, k)], axis=1), k)
        indices[at], distances[at] = _read(np.sort(kept, axis=1))
    return Neighbours(indices, distances, metric)


def check_vectors(vectors: ArrayLike, what: str = "text") -> np.ndarray:
    """[text, dim] float32 in rows one after the other in memory.

    Args:
        vectors: [text, dim].
        what: one row stands for, in messages.

    Raises:
        TextError: a value is no finite number, or too large; the message says of which text.
        SettingsError: they are no rows of numbers.
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.dtype.kind not in "fiu":
        raise SettingsError("The vectors have to be rows of numbers, one row a text.")
    if vectors.size and not max(abs(float(vectors.max())), abs(float(vectors.min()))) <= LARGEST:
        broken = ~(np.abs(vectors) <= LARGEST).all(axis=1)
        raise TextError(
            f"The vector of {what} {int(broken.argmax()) + 1:,} holds something that is no finite "
            "number, or far too large a one; embed the texts anew."
        )
    return np.ascontiguousarray(vectors, dtype=np.float32)


def check_same_length(vectors: np.ndarray, queries: np.ndarray) -> None:
    """Raises SettingsError where new vectors are not as long as those of the corpus."""
    if vectors.shape[1] != queries.shape[1]:
        raise SettingsError(
            f"The new vectors have {queries.shape[1]:,} values each, those of the corpus "
            f"{vectors.shape[1]:,}; embed both by the same method."
        )


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise SettingsError(f"There is no metric “{metric}”; there are {', '.join(METRICS)}.")


def _distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """[a, b] distances of [a, dim] and [b, dim] float64 vectors."""
    if metric == "manhattan":
        from scipy.spatial.distance import cdist

        return cdist(a, b, "cityblock")
    squares_a = np.einsum("ij,ij->i", a, a)[:, None]
    squares_b = np.einsum("ij,ij->i", b, b)
    products = a @ b.T
    if metric == "euclidean":
        squares = squares_a + squares_b - 2 * products
        squares[squares < SAME_SQUARE * (squares_a + squares_b)] = 0
        return np.sqrt(squares)
    return _cosine_distances(products, squares_a, squares_b)


def _pair_distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """[a, k] distances of [a, dim] and [a, k, dim] float64 vectors, as `_distances` has them."""
    if metric == "manhattan":
        return np.abs(b - a[:, None]).sum(axis=2)
    squares_a = np.einsum("ij,ij->i", a, a)[:, None]
    squares_b = np.einsum("ikj,ikj->ik", b, b)
    products = (b @ a[:, :, None])[:, :, 0]
    if metric == "euclidean":
        squares = squares_a + squares_b - 2 * products
        squares[squares < SAME_SQUARE * (squares_a + squares_b)] = 0
        return np.sqrt(squares)
    return _cosine_distances(products, squares_a, squares_b)


def _cosine_distances(
    products: np.ndarray, squares_a: np.ndarray, squares_b: np.ndarray
) -> np.ndarray:
    lengths = np.sqrt(squares_a * squares_b)
    both_zero = (squares_a == 0) & (squares_b == 0)
    cosines = np.divide(products, lengths, out=both_zero.astype(np.float64), where=lengths > 0)
    distances = 1 - cosines
    distances[distances < SAME_COSINE] = 0
    return np.minimum(distances, 2, out=distances)


def _keys(distances: np.ndarray, first: int | np.ndarray = 0) -> np.ndarray:
    """[a, b] int64 that sort by float32 distance, then by number of text.

    Non-negative floats sort as their bits do.
    """
    bits = distances.astype(np.float32).view(np.int32).astype(np.int64) << 32
    numbers = first if isinstance(first, np.ndarray) else first + np.arange(distances.shape[1])
    return bits | numbers


def _smallest(keys: np.ndarray, k: int) -> np.ndarray:
    """[a, min(k, b)] the smallest keys of each row, in any order."""
    return np.partition(keys, k - 1, axis=1)[:, :k] if k < keys.shape[1] else keys


def _read(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of texts int32, and distances float32."""
    return (keys & 0xFFFFFFFF).astype(np.int32), (keys >> 32).astype(np.int32).view(np.float32)


def _exactly(vectors: np.ndarray, k: int, metric: str, should_stop: ShouldStop) -> Neighbours:
    """From all distances, which fit into memory block by block."""
    n = len(vectors)
    everything = vectors.astype(np.float64)
    found = np.zeros((n, k), dtype=np.int64)
    for start in range(0, n if k else 0, 512):
        if should_stop():
            raise Stopped
        rows = slice(start, start + 512)
        keys = _keys(_distances(everything[rows], everything, metric))
        keys[np.arange(len(keys)), start + np.arange(len(keys))] = np.iinfo(np.int64).max
        found[rows] = np.sort(_smallest(keys, k), axis=1)
    return Neighbours(*_read(found), metric)


def descend(
    vectors: np.ndarray,
    k: int,
    metric: str,
    seed: int,
    should_stop: ShouldStop = never,
    on_wait: Callable[[], None] = lambda: None,
) -> Neighbours:
    """What `find_neighbours` does with many texts, whose vectors all differ, however many."""
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
        there = graph[rows]
        distances = _pair_distances(
            vectors[rows].astype(np.float64), vectors[there].astype(np.float64), metric
        )
        keys[rows] = _keys(distances, there.astype(np.int64) & 0xFFFFFFFF)
    itself = np.arange(n)[:, None]
    keys[(graph == itself) | (graph < 0)] = np.iinfo(np.int64).max
    found = np.sort(keys, axis=1)[:, :k]
    indices, distances = _read(found)
    missed = np.flatnonzero(found[:, -1] == np.iinfo(np.int64).max)
    if len(missed):
        exact = _without(nearest(vectors, vectors[missed], k + 1, metric), missed)
        indices[missed], distances[missed] = exact.indices, exact.distances
    return Neighbours(indices, distances, metric)


def _distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row of each group of equal rows, and [text] the group of each, by first appearance."""
    groups: dict[bytes, int] = {}
    group = np.array([groups.setdefault(row.tobytes(), len(groups)) for row in vectors + 0.0])
    return np.unique(group, return_index=True)[1], group


def n_distinct(vectors: np.ndarray, metric: str, at_most: int) -> int:
    """How many vectors there are at a distance from each other; counts no further than asked."""
    left = vectors
    found = 0
    while len(left) and found < at_most:
        first = left[:1].astype(np.float64)
        blocks = (left[start : start + ROWS] for start in range(0, len(left), ROWS))
        apart = [_distances(first, block.astype(np.float64), metric)[0] > 0 for block in blocks]
        left = left[np.concatenate(apart)]
        found += 1
    return found


def _with_itself(neighbours: Neighbours) -> Neighbours:
    """[text, 1 + k], the text itself first."""
    itself = np.arange(len(neighbours), dtype=np.int32)[:, None]
    zeros = np.zeros(itself.shape, dtype=np.float32)
    return Neighbours(
        np.concatenate([itself, neighbours.indices], axis=1),
        np.concatenate([zeros, neighbours.distances], axis=1),
        neighbours.metric,
    )


def _without(neighbours: Neighbours, texts: np.ndarray) -> Neighbours:
    """[text, k - 1]: each row without its own text, or without the last if that is not in it."""
    own = neighbours.indices == texts[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (len(texts), neighbours.k - 1)
    return Neighbours(
        neighbours.indices[~own].reshape(shape),
        neighbours.distances[~own].reshape(shape),
        neighbours.metric,
    )


def _for_all(found: Neighbours, group: np.ndarray, k: int) -> Neighbours:
    """Neighbours of texts from those of the groups of equal texts.

    Args:
        found: of groups, each itself first.
        group: [text] of each.
        k: neighbours of a text.
    """
    members = np.argsort(group, kind="stable").astype(np.int32)
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    indices = np.zeros((len(group), k), dtype=np.int32)
    distances = np.zeros((len(group), k), dtype=np.float32)
    for first in range(0, len(found), ROWS):
        near = found.indices[first : first + ROWS]
        far = found.distances[first : first + ROWS]
        ends = np.cumsum(sizes[near], axis=1)
        n_groups = len(near)
        slots = np.zeros((n_groups, k + 1), dtype=np.int32)
        apart = np.zeros((n_groups, k + 1), dtype=np.float32)
        each = np.arange(n_groups)
        for slot in range(k + 1):  # the place-th member of the column-th group fills it
            column = (ends <= slot).sum(axis=1)
            there = near[each, column]
            place = slot - (ends[each, column] - sizes[there])
            slots[:, slot] = members[starts[there] + place]
            apart[:, slot] = far[each, column]
        # equally near groups: their members in the order of the texts
        keys = np.sort(_keys(apart, slots.astype(np.int64)), axis=1)
        slots, apart = _read(keys)
        texts = members[starts[first] : (starts[first] + sizes[first : first + n_groups].sum())]
        rows = group[texts] - first
        own = _without(Neighbours(slots[rows], apart[rows], found.metric), texts)
        indices[texts], distances[texts] = own.indices, own.distances
    return Neighbours(indices, distances, found.metric)
