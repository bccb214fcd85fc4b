"""Confidence intervals of shares and of their paired differences, and a test of counts."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import scipy  # loads submodules lazily

from neuralviz.errors import NeuralvizError

LEAST_RATIO = 2.0  # of a share inside to that outside, from which what is inside is marked off
_TAIL = 0.025  # of a 95% interval
_TERMS = 10_000  # of a sum of probabilities


def wilson_interval(right: float, n: float, n_intervals: int = 1) -> tuple[float, float]:
    """95% interval of a share (Wilson 1927), or one of several that together have this level."""
    z = NormalDist().inv_cdf(1 - _TAIL / n_intervals)  # scipy.stats is slow to import
    share, spread = right / n, z**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return (0.0 if right == 0 else middle - half), (1.0 if right == n else middle + half)


def paired_share_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """95% interval of ``first``'s share of right texts minus ``second``'s.

    Both are [text] True or False, or 0 … 1 where a text is right for some of equally near ones.

    Newcombe's hybrid score interval (1998, method 10), widened to Clopper and Pearson (1934) so
    that it contains 0 where McNemar's exact test (1947) is not significant. Bounds are -1 … 1.
    Raises NeuralvizError if lengths differ or there are no texts.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape or not len(first):
        raise NeuralvizError("The two methods must be compared on the same texts.")
    by_both, by_first = float(first @ second), float(first @ (1 - second))
    by_second, by_none = float(second @ (1 - first)), float((1 - first) @ (1 - second))
    bounds = (
        _bound_difference(by_both, by_first, by_second, by_none),
        _bound_difference(by_both, by_second, by_first, by_none),
    )
    return -bounds[1], bounds[0]


def _bound_difference(by_both: float, by_first: float, by_second: float, by_none: float) -> float:
    n = by_both + by_first + by_second + by_none
    first, second = by_both + by_first, by_both + by_second
    over_first = wilson_interval(first, n)[1] - first / n
    under_second = second / n - wilson_interval(second, n)[0]
    product = float(by_both * by_none - by_first * by_second)
    if product > 0:
        product = max(product - n / 2, 0.0)
    margins = first * (n - first) * second * (n - second)
    correlation = product / math.sqrt(margins) if margins > 0 else 0.0
    spread = math.sqrt(
        max(over_first**2 - 2 * correlation * over_first * under_second + under_second**2, 0.0)
    )
    exact = 1.0
    if by_second:
        exact = float(scipy.special.betaincinv(by_first + 1, by_second, 1 - _TAIL))
    differ = (by_first + by_second) / n
    return min(max((by_first - by_second) / n + spread, (2 * exact - 1) * differ), 1.0)


def compute_chance(n_common: int, n_drawn: int, n_marked: int, n: int) -> float:
    """The probability that ``n_drawn`` of ``n`` texts hold ``n_common`` marked ones or more."""
    is_above = n_common * n > n_drawn * n_marked  # far from the mean, terms fall fast
    if is_above:
        counts = np.arange(n_common, min(n_drawn, n_marked, n_common + _TERMS) + 1)
    else:
        counts = np.arange(max(n_common - _TERMS, 0), n_common)
    log_chances = (
        _log_choose(n_marked, counts)
        + _log_choose(n - n_marked, n_drawn - counts)
        - _log_choose(n, np.array(n_drawn))
    )
    total = float(np.exp(log_chances).sum())
    return total if is_above else 1 - total


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    gammaln = scipy.special.gammaln
    possible = (k >= 0) & (k <= n)
    safe = np.where(possible, k, 0)
    return np.where(possible, gammaln(n + 1) - gammaln(safe + 1) - gammaln(n - safe + 1), -np.inf)
