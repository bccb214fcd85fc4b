"""Locks by name."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator


class NamedLocks:
    """One lock per name, kept while any thread holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        self._adding = threading.Lock()

    def __len__(self) -> int:
        return len(self._locks)

    @contextmanager
    def hold(self, name: Hashable) -> Iterator[None]:
        with self._adding:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            yield
