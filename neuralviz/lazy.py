"""Values made on first request and never changed afterwards."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from neuralviz.locks import NamedLocks

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class Lazy:
    """Read-only values by name, each made once across threads; holds ``kept`` values at most."""

    def __init__(self, kept: int | None = None) -> None:
        self._kept = kept
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._making = NamedLocks()
        self._lock = threading.Lock()

    def peek(self, name: Hashable) -> Any:
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
            return self._values.get(name)

    def get(self, name: Hashable, make: Callable[[], T]) -> T:
        with self._making.hold(name):
            with self._lock:
                if name in self._values:
                    self._values.move_to_end(name)
                    return self._values[name]
            value = frozen(make())
            with self._lock:
                self._values[name] = value
                while self._kept is not None and len(self._values) > self._kept:
                    self._values.popitem(last=False)
            return value


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
