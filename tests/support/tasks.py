"""Small tasks that can be sent to another process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from neuralviz.errors import ShouldStop, Stopped, TextError
from neuralviz.jobs import Run, RunQueue
from neuralviz.jobs.task import LatestTask, Task


def submit(
    queue: RunQueue,
    task: Task[Any, Any],
    owner_is_here: Callable[[], bool] = lambda: True,
    at_end: Callable[[Run[Any]], None] = lambda _run: None,
    **options: Any,
) -> Run[Any]:
    """The run of a task in a queue."""
    run: Run[Any] = Run(task, owner_is_here, **options)
    run.at_end.append(at_end)
    return queue.submit(run)


@dataclass(frozen=True)
class CountUp(Task[int, tuple[int, ...]]):
    """Counts from 0 to one less than ``n``."""

    n: int

    def start(self) -> tuple[int, ...]:
        return ()

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield from range(self.n)

    def fold(self, result: tuple[int, ...], events: Sequence[int]) -> tuple[int, ...]:
        return (*result, *events)


@dataclass(frozen=True)
class SaysWhere(LatestTask[int]):
    """Its result is the id of the process that did it."""

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield os.getpid()


@dataclass(frozen=True)
class WaitForStop(LatestTask[tuple[int, int]]):
    """Says in which process it is, and goes on until it is stopped."""

    number: int = 0

    def events(self, should_stop: ShouldStop) -> Generator[tuple[int, int], None, None]:
        yield os.getpid(), self.number
        while not should_stop():
            time.sleep(0.01)
        raise Stopped


@dataclass(frozen=True)
class Fails(LatestTask[int]):
    """Raises an error of a kind, after its first event or before it."""

    kind: str
    sentence: str
    at_once: bool = False

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        if not self.at_once:
            yield 1
        raise TextError(self.sentence) if self.kind == "text" else ZeroDivisionError(self.sentence)
