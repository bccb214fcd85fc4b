"""Which layer follows human scores best, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from neuralviz.evaluation.bootstrap import bootstrap, interval, paired_interval, seem_reversed
from neuralviz.evaluation.correlation import Correlation, correlate


@dataclass(frozen=True, eq=False)
class MeasuredPooling:
    """A layer, pooling or model on scored pairs: [pair] cosines, scores and `number_pairs`."""

    cosines: np.ndarray  # or predicted scores
    scores: np.ndarray
    numbers: np.ndarray

    @cached_property
    def correlation(self) -> Correlation:
        return correlate(self.cosines, self.scores)


@dataclass(frozen=True)
class BestLayer:
    pooling: str
    layer: int
    value: float
    rival: int | None  # the last layer, or the second best where that is the best
    rival_value: float
    is_last: bool


def best_layer(
    by_layer: Mapping[str, Sequence[MeasuredPooling]], coefficient: str
) -> BestLayer | None:
    """The layer of any pooling that follows the scores best; None if undefined."""
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
    """95% interval of the difference on the same resamples; None with too few pairs."""
    drawn = [resample(measured, coefficient) for measured in (first, second)]
    return paired_interval(*drawn)


def reversed_median(
    by_layer: Mapping[str, Sequence[MeasuredPooling]], coefficient: str
) -> float | None:
    """The median coefficient if scores seem to measure difference, not similarity; else None."""
    # the lowest of many layers may be below 0 by chance; on reversed scores a layer without context
    # can be above 0
    measured = [layer for layers in by_layer.values() for layer in layers]
    values = np.array([getattr(layer.correlation, coefficient) for layer in measured])
    order = np.argsort(values)[: np.isfinite(values).sum()]
    if not len(order):
        return None
    middle = order[len(order) // 2]
    median = float(values[middle])
    if median >= 0 or values[order[-1]] > -median:
        return None
    drawn = resample(measured[middle], coefficient)
    return median if np.isfinite(drawn).any() and seem_reversed([interval(drawn)]) else None


@lru_cache(maxsize=64)  # pages draw the same results again and again
def resample(measured: MeasuredPooling, coefficient: str) -> np.ndarray:
    """[resample] coefficients; empty with too few pairs."""
    cosines, scores = measured.cosines, measured.scores
    drawn = bootstrap(cosines, scores, [coefficient], cluster=measured.numbers)
    return drawn.get(coefficient, np.zeros(0))
