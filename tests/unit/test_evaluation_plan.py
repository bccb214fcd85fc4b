"""An evaluation as a value, and what it tells while it goes on and when it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import Stopped
from neuralviz.evaluation import EvaluationPlan, Progress, Results, evaluate, method_rows
from neuralviz.evaluation.data import GroupedData, ParaphraseData, grouped_data
from neuralviz.evaluation.measures import (
    alignment_and_uniformity,
    kept_vectors,
    measure,
    quality_maps,
)
from neuralviz.evaluation.results import Cell, Compared, Event, MeasureSettings


@pytest.fixture
def data() -> GroupedData:
    texts = [f"The {word} {i} left." for i in range(4) for word in ("dog", "boat", "king")]
    return grouped_data("g.csv", texts, [str(i % 3) for i in range(12)])


@pytest.fixture
def plan(data: GroupedData) -> EvaluationPlan:
    return EvaluationPlan((data,), method_rows(["mean", "cls"], {}, "tiny"))


def told_after(n: int) -> Callable[[], bool]:
    """Says to stop when it is asked once more than ``n`` times."""
    asked = iter(range(n))
    return lambda: next(asked, None) is None


def test_plans_are_equal_when_all_that_counts_is() -> None:
    def make(method="mean", label="x", name="d", **settings) -> EvaluationPlan:
        one = grouped_data(name, list("abcd"), ["x", label, "y", "y"])
        return EvaluationPlan((one,), method_rows([method], {}), MeasureSettings(**settings))

    others = [make("cls"), make(label="z"), make(name="e")]
    others += [make(measures=("triplets",)), make(k=3), make(resamples=0), make(seed=1)]
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != "a plan"
    assert len({make(), *others}) == 1 + len(others)


def test_results_are_folded_from_the_events(plan: EvaluationPlan, tiny, tmp_path: Path) -> None:
    events = list(evaluate(plan, kept_vectors(tmp_path), loaders={"text": lambda _id: tiny}))
    cells = [event for event in events if isinstance(event, Cell)]
    assert [cell.row for cell in cells] == [0, 1]
    assert isinstance(events[-1], Compared)
    results = Results(plan)
    for event in events:
        if not isinstance(event, Progress):
            results = results.having(event)
    assert set(results.cells) == {(0, 0), (0, 1)}
    assert set(results.compared) == {0}
    assert not results.any_failed
    assert Results(plan).having(Cell(0, 0, None, error="no model")).any_failed


def test_the_seed_is_of_what_is_drawn(data: GroupedData) -> None:
    group = np.arange(600) // 2
    many = grouped_data("many.csv", [f"t{i}" for i in range(600)], [str(g) for g in group])
    vectors = np.random.default_rng(0).normal(size=(600, 4))
    settings = [MeasureSettings(("uniformity",), seed=seed) for seed in (0, 0, 1)]
    first, again, other = (measure(many, vectors, one).diff for one in settings)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n", [0, 1, 2, 4, 8, 11])
def test_it_ends_by_saying_that_it_was_stopped_or_with_everything(plan, tiny, tmp_path, n) -> None:
    seen: list[Event] = []
    loaders = {"text": lambda _id: tiny}
    with pytest.raises(Stopped):
        for event in evaluate(
            plan, kept_vectors(tmp_path), loaders=loaders, should_stop=told_after(n)
        ):
            seen.append(event)
    assert not any(isinstance(event, Compared) for event in seen)
    again = list(evaluate(plan, kept_vectors(tmp_path), loaders=loaders))
    assert len([event for event in again if isinstance(event, Cell)]) == plan.n_cells


def test_measures_that_take_long_can_be_stopped() -> None:
    numbers = np.array([0.1, 0.2])
    data = ParaphraseData("d", (), numbers, numbers, ("form",) * 2, *[numbers] * 3)
    with pytest.raises(Stopped):
        alignment_and_uniformity(np.eye(4), np.array([[0, 1]]), should_stop=told_after(0))
    with pytest.raises(Stopped):
        quality_maps(numbers, data, should_stop=told_after(0))
