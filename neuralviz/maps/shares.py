"""Shares of texts that are right: how sure one is, and the difference of two on the same texts."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import NeuralvizError

_TAIL = 0.025  # of 95%, on either side
_Z = NormalDist().inv_cdf(0.975)


def wilson_interval(right: int, n: int) -> tuple[float, float]:
    """Bounds at 95% of the share of which ``right`` of ``n`` were drawn (Wilson 1927).

    scipy has it, too; but pages show it at once, and scipy.stats takes a second to load.
    """
    share, spread = right / n, _Z**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return (0.0 if right == 0 else middle - half), (1.0 if right == n else middle + half)


def paired_share_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The 95% interval of how much larger a share of texts one method has right than another.

    Newcombe's hybrid score interval for paired data (1998, method 10): both shares and the number
    of texts on which just one of the two is right would be others in another sample. Its bounds are
    widened to those of Clopper and Pearson (1934) given that number, so that 0 is never left out
    where the exact sign test does not decide (McNemar 1947).

    Args:
        first, second: [text] whether a text was right, of the same texts.

    Returns:
        Bounds, -1 … 1.

    Raises:
        NeuralvizError: they are not of the same texts, or there is none.
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
    """The upper bound of how much larger the first share is; see `paired_share_interval`."""
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
