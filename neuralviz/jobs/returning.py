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

    from neuralviz.jobs.run_table import Known


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
        work: str,
        submit: Callable[[Watchers, Callable[[Run[R]], None]], Run[R]],
        keep: Callable[[Run[R]], None] | None = None,
    ) -> tuple[str, Run[R]]:
        """Start a run that can be found again, and its id.

        Args:
            work: what is done, as of `work_of`.
            submit: starts it, given who watches it and what is to be called at its end.
            keep: called at the end, before it is known to others that the run is over.
        """
        run_id = secrets.token_urlsafe(12)
        watchers = Watchers()
        self._table.add(run_id, work)

        def at_end(run: Run[R]) -> None:
            if keep is not None:
                keep(run)
            self._table.end(run_id, _end_of(run))
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
        self, run_id: str, is_wanted: Callable[[Any], bool], is_here: Callable[[], bool]
    ) -> Run[Any] | None:
        """The run of an id, if it is under way here; looked at by one more.

        Args:
            run_id: in an address.
            is_wanted: whether a task is what the page is about.
            is_here: whether the one who looks still does.
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
        """What is known of the run of an id; None where nothing is, or it did other work."""
        known = self._table.find(run_id)
        return known if known is not None and known.work == work else None

    def why_no_result(self, run_id: str, work: str) -> str | None:
        """What became of the run of an id whose result is not kept; None where that is not known.

        Args:
            run_id: in an address.
            work: what was done, as of `work_of`.
        """
        known = self.find(run_id, work)
        if known is None:
            return None
        sentences = {
            "queued": CRASHED,
            "crashed": CRASHED,
            "elsewhere": ELSEWHERE,
            "done": GONE,
            "stopped": STOPPED,
            "failed": FAILED,
            "cut off": CUT_OFF,
            "not begun": NOT_BEGUN,
        }
        return sentences[known.status]

    def close(self) -> None:
        """Let other servers see that this one is gone."""
        self._table.close()


def _end_of(run: Run[Any]) -> Known:
    """How a run that is over has ended, as the table keeps it."""
    if run.was_cut_off:
        return "cut off"
    if run.status == "failed":
        return "failed" if run.started else "not begun"
    return "stopped" if run.status == "stopped" else "done"


class Watchers:
    """Who looks at a run; it is somebody's as long as one of them is there."""

    def __init__(self) -> None:
        self._here: list[Callable[[], bool]] = []
        self._lock = threading.Lock()

    def add(self, is_here: Callable[[], bool]) -> None:
        """One more."""
        with self._lock:
            self._here.append(is_here)

    def any_is_here(self) -> bool:
        """Whether anybody is; those who have left are forgotten but for the last."""
        with self._lock:
            there = [one for one in self._here if one()]
            self._here = there or self._here[-1:]
            return bool(there)


def work_of(key: str) -> str:
    """What tells a piece of work from all other work, without saying what it is.

    Args:
        key: all that the work depends on.
    """
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
