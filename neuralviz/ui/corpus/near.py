"""The neighbours of a text that is looked at: at once, or found by a run that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.near import FindNeighbours
from neuralviz.maps.searching import INDEXED
from neuralviz.ui.corpus.colours import K
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import Words, run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.ui.corpus.kept import OpenMap

PATIENCE = 0.3  # seconds: of a few hundred thousand texts they are found by then


def near_text(shown: OpenMap, row: int, *, chosen: bool) -> Neighbours | None:
    """What is near a text on a map; None while that is not known.

    Where it takes a look at all vectors, a button starts that, with a *Stop*.

    Args:
        shown: the map.
        row: of the text.
        chosen: whether the text was clicked; of one that the pointer rests on nothing is started.
    """
    near = shown.near(row, K)
    if near is not None:
        return near
    runs = SessionRuns(f"corpus-near-{shown.kept.id}")
    task = FindNeighbours(shown.corpus.id, shown.kept.id, K, row)
    run, last = runs.of(task), runs.last()
    if run is None and last is not None and not last.is_over:
        run = last  # of another text: it can be stopped
    if run is None:
        st.caption(plain(_why(shown, chosen=chosen)))
        if not chosen or not st.button("Find neighbours", key=f"corpus-find-{shown.kept.id}"):
            return None
        run = runs.start(task)
    run_panel(
        runs,
        run,
        lambda _result, _live: None,
        words=Words(
            f"Finding the neighbours by {shown.label} …",
            stopped=lambda _: "Stopped before the neighbours were found.",
            done=lambda _: "",
        ),
        patience=PATIENCE,
    )
    if run.task != task or run.result is None or run.result.neighbours is None:
        return None
    return shown.near(row, K, run.result.neighbours.near)


def _why(shown: OpenMap, *, chosen: bool) -> str:
    metric, n = shown.kept.settings.metric, shown.corpus.n_distinct
    why = f"No index serves the {metric} distance"
    if metric == INDEXED:
        why = "No index finds them"
    said = f"{why}: finding neighbours compares all {many(n, 'different text')}."
    return said if chosen else f"{said} Click the text first."
