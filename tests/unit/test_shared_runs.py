"""Runs that several people watch: together they come to what each would come to alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from neuralviz.errors import ShouldStop, Stopped, never
from neuralviz.jobs import Run, RunQueue
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning import TuningSettings, check_settings
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.watching import BATCH, WatchedEvent, go_together, watch, watch_together
from neuralviz.models import LanguageModel
from neuralviz.models.shared import ModelRef, shared_model
from neuralviz.models.tokens import tokenize
from neuralviz.ui import runs as session_runs
from neuralviz.ui.runs import SessionRuns, is_of_others
from tests.support.tasks import WaitForStop, submit

WATCHERS = (
    ("The old boat left.", "Rain falls."),
    ("Yes",),
    ("A lamp in the harbour burns all night.",),
)
EPOCHS = 3


def settings_of(model: LanguageModel, **options) -> TuningSettings:
    return check_settings(model, epochs=EPOCHS, **options)


def alone(model: LanguageModel, texts: Sequence[str], settings: TuningSettings) -> RunRecord:
    record = RunRecord(model.id, settings, tuple(texts))
    return record.having(list(watch(model, texts, settings)))


def together(
    model: LanguageModel,
    settings: TuningSettings,
    should_stop: Sequence[ShouldStop] = (never,) * len(WATCHERS),
) -> tuple[list[RunRecord], list[list[WatchedEvent]]]:
    """The record of each, and the events; every one of them is told once that it is over."""
    texts = [tokenize(model, of_one) for of_one in WATCHERS]
    events: list[list[WatchedEvent]] = [[] for _ in WATCHERS]
    over = []
    for step in watch_together(model, texts, settings, should_stop):
        for number, event in step:
            assert number not in over
            if event is None or isinstance(event, Stopped):
                over.append(number)
            else:
                events[number].append(event)
    assert sorted(over) == [0, 1, 2]
    records = [
        RunRecord(model.id, settings, of_one).having(found)
        for of_one, found in zip(WATCHERS, events, strict=True)
    ]
    return records, events


@pytest.mark.parametrize("parts", [("head",), ("embeddings", "block", "head")])
def test_each_watcher_sees_the_numbers_of_a_run_alone(tiny, parts):
    layers = tuple(  # a key's bias has no gradient: what moves it are the last digits
        layer.name
        for layer in tiny.layers
        if layer.part in parts and layer.size < tiny.vocab_size and "key" not in layer.name
    )
    settings = settings_of(tiny, layers=layers)
    records, _ = together(tiny, settings)
    for record, texts in zip(records, WATCHERS, strict=True):
        expected = alone(tiny, texts, settings)
        cosines = np.einsum("td,td->t", record.embeddings(), expected.embeddings())
        assert (cosines >= 0.99999).all()
        np.testing.assert_allclose(record.loss, expected.loss, rtol=1e-5)
        np.testing.assert_allclose(record.delta_norm, expected.delta_norm, rtol=1e-4)
        assert record.progress == 1.0
        for index in range(len(texts)):
            found, like = record.reports[index], expected.reports[index]
            assert (found.shares is None) == (like.shares is None)
            np.testing.assert_allclose(found.after.probability, like.after.probability, rtol=1e-4)
            if like.shares is not None:
                # which last digits decide, where a neuron hardly moves
                np.testing.assert_allclose(found.shares, like.shares, rtol=0.02, atol=0.02)


def test_who_leaves_hears_no_more_and_the_others_are_not_disturbed(tiny: LanguageModel) -> None:
    settings = settings_of(tiny)
    asked = []

    def leaves_after_a_step() -> bool:
        asked.append(True)
        return len(asked) > 3

    records, events = together(tiny, settings, (never, leaves_after_a_step, never))
    assert 1 <= len(events[1]) < EPOCHS + 1
    assert records[0].progress == records[2].progress == 1.0
    expected = alone(tiny, WATCHERS[2], settings)
    np.testing.assert_allclose(records[2].loss, expected.loss, rtol=1e-5)


def test_who_goes_together(tiny: LanguageModel) -> None:
    """One batch holds so many texts; a text in two chunks goes with them; many go alone."""
    short = tokenize(tiny, ["The boat."])
    long = tokenize(tiny, ["boat " * 20])
    many = tokenize(tiny, ["The boat."] * (BATCH + 1))
    assert len(long[0].chunks) == 2
    settings = settings_of(tiny)
    assert go_together(tiny, [short, long, short, many], settings) == [[0, 1, 2]]
    crowd = go_together(tiny, [short] * (BATCH + 3), settings)
    assert [len(group) for group in crowd] == [BATCH, 3]


def test_runs_that_arrive_together_end_each_in_its_own_way(tiny, bert_folder):
    """One is stopped, one has no words, and those of several batches are tuned on alone."""
    model, settings = ModelRef.from_id(str(bert_folder)), settings_of(tiny)
    long = ("ab " * 660,)
    texts = [("Rain.",), ("",), ("A boat.", "A lamp."), long, ("Stopped.",)]
    runs = [Run(TuneTexts(model, each, settings)) for each in texts]
    runs[4].should_stop = lambda: True
    network = shared_model(model.id).network
    before = {name: weights.clone() for name, weights in network.state_dict().items()}
    threads = [threading.Thread(target=run.carry_out) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    empty = "The text is empty. It must contain at least one word."
    assert [run.error for run in runs] == [None, empty, None, None, None]
    for run, each in zip(runs[:4], texts, strict=False):
        if run.error is None:
            np.testing.assert_allclose(run.result.loss, alone(tiny, each, settings).loss, rtol=1e-5)
    assert runs[4].result.progress < 1
    after = network.state_dict()
    assert all(torch.equal(weights, after[name]) for name, weights in before.items())


def test_few_short_texts_are_shared_and_a_long_list_is_not(tiny: LanguageModel) -> None:
    model, settings = ModelRef("any", None), settings_of(tiny)
    long = (("Rain.",) * 17, "long"), (("Rain. " * 400,), "long")
    for texts, lane in ((("Rain.",), "shared"), *long):
        assert TuneTexts(model, texts, settings).lane == lane


def test_ones_own_run_is_never_met_as_somebody_elses(monkeypatch) -> None:
    queue = RunQueue(max_running=2)
    own, others = (submit(queue, WaitForStop(n), owner=n * "another") for n in range(2))
    session = SimpleNamespace(session_state={"maps-runs": [own]}, query_params={})
    monkeypatch.setattr(session_runs, "st", session)
    monkeypatch.setattr(session_runs, "run_queue", lambda: queue)
    own_runs = SessionRuns("maps")

    def meet(number: int, unnamed: bool = True) -> Run[Any] | None:
        return own_runs.meet(lambda task: task.number == number, unnamed=unnamed)

    assert meet(1, unnamed=False) is None
    assert meet(1) is others
    assert meet(0) is own
    assert own_runs.list_runs() == [others, own]
    assert is_of_others(others)
    assert not is_of_others(own)
    assert meet(2) is None
    assert own_runs.list_runs() == [others, own]
    assert queue.close()


def test_nothing_is_taken_for_what_the_browser_has(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(cached_message_hashes=frozenset({"a figure"}))
    monkeypatch.setattr(session_runs, "get_script_run_ctx", lambda **_: context)
    with pytest.raises(KeyError), session_runs.send_whole_elements():
        assert not context.cached_message_hashes
        raise KeyError
    assert context.cached_message_hashes == {"a figure"}


def test_streamlit_knows_what_the_browser_has_by_that_name() -> None:
    """Else nothing would be sent whole."""
    assert "cached_message_hashes" in ScriptRunContext.__dataclass_fields__
