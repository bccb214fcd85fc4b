"""Work in the background waits until no page is drawn."""

from __future__ import annotations

import threading
import time

import pytest

from neuralviz.ui import pace
from neuralviz.ui.pace import DrawingTracker


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
