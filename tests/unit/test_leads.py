"""How far methods are ahead of each other, on the same resamples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuralviz.evaluation.broken import BrokenCount
from neuralviz.evaluation.data import (
    DataSet,
)
from neuralviz.evaluation.events import Cell, Measured
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings, method_rows
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.yardsticks import compute_leads, yardsticks_of
from tests.unit.test_sentences import METHODS, SPREAD, groups, pairs


def counted(name: str, wrong: int, total: int, around: float = 0.0, **more) -> Measured:
    count = BrokenCount(wrong, wrong, total, 0.8, 0.2)
    resampled = {name: wrong / total + around * SPREAD}
    return Measured(**{name: count}, resampled=resampled, **more)


def results(data: DataSet, *measured: Measured | None, resamples: int = 1000) -> Results:
    rows = method_rows(METHODS[: len(measured)], {})
    found = Results(EvaluationPlan((data,), rows, MeasureSettings(resamples=resamples)))
    for at, one in enumerate(measured):
        found = found.having(Cell(0, at, one, error="" if one else "It broke."))
    return found


def test_every_two_methods_are_compared_the_better_one_first() -> None:
    found = results(groups(), *(counted("triplets", n, 528) for n in (30, 10, 20)))
    (by,) = yardsticks_of(found, 0)
    assert [(one.first, one.second) for one in compute_leads(found, 0, by)] == [
        ("sbert-wk", "cls"), ("sbert-wk", "mean"), ("cls", "mean")
    ]  # fmt: skip
    assert all(one.value > 0 for one in compute_leads(found, 0, by))


def test_the_interval_is_of_the_same_resamples() -> None:
    data, settings = pairs(60), MeasureSettings(resamples=300)
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(len(data.texts), 8))
    near = vectors + draw.normal(scale=0.001, size=vectors.shape)
    one, other = (measure(data, each, settings) for each in (vectors, near))
    found = results(data, one, other)
    for by in yardsticks_of(found, 0):
        (lead,) = compute_leads(found, 0, by)
        low, high = by.interval(one)
        assert lead.interval[1] - lead.interval[0] < (high - low) / 5
        alone: Mapping[str, np.ndarray] = one.resampled
        assert len(alone[by.name]) == 300
