"""What the evaluation page shows: what was found first, then its proof, and the downloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation.results import EMPTY_CELL
from neuralviz.evaluation.yardsticks import INTERVALS, explain_measures, yardsticks_of
from neuralviz.headlines.evaluation import describe_other_winner, describe_verdict
from neuralviz.jobs.evaluating import Evaluate, EvaluationState
from neuralviz.plots.evaluation import rows_height
from neuralviz.plots.report import TABLE_STYLE, report_html, table_html
from neuralviz.plots.results import lead_of_best, yardstick_figure
from neuralviz.plots.standalone import About, file_name
from neuralviz.store.results import corpus_view
from neuralviz.store.writing import BYTE_ORDER_MARK
from neuralviz.ui.choices import choose_one
from neuralviz.ui.evaluation.data import KEY
from neuralviz.ui.evaluation.views import (
    available_views,
    draw_view,
    lead_numbers,
    method_name,
    yardstick_numbers,
)
from neuralviz.ui.evaluation.worst import show_worst
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.links import result_view_id
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide

if TYPE_CHECKING:
    from neuralviz.evaluation.results import Results, Table
    from neuralviz.evaluation.yardsticks import Yardstick
    from neuralviz.jobs import Run
    from neuralviz.ui.evaluation.choose import EvaluationChoice

RUNS = SessionRuns("evaluation")
LAST_RESULTS_KEY = "evaluation-seen"
LONGEST_NAME = 100  # characters
NOTHING_ELSE: Mapping[str, Results] = MappingProxyType({})
DETAILS = ("without ties", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")
ALSO_DETAILS = ("broken",)  # for pairs, whose table is wide


def recall_results(chosen: EvaluationChoice) -> bool:
    """Recall the results of an earlier evaluation; whether there are any."""
    task = Evaluate.for_current_models(chosen.plan, corpus=chosen.corpus)
    return RUNS.recall(task, _result_view_id(chosen)) is not None


def _result_view_id(chosen: EvaluationChoice) -> str:
    """The id of the view of the results; those of a saved corpus are deleted with it."""
    return corpus_view(chosen.corpus) if chosen.corpus else result_view_id(KEY)


def show_evaluation(chosen: EvaluationChoice, *, again: bool) -> None:
    """Start or find the evaluation, and show it.

    Args:
        chosen: the evaluation.
        again: run it again if it failed or was stopped; embeddings are reused.
    """
    task = Evaluate.for_current_models(chosen.plan, corpus=chosen.corpus)
    last: Run[EvaluationState] | None = RUNS.find(task)
    failed = last is not None and (last.status != "done" or last.result.any_failed)
    run = RUNS.start(task, again=again and failed, view=_result_view_id(chosen))
    show_run_panel(RUNS, run, _show)


def offer_to_stop() -> None:
    """Offer to stop a running evaluation with other settings."""
    going_on = [run for run in RUNS.list_runs() if not run.is_over]
    if not going_on:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("The previous evaluation is still running.")
        if st.button("Stop", icon=":material/stop:", key="evaluation-stop-before"):
            for run in going_on:
                run.stop()


def _show(filling: EvaluationState, live: bool) -> None:
    show_results(filling.results, live=live)


def show_results(
    results: Results, *, live: bool = False, related_results: Mapping[str, Results] = NOTHING_ELSE
) -> None:
    """Show the verdict, its figures, the numbers, the worst cases, and other views.

    Args:
        results: of one data set.
        live: whether the evaluation still runs; there are no figures then.
        related_results: results of other tasks on the same texts, by task.
    """
    if not results.cells:
        return
    if not live:
        st.session_state[LAST_RESULTS_KEY] = results
    provenance = describe_provenance(results)
    with slide("evaluation-verdict"):
        yardstick = _show_verdict(results, provenance, related_results, live=live)
        is_proved = (
            not live and yardstick is not None and _show_proof(results, yardstick, provenance)
        )
        if not is_proved:
            _show_numbers(results)
    if is_proved:  # the stage shows the figures first
        _show_numbers(results)
    if not live and results.finished(0):
        _offer_downloads(results, provenance)
    if live:
        st.caption("Figures appear when all methods are finished.")
        return
    if yardstick is None:
        return
    show_worst(results, yardstick, provenance)
    views = available_views(results)
    if views:
        st.subheader("More ways to look at it", anchor=False)
        view = choose_one(
            st.segmented_control,
            "View",
            views,
            default=views[0],
            key=f"view-{results.data[0].kind}",  # the first view depends on the kind
            label_visibility="collapsed",
        )
        draw_view(view if view in views else views[0], results, yardstick, provenance)


def describe_provenance(results: Results) -> About:
    """The data, methods and model that downloaded figures name."""
    data = results.data[0]
    return About(
        f"Evaluation: {data.name}",
        {
            "data": data.describe(),
            "methods": "; ".join(row.label for row in results.rows),
            "model": results.models(),
            "measured": f"{results.begun[:10]}, neuralviz {results.version}",
        },
    )


def _show_verdict(
    results: Results, provenance: About, related_results: Mapping[str, Results], *, live: bool
) -> Yardstick | None:
    """Show the verdict; returns the chosen measure, if there is one."""
    top = st.container()
    yardsticks = {yardstick.short: yardstick for yardstick in yardsticks_of(results, 0)}
    yardstick = next(iter(yardsticks.values()), None)
    if len(yardsticks) > 1 and not live:
        chosen = choose_one(
            st.segmented_control, "Measure", list(yardsticks), default=next(iter(yardsticks)),
            key=f"measure-{results.data[0].kind}", label_visibility="collapsed",
        )  # fmt: skip
        yardstick = yardsticks.get(chosen, yardstick)
    with top:
        sentences = [
            describe_verdict(results, 0, yardstick, name=method_name, quote=plain),
            describe_other_winner(results, related_results, name=method_name),
        ]
        show_headline(" ".join(filter(None, sentences)), key="evaluation")
    return yardstick


def _show_proof(results: Results, yardstick: Yardstick, provenance: About) -> bool:
    """Draw each method's result and the lead of the best; whether there is a figure."""
    chart = yardstick_figure(results, 0, yardstick)
    lead = lead_of_best(results, 0, yardstick)
    if chart is None:
        return False
    height = rows_height(max(chart[1], lead[1] if lead else 0))
    left_column, right_column = st.columns([1, 1], gap="large") if lead else (st.container(), None)
    with left_column:
        show_figure(
            chart[0], key=f"evaluation-{yardstick.name}",
            numbers=lambda: yardstick_numbers(results, yardstick),
            name=f"{provenance.title} {yardstick.title}", height=height, provenance=provenance,
        )  # fmt: skip
    if lead and right_column is not None:
        with right_column:
            show_figure(
                lead[0], key=f"evaluation-lead-{yardstick.name}",
                numbers=lambda: lead_numbers(results, yardstick),
                name=f"{provenance.title} lead in {yardstick.title}",
                height=height, provenance=provenance,
            )  # fmt: skip
    return True


def _show_numbers(results: Results) -> None:
    """Show the table of numbers with an explanation of its columns."""
    table = results.table(0)
    details = DETAILS + ALSO_DETAILS * (results.data[0].kind == "pairs")
    is_detailed = any(head.endswith(details) for head in table.heads)
    in_full = is_detailed and st.session_state.get("all-numbers", False)
    visible_columns = [
        column_index
        for column_index, head in enumerate(table.heads)
        if in_full or not head.endswith(details)
    ]
    st.html(f"<style>{TABLE_STYLE}</style>{table_html(_name_first_column(table), visible_columns)}")
    if is_detailed:
        st.toggle("Show all columns", key="all-numbers")
    for sentence in results.sentences(0):
        st.warning(plain(sentence))
    published = results.published_table(0)
    if published.lines:
        st.caption("Published results on the same data, with the model used in the paper:")
        st.html(table_html(published))
    measurements = [measurement for _, _, measurement in results.finished(0)]
    notes = explain_measures(results, 0, in_full=in_full)
    if any(
        measurement.intervals or measurement.neighbours or measurement.probe
        for measurement in measurements
    ):
        notes.append(INTERVALS)
    if any(measurement.pairs or measurement.triplets for measurement in measurements):
        notes.append(
            "Cosine similarities that differ by less than 1e-7 are ties, which are broken."
        )
    notes.append(f"Models: {plain(results.models())}.")
    st.caption(" ".join(notes))


def _name_first_column(table: Table) -> Table:
    return table._replace(heads=["method", *table.heads[1:]])


def _offer_downloads(results: Results, provenance: About) -> None:
    methods = "-".join(short_labels([row.label for row in results.rows]))
    name = file_name(f"{provenance.title}-{methods}"[:LONGEST_NAME])
    with st.popover(
        "Download the results", icon=":material/download:", type="tertiary", key="evaluation-take"
    ):
        st.download_button(
            "Report (HTML)", lambda: report_html(results), f"{name}.html", "text/html",
            key="evaluation-report", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Results (CSV)", lambda: BYTE_ORDER_MARK + results.csv(), f"{name}.csv", "text/csv",
            key="evaluation-csv", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Results (JSON)",
            lambda: json.dumps(results.as_record(), ensure_ascii=False, indent=2, allow_nan=False),
            f"{name}.json", "application/json",
            key="evaluation-json", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.caption(f"The report lists all settings. In tables, {EMPTY_CELL} means undefined.")
