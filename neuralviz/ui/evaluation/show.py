"""What the evaluation page shows: what was found first, then its proof, and the downloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.labels import short_labels
from neuralviz.evaluation.in_words import EMPTY_CELL
from neuralviz.evaluation.verdict import describe_other_winner, verdict
from neuralviz.evaluation.yardsticks import INTERVALS, explain_measures, yardsticks_of
from neuralviz.jobs.evaluating import Evaluate, EvaluationState
from neuralviz.plots.evaluation import rows_height
from neuralviz.plots.report import report_html
from neuralviz.plots.results import lead_of_best, yardstick_figure
from neuralviz.plots.standalone import About, file_name
from neuralviz.plots.tables import TABLE_STYLE, table_html
from neuralviz.store.results import corpus_view
from neuralviz.store.writing import BYTE_ORDER_MARK
from neuralviz.ui.choices import choose_one
from neuralviz.ui.evaluation.data import KEY
from neuralviz.ui.evaluation.views import (
    draw_view,
    lead_numbers,
    method_name,
    views_of,
    yardstick_numbers,
)
from neuralviz.ui.evaluation.worst import show_worst
from neuralviz.ui.figures import show_figure
from neuralviz.ui.links import kept_under
from neuralviz.ui.page import plain
from neuralviz.ui.point import show_point
from neuralviz.ui.run_panel import run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide

if TYPE_CHECKING:
    from neuralviz.evaluation.in_words import Table
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick
    from neuralviz.jobs import Run
    from neuralviz.ui.evaluation.choose import Chosen

RUNS = SessionRuns("evaluation")
SEEN = "evaluation-seen"
LONGEST_NAME = 100  # characters of a file's name
NOTHING_ELSE: Mapping[str, Results] = MappingProxyType({})
DETAILS = ("without ties", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")
ALSO_DETAILS = ("broken",)  # beside correlations: there is no room


def bring_back(chosen: Chosen) -> bool:
    """Whether just this was evaluated before, and is there again."""
    task = Evaluate.for_current_models(chosen.plan, corpus=chosen.corpus)
    return RUNS.recall(task, _view_of(chosen)) is not None


def _view_of(chosen: Chosen) -> str:
    """The id that results are kept under: those of a saved corpus are deleted with it."""
    return corpus_view(chosen.corpus) if chosen.corpus else kept_under(KEY)


def show_evaluation(chosen: Chosen, *, again: bool) -> None:
    """Measure, and show what is there.

    Args:
        chosen: what is measured.
        again: have what failed or was stopped done again; what is embedded is found.
    """
    task = Evaluate.for_current_models(chosen.plan, corpus=chosen.corpus)
    last: Run[EvaluationState] | None = RUNS.find(task)
    failed = last is not None and (last.status != "done" or last.result.any_failed)
    run = RUNS.start(task, again=again and failed, view=_view_of(chosen))
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


def _show(filling: EvaluationState, live: bool) -> None:
    show_results(filling.results, live=live)


def show_results(
    results: Results, *, live: bool = False, others: Mapping[str, Results] = NOTHING_ELSE
) -> None:
    """What was found, its figures, the numbers, the worst cases, and other ways to look at them.

    Args:
        results: of one data set.
        live: whether they are still being made; there are no figures then.
        others: what is known of the same texts when they are asked for something else.
    """
    if not results.cells:
        return
    if not live:
        st.session_state[SEEN] = results
    about = about_results(results)
    with slide("evaluation-verdict"):
        by = _verdict(results, about, others, live=live)
        is_proved = not live and by is not None and _proof(results, by, about)
        if not is_proved:
            _numbers(results)
    if is_proved:  # on the stage, the figures say it
        _numbers(results)
    if not live and results.finished(0):
        _downloads(results, about)
    if live:
        st.caption("Figures appear when all methods are finished.")
        return
    if by is None:
        return
    show_worst(results, by, about)
    views = views_of(results)
    if views:
        st.subheader("More ways to look at it", anchor=False)
        view = choose_one(
            st.segmented_control,
            "View",
            views,
            default=views[0],
            key=f"view-{results.data[0].kind}",  # what is looked at first depends on the kind
            label_visibility="collapsed",
        )
        draw_view(view if view in views else views[0], results, by, about)


def about_results(results: Results) -> About:
    """How figures of results say what they are made of, where the page is not around them."""
    data = results.data[0]
    return About(
        f"Evaluation: {data.name}",
        {
            "data": data.describe(),
            "methods": ", ".join(row.label for row in results.rows),
            "model": results.models(),
            "measured": f"{results.begun[:10]}, neuralviz {results.version}",
        },
    )


def _verdict(
    results: Results, about: About, others: Mapping[str, Results], *, live: bool
) -> Yardstick | None:
    """The point by the measure that is chosen, if there is one, which is returned."""
    top = st.container()
    yardsticks = {by.short: by for by in yardsticks_of(results, 0)}
    by = next(iter(yardsticks.values()), None)
    if len(yardsticks) > 1 and not live:
        chosen = choose_one(
            st.segmented_control, "Measure", list(yardsticks), default=next(iter(yardsticks)),
            key=f"measure-{results.data[0].kind}", label_visibility="collapsed",
        )  # fmt: skip
        by = yardsticks.get(chosen, by)
    with top:
        said = [
            verdict(results, 0, by, name=method_name, quote=plain),
            describe_other_winner(results, others, name=method_name),
        ]
        show_point(" ".join(filter(None, said)), key="evaluation")
    return by


def _proof(results: Results, by: Yardstick, about: About) -> bool:
    """What each method reaches, and how far the best is ahead; whether there is a figure of it."""
    found = yardstick_figure(results, 0, by)
    lead = lead_of_best(results, 0, by)
    if found is None:
        return False
    height = rows_height(max(found[1], lead[1] if lead else 0))
    left, right = st.columns([1, 1], gap="large") if lead else (st.container(), None)
    with left:
        show_figure(
            found[0], key=f"evaluation-{by.name}", numbers=lambda: yardstick_numbers(results, by),
            name=f"{about.title} {by.title}", height=height, about=about,
        )  # fmt: skip
    if lead and right is not None:
        with right:
            show_figure(
                lead[0], key=f"evaluation-lead-{by.name}",
                numbers=lambda: lead_numbers(results, by),
                name=f"{about.title} lead in {by.title}", height=height, about=about,
            )  # fmt: skip
    return True


def _numbers(results: Results) -> None:
    """The table: what is best stands out, heads say which way is good, words are explained."""
    table = results.table(0)
    details = DETAILS + ALSO_DETAILS * (results.data[0].kind == "pairs")
    is_detailed = any(head.endswith(details) for head in table.heads)
    in_full = is_detailed and st.session_state.get("all-numbers", False)
    shown = [at for at, head in enumerate(table.heads) if in_full or not head.endswith(details)]
    st.html(f"<style>{TABLE_STYLE}</style>{table_html(_titled(table), shown)}")
    if is_detailed:
        st.toggle("Show all columns", key="all-numbers")
    for sentence in results.sentences(0):
        st.warning(plain(sentence))
    theirs = results.published_table(0)
    if theirs.lines:
        st.caption("Published results on the same data, with the model used in the paper:")
        st.html(table_html(theirs))
    found = [one for _, _, one in results.finished(0)]
    notes = explain_measures(results, 0, in_full=in_full)
    if any(one.intervals or one.neighbours or one.probe for one in found):
        notes.append(INTERVALS)
    if any(one.pairs or one.triplets for one in found):
        notes.append(
            "Cosine similarities that differ by less than 1e-7 are ties, which are broken."
        )
    notes.append(f"Models: {plain(results.models())}.")
    st.caption(" ".join(notes))


def _titled(table: Table) -> Table:
    return table._replace(heads=["method", *table.heads[1:]])


def _downloads(results: Results, about: About) -> None:
    methods = "-".join(short_labels([row.label for row in results.rows]))
    name = file_name(f"{about.title}-{methods}"[:LONGEST_NAME])
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
