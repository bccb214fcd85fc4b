"""Locks by name."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator


class NamedLocks:
    """One lock per name, kept while any thread holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[threading.Lock, int]] = {}  # with its number of users
        self._counting = threading.Lock()

    def __len__(self) -> int:
        return len(self._locks)

    @contextmanager
    def hold(self, name: Hashable) -> Iterator[None]:
        with self._counting:
            lock, n_users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = lock, n_users + 1
        try:
            with lock:
                yield
        finally:
            with self._counting:
                lock, n_users = self._locks.pop(name)
                if n_users > 1:
                    self._locks[name] = lock, n_users - 1
