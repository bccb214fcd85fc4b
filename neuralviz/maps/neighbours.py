"""Nearest neighbours by cosine, Euclidean or Manhattan distance, computed in float64.

Cosine distance is 1 − cosine: 1 from a zero vector, 0 between two. Ties are in row order.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.errors import (
    NeuralvizError,
    SettingsError,
    ShouldStop,
    TextError,
    check_choice,
    check_stop,
    never,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

METRICS = ("cosine", "euclidean", "manhattan")
LARGEST = 1e15  # largest value: summed squares fit in float32
ROWS = 1024  # vectors compared at once; they fit the CPU cache
SAME_COSINE = 1e-12  # smaller distances are rounding errors
SAME_SQUARE = 1e-14  # the same for squared distances relative to squared lengths
SAME_PLACE = 1e-9  # cosine distance up to which vectors count as equal
SAME_SHARE = 1e-6  # the same for other metrics, relative to the lengths
EXACT_UP_TO = 4096  # texts, as in UMAP
# of `NearGroups`
PROBED = 64  # groups
ROUNDS = 8  # k-means iterations
GROUPED = 8192  # vectors compared with all centres at once
RANKED = 512  # queries ranked exactly at once
SPARE = 8  # extra candidates, as float32 rounds
SPARE_MANHATTAN = 4  # multiple of those wanted, as candidates are Euclidean


def check_vectors(vectors: ArrayLike, row_name: str = "text") -> np.ndarray:
    """Contiguous [text, dim] float32. Raises TextError for bad values, SettingsError if not 2-D."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.dtype.kind not in "fiu":
        raise SettingsError("The vectors must be a 2-D array with one row per text.")
    if vectors.size and not max(abs(float(vectors.max())), abs(float(vectors.min()))) <= LARGEST:
        broken = ~(np.abs(vectors) <= LARGEST).all(axis=1)
        raise TextError(
            f"The vector of {row_name} {int(broken.argmax()) + 1:,} contains values that are "
            "infinite, NaN or far too large. Embed the texts again."
        )
    return np.ascontiguousarray(vectors, dtype=np.float32)


def check_search(metric: str, k: int) -> None:
    """Raises SettingsError for an unknown metric or ``k`` below 1."""
    check_choice("metric", metric, METRICS)
    _check_k(k)


def _check_k(k: int) -> None:
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")


def check_queries(queries: ArrayLike, dim: int) -> np.ndarray:
    """`check_vectors` for new vectors, which must have ``dim`` values."""
    checked = check_vectors(queries, "query")
    if checked.shape[1] != dim:
        raise SettingsError(
            f"The new vectors have {checked.shape[1]:,} values, those of the corpus {dim:,}. "
            "Embed both with the same method."
        )
    return checked


def all_distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """[a, b] distances of [a, dim] and [b, dim] float64 vectors."""
    if metric == "manhattan":
        from scipy.spatial.distance import cdist

        return cdist(a, b, "cityblock")
    return _distances_from_products(a @ b.T, _squares(a)[:, None], _squares(b), metric)


def pair_distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """[a, k] distances of [a, dim] and [a, k, dim] float64 vectors."""
    if metric == "manhattan":
        return np.abs(b - a[:, None]).sum(axis=2)
    products = (b @ a[:, :, None])[:, :, 0]
    return _distances_from_products(products, _squares(a)[:, None], _squares(b), metric)


def _squares(vectors: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i->...", vectors, vectors)


def _distances_from_products(
    products: np.ndarray, squares_a: np.ndarray, squares_b: np.ndarray, metric: str
) -> np.ndarray:
    if metric == "euclidean":
        squares = squares_a + squares_b - 2 * products
        squares[squares < SAME_SQUARE * (squares_a + squares_b)] = 0
        return np.sqrt(squares)
    lengths = np.sqrt(squares_a * squares_b)
    both_zero = (squares_a == 0) & (squares_b == 0)
    cosines = np.divide(products, lengths, out=both_zero.astype(np.float64), where=lengths > 0)
    distances = 1 - cosines
    distances[distances < SAME_COSINE] = 0
    return np.minimum(distances, 2, out=distances)


def sort_keys(distances: np.ndarray, first: int | np.ndarray = 0) -> np.ndarray:
    """[a, b] int64 that sort by float32 distance, then by text; floats ≥ 0 sort as their bits."""
    bits = distances.astype(np.float32).view(np.int32).astype(np.int64) << 32
    numbers = first if isinstance(first, np.ndarray) else first + np.arange(distances.shape[1])
    return bits | numbers


def split_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Int32 texts and float32 distances."""
    return (keys & 0xFFFFFFFF).astype(np.int32), (keys >> 32).astype(np.int32).view(np.float32)


def digest_vectors(vectors: np.ndarray) -> np.ndarray:
    """[text] uint64 hash of each vector."""
    rows = np.ascontiguousarray(vectors + np.float32(0))  # -0 becomes 0
    digests = [hashlib.blake2b(row, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), np.uint64)


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row of each group of equal vectors, and [text] groups, in order of appearance."""
    _, first, group = np.unique(digest_vectors(vectors), return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[group]


def equal_within(vectors: np.ndarray, metric: str) -> np.ndarray:
    """[text] distance up to which vectors count as equal, for rounding in models."""
    if metric == "cosine":
        return np.full(len(vectors), SAME_PLACE)
    order = 1 if metric == "manhattan" else 2
    return SAME_SHARE * 2 * np.linalg.norm(vectors.astype(np.float64), order, axis=1)


@dataclass(frozen=True, eq=False)
class Neighbours:
    indices: np.ndarray  # [text, k] int32 rows, nearest first, without the text itself
    distances: np.ndarray  # [text, k] float32, ascending

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def k(self) -> int:
        return self.indices.shape[1]

    def first(self, k: int) -> Neighbours:
        return Neighbours(self.indices[:, :k], self.distances[:, :k])


def find_neighbours(
    vectors: ArrayLike,
    k: int,
    metric: str = "cosine",
    seed: int = 42,
    *,
    should_stop: ShouldStop = never,
) -> Neighbours:
    """The ``k`` nearest other texts of each text, or all if fewer.

    Exact up to 4,096 texts; beyond, seeded nearest neighbour descent, which may miss some, but
    never equal vectors; it cannot be interrupted and compiles for about 20 s in a new process.
    Raises SettingsError for an unknown metric or ``k`` below 1, TextError for fewer than two
    vectors or invalid values, and Stopped.
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
        return _descend(vectors, k, metric, seed, should_stop)
    if len(rows) > EXACT_UP_TO:
        near_groups = _descend(vectors[rows], k, metric, seed, should_stop)
    else:
        near_groups = _find_exactly(vectors[rows], min(k, len(rows) - 1), metric, should_stop)
    return _expand_groups(near_groups, group, k)


def neighbours_of_points(coordinates: np.ndarray, k: int) -> Neighbours:
    from scipy.spatial import KDTree

    n = len(coordinates)
    k = min(k, n - 1)
    distances, indices = KDTree(coordinates).query(coordinates, k + 1)
    near = Neighbours(indices.astype(np.int32), distances.astype(np.float32))
    return _drop_itself(near, np.arange(n))


def nearest(
    vectors: np.ndarray,
    queries: np.ndarray,
    k: int,
    metric: str = "cosine",
    *,
    should_stop: ShouldStop = never,
) -> Neighbours:
    """The exact ``k`` nearest texts of [query, dim] vectors; equal vectors count."""
    queries = check_queries(queries, vectors.shape[1])
    check_search(metric, k)
    k = min(int(k), len(vectors))
    keys = np.zeros((len(queries), k), dtype=np.int64)
    for start in range(0, len(queries), ROWS):
        check_stop(should_stop)
        batch = queries[start : start + ROWS].astype(np.float64)
        kept = np.zeros((len(batch), 0), dtype=np.int64)
        for first in range(0, len(vectors), ROWS):
            block = vectors[first : first + ROWS].astype(np.float64)
            block_keys = sort_keys(all_distances(batch, block, metric), first)
            kept = _smallest(np.concatenate([kept, _smallest(block_keys, k)], axis=1), k)
        keys[start : start + ROWS] = np.sort(kept, axis=1)
    return Neighbours(*split_keys(keys))


def _smallest(keys: np.ndarray, k: int) -> np.ndarray:
    return np.partition(keys, k - 1, axis=1)[:, :k] if k < keys.shape[1] else keys


def _find_exactly(vectors: np.ndarray, k: int, metric: str, should_stop: ShouldStop) -> Neighbours:
    near = nearest(vectors, vectors, k + 1, metric, should_stop=should_stop)
    return _drop_itself(near, np.arange(len(vectors)))


def _descend(
    vectors: np.ndarray, k: int, metric: str, seed: int, should_stop: ShouldStop
) -> Neighbours:
    n = len(vectors)
    # squares of tiny numbers underflow in float32
    scaled = unit_vectors(vectors) if metric == "cosine" else vectors / np.abs(vectors).max()
    with numba_turn(should_stop), warnings.catch_warnings():
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
        check_stop(should_stop)
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
    return Neighbours(indices, distances)


def _drop_itself(neighbours: Neighbours, texts: np.ndarray) -> Neighbours:
    """[text, k - 1] without each row's own text, or else without the last."""
    is_itself = neighbours.indices == texts[:, None]
    is_itself[~is_itself.any(axis=1), -1] = True
    arrays = (neighbours.indices, neighbours.distances)
    return Neighbours(*(array[~is_itself].reshape(len(texts), -1) for array in arrays))


def _expand_groups(near: Neighbours, group: np.ndarray, k: int) -> Neighbours:
    """Neighbours of texts from those of groups of equal texts."""
    order = np.argsort(group, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(group))[:-1])
    keys = np.zeros((len(group), k), dtype=np.int64)
    for number, texts in enumerate(members):
        groups = [members[other][: k + 1] for other in (number, *near.indices[number].tolist())]
        distances = np.repeat([0, *near.distances[number]], list(map(len, groups)))
        candidates = np.sort(sort_keys(distances[None], np.concatenate(groups)))[:, : k + 1]
        others = split_keys(candidates)[0] != texts[:, None]
        is_first = others & (np.cumsum(others, axis=1) <= k)
        keys[texts] = np.broadcast_to(candidates, others.shape)[is_first].reshape(-1, k)
    return Neighbours(*split_keys(keys))


# --- approximate neighbours, shared on disk -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NearGroups:
    """Vectors sorted by group: an inverted file (Jégou, Douze and Schmid 2011)."""

    vectors: np.ndarray  # [text, dim] float32 sorted by group, unit length for cosine
    texts: np.ndarray  # [text] int32 row of each vector
    centres: np.ndarray  # [group, dim] float32
    starts: np.ndarray  # [group + 1] start of each group
    metric: str  # one of ``METRICS``

    @classmethod
    def build(
        cls, vectors: np.ndarray, metric: str, seed: int, *, should_stop: ShouldStop = never
    ) -> NearGroups:
        """Divide vectors into about √n groups (Lloyd 1982)."""
        data = _scale(vectors, metric)
        n = len(data)
        n_groups = max(1, round(n**0.5))
        drawn = np.random.default_rng(seed).choice(n, n_groups, replace=False)
        centres = data[np.sort(drawn)].copy()
        group = np.zeros(n, dtype=np.int64)
        for last in range(ROUNDS + 1):
            check_stop(should_stop)
            for start in range(0, n, GROUPED):
                rows = slice(start, start + GROUPED)
                group[rows] = _closeness(data[rows], centres).argmin(axis=1)
            if last == ROUNDS:
                break
            order = np.argsort(group, kind="stable")
            occupied, first = np.unique(group[order], return_index=True)
            for number, members in zip(occupied, np.split(order, first[1:]), strict=True):
                centres[number] = data[members].mean(axis=0, dtype=np.float64)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(n_groups + 1))
        return cls(data[order], order.astype(np.int32), centres, starts, metric)

    def nearest(self, queries: np.ndarray, k: int) -> Neighbours:
        """About the ``k`` nearest texts of [query, dim] vectors, including the query itself."""
        scaled = _scale(queries, self.metric)
        n_kept = k * SPARE_MANHATTAN if self.metric == "manhattan" else k + SPARE
        places = self._candidates(scaled, min(n_kept, len(self.texts)))
        best_keys = np.zeros((len(scaled), k), dtype=np.int64)
        for start in range(0, len(scaled), RANKED):
            rows = slice(start, start + RANKED)
            candidates = places[rows]
            exact_distances = pair_distances(
                scaled[rows].astype(np.float64),
                self.vectors[candidates].astype(np.float64),
                self.metric,
            )
            keys = sort_keys(exact_distances, self.texts[candidates].astype(np.int64))
            best_keys[rows] = np.sort(keys, axis=1)[:, :k]
        return Neighbours(*split_keys(best_keys))

    def _candidates(self, queries: np.ndarray, n: int) -> np.ndarray:
        """[query, n] candidate positions, by float32 distances."""
        groups = self._probe_groups(queries, n)
        best = np.full((len(queries), n), np.inf, dtype=np.float32)
        places = np.zeros((len(queries), n), dtype=np.int64)
        order = np.argsort(groups, axis=None, kind="stable")
        ends = np.searchsorted(groups.ravel()[order], np.arange(len(self.centres) + 1))
        query_rows = order // groups.shape[1]
        for group in range(len(self.centres)):
            askers = query_rows[ends[group] : ends[group + 1]]
            first, last = int(self.starts[group]), int(self.starts[group + 1])
            if not len(askers) or first == last:
                continue
            near = _closeness(queries[askers], self.vectors[first:last])
            positions = np.broadcast_to(np.arange(first, last), near.shape)
            near, positions = _keep_smallest(near, positions, n)
            best[askers], places[askers] = _keep_smallest(
                np.concatenate([best[askers], near], axis=1),
                np.concatenate([places[askers], positions], axis=1),
                n,
            )
        return places

    def _probe_groups(self, queries: np.ndarray, n: int) -> np.ndarray:
        """[query, group] nearest groups, enough to hold ``n`` vectors."""
        sizes = np.sort(np.diff(self.starts))
        n_probed = max(PROBED, int(np.searchsorted(np.cumsum(sizes), n)) + 1)
        n_probed = min(n_probed, len(self.centres))
        probed = np.zeros((len(queries), n_probed), dtype=np.int64)
        for start in range(0, len(queries), GROUPED):
            rows = slice(start, start + GROUPED)
            near = _closeness(queries[rows], self.centres)
            probed[rows] = np.argpartition(near, n_probed - 1, axis=1)[:, :n_probed]
        return probed


def _scale(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Vectors whose Euclidean distance ranks neighbours."""
    scaled = unit_vectors(vectors) if metric == "cosine" else vectors
    return np.ascontiguousarray(scaled, dtype=np.float32)


def _closeness(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """[query, vector] squared distance minus the query's squared length."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    return squares - 2 * (queries @ vectors.T)


def _keep_smallest(near: np.ndarray, places: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``n`` smallest of each row, unsorted, with their places."""
    order = np.argpartition(near, min(n, near.shape[1]) - 1, axis=1)[:, :n]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(places, order, axis=1)


# --- turns ----------------------------------------------------------------------------------------


_numba = threading.Lock()


@contextmanager
def numba_turn(should_stop: ShouldStop = never) -> Iterator[None]:
    """Hold the process-wide lock for numba, for which others wait; not reentrant."""
    # concurrent use of numba's own threading layer can abort the process
    while not _numba.acquire(timeout=0.1):
        check_stop(should_stop)
    try:
        import numba

        n_threads = numba.get_num_threads()  # UMAP does not restore it when stopped
        # numba's OpenMP layer also changes torch's number of threads
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


K = 10
TEXTS_AT_ONCE = 8192  # texts counted at once


@dataclass(frozen=True)
class Outvoted:
    text: int  # row of the vectors
    label: str  # the text's own
    voted: str  # winner of the vote
    agree: float  # share of voters with its own label, 0 … 1


def suggest_k(sizes: Sequence[int]) -> int:
    """Suggest k: 10, or fewer if the median label has fewer other texts to vote for it."""
    return max(1, min(K, int(np.median(sizes)) - 1)) if sizes else K


def why_no_votes(labels: Iterable[str]) -> str:
    """A sentence on why neighbours cannot vote on the labels; empty if they can."""
    n_texts = Counter(filter(None, labels))
    if len(n_texts) == 1:
        return "All texts have the same label. At least two different labels are needed."
    if n_texts and max(n_texts.values()) == 1:
        return (
            f"All {len(n_texts):,} labels are different, as ids or measurements are, so no other "
            "text can vote for a text's label. Choose a column whose labels several texts share."
        )
    return ""


def knn_right(neighbours: Neighbours, labels: Sequence[str], k: int = K) -> np.ndarray:
    """[labelled text] whether its label wins the vote of its ``k`` nearest other texts.

    Ties go to the nearest voter. Unlabelled texts (``""``) neither vote nor count; the next known
    neighbours vote instead. Texts without voters are errors. Raises NeuralvizError with fewer than
    two labelled texts.
    """
    _, codes, votes = _collect_votes(neighbours, labels, k)
    n = int((codes >= 0).sum())
    if n < 2:
        raise NeuralvizError(
            "The accuracy needs at least 2 texts with a label; "
            f"{'only 1' if n else 'none'} of {len(codes):,} has one."
        )
    return (_find_most_voted(votes) == codes)[codes >= 0]


def knn_voted(neighbours: Neighbours, labels: Sequence[str], k: int = K) -> list[str]:
    """[text] label that wins the vote, as in `knn_right`; empty without votes."""
    names, _, votes = _collect_votes(neighbours, labels, k)
    return [names[code] for code in _find_most_voted(votes).tolist()]


def sampled_right(near: Neighbours, codes: np.ndarray, rows: np.ndarray, k: int = K) -> np.ndarray:
    """`knn_right` for ``rows`` with neighbours ``near``; ``codes`` is [text] int32, -1 for none."""
    _check_k(k)
    own_codes = codes[rows]
    winners = _find_most_voted(_select_voters(codes[near.indices], k))
    return (winners == own_codes)[own_codes >= 0]


def find_outvoted(
    neighbours: Neighbours, labels: Sequence[str], k: int, n: int
) -> tuple[Outvoted, ...]:
    """The ``n`` errors of `knn_right` whose own label has the fewest votes."""
    names, codes, votes = _collect_votes(neighbours, labels, k)
    winners = _find_most_voted(votes)
    missed = np.flatnonzero((codes >= 0) & (winners >= 0) & (winners != codes))
    n_same = (votes[missed] == codes[missed, None]).sum(axis=1)
    agree = n_same / (votes[missed] >= 0).sum(axis=1)
    order = np.argsort(agree, kind="stable")[:n]
    return tuple(
        Outvoted(text, labels[text], names[winners[text]], share)
        for text, share in zip(missed[order].tolist(), agree[order].tolist(), strict=True)
    )


def common_neighbours(first: Neighbours, second: Neighbours, k: int = K) -> np.ndarray:
    """[text] share of the ``k`` nearest texts that two embeddings share."""
    _check_k(k)
    if len(first) != len(second):
        raise NeuralvizError(
            f"Cannot compare the neighbours of {len(first):,} texts with those of "
            f"{len(second):,}. Use two embeddings of the same texts."
        )
    k = min(k, first.k, second.k)
    shares = np.zeros(len(first))
    for start in range(0, len(first), TEXTS_AT_ONCE):
        rows = slice(start, start + TEXTS_AT_ONCE)
        is_common = first.indices[rows, :k, None] == second.indices[rows, None, :k]
        shares[rows] = is_common.sum(axis=(1, 2)) / k
    return shares


def _collect_votes(
    neighbours: Neighbours, labels: Sequence[str], k: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Distinct labels with "" last, [text] label codes (-1 for none), [text, k] votes."""
    _check_k(k)
    if len(labels) != len(neighbours):
        raise NeuralvizError(
            f"Got {len(labels):,} labels for {len(neighbours):,} texts; expected one per text."
        )
    names = list(dict.fromkeys(filter(None, labels)))
    number = {"": -1} | {name: code for code, name in enumerate(names)}
    codes = np.array([number[label] for label in labels], dtype=np.int32)
    votes = [
        _select_voters(codes[neighbours.indices[start : start + TEXTS_AT_ONCE]], k)
        for start in range(0, len(codes), TEXTS_AT_ONCE)
    ]
    return [*names, ""], codes, np.concatenate(votes) if votes else codes[:, None]


def _select_voters(votes: np.ndarray, k: int) -> np.ndarray:
    """[text, k] codes of the nearest labelled texts, -1 if there are too few."""
    if (votes >= 0).all():
        return votes[:, :k]
    order = np.argsort(votes < 0, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(votes, order, axis=1)


def _find_most_voted(votes: np.ndarray) -> np.ndarray:
    """[text] winning label, ties to the nearest voter; -1 without votes."""
    counts = np.zeros(votes.shape, dtype=np.int32)
    for column in votes.T:
        counts += votes == column[:, None]
    counts[votes < 0] = 0
    return votes[np.arange(len(votes)), counts.argmax(axis=1)]
