"""Long work beside the page: a queue of jobs on threads, each owned by a browser session.

The queue forgets a job when it is over; whoever submitted it holds on to what it made.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from neuralviz.errors import NeuralvizError, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

Status = Literal["queued", "running", "done", "stopped", "failed"]

GONE_AFTER = 20.0  # seconds without the owner until its work ends: a reconnect takes less
LOOK_EVERY = 1.0  # seconds between two looks for the owner
CLOSE_SECONDS = 10.0  # for the work to end when the process does

_log = logging.getLogger(__name__)


class Job:
    """One piece of work: the events nobody has taken yet, and how it ended.

    The worker calls ``add`` and ``should_stop``; anybody may read and ``stop``.
    Times are seconds since the epoch.
    """

    def __init__(self, label: str, owner_is_here: Callable[[], bool]) -> None:
        self.label = label
        self.status: Status = "queued"
        self.error: str | None = None
        self.started: float | None = None
        self.finished: float | None = None
        self._events: list[Any] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._stop_asked = threading.Event()
        self._told_to_stop = False
        self._owner_is_here = owner_is_here
        self._last_look = -LOOK_EVERY
        self._gone_since: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the job is done, stopped or failed."""
        return self._over.is_set()

    @property
    def seconds(self) -> float:
        """How long the work has taken so far, or took; 0 before it starts."""
        return (self.finished or time.time()) - self.started if self.started else 0.0

    def take(self) -> list[Any]:
        """The events that have come since the last time; they are not kept."""
        with self._lock:
            events, self._events = self._events, []
        return events

    def add(self, event: Any) -> None:
        """Append an event."""
        with self._lock:
            self._events.append(event)

    def stop(self) -> None:
        """Ask the work to end, or not to begin; what it has added stays."""
        self._stop_asked.set()
        with self._lock:
            if self.status == "queued":
                self._end("stopped")

    def should_stop(self) -> bool:
        """Whether the work should end now: it was asked to, or its owner is gone for good."""
        if self._stop_asked.is_set() or self.is_abandoned():
            self._told_to_stop = True
        return self._told_to_stop

    def is_abandoned(self) -> bool:
        """Whether the owner has been gone for more than ``GONE_AFTER`` seconds."""
        now = time.monotonic()
        if now - self._last_look >= LOOK_EVERY:
            self._last_look = now
            if self._owner_is_here():
                self._gone_since = None
            elif self._gone_since is None:
                self._gone_since = now
        return self._gone_since is not None and now - self._gone_since > GONE_AFTER

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the job is over; False when ``seconds`` have passed before."""
        return self._over.wait(seconds)

    def _run(self, work: Callable[[Job], None]) -> None:
        with self._lock:
            if self.is_over:
                return
            self.status = "running"
            self.started = time.time()
        try:
            work(self)
        except Stopped:
            self._end("stopped")
        except NeuralvizError as error:
            self._end("failed", str(error))
        except Exception as error:
            _log.exception("The job “%s” failed.", self.label)
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            self._end("failed", f"Something went wrong that was not foreseen ({reason}).")
        else:
            self._end("stopped" if self._told_to_stop else "done")

    def _end(self, status: Status, error: str | None = None) -> None:
        self.error = error
        self.finished = time.time()
        self.status = status
        self._over.set()


class JobQueue:
    """Runs jobs first come, first served, at most ``max_running`` at once.

    Args:
        max_running: one by default, because one run already uses all cores.
    """

    def __init__(self, max_running: int = 1) -> None:
        self.max_running = max_running
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Job, Callable[[Job], None]]] = deque()
        self._running: dict[Job, threading.Thread] = {}
        self._is_closed = False

    def submit(
        self, label: str, work: Callable[[Job], None], owner_is_here: Callable[[], bool]
    ) -> Job:
        """Queue ``work`` and return its job.

        ``work`` runs on a thread of its own: it adds events to the job it is given, asks
        ``should_stop`` again and again, and never calls Streamlit.
        """
        job = Job(label, owner_is_here)
        with self._lock:
            if self._is_closed:
                job.stop()
            self._waiting.append((job, work))
            self._start_next()
        return job

    def place_in_queue(self, job: Job) -> int:
        """1 for the next job to start, 0 for one that has started."""
        with self._lock:
            self._drop_unwanted()
            waiting = [queued for queued, _ in self._waiting]
        return waiting.index(job) + 1 if job in waiting else 0

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Stop all jobs and wait until the running ones have ended; whether they have.

        To be called before Python ends: a thread that is inside torch then takes the process down
        with it (“terminate called without an active exception”).
        """
        with self._lock:
            self._is_closed = True
            for job, _ in self._waiting:
                job.stop()
            running = dict(self._running)
        for job in running:
            job.stop()
        until = time.monotonic() + seconds
        for thread in running.values():
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in running.values())

    def _start_next(self) -> None:
        self._drop_unwanted()
        while self._waiting and len(self._running) < self.max_running:
            job, work = self._waiting.popleft()
            self._running[job] = thread = threading.Thread(
                target=self._work, args=(job, work), name="neuralviz-job", daemon=True
            )
            thread.start()

    def _work(self, job: Job, work: Callable[[Job], None]) -> None:
        try:
            job._run(work)
        finally:
            with self._lock:
                del self._running[job]
                self._start_next()

    def _drop_unwanted(self) -> None:
        """Take the jobs out of the line that were stopped or whose owner is gone."""
        for job, _ in self._waiting:
            if job.is_abandoned():
                job.stop()
        self._waiting = deque(entry for entry in self._waiting if not entry[0].is_over)


@cache
def job_queue() -> JobQueue:
    """The queue of this process, closed when the process ends."""
    queue = JobQueue()
    atexit.register(queue.close)
    return queue
