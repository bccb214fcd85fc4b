"""Tasks that are done together as they come: whoever arrives joins at the next step."""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from neuralviz.errors import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from neuralviz.errors import ShouldStop
    from neuralviz.jobs.task import SharedWork, SharingTask

_log = logging.getLogger(__name__)


class Sharer(NamedTuple):
    """A task that is to be done with others, and who is told of it.

    Attributes:
        task: with a `sharing_key`.
        should_stop: whether it should leave.
        event: is given its events.
        end: is told that it is over; with the exception, where it failed.
    """

    task: SharingTask[Any, Any]
    should_stop: ShouldStop
    event: Callable[[Any], None]
    end: Callable[[BaseException | None], None]


class Sharing:
    """A thread that does sharing tasks: those that are there together, in turns with the others.

    Tasks that arrive during a step begin with the next one, those of one key as one piece of work.
    """

    def __init__(self) -> None:
        self._arrival = threading.Condition()
        self._waiting: list[Sharer] = []
        self._thread: threading.Thread | None = None

    def add(self, sharer: Sharer) -> None:
        """Have a task done; returns at once."""
        with self._arrival:
            self._waiting.append(sharer)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="neuralviz-sharing", daemon=True
                )
                self._thread.start()
            self._arrival.notify()

    def _work(self) -> None:
        going_on: deque[_SharedGroup] = deque()
        while True:
            with self._arrival:
                while not (self._waiting or going_on):
                    self._arrival.wait()
                new, self._waiting = self._waiting, []
            going_on.extendleft(_begin(new))  # whoever arrives sees the first step soon
            if going_on and going_on[0].step():
                going_on.rotate(-1)
            elif going_on:
                going_on.popleft()


def _begin(new: Sequence[Sharer]) -> list[_SharedGroup]:
    """Work on tasks that have just arrived, those of one key together."""
    by_key: dict[tuple[type, Hashable], list[Sharer]] = {}
    for sharer in new:
        by_key.setdefault((type(sharer.task), sharer.task.sharing_key()), []).append(sharer)
    groups = []
    for (kind, _), alike in by_key.items():
        try:
            works = kind.work_together(  # type: ignore[attr-defined]
                [sharer.task for sharer in alike], [sharer.should_stop for sharer in alike]
            )
        except BaseException as error:  # nobody may wait for ever
            for sharer in alike:
                _end(sharer, error)
        else:
            groups += [_SharedGroup(work, [alike[i] for i in work.places]) for work in works]
    return groups


class _SharedGroup:
    """Tasks that are done together."""

    def __init__(self, work: SharedWork, sharers: Sequence[Sharer]) -> None:
        self._steps = work.steps
        self._sharers = dict(zip(work.places, sharers, strict=True))

    def step(self) -> bool:
        """Do the next step; whether there is another."""
        try:
            for place, event in next(self._steps):
                if event is None:
                    _end(self._sharers.pop(place), None)
                elif place in self._sharers:
                    self._sharers[place].event(event)
        except BaseException as error:
            failed = None if isinstance(error, StopIteration | Stopped) else error
            for sharer in self._sharers.values():
                _end(sharer, failed)
            self._sharers.clear()
        if not self._sharers:
            self._steps.close()
        return bool(self._sharers)


def _end(sharer: Sharer, error: BaseException | None) -> None:
    with suppress(OSError):  # nobody listens any more
        sharer.end(error)
