"""Bootstrap intervals of correlations, all resamples at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import Stopped, never
from neuralviz.evaluation.correlation import (
    COEFFICIENTS,
    SAME,
    ordered_pairs,
    why_undefined,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

RESAMPLES = 1000
FEWEST_RESAMPLES = 200  # below, percentiles at 95% are guesses
MAX_RESAMPLED = 5 * 10**7  # pairs drawn in all: minutes of work
AT_ONCE = 2 * 10**6  # pairs drawn, of as many resamples as that makes
LARGEST_MATRIX = 2048  # pairs that are all compared with each other, 17 MB


@dataclass(frozen=True)
class Intervals:
    """Where the coefficients of other samples of such pairs would lie, in 95 of 100 cases.

    Attributes:
        spearman, kendall_b, kendall_c, pearson: lower and upper bound.
        resamples: bootstrap samples that they are percentiles of.
    """

    spearman: tuple[float, float]
    kendall_b: tuple[float, float]
    kendall_c: tuple[float, float]
    pearson: tuple[float, float]
    resamples: int


def bootstrap(
    products: ArrayLike,
    scores: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    should_stop: ShouldStop = never,
) -> Intervals | None:
    """Percentile intervals at 95% by drawing pairs again (Efron 1979).

    Args:
        products, scores: [pair] as of `correlate`.
        resamples: how often; cut where there are very many pairs.
        seed: of what is drawn.
        should_stop: asked for every resample.

    Returns:
        None when the coefficients are undefined, or there are too many pairs to draw them
        `FEWEST_RESAMPLES` times.

    Raises:
        Stopped: ``should_stop`` said so.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    n = len(x)
    resamples = min(resamples, MAX_RESAMPLED // max(1, n))
    if resamples < FEWEST_RESAMPLES or why_undefined(x, y):
        return None
    draw = np.random.default_rng(seed)
    drawn = np.empty((resamples, len(COEFFICIENTS)))
    at_once = max(1, AT_ONCE // n)
    for first in range(0, resamples, at_once):
        counts = np.empty((min(at_once, resamples - first), n))
        for row in counts:
            if should_stop():
                raise Stopped
            row[:] = np.bincount(draw.integers(n, size=n), minlength=n)
        drawn[first : first + len(counts)] = correlate_resamples(x, y, counts)
    low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    bounds = {
        name: (float(a), float(b)) for name, a, b in zip(COEFFICIENTS, low, high, strict=True)
    }
    return Intervals(**bounds, resamples=resamples)


def correlate_resamples(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The coefficients of resamples, without making them: of pairs that count several times.

    Args:
        x, y: [pair] finite values, not all equal.
        counts: [resample, pair] how often each pair is drawn, as many in all as there are pairs.

    Returns:
        [resample, coefficient] in the order of `COEFFICIENTS`, as `correlate` of the pairs drawn;
        NaN where they are constant.
    """
    n = len(x)
    of_x, of_y = _Ties(x, counts), _Ties(y, counts)
    fewest = np.minimum(of_x.n_values, of_y.n_values)
    ordered = _ordered(x, y, counts)
    with np.errstate(divide="ignore", invalid="ignore"):  # where all are equal
        found = {
            "spearman": _pearson(of_x.ranks, of_y.ranks, counts),
            "kendall_b": ordered / np.sqrt(of_x.untied * of_y.untied),
            "kendall_c": 2 * ordered * fewest / (n**2 * (fewest - 1)),
            "pearson": _pearson(x, y, counts),
        }
    result = np.stack([found[name] for name in COEFFICIENTS], axis=1)
    result[of_x.constant | of_y.constant] = np.nan
    return result


class _Ties:
    """Which drawn values are equal.

    Attributes:
        n_values: [resample] different values.
        untied: [resample] pairs of draws whose values differ.
        ranks: [resample, pair] average ranks.
        constant: [resample] whether all draws are equal but for rounding.
    """

    def __init__(self, values: np.ndarray, counts: np.ndarray) -> None:
        different, group = np.unique(values, return_inverse=True)
        starts = np.searchsorted(values[order := np.argsort(values, kind="stable")], different)
        sizes = np.add.reduceat(counts[:, order], starts, axis=1)
        drawn = sizes > 0
        n = counts.shape[1]
        self.n_values = drawn.sum(axis=1)
        self.untied = (n * (n - 1) - (sizes * (sizes - 1)).sum(axis=1)) / 2
        self.ranks = (sizes.cumsum(axis=1) - (sizes - 1) / 2)[:, group]
        low = different[drawn.argmax(axis=1)]
        high = different[len(different) - 1 - drawn[:, ::-1].argmax(axis=1)]
        self.constant = high - low <= SAME * np.maximum(np.abs(low), np.abs(high))


def _pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[resample] Pearson's coefficient of values that count several times."""
    n = counts.shape[1]
    x, y = (v - ((counts * v).sum(axis=1) / n)[:, None] for v in (x, y))
    together, of_x, of_y = ((counts * a * b).sum(axis=1) for a, b in ((x, y), (x, x), (y, y)))
    return together / np.sqrt(of_x * of_y)


def _ordered(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[resample] pairs of draws that x and y order alike, less those that they order differently.

    Whole numbers, and the sums of each row are below 2²⁴, so that float32 has them exactly.
    """
    if len(x) > LARGEST_MATRIX:
        return np.array([_ordered_one(x, y, row.astype(int)) for row in counts])
    alike = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    above = counts.astype(np.float32) @ alike.astype(np.float32)
    return (above * counts).sum(axis=1) / 2


def _ordered_one(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
    """The same of one resample of many pairs, from tau-b, in n log n."""
    x, y = np.repeat(x, counts), np.repeat(y, counts)
    return ordered_pairs(float(scipy.stats.kendalltau(x, y, variant="b").statistic), x, y)
