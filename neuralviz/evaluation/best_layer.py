"""Which layer follows human scores best, in a sentence, and whether the pairs decide that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.bootstrap import (
    bootstrap,
    bootstrap_spearman,
    interval,
    paired_interval,
    seem_reversed,
)
from neuralviz.evaluation.correlation import REVERSE, Correlation, correlate
from neuralviz.layers.settings import POOLING_NAMES
from neuralviz.words import many, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEST_OF_ALL = "The best of all layers on these pairs looks a little better than it is on others."
AS_MUCH = 0.005  # coefficients that differ by less look alike with two digits
_NOTHING = np.zeros(0)


@dataclass(frozen=True, eq=False)
class MeasuredPooling:
    """A layer or another pooling, measured on scored pairs.

    Attributes:
        cosines: [pair] of the vectors of the two sentences; 0 with a vector of zeros.
        scores: [pair] by people.
        numbers: [pair] as of `number_pairs`.
    """

    cosines: np.ndarray
    scores: np.ndarray
    numbers: np.ndarray

    @cached_property
    def correlation(self) -> Correlation:
        """Correlation of the cosines with the scores."""
        return correlate(self.cosines, self.scores)


@dataclass(frozen=True)
class BestLayer:
    """The layer with the highest coefficient, and the one that it is compared with.

    Attributes:
        pooling: of both.
        layer, value: the best one, and its coefficient.
        rival, rival_value: the last layer, or the second best where the last one is the best; None
            where there is no other.
        is_last: whether the best one is the last.
    """

    pooling: str
    layer: int
    value: float
    rival: int | None
    rival_value: float
    is_last: bool


def best_layer(
    by_layer: Mapping[str, Sequence[MeasuredPooling]], coefficient: str
) -> BestLayer | None:
    """The layer that follows the scores best; None where the coefficient is undefined for all.

    Args:
        by_layer: for each pooling, its layers, as of `LayerPairs`.
        coefficient: one of `COEFFICIENTS`.
    """
    values = {
        (pooling, layer): float(getattr(measured.correlation, coefficient))
        for pooling, layers in by_layer.items()
        for layer, measured in enumerate(layers)
    }
    finite = {place: value for place, value in values.items() if np.isfinite(value)}
    if not finite:
        return None
    (pooling, layer), value = max(finite.items(), key=lambda entry: entry[1])
    last = len(by_layer[pooling]) - 1
    rivals = {
        other_layer: v
        for (name, other_layer), v in finite.items()
        if name == pooling and other_layer != layer
    }
    rival = last if last in rivals else max(rivals, key=rivals.__getitem__, default=None)
    rival_value = rivals[rival] if rival is not None else float("nan")
    return BestLayer(pooling, layer, value, rival, rival_value, layer == last)


def interval_of_difference(
    first: MeasuredPooling, second: MeasuredPooling, coefficient: str
) -> tuple[float, float] | None:
    """95% bootstrap interval of the difference of two coefficients on the same pairs.

    Both are measured on the same resamples of the pairs. None where one is undefined or there are
    too few pairs.
    """
    drawn = [_resampled(measured, coefficient) for measured in (first, second)]
    return paired_interval(*drawn) if all(map(len, drawn)) else None


def reversed_median(
    by_layer: Mapping[str, Sequence[MeasuredPooling]], coefficient: str
) -> float | None:
    """The median coefficient where scores seem to say how different texts are; None elsewhere.

    The lowest of many layers may be below 0 by chance; the median has to be that clearly, and
    farther from 0 than the highest: on reversed scores a layer without context can be above 0.

    Args:
        by_layer, coefficient: as of `best_layer`.
    """
    defined = [
        (value, index, measured)
        for index, measured in enumerate(
            pooling_layer for layers in by_layer.values() for pooling_layer in layers
        )
        if np.isfinite(value := float(getattr(measured.correlation, coefficient)))
    ]
    if not defined:
        return None
    ordered = sorted(defined)
    median, _, middle = ordered[len(ordered) // 2]
    if median >= 0 or ordered[-1][0] > -median:
        return None
    drawn = _resampled(middle, coefficient)
    return median if np.isfinite(drawn).any() and seem_reversed([interval(drawn)]) else None


def _resampled(measured: MeasuredPooling, coefficient: str) -> np.ndarray:
    """[resample] a coefficient; empty as of `bootstrap`."""
    if coefficient == "spearman":
        return bootstrap_spearman(measured.cosines, measured.scores, cluster=measured.numbers)
    return bootstrap(measured.cosines, measured.scores, cluster=measured.numbers).get(
        coefficient, _NOTHING
    )


def best_layer_in_words(
    best: BestLayer | None,
    name: str,
    n_pairs: int,
    bounds: tuple[float, float] | None,
    median: float | None = None,
) -> str:
    """Which layer follows the scores best, and whether that is decided; then its pooling.

    Args:
        best: of `best_layer`.
        name: of the coefficient.
        n_pairs: that were measured.
        bounds: of `interval_of_difference`; without, nothing is said of what the pairs decide.
        median: of `reversed_median`.
    """
    if best is None:
        return f"{name} is undefined for every layer on {many(n_pairs, 'pair')}."
    value, rival = number(best.value, ".2f"), number(best.rival_value, ".2f")
    pooling_sentence = f"The pooling is {POOLING_NAMES[best.pooling]}."
    if median is not None or best.value <= -AS_MUCH:
        sentence = (
            f"No layer agrees with the human scores: the highest {name} is {value}, at layer "
            f"{best.layer}"
        )
        if median is None:
            return f"{sentence}.\n\n{pooling_sentence}"
        return f"{sentence}; the median, {number(median, '.2f')}, is clearly below 0. {REVERSE}"
    subject = f"The last layer, {best.layer}," if best.is_last else f"Layer {best.layer}"
    sentence = f"{subject} agrees best with the human scores: {name} {value}"
    if best.rival is None:
        return f"{sentence}.\n\n{pooling_sentence}"
    behind = f"layer {best.rival}" if best.is_last else "the last layer"
    sentence += f", against {rival} for {behind}."
    if bounds is None:
        return f"{sentence}\n\n{pooling_sentence}"
    low, high = (number(bound, "+.2f") for bound in bounds)
    sentence += (
        f" But {many(n_pairs, 'pair')} do not decide between the two."
        if bounds[0] <= 0 <= bounds[1]
        else f" These {n_pairs:,} pairs decide it."
    )
    return (
        f"{sentence}\n\n{pooling_sentence} The 95% interval of the difference is {low} to {high}."
    )


def parts_in_words(
    whole: float, plain: float, name: str, bounds: tuple[float, float] | None
) -> str:
    """Whether SBERT-WK agrees with the scores better than the mean of the last layer.

    Args:
        whole, plain: their coefficients on the same pairs.
        name: of the coefficient.
        bounds: of their difference, as of `interval_of_difference`.
    """
    if not np.isfinite([whole, plain]).all() or bounds is None:
        return ""
    values = f"{name} {number(whole, '.2f')} against {number(plain, '.2f')}"
    low, high = (number(bound, "+.2f") for bound in bounds)
    interval_sentence = f"The 95% interval of the difference is {low} to {high}."
    if bounds[0] <= 0 <= bounds[1]:
        return (
            "These pairs do not decide whether SBERT-WK is better than the plain mean of the last "
            f"layer: {values}.\n\n{interval_sentence}"
        )
    better = "better" if whole > plain else "less well"
    return (
        f"SBERT-WK agrees with the human scores {better} than the plain mean of the last layer: "
        f"{values}.\n\n{interval_sentence}"
    )


def settings_in_words(windows: Sequence[float], starts: Sequence[float], name: str) -> str:
    """Which of SBERT-WK's settings its agreement with the scores depends on; then how far.

    Args:
        windows, starts: its coefficients with other layer windows, and with other first layers.
        name: of the coefficient.
    """
    if not np.isfinite([*windows, *starts]).all():
        return ""
    by_window, by_start = (
        f"{number(min(values), '.2f')} to {number(max(values), '.2f')}"
        for values in (windows, starts)
    )
    of_start, of_window = float(np.ptp(starts)), float(np.ptp(windows))
    difference = of_start - of_window
    sentence = "The first layer and the layer window matter about equally."
    if max(of_start, of_window) < AS_MUCH:
        sentence = "Neither the first layer nor the layer window matters here."
    elif abs(difference) >= AS_MUCH:
        first, second = "first layer", "layer window"
        stronger, weaker = (first, second) if difference > 0 else (second, first)
        sentence = f"The {stronger} matters more than the {weaker}."
    return (
        f"{sentence}\n\nSBERT-WK's {name} is {by_start} with other first layers, {by_window} with "
        "other layer windows."
    )
