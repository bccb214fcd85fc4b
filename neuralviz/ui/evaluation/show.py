"""The evaluation page below its title: verdict, proof, numbers, and where methods fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation.columns import EMPTY_CELL, Yardstick
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.events import Measured
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.yardsticks import (
    Cases,
    best_first,
    compute_leads,
    explain_measures,
    worst_cases,
    yardsticks_of,
)
from neuralviz.headlines import evaluation as headlines
from neuralviz.jobs import Run
from neuralviz.jobs.evaluating import EXAMPLES, Evaluate, EvaluationState, recorded_results
from neuralviz.plots import evaluation as plots
from neuralviz.plots.layers import scatter_figure
from neuralviz.plots.report import TABLE_STYLE, report_html, table_html
from neuralviz.plots.standalone import About, file_name
from neuralviz.plots.theme import escape
from neuralviz.store.files import corpus_view
from neuralviz.store.writing import BYTE_ORDER_MARK
from neuralviz.ui.choices import choose_one
from neuralviz.ui.evaluation.choose import KEY, choose_evaluation
from neuralviz.ui.figures import (
    allow_swiping,
    download,
    download_table,
    list_worst,
    open_downloads,
    quote,
    show_figure,
)
from neuralviz.ui.links import result_view_id
from neuralviz.ui.page import plain
from neuralviz.ui.runs import SessionRuns, find_current_run, show_current_run
from neuralviz.ui.stage import show_headline, slide
from neuralviz.ui.tables import put_upload_in_address
from neuralviz.words import many

Write = Callable[[str], None]
Draw = Callable[..., object]

RUNS = SessionRuns(KEY)
LONGEST_NAME = 100  # characters
DETAILS = ("without ties", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")
ALSO_DETAILS = ("broken",)  # for pairs, whose table is wide
MAX_DRAWN_METHODS = 6  # with more, the user picks one
UNKNOWN = (np.nan, np.nan)  # an interval


def show() -> None:
    task, pressed = choose_evaluation()
    view = ""
    if task is None and pressed:
        st.info("Choose data and at least one method first; what is missing is said above.")
    if task is not None:
        if pressed:
            put_upload_in_address(KEY)
        view = corpus_view(task.corpus) if task.corpus else result_view_id(KEY)
        (data,) = task.plan.data
        size = f"{many(len(data.texts), 'different text')}, {many(len(task.plan.rows), 'method')}."
        st.caption(plain(" ".join([f"{data.name}: {data.describe()}.", *data.notes, size])))
    recorded = next((run for run in _load_recorded_runs().values() if run.task == task), None)
    run = find_current_run(RUNS, task, view, pressed=pressed, recorded=recorded)
    if run is None:
        return
    draw = partial(_show_state, related=_load_recorded_runs() if run is recorded else {})
    show_current_run(RUNS, run, task, "Evaluate", draw, recorded=recorded)


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_recorded_runs() -> dict[str, Run[EvaluationState]]:
    """Recorded evaluations as finished runs, by name of the example."""
    return {
        name.lower(): Run.from_result(
            Evaluate.for_current_models(results.plan), EvaluationState(results)
        )
        for name, results in zip(EXAMPLES, recorded_results(), strict=False)
    }


def _show_state(
    state: EvaluationState,
    live: bool,
    *,
    related: Mapping[str, Run[EvaluationState]],  # other tasks on the same texts, by task
) -> None:
    """Show the verdict, its figures, the numbers, the worst cases, and other views."""
    results = state.results
    if not results.cells:
        return
    data = results.data[0]
    provenance = About(
        f"Evaluation: {data.name}",
        {
            "data": data.describe(),
            "methods": "; ".join(row.label for row in results.rows),
            "model": results.models(),
            "measured": f"{results.begun[:10]}, neuralviz {results.version}",
        },
    )
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
        _show_worst(results, yardstick, provenance)
        _show_views(results, yardstick, provenance)


def _show_verdict(
    results: Results, related_results: Mapping[str, Results], *, live: bool
) -> Yardstick | None:
    """Show the verdict; return the chosen measure, if there is one."""
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
        headlines.describe_verdict(results, 0, yardstick, name=_name_method, quote=plain),
        headlines.describe_other_winner(results, related_results, name=_name_method),
    ]
    with headline_place:
        show_headline(" ".join(filter(None, sentences)), key="evaluation")
    return yardstick


def _name_method(label: str) -> str:
    return f"**{plain(label)}**"


def _show_proof(results: Results, yardstick: Yardstick, provenance: About) -> bool:
    """Draw each method's result and the lead of the best; return whether there is a figure."""
    chart = plots.yardstick_figure(results, 0, yardstick)
    if chart is None:
        return False
    drawings = [("", chart, _tabulate_values)]
    if (lead := plots.lead_of_best(results, 0, yardstick)) is not None:
        drawings.append(("lead in ", lead, _tabulate_leads))
    height = max(figure.layout.height for _, figure, _ in drawings)
    columns = st.columns(len(drawings), gap="large")
    for column, (name, figure, tabulate) in zip(columns, drawings, strict=True):
        with column:
            show_figure(
                figure,
                f"{provenance.title} {name}{yardstick.title}",
                partial(tabulate, results, yardstick),
                provenance,
                key=f"evaluation-{name.replace(' ', '-')}{yardstick.name}",
                height=height,
            )
    return True


def _tabulate_values(results: Results, yardstick: Yardstick) -> pd.DataFrame:
    rows = [
        (label, value, *(yardstick.interval(measured) or UNKNOWN))
        for _, label, measured in results.finished(0)
        if np.isfinite(value := yardstick.read(measured))
    ]
    return pd.DataFrame(rows, columns=["method", yardstick.title, "low", "high"])


def _tabulate_leads(results: Results, yardstick: Yardstick) -> pd.DataFrame:
    """Leads of each method over those that are not better, with intervals."""
    rows = [
        (lead.first, lead.second, lead.value, *(lead.interval or UNKNOWN), lead.is_decided)
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

    with open_downloads(KEY, "Download the results"):
        download("Report (HTML)", lambda: report_html(results), f"{name}.html", key=KEY)
        download("Results (CSV)", lambda: BYTE_ORDER_MARK + results.csv(), f"{name}.csv", key=KEY)
        download("Results (JSON)", write_json, f"{name}.json", key=KEY)
        st.caption(f"The report lists all settings. In tables, {EMPTY_CELL} means undefined.")


# --- the worst cases ---------------------------------------------------------------------------


def _pick_method(
    results: Results,
    yardstick: Yardstick,
    key: str,
    among: Collection[str] | None = None,  # labels to choose from; all by default
    label: str = "Method",
) -> tuple[str, Measured]:
    """Ask for a method; other results or another measure select the best one again."""
    measured_by_label = {
        name: measured
        for name, measured in best_first(results, 0, yardstick)
        if among is None or name in among
    }
    context = (results.data[0].digest, yardstick.name, tuple(measured_by_label))
    if st.session_state.get(f"{key}-for") != context:
        st.session_state[f"{key}-for"] = context
        st.session_state[key] = next(iter(measured_by_label))
    chosen = st.selectbox(label, list(measured_by_label), key=key)
    return chosen, measured_by_label[chosen]


def _show_worst(results: Results, yardstick: Yardstick, provenance: About) -> None:
    """Show the worst case of a method as a sentence, and its worst cases as a table."""
    data, name = results.data[0], headlines.short_name(results, _name_method)
    sentences = {
        label: sentence
        for _, label, measured in results.finished(0)
        if (sentence := headlines.describe_worst(data, measured, name(label), quote))
    }
    if not sentences:
        return
    with slide("evaluation-worst") as write_headline:
        label, measured = _pick_method(
            results, yardstick, "evaluation-worst-of", sentences, "Errors of"
        )
        write_headline(sentences[label])
        kinds = worst_cases(data, measured)
        for cases in kinds[:1]:
            _show_cases(cases, "0", label, provenance)
    for place, cases in enumerate(kinds[1:], 1):  # they do not fit on the stage
        _show_cases(cases, f"{place}", label, provenance)


def _show_cases(cases: Cases, place: str, label: str, provenance: About) -> None:
    """Show one kind of cases as a table, the worst first."""
    frame = pd.DataFrame(cases.lines, columns=list(cases.heads))
    st.markdown(f"**{cases.title}**")
    list_worst(frame, f"evaluation-worst-{place}")
    key = f"evaluation-errors-{place}"
    with open_downloads(key):
        name = f"{provenance.title} errors of {label}"
        download_table("Errors", frame, name, key=key, provenance=provenance)


# --- other views -------------------------------------------------------------------------------


def _show_views(results: Results, yardstick: Yardstick, provenance: About) -> None:
    """Ask for a view that has something to show, and draw it; the yardstick ranks methods."""
    finished = [measured for _, _, measured in results.finished(0)]
    has_content = {
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(finished),
        "Similar and dissimilar": any(len(m.same) and len(m.diff) for m in finished),
        "Confused labels": any(True for _ in plots.confusion_figures(results, 0)),
        "Shared errors": any(True for _ in plots.common_figures(results, 0)),
        "Controlled paraphrases": any(measured.paraphrases for measured in finished),
    }
    views = [view for view, is_there in has_content.items() if is_there]
    if not views:
        return
    st.subheader("More ways to look at it", anchor=False)
    view = choose_one(
        st.segmented_control,
        "View",
        views,
        default=views[0],
        key=f"view-{results.data[0].kind}",  # the first view depends on the kind
        label_visibility="collapsed",
    )
    draw = partial(show_figure, provenance=provenance)
    with slide("evaluation-view") as write_headline:
        _DRAW[view if view in views else views[0]](results, yardstick, write_headline, draw)


def _draw_pair_by_pair(
    results: Results, yardstick: Yardstick, write_headline: Write, draw: Draw
) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    label, measured = _pick_method(results, yardstick, "evaluation-pairs-of")
    write_headline(
        headlines.describe_pairs(data, measured, headlines.short_name(results, _name_method)(label))
    )
    firsts, seconds = ([data.texts[i] for i in side] for side in (data.first, data.second))
    table = pd.DataFrame(
        {"text1": firsts, "text2": seconds, "score": data.scores, "product": measured.products}
    )
    title = f"Human score and cosine similarity by {escape(label)}"
    sentences = list(zip(firsts, seconds, strict=True))
    draw(
        scatter_figure(measured.products, data.scores, sentences, None, title),
        "pairs",
        table,
        height=520,
    )


def _draw_histograms(
    results: Results, yardstick: Yardstick, write_headline: Write, draw: Draw
) -> None:
    write_headline(headlines.describe_separation(results, 0, yardstick, name=_name_method))
    figures = {
        results.rows[row].label: (row, figure) for row, figure in plots.histograms(results, 0)
    }
    if len(figures) > MAX_DRAWN_METHODS:
        label, _ = _pick_method(results, yardstick, "evaluation-histograms-of", figures)
        figures = {label: figures[label]}

    def tabulate(row: int) -> pd.DataFrame:
        measured = results.measured(0, row)
        assert measured is not None
        products = {"similar": measured.same, "dissimilar": measured.diff}
        return pd.concat(pd.DataFrame({"kind": k, "product": v}) for k, v in products.items())

    n_columns = 3 if len(figures) == 3 else min(2, len(figures))  # no empty corner
    places = [place for _ in figures for place in st.columns(n_columns)]
    for place, (row, figure) in zip(places, figures.values(), strict=False):
        with place:
            key = f"evaluation-histogram-{row}"
            draw(figure, "products", partial(tabulate, row), key=key)
    st.caption(
        "The less the two distributions overlap, the better the method separates similar "
        "from dissimilar texts. At most 20,000 pairs of each kind are shown."
    )


def _draw_shared_errors(
    results: Results, yardstick: Yardstick, write_headline: Write, draw: Draw
) -> None:
    write_headline(headlines.describe_shared_errors(results, 0, name=_name_method))
    compared = results.compared[0]
    labels = [results.rows[row].label for row in compared.rows]
    for name, figure in plots.common_figures(results, 0):
        frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
        frame.insert(0, "method", labels)
        with allow_swiping(f"evaluation-overlap-{name}-wide", 320 + 60 * len(labels)):
            draw(figure, f"{name}-shared-errors", frame)
    st.caption(
        "The number of triplets or comparisons that both methods break, divided by the number "
        "that the better of the two breaks (Eq. 3). Low values mean that the methods make "
        "different errors, so combining them may help. A cell is empty if one of the two makes "
        f"no errors. {results.left_out(0)}"
    )


def _draw_confusions(
    results: Results, yardstick: Yardstick, _write_headline: Write, draw: Draw
) -> None:
    drawings = list(plots.confusion_figures(results, 0))
    labels = {results.rows[row].label for row, *_ in drawings}
    label, _ = _pick_method(results, yardstick, "evaluation-confused-by", labels)
    for row, measure, confusion, figure in drawings:
        if results.rows[row].label == label:
            frame = pd.DataFrame(confusion.counts, columns=list(confusion.labels))
            frame.insert(0, "own label", list(confusion.labels), allow_duplicates=True)
            draw(figure, f"{measure}-confused-labels", frame)
    st.caption(
        "Each row shows which labels the texts of one label get, as shares of these texts. "
        "Macro-F1 and balanced accuracy, in the table, count every label alike, however rare."
    )


def _draw_paraphrases(
    results: Results, yardstick: Yardstick, write_headline: Write, draw: Draw
) -> None:
    write_headline(headlines.describe_followed_quality(results, 0, yardstick, _name_method, plain))
    drawings = list(plots.quality_figures(results, 0))
    labels = {results.rows[row].label for row, *_ in drawings}
    label, measured = _pick_method(results, yardstick, "evaluation-paraphrases-by", labels)

    def tabulate() -> pd.DataFrame:
        columns = ["quality", "fixed1", "fixed2", "tau-c", "n"]
        rows = [
            (quality.quality, first, second, quality.kendall_c[i, j], quality.n[i, j])
            for quality in measured.paraphrases
            for i, first in enumerate(quality.fixed1)
            for j, second in enumerate(quality.fixed2)
        ]
        return pd.DataFrame(rows, columns=columns)

    for row, kind, figure in drawings:
        if results.rows[row].label == label:
            with allow_swiping(f"evaluation-{kind}-wide", 320 * len(measured.paraphrases)):
                draw(figure, f"paraphrases-{kind}", tabulate if kind == "tau-c" else None)
    st.caption("One quality of similarity varies; the other two are fixed at the values shown.")


_DRAW = {
    "Pair by pair": _draw_pair_by_pair,
    "Similar and dissimilar": _draw_histograms,
    "Confused labels": _draw_confusions,
    "Shared errors": _draw_shared_errors,
    "Controlled paraphrases": _draw_paraphrases,
}
