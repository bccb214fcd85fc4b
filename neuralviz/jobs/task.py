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
Lane = Literal["long", "short", "shared"]
"""Beside which other tasks a task waits for its turn: ``short`` takes a second or two at most;
``shared`` costs little more with others of its kind than alone.
"""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    n_done: float = 0.0  # of one kind of thing
    total: float = 0.0  # 0 is not known yet
    unit: str = ""  # the thing, as it is counted: "texts"
    doing: str = ""  # what is done at the moment, with counts; empty before anything is
    is_last: bool = True  # the last part has begun: the pace of others tells nothing of its end

    @property
    def share(self) -> float:
        """The share of the work that is done, 0 … 1."""
        return min(max(self.n_done / self.total, 0.0), 1.0) if self.total else 0.0


class Task(ABC, Generic[E, R]):
    """Work as a value: a frozen dataclass whose fields are the settings.

    Two equal tasks are the same work. The fields are plain values (names, numbers, texts, ids of
    models and corpora), so that a task can be compared, hashed, and sent to another process;
    models are loaded in `events`.
    """

    lane: Lane = "long"

    @abstractmethod
    def start(self) -> R:
        """The result before the first event."""

    @abstractmethod
    def events(self, should_stop: ShouldStop) -> Generator[E, None, None]:
        """Do the work; runs beside whoever reads the result.

        Events are never changed once they are yielded.

        Raises:
            Stopped: ``should_stop``, asked again and again, said so.
            NeuralvizError: the work cannot be done; the message says why and what to do.
        """

    def carry_out(self, add: Callable[[E], None], should_stop: ShouldStop) -> None:
        """Do the work and hand over its events; ends after the event at which it should stop."""
        with closing(self.events(should_stop)) as events:
            for event in events:
                add(event)
                if should_stop():
                    break

    @abstractmethod
    def fold(self, result: R, events: Sequence[E]) -> R:
        """The result with some more events, in order; ``result`` itself stays as it is.

        Folding events together or one after the other gives the same.
        """

    def progress(self, result: R) -> Progress:
        """How far the work is when ``result`` is all that is known."""
        return Progress()


class LatestTask(Task[R, "R | None"]):
    """A task whose events are ever fuller results: the last one is all that counts."""

    def start(self) -> R | None:
        return None

    def fold(self, result: R | None, events: Sequence[R]) -> R | None:
        return events[-1] if events else result


class KeptTask(Task[E, R]):
    """A task whose result can be written down and read again."""

    format: ClassVar[RecordFormat]  # not needed with a `pack` and an `unpack` of its own

    @abstractmethod
    def cache_key(self) -> str:
        """All that the result depends on, and the version of the format, as JSON."""

    def is_whole(self, result: R) -> bool:
        """Whether nothing in a result has failed."""
        return True

    def pack(self, result: R) -> bytes:
        """A result as bytes that hold plain values only."""
        return self.format.pack(result)

    def unpack(self, content: bytes) -> R:
        """The result that `pack` made bytes of; ValueError, LookupError, … for other bytes."""
        restored: R = self.format.unpack(content)
        return restored
