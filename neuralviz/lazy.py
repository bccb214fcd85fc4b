"""Values made on first request and never changed afterwards."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

T = TypeVar("T")


class Lazy:
    """Values by name, each made once across threads, of which the ``kept`` last used are held.

    They are `frozen`, unless ``freeze`` is false, as for models.
    """

    def __init__(self, kept: int | None = None, *, freeze: bool = True) -> None:
        self._kept, self._freeze = kept, freeze
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._making: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()

    def peek(self, name: Hashable) -> Any:
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
            return self._values.get(name)

    def get(self, name: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            making = self._making.setdefault(name, threading.Lock())
        with making:
            with self._lock:
                if name in self._values:
                    self._values.move_to_end(name)
                    return self._values[name]
            value = frozen(make()) if self._freeze else make()
            self.put(name, value)
            return value

    def put(self, name: Hashable, value: object) -> None:
        with self._lock:
            self._values[name] = value
            self._values.move_to_end(name)
            while self._kept is not None and len(self._values) > self._kept:
                self._values.popitem(last=False)


def frozen(value: T) -> T:
    """Make all arrays in ``value`` read-only and return it; `TypeError` for mutable containers."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, list | dict | set):
        raise TypeError(f"A {type(value).__name__} can be changed by whoever shares it.")
    elif isinstance(value, tuple | MappingProxyType):
        for element in value.values() if isinstance(value, MappingProxyType) else value:
            if not isinstance(element, str):
                frozen(element)
    elif is_dataclass(value) and not isinstance(value, type):
        if not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise TypeError(f"A {type(value).__name__} can be changed by whoever shares it.")
        for field in fields(value):
            frozen(getattr(value, field.name))
    return value
