"""What a run panel says of a run that waits for its turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from dataclasses import dataclass

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.errors import ShouldStop
from neuralviz.jobs import queue as queues
from neuralviz.jobs.queue import RunQueue
from neuralviz.jobs.task import LatestTask
from neuralviz.ui.page import plain

_may_end = threading.Event()


@dataclass(frozen=True)
class Hold(LatestTask[str]):
    """Ends when it is let."""

    name: str

    @property
    def label(self) -> str:
        return "Holding"

    def events(self, should_stop: ShouldStop) -> Generator[str, None, None]:
        assert _may_end.wait(30)
        yield self.name


def app() -> None:
    import streamlit as st

    from neuralviz.ui.run_panel import SessionRuns, run_panel
    from tests.pages.test_waiting import Hold

    runs = SessionRuns("held")
    run_panel(runs, runs.start(Hold("mine")), lambda result, _live: st.text(str(result)))


def test_a_run_that_waits_says_behind_how_many_and_then_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = RunQueue(max_running=1)
    monkeypatch.setattr(queues, "_the_queue", queue)
    _may_end.clear()
    try:
        before = [queue.submit(Hold(name), lambda: True, owner=name) for name in ("a", "b")]
        page = AppTest.from_function(app, default_timeout=30).run()
        assert not page.exception
        assert page.get("progress")[0].proto.text == plain("Waiting: 2 runs ahead of this one.")
    finally:
        _may_end.set()
    assert all(run.wait(10) for run in before)
    until = time.monotonic() + 10
    while queue.n_unfinished():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert queue.close()
    page.run()
    assert page.text[0].value == "mine"
