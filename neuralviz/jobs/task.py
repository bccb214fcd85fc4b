"""What a run does: settings in, a stream of events out, folded into a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from neuralviz.arrays import RecordFormat
    from neuralviz.errors import ShouldStop

E = TypeVar("E")
R = TypeVar("R")
# Short: a second or two at most. Shared: costs little beside others of its kind.
Lane = Literal["long", "short", "shared"]


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    n_done: float = 0.0  # in ``unit``
    total: float = 0.0  # 0 while unknown
    unit: str = ""  # such as "texts"
    doing: str = ""  # the current step, with counts; empty before the first
    is_last: bool = True  # whether the last part has begun, so that its pace predicts the end

    @property
    def share(self) -> float:
        return min(max(self.n_done / self.total, 0.0), 1.0) if self.total else 0.0


class Task(ABC, Generic[E, R]):
    """Work as a value: a frozen dataclass of plain settings, comparable, hashable and picklable."""

    lane: Lane = "long"

    @abstractmethod
    def start(self) -> R:
        """The result before the first event."""

    @abstractmethod
    def events(self, should_stop: ShouldStop) -> Generator[E, None, None]:
        """Do the work; events never change once yielded. `Stopped` if ``should_stop``."""

    def carry_out(self, add: Callable[[E], None], should_stop: ShouldStop) -> None:
        """Do the work and hand over its events until ``should_stop``."""
        with closing(self.events(should_stop)) as events:
            for event in events:
                add(event)
                if should_stop():
                    break

    @abstractmethod
    def fold(self, result: R, events: Sequence[E]) -> R:
        """The result with more events, together or one by one; ``result`` itself is unchanged."""

    def progress(self, result: R) -> Progress:
        return Progress()


class LatestTask(Task[R, "R | None"]):
    """A task whose latest event is its result."""

    def start(self) -> R | None:
        return None

    def fold(self, result: R | None, events: Sequence[R]) -> R | None:
        return events[-1] if events else result


class KeptTask(Task[E, R]):
    """A task whose result can be stored and read again."""

    format: ClassVar[RecordFormat]  # unless `pack` and `unpack` are overridden

    @abstractmethod
    def cache_key(self) -> str:
        """Everything that the result depends on, and the format's version, as JSON."""

    def is_whole(self, result: R) -> bool:
        return True

    def pack(self, result: R) -> bytes:
        return self.format.pack(result)

    def unpack(self, content: bytes) -> R:
        """Read what `pack` wrote; ValueError, LookupError or another error for other bytes."""
        restored: R = self.format.unpack(content)
        return restored
