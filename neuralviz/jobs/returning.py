"""Runs that people come back to: under way, over, or ended by a crash; found by their id."""

from __future__ import annotations

import atexit
import secrets
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from neuralviz.jobs.keeping import keeper, result_key
from neuralviz.jobs.run import Run
from neuralviz.jobs.run_table import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.jobs.keeping import KeptTask

R = TypeVar("R")

UNWATCHED_SECONDS = 3600.0  # that a run goes on while nobody looks: a laptop may be closed
CRASHED = "The server ended in the middle of this run. Press “Run again” to start it again."
ELSEWHERE = (
    "Another server of this machine is carrying out this run. Its result is shown here when it is "
    "over: reload the page later."
)
STOPPED = "This run was stopped. Press “Run again” to start it again."
GONE = "The result of this run is no longer saved. Press “Run again” to compute it again."


class Returning:
    """Runs by their ids.

    Args:
        table: where it is noted what becomes of them.
    """

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._live: dict[str, tuple[Run[Any], Watchers]] = {}

    def begin(
        self,
        task: KeptTask[Any, R],
        view: str,
        submit: Callable[[Watchers, Callable[[Run[R]], None]], Run[R]],
        *,
        in_part: bool,
    ) -> tuple[str, Run[R]]:
        """Start a run that can be found again, and its id.

        Args:
            task: what is to be done.
            view: id under which the result is kept.
            submit: starts it, given who watches it and what is to be called at its end.
            in_part: as of `keeper`.
        """
        run_id = secrets.token_urlsafe(12)
        watchers = Watchers()
        keep = keeper(view, in_part=in_part)
        self._table.add(run_id, digest_of(task))

        def at_end(run: Run[R]) -> None:
            keep(run)
            self._table.end(run_id, run.status, run.error)
            with self._lock:
                if self._live.pop(run_id, None) is None:
                    over.append(run_id)  # before it was known that it lives

        over: list[str] = []
        run = submit(watchers, at_end)
        with self._lock:
            if not over:
                self._live[run_id] = run, watchers
        return run_id, run

    def join(
        self, run_id: str, task: KeptTask[Any, R], is_here: Callable[[], bool]
    ) -> Run[R] | None:
        """The run of an id, if it is of this task and under way here; looked at by one more."""
        with self._lock:
            run, watchers = self._live.get(run_id, (None, None))
        if run is None or watchers is None or run.task != task:
            return None
        watchers.add(is_here)
        return run

    def over(self, run_id: str, task: KeptTask[Any, R], number: int) -> Run[R] | None:
        """What became of the run of an id whose result is not kept; None where that is not known.

        Args:
            run_id: in an address.
            task: what was done.
            number: of the run among those of its owner.
        """
        known = self._table.find(run_id)
        if known is None or known.work != digest_of(task):
            return None
        sentences = {
            "queued": CRASHED,
            "crashed": CRASHED,
            "elsewhere": ELSEWHERE,
            "done": GONE,
            "stopped": STOPPED,
        }
        return Run.failed(task, sentences.get(known.status, known.error or CRASHED), number)

    def close(self) -> None:
        """Let other servers see that this one is gone."""
        self._table.close()


class Watchers:
    """Who looks at a run; it is somebody's as long as one of them is there."""

    def __init__(self) -> None:
        self._here: list[Callable[[], bool]] = []

    def add(self, is_here: Callable[[], bool]) -> None:
        """One more."""
        self._here.append(is_here)

    def any_is_here(self) -> bool:
        """Whether anybody is; those who have left are forgotten but for the last."""
        there = [one for one in self._here if one()]
        self._here = there or self._here[-1:]
        return bool(there)


def digest_of(task: KeptTask[Any, Any]) -> str:
    """What tells the work of a task from all other work, without saying what it is."""
    return blake2b(result_key(task).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_lock = threading.Lock()
_returning: Returning | None = None


def returning() -> Returning:
    """The runs of this process that people come back to."""
    global _returning
    with _lock:
        if _returning is None:
            _returning = Returning(RunTable())
            atexit.register(_returning.close)
        return _returning
