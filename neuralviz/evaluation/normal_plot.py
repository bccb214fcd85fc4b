"""The Q–Q plot of values against a normal distribution, and how straight it is.

Without `scipy.stats`, which cannot be imported while another thread imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

_BLOM = 3 / 8
DRAWN = 1000  # samples


@dataclass(frozen=True, eq=False)
class NormalPlot:
    """Values in order, beside those that a standard normal distribution would have.

    Attributes:
        normal: [value] expected, by Blom's approximation.
        values: in order.
        straight: correlation of both, at most 1; NaN where all values are equal.
    """

    normal: np.ndarray
    values: np.ndarray
    straight: float


def normal_plot(values: np.ndarray) -> NormalPlot:
    """The plot of at least two values."""
    normal = expected(len(values))
    ordered = np.sort(np.asarray(values, float))
    straight = float("nan")
    if np.ptp(ordered) > 0:
        straight = float(np.corrcoef(normal, ordered)[0, 1])
    return NormalPlot(normal, ordered, straight)


@lru_cache(maxsize=32)
def least_straight(n: int) -> float:
    """What the correlation reaches in 95 of 100 samples of ``n`` normal values, by drawing some."""
    drawn = np.sort(np.random.default_rng(0).standard_normal((DRAWN, n)), axis=1)
    drawn -= drawn.mean(axis=1, keepdims=True)
    normal = expected(n)
    correlations = drawn @ normal / np.sqrt((drawn**2).sum(axis=1) * (normal**2).sum())
    return float(np.quantile(correlations, 0.05))


def expected(n: int) -> np.ndarray:
    """[value] of a standard normal sample of ``n``, in order; their mean is 0."""
    shares = (np.arange(1, n + 1) - _BLOM) / (n + 1 - 2 * _BLOM)
    return np.array([NormalDist().inv_cdf(share) for share in shares])
