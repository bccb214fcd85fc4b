"""A run panel: what it says of a run that waits, and a press that comes while it is drawn."""

from __future__ import annotations

import os

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.jobs import queue as queues
from neuralviz.jobs.queue import RunQueue
from neuralviz.ui.page import plain
from tests.support.tasks import WaitForStop, submit
from tests.support.waiting import wait_until


def app() -> None:
    import streamlit as st

    from neuralviz.ui.runs import SessionRuns, show_run_panel
    from tests.support.tasks import SaysWhere

    runs = SessionRuns("where")
    show_run_panel(runs, runs.start(SaysWhere()), lambda result, _live: st.text(str(result)))


def test_a_run_that_waits_says_behind_how_many_and_then_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = RunQueue(max_running=1)
    monkeypatch.setattr(queues, "_the_queue", queue)
    before = [submit(queue, WaitForStop(n), lambda: True, owner=str(n)) for n in range(2)]
    page = AppTest.from_function(app, default_timeout=30).run()
    assert not page.exception
    assert page.get("progress")[0].proto.text == plain("Waiting: 2 runs ahead.")
    for run in before:
        run.stop()
    wait_until(lambda: not queue.n_unfinished(), 10)
    assert queue.close()
    assert page.run().text[0].value == str(os.getpid())


def test_a_run_that_is_stopped_while_it_waits_has_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = RunQueue(max_running=1)
    monkeypatch.setattr(queues, "_the_queue", queue)
    before = submit(queue, WaitForStop(0), lambda: True, owner="other")
    page = AppTest.from_function(app, default_timeout=30).run()
    page.button[0].click().run()
    page.run()
    assert page.get("progress")[0].proto.text == "Stopped before the first result."
    assert not page.text
    before.stop()
    assert queue.close()


def failing(at_once: bool) -> None:
    import streamlit as st

    from neuralviz.ui.runs import SessionRuns, show_run_panel
    from tests.support.tasks import Fails

    runs = SessionRuns("failing")
    run = runs.start(Fails("text", "Text 1 is empty.", at_once=at_once))
    assert run.wait(30)
    show_run_panel(runs, run, lambda result, _live: st.text(f"so far: {result}"))
    st.text(f"to show later: {runs.last_to_show() is run}")


@pytest.mark.parametrize(
    ("at_once", "so_far"),
    [(True, ["to show later: False"]), (False, ["so far: 1", "to show later: True"])],
)
def test_a_run_that_failed_shows_what_it_had_or_nothing(at_once: bool, so_far: list[str]) -> None:
    page = AppTest.from_function(failing, args=(at_once,), default_timeout=60).run()
    assert not page.exception
    assert [one.value for one in page.error] == ["Text 1 is empty."]
    assert [one.value for one in page.text] == so_far
