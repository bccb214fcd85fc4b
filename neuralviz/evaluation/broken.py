"""Relations that embeddings break (neural paper, section 3.2), counted without enumeration.

Products closer than `TIE` are a tie: broken, but not in ``wrong_strict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from neuralviz.arrays import unit_vectors
from neuralviz.errors import NeuralvizError, ShouldStop, check_stop, never

TIE = 1e-7
MAX_COMPARED = 4 * 10**10  # relations that are compared one by one, for what two methods share
BLOCK = 1 << 22  # products, or relations, that are in memory at once
_ROWS = 1024  # vectors scaled at once


@dataclass(frozen=True)
class BrokenCount:
    wrong: int  # broken, ties included
    wrong_strict: int  # broken by more than a tie
    total: int  # relations there are
    # same, diff: means of the products of what is alike and of what is not, over all relations
    same: float
    diff: float

    @property
    def error(self) -> float:
        """Share that is broken, 0 … 1."""
        return self.wrong / self.total


@dataclass(frozen=True, eq=False)
class Overlap:
    shared: np.ndarray  # [method, method] relations that both break; on the diagonal, those of one
    total: int  # relations there are

    @property
    def share(self) -> np.ndarray:
        """[method, method] ``I``, 0 … 1; NaN with a method that breaks nothing."""
        wrong = np.diag(self.shared)
        fewer = np.minimum(wrong[:, None], wrong[None, :])
        return np.divide(self.shared, fewer, out=np.full(fewer.shape, np.nan), where=fewer > 0)


def count_pairs(similar: ArrayLike, dissimilar: ArrayLike) -> BrokenCount:
    """Comparisons of [pair] products, at least one of each kind, that are broken (Eq. 4)."""
    alike, unlike = (np.asarray(kind, dtype=np.float64) for kind in (similar, dissimilar))
    ordered = np.sort(unlike)
    return BrokenCount(
        wrong=count_above(ordered, alike - TIE),
        wrong_strict=count_above(ordered, alike + TIE, or_equal=True),
        total=len(alike) * len(unlike),
        same=float(alike.mean()),
        diff=float(unlike.mean()),
    )


def shared_pairs(
    similar: Sequence[np.ndarray],
    dissimilar: Sequence[np.ndarray],
    *,
    max_compared: int = MAX_COMPARED,
    should_stop: ShouldStop = never,
) -> Overlap:
    """Comparisons that two methods both break (Eq. 3); NeuralvizError if over ``max_compared``."""
    alike, unlike = np.stack(similar), np.stack(dissimilar)
    total = alike.shape[1] * unlike.shape[1]
    check_compared(total, "comparisons of pairs", max_compared)
    shared = np.zeros((len(alike), len(alike)), dtype=np.int64)
    add_shared(shared, alike, unlike, should_stop)
    return Overlap(shared, total)


def unit_rows(vectors: ArrayLike) -> np.ndarray:
    """[text, dim] float64 of length 1, zeros unchanged; NeuralvizError if one is not finite."""
    rows = np.array(vectors, dtype=np.float64)
    if not np.isfinite(rows).all():
        broken = int((~np.isfinite(rows)).any(axis=1).sum())
        raise NeuralvizError(
            f"{broken:,} of {len(rows):,} embeddings contain infinite or NaN values. Choose "
            "another model or method."
        )
    for start in range(0, len(rows), _ROWS):  # to save memory
        rows[start : start + _ROWS] = unit_vectors(rows[start : start + _ROWS])
    return rows


def count_above(ordered: np.ndarray, bounds: np.ndarray, *, or_equal: bool = False) -> int:
    """How many of the sorted values are above each bound, summed over the bounds."""
    n_not_above = np.searchsorted(ordered, bounds, "left" if or_equal else "right")
    return int(len(bounds) * len(ordered) - n_not_above.sum())


def add_shared(
    shared: np.ndarray, alike: np.ndarray, unlike: np.ndarray, should_stop: ShouldStop = never
) -> None:
    """Add to [method, method] ``shared``; ``alike`` [method, one], ``unlike`` [method, other]."""
    n_methods, n_unlike = unlike.shape
    at_once = max(1, BLOCK // max(1, n_methods * n_unlike))
    for start in range(0, alike.shape[1] if n_unlike else 0, at_once):
        check_stop(should_stop)
        alike_block = alike[:, start : start + at_once]
        broken = unlike[:, None, :] > alike_block[:, :, None] - TIE
        for first in range(n_methods):
            for second in range(first, n_methods):
                n_broken = int(np.count_nonzero(broken[first] & broken[second]))
                shared[first, second] += n_broken
                shared[second, first] += n_broken * (first != second)


def check_compared(total: int, relations: str, limit: int) -> None:
    """Raise NeuralvizError if there are more than ``limit`` relations to compare."""
    if total > limit:
        raise NeuralvizError(
            f"{total:,} {relations} are too many to find shared errors. Use fewer texts."
        )
