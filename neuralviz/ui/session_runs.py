"""The runs of a browser session: one replaces another, a double click starts only one, and the
address leads back to a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.jobs import Run, run_queue
from neuralviz.jobs.keeping import KeptTask, make_keeper, reopen_run, result_key
from neuralviz.jobs.returning import digest_work, returning_runs
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.links import RUN, is_shared, set_query_params
from neuralviz.ui.session import connection_check, session_id

if TYPE_CHECKING:
    from neuralviz.jobs import Task
    from neuralviz.jobs.returning import Watchers
    from neuralviz.jobs.run_table import KnownRun

R = TypeVar("R")


@dataclass(frozen=True)
class SessionRuns:
    """The runs of one kind that a browser session has started.

    Attributes:
        kind: names them; begins the keys of their widgets.
        at_once: how many may be queued or running. One more is refused; where it is 1, a new run
            replaces the former, which is stopped.
        kept: how many are remembered with their results.
    """

    kind: str
    at_once: int = 1
    kept: int = 4

    def list_runs(self) -> list[Run[Any]]:
        """The runs of this kind, the last requested one at the end."""
        return list(st.session_state.get(self._key, ()))

    def last(self) -> Run[Any] | None:
        """The run that was requested last."""
        runs = self.list_runs()
        return runs[-1] if runs else None

    def last_to_show(self) -> Run[Any] | None:
        """The last requested run that has something to show."""
        return next((run for run in reversed(self.list_runs()) if not run.has_nothing), None)

    def find(self, task: Task[Any, R]) -> Run[R] | None:
        """The last run of this very task, if it is remembered."""
        return next((run for run in reversed(self.list_runs()) if run.task == task), None)

    def view_of(self, run: Run[Any]) -> str:
        """The id of the view under which a run's result is saved; empty where it has none."""
        return self._views.get(run.id, "")

    def recall(self, task: KeptTask[Any, R], view: str) -> Run[R] | None:
        """Find the run of this very task, and make it the last one.

        Remembered, or under way in another tab, or kept under a view's id, or known to have ended:
        the run that the address names.
        """
        run = self.find(task)
        if run is None and view:
            number = st.session_state.get(self._count, 0) + 1
            run = _find_in_address(task, view, number)
            if run is not None:
                st.session_state[self._count] = number
                self._views[run.id] = view
                self._met.add(run.id)
        if run is not None:
            self._remember_last(run)
        return run

    def meet(self, is_wanted: Callable[[Any], bool], *, unnamed: bool) -> Run[Any] | None:
        """The session's last run if it fits, else the one under way that the address names.

        Args:
            is_wanted: whether a task is what the page is about.
            unnamed: meet the last one under way, too, where the address names none.
        """
        last = self.last()
        if last is not None and is_wanted(last.task):
            return last
        run_id = st.query_params.get(RUN, "")
        is_connected = connection_check(session_id())
        run = returning_runs().join(run_id, is_wanted, is_connected) if run_id else None
        if run is None and unnamed:
            run = returning_runs().join_last(is_wanted, is_connected)
        if run is not None:
            if run not in self.list_runs():
                self._met.add(run.id)
            self._remember_last(run)
        return run

    def is_met(self, run: Run[Any]) -> bool:
        """Whether another session has started the run."""
        return run.id in self._met

    def start(
        self, task: Task[Any, R], *, again: bool = False, view: str = "", work: str = ""
    ) -> Run[R]:
        """The run of a task, started unless it is under way or remembered.

        Args:
            task: what is to be done.
            again: start it anew when it is over. While it is under way there is no second one: so
                the second click of a double click starts nothing.
            view: id under which the result is kept when the run ends; by default that of the run
                that is started anew, if it had one.
            work: names the work of a run that the address leads back to, and whose result is kept
                by what it does.

        Raises:
            SettingsError: too many runs of this kind are not over yet.
        """
        run = self.find(task)
        runs = self.list_runs()
        if run is not None and not (again and run.is_over):
            runs.remove(run)
        else:
            unfinished = [earlier for earlier in runs if not earlier.is_over]
            if self.at_once == 1:
                for earlier in unfinished:
                    if earlier.id not in self._met:  # another session's goes on
                        earlier.stop()
                    runs.remove(earlier)
            elif len(unfinished) >= self.at_once:
                raise SettingsError(
                    f"You already have {self.at_once} unfinished runs. Stop one, or wait "
                    "until one finishes."
                )
            if run is not None:
                view = view or self._views.get(run.id, "")
            number = st.session_state.get(self._count, 0) + 1
            st.session_state[self._count] = number
            if view and isinstance(task, KeptTask):
                # a shared result must be whole, not one that another user stopped
                keep = make_keeper(view, in_part=not is_shared(view))
                run = _begin(task, digest_work(result_key(task)), number, keep)
            elif work:
                run = _begin(task, digest_work(work), number)
            else:
                session = session_id()
                run = run_queue().submit(task, connection_check(session), number, owner=session)
            self._views[run.id] = view
        runs.append(run)
        self._remember(runs)
        return run

    def _remember_last(self, run: Run[Any]) -> None:
        """Remember a run as the last requested one."""
        self._remember([*(earlier for earlier in self.list_runs() if earlier is not run), run])

    def _remember(self, runs: list[Run[Any]]) -> None:
        """Remember runs; the oldest finished ones are dropped first."""
        finished = [earlier for earlier in runs[:-1] if earlier.is_over]
        for oldest in finished[: max(0, len(runs) - self.kept)]:
            runs.remove(oldest)
        st.session_state[self._key] = runs

    @property
    def _views(self) -> dict[int, str]:
        """The view under which each run's result is saved, by id of the run."""
        return st.session_state.setdefault(f"{self.kind}-runs-views", {})

    @property
    def _met(self) -> set[int]:
        """Ids of runs that this session did not start."""
        return st.session_state.setdefault(f"{self.kind}-runs-met", set())

    @property
    def _key(self) -> str:
        return f"{self.kind}-runs"

    @property
    def _count(self) -> str:
        return f"{self.kind}-runs-started"


def known_run(work: str) -> KnownRun | None:
    """The record of the run that the address names, if it did this work."""
    run_id = st.query_params.get(RUN, "")
    return returning_runs().find(run_id, digest_work(work)) if run_id else None


def _begin(
    task: Task[Any, R], work: str, number: int, keep: Callable[[Run[R]], None] | None = None
) -> Run[R]:
    """Start a run whose id the address keeps."""
    session, unwatched = session_id(), effective_settings().unwatched_seconds

    def submit(watchers: Watchers, at_end: Callable[[Run[R]], None]) -> Run[R]:
        watchers.add(connection_check(session))
        return run_queue().submit(task, watchers.any_is_here, number, at_end, session, unwatched)

    run_id, run = returning_runs().begin(work, submit, keep)
    set_query_params({RUN: run_id})
    return run


def _find_in_address(task: KeptTask[Any, R], view: str, number: int) -> Run[R] | None:
    """The run that the address names, or the saved result of its task."""
    run_id = st.query_params.get(RUN, "")
    is_wanted = partial(eq, task)
    run = (
        returning_runs().join(run_id, is_wanted, connection_check(session_id())) if run_id else None
    )
    if run is None:
        run = reopen_run(task, view, number)
    if run is None and run_id:
        reason = returning_runs().why_no_result(run_id, digest_work(result_key(task)))
        run = None if reason is None else Run.from_error(task, reason, number)
    return run
