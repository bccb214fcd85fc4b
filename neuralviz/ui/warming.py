"""What is loaded in the background before anybody asks for it, when no page is being drawn."""

from __future__ import annotations

import atexit
import logging
import pkgutil
import threading
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING

from neuralviz import ui
from neuralviz.ui.pace import CALM

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

AFTER = 2.0  # seconds: a first page is asked for and drawn before anything takes the cores
END_SECONDS = 10.0  # for what is under way to end when the process does


class Warming:
    """Works of a process that wait for calm, one after the other, each done once."""

    def __init__(self) -> None:
        self._asked: set[Callable[[], object]] = set()
        self._waiting: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._is_ending = threading.Event()
        self._thread: threading.Thread | None = None

    def soon(self, work: Callable[[], object]) -> None:
        """Have a function called in the background, once a process."""
        with self._lock:
            if work in self._asked or self._is_ending.is_set():
                return
            self._asked.add(work)
            self._waiting.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="warming", daemon=True)
                self._thread.start()
                atexit.register(self.end)

    def end(self) -> None:
        """Wait for what is under way: a thread inside torch takes a process down that ends."""
        self._is_ending.set()
        thread = self._thread
        if thread is not None:
            thread.join(END_SECONDS)

    def _run(self) -> None:
        self._is_ending.wait(AFTER)
        while True:
            CALM.wait(self._is_ending.is_set)
            with self._lock:
                if self._is_ending.is_set() or not self._waiting:
                    self._thread = None
                    return
                work = self._waiting.popleft()
            try:
                work()
            except Exception:  # imports fail in any way once Python has begun to end
                if threading.main_thread().is_alive():
                    _log.exception("Could not prepare in the background")


WARMING = Warming()


def import_pages() -> None:
    """Import the pages that were not visited yet, and the database that some of them read.

    Once a page was drawn: what they show in the browser is made known to Streamlit's runtime.
    """
    rooms = (room.name for room in pkgutil.iter_modules(ui.__path__) if room.ispkg)
    pages = (f"{ui.__name__}.{name}.main" for name in rooms)
    for module in (*pages, "lancedb"):
        import_module(module)
