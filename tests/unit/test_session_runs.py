"""Runs that a session meets beside its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from neuralviz.jobs import Run, RunQueue
from neuralviz.ui import runs
from neuralviz.ui.runs import SessionRuns, is_of_others
from tests.support.tasks import WaitForStop, submit


def test_ones_own_run_is_never_met_as_somebody_elses(monkeypatch) -> None:
    queue = RunQueue(max_running=2)
    own, others = (submit(queue, WaitForStop(n), owner=n * "another") for n in range(2))
    session = SimpleNamespace(session_state={"maps-runs": [own]}, query_params={})
    monkeypatch.setattr(runs, "st", session)
    monkeypatch.setattr(runs, "run_queue", lambda: queue)
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
