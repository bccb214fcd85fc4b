"""How a run is shown on every page.

A page says what is to be done (a task) and how a result is drawn. What lies between is here: the
place in the queue, *Stop*, the time left, *Run again*, and drawing anew while the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.jobs import Run, run_queue
from neuralviz.ui.pace import DRAWINGS, letting_others_draw, slot, wait_for_news
from neuralviz.ui.page import plain
from neuralviz.ui.session import whole_elements
from neuralviz.words import about_seconds, many

if TYPE_CHECKING:
    from neuralviz.ui.session_runs import SessionRuns

R = TypeVar("R")

LIVE_SECONDS = 0.5
LONG_SECONDS = 5.0  # a run that takes no longer needs no time left
_AS_HIGH_AS_A_BUTTON = '<div style="height: 2.5rem; width: 1px"></div>'


@dataclass(frozen=True)
class Words:
    """A page's own sentences on a run, in place of the panel's.

    Attributes:
        begins: until its first counts.
        after_error: follows the error of one that failed, where something else is shown in its
            place; without it, nothing is drawn of one that failed before it had anything.
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
    shown = runs, run, show, words or Words(), bar_stays
    with st.container():  # else what is below moves up where Streamlit takes a drawing back
        if live:
            st.fragment(_live_panel, run_every=every)(*shown, every)
        else:
            st.fragment(_panel)(*shown)


def _page_draws(runs: SessionRuns, run: Run[Any]) -> str:
    """Where the session keeps that the panel is drawn with the whole page, which must go on."""
    return f"{runs.kind}-page-draws-{run.id}"


def _live_panel(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],
    words: Words,
    bar_stays: bool,
    every: float,
) -> None:
    """The panel of a run that goes on.

    It is a fragment of its own: for a moment after the run is over, the browser still asks for it,
    and Streamlit then takes back what the fragment has just drawn. Were it the same as that of a
    run that is over, the result would vanish.
    """
    on_its_own, n_events = _on_its_own(runs, run), run.n_events
    if on_its_own and run.is_over:
        st.rerun()
    with slot(), whole_elements():
        began = time.thread_time()
        _draw(runs, run, show, words, bar_stays, live=True)
    DRAWINGS.note(time.thread_time() - began)
    if on_its_own:
        wait_for_news(run, n_events, every)
        if run.is_over:
            st.rerun()


def _panel(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],
    words: Words,
    bar_stays: bool,
) -> None:
    """The panel of a run that is over."""
    _on_its_own(runs, run)
    _draw(runs, run, show, words, bar_stays, live=False)


def _on_its_own(runs: SessionRuns, run: Run[Any]) -> bool:
    """Whether only the panel is drawn; runs the page if the run was started again."""
    on_its_own = not st.session_state.pop(_page_draws(runs, run), False)
    if on_its_own and (runs.of(run.task) or run) is not run:
        st.rerun()
    return on_its_own


def _draw(
    runs: SessionRuns,
    run: Run[R],
    show: Callable[[R, bool], None],
    words: Words,
    bar_stays: bool,
    *,
    live: bool,
) -> None:
    """Why it could not be started again, how far it is, and its result."""
    refusal = st.session_state.pop(_refusal(runs, run), "")
    if refusal:
        st.error(plain(refusal))
    with st.container(key=f"{runs.kind}-state-{run.id}"):
        _state(runs, run, words, bar_stays)
    if run.has_nothing and not words.after_error:
        return  # figures of nothing would say nothing
    show(run.result, live)


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


def _refusal(runs: SessionRuns, run: Run[Any]) -> str:
    """Where the session keeps why a run could not be started again, until that is shown."""
    return f"{runs.kind}-refusal-{run.id}"


def _offer_restart(runs: SessionRuns, run: Run[Any]) -> None:
    """A button that starts the run again.

    It calls: what it returns would be lost where the page runs before the button is drawn.
    """
    st.button(
        "Run again",
        icon=":material/replay:",
        key=f"{runs.kind}-again-{run.id}",
        on_click=_restart,
        args=(runs, run),
    )


def _restart(runs: SessionRuns, run: Run[Any]) -> None:
    """Start the run again, or keep why that cannot be done."""
    try:
        runs.start(run.task, again=True)
    except SettingsError as error:
        st.session_state[_refusal(runs, run)] = str(error)


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
    if not progress.n_done:
        return "Stopped before the first result."
    counted = f"{progress.n_done:,.0f} of {progress.total:,.0f} {progress.unit}"
    where = counted if progress.unit else progress.doing
    return f"Stopped after {where}. The result so far is shown."


def time_left(run: Run[Any]) -> str:
    """How long a run that takes longer than a moment still takes, to be put after its counts."""
    left = run.seconds_left
    if left is None or left < 1 or run.seconds + left < LONG_SECONDS:
        return ""
    return f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"
