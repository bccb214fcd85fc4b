"""What an evaluation yields: progress, finished cells with what was measured, shared errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.evaluation.bootstrap import interval
from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.evaluation.broken import BrokenCount, Overlap
    from neuralviz.evaluation.correlation import Correlation
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.probing import Accuracy, Confusion
    from neuralviz.evaluation.triplets import WorstTriplets
    from neuralviz.maps.neighbours import Outvoted

Bounds = tuple[float, float]
LEAST_RATIO, LARGEST_RATIO = 0.5, 1.5  # as the paper cuts its figures


@dataclass(frozen=True)
class Uniformity:
    """Two sides of a good embedding (Wang & Isola 2020), of all texts or an even sample of them."""

    alignment: float | None  # 0 … 4 mean squared distance of alike texts; None where none are
    uniformity: float  # -8 … 0 log of the mean of exp(-2 d²); lower where texts are spread evenly
    n_texts: int


@dataclass(frozen=True, eq=False)
class QualityMap:
    """How the product follows one quality, for each pair of values of the two others."""

    quality: str
    fixed1: np.ndarray
    fixed2: np.ndarray
    kendall_c: np.ndarray  # [fixed1, fixed2]; NaN where there are no two phrases, or all are alike
    n: np.ndarray  # [fixed1, fixed2] phrases

    def ratio(self, other: QualityMap) -> np.ndarray:
        """[fixed1, fixed2] tau-c by another method's, cut to 0.5 … 1.5; NaN where that is ≤ 0."""
        cut = np.full(self.kendall_c.shape, np.nan)
        sound = (other.kendall_c > 0) & np.isfinite(self.kendall_c)
        np.divide(self.kendall_c, other.kendall_c, out=cut, where=sound)
        return np.clip(cut, LEAST_RATIO, LARGEST_RATIO)

    def as_json(self) -> dict[str, Any]:
        values = {name: np.asarray(value).tolist() for name, value in vars(self).items()}
        values["kendall_c"] = [[none_if_nan(tau) for tau in row] for row in values["kendall_c"]]
        return values


def finite_mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else value


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of one method on one data set; None where missing or undefined."""

    correlations: Correlation | None = None
    pairs: BrokenCount | None = None
    triplets: BrokenCount | None = None
    worst_triplets: WorstTriplets | None = None  # rows are places in ``data.texts``
    neighbours: Accuracy | None = None
    outvoted: tuple[Outvoted, ...] = ()  # texts of another label than their neighbours', by place
    probe: Accuracy | None = None
    uniformity: Uniformity | None = None
    paraphrases: tuple[QualityMap, ...] = ()
    failed: Mapping[Measure, str] = field(default_factory=dict)  # why there is none
    notes: tuple[str, ...] = ()
    # [resample] coefficients by name, and errors of pairs and triplets, alike for all methods
    resampled: Mapping[str, np.ndarray] = field(default_factory=dict)
    products: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [pair] or [phrase]
    # products of what is alike and what is not, a sample where there are many
    same: np.ndarray = field(default_factory=lambda: np.zeros(0))
    diff: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def accuracies(self) -> dict[str, Accuracy]:
        both = {"neighbours": self.neighbours, "probe": self.probe}
        return {name: accuracy for name, accuracy in both.items() if accuracy is not None}

    @property
    def confusions(self) -> dict[str, Confusion]:
        return {
            name: accuracy.confusion
            for name, accuracy in self.accuracies.items()
            if accuracy.confusion
        }

    def interval(self, name: str) -> Bounds | None:
        """95% interval of a coefficient, error or accuracy; None if unknown."""
        if name in self.accuracies:
            return self.accuracies[name].interval
        drawn = self.resampled.get(name)
        return None if drawn is None else interval(drawn)

    def as_json(self) -> dict[str, Any]:
        """The numbers by the names that scripts know; None where one is undefined."""
        numbers: dict[str, Any] = {}
        if self.correlations is not None:
            for name in (*COEFFICIENTS, "n"):
                numbers[name] = none_if_nan(getattr(self.correlations, name))
        if coefficients := [name for name in COEFFICIENTS if name in self.resampled]:
            numbers["intervals"] = {name: self.interval(name) for name in coefficients}
            numbers["intervals"]["resamples"] = len(self.resampled[coefficients[0]])
        for name, counted in (("pairs", self.pairs), ("triplets", self.triplets)):
            if counted is not None:
                numbers[name] = asdict(counted) | {"error": counted.error}
                if bounds := self.interval(name):
                    numbers[name]["interval"] = bounds
        numbers |= {name: accuracy.as_json() for name, accuracy in self.accuracies.items()}
        if self.uniformity is not None:
            numbers["uniformity"] = asdict(self.uniformity)
        rest = {
            "paraphrases": [quality_map.as_json() for quality_map in self.paraphrases],
            "failed": dict(self.failed),
            "notes": list(self.notes),
        }
        return numbers | {name: value for name, value in rest.items() if value}


@dataclass(frozen=True, eq=False)
class Progress:
    """Progress of a cell, or of the comparison after all cells of a data set."""

    __repr__ = short_repr

    data: int  # number of the data set
    row: int | None  # its number; None while rows are compared
    doing: str  # ``embedding``, ``measuring`` or ``comparing``
    done: int = 0  # texts embedded, of all rows that are embedded at once
    total: int = 0
    at_once: tuple[int, ...] = ()  # rows that are embedded in one run, if several


@dataclass(frozen=True, eq=False)
class Cell:
    """A finished row on a data set, both by number."""

    __repr__ = short_repr

    data: int
    row: int
    measured: Measured | None  # None when it failed as a whole; ``error`` says why
    error: str = ""
    n_rose: int = 0  # texts whose loss rose while they were learnt, or ceased to be a number
    dim: int = 0  # of the vectors

    @property
    def failed(self) -> bool:
        return self.measured is None or bool(self.measured.failed)


@dataclass(frozen=True, eq=False)
class Compared:
    """What the rows, by number, break in common on a data set, by measure."""

    __repr__ = short_repr

    data: int
    rows: tuple[int, ...]
    overlaps: Mapping[Measure, Overlap] = field(default_factory=dict)
    failed: Mapping[Measure, str] = field(default_factory=dict)  # why there is no overlap
    left_out: int = 0  # rows that are finished, and not compared, because there are so many


Event = Progress | Cell | Compared
