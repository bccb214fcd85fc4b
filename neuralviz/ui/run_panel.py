"""How a run is shown on every page.

A page says what is to be done (a task) and how a result is drawn. What lies between is here: the
place in the queue, *Stop*, the time left, *Run again*, and drawing anew while the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from neuralviz.errors import SettingsError
from neuralviz.jobs import Run, run_queue
from neuralviz.ui.pace import draw_live, let_others_draw, wait_for_news
from neuralviz.ui.page import plain
from neuralviz.words import about_seconds, many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.ui.session_runs import SessionRuns

R = TypeVar("R")

LIVE_SECONDS = 0.5
LONG_SECONDS = 5.0  # a shorter run shows no time left
_AS_HIGH_AS_A_BUTTON = '<div style="height: 2.5rem; width: 1px"></div>'


@dataclass(frozen=True)
class RunSentences:
    """A page's own sentences on a run, in place of the panel's.

    Attributes:
        start: shown until the first counts come.
        error_advice: follows the error of a failed run. With it, the panel draws even a run that
            failed before its first result.
        describe_stopped, describe_done: make a sentence of the result; where ``describe_done``
            makes an empty one, nothing is shown.
    """

    start: str = "Starting …"
    error_advice: str = ""
    describe_stopped: Callable[[Any], str] | None = None
    describe_done: Callable[[Any], str] | None = None


def show_run_panel(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],
    *,
    sentences: RunSentences | None = None,
    interval: float = LIVE_SECONDS,
    patience: float = 0.0,
) -> None:
    """Show the progress and the result of a run, redrawn until it is over; then the page runs.

    User text in the sentences is shown as it is.

    Args:
        runs: the session's runs of this kind.
        run: the run to show.
        show: draws a result; its second argument is whether the run still goes on.
        sentences: the page's own, in place of the panel's.
        interval: seconds between two drawings.
        patience: seconds that the page waits before it draws anything: a run that is over by then
            shows its result at once.
    """
    with let_others_draw():
        live = not run.wait(patience)
    panel = _Panel(runs, run, show, sentences or RunSentences())
    st.session_state[panel.page_draws_key] = True
    with st.container():  # else elements below move up when Streamlit discards a drawing
        if live:
            st.fragment(panel.draw_live, run_every=interval)(interval)
        else:
            st.fragment(panel.draw_over)()


@dataclass(frozen=True)
class _Panel:
    """The panel of a run; attributes as of `show_run_panel`."""

    runs: SessionRuns
    run: Run[Any]
    show: Callable[[Any, bool], None]
    sentences: RunSentences

    @property
    def page_draws_key(self) -> str:
        """Key of a flag: the panel is drawn with the whole page, which must not be interrupted."""
        return self._key("page-draws")

    def _key(self, name: str) -> str:
        return f"{self.runs.kind}-{name}-{self.run.id}"

    def draw_live(self, interval: float) -> None:
        """Draw the panel of a run that goes on.

        It is a fragment of its own: for a moment after the run is over, the browser still asks for
        it, and Streamlit then takes back what the fragment has just drawn. Were it the same as that
        of a run that is over, the result would vanish.
        """
        is_drawn_alone, n_events = self._is_drawn_alone(), self.run.n_events
        if is_drawn_alone and self.run.is_over:
            st.rerun()
        with draw_live(), send_whole_elements():
            self._draw(live=True)
        if is_drawn_alone:
            wait_for_news(self.run, n_events, interval)
            if self.run.is_over:
                st.rerun()

    def draw_over(self) -> None:
        """Draw the panel of a run that is over."""
        self._is_drawn_alone()
        self._draw(live=False)

    def _is_drawn_alone(self) -> bool:
        """Whether only the panel is drawn; runs the page if the run was started again."""
        is_drawn_alone = not st.session_state.pop(self.page_draws_key, False)
        if is_drawn_alone and (self.runs.find(self.run.task) or self.run) is not self.run:
            st.rerun()
        return is_drawn_alone

    def _draw(self, *, live: bool) -> None:
        """Draw the progress and the result."""
        with st.container(key=self._key("state")):
            self._show_state()
        if not self.run.has_nothing or self.sentences.error_advice:  # figures would be empty
            self.show(self.run.result, live)

    def _show_state(self) -> None:
        """Progress with a *Stop*, the place in the queue, or how the run ended."""
        run, status = self.run, self.run.status  # read once: it may change meanwhile
        if status == "failed":
            st.error(plain(f"{run.error} {self.sentences.error_advice}".rstrip()))
            if run.may_succeed_again:
                self._offer_restart()
        elif status == "done":
            describe = self.sentences.describe_done
            if text := describe(run.result) if describe else _describe_done(run):
                with _row():
                    st.caption(plain(text))
                    st.html(_AS_HIGH_AS_A_BUTTON, width="content")
        elif status == "stopped":
            describe = self.sentences.describe_stopped
            text = describe(run.result) if describe else _describe_stopped(run)
            with _row():
                st.progress(run.progress.share, plain(f"{text} {describe_time(run)}".rstrip()))
                self._offer_restart()
        else:
            with _row():
                st.progress(*self._describe_progress(status))
                key = self._key("stop")
                st.button("Stop", icon=":material/stop:", key=key, on_click=run.stop)

    def _describe_progress(self, status: str) -> tuple[float, str]:
        """The share of the work that is done, and how far it is in words."""
        if status == "queued" and (place := run_queue().place_in_queue(self.run)):
            return 0.0, plain(_describe_wait(place, run_queue().seconds_until_start(self.run)))
        progress = self.run.progress
        text = progress.doing or self.sentences.start
        return progress.share, plain(text + describe_time_left(self.run))

    def _offer_restart(self) -> None:
        """A button that starts the run again.

        It calls: what it returns would be lost where the page runs before the button is drawn.
        """
        key = self._key("again")
        st.button("Run again", icon=":material/replay:", key=key, on_click=self._restart)

    def _restart(self) -> None:
        try:
            self.runs.start(self.run.task, again=True)
        except SettingsError as error:
            st.toast(plain(str(error)), icon=":material/warning:")


def _row() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="center")


@contextmanager
def send_whole_elements() -> Iterator[None]:
    """Send elements whole, even those of which the browser says that it has them.

    Streamlit 1.67 would send a reference in their place. If a fragment runs again before the
    browser has got what it drew last, Streamlit takes that back, but not the references; on these
    the browser fails, and shows an empty page. It matters where a clock asks for the fragment.
    Where a person does, who sees the page first, references save sending large maps again.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        yield
        return
    kept, context.cached_message_hashes = context.cached_message_hashes, frozenset()
    try:
        yield
    finally:
        context.cached_message_hashes = kept


def _describe_wait(place: int, seconds: float | None) -> str:
    """How many runs are ahead of a queued one, and when it starts, if that is known."""
    ahead = f"Waiting: {many(place, 'run')} ahead of this one"
    return f"{ahead}." if seconds is None else f"{ahead}, {about_seconds(seconds)}."


def describe_time(run: Run[Any]) -> str:
    """A sentence with the day and time of a result from an earlier visit; else empty.

    In UTC: a link may be opened elsewhere.
    """
    if not run.is_reopened or run.finished is None:
        return ""
    return f"Result of {datetime.fromtimestamp(run.finished, UTC):%d %B %Y, %H:%M} UTC."


def _describe_done(run: Run[Any]) -> str:
    progress = run.progress
    if not progress.unit:
        return describe_finish(run)
    sentence = f"{progress.total:,.0f} {progress.unit} in {_describe_duration(run)}."
    return f"{sentence} {describe_time(run)}".rstrip()


def describe_finish(run: Run[Any]) -> str:
    """A sentence on how long a run took; of a result from an earlier visit, on its time."""
    return describe_time(run) or f"Done in {_describe_duration(run)}."


def _describe_duration(run: Run[Any]) -> str:
    return f"{run.seconds:.1f} s" if run.seconds >= 0.05 else "less than 0.1 s"


def _describe_stopped(run: Run[Any]) -> str:
    progress = run.progress
    if not progress.n_done:
        return "Stopped before the first result."
    counted = f"{progress.n_done:,.0f} of {progress.total:,.0f} {progress.unit}"
    progress_note = counted if progress.unit else progress.doing
    return f"Stopped after {progress_note}. The result so far is shown."


def describe_time_left(run: Run[Any]) -> str:
    """The time that a long run still takes, as a phrase that follows its counts."""
    remaining = run.seconds_left
    if remaining is None or remaining < 1 or run.seconds + remaining < LONG_SECONDS:
        return ""
    time_left = f"{remaining / 60:.0f} min" if remaining >= 90 else f"{remaining:.0f} s"
    return f", about {time_left} left"
