"""Correlation of products of embeddings with human scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import ArrayLike

from neuralviz.errors import NeuralvizError

COEFFICIENTS = ("spearman", "kendall_c", "kendall_b", "pearson")
REVERSE = (
    "A higher score must mean that the texts are more alike. If yours means the opposite, reverse "
    "the scores."
)
ROUNDING = 1e-12  # values that differ by less, relative to their size, differ by rounding


@dataclass(frozen=True)
class Correlation:
    """How products rise with scores, each coefficient -1 … 1, NaN where there is none."""

    spearman: float  # Pearson's coefficient of the ranks
    kendall_b: float  # Kendall's tau-b, which allows for ties
    kendall_c: float  # Kendall's tau-c, which allows for scores of a few values only
    pearson: float  # of the values themselves
    n: int  # pairs


def correlate(products: ArrayLike, scores: ArrayLike) -> Correlation:
    """Correlate [pair] values, NaN where undefined; NeuralvizError if a product is not finite."""
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"products must have the shape of scores, {y.shape}; got {x.shape}")
    broken = int((~np.isfinite(x)).sum())
    if broken:
        raise NeuralvizError(
            f"{broken:,} of {len(x):,} cosine similarities are infinite or NaN. Choose "
            "another model or method."
        )
    if why_undefined(x, y):
        return Correlation(np.nan, np.nan, np.nan, np.nan, len(x))
    ranks = scipy.stats.rankdata(x), scipy.stats.rankdata(y)
    return Correlation(
        spearman=float(np.corrcoef(*ranks)[0, 1]),
        kendall_b=float(scipy.stats.kendalltau(x, y, variant="b").statistic),
        kendall_c=float(scipy.stats.kendalltau(x, y, variant="c").statistic),
        pearson=float(np.corrcoef(x, y)[0, 1]),
        n=len(x),
    )


def why_undefined(products: ArrayLike, scores: ArrayLike) -> str:
    """A sentence on why a correlation is undefined; empty if it is defined."""
    x, y = (np.asarray(values, dtype=np.float64) for values in (products, scores))
    if len(x) < 2:
        return "A correlation needs at least two pairs."
    if not np.isfinite(y).all():
        return "A score is infinite or NaN, so the correlation is undefined."
    if _is_constant(y):
        return "All scores are equal, so the correlation is undefined."
    if _is_constant(x):
        return "All cosine similarities are equal, so the correlation is undefined."
    return ""


def _is_constant(values: np.ndarray) -> bool:
    return len(values) < 2 or bool(np.ptp(values) <= ROUNDING * np.abs(values).max())
