"""Distances of vectors, computed in float64.

The cosine distance is 1 − the product of vectors of length 1 (0 … 2; 1 from a vector of zeros to
any other, 0 to another of zeros), the Euclidean and the Manhattan distance are those of the vectors
as they are. Two vectors that differ by less than float32 can hold are at distance 0.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import SettingsError, TextError
from neuralviz.maps.settings import METRICS

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
        row_name: what a row stands for, in messages.

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


def check_search(metric: str, k: int) -> None:
    """Raises SettingsError where no neighbours are wanted, or by an unknown distance."""
    if metric not in METRICS:
        raise SettingsError(f"Unknown metric “{metric}”. Choose from: {', '.join(METRICS)}.")
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")


def check_queries(queries: ArrayLike, dim: int) -> np.ndarray:
    """`check_vectors` for new vectors, which must be as long as those of a corpus."""
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
    """[a, k] distances of [a, dim] and [a, k, dim] float64 vectors, as `all_distances` has them."""
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
    """[text] uint64, equal for equal vectors, and else by a chance of one in 10¹⁹."""
    rows = np.ascontiguousarray(vectors + np.float32(0))  # -0 becomes 0
    digests = [hashlib.blake2b(row, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), np.uint64)


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of each group of equal vectors, and [text] the group of each, in their order."""
    _, first, group = np.unique(digest_vectors(vectors), return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[group]


def equal_within(vectors: np.ndarray, metric: str) -> np.ndarray:
    """[text] up to which distance another vector is equal; models round a little otherwise."""
    if metric == "cosine":
        return np.full(len(vectors), SAME_PLACE)
    order = 1 if metric == "manhattan" else 2
    return SAME_SHARE * 2 * np.linalg.norm(vectors.astype(np.float64), order, axis=1)
