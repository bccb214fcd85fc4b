"""What an evaluation yields: progress, finished cells with what was measured, shared errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.evaluation.bootstrap import interval
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.evaluation.bootstrap import Intervals
    from neuralviz.evaluation.broken import BrokenCount, Overlap
    from neuralviz.evaluation.correlation import Correlation
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.paraphrases import QualityMap
    from neuralviz.evaluation.probed import Confusion, Probed
    from neuralviz.evaluation.triplets import WorstTriplets
    from neuralviz.evaluation.uniformity import Uniformity
    from neuralviz.maps.neighbourhoods import KnnAccuracy, Outvoted


def _empty() -> np.ndarray:
    return np.zeros(0)


def _no_hits() -> np.ndarray:
    return np.zeros(0, dtype=bool)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of one method on one data set; None where it is missing or undefined.

    Attributes:
        worst_triplets: the most broken, their rows places in ``data.texts``.
        hits: [text with a label] whether its nearest neighbours vote for its own label, the same
            texts for all methods.
        votes: which labels the nearest neighbours vote for.
        told: [text that the probe was asked for] whether it is right.
        outvoted: texts with another label than their neighbours', by place in ``data.texts``.
        failed: measure to why there is none.
        resampled: the coefficients by name, the errors of ``pairs`` and ``triplets``: [resample]
            each, in resamples that are the same for all methods.
        products: [pair] or [phrase] of scored pairs and paraphrases.
        same, diff: products of what is alike and what is not, a sample where there are many.
    """

    correlations: Correlation | None = None
    intervals: Intervals | None = None
    pairs: BrokenCount | None = None
    triplets: BrokenCount | None = None
    worst_triplets: WorstTriplets | None = None
    neighbours: KnnAccuracy | None = None
    hits: np.ndarray = field(default_factory=_no_hits)
    votes: Confusion | None = None
    outvoted: tuple[Outvoted, ...] = ()
    probe: Probed | None = None
    told: np.ndarray = field(default_factory=_no_hits)
    uniformity: Uniformity | None = None
    paraphrases: tuple[QualityMap, ...] = ()
    failed: dict[Measure, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    resampled: Mapping[str, np.ndarray] = field(default_factory=dict)
    products: np.ndarray = field(default_factory=_empty)
    same: np.ndarray = field(default_factory=_empty)
    diff: np.ndarray = field(default_factory=_empty)

    def accuracy_of(self, measure: str) -> KnnAccuracy | Probed | None:
        """The share of texts that a measure finds right; None for measures of another kind."""
        return {"neighbours": self.neighbours, "probe": self.probe}.get(measure)

    def confusion_of(self, measure: str) -> Confusion | None:
        """Which labels a measure takes for which; None where that is not known."""
        probed = None if self.probe is None else self.probe.confusion
        return {"neighbours": self.votes, "probe": probed}.get(measure)

    def right(self, measure: str) -> np.ndarray:
        """[text with a label] whether it is right by a measure; empty where nobody knows."""
        return {"neighbours": self.hits, "probe": self.told}.get(measure, _no_hits())

    def as_json(self) -> dict[str, Any]:
        """The numbers by the names that scripts know; None where one is undefined."""
        numbers: dict[str, Any] = {}
        if self.correlations is not None:
            values = asdict(self.correlations)
            names = ("spearman", "kendall_c", "kendall_b", "pearson", "n")
            numbers |= {name: _or_none(values[name]) for name in names}
        if self.intervals is not None:
            numbers["intervals"] = asdict(self.intervals)
        for name, counted in (("pairs", self.pairs), ("triplets", self.triplets)):
            if counted is not None:
                numbers[name] = asdict(counted) | {"error": counted.error}
                if name in self.resampled:
                    numbers[name]["interval"] = interval(self.resampled[name])
        if self.neighbours is not None:
            numbers["neighbours"] = asdict(self.neighbours)
        if self.probe is not None:
            numbers["probe"] = asdict(replace(self.probe, confusion=None))
            numbers["probe"] |= {"left_out": list(self.probe.left_out)}
        for measure in ("neighbours", "probe"):
            confusion = self.confusion_of(measure)
            if confusion is not None:
                numbers[measure] |= confusion.as_json()
        if self.uniformity is not None:
            numbers["uniformity"] = asdict(self.uniformity)
        if self.paraphrases:
            numbers["paraphrases"] = [_map_json(quality_map) for quality_map in self.paraphrases]
        if self.failed:
            numbers["failed"] = dict(self.failed)
        if self.notes:
            numbers["notes"] = list(self.notes)
        return numbers


def _map_json(quality_map: QualityMap) -> dict[str, Any]:
    taus = quality_map.kendall_c.tolist()
    return {
        "quality": quality_map.quality,
        "fixed1": quality_map.fixed1.tolist(),
        "fixed2": quality_map.fixed2.tolist(),
        "kendall_c": [[_or_none(value) for value in row] for row in taus],
        "n": quality_map.n.tolist(),
    }


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
    """A row of an experiment on a data set, finished.

    Attributes:
        data, row: numbers.
        measured: None when it failed as a whole.
        error: why it failed; empty when it did not.
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
    """What the rows break in common on a data set, by measure.

    Attributes:
        rows: numbers, in the order of the matrices.
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
