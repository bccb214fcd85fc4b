"""Distances of vectors, computed in float64.

The cosine distance is 1 − the product of vectors of length 1 (0 … 2; 1 from a vector of zeros to
any other, 0 to another of zeros), the Euclidean and the Manhattan distance are those of the vectors
as they are. Two vectors that differ by less than float32 can hold are at distance 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import SettingsError, TextError
from neuralviz.maps.settings import METRICS, SEED

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LARGEST = 1e15  # of a value: its square times the length of a vector fits in float32
ROWS = 1024  # of vectors whose distances are computed at once: they stay in the CPU's cache
SAME_COSINE = 1e-12  # distances below are rounding
SAME_SQUARE = 1e-14  # squared distances below, relative to the squared lengths, are rounding
SAME_PLACE = 1e-9  # cosine distances up to this may come from how a model rounds, and are no others
SAME_SHARE = 1e-6  # of two vectors' lengths: the same for straight distances


def check_vectors(vectors: ArrayLike, row_name: str = "text") -> np.ndarray:
    """[text, dim] float32 in rows one after the other in memory.

    Args:
        vectors: [text, dim].
        row_name: one row stands for, in messages.

    Raises:
        TextError: a value is no finite number, or too large; the message says of which text.
        SettingsError: they are no rows of numbers.
    """
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


def check_same_length(vectors: np.ndarray, queries: np.ndarray) -> None:
    """Raises SettingsError where new vectors are not as long as those of the corpus."""
    if vectors.shape[1] != queries.shape[1]:
        raise SettingsError(
            f"The new vectors have {queries.shape[1]:,} values, those of the corpus "
            f"{vectors.shape[1]:,}. Embed both with the same method."
        )


def check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise SettingsError(f"Unknown metric “{metric}”. Choose from: {', '.join(METRICS)}.")


def all_distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
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


def pair_distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """[a, k] distances of [a, dim] and [a, k, dim] float64 vectors, as `all_distances` has them."""
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


def sort_keys(distances: np.ndarray, first: int | np.ndarray = 0) -> np.ndarray:
    """[a, b] int64 that sort by float32 distance, then by number of text.

    Non-negative floats sort as their bits do.
    """
    bits = distances.astype(np.float32).view(np.int32).astype(np.int64) << 32
    numbers = first if isinstance(first, np.ndarray) else first + np.arange(distances.shape[1])
    return bits | numbers


def smallest_keys(keys: np.ndarray, k: int) -> np.ndarray:
    """[a, min(k, b)] the smallest keys of each row, in any order."""
    return np.partition(keys, k - 1, axis=1)[:, :k] if k < keys.shape[1] else keys


def split_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of texts int32, and distances float32."""
    return (keys & 0xFFFFFFFF).astype(np.int32), (keys >> 32).astype(np.int32).view(np.float32)


def digest_vectors(vectors: np.ndarray) -> np.ndarray:
    """[text] uint64, equal for equal vectors, and else by a chance of one in 10¹⁹.

    Args:
        vectors: [text, dim] float32 or float64.
    """
    words = np.ascontiguousarray(vectors + np.float32(0)).view(np.uint32)  # -0 becomes 0
    factors = np.random.default_rng(SEED).integers(1 << 64, size=(2, words.shape[1]), dtype="u8")
    mixed = np.zeros((2, len(words)), dtype=np.uint64)
    for column in range(words.shape[1]):  # products and sums overflow, as they should
        mixed += factors[:, column : column + 1] * (words[:, column].astype(np.uint64) + 1)
    return mixed[0] ^ (mixed[1] >> np.uint64(32))


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of each group of equal vectors, and [text] the group of each, by first appearance.

    Args:
        vectors: as of `digest_vectors`, which tells them apart.
    """
    _, first, group = np.unique(digest_vectors(vectors), return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[group]


def equal_within(vectors: np.ndarray, metric: str) -> np.ndarray:
    """[text] up to which distance another vector counts as equal; models round a little otherwise.

    Args:
        vectors: [text, dim].
        metric: one of ``METRICS``.
    """
    if metric == "cosine":
        return np.full(len(vectors), SAME_PLACE)
    order = 1 if metric == "manhattan" else 2
    return SAME_SHARE * 2 * np.linalg.norm(vectors.astype(np.float64), order, axis=1)


def count_distinct(vectors: np.ndarray, metric: str, at_most: int) -> int:
    """How many vectors there are at a distance from each other; counts no further than asked."""
    remaining = vectors
    n_found = 0
    while len(remaining) and n_found < at_most:
        first = remaining[:1].astype(np.float64)
        within = equal_within(first, metric)[0]
        blocks = (remaining[start : start + ROWS] for start in range(0, len(remaining), ROWS))
        far = [all_distances(first, block.astype(np.float64), metric)[0] for block in blocks]
        remaining = remaining[np.concatenate(far) > within]
        n_found += 1
    return n_found
