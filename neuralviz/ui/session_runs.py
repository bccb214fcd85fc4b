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

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.jobs import Run, run_queue
from neuralviz.jobs import results as run_results
from neuralviz.jobs.results import REASONS, reopen_run, result_key
from neuralviz.jobs.task import KeptTask
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.links import RUN, set_query_params
from neuralviz.ui.session import connection_check, session_id

if TYPE_CHECKING:
    from neuralviz.jobs import Task
    from neuralviz.jobs.results import RunStatus

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

    def recall(self, task: KeptTask[Any, R], view: str) -> Run[R] | None:
        """Find the run of this very task, and make it the last one.

        Remembered, or under way in another tab, or kept under a view's id, or known to have ended:
        the run that the address names.
        """
        run = self.find(task)
        if run is None and view:
            run = _find_in_address(task, view, self._next_number())
        if run is not None:
            self._remember(run)
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
        run = _join(is_wanted, st.query_params.get(RUN, ""))
        if run is None and unnamed:
            run = _join(is_wanted)
        if run is not None:
            self._remember(run)
        return run

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
        if run is None or (again and run.is_over):
            view = view or (run.view if run is not None else "")
            self._make_room()
            run = _start(task, self._next_number(), view, work)
        self._remember(run)
        return run

    def _make_room(self) -> None:
        """Stop the session's unfinished run, where there may be only one.

        Raises:
            SettingsError: as many as there may be are not over yet.
        """
        unfinished = [run for run in self.list_runs() if not run.is_over]
        if self.at_once == 1:
            for run in unfinished:
                if not is_of_others(run):
                    run.stop()
            st.session_state[self._key] = [run for run in self.list_runs() if run not in unfinished]
        elif len(unfinished) >= self.at_once:
            raise SettingsError(
                f"You already have {self.at_once} unfinished runs. Stop one, or wait until one "
                "finishes."
            )

    def _next_number(self) -> int:
        return max((run.number for run in self.list_runs()), default=0) + 1

    def _remember(self, run: Run[Any]) -> None:
        """Remember a run as the last requested one; the oldest finished ones are dropped first."""
        runs = [*(earlier for earlier in self.list_runs() if earlier is not run), run]
        finished = [earlier for earlier in runs[:-1] if earlier.is_over]
        for oldest in finished[: max(0, len(runs) - self.kept)]:
            runs.remove(oldest)
        st.session_state[self._key] = runs

    @property
    def _key(self) -> str:
        return f"{self.kind}-runs"


def is_of_others(run: Run[Any]) -> bool:
    """Whether another session has started the run."""
    return run.owner != session_id()


def find_status(work: str) -> RunStatus | None:
    """What became of the run that the address names; None unless it did this work."""
    return run_results.find_status(st.query_params.get(RUN, ""), work)


def _start(task: Task[Any, R], number: int, view: str, work: str) -> Run[R]:
    """Start a run; the address keeps its id where it is worth coming back to."""
    session = session_id()
    if view and isinstance(task, KeptTask):
        work = result_key(task)
    run = Run(task, connection_check(session), number=number, owner=session, view=view, work=work)
    if work:
        run.gone_after = effective_settings().unwatched_seconds
        set_query_params({RUN: run.id})
    return run_queue().submit(run)


def _join(is_wanted: Callable[[Any], bool], run_id: str | None = None) -> Run[Any] | None:
    """The run under way that has an id, or the last one, if it is wanted; with one more watcher."""
    run = run_queue().find(lambda run: run_id in (None, run.id) and is_wanted(run.task))
    if run is not None:
        run.watch(connection_check(session_id()))
    return run


def _find_in_address(task: KeptTask[Any, R], view: str, number: int) -> Run[R] | None:
    """The run that the address names, or the saved result of its task."""
    run_id = st.query_params.get(RUN, "")
    run = _join(partial(eq, task), run_id) or reopen_run(task, view, number)
    if run is not None:
        return run
    status = run_results.find_status(run_id, result_key(task))
    if status is None:
        return None
    run = Run(task, number=number, view=view)
    run.end(NeuralvizError(REASONS[status]))
    return run
