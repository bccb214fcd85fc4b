"""Runs wait their turn, each with a thread that looks after it; an executor does the work."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from neuralviz.jobs.run import Run
from neuralviz.jobs.workers import Here

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.jobs.task import Task
    from neuralviz.jobs.workers import Executor, Workers

CLOSE_SECONDS = 10.0  # for the running work to end when the process does
R = TypeVar("R")


class RunQueue:
    """Carries runs out first come, first served, at most ``max_running`` at once.

    Short tasks have a queue of their own beside that: nobody waits for a corpus to look at a text.
    The queue forgets a run when it is over; whoever submitted it holds on to it.

    Args:
        max_running: one by default, because one run already uses all cores.
        max_short: so many short tasks at once beside the others.
        executor: where runs are carried out; by default in this process.
    """

    def __init__(
        self, max_running: int = 1, max_short: int = 4, executor: Executor | None = None
    ) -> None:
        self._executor = executor or Here()
        self._lock = threading.Lock()
        self._waiting: deque[Run[Any]] = deque()
        self._running: dict[Run[Any], threading.Thread] = {}
        self._most = {False: max_running, True: max_short}  # by whether for short tasks
        self._is_closed = False

    def submit(
        self,
        task: Task[Any, R],
        owner_is_here: Callable[[], bool],
        number: int = 1,
        at_end: Callable[[Run[R]], None] | None = None,
    ) -> Run[R]:
        """Queue a task and return its run.

        Args:
            task: what is to be done.
            owner_is_here: whether anybody still waits for it; asked from any thread.
            number: of the run among those of its owner.
            at_end: called with the run when it is over.
        """
        run = Run(task, owner_is_here, number, at_end)
        with self._lock:
            if self._is_closed:
                run.stop()
            self._waiting.append(run)
            self._start_next()
        return run

    def place_in_queue(self, run: Run[Any]) -> int:
        """1 for the next run to start, 0 for one that has started."""
        with self._lock:
            self._drop_unwanted()
            waiting = [one for one in self._waiting if one.task.is_short == run.task.is_short]
        return waiting.index(run) + 1 if run in waiting else 0

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Stop all runs and wait until the running ones have ended; whether they have.

        To be called before Python ends: a thread that is inside torch then takes the process down
        with it (“terminate called without an active exception”).
        """
        with self._lock:
            self._is_closed = True
            for run in self._waiting:
                run.stop()
            running = dict(self._running)
        for run in running:
            run.stop()
        until = time.monotonic() + seconds
        for thread in running.values():
            thread.join(max(0.0, until - time.monotonic()))
        self._executor.close()
        return not any(thread.is_alive() for thread in running.values())

    def _start_next(self) -> None:
        self._drop_unwanted()
        for run in list(self._waiting):
            if self._n_running(run.task.is_short) < self._most[run.task.is_short]:
                self._waiting.remove(run)
                thread = threading.Thread(
                    target=self._work, args=(run,), name="neuralviz-run", daemon=True
                )
                self._running[run] = thread
                thread.start()

    def _n_running(self, is_short: bool) -> int:
        return sum(run.task.is_short == is_short for run in self._running)

    def _work(self, run: Run[Any]) -> None:
        try:
            self._executor.carry_out(run)
        finally:
            with self._lock:
                del self._running[run]
                self._start_next()

    def _drop_unwanted(self) -> None:
        """Take the runs out of the queue that were stopped or whose owner is gone."""
        for run in self._waiting:
            if run.is_abandoned():
                run.stop()
        self._waiting = deque(run for run in self._waiting if not run.is_over)


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


def serve_runs(workers: Workers | None) -> None:
    """Have the runs of this process carried out by workers; to be called before the first run.

    Args:
        workers: started in the background; None leaves the work to this process.
    """
    global _the_queue
    with _queue_lock:
        if workers is None or _the_queue is not None:
            return
        _the_queue = RunQueue(max_running=len(workers), executor=workers)
        atexit.register(_the_queue.close)
    threading.Thread(target=workers.start, name="neuralviz-start", daemon=True).start()
