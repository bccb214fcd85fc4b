"""When pages, live runs and background work get their turn: one process draws for all sessions."""

from __future__ import annotations

import atexit
import logging
import math
import pkgutil
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any
from weakref import WeakSet

import streamlit as st

from neuralviz import ui
from neuralviz.jobs import Run, run_queue

SHARE = 0.15  # of a core, for drawing live runs; sending them takes as much again
NEWEST_COUNTS = 0.1  # the weight of the last drawing in the mean
LOOK_EVERY = 0.1  # seconds between two checks, at least
WITHOUT_NEWS = 2.0  # seconds until a redraw without news: the place in the queue changes
LOOKS = 20  # checks for news between two drawings, where the time is long
DRAWN_AT_ONCE = 2
SLOT_SECONDS = 10.0  # until a page is drawn without a slot
CALM_SECONDS = 2.0  # since the last drawing: by then the browser has it, too
LONGEST_CALM = 15.0  # seconds that background work waits for calm, at most
AFTER = 2.0  # seconds: the first page is drawn before background work begins
END_SECONDS = 10.0  # for background work to end with the process

_log = logging.getLogger(__name__)


# --- whether a page is drawn ---------------------------------------------------------------------


class DrawingTracker:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_drawn = 0
        self._last_end = -math.inf
        self._first = threading.Event()  # set once a page is drawn

    @contextmanager
    def drawing(self) -> Iterator[None]:
        with self._lock:
            self._n_drawn += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_drawn -= 1
                self._last_end = time.monotonic()
            self._first.set()

    def wait_for_first(self, seconds: float) -> None:
        """Wait until a first page is drawn, unless none is begun within some seconds."""
        while not self._first.wait(seconds) and self._n_drawn:
            pass

    def wait(self) -> None:
        """Wait until nothing was drawn for `CALM_SECONDS`; at the latest `LONGEST_CALM`."""
        end = time.monotonic() + LONGEST_CALM
        while (now := time.monotonic()) < end:
            if not self._n_drawn and now - self._last_end >= CALM_SECONDS:
                return
            time.sleep(LOOK_EVERY)


CALM = DrawingTracker()

# --- pages take turns ----------------------------------------------------------------------------

_NO_KEY = "nothing is kept here"
_SLOTS = threading.Semaphore(DRAWN_AT_ONCE)
_drawing = threading.local()


@contextmanager
def slot() -> Iterator[None]:
    """Hold one of the few places for drawing; after `SLOT_SECONDS`, draw without one."""
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


# --- live runs -----------------------------------------------------------------------------------

_mean_seconds = 0.03  # that one core takes to draw a live run


@contextmanager
def draw_live() -> Iterator[None]:
    """Time the drawing of a live run."""
    global _mean_seconds
    with slot():
        began = time.thread_time()
        yield
    _mean_seconds += NEWEST_COUNTS * (time.thread_time() - began - _mean_seconds)


def wait_for_news(run: Run[Any], n_events: int, interval: float) -> None:
    """Return when a live run needs a redraw; at once if there are few runs."""
    # until then the drawing of ``n_events`` reaches the browser: an early redraw would discard it
    seconds = run_queue().n_unfinished() * _mean_seconds / SHARE
    if seconds <= interval:
        return
    began = time.monotonic()
    while not (run.is_over or run.is_stopping or (run.n_events and not n_events)):
        has_news = run.n_events > n_events
        if time.monotonic() - began >= (seconds if has_news else max(seconds, WITHOUT_NEWS)):
            return
        pause(max(LOOK_EVERY, seconds / LOOKS))


# --- in the background ---------------------------------------------------------------------------


class Warming:
    """Calls functions in the background, one after the other, each once, while no page is drawn."""

    def __init__(self) -> None:
        self._asked: WeakSet[Callable[[], object]] = WeakSet()
        self._waiting: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._working = threading.Lock()
        # a thread inside torch crashes a process that ends
        atexit.register(self._working.acquire, timeout=END_SECONDS)

    def call_soon(self, work: Callable[[], object]) -> None:
        """Call a function in the background, once a process."""
        with self._lock:
            if work in self._asked:
                return
            self._asked.add(work)
            self._waiting.put(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="warming", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        time.sleep(AFTER)
        while True:
            work = self._waiting.get()
            CALM.wait()
            with self._working:
                try:
                    work()
                except BaseException:  # also of native code; the next function is still called
                    if threading.main_thread().is_alive():  # else imports fail
                        _log.exception("Could not prepare in the background")


WARMING = Warming()


@cache
def import_pages_soon() -> None:
    """Import the pages in the background, and the database that some of them read."""
    # `figures` comes first, in a script run: only there are its files made known to browsers
    modules = pkgutil.walk_packages(ui.__path__, f"{ui.__name__}.")
    pages = [module.name for module in modules if module.name != f"{ui.__name__}.navigation"]
    for name in ("lancedb", *pages):
        WARMING.call_soon(partial(import_module, name))


def open_large_map() -> None:
    """Read a large map ahead; see `neuralviz.ui.corpus.opened.open_ahead`."""
    import_module(f"{ui.__name__}.corpus.opened").open_ahead()
