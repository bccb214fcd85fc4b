"""How far methods are ahead of each other by a yardstick, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.yardsticks import MOST_DIGITS
from neuralviz.maps.shares import paired_share_interval

if TYPE_CHECKING:
    from neuralviz.evaluation.measured import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

_LEVEL = 10.0**-MOST_DIGITS / 2  # values that differ by less are written alike, and are level


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another on the same data.

    Attributes:
        first, second: labels of the methods.
        value: by how much the first is better, 0 or more.
        interval: of the value, at 95%, on the same data: of accuracies exact, else by paired
            bootstrap; None where nobody knows.
    """

    first: str
    second: str
    value: float
    interval: tuple[float, float] | None

    @property
    def is_level(self) -> bool:
        """Whether there is no difference to speak of."""
        return abs(self.value) < _LEVEL

    @property
    def is_decided(self) -> bool:
        """Whether the data decide that the first is better: the interval is above 0."""
        return not self.is_level and self.interval is not None and self.interval[0] >= _LEVEL


@dataclass(frozen=True, eq=False)
class RankedMethod:
    """A method with its value by a yardstick."""

    label: str
    value: float
    measured: Measured


def compute_leads(results: Results, data: int, yardstick: Yardstick) -> list[Lead]:
    """How far each method is ahead of each that is not better, the best methods first."""
    ranked = rank_methods(results, data, yardstick)
    return [
        compute_lead(yardstick, first, second)
        for place, first in enumerate(ranked)
        for second in ranked[place + 1 :]
    ]


def rank_methods(results: Results, data: int, yardstick: Yardstick) -> list[RankedMethod]:
    """The methods that have a value, the best first; of equal ones the first asked for."""
    methods = [
        RankedMethod(label, yardstick.read(measured), measured)
        for _, label, measured in results.finished(data)
        if np.isfinite(yardstick.read(measured))
    ]
    return sorted(methods, key=lambda method: -yardstick.sign * method.value)


def compute_lead(yardstick: Yardstick, first: RankedMethod, second: RankedMethod) -> Lead:
    bounds = None
    drawn = [method.measured.resampled.get(yardstick.name) for method in (first, second)]
    if first.measured.accuracy_of(yardstick.measure) is not None:
        hits = first.measured.right(yardstick.measure), second.measured.right(yardstick.measure)
        bounds = paired_share_interval(*hits) if len(hits[0]) == len(hits[1]) > 0 else None
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(yardstick.sign * drawn[0], yardstick.sign * drawn[1])
    return Lead(first.label, second.label, yardstick.sign * (first.value - second.value), bounds)
