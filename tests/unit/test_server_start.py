"""Workers start after the first page, and without one, too."""

from __future__ import annotations

import threading
import time

import pytest

from neuralviz.errors import Stopped
from neuralviz.jobs import queue as queues
from neuralviz.jobs.workers import Workers
from neuralviz.ui import server
from neuralviz.ui.pace import Calm

SECONDS = 20.0  # of a test that fails


class SaysWhenStarted(Workers):
    """Starts no process; the server may be ending."""

    def __init__(self, *, is_closed: bool = False) -> None:
        super().__init__(1)
        self.started = threading.Event()
        self._ends = is_closed

    def start(self) -> None:
        self.started.set()
        if self._ends:
            raise Stopped


@pytest.fixture(autouse=True)
def no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_the_queue", None)


def test_workers_start_when_they_may() -> None:
    workers, may_start = SaysWhenStarted(), threading.Event()
    queue = queues.serve_runs(workers, start_after=lambda: may_start.wait(SECONDS))
    assert not workers.started.wait(0.1)
    may_start.set()
    assert workers.started.wait(SECONDS)
    queue.close()


def test_workers_that_the_end_overtakes_say_nothing() -> None:
    workers = SaysWhenStarted(is_closed=True)
    queues._start(workers, lambda: None)
    assert workers.started.is_set()


def seconds_until_workers_may_start() -> float:
    start = time.monotonic()
    server._first_page()
    return time.monotonic() - start


def test_they_may_when_a_browser_has_drawn_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    calm = Calm()
    monkeypatch.setattr(server, "CALM", calm)
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", SECONDS)
    monkeypatch.setattr(server, "BROWSER_SECONDS", 0.2)
    with calm.broken():
        pass
    assert 0.15 < seconds_until_workers_may_start() < SECONDS / 2


def test_they_may_when_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CALM", Calm())
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", 0.1)
    monkeypatch.setattr(server, "BROWSER_SECONDS", SECONDS)
    assert 0.05 < seconds_until_workers_may_start() < SECONDS / 2
