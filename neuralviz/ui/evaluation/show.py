"""The evaluation page below its title: verdict, proof, numbers, and where methods fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
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
    rank_methods,
    worst_cases,
    yardsticks_of,
)
from neuralviz.headlines import evaluation as headlines
from neuralviz.jobs import Run
from neuralviz.jobs.evaluating import EXAMPLES, Evaluate, EvaluationState, recorded_results
from neuralviz.plots import evaluation as plots
from neuralviz.plots.layers import scatter_figure
from neuralviz.plots.report import TABLE_STYLE, About, file_name, report_html, table_html
from neuralviz.plots.theme import escape
from neuralviz.store.files import corpus_view
from neuralviz.store.writing import BYTE_ORDER_MARK
from neuralviz.ui.choices import choose_one
from neuralviz.ui.evaluation.choose import KEY, choose_evaluation
from neuralviz.ui.figures import (
    allow_swiping,
    download,
    download_table,
    list_cells,
    list_worst,
    open_downloads,
    quote,
    show_figure,
)
from neuralviz.ui.inputs import put_upload_in_address
from neuralviz.ui.links import result_view_id
from neuralviz.ui.page import plain
from neuralviz.ui.runs import SessionRuns, find_current_run, show_current_run
from neuralviz.ui.stage import slide
from neuralviz.words import many

Write = Callable[[str], None]

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
    related_results = {name: run.result.results for name, run in related.items()}
    with slide("evaluation-verdict") as write_headline:
        yardstick = _choose_yardstick(results, live)
        sentences = [
            headlines.describe_verdict(results, 0, yardstick, name=_name_method, quote=plain),
            headlines.describe_other_winner(results, related_results, name=_name_method),
        ]
        write_headline(" ".join(filter(None, sentences)))
        shown = _Shown(results, yardstick) if yardstick is not None else None
        has_figure = not live and shown is not None and shown.show_proof()
        if not has_figure:
            _show_numbers(results)
    if has_figure:  # the stage shows the figures first
        _show_numbers(results)
    if live:
        st.caption("Figures appear when all methods are finished.")
        return
    if results.finished(0):
        _offer_downloads(results)
    if shown is not None:
        shown.show_worst()
        shown.show_views()


def _choose_yardstick(results: Results, live: bool) -> Yardstick | None:
    """Ask for the measure that methods are compared by; None where there is none."""
    yardsticks = {yardstick.short: yardstick for yardstick in yardsticks_of(results, 0)}
    if not yardsticks:
        return None
    first = chosen = next(iter(yardsticks))
    if len(yardsticks) > 1 and not live:
        chosen = choose_one(
            st.segmented_control,
            "Measure",
            list(yardsticks),
            default=first,
            key=f"measure-{results.data[0].kind}",
            label_visibility="collapsed",
        )
    return yardsticks.get(chosen, yardsticks[first])


def _name_method(label: str) -> str:
    return f"**{plain(label)}**"


def _describe(results: Results) -> About:
    """What the figures show, for downloads."""
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


def _offer_downloads(results: Results) -> None:
    methods = "-".join(short_labels([row.label for row in results.rows]))
    name = file_name(f"{_describe(results).title}-{methods}"[:LONGEST_NAME])

    def write_json() -> str:
        record = results.as_record()
        return json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False)

    with open_downloads(KEY, "Download the results"):
        download("Report (HTML)", lambda: report_html(results), f"{name}.html", key=KEY)
        download("Results (CSV)", lambda: BYTE_ORDER_MARK + results.csv(), f"{name}.csv", key=KEY)
        download("Results (JSON)", write_json, f"{name}.json", key=KEY)
        st.caption(f"The report lists all settings. In tables, {EMPTY_CELL} means undefined.")


@dataclass(frozen=True, eq=False)
class _Shown:
    """The figures and tables of results, by the measure that methods are compared by."""

    results: Results
    yardstick: Yardstick

    def draw(
        self,
        figure: go.Figure,
        name: str,
        numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,
        **look: Any,
    ) -> None:
        show_figure(figure, name, numbers, _describe(self.results), **look)

    def show_proof(self) -> bool:
        """Draw each method's result and the lead of the best; return whether there is a figure."""
        results, yardstick = self.results, self.yardstick
        chart = plots.yardstick_figure(results, 0, yardstick)
        if chart is None:
            return False
        drawings = [("", chart, self._tabulate_values)]
        if (lead := plots.lead_of_best(results, 0, yardstick)) is not None:
            drawings.append(("lead in ", lead, self._tabulate_leads))
        height = max(figure.layout.height for _, figure, _ in drawings)
        columns = st.columns(len(drawings), gap="large")
        for column, (name, figure, tabulate) in zip(columns, drawings, strict=True):
            title = f"{_describe(results).title} {name}{yardstick.title}"
            key = f"evaluation-{name.replace(' ', '-')}{yardstick.name}"
            with column:
                self.draw(figure, title, tabulate, key=key, height=height)
        return True

    def _tabulate_values(self) -> pd.DataFrame:
        rows = [
            (method.label, method.value, *(self.yardstick.interval(method.measured) or UNKNOWN))
            for method in rank_methods(self.results, 0, self.yardstick)
        ]
        return pd.DataFrame(rows, columns=["method", self.yardstick.title, "low", "high"])

    def _tabulate_leads(self) -> pd.DataFrame:
        """Leads of each method over those that are not better, with intervals."""
        rows = [
            (lead.first, lead.second, lead.value, *(lead.interval or UNKNOWN), lead.is_decided)
            for lead in compute_leads(self.results, 0, self.yardstick)
        ]
        title = f"lead of A in {self.yardstick.title}"
        return pd.DataFrame(rows, columns=["A", "B", title, "low", "high", "decided"])

    def pick_method(
        self,
        key: str,
        among: Collection[str] | None = None,  # labels to choose from; all by default
        label: str = "Method",
    ) -> tuple[str, Measured]:
        """Ask for a method; other results or another measure select the best one again."""
        measured_by_label = {
            name: measured
            for name, measured in best_first(self.results, 0, self.yardstick)
            if among is None or name in among
        }
        context = self.results.data[0].digest, self.yardstick.name, tuple(measured_by_label)
        if st.session_state.get(f"{key}-for") != context:
            st.session_state[f"{key}-for"] = context
            st.session_state[key] = next(iter(measured_by_label))
        chosen = st.selectbox(label, list(measured_by_label), key=key)
        return chosen, measured_by_label[chosen]

    # --- the worst cases -----------------------------------------------------------------------

    def show_worst(self) -> None:
        """Show the worst case of a method as a sentence, and its worst cases as a table."""
        data, name = self.results.data[0], headlines.short_name(self.results, _name_method)
        sentences = {
            label: sentence
            for _, label, measured in self.results.finished(0)
            if (sentence := headlines.describe_worst(data, measured, name(label), quote))
        }
        if not sentences:
            return
        with slide("evaluation-worst") as write_headline:
            label, measured = self.pick_method("evaluation-worst-of", sentences, "Errors of")
            write_headline(sentences[label])
            kinds = worst_cases(data, measured)
            for cases in kinds[:1]:
                self._show_cases(cases, 0, label)
        for place, cases in enumerate(kinds[1:], 1):  # they do not fit on the stage
            self._show_cases(cases, place, label)

    def _show_cases(self, cases: Cases, place: int, label: str) -> None:
        """Show one kind of cases as a table, the worst first."""
        frame, about = pd.DataFrame(cases.lines, columns=list(cases.heads)), _describe(self.results)
        st.markdown(f"**{cases.title}**")
        list_worst(frame, f"evaluation-worst-{place}")
        key = f"evaluation-errors-{place}"
        with open_downloads(key):
            name = f"{about.title} errors of {label}"
            download_table("Errors", frame, name, key=key, provenance=about)

    # --- other views ---------------------------------------------------------------------------

    def show_views(self) -> None:
        """Ask for a view that has something to show, and draw it."""
        results = self.results
        finished = [measured for _, _, measured in results.finished(0)]
        is_pairs = isinstance(results.data[0], ScoredData) and bool(finished)
        drawings: dict[str, tuple[bool, Callable[[Write], None]]] = {
            "Pair by pair": (is_pairs, self._draw_pairs),
            "Similar and dissimilar": (
                any(len(measured.same) and len(measured.diff) for measured in finished),
                self._draw_histograms,
            ),
            "Confused labels": (any(m.confusions for m in finished), self._draw_confusions),
            "Shared errors": (
                any(True for _ in plots.common_figures(results, 0)),
                self._draw_shared_errors,
            ),
            "Controlled paraphrases": (any(m.paraphrases for m in finished), self._draw_qualities),
        }
        views = {view: draw for view, (is_there, draw) in drawings.items() if is_there}
        if not views:
            return
        st.subheader("More ways to look at it", anchor=False)
        first = next(iter(views))
        view = choose_one(
            st.segmented_control,
            "View",
            list(views),
            default=first,
            key=f"view-{results.data[0].kind}",  # the first view depends on the kind
            label_visibility="collapsed",
        )
        with slide("evaluation-view") as write_headline:
            views.get(view, views[first])(write_headline)

    def _draw_pairs(self, write_headline: Write) -> None:
        data = self.results.data[0]
        assert isinstance(data, ScoredData)
        label, measured = self.pick_method("evaluation-pairs-of")
        name = headlines.short_name(self.results, _name_method)(label)
        write_headline(headlines.describe_pairs(data, measured, name))
        firsts, seconds = ([data.texts[i] for i in side] for side in (data.first, data.second))
        table = pd.DataFrame(
            {"text1": firsts, "text2": seconds, "score": data.scores, "product": measured.products}
        )
        title = f"Human score and cosine similarity by {escape(label)}"
        sentences = list(zip(firsts, seconds, strict=True))
        figure = scatter_figure(measured.products, data.scores, sentences, None, title)
        self.draw(figure, "pairs", table, height=520)

    def _draw_histograms(self, write_headline: Write) -> None:
        results = self.results
        sentence = headlines.describe_separation(results, 0, self.yardstick, name=_name_method)
        write_headline(sentence)
        figures = {
            results.rows[row].label: (row, figure) for row, figure in plots.histograms(results, 0)
        }
        if len(figures) > MAX_DRAWN_METHODS:
            label, _ = self.pick_method("evaluation-histograms-of", figures)
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
                self.draw(figure, "products", partial(tabulate, row), key=key)
        st.caption(
            "The less the two distributions overlap, the better the method separates similar "
            "from dissimilar texts. At most 20,000 pairs of each kind are shown."
        )

    def _draw_shared_errors(self, write_headline: Write) -> None:
        results, compared = self.results, self.results.compared[0]
        write_headline(headlines.describe_shared_errors(results, 0, name=_name_method))
        labels = [results.rows[row].label for row in compared.rows]
        for name, figure in plots.common_figures(results, 0):
            frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
            frame.insert(0, "method", labels)
            with allow_swiping(f"evaluation-overlap-{name}-wide", 320 + 60 * len(labels)):
                self.draw(figure, f"{name}-shared-errors", frame)
        st.caption(
            "The number of triplets or comparisons that both methods break, divided by the number "
            "that the better of the two breaks (Eq. 3). Where it is low, combining the methods may "
            f"help. A cell is empty if one of the two makes no errors. {results.left_out(0)}"
        )

    def _draw_confusions(self, _write_headline: Write) -> None:
        drawings = list(plots.confusion_figures(self.results, 0))
        labels = {self.results.rows[row].label for row, *_ in drawings}
        label, _ = self.pick_method("evaluation-confused-by", labels)
        for row, measure, confusion, figure in drawings:
            if self.results.rows[row].label == label:
                frame = pd.DataFrame(confusion.counts, columns=list(confusion.labels))
                frame.insert(0, "own label", list(confusion.labels), allow_duplicates=True)
                self.draw(figure, f"{measure}-confused-labels", frame)
        st.caption("Each row shows which labels the texts of one label get, as shares of them.")

    def _draw_qualities(self, write_headline: Write) -> None:
        sentence = headlines.describe_followed_quality(
            self.results, 0, self.yardstick, _name_method, plain
        )
        write_headline(sentence)
        drawings = list(plots.quality_figures(self.results, 0))
        labels = {self.results.rows[row].label for row, *_ in drawings}
        label, measured = self.pick_method("evaluation-paraphrases-by", labels)

        def tabulate() -> pd.DataFrame:
            frames = {
                result.quality: list_cells(
                    {"fixed1": result.fixed1, "fixed2": result.fixed2},
                    **{"tau-c": result.kendall_c, "n": result.n},
                )
                for result in measured.paraphrases
            }
            return pd.concat(frames, names=["quality"]).reset_index("quality")

        for row, kind, figure in drawings:
            if self.results.rows[row].label == label:
                with allow_swiping(f"evaluation-{kind}-wide", 320 * len(measured.paraphrases)):
                    self.draw(figure, f"paraphrases-{kind}", tabulate if kind == "tau-c" else None)
        st.caption("One quality of similarity varies; the others are fixed at the values shown.")
