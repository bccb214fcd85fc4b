"""What is done in the background: once each, in order, and while no page is drawn."""

from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace

import pytest

from neuralviz.jobs import RunQueue
from neuralviz.jobs.workers import Workers
from neuralviz.ui import pace, server
from neuralviz.ui.pace import DrawingTracker, Warming
from tests.support.tasks import SaysWhere, submit

SECONDS = 20.0  # of a test that fails


@pytest.fixture
def calm(monkeypatch) -> DrawingTracker:
    tracker = DrawingTracker()
    monkeypatch.setattr(pace, "CALM", tracker)
    monkeypatch.setattr(pace, "AFTER", 0.0)
    monkeypatch.setattr(pace, "CALM_SECONDS", 0.1)
    return tracker


def test_each_work_is_done_once_in_order_whatever_fails(calm: DrawingTracker) -> None:
    done, over = [], threading.Event()
    works = [lambda: done.append("a"), lambda: 1 / 0, lambda: sys.exit(), lambda: done.append("b")]
    with calm.drawing():
        warm = Warming()
        for work in (*works, *works, over.set):
            warm.call_soon(work)
        time.sleep(0.3)
        assert not done  # a page is drawn
    assert over.wait(SECONDS)
    later = threading.Event()
    warm.call_soon(works[0])
    warm.call_soon(later.set)
    assert later.wait(SECONDS)
    assert done == ["a", "b"]


def seconds_of_waiting(calm: DrawingTracker) -> float:
    start = time.monotonic()
    calm.wait()
    return time.monotonic() - start


def test_it_waits_for_a_page_and_a_moment_longer_but_not_for_ever(monkeypatch) -> None:
    monkeypatch.setattr(pace, "CALM_SECONDS", 0.3)
    calm = DrawingTracker()
    assert seconds_of_waiting(calm) < 0.1  # nothing was ever drawn
    begun = threading.Event()

    def draw() -> None:
        with calm.drawing():
            begun.set()
            time.sleep(0.4)

    page = threading.Thread(target=draw)
    page.start()
    begun.wait()
    assert 0.65 < seconds_of_waiting(calm) < 5
    page.join()
    assert seconds_of_waiting(calm) < 0.1
    with calm.drawing():
        monkeypatch.setattr(pace, "LONGEST_CALM", 0.3)
        assert 0.25 < seconds_of_waiting(calm) < 5


def test_a_part_of_a_page_is_drawn_in_a_slot(monkeypatch) -> None:
    monkeypatch.setattr(pace, "CALM", DrawingTracker())
    monkeypatch.setattr(pace, "LONGEST_CALM", 0.3)
    with pace.slot(), pace.slot():
        assert seconds_of_waiting(pace.CALM) > 0.25


class SaysWhenStarted(Workers):
    """Starts no process."""

    def start(self) -> None:
        self.started = time.monotonic()


def test_workers_start_when_no_page_is_drawn(calm, monkeypatch) -> None:
    workers = SaysWhenStarted()
    monkeypatch.setattr(server, "CALM", calm)
    monkeypatch.setattr(server, "FIRST_PAGE_SECONDS", 0.1)
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


def test_a_live_run_of_many_is_redrawn_for_news_and_seldom_without(monkeypatch) -> None:
    monkeypatch.setattr(pace, "_mean_seconds", 0.2 * pace.SHARE / 20)
    monkeypatch.setattr(pace, "WITHOUT_NEWS", 0.6)
    monkeypatch.setattr(pace, "pause", time.sleep)
    monkeypatch.setattr(pace, "run_queue", lambda: SimpleNamespace(n_unfinished=lambda: 20))
    run = SimpleNamespace(is_over=False, is_stopping=False, n_events=3)
    seconds = []
    for n_drawn in (0, 2, 3):
        start = time.monotonic()
        pace.wait_for_news(run, n_drawn, 0.1)
        seconds.append(time.monotonic() - start)
    assert seconds[0] < 0.2 <= seconds[1] < 0.6 <= seconds[2]
