"""What the evaluation page shows: a table that fills, and its downloads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.evaluation.in_words import NONE
from neuralviz.evaluation.results import Results
from neuralviz.jobs.evaluating import Evaluate, Filling
from neuralviz.plots.report import report_html
from neuralviz.ui.choices import choose_one
from neuralviz.ui.evaluation.views import draw_view, views_of
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import SessionRuns, run_panel

if TYPE_CHECKING:
    from neuralviz.jobs import Run
    from neuralviz.ui.evaluation.choose import Chosen

RUNS = SessionRuns("evaluation")
WIDE = 9  # columns: more are not seen at once
WITHOUT_TIES = "without ties"
DETAILS = (WITHOUT_TIES, "error", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")


def show_evaluation(chosen: Chosen, *, again: bool) -> None:
    """Measure, and show what is there.

    Args:
        chosen: what is measured.
        again: have what failed or was stopped done again; what is embedded is found.
    """
    task = Evaluate.now(chosen.plan)
    last: Run[Filling] | None = RUNS.of(task)
    failed = last is not None and (last.status != "done" or last.result.any_failed)
    run = RUNS.start(task, again=again and failed)
    run_panel(RUNS, run, _show)


def offer_to_stop() -> None:
    """A way to end what was asked for with other settings and is still going on."""
    going_on = [run for run in RUNS.all() if not run.is_over]
    if not going_on:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("The previous evaluation is still running.")
        if st.button("Stop", icon=":material/stop:", key="evaluation-stop-before"):
            for run in going_on:
                run.stop()


def _show(filling: Filling, live: bool) -> None:
    """The table, and what of it is drawn once it is full."""
    results = filling.results
    _table(results)
    if not results.cells:
        return
    if live:
        st.caption("Figures appear when all methods are finished.")
        return
    if not results.finished(0):
        return
    _downloads(results)
    views = views_of(results)
    if not views:
        return
    view = choose_one(
        st.segmented_control,
        "View",
        views,
        default=views[0],
        key=f"view-{results.data[0].kind}",  # what is looked at first depends on the kind
        label_visibility="collapsed",
    )
    draw_view(view if view in views else views[0], results)


def _table(results: Results) -> None:
    heads, lines = results.table(0)
    frame = pd.DataFrame(lines, columns=["method", *heads[1:]])
    brief = [head for head in frame.columns if not head.endswith(DETAILS)]
    if len(frame.columns) > WIDE and not st.toggle("Show all columns", key="all-numbers"):
        frame = frame[brief]
    pinned = {"method": st.column_config.TextColumn(pinned=True)}
    st.dataframe(frame, hide_index=True, key="evaluation-table", column_config=pinned)
    for sentence in results.sentences(0):
        st.warning(plain(sentence))
    heads, theirs = results.published_table(0)
    if theirs:
        st.caption("Published results on the same data, with the model used in the paper:")
        st.dataframe(
            pd.DataFrame(theirs, columns=heads),
            hide_index=True,
            key="evaluation-published",
            column_config=pinned,
        )
    found = [one for _, _, one in results.finished(0)]
    notes = [f"Models: {plain(results.models())}."]
    if any(one.pairs or one.triplets for one in found):
        has_strict = any(head.endswith(WITHOUT_TIES) for head in frame.columns)
        notes.append(
            "Cosine similarities that differ by less than 1e-7 are ties. Ties count as broken"
            + (f", except in the columns *{WITHOUT_TIES}*." if has_strict else ".")
        )
    if any(one.intervals for one in found):
        notes.append("The 95% intervals are bootstrap intervals.")
    if any(one.neighbours for one in found):
        notes.append("The 95% intervals are Wilson intervals.")
    if found:
        st.caption(" ".join(notes))


def _downloads(results: Results) -> None:
    with st.popover(
        "Download the results", icon=":material/download:", type="tertiary", key="evaluation-take"
    ):
        st.download_button(
            "Report (HTML)", lambda: report_html(results), "report.html", "text/html",
            key="evaluation-report", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Results (CSV)", results.csv, "results.csv", "text/csv",
            key="evaluation-csv", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Results (JSON)",
            lambda: json.dumps(results.as_record(), ensure_ascii=False, indent=2, allow_nan=False),
            "results.json", "application/json",
            key="evaluation-json", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.caption(f"The report lists all settings. In tables, {NONE} means undefined.")
