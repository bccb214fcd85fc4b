"""What is done: a task with settings, events and a fold into a result; and a task in progress."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from neuralviz.errors import (
    NeuralvizError,
    SettingsError,
    ShouldStop,
    Stopped,
    TextError,
    WorkerEndedError,
    describe_unexpected,
)
from neuralviz.files import RecordFormat

E = TypeVar("E")
R = TypeVar("R")
# Short: a second or two at most. Shared: costs little beside others of its kind.
Lane = Literal["long", "short", "shared"]
Status = Literal["queued", "running", "done", "stopped", "failed"]

GONE_AFTER = 20.0  # seconds without an owner until the work ends; a reconnect takes less
LOOK_EVERY = 1.0  # seconds between two checks for the owner
MEASURED_SECONDS = 1.0  # of work before its estimate counts
MEASURED_EVENTS = 3  # and events: the first may be slow for another reason
FOLD_EVERY = 100  # events that an unread run holds at most

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    n_done: float = 0.0
    total: float = 0.0  # 0 while unknown
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
        return self.format.unpack(content)


# --- a task in progress --------------------------------------------------------------------------


class Run(Generic[R]):
    """A task that is queued, active or over, with its result so far; any thread may use `stop`.

    The thread that ends it then calls the functions in ``at_end``, in order.
    """

    def __init__(
        self,
        task: Task[Any, R],
        owner_is_here: Callable[[], bool] = lambda: True,  # asked once a second at most
        *,
        owner: str = "",
        view: str = "",  # id under which the result is kept, if any
        work: str = "",  # what is done, for people who return to its address
    ) -> None:
        self.id = secrets.token_hex(12)  # cannot be guessed
        self.task: Any = task  # pages know which kind of task they have submitted
        self.number = 0  # among the owner's runs of its kind, from 1; 0 until it is one of them
        self.owner, self.view, self.work = owner, view, work
        self.status: Status = "queued"
        self.error: str | None = None  # why it failed, in a sentence
        self.may_succeed_again = True  # with the same texts and settings
        self.started: float | None = None  # seconds since the epoch
        self.finished: float | None = None  # seconds since the epoch
        self.is_reopened = False  # its result was kept from an earlier visit
        self.n_events = 0
        self.gone_after = GONE_AFTER
        self.at_end: list[Callable[[Run[Any]], None]] = []
        self._start_time = self._end_time = 0.0  # monotonic, as all times below
        self._created = time.monotonic()
        self._result = task.start()
        self._fold_failure: Exception | None = None
        self._unread: list[Any] = []
        self._last_event = 0.0
        self._last_part: tuple[float, int, float] | None = None  # time, events, share at its start
        self._lock = threading.Lock()  # for status and unread events
        self._folding = threading.RLock()  # for the result
        self._over_event = threading.Event()
        self._stop_asked = threading.Event()
        self._watchers = [owner_is_here]
        self._last_look = -LOOK_EVERY
        self._gone_since: float | None = None

    @classmethod
    def from_result(
        cls,
        task: Task[Any, R],
        result: R,
        *,
        status: Literal["done", "stopped"] = "done",
        finished: float = 0.0,
        seconds: float = 0.0,  # of work
        view: str = "",
        n_events: int = 1,
    ) -> Run[R]:
        """A run that ended earlier."""
        run: Run[R] = cls(task, view=view)
        run._result, run.status, run.is_reopened = result, status, True
        run.n_events = n_events
        run._start_time, run._end_time = 1.0, 1.0 + seconds
        run.started, run.finished = finished - seconds, finished
        run._over_event.set()
        return run

    # --- for readers ----------------------------------------------------------------------------

    def watch(self, is_here: Callable[[], bool]) -> None:
        """Keep the run going while ``is_here``, asked from any thread, is true."""
        self._watchers.append(is_here)

    @property
    def is_over(self) -> bool:
        return self._over_event.is_set()

    @property
    def result(self) -> R:
        """The result so far; it never changes, but a newer one replaces it."""
        with self._folding:
            self._fold()
            return self._result

    @property
    def has_nothing(self) -> bool:
        """Whether it failed or was stopped before its first event."""
        return self.status in ("failed", "stopped") and not self.n_events

    @property
    def is_stopping(self) -> bool:
        return self._stop_asked.is_set()

    @property
    def progress(self) -> Progress:
        return self.task.progress(self.result)

    @property
    def seconds(self) -> float:
        """Duration of the work so far; 0 before it starts."""
        return (self._end_time or time.monotonic()) - self._start_time if self._start_time else 0.0

    @property
    def seconds_waited(self) -> float:
        return (self._start_time or self._end_time or time.monotonic()) - self._created

    @property
    def seconds_left(self) -> float | None:
        """Expected time left, at the pace of the last part; None if unknown."""
        if self.is_over:
            return 0.0
        with self._folding:
            progress, moment, n_events = self.progress, self._last_event, self.n_events
            if not n_events or not progress.is_last:
                return None
            self._last_part = self._last_part or (moment, n_events, progress.share)
            began, n_before, share_before = self._last_part
        gained, measured = progress.share - share_before, moment - began
        if gained <= 0 or measured < MEASURED_SECONDS or n_events - n_before < MEASURED_EVENTS:
            return None
        silent, of_an_event = time.monotonic() - moment, measured / (n_events - n_before)
        overdue = max(silent - of_an_event, 0.0)  # the pace is then a slower one
        remaining = (measured + overdue) / gained * (1 - progress.share)
        return max(remaining - (silent - overdue), 0.0)

    def stop(self) -> None:
        """Ask the work to end, or not to begin; the result so far stays."""
        self._stop_asked.set()
        self._end("stopped", only_queued=True)

    def wait(self, seconds: float | None = None) -> bool:
        return self._over_event.wait(seconds)

    def is_abandoned(self) -> bool:
        """Whether everyone who watched it has left for good."""
        moment = time.monotonic()
        if moment - self._last_look >= LOOK_EVERY:
            self._last_look = moment
            if any(is_here() for is_here in self._watchers):
                self._gone_since = None
            elif self._gone_since is None:
                self._gone_since = moment
        gone_since = self._gone_since  # another thread may set it meanwhile
        return gone_since is not None and moment - gone_since > self.gone_after

    # --- for workers ----------------------------------------------------------------------------

    def begin(self) -> bool:
        """Mark the start; False if the run was stopped before."""
        with self._lock:
            if self.status != "queued":
                return False
            self.status = "running"
            self.started, self._start_time = time.time(), time.monotonic()
        return True

    def add(self, event: Any) -> None:
        with self._lock:
            self._unread.append(event)
            self._last_event = time.monotonic()
            self.n_events += 1
            n_unread = len(self._unread)
        if n_unread >= FOLD_EVERY:
            with self._folding:
                self._fold()

    def should_stop(self) -> bool:
        """Whether it was stopped or abandoned, or its events cannot be folded."""
        if self.is_abandoned():
            self._stop_asked.set()
        return self._stop_asked.is_set() or self._fold_failure is not None

    def end(self, failure: BaseException | None = None) -> None:
        """Mark the end, as stopped if that was asked for; only the first end counts."""
        with self._folding:
            self._fold()
        if isinstance(failure, WorkerEndedError) and self.is_stopping:
            failure = Stopped()
        if failure is None or isinstance(failure, Stopped):
            failure = self._fold_failure or failure
        if failure is None:
            self._end("stopped" if self.is_stopping else "done")
        elif isinstance(failure, Stopped):
            self._end("stopped")
        elif isinstance(failure, NeuralvizError):
            self.may_succeed_again = not isinstance(failure, TextError | SettingsError)
            self._end("failed", str(failure))
        else:
            _log.error("A run failed: %s.", type(self.task).__name__, exc_info=failure)
            self._end("failed", describe_unexpected(failure))

    def carry_out(self, act: Callable[[Any, Any, Any], None] = Task.carry_out) -> None:
        """Do the work, by ``act`` with the arguments of `Task.carry_out`, unless it was stopped."""
        if not self.begin():
            return
        try:
            act(self.task, self.add, self.should_stop)
        except BaseException as error:  # even panics of extensions: no reader may wait for ever
            self.end(error)
        else:
            self.end()

    def _fold(self) -> None:
        """Fold unread events; one that cannot be folded ends the run as failed."""
        with self._lock:
            events, self._unread = self._unread, []
        if not events or self._fold_failure is not None:
            return
        try:
            self._result = self.task.fold(self._result, events)
        except Exception as error:
            self._fold_failure = error

    def _end(self, status: Status, error: str | None = None, *, only_queued: bool = False) -> None:
        with self._lock:
            if self.is_over or (only_queued and self.status != "queued"):
                return
            self.error = error
            self.finished, self._end_time = time.time(), time.monotonic()
            self.status = status
            self._over_event.set()
        for listener in self.at_end:
            try:
                listener(self)
            except Exception:  # the other listeners still run
                _log.exception("A listener to a run's end failed: %s.", type(self.task).__name__)
