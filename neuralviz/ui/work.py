"""Work that comes to ever fuller results: started when it is new, kept while it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import streamlit as st

from neuralviz.jobs.queue import Job, job_queue
from neuralviz.ui.job_panel import job_panel
from neuralviz.ui.session import is_here, session_id

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop

R = TypeVar("R")

LIVE_SECONDS = 0.5
KEPT = 4  # results of each kind, of a session


class Work(Generic[R]):
    """Work of this browser session, and the newest of its results.

    Attributes:
        job: as it is queued.
        latest: None before the first result.
    """

    job: Job

    def __init__(self, results: Callable[[ShouldStop], Iterator[R]]) -> None:
        self.latest: R | None = None
        self._results = results

    def run(self, job: Job) -> None:
        """Work until the end or Stop; called on a worker thread."""
        for result in self._results(job.should_stop):
            self.latest = result
            if job.should_stop():
                return


def work_on(kind: str, settings: Hashable, results: Callable[[ShouldStop], Iterator[R]]) -> Work[R]:
    """The session's work of a kind with these settings; a new one takes the place of the last.

    Args:
        kind: names the view; begins the keys of its widgets.
        settings: everything that changes the result.
        results: makes ever fuller results; runs on a worker thread, and may ask whether to stop.
    """
    works: dict[Hashable, Work[R]] = st.session_state.setdefault(f"{kind}-works", {})
    if settings not in works:
        for unfinished in [old for old, other in works.items() if not other.job.is_over]:
            works.pop(unfinished).job.stop()
        work = Work(results)
        work.job = job_queue().submit(kind, work.run, is_here(session_id()))
        works[settings] = work
    works[settings] = work = works.pop(settings)  # the last to be dropped
    while len(works) > KEPT:
        del works[next(iter(works))]
    return work


def show_work(
    kind: str,
    settings: Hashable,
    work: Work[R],
    progress: Callable[[R], tuple[int, int, str]],
    show: Callable[[R, bool], None],
) -> None:
    """Progress with a Stop, and what has come so far, drawn again until the work is over.

    Args:
        kind, settings: as of `work_on`.
        work: from there.
        progress: of a result, how many of how many are done, and what they are.
        show: draws a result; is told whether it is still being worked on.
    """
    live = not work.job.is_over
    panel = st.fragment(_panel, run_every=LIVE_SECONDS if live else None)
    panel(kind, settings, work, progress, show, live)


def _panel(
    kind: str,
    settings: Hashable,
    work: Work[R],
    progress: Callable[[R], tuple[int, int, str]],
    show: Callable[[R, bool], None],
    live: bool,
) -> None:
    if live and work.job.is_over:
        st.rerun()
    latest = work.latest
    done, total, things = progress(latest) if latest is not None else (0, 0, "")
    job = work.job
    until = f" after {done:,} of {total:,} {things}; below is what they give" if total else ""
    job_panel(
        job,
        key=f"{kind}-stop",
        share=done / total if total else 0.0,
        doing=f"{done:,} of {total:,} {things}" if total else "The model begins …",
        stopped=f"Stopped{until}.",
        done=f"{total:,} {things}, {job.seconds:.1f} s of work.",
        bar_stays=False,
    )
    if job.status in ("failed", "stopped") and st.button(
        "Start again", icon=":material/replay:", key=f"{kind}-again"
    ):
        st.session_state[f"{kind}-works"].pop(settings, None)
        st.rerun()
    if latest is not None:
        show(latest, live)
