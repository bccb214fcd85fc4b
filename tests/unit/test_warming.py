"""What is loaded in the background: once each, in order, and not while the process ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from neuralviz.ui import pace, warming
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
def calm(monkeypatch: pytest.MonkeyPatch) -> pace.DrawingTracker:
    found = pace.DrawingTracker()
    monkeypatch.setattr(warming, "CALM", found)
    monkeypatch.setattr(warming, "AFTER", 0.0)
    monkeypatch.setattr(pace, "CALM_SECONDS", 0.1)
    return found


def test_each_work_is_done_once_in_the_order_asked_for(calm: pace.DrawingTracker) -> None:
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


def test_what_a_page_needs_comes_before_what_waits(calm: pace.DrawingTracker) -> None:
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


def test_nothing_begins_when_the_process_ends(calm: pace.DrawingTracker) -> None:
    warm, done = Warming(), threading.Event()
    with calm.drawing():
        warm.call_soon(done.set)
        warm.end()
    later = threading.Event()
    warm.call_soon(later.set)
    assert not later.wait(0.3)
    assert not done.is_set()


def test_a_work_that_fails_stops_no_other(calm: pace.DrawingTracker) -> None:
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
