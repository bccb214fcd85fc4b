"""Bootstrap: measures of samples like the one there is, all resamples at once.

Every method is measured in the same resamples of the same data, drawn from the same seed, so that
two methods can be compared resample by resample: what makes a sample easy for both of them is not
in their difference (Efron 1979; Koehn 2004).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import Stopped, never
from neuralviz.evaluation.broken import TIE
from neuralviz.evaluation.correlation import (
    COEFFICIENTS,
    ROUNDING,
    ordered_pairs,
    why_undefined,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

RESAMPLES = 1000
FEWEST_RESAMPLES = 200  # below, percentiles at 95% are guesses
MOST_RESAMPLES = 100_000
FEWEST_DRAWN = 8  # texts, pairs or groups: what is drawn from fewer says nothing of others
MAX_RESAMPLED = 5 * 10**7  # pairs drawn in all: minutes of work
AT_ONCE = 2 * 10**6  # pairs drawn, of as many resamples as that makes
LARGEST_MATRIX = 2048  # pairs that are all compared with each other, 17 MB


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """The percentiles between which 95% of a measure's [resample] values lie, NaN left out."""
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def paired_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float] | None:
    """The 95% interval of how much more one method has of a measure than another.

    ``first``, ``second``: [resample] the measure of both methods in the same resamples; NaN where
    it is undefined. Returns None where it is undefined in every resample, or they are no resamples
    of the same data.
    """
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
    """How often each of ``n`` things is in each resample, for some resamples at a time.

    ``n``: things that are drawn from, at random and with replacement, ``n`` a resample.
    ``resamples``: how many; fewer where there are very many things. ``seed``: decides what is
    drawn. ``cluster``: [thing] number, 0 … of its cluster: those of a cluster are drawn together,
    as many clusters as there are. None: each thing is a cluster. Yields [resample, thing] counts;
    nothing where fewer than `FEWEST_RESAMPLES` can be drawn, or from fewer than `FEWEST_DRAWN`
    clusters. Raises Stopped.
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
            if should_stop():
                raise Stopped
            drawn = draw.integers(n_clusters, size=n_clusters)
            row[:] = np.bincount(drawn, minlength=n_clusters)[cluster]
        yield counts


def seem_reversed(bounds: Iterable[tuple[float, float] | None]) -> bool:
    """Whether scores seem to say how different texts are.

    ``bounds``: 95% intervals of the correlations of methods that did not learn from the scores;
    None where there is none. Returns True where no correlation is clearly above 0 and at least one
    is clearly below.
    """
    defined = [bound for bound in bounds if bound is not None]
    return all(low <= 0 for low, _ in defined) and any(high < 0 for _, high in defined)


def bootstrap(
    products: ArrayLike,
    scores: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    cluster: np.ndarray | None = None,
    should_stop: ShouldStop = never,
) -> dict[str, np.ndarray]:
    """The coefficients of other samples of such pairs, made by drawing pairs again (Efron 1979).

    ``products``, ``scores``: [pair] as of `correlate`. ``resamples``, ``seed``, ``cluster``: as of
    `draw_resamples`. Returns [resample] by the names of `COEFFICIENTS`; empty when the coefficients
    are undefined, or there are too few pairs, or too many to draw them `FEWEST_RESAMPLES` times.
    Raises Stopped.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    if why_undefined(x, y):
        return {}
    drawn = [
        correlate_resamples(x, y, counts)
        for counts in draw_resamples(
            len(x), resamples, seed, cluster=cluster, should_stop=should_stop
        )
    ]
    return dict(zip(COEFFICIENTS, np.concatenate(drawn).T, strict=True)) if drawn else {}


def bootstrap_spearman(
    products: ArrayLike,
    scores: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    cluster: np.ndarray | None = None,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """Spearman's coefficient alone, of the very samples of `bootstrap`, in a fraction of its time.

    ``products``, ``scores``: [pair] as of `correlate`. ``resamples``, ``seed``, ``cluster``: as of
    `draw_resamples`. Returns [resample] NaN where a resample is constant; empty as of `bootstrap`.
    Raises Stopped.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    drawn = [np.zeros(0)]
    if why_undefined(x, y):
        return drawn[0]
    for counts in draw_resamples(len(x), resamples, seed, cluster=cluster, should_stop=should_stop):
        of_x, of_y = _Ties(x, counts), _Ties(y, counts)
        with np.errstate(divide="ignore", invalid="ignore"):  # where all are equal
            coefficients = _pearson(of_x.ranks, of_y.ranks, counts)
        coefficients[of_x.constant | of_y.constant] = np.nan
        drawn.append(coefficients)
    return np.concatenate(drawn)


def bootstrap_pairs(
    products: np.ndarray,
    is_similar: np.ndarray,
    is_dissimilar: np.ndarray,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    cluster: np.ndarray | None = None,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """The share of broken comparisons (Eq. 4) in other samples of such pairs.

    ``products``: [pair] finite. ``is_similar``, ``is_dissimilar``: [pair] which comparisons are
    made from. ``resamples``, ``seed``, ``cluster``: as of `draw_resamples`, so that the resamples
    are those of `bootstrap`. Returns [resample] shares, 0 … 1, NaN where one of the kinds is not
    drawn; empty as of `bootstrap`.
    """
    similar = np.flatnonzero(is_similar)
    dissimilar = np.flatnonzero(is_dissimilar)
    dissimilar = dissimilar[np.argsort(products[dissimilar], kind="stable")]
    not_above = np.searchsorted(products[dissimilar], products[similar] - TIE, "right")
    drawn = [np.zeros(0)]
    for counts in draw_resamples(
        len(products), resamples, seed, cluster=cluster, should_stop=should_stop
    ):
        n_similar, n_dissimilar = counts[:, similar], counts[:, dissimilar]
        before = np.pad(n_dissimilar.cumsum(axis=1), ((0, 0), (1, 0)))
        broken = (n_similar * (before[:, -1:] - before[:, not_above])).sum(axis=1)
        drawn.append(_ratio(broken, n_similar.sum(axis=1) * before[:, -1]))
    return np.concatenate(drawn)


def bootstrap_share(
    wrong: np.ndarray,
    total: np.ndarray,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    cluster: np.ndarray | None = None,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """A share in other samples of such texts, or of such groups of texts.

    ``wrong``, ``total``: [thing] counts of each text or group; the share is the sum of the first by
    that of the second. ``resamples``, ``seed``, ``cluster``: as of `draw_resamples`. Returns
    [resample] shares, 0 … 1; empty with fewer than `FEWEST_DRAWN` things.
    """
    drawn = [
        _ratio(counts @ wrong, counts @ total)
        for counts in draw_resamples(
            len(total), resamples, seed, cluster=cluster, should_stop=should_stop
        )
    ]
    return np.concatenate([np.zeros(0), *drawn])


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def correlate_resamples(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The coefficients of resamples, without making them: of pairs that count several times.

    ``x``, ``y``: [pair] finite values, not all equal. ``counts``: [resample, pair] how often each
    pair is drawn. Returns [resample, coefficient] in the order of `COEFFICIENTS`, as `correlate` of
    the pairs drawn; NaN where they are constant.
    """
    n = counts.sum(axis=1)
    of_x, of_y = _Ties(x, counts), _Ties(y, counts)
    fewest = np.minimum(of_x.n_values, of_y.n_values)
    ordered = _ordered(x, y, counts)
    with np.errstate(divide="ignore", invalid="ignore"):  # where all are equal
        by_name = {
            "spearman": _pearson(of_x.ranks, of_y.ranks, counts),
            "kendall_b": ordered / np.sqrt(of_x.untied * of_y.untied),
            "kendall_c": 2 * ordered * fewest / (n**2 * (fewest - 1)),
            "pearson": _pearson(x, y, counts),
        }
    result = np.stack([by_name[name] for name in COEFFICIENTS], axis=1)
    result[of_x.constant | of_y.constant] = np.nan
    return result


class _Ties:
    """Which drawn values are equal."""

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
    """As `_ordered` for one resample of many pairs: from tau-b, in n log n."""
    x, y = np.repeat(x, counts), np.repeat(y, counts)
    return ordered_pairs(float(scipy.stats.kendalltau(x, y, variant="b").statistic), x, y)
