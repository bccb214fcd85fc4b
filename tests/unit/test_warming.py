"""What is loaded in the background: once each, in order, and not while the process ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from neuralviz.ui import pace, warming
from neuralviz.ui.pace import DrawingTracker
from neuralviz.ui.warming import Warming
from tests.support.app import ROOT

SECONDS = 10.0

IMPORTED = """
import sys
from neuralviz.ui import warming
from neuralviz.ui.warming import Warming, import_pages_soon

warming.AFTER = 0
import_pages_soon()
over = __import__("threading").Event()
warming.WARMING.call_soon(over.set)
over.wait(60)
pages = ("micro_tuning", "corpus", "how_it_works")
print(all(f"neuralviz.ui.{page}.main" in sys.modules for page in pages), "lancedb" in sys.modules)
print("torch" in sys.modules)
"""


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> DrawingTracker:
    found = DrawingTracker()
    monkeypatch.setattr(warming, "CALM", found)
    monkeypatch.setattr(warming, "AFTER", 0.0)
    monkeypatch.setattr(pace, "CALM_SECONDS", 0.1)
    return found


def test_each_work_is_done_once_in_the_order_asked_for(calm: DrawingTracker) -> None:
    done, over = [], threading.Event()
    works = [lambda: done.append("a"), lambda: done.append("b"), over.set]
    with calm.drawing():
        warm = Warming()
        for work in (*works, *works):
            warm.call_soon(work)
        time.sleep(0.3)
        assert not done  # a page is drawn
    assert over.wait(SECONDS)
    later = threading.Event()
    warm.call_soon(works[0])
    warm.call_soon(later.set)
    assert later.wait(SECONDS)
    assert done == ["a", "b"]


def test_what_a_page_needs_comes_before_what_waits(calm: DrawingTracker) -> None:
    done, over = [], threading.Event()
    with calm.drawing():
        warm = Warming()
        warm.call_soon(lambda: done.append("waits"))
        warm.call_soon(over.set)
        for name in ("first", "second"):
            warm.call_soon(partial(done.append, name), first=True)
    assert over.wait(SECONDS)
    assert done == ["first", "second", "waits"]


def test_figures_are_known_to_browsers_before_other_threads_import_them() -> None:
    script = (ROOT / "neuralviz/ui/navigation.py").read_text()
    assert "neuralviz.ui import live_figure" in script[: script.index("import_pages_soon()")]


def test_nothing_begins_when_the_process_ends(calm: DrawingTracker) -> None:
    warm, done = Warming(), threading.Event()
    with calm.drawing():
        warm.call_soon(done.set)
        warm.end()
    later = threading.Event()
    warm.call_soon(later.set)
    assert not later.wait(0.3)
    assert not done.is_set()


def test_a_work_that_fails_stops_no_other(calm: DrawingTracker) -> None:
    warm, done = Warming(), threading.Event()
    warm.call_soon(lambda: 1 / 0)
    warm.call_soon(lambda: sys.exit())
    warm.call_soon(done.set)
    assert done.wait(SECONDS)


def test_pages_are_imported_without_torch() -> None:
    said = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=120, check=True
    )
    assert said.stdout.split() == ["True", "True", "False"]


# --- until no page is drawn ---------------------------------------------------------------------


def seconds_of_waiting(calm: DrawingTracker, **how: object) -> float:
    start = time.monotonic()
    calm.wait(**how)
    return time.monotonic() - start


def test_it_waits_for_a_page_that_is_drawn_and_a_moment_longer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "CALM_SECONDS", 0.3)
    calm = DrawingTracker()
    assert seconds_of_waiting(calm) < 0.1  # nothing was ever drawn
    drawn = threading.Event()

    def draw() -> None:
        with calm.drawing():
            drawn.set()
            time.sleep(0.4)

    page = threading.Thread(target=draw)
    page.start()
    drawn.wait()
    assert 0.65 < seconds_of_waiting(calm) < 5
    page.join()
    assert seconds_of_waiting(calm) < 0.1


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "LONGEST_CALM", 0.3)
    calm = DrawingTracker()
    with calm.drawing():
        assert 0.25 < seconds_of_waiting(calm) < 5
        monkeypatch.setattr(pace, "LONGEST_CALM", 60)
        assert seconds_of_waiting(calm, should_stop=lambda: True) < 0.1


def test_a_part_of_a_page_is_drawn_in_a_slot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "CALM", DrawingTracker())
    monkeypatch.setattr(pace, "LONGEST_CALM", 0.3)
    with pace.slot(), pace.slot():
        assert seconds_of_waiting(pace.CALM) > 0.25


def test_the_first_page_is_waited_for_until_it_is_drawn() -> None:
    calm = DrawingTracker()
    assert not calm.wait_for_first(0.01)

    def draw() -> None:
        with calm.drawing():
            time.sleep(0.5)

    page = threading.Thread(target=draw)
    page.start()
    start = time.monotonic()
    assert calm.wait_for_first(0.01)  # it was being drawn when the time was over
    assert time.monotonic() - start > 0.1
    page.join()
