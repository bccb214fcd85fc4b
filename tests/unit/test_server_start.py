"""Workers start after the first page, and without one, too."""

from __future__ import annotations

import threading
import time

import pytest

from neuralviz.jobs import queue as queues
from neuralviz.jobs.workers import Workers
from neuralviz.ui import server
from neuralviz.ui.pace import DrawingTracker
from tests.support.cluster import wait_for
from tests.support.tasks import SaysWhere

SECONDS = 20.0  # of a test that fails


class SaysWhenStarted(Workers):
    """Starts no process."""

    def __init__(self) -> None:
        super().__init__(1)
        self.started = threading.Event()

    def start(self) -> None:
        self.started.set()


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


def test_a_run_that_comes_sooner_starts_a_worker() -> None:
    workers, may_start = Workers(1), threading.Event()
    queue = queues.serve_runs(workers, start_after=lambda: may_start.wait(SECONDS))
    run = queue.submit(SaysWhere(), lambda: True)
    wait_for(lambda: run.is_over)
    assert (run.status, [run.result]) == ("done", workers.processes())
    may_start.set()
    queue.close()
    assert workers.n_started == 1


def test_workers_do_not_start_once_the_server_has_ended() -> None:
    workers = Workers(1)
    workers.close()
    queues._start(workers, lambda: None)
    assert workers.n_started == 0


def test_the_servers_workers_wait_for_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def serve_runs(*_workers: object, **how: object) -> queues.RunQueue:
        asked.append(how["start_after"])
        return queues.RunQueue()

    monkeypatch.setattr(server, "serve_runs", serve_runs)
    monkeypatch.setattr(server.sys, "setswitchinterval", lambda _seconds: None)
    server.Server()
    assert asked == [server._wait_for_first_page]


def seconds_until_workers_may_start() -> float:
    start = time.monotonic()
    server._wait_for_first_page()
    return time.monotonic() - start


def test_they_may_when_a_browser_has_drawn_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    calm = DrawingTracker()
    monkeypatch.setattr(server, "CALM", calm)
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", SECONDS)
    monkeypatch.setattr(server, "BROWSER_SECONDS", 0.2)
    with calm.drawing():
        pass
    assert 0.15 < seconds_until_workers_may_start() < SECONDS / 2


def test_they_may_when_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CALM", DrawingTracker())
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", 0.1)
    monkeypatch.setattr(server, "BROWSER_SECONDS", SECONDS)
    assert 0.05 < seconds_until_workers_may_start() < SECONDS / 2
