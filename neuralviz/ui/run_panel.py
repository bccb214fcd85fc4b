"""Runs of a browser session, and how a run is shown on every page.

A page says what is to be done (a task) and how a result is drawn. What lies between is here: one
run in place of another, the second click of a double click, the place in the queue, *Stop*, the
time left, *Start again*, and drawing anew while the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import eq
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.jobs import Run, run_queue
from neuralviz.jobs.keeping import KeptTask, keeper, reopened, result_key
from neuralviz.jobs.returning import returning, work_of
from neuralviz.ui.allowed import allowed
from neuralviz.ui.links import is_shared
from neuralviz.ui.pace import (
    DRAWINGS,
    letting_others_draw,
    slot,
    wait_for_news,
)
from neuralviz.ui.page import plain
from neuralviz.ui.session import is_here, session_id
from neuralviz.words import about_seconds, many

if TYPE_CHECKING:
    from neuralviz.jobs import Task
    from neuralviz.jobs.returning import Watchers
    from neuralviz.jobs.run_table import KnownRun

R = TypeVar("R")

LIVE_SECONDS = 0.5
ADDRESS = "run"  # what the id of a run is called in the address
LONG_SECONDS = 5.0  # a run that takes no longer needs no time left
MEASURED_SECONDS = 1.0  # of work, before its time left is believed
_AS_HIGH_AS_A_BUTTON = '<div style="height: 2.5rem; width: 1px"></div>'


@dataclass(frozen=True)
class SessionRuns:
    """The runs of one kind that a browser session has started.

    Attributes:
        kind: names them; begins the keys of their widgets.
        at_once: so many may be queued or under way. One more is refused; where it is one, it takes
            the place of the former instead, which is stopped.
        kept: so many are remembered with their results.
    """

    kind: str
    at_once: int = 1
    kept: int = 4

    def all(self) -> list[Run[Any]]:
        """The runs, the one that was asked for last at the end."""
        return list(st.session_state.get(self._key, ()))

    def last(self) -> Run[Any] | None:
        """The run that was asked for last."""
        runs = self.all()
        return runs[-1] if runs else None

    def of(self, task: Task[Any, R]) -> Run[R] | None:
        """The last run of this very task, if it is remembered."""
        return next((run for run in reversed(self.all()) if run.task == task), None)

    def view_of(self, run: Run[Any]) -> str:
        """The id under which the result of a run is kept; empty where it has none."""
        return self._views.get(run.id, "")

    def recall(self, task: KeptTask[Any, R], view: str) -> Run[R] | None:
        """The run of this very task as the last one.

        Remembered, or under way in another tab, or kept under a view's id, or known to have ended:
        the run that the address names.
        """
        runs = self.all()
        run = self.of(task)
        if run is None and view:
            number = st.session_state.get(self._count, 0) + 1
            run = _of_address(task, view, number)
            if run is not None:
                st.session_state[self._count] = number
                self._views[run.id] = view
                self._met.add(run.id)
        if run is None:
            return None
        self._remember([*(one for one in runs if one is not run), run])
        return run

    def meet(self, is_wanted: Callable[[Any], bool]) -> Run[Any] | None:
        """The session's last run if it is wanted, else the one under way that the address names.

        Args:
            is_wanted: whether a task is what the page is about.
        """
        last = self.last()
        if last is not None and is_wanted(last.task):
            return last
        run_id = st.query_params.get(ADDRESS, "")
        run = returning().join(run_id, is_wanted, is_here(session_id())) if run_id else None
        if run is not None:
            self._met.add(run.id)
            self._remember([*self.all(), run])
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
        run = self.of(task)
        runs = self.all()
        if run is not None and not (again and run.is_over):
            runs.remove(run)
        else:
            unfinished = [earlier for earlier in runs if not earlier.is_over]
            if self.at_once == 1:
                for earlier in unfinished:
                    if earlier.id not in self._met:  # somebody else's goes on
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
                # nobody wants to meet what somebody else has stopped, or lacked the memory for
                keep = keeper(view, in_part=not is_shared(view))
                run = _begin(task, work_of(result_key(task)), number, keep)
            elif work:
                run = _begin(task, work_of(work), number)
            else:
                session = session_id()
                run = run_queue().submit(task, is_here(session), number, owner=session)
            self._views[run.id] = view
        runs.append(run)
        self._remember(runs)
        return run

    def _remember(self, runs: list[Run[Any]]) -> None:
        """Hold on to runs; those that have been over for longest go first."""
        finished = [earlier for earlier in runs[:-1] if earlier.is_over]
        for oldest in finished[: max(0, len(runs) - self.kept)]:
            runs.remove(oldest)
        st.session_state[self._key] = runs

    @property
    def _views(self) -> dict[int, str]:
        """By id of a run, the view under which its result is kept."""
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
    """What is known of the run that the address names, where it did this work."""
    run_id = st.query_params.get(ADDRESS, "")
    return returning().find(run_id, work_of(work)) if run_id else None


def _begin(
    task: Task[Any, R], work: str, number: int, keep: Callable[[Run[R]], None] | None = None
) -> Run[R]:
    """Start a run that the address leads back to."""
    session, unwatched = session_id(), allowed().unwatched_seconds

    def submit(watchers: Watchers, at_end: Callable[[Run[R]], None]) -> Run[R]:
        watchers.add(is_here(session))
        return run_queue().submit(task, watchers.any_is_here, number, at_end, session, unwatched)

    run_id, run = returning().begin(work, submit, keep)
    st.query_params[ADDRESS] = run_id
    return run


def _of_address(task: KeptTask[Any, R], view: str, number: int) -> Run[R] | None:
    """The run that the address names, or the result that is kept of its task."""
    run_id = st.query_params.get(ADDRESS, "")
    wanted = partial(eq, task)
    run = returning().join(run_id, wanted, is_here(session_id())) if run_id else None
    if run is None:
        run = reopened(task, view, number)
    if run is None and run_id:
        why = returning().why_no_result(run_id, work_of(result_key(task)))
        run = None if why is None else Run.failed(task, why, number)
    return run


@dataclass(frozen=True)
class Words:
    """A page's own sentences on a run, in place of the panel's.

    Attributes:
        begins: until its first counts.
        after_error: follows the error of one that failed.
        stopped, done: make a sentence of the result of a run that has ended so; where ``done``
            makes an empty one, nothing is shown.
    """

    begins: str = "Starting …"
    after_error: str = ""
    stopped: Callable[[Any], str] | None = None
    done: Callable[[Any], str] | None = None


def run_panel(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],
    *,
    words: Words | None = None,
    bar_stays: bool = False,
    every: float = LIVE_SECONDS,
    patience: float = 0.0,
) -> None:
    """How far a run is, and its result; drawn again until the run is over, then the page runs.

    User text in the sentences is shown as it is.

    Args:
        runs: among which the run is.
        run: what is shown.
        show: draws a result; is told whether the run still goes on.
        words: what is said of it.
        bar_stays: keep its room when it is over, so that what is below it stays in place.
        every: seconds between two drawings.
        patience: seconds that the page waits before it draws anything: a run that is over by then
            shows its result at once.
    """
    with letting_others_draw():
        live = not run.wait(patience)
    st.session_state[_page_draws(runs, run)] = True
    panel = st.fragment(_panel, run_every=every if live else None)
    panel(runs, run, show, words or Words(), bar_stays, every, live)


def _page_draws(runs: SessionRuns, run: Run[Any]) -> str:
    """Where the session keeps that the panel is drawn with the whole page, which must go on."""
    return f"{runs.kind}-page-draws-{run.id}"


def _panel(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],
    words: Words,
    bar_stays: bool,
    every: float,
    live: bool,
) -> None:
    on_its_own = not st.session_state.pop(_page_draws(runs, run), False)
    n_events = run.n_events
    if live and run.is_over and on_its_own:
        st.rerun()
    with slot() if live else nullcontext():
        began = time.thread_time()
        with st.container(key=f"{runs.kind}-state-{run.id}"):
            _state(runs, run, words, bar_stays)
        show(run.result, live)
    if live:
        DRAWINGS.note(time.thread_time() - began)
        if on_its_own:
            wait_for_news(run, n_events, every)
            if run.is_over:
                st.rerun()


def _state(runs: SessionRuns, run: Run[Any], words: Words, bar_stays: bool) -> None:
    """Progress with a *Stop*, the place in the queue, or how the run ended."""
    status = run.status  # read once: the run goes on meanwhile
    progress = run.progress
    share, text = progress.share, progress.doing or words.begins
    if status == "failed":
        st.error(plain(f"{run.error} {words.after_error}".rstrip()))
        if run.may_succeed_again:
            _offer_restart(runs, run)
        return
    if status == "done":
        text = words.done(run.result) if words.done else _done(run)
    elif status == "stopped":
        text = words.stopped(run.result) if words.stopped else _stopped(run)
        text = f"{text} {when(run)}".rstrip()
    elif status == "queued" and (place := run_queue().place_in_queue(run)):
        share, text = 0.0, _waiting(place, run_queue().seconds_until_start(run))
    else:
        text += time_left(run)
    over = status not in ("queued", "running")
    if over and not bar_stays:
        if text:
            (st.caption if status == "done" else st.info)(plain(text))
        if status == "stopped":
            _offer_restart(runs, run)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if status == "done":
            st.caption(plain(text))
            st.html(_AS_HIGH_AS_A_BUTTON, width="content")
            return
        st.progress(share, plain(text))
        if over:
            _offer_restart(runs, run)
        else:
            key = f"{runs.kind}-stop-{run.id}"
            st.button("Stop", icon=":material/stop:", key=key, on_click=run.stop)


def _waiting(place: int, seconds: float | None) -> str:
    """How many runs are ahead of one, and when its turn comes, if that is known."""
    ahead = f"Waiting: {many(place, 'run')} ahead of this one"
    return f"{ahead}." if seconds is None else f"{ahead}, {about_seconds(seconds)}."


def _offer_restart(runs: SessionRuns, run: Run[Any]) -> None:
    """A button that starts the run again."""
    key = f"{runs.kind}-again-{run.id}"
    if not st.button("Run again", icon=":material/replay:", key=key):
        return
    try:
        runs.start(run.task, again=True)
    except SettingsError as error:
        st.error(plain(str(error)))
    else:
        st.rerun()


def when(run: Run[Any]) -> str:
    """The day and time of a result that was kept from an earlier visit, as a sentence; else empty.

    In UTC: a link may be opened elsewhere.
    """
    if not run.is_reopened or run.finished is None:
        return ""
    return f"Result of {datetime.fromtimestamp(run.finished, UTC):%d %B %Y, %H:%M} UTC."


def _done(run: Run[Any]) -> str:
    progress = run.progress
    if not progress.unit:
        return done_in(run)
    return f"{progress.total:,.0f} {progress.unit} in {_took(run)}. {when(run)}".rstrip()


def done_in(run: Run[Any]) -> str:
    """How long a run took, as a sentence; of one that was kept, when that was."""
    return when(run) or f"Done in {_took(run)}."


def _took(run: Run[Any]) -> str:
    return f"{run.seconds:.1f} s" if run.seconds >= 0.05 else "less than 0.1 s"


def _stopped(run: Run[Any]) -> str:
    progress = run.progress
    if not progress.done:
        return "Stopped before the first result."
    counted = f"{progress.done:,.0f} of {progress.total:,.0f} {progress.unit}"
    where = counted if progress.unit else progress.doing
    return f"Stopped after {where}. The result so far is shown."


def time_left(run: Run[Any]) -> str:
    """How long a run that takes longer than a moment still takes, to be put after its counts."""
    left = run.seconds_left
    if left is None or run.seconds_measured < MEASURED_SECONDS:
        return ""
    if left < 1 or run.seconds + left < LONG_SECONDS:
        return ""
    return f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"
