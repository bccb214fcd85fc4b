"""Bootstrap of measures (Efron 1979); methods share resamples, for comparison (Koehn 2004)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict, Unpack

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import ArrayLike

from neuralviz.errors import ShouldStop, check_stop, never
from neuralviz.evaluation.broken import TIE
from neuralviz.evaluation.correlation import COEFFICIENTS, ROUNDING, why_undefined

RESAMPLES = 1000
FEWEST_RESAMPLES = 200  # below, percentiles at 95% are guesses
MOST_RESAMPLES = 100_000
FEWEST_DRAWN = 8  # texts, pairs or groups: what is drawn from fewer says nothing of others
MAX_RESAMPLED = 5 * 10**7  # pairs drawn in all: minutes of work
AT_ONCE = 2 * 10**6  # pairs drawn, of as many resamples as that makes
LARGEST_MATRIX = 2048  # pairs that are all compared with each other, 17 MB


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """95% percentile interval of [resample] values, NaN left out."""
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def paired_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float] | None:
    """95% interval of ``first - second``, [resample] each; None if undefined or unpaired."""
    if first.shape != second.shape:
        return None
    difference = first - second
    return interval(difference) if np.isfinite(difference).any() else None


def draw_resamples(
    n: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
    *,
    cluster: np.ndarray | None = None,
    should_stop: ShouldStop = never,
) -> Iterator[np.ndarray]:
    """Yield [resample, thing] counts of how often each of ``n`` things is drawn, in blocks.

    Things with one [thing] ``cluster`` number are drawn together. Yields nothing with fewer than
    `FEWEST_DRAWN` clusters, or if fewer than `FEWEST_RESAMPLES` can be drawn. Raises Stopped.
    """
    resamples = min(resamples, MAX_RESAMPLED // max(1, n))
    cluster = np.arange(n) if cluster is None else cluster
    n_clusters = int(cluster.max(initial=-1)) + 1
    if resamples < FEWEST_RESAMPLES or n_clusters < FEWEST_DRAWN:
        return
    draw = np.random.default_rng(seed)
    at_once = max(1, AT_ONCE // n)
    for first in range(0, resamples, at_once):
        counts = np.empty((min(at_once, resamples - first), n))
        for row in counts:
            check_stop(should_stop)
            drawn = draw.integers(n_clusters, size=n_clusters)
            row[:] = np.bincount(drawn, minlength=n_clusters)[cluster]
        yield counts


def seem_reversed(bounds: Iterable[tuple[float, float] | None]) -> bool:
    """Whether, by 95% intervals, no correlation is above 0 and at least one is below."""
    defined = [bound for bound in bounds if bound is not None]
    return all(low <= 0 for low, _ in defined) and any(high < 0 for _, high in defined)


class Drawing(TypedDict, total=False):
    """How things are drawn, as in `draw_resamples`."""

    resamples: int
    seed: int
    cluster: np.ndarray | None
    should_stop: ShouldStop


def bootstrap(
    products: ArrayLike,
    scores: ArrayLike,
    coefficients: Sequence[str] = COEFFICIENTS,
    **drawing: Unpack[Drawing],
) -> dict[str, np.ndarray]:
    """[resample] values by coefficient, as `correlate`; empty if undefined or too few resamples."""
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    if why_undefined(x, y):
        return {}
    drawn = [
        correlate_resamples(x, y, counts, coefficients)
        for counts in draw_resamples(len(x), **drawing)
    ]
    return dict(zip(coefficients, np.concatenate(drawn).T, strict=True)) if drawn else {}


def bootstrap_pairs(
    products: np.ndarray,
    is_similar: np.ndarray,
    is_dissimilar: np.ndarray,
    **drawing: Unpack[Drawing],
) -> np.ndarray:
    """[resample] share, 0 … 1, of broken comparisons (Eq. 4); NaN where a kind is not drawn."""
    similar = np.flatnonzero(is_similar)
    dissimilar = np.flatnonzero(is_dissimilar)
    dissimilar = dissimilar[np.argsort(products[dissimilar], kind="stable")]
    not_above = np.searchsorted(products[dissimilar], products[similar] - TIE, "right")
    drawn = [np.zeros(0)]
    for counts in draw_resamples(len(products), **drawing):
        n_similar, n_dissimilar = counts[:, similar], counts[:, dissimilar]
        before = np.pad(n_dissimilar.cumsum(axis=1), ((0, 0), (1, 0)))
        broken = (n_similar * (before[:, -1:] - before[:, not_above])).sum(axis=1)
        drawn.append(_ratio(broken, n_similar.sum(axis=1) * before[:, -1]))
    return np.concatenate(drawn)


def bootstrap_share(wrong: np.ndarray, total: np.ndarray, **drawing: Unpack[Drawing]) -> np.ndarray:
    """[resample] sum of ``wrong`` over that of ``total``, both [thing]; empty for few things."""
    blocks = draw_resamples(len(total), **drawing)
    drawn = [_ratio(counts @ wrong, counts @ total) for counts in blocks]
    return np.concatenate([np.zeros(0), *drawn])


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def correlate_resamples(
    x: np.ndarray, y: np.ndarray, counts: np.ndarray, coefficients: Sequence[str] = COEFFICIENTS
) -> np.ndarray:
    """[resample, coefficient] of pairs that count [resample, pair] times; NaN if constant."""
    n = counts.sum(axis=1)
    of_x, of_y = _Ties(x, counts), _Ties(y, counts)
    correlated = {"spearman": (of_x.ranks, of_y.ranks), "pearson": (x, y)}
    with np.errstate(divide="ignore", invalid="ignore"):  # where all are equal
        by_name = {
            name: _pearson(*values, counts)
            for name, values in correlated.items()
            if name in coefficients
        }
        if not {"kendall_b", "kendall_c"}.isdisjoint(coefficients):  # these take much longer
            ordered = _ordered(x, y, counts)
            fewest = np.minimum(of_x.n_values, of_y.n_values)
            by_name["kendall_b"] = ordered / np.sqrt(of_x.untied * of_y.untied)
            by_name["kendall_c"] = 2 * ordered * fewest / (n**2 * (fewest - 1))
    result = np.stack([by_name[name] for name in coefficients], axis=1)
    result[of_x.constant | of_y.constant] = np.nan
    return result


class _Ties:
    def __init__(self, values: np.ndarray, counts: np.ndarray) -> None:
        different, group = np.unique(values, return_inverse=True)
        starts = np.searchsorted(values[order := np.argsort(values, kind="stable")], different)
        sizes = np.add.reduceat(counts[:, order], starts, axis=1)
        drawn = sizes > 0
        n = counts.sum(axis=1)
        self.n_values = drawn.sum(axis=1)
        self.untied = (n * (n - 1) - (sizes * (sizes - 1)).sum(axis=1)) / 2
        self.ranks = (sizes.cumsum(axis=1) - (sizes - 1) / 2)[:, group]
        low = different[drawn.argmax(axis=1)]
        high = different[len(different) - 1 - drawn[:, ::-1].argmax(axis=1)]
        self.constant = high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))


def _pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[resample] Pearson's coefficient of values that count several times."""
    n = counts.sum(axis=1)
    x, y = (v - ((counts * v).sum(axis=1) / n)[:, None] for v in (x, y))
    together, of_x, of_y = ((counts * a * b).sum(axis=1) for a, b in ((x, y), (x, x), (y, y)))
    return together / np.sqrt(of_x * of_y)


def _ordered(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[resample] pairs of draws that x and y order alike, less those ordered differently."""
    if len(x) > LARGEST_MATRIX:
        return np.array([_ordered_one(x, y, row.astype(int)) for row in counts])
    alike = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    weighted = counts.astype(np.float32) @ alike.astype(np.float32)
    return (weighted * counts).sum(axis=1) / 2


def _ordered_one(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
    """As `_ordered` for one resample of many pairs: from tau-c, in O(n log n)."""
    x, y = np.repeat(x, counts), np.repeat(y, counts)
    n, fewest = len(x), min(len(np.unique(x)), len(np.unique(y)))
    kendall_c = float(scipy.stats.kendalltau(x, y, variant="c").statistic)
    return kendall_c * n**2 * (fewest - 1) / (2 * fewest)
