"""How near vectors of like texts are, and how evenly all vectors fill the sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError, Stopped, never
from neuralviz.evaluation.broken import unit_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

MAX_TEXTS = 20_000
_ROWS = 1024


@dataclass(frozen=True)
class Uniformity:
    """Two sides of a good embedding (Wang & Isola 2020).

    Attributes:
        alignment: mean squared distance of vectors that should be near, 0 … 4; None where no two
            texts are alike.
        uniformity: logarithm of the mean of ``exp(−2 d²)`` over all pairs of different texts, -8 …
            0; the lower, the more evenly they are spread.
        n_texts: texts whose pairs were taken: all, or the `MAX_TEXTS` of an even sample.
    """

    alignment: float | None
    uniformity: float
    n_texts: int


def alignment_and_uniformity(
    vectors: ArrayLike, alike: np.ndarray, *, seed: int = 0, should_stop: ShouldStop = never
) -> Uniformity:
    """Alignment of pairs that are alike, and uniformity of all texts.

    Args:
        vectors: [text, dim] of different texts, of any length.
        alike: [pair, 2] texts that should be near each other.
        seed: of the sample of texts where there are too many.
        should_stop: asked after every so many texts.

    Raises:
        NeuralvizError: a vector is not finite, or there are fewer than two texts.
        Stopped: ``should_stop`` said so.
    """
    units = unit_rows(vectors)
    if len(units) < 2:
        raise NeuralvizError("Uniformity needs at least two texts.")
    alignment = None
    if len(alike):
        chunks = (alike[start : start + _ROWS] for start in range(0, len(alike), _ROWS))
        squares = (np.square(units[c[:, 0]] - units[c[:, 1]]).sum() for c in chunks)
        alignment = float(sum(squares) / len(alike))
    if len(units) > MAX_TEXTS:
        units = units[np.random.default_rng(seed).choice(len(units), MAX_TEXTS, replace=False)]
    n, total = len(units), 0.0
    for start in range(0, n, _ROWS):
        if should_stop():
            raise Stopped
        products = units[start : start + _ROWS] @ units.T
        total += float(np.exp(4 * products - 4).sum())  # d² = 2 − 2 x·y of unit vectors
    total -= float(np.exp(4 * np.square(units).sum(axis=1) - 4).sum())
    return Uniformity(alignment, float(np.log(total / (n * (n - 1)))), n)
