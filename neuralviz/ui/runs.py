"""The runs of a browser session, and the panel in which every page shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import eq
from typing import Any, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from neuralviz.errors import NeuralvizError
from neuralviz.jobs import Run, Task, run_queue
from neuralviz.jobs.queue import WHAT_HAPPENED, find_status, reopen_run, result_key
from neuralviz.jobs.task import KeptTask
from neuralviz.ui.address import RUN, is_lost, mark_lost, run_page_again, write
from neuralviz.ui.limits import effective_settings, is_served
from neuralviz.ui.pace import draw_live, let_others_draw, wait_for_news
from neuralviz.ui.page import dim_old_results, hide_on_stage, plain
from neuralviz.words import about_seconds, many

R = TypeVar("R")

LIVE_SECONDS = 0.5
LONG_SECONDS = 5.0  # a shorter run shows no time left
_AS_HIGH_AS_A_BUTTON = '<div style="height: 2.5rem; width: 1px"></div>'

# --- the session's runs --------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionRuns:
    """A session's runs of one kind."""

    kind: str  # begins the keys of their widgets
    kept: int = 4  # number remembered with their results
    stops_former: bool = True  # whether a new run stops the one before

    def list_runs(self) -> list[Run[Any]]:
        """The runs of this kind, the last requested one at the end."""
        return list(st.session_state.get(self._key, ()))

    def last(self) -> Run[Any] | None:
        runs = self.list_runs()
        return runs[-1] if runs else None

    def last_to_show(self) -> Run[Any] | None:
        """The last requested run that has something to show."""
        return next((run for run in reversed(self.list_runs()) if not run.has_nothing), None)

    def last_with_result(self) -> Run[Any] | None:
        """The last requested run that has a result, for tasks whose result is None at first."""
        return next((run for run in reversed(self.list_runs()) if run.result is not None), None)

    def find(self, task: Task[Any, R]) -> Run[R] | None:
        """The last remembered run of exactly this task."""
        return next((run for run in reversed(self.list_runs()) if run.task == task), None)

    def recall(self, task: KeptTask[Any, R], view: str) -> Run[R] | None:
        """Find the task's run, remembered or named by the address, and make it the last one."""
        run = self.find(task)
        if run is None and view:
            run = _find_in_address(task, view)
        if run is not None:
            self._remember(run)
        return run

    def name_in_address(self, run: Run[Any] | None) -> None:
        """Let the address name the run of the chosen settings, and no other one.

        A link to a run that is not known any more gets a sentence.
        """
        if run is not None:
            if run.work or not run.view:  # else one from an earlier visit, which it may name
                write({RUN: run.work and run.id})
        elif RUN in st.query_params:
            if not self.list_runs():
                mark_lost(self._key)
            write({RUN: ""})
        if run is None and is_lost(self._key):
            st.warning("The result in this link is not saved any more. Start it again to see it.")

    def meet(self, is_wanted: Callable[[Any], bool], *, unnamed: bool) -> Run[Any] | None:
        """The last run if its task is wanted, else the address's or, ``unnamed``, any under way."""
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
        """The run of a task, started unless it is under way or remembered, or anew if ``again``.

        ``view`` is the id under which the result is kept, ``work`` the name of work that keeps its
        result itself.
        """
        run = self.find(task)
        if run is None or (again and run.is_over):
            view = view or (run.view if run is not None else "")
            if self.stops_former:
                self._stop_unfinished()
            run = _start(task, view, work)
        self._remember(run)
        return run

    def _stop_unfinished(self) -> None:
        unfinished = [run for run in self.list_runs() if not run.is_over]
        for run in unfinished:
            if not is_of_others(run):
                run.stop()
        st.session_state[self._key] = [run for run in self.list_runs() if run not in unfinished]

    def _remember(self, run: Run[Any]) -> None:
        """Remember a run as the last requested one; the oldest finished ones are dropped first."""
        before = [earlier for earlier in self.list_runs() if earlier is not run]
        run.number = run.number or max((earlier.number for earlier in before), default=0) + 1
        runs = [*before, run]
        finished = [earlier for earlier in runs[:-1] if earlier.is_over]
        for oldest in finished[: max(0, len(runs) - self.kept)]:
            runs.remove(oldest)
        st.session_state[self._key] = runs

    @property
    def _key(self) -> str:
        return f"{self.kind}-runs"


def is_of_others(run: Run[Any]) -> bool:
    return run.owner != session_id()


def _start(task: Task[Any, R], view: str, work: str) -> Run[R]:
    session = session_id()
    if view and isinstance(task, KeptTask):
        work = result_key(task)
    run = Run(task, connection_check(session), owner=session, view=view, work=work)
    if work:
        run.gone_after = effective_settings().unwatched_seconds
        write({RUN: run.id})
    return run_queue().submit(run)


def _join(is_wanted: Callable[[Any], bool], run_id: str | None = None) -> Run[Any] | None:
    run = run_queue().find(lambda run: run_id in (None, run.id) and is_wanted(run.task))
    if run is not None:
        run.watch(connection_check(session_id()))
    return run


def _find_in_address(task: KeptTask[Any, R], view: str) -> Run[R] | None:
    """The run that the address names, or the saved result of its task."""
    run_id = st.query_params.get(RUN, "")
    run = _join(partial(eq, task), run_id) or reopen_run(task, view)
    if run is not None:
        return run
    status = find_status(run_id, result_key(task))
    if status is None:
        return None
    run = Run(task, view=view)
    run.end(NeuralvizError(f"This run {WHAT_HAPPENED[status]}. Press “Run again” to start it."))
    return run


def session_id() -> str:
    """The id of this browser session; empty outside a script run."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def connection_check(session: str) -> Callable[[], bool]:
    """A function, for any thread, that says whether this browser session is still connected."""
    if not is_served():  # nobody can leave
        return lambda: True
    server = runtime.get_instance()
    return lambda: server.is_active_session(session)


# --- the panel of a run --------------------------------------------------------------------------


@dataclass(frozen=True)
class RunSentences:
    """A page's own sentences on a run, in place of the panel's."""

    start: str = "Starting …"  # until the first counts come
    error_advice: str = ""  # follows an error; the panel then draws even a run without a result
    stopped: str = "The result so far is shown."  # follows how far it was
    done: str | None = None  # nothing is shown if empty


def show_run_panel(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],  # gets the result, and whether the run still goes on
    *,
    sentences: RunSentences | None = None,  # plain text
    patience: float = 0.0,  # seconds before the first drawing: a run over by then shows its result
) -> None:
    """Show the progress and the result of a run, redrawn until it is over; then the page runs."""
    with let_others_draw():
        live = not run.wait(patience)
    panel = _Panel(runs, run, show, sentences or RunSentences())
    st.session_state[panel.key("page-draws")] = True  # which nothing may interrupt
    with st.container():  # else elements below move up when Streamlit discards a drawing
        if live:
            st.fragment(panel.draw_live, run_every=LIVE_SECONDS)()
        else:
            st.fragment(panel.draw_over)()


@dataclass(frozen=True)
class _Panel:
    runs: SessionRuns
    run: Run[Any]
    show: Callable[[Any, bool], None]
    sentences: RunSentences

    def key(self, name: str) -> str:
        return f"{self.runs.kind}-{name}-{self.run.id}"

    def draw_live(self) -> None:
        """Draw the panel of a run that goes on."""
        # once the run is over, Streamlit discards what the fragment's last tick draws
        is_drawn_alone, n_events = self._is_drawn_alone(), self.run.n_events
        if is_drawn_alone and self.run.is_over:
            run_page_again()
        with draw_live(), send_whole_elements():
            self._draw(live=True)
        if is_drawn_alone:
            wait_for_news(self.run, n_events, LIVE_SECONDS)
            if self.run.is_over:
                run_page_again()

    def draw_over(self) -> None:
        self._is_drawn_alone()
        self._draw(live=False)

    def _is_drawn_alone(self) -> bool:
        """Whether only the panel is drawn; runs the page if the run was started again."""
        is_drawn_alone = not st.session_state.pop(self.key("page-draws"), False)
        if is_drawn_alone and (self.runs.find(self.run.task) or self.run) is not self.run:
            run_page_again()
        return is_drawn_alone

    def _draw(self, *, live: bool) -> None:
        run, key = self.run, self.key("state")  # the stage has what a quiet run has drawn so far
        is_seen = self.sentences.done != "" or run.status != "running" or run.result is None
        with st.container(key=key) if is_seen else hide_on_stage(key):
            self._show_state()
        if not self.run.has_nothing or self.sentences.error_advice:  # figures would be empty
            self.show(self.run.result, live)

    def _show_state(self) -> None:
        run, status = self.run, self.run.status  # read once: it may change meanwhile
        if status == "failed":
            st.error(plain(f"{run.error} {self.sentences.error_advice}".rstrip()))
            if run.may_succeed_again:
                self._offer_restart()
        elif status == "done":
            done = f"Done in {run.seconds:.1f} s. {describe_time(run)}".rstrip()
            if text := done if self.sentences.done is None else self.sentences.done:
                with _row():
                    st.caption(plain(text))
                    st.html(_AS_HIGH_AS_A_BUTTON, width="content")
        elif status == "stopped":
            doing = run.progress.doing.removesuffix(" …").split(". ")[0]  # not what comes next
            if doing[1:2].islower():  # a word, not an abbreviation
                doing = doing[0].lower() + doing[1:]
            text = f"Stopped{': ' * bool(doing)}{doing}. {self.sentences.stopped}"
            if run.has_nothing:
                text = "Stopped before the first result."
            with _row():
                st.progress(run.progress.share, plain(f"{text} {describe_time(run)}".rstrip()))
                self._offer_restart()
        else:
            with _row():
                st.progress(*self._describe_progress(status))
                key = self.key("stop")
                st.button("Stop", icon=":material/stop:", key=key, on_click=run.stop)

    def _describe_progress(self, status: str) -> tuple[float, str]:
        if status == "queued" and (place := run_queue().place_in_queue(self.run)):
            seconds = run_queue().seconds_until_start(self.run)
            wait = "" if seconds is None else f"; this one starts in {about_seconds(seconds)}"
            return 0.0, plain(f"Waiting: {many(place, 'run')} ahead{wait}.")
        progress = self.run.progress
        if self.run.is_stopping:
            return progress.share, "Stopping …"
        text = progress.doing or self.sentences.start
        return progress.share, plain(text + describe_time_left(self.run))

    def _offer_restart(self) -> None:
        key = self.key("again")  # it calls: the page may run before the button is drawn
        st.button("Run again", icon=":material/replay:", key=key, on_click=self._restart)

    def _restart(self) -> None:
        self.runs.start(self.run.task, again=True)


def _row() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="center")


@contextmanager
def send_whole_elements() -> Iterator[None]:
    """Send elements whole, even those of which the browser says that it has them."""
    # when a clock reruns a fragment, Streamlit 1.67 discards elements that were not sent yet, but
    # later refers to them; the browser then shows an empty page
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        yield
        return
    kept, context.cached_message_hashes = context.cached_message_hashes, frozenset()
    try:
        yield
    finally:
        context.cached_message_hashes = kept


def describe_time(run: Run[Any]) -> str:
    """A sentence with the day and time, in UTC, of a result from an earlier visit; else empty."""
    if not run.is_reopened or run.finished is None:
        return ""
    return f"Result of {datetime.fromtimestamp(run.finished, UTC):%d %B %Y, %H:%M} UTC."


def describe_time_left(run: Run[Any]) -> str:
    """The time that a long run still takes, as a phrase that follows its counts."""
    remaining = run.seconds_left
    if remaining is None or remaining < 1 or run.seconds + remaining < LONG_SECONDS:
        return ""
    return f", {about_seconds(remaining)} left"


# --- the run that a page shows -------------------------------------------------------------------


def find_current_run(
    runs: SessionRuns,
    task: KeptTask[Any, Any] | None,  # None while something is missing
    view: str,  # id under which the result is saved
    *,
    pressed: bool,  # starts it, and again if it was stopped or has failed
    recorded: Run[Any] | None = None,  # what the page opens with
    owns_address: bool = True,  # False where it may name another kind of run
) -> Run[Any] | None:
    """The run of a task: started, remembered, saved or recorded; else the last run."""
    run = None if task is None else runs.recall(task, view)
    if task is not None and pressed:
        is_incomplete = run is not None and not (run.status == "done" and task.is_whole(run.result))
        run = runs.start(task, again=is_incomplete, view=view)
    if run is None and recorded is not None and recorded.task == task:
        run = recorded
    if task is not None and owns_address:
        runs.name_in_address(run)
    return run or runs.last_to_show() or recorded


def show_current_run(
    runs: SessionRuns,
    run: Run[R],
    task: KeptTask[Any, Any] | None,  # what the widgets ask for; other runs are faded
    button: str,  # label of the button that starts a run
    draw: Callable[[R, bool], None],
    sentences: RunSentences | None = None,
    *,
    recorded: Run[R] | None = None,  # comes with neuralviz
) -> None:
    """Show the run that `find_current_run` found in its panel."""
    sentences, is_old = sentences or RunSentences(), run.task != task
    if is_old:
        advice = "" if task is None else f" Press **{button}** to see yours."
        st.caption(f"The results below are of other data or settings.{advice}")
    if run is recorded:
        done = f"Recorded run. Press “{button}” to see it live."
        sentences = replace(sentences, done=done)
    with dim_old_results(runs.kind, is_old):
        show_run_panel(runs, run, draw, sentences=sentences)
