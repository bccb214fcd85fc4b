"""The neighbours of the chosen text: known at once, or found by a run on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.mapping import FindNeighbours
from neuralviz.maps.searching import INDEXED
from neuralviz.ui.corpus.colours import K
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.ui.corpus.kept import OpenMap

PATIENCE = 0.3  # seconds: enough for a few hundred thousand texts


def find_neighbours(open_map: OpenMap, row: int, *, chosen: bool) -> Neighbours | None:
    """The neighbours of a text by a map; None while they are not known.

    Where finding them compares all vectors, a button starts a run, which can be stopped.

    Args:
        open_map: the map.
        row: of the text.
        chosen: whether the text was clicked; for one under the pointer no run is offered.
    """
    near = open_map.near(row, K)
    if near is not None:
        return near
    runs = SessionRuns(f"corpus-near-{open_map.kept.id}")
    task = FindNeighbours(open_map.corpus.id, open_map.kept.id, K, row)
    run, last = runs.find(task), runs.last()
    if run is None and last is not None and not last.is_over:
        run = last  # of another text: it can be stopped
    if run is None:
        st.caption(plain(_explain_wait(open_map, chosen=chosen)))
        if not chosen or not st.button("Find neighbours", key=f"corpus-find-{open_map.kept.id}"):
            return None
        run = runs.start(task)
    show_run_panel(
        runs,
        run,
        lambda _result, _live: None,
        sentences=RunSentences(
            f"Finding the neighbours by {open_map.label} …",
            describe_stopped=lambda _: "Stopped before the neighbours were found.",
            describe_done=lambda _: "",
        ),
        patience=PATIENCE,
    )
    if run.task != task or run.result is None or run.result.neighbours is None:
        return None
    return open_map.near(row, K, run.result.neighbours.near)


def _explain_wait(open_map: OpenMap, *, chosen: bool) -> str:
    metric, n = open_map.kept.settings.metric, open_map.corpus.n_distinct
    reason = f"No index serves the {metric} distance"
    if metric == INDEXED:
        reason = "No index finds them"
    sentence = f"{reason}: finding neighbours compares all {many(n, 'different text')}."
    return sentence if chosen else f"{sentence} Click the text first."
