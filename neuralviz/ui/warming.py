"""Loads modules and data in the background before a user needs them, while no page is drawn."""

from __future__ import annotations

import atexit
import logging
import pkgutil
import threading
from collections import deque
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakSet

from neuralviz import ui
from neuralviz.ui.pace import CALM

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

AFTER = 2.0  # seconds: the first page is drawn before the work begins
END_SECONDS = 10.0  # for running work to end with the process


class Warming:
    """Calls functions in the background, one after the other, each once, while no page is drawn."""

    def __init__(self) -> None:
        self._asked: WeakSet[Callable[[], object]] = WeakSet()
        self._first: deque[Callable[[], object]] = deque()
        self._waiting: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._is_ending = threading.Event()
        self._thread: threading.Thread | None = None
        atexit.register(self.end)

    def call_soon(self, work: Callable[[], object], *, first: bool = False) -> None:
        """Call a function in the background, once a process.

        Args:
            work: is called without arguments; what it raises is logged.
            first: call it before functions without this flag.
        """
        with self._lock:
            if work in self._asked or self._is_ending.is_set():
                return
            self._asked.add(work)
            (self._first if first else self._waiting).append(work)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="warming", daemon=True)
                thread.start()
                self._thread = thread

    def end(self) -> None:
        """Wait a while for what is under way: a thread that is still inside torch, or compiles,
        crashes a process that ends.
        """
        self._is_ending.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(END_SECONDS)

    def _run(self) -> None:
        self._is_ending.wait(AFTER)
        while True:
            CALM.wait(self._is_ending.is_set)
            with self._lock:
                queue = self._first or self._waiting
                if self._is_ending.is_set() or not queue:
                    self._thread = None
                    return
                work = queue.popleft()
            try:
                work()
            except BaseException:  # also of native code; the next function is still called
                if threading.main_thread().is_alive():  # imports fail once Python has begun to end
                    _log.exception("Could not prepare in the background")


WARMING = Warming()


@cache
def import_pages_soon() -> None:
    """Import the pages in the background, and the database that some of them read.

    Only after `neuralviz.ui.live_figure`, in a script run: Streamlit makes its files known to
    browsers only there.
    """
    packages = (package.name for package in pkgutil.iter_modules(ui.__path__) if package.ispkg)
    for module in ("lancedb", *(f"{ui.__name__}.{name}.main" for name in packages)):
        WARMING.call_soon(partial(import_module, module))


def open_large_map() -> None:
    """Read a large map ahead: see `neuralviz.ui.corpus.opened.open_ahead`."""
    import_module(f"{ui.__name__}.corpus.opened").open_ahead()
