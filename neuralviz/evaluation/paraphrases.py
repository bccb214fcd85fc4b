"""Phrases generated to be alike to a chosen degree, and their embeddings (section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError, Stopped, never
from neuralviz.evaluation.correlation import correlate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

LEAST_RATIO, LARGEST_RATIO = 0.5, 1.5  # as the paper cuts its figures


@dataclass(frozen=True, eq=False)
class QualityMap:
    """How the product follows one quality, for each pair of values of the two others.

    Attributes:
        fixed1, fixed2: values of the two others, ascending.
        kendall_c: [fixed1, fixed2]; NaN where there are no two phrases, or all are alike.
        n: [fixed1, fixed2] phrases.
    """

    quality: str
    fixed1: np.ndarray
    fixed2: np.ndarray
    kendall_c: np.ndarray
    n: np.ndarray


def quality_maps(
    products: ArrayLike,
    varies: Sequence[str],
    values: ArrayLike,
    fixed1: ArrayLike,
    fixed2: ArrayLike,
    *,
    should_stop: ShouldStop = never,
) -> tuple[QualityMap, ...]:
    """A map of tau-c for each quality that varies, in the order in which they first come.

    All arguments are [phrase]: products of the embeddings of a phrase and of its original, the
    name and value of the quality that varies, and the values of the two others.

    Raises:
        NeuralvizError: there is no phrase, or a product is not finite.
        Stopped: ``should_stop`` said so.
    """
    x, value, first_fixed, second_fixed = (
        np.asarray(column, dtype=np.float64) for column in (products, values, fixed1, fixed2)
    )
    if not len(x):
        raise NeuralvizError("There are no generated phrases to evaluate.")
    names = np.array(varies, dtype=object)
    maps = []
    for quality in dict.fromkeys(varies):
        of_quality = names == quality
        rows, columns = np.unique(first_fixed[of_quality]), np.unique(second_fixed[of_quality])
        tau = np.full((len(rows), len(columns)), np.nan)
        n = np.zeros(tau.shape, dtype=int)
        for i, row in enumerate(rows):
            if should_stop():
                raise Stopped
            for j, column in enumerate(columns):
                is_cell = of_quality & (first_fixed == row) & (second_fixed == column)
                n[i, j] = is_cell.sum()
                if n[i, j] >= 2:
                    tau[i, j] = correlate(x[is_cell], value[is_cell]).kendall_c
        maps.append(QualityMap(quality, rows, columns, tau, n))
    return tuple(maps)


def ratio(first: QualityMap, second: QualityMap) -> np.ndarray:
    """[fixed1, fixed2] one method's tau-c by another's, cut to 0.5 … 1.5.

    NaN where the other's is not above 0: a ratio says nothing there.
    """
    cut = np.full(first.kendall_c.shape, np.nan)
    sound = (second.kendall_c > 0) & np.isfinite(first.kendall_c)
    np.divide(first.kendall_c, second.kendall_c, out=cut, where=sound)
    return np.clip(cut, LEAST_RATIO, LARGEST_RATIO)
