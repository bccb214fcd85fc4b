"""Runs that a session meets beside its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from neuralviz.ui import session_runs
from neuralviz.ui.session_runs import SessionRuns


def test_ones_own_run_is_never_met_as_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    own, others = (
        SimpleNamespace(id=name, task=name, is_over=False, watch=lambda _here: None)
        for name in ("own", "others")
    )

    def find(is_wanted: Any) -> Any:
        return next((run for run in (own, others) if is_wanted(run)), None)

    monkeypatch.setattr(
        session_runs, "st", SimpleNamespace(session_state={"maps-runs": [own]}, query_params={})
    )
    monkeypatch.setattr(session_runs, "run_queue", lambda: SimpleNamespace(find=find))
    runs = SessionRuns("maps")

    def meet(name: str) -> Any:
        return runs.meet(lambda task: task == name, unnamed=True)

    assert runs.meet(lambda task: task == "others", unnamed=False) is None
    assert meet("others") is others
    assert meet("own") is own
    assert runs.list_runs() == [others, own]
    assert runs.is_met(others)
    assert not runs.is_met(own)
    assert meet("nobody's") is None
    assert runs.list_runs() == [others, own]
