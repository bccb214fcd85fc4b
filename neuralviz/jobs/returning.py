"""Runs that people come back to: under way, over, or ended by a crash; found by their id."""

from __future__ import annotations

import atexit
import secrets
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from neuralviz.jobs.run import Run
from neuralviz.jobs.run_table import KnownRun, RunTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.jobs.run_table import FinalStatus


R = TypeVar("R")

CRASHED = "The server ended in the middle of this run. Press “Run again” to start it again."
ELSEWHERE = (
    "Another server of this machine is carrying out this run. Its result is shown here when it is "
    "over: reload the page later."
)
STOPPED = "This run was stopped. Press “Run again” to start it again."
FAILED = "This run failed. Press “Run again” to try once more."
CUT_OFF = (
    "The process that did this work ended suddenly; the machine may be out of memory. Press “Run "
    "again” to start it again, with fewer or shorter texts if it ends again."
)
NOT_BEGUN = "This run did not begin. Press “Run again” to start it."
RESULT_DELETED = "The result of this run is no longer saved. Press “Run again” to compute it again."


class ReturningRuns:
    """Runs by their ids.

    Args:
        table: records how the runs end.
    """

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._live: dict[str, tuple[Run[Any], Watchers]] = {}

    def begin(
        self,
        work: str,
        submit: Callable[[Watchers, Callable[[Run[R]], None]], Run[R]],
        keep: Callable[[Run[R]], None] | None = None,
    ) -> tuple[str, Run[R]]:
        """Start a run that can be found again; returns its id and the run.

        Args:
            work: what is done, as of `digest_work`.
            submit: starts it, given who watches it and what is to be called at its end.
            keep: called at the end, before it is known to others that the run is over.
        """
        run_id = secrets.token_urlsafe(12)
        watchers = Watchers()
        self._table.add(run_id, work)

        def at_end(run: Run[R]) -> None:
            if keep is not None:
                keep(run)
            self._table.end(run_id, _final_status(run))
            with self._lock:
                if self._live.pop(run_id, None) is None:
                    ended_ids.append(run_id)  # before it was known that it lives

        ended_ids: list[str] = []
        run = submit(watchers, at_end)
        with self._lock:
            if not ended_ids:
                self._live[run_id] = run, watchers
        return run_id, run

    def join(
        self, run_id: str, is_wanted: Callable[[Any], bool], is_here: Callable[[], bool]
    ) -> Run[Any] | None:
        """The run of an id, if it is under way here, with one more watcher; else None.

        Args:
            run_id: in an address.
            is_wanted: whether a task is what the page is about.
            is_here: whether the new watcher is still there.
        """
        with self._lock:
            run, watchers = self._live.get(run_id, (None, None))
        if run is None or watchers is None or not is_wanted(run.task):
            return None
        watchers.add(is_here)
        return run

    def join_last(
        self, is_wanted: Callable[[Any], bool], is_here: Callable[[], bool]
    ) -> Run[Any] | None:
        """The run under way here that began last of those that are wanted; as of `join`."""
        with self._lock:
            ids = list(self._live)
        joined = (self.join(run_id, is_wanted, is_here) for run_id in reversed(ids))
        return next((run for run in joined if run is not None), None)

    def find(self, run_id: str, work: str) -> KnownRun | None:
        """The table's entry of a run; None where there is none, or the run did other work."""
        known_run = self._table.find(run_id)
        return known_run if known_run is not None and known_run.work == work else None

    def why_no_result(self, run_id: str, work: str) -> str | None:
        """Why a run has no kept result, in a sentence; None where the table does not know the run.

        Args:
            run_id: in an address.
            work: what was done, as of `digest_work`.
        """
        known_run = self.find(run_id, work)
        if known_run is None:
            return None
        sentences = {
            "queued": CRASHED,
            "crashed": CRASHED,
            "elsewhere": ELSEWHERE,
            "done": RESULT_DELETED,
            "stopped": STOPPED,
            "failed": FAILED,
            "cut off": CUT_OFF,
            "not begun": NOT_BEGUN,
        }
        return sentences[known_run.status]

    def close(self) -> None:
        """Let other servers see that this one is gone."""
        self._table.close()


def _final_status(run: Run[Any]) -> FinalStatus:
    """How a run that is over has ended, as the table keeps it."""
    if run.was_cut_off:
        return "cut off"
    if run.status == "failed":
        return "failed" if run.started else "not begun"
    return "stopped" if run.status == "stopped" else "done"


class Watchers:
    """The people who watch a run; the run goes on while any of them is there."""

    def __init__(self) -> None:
        self._checks: list[Callable[[], bool]] = []
        self._lock = threading.Lock()

    def add(self, is_here: Callable[[], bool]) -> None:
        """Add a watcher, of whom ``is_here`` tells whether they are there."""
        with self._lock:
            self._checks.append(is_here)

    def any_is_here(self) -> bool:
        """Whether any watcher is there; forgets those who have left, except the last."""
        with self._lock:
            present = [is_here for is_here in self._checks if is_here()]
            self._checks = present or self._checks[-1:]
            return bool(present)


def digest_work(key: str) -> str:
    """A digest that identifies a piece of work without revealing it.

    Args:
        key: all that the work depends on.
    """
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_lock = threading.Lock()
_returning: ReturningRuns | None = None


def returning_runs() -> ReturningRuns:
    """The runs of this process that people come back to."""
    global _returning
    with _lock:
        if _returning is None:
            _returning = ReturningRuns(RunTable())
            atexit.register(_returning.close)
        return _returning
