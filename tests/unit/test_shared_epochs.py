"""One run of micro-tuning for several numbers of epochs: what it comes to, and where it is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders import NeuralEmbedder
from neuralviz.embedders.neural import share_epochs
from neuralviz.errors import SettingsError
from neuralviz.evaluation.data import GroupedData, grouped_data
from neuralviz.evaluation.measures import evaluate, kept_vectors
from neuralviz.evaluation.results import Cell, EvaluationPlan, Event, MeasureSettings, Progress
from neuralviz.evaluation.rows import Row, experiment_rows, method_rows
from neuralviz.micro_tuning import loop
from neuralviz.micro_tuning.loop import learn, learn_by_epoch
from neuralviz.micro_tuning.settings import check_settings
from neuralviz.models import LanguageModel, tokenize

LONG = "The red boat left the old harbour before the rain. " * 12  # several chunks
TEXTS = ["A dog runs.", LONG, "Rain falls on the old boat.", "Yes", "The dog sleeps by the fire."]


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """The epochs of every run of micro-tuning that is made."""
    made: list[int] = []
    make = loop.TuningRun.__init__

    def counted(self, model, texts, settings, **options) -> None:
        made.append(settings.epochs)
        make(self, model, texts, settings, **options)

    monkeypatch.setattr(loop.TuningRun, "__init__", counted)
    return made


@pytest.fixture
def data() -> GroupedData:
    texts = [f"The {word} {i} left." for i in range(3) for word in ("dog", "boat", "rain", "king")]
    return grouped_data("g.csv", texts, [str(i % 4) for i in range(12)])


def loaders(model: LanguageModel) -> dict:
    return {"masked": lambda _id: model}


def table(*epochs: str, **options: str) -> tuple[Row, ...]:
    """Rows of a table by epochs."""
    rows = experiment_rows("epochs", options, "tiny")
    return tuple(
        row for row in rows if dict(row.spec.options).get("epochs", 10) in map(int, epochs)
    )


def plan_of(data: GroupedData, *rows: Row) -> EvaluationPlan:
    return EvaluationPlan((data,), rows, MeasureSettings(resamples=0))


def cells(events: list[Event]) -> list[Cell]:
    return [event for event in events if isinstance(event, Cell)]


@pytest.mark.parametrize("rate", [0.01, 1e6])  # the second one diverges
def test_what_a_run_passes_is_what_a_shorter_one_comes_to(tiny: LanguageModel, rate: float) -> None:
    read = tokenize(tiny, TEXTS)
    settings = {n: check_settings(tiny, epochs=n, learning_rate=rate) for n in (1, 3, 4)}
    found = learn_by_epoch(tiny, read, settings[4], [1, 3, 4])
    assert list(found) == [1, 3, 4]
    for n, result in found.items():
        alone = learn(tiny, read, settings[n])
        assert result.settings == alone.settings
        for ours, theirs in zip(result.deltas, alone.deltas, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for name in ("loss", "delta_norm", "diverged"):
            np.testing.assert_array_equal(getattr(result, name), getattr(alone, name))


@pytest.mark.parametrize(
    ("precision", "epochs"),
    [("exact", [0, 4]), ("exact", [5]), ("fast", [2, 4]), ("fast+bf16", [1])],
)
def test_epochs_that_no_run_passes_are_refused(tiny: LanguageModel, precision, epochs) -> None:
    settings = check_settings(tiny, epochs=4, precision=precision)
    with pytest.raises(SettingsError, match="gives no result for"):
        learn_by_epoch(tiny, tokenize(tiny, ["A dog."]), settings, epochs)


def test_embedders_share_a_run_whoever_is_asked_first(tiny: LanguageModel, runs) -> None:
    alone = {n: NeuralEmbedder(tiny, epochs=n).encode(TEXTS) for n in (2, 5, 3)}
    runs.clear()
    together = [NeuralEmbedder(tiny, epochs=n) for n in (2, 5, 3)]
    share_epochs(together)
    for embedder in together:
        np.testing.assert_array_equal(embedder.encode(TEXTS), alone[embedder.settings.epochs])
    assert set(runs) == {5}
    made = len(runs)
    again = together[0].encode(TEXTS)  # what was asked for is not kept: it is learnt anew
    np.testing.assert_array_equal(again, alone[2])
    assert len(runs) == 2 * made
    other = together[1].encode(["Another text."])
    np.testing.assert_array_equal(other, NeuralEmbedder(tiny, epochs=5).encode(["Another text."]))


def test_embedders_that_differ_by_more_share_nothing(tiny: LanguageModel, small_model) -> None:
    one = NeuralEmbedder(tiny, epochs=2)
    for other in (
        NeuralEmbedder(tiny, epochs=3, learning_rate=0.02),
        NeuralEmbedder(tiny, epochs=3, precision="bf16"),
        NeuralEmbedder(small_model("roberta"), epochs=3),
    ):
        with pytest.raises(SettingsError, match="nothing but their epochs"):
            share_epochs([one, other])
    fast = [NeuralEmbedder(tiny, epochs=n, precision="fast") for n in (2, 3)]
    with pytest.raises(SettingsError, match="not fast"):
        share_epochs(fast)


def test_a_table_by_epochs_takes_one_run(tiny: LanguageModel, data, runs, tmp_path: Path) -> None:
    rows = (*table("2", "4", "10"), *method_rows(["neural"], {"layers": "last_block"}, "tiny"))
    plan, kept = plan_of(data, *rows), kept_vectors(tmp_path / "a")
    events = list(evaluate(plan, kept, loaders=loaders(tiny)))
    assert set(runs) == {10}
    assert [cell.row for cell in cells(events)] == [0, 1, 2, 3]
    shared = [event for event in events if isinstance(event, Progress) and event.at_once]
    assert {event.at_once for event in shared} == {(0, 1, 2)}
    assert [event.done for event in shared] == sorted(event.done for event in shared)
    assert shared[-1].done == shared[-1].total == 3 * len(data.texts)
    for at, row in enumerate(rows):
        runs.clear()
        plan, kept = plan_of(data, row), kept_vectors(tmp_path / str(at))
        (alone,) = cells(list(evaluate(plan, kept, loaders=loaders(tiny))))
        np.testing.assert_array_equal(alone.measured.same, cells(events)[at].measured.same)
        assert alone.measured.triplets == cells(events)[at].measured.triplets
