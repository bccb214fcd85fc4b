"""Runs wait their turn, each with a thread that looks after it."""

from __future__ import annotations

import atexit
import heapq
import logging
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.jobs.memory import spare_memory
from neuralviz.jobs.run import Run
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from neuralviz.jobs.task import Task
    from neuralviz.jobs.workers import Workers

LATEST = 5  # tasks of a kind, from which it is told how long another takes
MOST_VARIED = 4.0  # times the shortest that the longest of them may take
LOOK_SECONDS = 0.25  # which a task takes that does nothing
MAX_SHARING = 64  # runs that share their work on workers
CLOSE_SECONDS = 10.0  # for the running work to end when the process does
MEGABYTE = 1 << 20
MOST_UNFINISHED = 500  # of all owners
NOT_BEGUN = "The server was stopped before this run began. Press “Run again” to start it."
R = TypeVar("R")
_log = logging.getLogger(__name__)
Lane = Literal["long", "short", "sharing"]


class BusyError(NeuralvizError):
    """No more can be done now."""


class RunQueue:
    """Carries runs out, at most ``max_running`` at once; owners take turns.

    The next run is that of the owner of whom fewest are under way, and then of the one who has
    waited longest since one was started; an owner's runs are first come, first served. Short tasks
    and those that share their work have queues of their own beside that: nobody waits for a corpus
    to look at a text. The queue forgets a run when it is over; whoever submitted it holds on to it.

    Args:
        max_running: one by default, because one run already uses all cores.
        max_short: so many short tasks at once beside the others.
        max_sharing: so many tasks that share their work at once beside the others; by default none
            does, and they wait like the others.
        workers: carry the runs out; by default this process does.
        max_of_owner: so many runs of one owner may wait or be under way; one more fails with a
            sentence. By default as many as they like.
        spare_mb: megabytes of memory that must be left; with less, a run fails with a sentence
            instead of being queued.
    """

    def __init__(
        self,
        max_running: int = 1,
        max_short: int = 4,
        max_sharing: int = 0,
        workers: Workers | None = None,
        max_of_owner: int | None = None,
        spare_mb: int = 0,
    ) -> None:
        self._workers = workers
        self._max_of_owner = max_of_owner
        self._spare_mb = spare_mb
        self._lock = threading.Lock()
        self._waiting: deque[Run[Any]] = deque()
        self._running: dict[Run[Any], threading.Thread] = {}
        self._owners: dict[Run[Any], str] = {}  # of those that wait or are under way
        self._turns: dict[str, int] = {}  # by owner, the number of the last start
        self._n_started = 0
        self._times = _Durations()
        self._limits: dict[Lane, int] = {
            "long": max_running,
            "short": max_short,
            "sharing": max_sharing,
        }
        self._is_closed = False
        self._listeners: list[Callable[[Run[Any]], None]] = []

    def submit(
        self,
        task: Task[Any, R],
        owner_is_here: Callable[[], bool],
        number: int = 1,
        at_end: Callable[[Run[R]], None] | None = None,
        owner: str = "",
        gone_after: float | None = None,
    ) -> Run[R]:
        """Queue a task and return its run.

        Args:
            task: what is to be done.
            owner_is_here: whether anybody still waits for it; asked from any thread.
            number: of the run among those of its owner.
            at_end: called with the run when it is over.
            owner: whose run it is; owners take turns.
            gone_after: seconds that it goes on while nobody waits for it; by default as of `Run`.
        """

        def ended(run: Run[R]) -> None:
            if at_end is not None:
                at_end(run)
            for listener in self._listeners:
                listener(run)

        run = Run(task, owner_is_here, number, ended, gone_after)
        with self._lock:
            refused = self._find_refusal(owner)
            if refused is None:
                self._waiting.append(run)
                self._owners[run] = owner
                self._start_next()
        if refused is not None:
            run.end(refused)
        return run

    def _find_refusal(self, owner: str) -> BusyError | None:
        """Why a run of an owner cannot be taken now."""
        if self._is_closed:
            return BusyError(NOT_BEGUN)
        if len(self._owners) >= MOST_UNFINISHED:
            return BusyError("The server has too much to do. Try again in a minute.")
        n_unfinished = sum(
            run_owner == owner and not run.is_stopping for run, run_owner in self._owners.items()
        )
        if self._max_of_owner is not None and n_unfinished >= self._max_of_owner:
            return BusyError(
                f"You already have {many(n_unfinished, 'unfinished run')}, the most that this "
                "server allows. Stop one, or wait until one finishes."
            )
        if spare_memory() < self._spare_mb * MEGABYTE:
            return BusyError(
                "The server is short of memory, so it does not start anything new. Try again in "
                "a minute."
            )
        return None

    def at_every_end(self, listener: Callable[[Run[Any]], None]) -> None:
        """Have ``listener`` called with every run that is over, from any thread."""
        self._listeners.append(listener)

    def n_unfinished(self) -> int:
        """Runs that wait or are under way."""
        with self._lock:
            return len(self._owners)

    def n_by_lane(self) -> dict[Lane, tuple[int, int]]:
        """By lane, how many runs wait and how many are under way."""
        with self._lock:
            waiting = Counter(self._lane(run) for run in self._waiting)
            running = Counter(self._lane(run) for run in self._running)
        return {lane: (waiting[lane], running[lane]) for lane in self._limits}

    def place_in_queue(self, run: Run[Any]) -> int:
        """1 for the next run to start, 0 for one that has started."""
        with self._lock:
            self._drop_unwanted()
            ahead = self._in_order(self._lane(run))
        return ahead.index(run) + 1 if run in ahead else 0

    def seconds_until_start(self, run: Run[Any]) -> float | None:
        """How long a run still waits, from how long others took; None while nobody knows.

        0 for one that has started.
        """
        with self._lock:
            lane = self._lane(run)
            ahead = self._in_order(lane)
            if run not in ahead:
                return 0.0
            running = [active for active in self._running if self._lane(active) == lane]
            expected = [self._times.expected(earlier.task) for earlier in ahead[: ahead.index(run)]]
            places = self._limits[lane]
        free_in = [self._seconds_left(active) for active in running]  # which may take a moment
        if None in free_in or None in expected:
            return None
        return next_start(
            [seconds or 0.0 for seconds in free_in],
            [seconds or 0.0 for seconds in expected],
            places,
        )

    def _seconds_left(self, run: Run[Any]) -> float | None:
        """Time left of a run under way: its own estimate, or what others of its kind took.

        None for one that takes longer than they did, which then say nothing of it.
        """
        if (remaining := run.seconds_left) is not None:
            return remaining
        expected = self._times.expected(run.task)
        return None if expected is None or expected < run.seconds else expected - run.seconds

    def _lane(self, run: Run[Any]) -> Lane:
        """Beside which others a run waits for its turn."""
        if run.task.is_short:
            return "short"
        return "sharing" if run.task.is_shared and self._limits["sharing"] else "long"

    def _in_order(self, lane: Lane) -> list[Run[Any]]:
        """The waiting runs in the order in which they will start, if no more come."""
        waiting = [run for run in self._waiting if self._lane(run) == lane]
        n_running = Counter(self._owners[run] for run in self._running if self._lane(run) == lane)
        turns = dict(self._turns)
        ordered = []
        for turn in range(len(waiting)):
            run = min(
                waiting,
                key=lambda candidate: (
                    n_running[self._owners[candidate]],
                    turns.get(self._owners[candidate], 0),
                ),
            )
            waiting.remove(run)
            ordered.append(run)
            owner = self._owners[run]
            turns[owner] = self._n_started + turn + 1
            n_running[owner] += 1
        return ordered

    def close(self, seconds: float = CLOSE_SECONDS, grace: float = 0.0) -> bool:
        """Stop all runs and wait until the running ones have ended; whether they have.

        To be called before Python ends: a thread that is inside torch then takes the process down
        with it (“terminate called without an active exception”).

        Args:
            seconds: for runs that were stopped to end.
            grace: seconds that running ones may go on before they are stopped.
        """
        with self._lock:
            self._is_closed = True
            waiting, running = list(self._waiting), dict(self._running)
        for run in waiting:
            if not run.is_over:
                run.end(BusyError(NOT_BEGUN))
        _join(running.values(), grace)
        cut = [run for run in running if not run.is_over]
        if cut:
            _log.warning("The server ends: %s stopped in the middle.", many(len(cut), "run"))
        for run in cut:
            run.stop()
        _join(running.values(), seconds)
        for run in cut:
            run.end(Stopped())  # where it hangs: what is known of it is kept, and the log says so
        if self._workers is not None:
            self._workers.close()
        return not any(thread.is_alive() for thread in running.values())

    def _start_next(self) -> None:
        self._drop_unwanted()
        if self._is_closed:
            return
        for lane, limit in self._limits.items():
            n_running = sum(self._lane(run) == lane for run in self._running)
            if n_running >= limit:
                continue
            for run in self._in_order(lane)[: limit - n_running]:
                self._waiting.remove(run)
                self._n_started += 1
                self._turns[self._owners[run]] = self._n_started
                thread = threading.Thread(
                    target=self._work, args=(run,), name="neuralviz-run", daemon=True
                )
                self._running[run] = thread
                thread.start()

    def _work(self, run: Run[Any]) -> None:
        try:
            if self._workers is None:
                run.carry_out()
            else:
                self._workers.carry_out(run)
        finally:
            with self._lock:
                del self._running[run]
                self._forget(run)
                if run.status == "done":
                    self._times.note(run.task, run.seconds)
                self._start_next()

    def _drop_unwanted(self) -> None:
        """Take the runs out of the queue that were stopped or whose owner is gone."""
        for run in [run for run in self._waiting if run.is_over or run.is_abandoned()]:
            self._waiting.remove(run)
            self._forget(run)
            # what is called at its end takes its time, and the lock is held here
            threading.Thread(target=run.stop, name="neuralviz-stop", daemon=True).start()

    def _forget(self, run: Run[Any]) -> None:
        owner = self._owners.pop(run)
        if owner not in self._owners.values():  # who comes back is as good as new
            self._turns.pop(owner, None)


class _Durations:
    """How long tasks of each kind took of late."""

    def __init__(self) -> None:
        self._latest: dict[type, deque[float]] = {}

    def note(self, task: Task[Any, Any], seconds: float) -> None:
        """Note how long a task took that was done."""
        self._latest.setdefault(type(task), deque(maxlen=LATEST)).append(seconds)

    def expected(self, task: Task[Any, Any]) -> float | None:
        """How long a task of its kind takes; None before any was done, or where that varies."""
        latest = self._latest.get(type(task))
        if not latest or max(latest) > MOST_VARIED * max(min(latest), LOOK_SECONDS):
            return None
        return sum(latest) / len(latest)


def _join(threads: Iterable[threading.Thread], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def next_start(free_in: list[float], before: list[float], places: int) -> float:
    """When the next run starts: places free up, and those before it take them one by one."""
    free = sorted([*free_in, *[0.0] * (places - len(free_in))])
    for seconds in before:
        heapq.heapreplace(free, free[0] + seconds)
    return free[0]


_queue_lock = threading.Lock()
_the_queue: RunQueue | None = None


def run_queue() -> RunQueue:
    """The queue of this process, closed when the process ends."""
    global _the_queue
    with _queue_lock:
        if _the_queue is None:
            _the_queue = RunQueue()
            atexit.register(_the_queue.close)
        return _the_queue


def serve_runs(
    workers: Workers | None,
    *,
    max_of_owner: int | None = None,
    spare_mb: int = 0,
    start_after: Callable[[], object] = lambda: None,
) -> RunQueue:
    """Make the queue of this process, as a server needs it; to be called before the first run.

    Args:
        workers: carry the runs out, and are started in the background; None leaves the work to
            this process.
        max_of_owner, spare_mb: as of `RunQueue`.
        start_after: returns when the workers may start; a run that comes sooner starts its own.
    """
    global _the_queue
    with _queue_lock:
        if _the_queue is None:
            _the_queue = RunQueue(
                max_running=len(workers) if workers else 1,
                max_sharing=MAX_SHARING if workers else 0,
                workers=workers,
                max_of_owner=max_of_owner,
                spare_mb=spare_mb,
            )
            atexit.register(_the_queue.close)
            if workers is not None:
                threading.Thread(
                    target=_start, args=(workers, start_after), name="neuralviz-start", daemon=True
                ).start()
        return _the_queue


def _start(workers: Workers, start_after: Callable[[], object]) -> None:
    start_after()
    with suppress(Stopped):  # the server ends
        workers.start()
