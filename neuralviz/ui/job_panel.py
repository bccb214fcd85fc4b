"""How a job is shown on every page: how far it is, a *Stop*, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.queue import job_queue
from neuralviz.ui.page import plain

if TYPE_CHECKING:
    from neuralviz.jobs.queue import Job


def job_panel(
    job: Job,
    *,
    key: str,
    share: float,
    doing: str,
    stopped: str,
    done: str = "",
    bar_stays: bool = True,
) -> None:
    """Progress with a *Stop*, the place in the queue, or how the job ended.

    To be drawn again while the job goes on, in a fragment with ``run_every``. User text in the
    sentences is shown as it is.

    Args:
        job: the work.
        key: of the *Stop* button.
        share: of the work that is done, 0 … 1.
        doing: what is done at the moment and how much of it, with counts.
        stopped: what to say when it was stopped: what is kept.
        done: what to say when it is done; by default how long it took.
        bar_stays: keep bar and button when it is over, so that nothing below them moves; else a
            line takes their place.
    """
    status = job.status  # read once: the job goes on meanwhile
    over = status not in ("queued", "running")
    share, text = min(max(share, 0.0), 1.0), doing
    if status == "failed":
        st.error(plain(job.error or "The work failed."))
        return
    if status == "done":
        share, text = 1.0, done or f"Done in {job.seconds:.1f} s."
    elif status == "stopped":
        text = stopped
    elif status == "queued" and (place := job_queue().place_in_queue(job)):
        share, text = 0.0, f"Waiting for work that began before; place {place} in the queue."
    if over and not bar_stays:
        (st.caption if status == "done" else st.info)(plain(text))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(share, plain(text))
        if st.button("Stop", icon=":material/stop:", key=key, disabled=over):
            job.stop()
