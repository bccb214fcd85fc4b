"""Workers start after the first page, and without one, too."""

from __future__ import annotations

import threading
import time

import pytest

from neuralviz.jobs import RunQueue
from neuralviz.jobs.workers import Workers
from neuralviz.ui import pace, server
from neuralviz.ui.pace import DrawingTracker
from tests.support.tasks import SaysWhere, submit

SECONDS = 20.0  # of a test that fails


class SaysWhenStarted(Workers):
    """Starts no process."""

    def start(self) -> None:
        self.started = time.monotonic()


def test_workers_start_when_no_page_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    calm, workers = DrawingTracker(), SaysWhenStarted()
    monkeypatch.setattr(server, "CALM", calm)
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", 0.1)
    monkeypatch.setattr(pace, "CALM_SECONDS", 0.1)
    began = time.monotonic()
    server._start_workers(workers)  # nobody has come
    assert 0.05 < workers.started - began < SECONDS / 2
    with calm.drawing():
        start = threading.Thread(target=server._start_workers, args=(workers,))
        start.start()
        time.sleep(0.5)
        drawn = time.monotonic()
    start.join()
    assert drawn < workers.started < drawn + SECONDS / 2


def test_a_run_that_comes_sooner_starts_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", 0.5)
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
