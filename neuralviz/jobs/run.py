"""A task on its way: what is known of it so far, and how it ended."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from neuralviz.errors import (
    NeuralvizError,
    SettingsError,
    Stopped,
    TextError,
    WorkerEndedError,
    describe_unexpected,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.jobs.task import Progress, Task

R = TypeVar("R")
Status = Literal["queued", "running", "done", "stopped", "failed"]

GONE_AFTER = 20.0  # seconds without the owner until its work ends: a reconnect takes less
LOOK_EVERY = 1.0  # seconds between two looks for the owner
MEASURED_SECONDS = 1.0  # of work, before its time left is believed
FOLD_EVERY = 100  # events: a run that nobody looks at holds no more of them

_log = logging.getLogger(__name__)
_ids = itertools.count(1)


class Run(Generic[R]):
    """A task that is queued, under way or over, and its result so far.

    Anybody may read a run and `stop` it, from any thread. What carries it out calls `begin`,
    `add`, `should_stop` and `end`, or `carry_out`, which calls them all.

    Attributes:
        id: no two runs of a process have the same.
        number: counts the runs of an owner, from 1.
        task: what is done.
        status: ``queued``, ``running``, ``done``, ``stopped`` or ``failed``.
        error: why it failed, in a sentence.
        may_succeed_again: false where texts or settings have to change first.
        was_cut_off: whether the process that did the work ended in the middle.
        started, finished: seconds since the epoch; None before.
        is_reopened: whether its result was kept from an earlier visit.

    Args:
        task: what is to be done.
        owner_is_here: whether anybody still waits for it; asked at most once a second.
        number: see above.
        at_end: called with the run when it is over, by the thread that carried it out.
        gone_after: seconds without the owner until its work ends; by default a reconnect has time.
    """

    def __init__(
        self,
        task: Task[Any, R],
        owner_is_here: Callable[[], bool],
        number: int = 1,
        at_end: Callable[[Run[R]], None] | None = None,
        gone_after: float | None = None,
    ) -> None:
        self.id = next(_ids)
        self.number = number
        self.task: Any = task  # pages know which kind of task they have submitted
        self.status: Status = "queued"
        self.error: str | None = None
        self.may_succeed_again = True
        self.was_cut_off = False
        self.started: float | None = None
        self.finished: float | None = None
        self.is_reopened = False
        self._start_time = self._end_time = 0.0  # on the clock that never jumps
        self._created = time.monotonic()
        self._result = task.start()
        self._fold_failure: Exception | None = None
        self._unread: list[Any] = []
        self._n_events = 0
        self._pace = _Pace()
        self._lock = threading.Lock()  # for status and unread events
        self._folding = threading.RLock()  # for the result
        self._over_event = threading.Event()
        self._stop_asked = threading.Event()
        self._owner_is_here = owner_is_here
        self._at_end = at_end
        self._gone_after = GONE_AFTER if gone_after is None else gone_after
        self._last_look = -LOOK_EVERY
        self._gone_since: float | None = None

    @classmethod
    def from_result(
        cls,
        task: Task[Any, R],
        result: R,
        *,
        status: Literal["done", "stopped"],
        finished: float,
        seconds: float,
        number: int = 1,
    ) -> Run[R]:
        """A run that ended before, at another time or in another process.

        Args:
            task, result: what was done, and what came of it.
            status: how it ended.
            finished: when, in seconds since the epoch.
            seconds: how long the work took.
            number: see above.
        """
        run: Run[R] = cls(task, lambda: True, number)
        run._result = result
        run._start_time, run._end_time = 1.0, 1.0 + seconds
        run.status, run.started, run.finished = status, finished - seconds, finished
        run.is_reopened = True
        run._over_event.set()
        return run

    # --- for whoever looks ----------------------------------------------------------------------

    @classmethod
    def from_error(cls, task: Task[Any, R], error: str, number: int = 1) -> Run[R]:
        """A run that ended without a result at another time or in another process.

        Args:
            task: what was to be done.
            error: what became of it, in a sentence.
            number: see above.
        """
        run: Run[R] = cls(task, lambda: True, number)
        run.status, run.error = "failed", error
        run._over_event.set()
        return run

    @property
    def is_over(self) -> bool:
        """Whether the run is done, stopped or failed."""
        return self._over_event.is_set()

    @property
    def result(self) -> R:
        """The result so far. A result that was read never changes; a newer one replaces it."""
        with self._folding:
            self._fold()
            return self._result

    @property
    def n_events(self) -> int:
        """How often there was news of it."""
        return self._n_events

    @property
    def has_nothing(self) -> bool:
        """Whether it failed or was stopped before its first event."""
        ended_early = self.status in ("failed", "stopped") and not self.is_reopened
        return ended_early and not self._n_events

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked it to stop."""
        return self._stop_asked.is_set()

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        return self.task.progress(self.result)

    @property
    def seconds(self) -> float:
        """How long the work has taken so far, or took; 0 before it starts."""
        return (self._end_time or time.monotonic()) - self._start_time if self._start_time else 0.0

    @property
    def seconds_waited(self) -> float:
        """How long the run has waited for its turn, or waited."""
        return (self._start_time or self._end_time or time.monotonic()) - self._created

    @property
    def seconds_left(self) -> float | None:
        """How long it will still take; None while nobody knows.

        Measured since the first event of the last part: how quickly another part went tells
        nothing of it.
        """
        if self.is_over:
            return 0.0
        with self._folding:
            return self._pace.seconds_left(self.progress, time.monotonic())

    def stop(self) -> None:
        """Ask the work to end, or not to begin; what is known of it stays."""
        self._stop_asked.set()
        with self._lock:
            if self.status != "queued":
                return
            self._end("stopped")
        if self._at_end is not None:
            self._at_end(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the run is over; False when ``seconds`` have passed before."""
        return self._over_event.wait(seconds)

    def is_abandoned(self) -> bool:
        """Whether the owner has been gone for good."""
        moment = time.monotonic()
        if moment - self._last_look >= LOOK_EVERY:
            self._last_look = moment
            if self._owner_is_here():
                self._gone_since = None
            elif self._gone_since is None:
                self._gone_since = moment
        gone_since = self._gone_since  # another thread may set it meanwhile
        return gone_since is not None and moment - gone_since > self._gone_after

    # --- for what carries it out ----------------------------------------------------------------

    def begin(self) -> bool:
        """Note that the work starts; False when it was stopped before."""
        with self._lock:
            if self.status != "queued":
                return False
            self.status = "running"
            self.started, self._start_time = time.time(), time.monotonic()
        return True

    def add(self, event: Any) -> None:
        """Take in an event of the task."""
        moment = time.monotonic()
        with self._lock:
            self._unread.append(event)
            self._n_events += 1
            n_unread = len(self._unread)
            is_first = self._pace.note(moment)
        if is_first or n_unread >= FOLD_EVERY:
            with self._folding:
                self._fold()
                if is_first:
                    self._pace.begin(self.task.progress(self._result))

    def should_stop(self) -> bool:
        """Whether the work should end now.

        It was asked to, its owner is gone for good, or its events can no longer be folded.
        """
        if self.is_abandoned():
            self._stop_asked.set()
        return self._stop_asked.is_set() or self._fold_failure is not None

    def end(self, failure: BaseException | None = None) -> None:
        """Note how the work ended; one that was asked to stop is stopped, however far it came.

        Only the first end counts: a server that ends does not wait for work that hangs.

        Args:
            failure: what it raised, if anything.
        """
        with self._folding:
            self._fold()
        if isinstance(failure, WorkerEndedError) and self.is_stopping:
            failure = None  # as was asked for
        if failure is None or isinstance(failure, Stopped):
            failure = self._fold_failure or failure
        status: Status = "failed"
        error = None
        if failure is None:
            status = "stopped" if self._stop_asked.is_set() else "done"
        elif isinstance(failure, Stopped):
            status = "stopped"
        elif isinstance(failure, NeuralvizError):
            error = str(failure)
            self.may_succeed_again = not isinstance(failure, TextError | SettingsError)
            self.was_cut_off = isinstance(failure, WorkerEndedError)
        else:
            _log.error("A run failed: %s.", type(self.task).__name__, exc_info=failure)
            error = describe_unexpected(failure)
        with self._lock:
            if self.is_over:
                return
            self._end(status, error)
        if self._at_end is not None:
            self._at_end(self)

    def carry_out(self) -> None:
        """Do the task here and now."""
        if not self.begin():
            return
        try:
            with closing(self.task.events(self.should_stop)) as events:
                for event in events:
                    self.add(event)
                    if self.should_stop():
                        break
        except BaseException as error:  # panics of extensions, too: nobody may wait for ever
            self.end(error)
            if not isinstance(error, Exception):
                raise
        else:
            self.end()

    def _fold(self) -> None:
        """Take in the events nobody has read; one that cannot be folded ends the run as failed.

        Whoever reads the result gets the last one that could be folded.
        """
        with self._lock:
            events, self._unread = self._unread, []
        if not events or self._fold_failure is not None:
            return
        try:
            self._result = self.task.fold(self._result, events)
        except Exception as error:
            self._fold_failure = error

    def _end(self, status: Status, error: str | None = None) -> None:
        self.error = error
        self.finished, self._end_time = time.time(), time.monotonic()
        self.status = status
        self._over_event.set()


class _Pace:
    """How quickly the part of a run goes that is under way, from the times of its events."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._last = 0.0
        self._at_first: Progress | None = None

    def note(self, moment: float) -> bool:
        """Note the time of an event; whether it is the first."""
        self._last = moment
        if self._first is not None:
            return False
        self._first = moment
        return True

    def begin(self, progress: Progress) -> None:
        """Note how far the run was at its first event: what was done before came at once."""
        self._at_first = progress

    def seconds_left(self, progress: Progress, moment: float) -> float | None:
        """Until a share of 1, when the rest goes as what was seen; None before that is known."""
        if self._first is None or self._at_first is None:
            return None
        if progress.part != self._at_first.part:  # which has just begun
            self._first, self._at_first = self._last, progress
        gained, measured = progress.share - self._at_first.share, self._last - self._first
        if not progress.is_last or gained <= 0 or measured < MEASURED_SECONDS:
            return None
        return max(measured / gained * (1 - progress.share) - (moment - self._last), 0.0)
