"""How often what is live is drawn anew: when there is news, and less often the more people look.

All pages of all sessions are drawn by one process, whose work is done by one core at a time.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.jobs import run_queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.jobs import Run

SHARE = 0.15  # of a core that may go into drawing live parts; to send them takes as much again
NEWEST_COUNTS = 0.1  # of the mean: the share of the last drawing
AT_FIRST = 0.03  # seconds of a core, before anything was measured
LOOK_EVERY = 0.1  # seconds between two looks for news
LET_GO_EVERY = 2  # looks: a click that runs the whole page ends the wait then
DRAWN_AT_ONCE = 2
SLOT_SECONDS = 10.0  # until one draws without a slot
WITHOUT_NEWS = 2.0  # seconds until it is drawn anew all the same: the place in the queue moves


class Drawings:
    """How long it takes to draw what is live."""

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


_SLOTS = threading.Semaphore(DRAWN_AT_ONCE)
_here = threading.local()


@contextmanager
def slot() -> Iterator[None]:
    """A place among those who draw: more at once only slow each other and what else is done.

    Whoever waits longer than a moment draws all the same.
    """
    if getattr(_here, "has_slot", False):  # a part of a page that is drawn
        yield
        return
    _here.has_slot = _SLOTS.acquire(timeout=SLOT_SECONDS)
    try:
        yield
    finally:
        if _here.has_slot:
            _SLOTS.release()
        _here.has_slot = False


@contextmanager
def letting_others_draw() -> Iterator[None]:
    """While a page waits for something, its place is another's."""
    had_slot = getattr(_here, "has_slot", False)
    if had_slot:
        _SLOTS.release()
        _here.has_slot = False
    yield
    if had_slot:
        _here.has_slot = _SLOTS.acquire(timeout=SLOT_SECONDS)


def wait_for_turn(run: Run[Any], place: DeltaGenerator, key: str, every: float) -> None:
    """Return when a live run should be drawn anew: at once where its viewer has changed something.

    A click that runs the whole page ends the wait.

    Args:
        run: that is looked at.
        place: an empty one.
        key: names it in this session.
        every: seconds between two drawings at least.
    """
    before = st.session_state.get(key)
    given = _given()
    if before is not None and before.given == given:
        looks = 0
        while not _is_due(run, before, every):
            time.sleep(LOOK_EVERY)
            looks += 1
            if not looks % LET_GO_EVERY:
                place.empty()
    st.session_state[key] = _Drawn(time.monotonic(), run.n_events, given)


def draw_at_once(key: str) -> None:
    """Let the next drawing not wait: the whole page is drawn."""
    st.session_state.pop(key, None)


class _Drawn:
    """What was there at the last drawing."""

    def __init__(self, at: float, n_events: int, given: dict[str, object]) -> None:
        self.at = at
        self.n_events = n_events
        self.given = given


def _is_due(run: Run[Any], before: _Drawn, every: float) -> bool:
    if run.is_over or run.is_stopping:
        return True
    if run.n_events and not before.n_events:
        return True  # the first news
    passed = time.monotonic() - before.at
    pace = max(every, DRAWINGS.pace(run_queue().n_unfinished()))
    return passed >= pace and (run.n_events != before.n_events or passed >= WITHOUT_NEWS)


def _given() -> dict[str, object]:
    """What widgets hold: plain values alone, which can be compared."""

    def plain() -> Iterator[tuple[str, object]]:
        for name in list(st.session_state):
            value = st.session_state.get(name)
            if isinstance(value, str | int | float | bool):
                yield str(name), value

    return dict(plain())
