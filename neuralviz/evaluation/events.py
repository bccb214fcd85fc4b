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
    from neuralviz.evaluation.probing import Confusion, Probed
    from neuralviz.evaluation.triplets import WorstTriplets
    from neuralviz.maps.neighbourhoods import KnnAccuracy, Outvoted

Bounds = tuple[float, float]
LEAST_RATIO, LARGEST_RATIO = 0.5, 1.5  # as the paper cuts its figures


@dataclass(frozen=True)
class Uniformity:
    """Two sides of a good embedding (Wang & Isola 2020), of all texts or an even sample of them.

    ``alignment`` is the mean squared distance of vectors that should be near, 0 … 4; None where no
    two texts are alike. ``uniformity`` is the logarithm of the mean of ``exp(−2 d²)`` over all
    pairs of different texts, -8 … 0; the lower, the more evenly they are spread.
    """

    alignment: float | None
    uniformity: float
    n_texts: int


@dataclass(frozen=True, eq=False)
class QualityMap:
    """How the product follows one quality, for each pair of values of the two others.

    ``kendall_c`` and ``n``, the number of phrases, are [fixed1, fixed2]; tau-c is NaN where there
    are no two phrases, or all are alike.
    """

    quality: str
    fixed1: np.ndarray
    fixed2: np.ndarray
    kendall_c: np.ndarray
    n: np.ndarray

    def ratio(self, other: QualityMap) -> np.ndarray:
        """[fixed1, fixed2] tau-c by another method's, cut to 0.5 … 1.5.

        NaN where the other's is not above 0: a ratio says nothing there.
        """
        cut = np.full(self.kendall_c.shape, np.nan)
        sound = (other.kendall_c > 0) & np.isfinite(self.kendall_c)
        np.divide(self.kendall_c, other.kendall_c, out=cut, where=sound)
        return np.clip(cut, LEAST_RATIO, LARGEST_RATIO)

    def as_json(self) -> dict[str, Any]:
        return {
            "quality": self.quality,
            "fixed1": self.fixed1.tolist(),
            "fixed2": self.fixed2.tolist(),
            "kendall_c": [[_or_none(value) for value in row] for row in self.kendall_c.tolist()],
            "n": self.n.tolist(),
        }


def finite_mean(values: np.ndarray) -> float:
    """The mean of the finite ones of some values; NaN where there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of one method on one data set; None where it is missing or undefined.

    Attributes:
        worst_triplets: the most broken, their rows places in ``data.texts``.
        outvoted: texts with another label than their neighbours', by place in ``data.texts``.
        confusions: for ``neighbours`` and ``probe``, which labels are taken for which.
        right: for the same, [text with a label] whether its label is told; the same texts for all
            methods.
        failed: measure to why there is none.
        resampled: the coefficients by name, the errors of ``pairs`` and ``triplets``: [resample]
            each, in resamples that are the same for all methods.
        products: [pair] or [phrase] of scored pairs and paraphrases.
        same, diff: products of what is alike and what is not, a sample where there are many.
    """

    correlations: Correlation | None = None
    pairs: BrokenCount | None = None
    triplets: BrokenCount | None = None
    worst_triplets: WorstTriplets | None = None
    neighbours: KnnAccuracy | None = None
    outvoted: tuple[Outvoted, ...] = ()
    probe: Probed | None = None
    confusions: Mapping[str, Confusion] = field(default_factory=dict)
    right: Mapping[str, np.ndarray] = field(default_factory=dict)
    uniformity: Uniformity | None = None
    paraphrases: tuple[QualityMap, ...] = ()
    failed: Mapping[Measure, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    resampled: Mapping[str, np.ndarray] = field(default_factory=dict)
    products: np.ndarray = field(default_factory=lambda: np.zeros(0))
    same: np.ndarray = field(default_factory=lambda: np.zeros(0))
    diff: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def accuracy_of(self, measure: str) -> KnnAccuracy | Probed | None:
        """The share of texts that a measure finds right; None for measures of another kind."""
        return {"neighbours": self.neighbours, "probe": self.probe}.get(measure)

    def interval(self, name: str) -> Bounds | None:
        """The 95% interval of a coefficient, or of the error of a measure; None where unknown."""
        drawn = self.resampled.get(name)
        return None if drawn is None else interval(drawn)

    def as_json(self) -> dict[str, Any]:
        """The numbers by the names that scripts know; None where one is undefined."""
        numbers: dict[str, Any] = {}
        if self.correlations is not None:
            values = asdict(self.correlations)
            names = ("spearman", "kendall_c", "kendall_b", "pearson", "n")
            numbers |= {name: _or_none(values[name]) for name in names}
        if coefficients := [name for name in COEFFICIENTS if name in self.resampled]:
            numbers["intervals"] = {name: self.interval(name) for name in coefficients}
            numbers["intervals"]["resamples"] = len(self.resampled[coefficients[0]])
        for name, counted in (("pairs", self.pairs), ("triplets", self.triplets)):
            if counted is not None:
                numbers[name] = asdict(counted) | {"error": counted.error}
                if bounds := self.interval(name):
                    numbers[name]["interval"] = bounds
        for measure in ("neighbours", "probe"):
            if (share := self.accuracy_of(measure)) is not None:
                confusion = self.confusions.get(measure)
                numbers[measure] = asdict(share) | (confusion.as_json() if confusion else {})
        if self.probe is not None:
            numbers["probe"]["left_out"] = list(self.probe.left_out)  # a tuple is an interval
        if self.uniformity is not None:
            numbers["uniformity"] = asdict(self.uniformity)
        if self.paraphrases:
            numbers["paraphrases"] = [quality_map.as_json() for quality_map in self.paraphrases]
        if self.failed:
            numbers["failed"] = dict(self.failed)
        if self.notes:
            numbers["notes"] = list(self.notes)
        return numbers


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a cell is, or the comparison that follows all cells of a data set.

    Attributes:
        data, row: numbers; the row is None while rows are compared.
        doing: ``embedding``, ``measuring`` or ``comparing``.
        done, total: texts embedded, of all rows that are embedded at once.
        at_once: rows that are embedded in one run, this one among them; empty when it is alone.
    """

    __repr__ = short_repr

    data: int
    row: int | None
    doing: str
    done: int = 0
    total: int = 0
    at_once: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Cell:
    """A row of an experiment on a data set, finished; both are numbers.

    Attributes:
        measured: None when it failed as a whole; ``error`` says why.
        n_rose: texts whose loss rose while they were learnt, or ceased to be a number.
        dim: values of a vector.
    """

    __repr__ = short_repr

    data: int
    row: int
    measured: Measured | None
    error: str = ""
    n_rose: int = 0
    dim: int = 0

    @property
    def failed(self) -> bool:
        """Whether any of what was asked for is missing."""
        return self.measured is None or bool(self.measured.failed)


@dataclass(frozen=True, eq=False)
class Compared:
    """What the rows, by number, break in common on a data set, by measure.

    Attributes:
        failed: measure to why there is no overlap.
        left_out: rows that are finished, and not compared, because there are so many.
    """

    __repr__ = short_repr

    data: int
    rows: tuple[int, ...]
    overlaps: Mapping[Measure, Overlap] = field(default_factory=dict)
    failed: Mapping[Measure, str] = field(default_factory=dict)
    left_out: int = 0


Event = Progress | Cell | Compared
