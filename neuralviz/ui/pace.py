"""How often live runs are redrawn: when there is news, and less often with more runs.

All pages of all sessions are drawn by one process, whose work is done by one core at a time.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.errors import never
from neuralviz.jobs import run_queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuralviz.errors import ShouldStop
    from neuralviz.jobs import Run

SHARE = 0.15  # of a core, for drawing live runs; sending them takes as much again
NEWEST_COUNTS = 0.1  # the weight of the last drawing in the mean
AT_FIRST = 0.03  # seconds: the mean before the first drawing
LOOK_EVERY = 0.1  # seconds between two checks for news, at least
LOOKS = 20  # checks for news between two drawings, where the time is long
DRAWN_AT_ONCE = 2
SLOT_SECONDS = 10.0  # until a page is drawn without a slot
CALM_SECONDS = 2.0  # since the last drawing: by then the browser has it, too
LONGEST_CALM = 15.0  # seconds that background work waits for calm, at most
WITHOUT_NEWS = 2.0  # seconds until a redraw without news: the place in the queue changes


class Drawings:
    """The mean time that a core takes to draw a live run."""

    def __init__(self) -> None:
        self._mean = AT_FIRST
        self._lock = threading.Lock()

    def note(self, seconds: float) -> None:
        """Note how long a core has drawn."""
        with self._lock:
            self._mean += NEWEST_COUNTS * (seconds - self._mean)

    def pace(self, n_watched: int) -> float:
        """Seconds between two drawings of each of some runs."""
        return n_watched * self._mean / SHARE


DRAWINGS = Drawings()


class DrawingTracker:
    """Tracks whether pages are being drawn; background work waits until none is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_drawn = 0
        self._since = -math.inf
        self._first = threading.Event()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """A context in which a page is drawn."""
        with self._lock:
            self._n_drawn += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_drawn -= 1
                self._since = time.monotonic()
            self._first.set()

    def wait_for_first(self, seconds: float) -> bool:
        """Return when a page was drawn for the first time; False if nobody opens one for a while.

        Args:
            seconds: after which nobody is waited for; a page that is being drawn then is.
        """
        end = time.monotonic() + seconds
        while not self._first.wait(LOOK_EVERY):
            if time.monotonic() >= end and not self._n_drawn:
                return False
        return True

    def wait(self, should_stop: ShouldStop = never) -> None:
        """Return when nothing was drawn for `CALM_SECONDS`; at the latest after `LONGEST_CALM`.

        Args:
            should_stop: ends it at once.
        """
        end = time.monotonic() + LONGEST_CALM
        while (clock := time.monotonic()) < end and not should_stop():
            with self._lock:
                rest = CALM_SECONDS - (0 if self._n_drawn else clock - self._since)
            if rest <= 0:
                return
            time.sleep(min(rest, LOOK_EVERY))


CALM = DrawingTracker()

_NO_KEY = "nothing is kept here"
_SLOTS = threading.Semaphore(DRAWN_AT_ONCE)
_drawing = threading.local()


@contextmanager
def slot() -> Iterator[None]:
    """One of the few places for drawing: more pages at once would only slow each other.

    After `SLOT_SECONDS`, the page is drawn without a place.
    """
    if getattr(_drawing, "has_slot", False):  # a part of a page that is drawn
        yield
        return
    _drawing.has_slot = _SLOTS.acquire(timeout=SLOT_SECONDS)
    try:
        with CALM.drawing():
            yield
    finally:
        if _drawing.has_slot:
            _SLOTS.release()
        _drawing.has_slot = False


@contextmanager
def let_others_draw() -> Iterator[None]:
    """Give the page's drawing slot to other pages while the context lasts."""
    had_slot = getattr(_drawing, "has_slot", False)
    if had_slot:
        _SLOTS.release()
        _drawing.has_slot = False
    yield
    if had_slot:
        _drawing.has_slot = _SLOTS.acquire(timeout=SLOT_SECONDS)


def pause(seconds: float) -> None:
    """Wait; a click that runs the whole page ends the drawing here."""
    time.sleep(seconds)
    st.session_state.get(_NO_KEY)  # reading the session state lets Streamlit stop the script


def wait_for_news(run: Run[Any], n_events: int, interval: float) -> None:
    """Return when a live run that was just drawn needs a redraw; at once if there are few runs.

    What was drawn reaches the browser meanwhile: Streamlit throws away what it has not sent yet
    when the same part of a page is drawn again.

    Args:
        run: that is looked at.
        n_events: that the run had when it was drawn.
        interval: seconds after which the browser asks for the next drawing.
    """
    began = time.monotonic()
    while (pace := _pace()) > interval and not _is_due(
        run, n_events, time.monotonic() - began, pace
    ):
        pause(max(LOOK_EVERY, pace / LOOKS))


def _is_due(run: Run[Any], n_events: int, passed: float, pace: float) -> bool:
    if run.is_over or run.is_stopping:
        return True
    if run.n_events and not n_events:
        return True  # the first news
    return passed >= pace and (run.n_events != n_events or passed >= WITHOUT_NEWS)


def _pace() -> float:
    return DRAWINGS.pace(run_queue().n_unfinished())
