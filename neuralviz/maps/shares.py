"""Confidence intervals for shares and for their paired differences."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import scipy  # loads submodules lazily

from neuralviz.errors import NeuralvizError

_TAIL = 0.025  # of a 95% interval
_Z = NormalDist().inv_cdf(0.975)


def wilson_interval(right: int, n: int) -> tuple[float, float]:
    """95% interval of a share (Wilson 1927), without the slow import of scipy.stats."""
    share, spread = right / n, _Z**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return (0.0 if right == 0 else middle - half), (1.0 if right == n else middle + half)


def paired_share_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """95% interval of ``first``'s share of right texts minus ``second``'s, both [text] bool.

    Newcombe's hybrid score interval (1998, method 10), widened to Clopper and Pearson (1934) so
    that it contains 0 where McNemar's exact test (1947) is not significant. Bounds are -1 … 1.
    Raises NeuralvizError if lengths differ or there are no texts.
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if first.shape != second.shape or not len(first):
        raise NeuralvizError("The two methods must be compared on the same texts.")
    both, by_first = int((first & second).sum()), int((first & ~second).sum())
    by_second, by_none = int((second & ~first).sum()), int((~first & ~second).sum())
    bounds = (
        _bound_difference(both, by_first, by_second, by_none),
        _bound_difference(both, by_second, by_first, by_none),
    )
    return -bounds[1], bounds[0]


def _bound_difference(both: int, by_first: int, by_second: int, by_none: int) -> float:
    n = both + by_first + by_second + by_none
    first, second = both + by_first, both + by_second
    over_first = wilson_interval(first, n)[1] - first / n
    under_second = second / n - wilson_interval(second, n)[0]
    product = float(both * by_none - by_first * by_second)
    if product > 0:
        product = max(product - n / 2, 0.0)
    margins = first * (n - first) * second * (n - second)
    correlation = product / math.sqrt(margins) if margins else 0.0
    spread = math.sqrt(
        max(over_first**2 - 2 * correlation * over_first * under_second + under_second**2, 0.0)
    )
    exact = 1.0
    if by_second:
        exact = float(scipy.special.betaincinv(by_first + 1, by_second, 1 - _TAIL))
    differ = (by_first + by_second) / n
    return min(max((by_first - by_second) / n + spread, (2 * exact - 1) * differ), 1.0)
