"""Correlation of products of embeddings with human scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SAME = 1e-12  # values that differ by less, relative to their size, differ by rounding


@dataclass(frozen=True)
class Correlation:
    """How products rise with scores, each coefficient -1 … 1, NaN where there is none.

    Attributes:
        spearman: Pearson's coefficient of the ranks.
        kendall_b: Kendall's tau-b, which allows for ties.
        kendall_c: Kendall's tau-c, which allows for scores of a few values only.
        pearson: of the values themselves.
        n: pairs.
    """

    spearman: float
    kendall_b: float
    kendall_c: float
    pearson: float
    n: int


def correlate(products: ArrayLike, scores: ArrayLike) -> Correlation:
    """Correlate products with scores (neural paper, section 3.2; frozen features, section 4).

    Args:
        products: [pair] of the embeddings of a pair.
        scores: [pair] by people; the larger, the more alike.

    Returns:
        The coefficients; all NaN when products or scores are constant, a score is not a number, or
        there are fewer than two pairs.

    Raises:
        NeuralvizError: a product is not finite.
        ValueError: there are not as many products as scores.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"products have the shape {x.shape}, scores {y.shape}")
    broken = int((~np.isfinite(x)).sum())
    if broken:
        raise NeuralvizError(
            f"{broken:,} of {len(x):,} products are not finite numbers, so nothing can be compared "
            "with the scores; choose another model or method."
        )
    if not np.isfinite(y).all() or _is_constant(x) or _is_constant(y):
        return Correlation(np.nan, np.nan, np.nan, np.nan, len(x))
    from scipy import stats

    return Correlation(
        spearman=float(stats.spearmanr(x, y).statistic),
        kendall_b=float(stats.kendalltau(x, y, variant="b").statistic),
        kendall_c=float(stats.kendalltau(x, y, variant="c").statistic),
        pearson=float(stats.pearsonr(x, y).statistic),
        n=len(x),
    )


def _is_constant(values: np.ndarray) -> bool:
    return len(values) < 2 or bool(np.ptp(values) <= SAME * np.abs(values).max())
