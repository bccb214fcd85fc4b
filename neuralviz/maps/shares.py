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

    It is exact, given the number of texts on which just one of the two is right: Clopper and
    Pearson's (1934) interval of the share of these that the first has right, as a difference of
    shares of all texts. It leaves out 0 where the exact sign test decides (McNemar 1947).

    Args:
        first, second: [text] whether a text was right, of the same texts.

    Returns:
        Bounds, -1 … 1; both 0 where the two methods are right on the same texts.

    Raises:
        NeuralvizError: they are not of the same texts, or there is none.
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if first.shape != second.shape or not len(first):
        raise NeuralvizError("The two methods must be compared on the same texts.")
    by_first, by_second = int((first & ~second).sum()), int((second & ~first).sum())
    quantile = scipy.special.betaincinv
    low = quantile(by_first, by_second + 1, _TAIL) if by_first else 0.0
    high = quantile(by_first + 1, by_second, 1 - _TAIL) if by_second else 1.0
    differ = (by_first + by_second) / len(first)
    return float((2 * low - 1) * differ), float((2 * high - 1) * differ)
