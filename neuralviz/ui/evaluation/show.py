"""The evaluation page below its title: the verdict first, then its proof, and the downloads."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation.results import EMPTY_CELL
from neuralviz.evaluation.yardsticks import compute_leads, explain_measures, yardsticks_of
from neuralviz.headlines.evaluation import describe_other_winner, describe_verdict
from neuralviz.jobs import Run
from neuralviz.jobs.evaluating import EXAMPLES, Evaluate, EvaluationState, recorded_results
from neuralviz.plots.evaluation import lead_of_best, rows_height, yardstick_figure
from neuralviz.plots.report import TABLE_STYLE, report_html, table_html
from neuralviz.plots.standalone import About, file_name
from neuralviz.store.files import corpus_view
from neuralviz.store.writing import BYTE_ORDER_MARK
from neuralviz.ui.choices import choose_one
from neuralviz.ui.evaluation.choose import KEY, choose_evaluation
from neuralviz.ui.evaluation.views import method_name, show_views, show_worst
from neuralviz.ui.figures import download, show_figure
from neuralviz.ui.links import result_view_id
from neuralviz.ui.page import plain
from neuralviz.ui.runs import SessionRuns, find_visible_run, show_visible_run
from neuralviz.ui.stage import show_headline, slide
from neuralviz.ui.tables import put_upload_in_address
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

RUNS = SessionRuns(KEY)
LONGEST_NAME = 100  # characters
DETAILS = ("without ties", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")
ALSO_DETAILS = ("broken",)  # for pairs, whose table is wide


def show() -> None:
    """Show data, methods, *Evaluate* and results; at first, the example's recorded results."""
    task, pressed = choose_evaluation()
    view = ""
    if task is None and pressed:
        st.info("Choose data and at least one method first; what is missing is said above.")
    if task is not None:
        if pressed:
            put_upload_in_address(KEY)
        view = corpus_view(task.corpus) if task.corpus else result_view_id(KEY)
        _describe_task(task)
    recorded = next((run for run in _load_recorded_runs().values() if run.task == task), None)
    visible = find_visible_run(RUNS, task, view, pressed=pressed, recorded=recorded)
    if visible is None:
        return
    related = _load_recorded_runs() if visible.is_recorded else {}
    show_visible_run(RUNS, visible, "Evaluate", partial(_show_state, related=related))


def _describe_task(task: Evaluate) -> None:
    """Describe the data and how much there is to embed."""
    (data,) = task.plan.data
    size = f"{many(len(data.texts), 'different text')}, {many(len(task.plan.rows), 'method')}."
    st.caption(plain(" ".join([f"{data.name}: {data.describe()}.", *data.notes, size])))


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_recorded_runs() -> dict[str, Run[EvaluationState]]:
    """The recorded evaluations as runs that are over, by name of the example."""
    return {
        name.lower(): Run.from_result(
            Evaluate.for_current_models(results.plan), EvaluationState(results)
        )
        for name, results in zip(EXAMPLES, recorded_results(), strict=False)
    }


def _show_state(
    state: EvaluationState, live: bool, *, related: Mapping[str, Run[EvaluationState]]
) -> None:
    """Show the verdict, its figures, the numbers, the worst cases, and other views.

    Args:
        live: whether the evaluation still runs; there are no figures then.
        related: evaluations of other tasks on the same texts, by task.
    """
    results = state.results
    if not results.cells:
        return
    provenance = _describe_provenance(results)
    related_results = {name: run.result.results for name, run in related.items()}
    with slide("evaluation-verdict"):
        yardstick = _show_verdict(results, related_results, live=live)
        has_figure = (
            not live and yardstick is not None and _show_proof(results, yardstick, provenance)
        )
        if not has_figure:
            _show_numbers(results)
    if has_figure:  # the stage shows the figures first
        _show_numbers(results)
    if live:
        st.caption("Figures appear when all methods are finished.")
        return
    if results.finished(0):
        _offer_downloads(results, provenance)
    if yardstick is not None:
        show_worst(results, yardstick, provenance)
        show_views(results, yardstick, provenance)


def _describe_provenance(results: Results) -> About:
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
    results: Results, related_results: Mapping[str, Results], *, live: bool
) -> Yardstick | None:
    """Show the verdict; returns the chosen measure, if there is one."""
    headline_place = st.container()
    yardsticks = {yardstick.short: yardstick for yardstick in yardsticks_of(results, 0)}
    yardstick = next(iter(yardsticks.values()), None)
    if len(yardsticks) > 1 and not live:
        chosen = choose_one(
            st.segmented_control,
            "Measure",
            list(yardsticks),
            default=next(iter(yardsticks)),
            key=f"measure-{results.data[0].kind}",
            label_visibility="collapsed",
        )
        yardstick = yardsticks.get(chosen, yardstick)
    sentences = [
        describe_verdict(results, 0, yardstick, name=method_name, quote=plain),
        describe_other_winner(results, related_results, name=method_name),
    ]
    with headline_place:
        show_headline(" ".join(filter(None, sentences)), key="evaluation")
    return yardstick


def _show_proof(results: Results, yardstick: Yardstick, provenance: About) -> bool:
    """Draw each method's result and the lead of the best; whether there is a figure."""
    chart = yardstick_figure(results, 0, yardstick)
    if chart is None:
        return False
    drawings = {"": chart}
    tables = {"": _tabulate_values}
    if (lead := lead_of_best(results, 0, yardstick)) is not None:
        drawings["lead in "] = lead
        tables["lead in "] = _tabulate_leads
    height = rows_height(max(n_rows for _, n_rows in drawings.values()))
    columns = st.columns(len(drawings), gap="large")
    for column, (name, (figure, _)) in zip(columns, drawings.items(), strict=True):
        with column:
            show_figure(
                figure,
                key=f"evaluation-{name.replace(' ', '-')}{yardstick.name}",
                numbers=partial(tables[name], results, yardstick),
                name=f"{provenance.title} {name}{yardstick.title}",
                height=height,
                provenance=provenance,
            )
    return True


def _tabulate_values(results: Results, yardstick: Yardstick) -> pd.DataFrame:
    """A measure of every method with its interval."""
    unknown = (np.nan, np.nan)
    rows = [
        (label, value, *(yardstick.interval(measured) or unknown))
        for _, label, measured in results.finished(0)
        if np.isfinite(value := yardstick.read(measured))
    ]
    return pd.DataFrame(rows, columns=["method", yardstick.title, "low", "high"])


def _tabulate_leads(results: Results, yardstick: Yardstick) -> pd.DataFrame:
    """How far each method is ahead of each that is not better, with intervals."""
    unknown = (np.nan, np.nan)
    rows = [
        (lead.first, lead.second, lead.value, *(lead.interval or unknown), lead.is_decided)
        for lead in compute_leads(results, 0, yardstick)
    ]
    title = f"lead of A in {yardstick.title}"
    return pd.DataFrame(rows, columns=["A", "B", title, "low", "high", "decided"])


def _show_numbers(results: Results) -> None:
    """Show the table of numbers with an explanation of its columns."""
    table = results.table(0)
    details = DETAILS + ALSO_DETAILS * (results.data[0].kind == "pairs")
    is_detailed = any(head.endswith(details) for head in table.heads)
    in_full = is_detailed and st.session_state.get("all-numbers", False)
    visible_columns = [
        place for place, head in enumerate(table.heads) if in_full or not head.endswith(details)
    ]
    table = table._replace(heads=["method", *table.heads[1:]])
    st.html(f"<style>{TABLE_STYLE}</style>{table_html(table, visible_columns)}")
    if is_detailed:
        st.toggle("Show all columns", key="all-numbers")
    for sentence in results.sentences(0):
        st.warning(plain(sentence))
    published = results.published_table(0)
    if published.lines:
        st.caption("Published results on the same data, with the model used in the paper:")
        st.html(table_html(published))
    explained = explain_measures(results, 0, in_full=in_full)
    st.caption(" ".join([*explained, f"Models: {plain(results.models())}."]))


def _offer_downloads(results: Results, provenance: About) -> None:
    methods = "-".join(short_labels([row.label for row in results.rows]))
    name = file_name(f"{provenance.title}-{methods}"[:LONGEST_NAME])

    def write_json() -> str:
        record = results.as_record()
        return json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False)

    with st.popover(
        "Download the results", icon=":material/download:", type="tertiary", key="evaluation-take"
    ):
        download("Report (HTML)", lambda: report_html(results), f"{name}.html", key=KEY)
        download("Results (CSV)", lambda: BYTE_ORDER_MARK + results.csv(), f"{name}.csv", key=KEY)
        download("Results (JSON)", write_json, f"{name}.json", key=KEY)
        st.caption(f"The report lists all settings. In tables, {EMPTY_CELL} means undefined.")
