"""Workers start after the first page, and without one, too."""

from __future__ import annotations

import threading
import time

import pytest

from neuralviz.jobs import RunQueue
from neuralviz.jobs.workers import Workers
from neuralviz.ui import server
from neuralviz.ui.pace import DrawingTracker
from tests.support.tasks import SaysWhere, submit

SECONDS = 20.0  # of a test that fails


class SaysWhenStarted(Workers):
    """Starts no process."""

    def start(self) -> None:
        self.started = time.monotonic()


def seconds_until_start() -> float:
    workers, began = SaysWhenStarted(), time.monotonic()
    server._start_workers(workers)
    return workers.started - began


def test_workers_start_when_a_browser_has_drawn_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    calm = DrawingTracker()
    monkeypatch.setattr(server, "CALM", calm)
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", SECONDS)
    monkeypatch.setattr(server, "BROWSER_SECONDS", 0.2)
    with calm.drawing():
        pass
    assert 0.15 < seconds_until_start() < SECONDS / 2


def test_workers_start_when_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CALM", DrawingTracker())
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", 0.1)
    monkeypatch.setattr(server, "BROWSER_SECONDS", SECONDS)
    assert 0.05 < seconds_until_start() < SECONDS / 2


def test_a_run_that_comes_sooner_starts_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CALM", DrawingTracker())
    workers = Workers(1)
    queue = RunQueue(workers=workers)
    start = threading.Thread(target=server._start_workers, args=(workers,))
    start.start()
    run = submit(queue, SaysWhere())
    assert run.wait(SECONDS)
    start.join()
    assert (run.status, [run.result]) == ("done", workers.processes())
    queue.close()
    assert workers.n_started == 1
    server._start_workers(workers)  # the server has ended
    assert workers.n_started == 1
