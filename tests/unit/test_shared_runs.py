"""Runs at once: they take turns, and each comes to what it would come to alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from neuralviz.jobs import Run, RunQueue, micro_tuning
from neuralviz.jobs.micro_tuning import TuneTexts, take_turns
from neuralviz.micro_tuning import check_settings
from neuralviz.micro_tuning.watching import watch
from neuralviz.models import LanguageModel
from neuralviz.models.shared import ModelRef, shared_model
from neuralviz.ui import runs as session_runs
from neuralviz.ui.runs import SessionRuns, is_of_others
from tests.support.tasks import WaitForStop, submit

EPOCHS = 3


def test_runs_beside_each_other_take_turns_on_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[], Any]] = []
    both = threading.Barrier(2)

    def count_when_both_are_there() -> Iterator[int]:
        both.wait(10)
        yield from range(20)

    with ThreadPoolExecutor(2) as cores, ThreadPoolExecutor(2) as pool:
        submit = lambda step: (asked.append(step), cores.submit(step))[1]  # noqa: E731
        monkeypatch.setattr(micro_tuning, "_cores", lambda: SimpleNamespace(submit=submit))
        runs = [pool.submit(list, take_turns(count_when_both_are_there())) for _ in range(2)]
        assert [run.result() for run in runs] == [list(range(20))] * 2
    assert 20 < len(asked) <= 42


def test_every_turn_has_one_core_and_other_work_has_all() -> None:
    torch.set_num_threads(2)  # the fixture sets it back
    with micro_tuning._cores.__wrapped__() as cores, ThreadPoolExecutor(1) as other:
        n_threads = [pool.submit(torch.get_num_threads).result() for pool in (cores, other)]
    assert n_threads == [1, 2]


def test_runs_that_arrive_together_end_each_in_its_own_way(tiny, bert_folder):
    """One is stopped, one has no words, one has several batches; each has its own numbers."""
    model, settings = ModelRef.from_id(str(bert_folder)), check_settings(tiny, epochs=EPOCHS)
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
            alone = run.task.start().having(list(watch(tiny, each, settings)))
            np.testing.assert_array_equal(run.result.loss, alone.loss)
            np.testing.assert_array_equal(run.result.embeddings(), alone.embeddings())
    assert runs[4].result.progress < 1
    after = network.state_dict()
    assert all(torch.equal(weights, after[name]) for name, weights in before.items())


def test_few_short_texts_are_shared_and_a_long_list_is_not(tiny: LanguageModel) -> None:
    model, settings = ModelRef("any", None), check_settings(tiny, epochs=EPOCHS)
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
