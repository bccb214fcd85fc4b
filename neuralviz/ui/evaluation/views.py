"""Views of finished results: where methods go wrong, and what they get most wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.yardsticks import best_first, worst_cases, worst_in_words
from neuralviz.headlines.evaluation import (
    describe_followed_quality,
    describe_pairs,
    describe_separation,
    describe_shared_errors,
    short_name,
)
from neuralviz.plots.evaluation import (
    common_figures,
    confusion_figures,
    histograms,
    quality_figures,
)
from neuralviz.plots.layers import scatter_figure
from neuralviz.plots.theme import escape
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import allow_swiping, download_table, show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.stage import show_headline, slide
from neuralviz.ui.worst_cases import list_worst, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from neuralviz.evaluation.events import Measured, QualityMap
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Cases, Yardstick
    from neuralviz.plots.standalone import About

MAX_DRAWN_METHODS = 6  # with more, the user picks one


def method_name(label: str) -> str:
    """The label of a method in a sentence."""
    return f"**{plain(label)}**"


def _pick_method(
    results: Results,
    yardstick: Yardstick,
    key: str,
    among: Collection[str] | None = None,
    label: str = "Method",
) -> tuple[str, Measured]:
    """Ask for a method; other results or another measure select the best one again.

    Args:
        among: labels to choose from, at least one; by default all.

    Returns:
        The method and its measurements.
    """
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


# --- the worst cases ---------------------------------------------------------------------------


def show_worst(results: Results, yardstick: Yardstick, provenance: About) -> None:
    """Show the worst case of a method as a sentence, and its worst cases as a table."""
    data, name = results.data[0], short_name(results, method_name)
    sentences = {
        label: sentence
        for _, label, measured in results.finished(0)
        if (sentence := worst_in_words(data, measured, name(label), quote))
    }
    if not sentences:
        return
    with slide("evaluation-worst"):
        headline_place = st.container()
        label, measured = _pick_method(
            results, yardstick, "evaluation-worst-of", sentences, "Errors of"
        )
        with headline_place:
            show_headline(sentences[label], key="evaluation-worst")
        kinds = worst_cases(data, measured)
        for cases in kinds[:1]:
            _show_cases(cases, "0", label, provenance)
    for place, cases in enumerate(kinds[1:], 1):  # they do not fit on the stage
        _show_cases(cases, f"{place}", label, provenance)


def _show_cases(cases: Cases, place: str, label: str, provenance: About) -> None:
    """The table of one kind of cases, the worst first, and its download."""
    frame = pd.DataFrame(cases.lines, columns=list(cases.heads))
    st.markdown(f"**{cases.title}**")
    list_worst(frame, f"evaluation-worst-{place}")
    key = f"evaluation-errors-{place}"
    with st.popover("Download", icon=":material/download:", type="tertiary", key=key):
        name = f"{provenance.title} errors of {label}"
        download_table("Errors", frame, name, key=key, provenance=provenance)


# --- views -------------------------------------------------------------------------------------


def show_views(results: Results, yardstick: Yardstick, provenance: About) -> None:
    """Ask for a view that has something to show, and draw it; the yardstick ranks methods."""
    views = _list_views(results)
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
    with slide("evaluation-view"):
        _DRAW[view if view in views else views[0]](results, yardstick, provenance)


def _list_views(results: Results) -> list[str]:
    finished = [measured for _, _, measured in results.finished(0)]
    has_view = {
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(finished),
        "Similar and dissimilar": any(len(m.same) and len(m.diff) for m in finished),
        "Confused labels": any(True for _ in confusion_figures(results, 0)),
        "Shared errors": any(True for _ in common_figures(results, 0)),
        "Controlled paraphrases": any(measured.paraphrases for measured in finished),
    }
    return [view for view, has_content in has_view.items() if has_content]


def _draw_pair_by_pair(results: Results, yardstick: Yardstick, provenance: About) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    headline_place = st.container()
    label, measured = _pick_method(results, yardstick, "evaluation-pairs-of")
    with headline_place:
        sentence = describe_pairs(data, measured, short_name(results, method_name)(label))
        show_headline(sentence, key="evaluation-pairs")
    firsts, seconds = ([data.texts[i] for i in side] for side in (data.first, data.second))
    sentences = list(zip(firsts, seconds, strict=True))
    table = pd.DataFrame(
        {"text1": firsts, "text2": seconds, "score": data.scores, "product": measured.products}
    )
    title = f"Human score and cosine similarity by {escape(label)}"
    show_figure(
        scatter_figure(measured.products, data.scores, sentences, None, title),
        key="evaluation-scatter",
        numbers=table,
        name="pairs",
        provenance=provenance,
        height=520,
    )


def _draw_histograms(results: Results, yardstick: Yardstick, provenance: About) -> None:
    sentence = describe_separation(results, 0, yardstick, name=method_name)
    show_headline(sentence, key="evaluation-separated")
    figures = {results.rows[row].label: (row, figure) for row, figure in histograms(results, 0)}
    if len(figures) > MAX_DRAWN_METHODS:
        label, _ = _pick_method(results, yardstick, "evaluation-histograms-of", figures)
        figures = {label: figures[label]}
    n_columns = 3 if len(figures) == 3 else min(2, len(figures))  # no empty corner
    places = [place for _ in figures for place in st.columns(n_columns)]
    for place, (row, figure) in zip(places, figures.values(), strict=False):
        with place:
            show_figure(
                figure,
                key=f"evaluation-histogram-{row}",
                numbers=partial(_tabulate_products, results, row),
                name="products",
                provenance=provenance,
            )
    st.caption(
        "The less the two distributions overlap, the better the method separates similar "
        "from dissimilar texts. At most 20,000 pairs of each kind are shown."
    )


def _tabulate_products(results: Results, row: int) -> pd.DataFrame:
    measured = results.measured(0, row)
    assert measured is not None
    products = {"similar": measured.same, "dissimilar": measured.diff}
    return pd.concat(pd.DataFrame({"kind": k, "product": v}) for k, v in products.items())


def _draw_shared_errors(results: Results, yardstick: Yardstick, provenance: About) -> None:
    show_headline(describe_shared_errors(results, 0, name=method_name), key="evaluation-shared")
    compared = results.compared[0]
    labels = [results.rows[row].label for row in compared.rows]
    for name, figure in common_figures(results, 0):
        frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
        frame.insert(0, "method", labels)
        with allow_swiping(f"evaluation-overlap-{name}-wide", 320 + 60 * len(labels)):
            show_figure(
                figure,
                key=f"evaluation-overlap-{name}",
                numbers=frame,
                name=f"{name}-shared-errors",
                provenance=provenance,
            )
    st.caption(
        "The number of triplets or comparisons that both methods break, divided by the number "
        "that the better of the two breaks (Eq. 3). Low values mean that the methods make "
        "different errors, so combining them may help. A cell is empty if one of the two makes "
        f"no errors. {results.left_out(0)}"
    )


def _draw_confusions(results: Results, yardstick: Yardstick, provenance: About) -> None:
    drawings = list(confusion_figures(results, 0))
    labels = {results.rows[row].label for row, *_ in drawings}
    label, _ = _pick_method(results, yardstick, "evaluation-confused-by", labels)
    for row, measure, confusion, figure in drawings:
        if results.rows[row].label != label:
            continue
        frame = pd.DataFrame(confusion.counts, columns=list(confusion.labels))
        frame.insert(0, "own label", list(confusion.labels), allow_duplicates=True)
        show_figure(
            figure,
            key=f"evaluation-confused-{measure}",
            numbers=frame,
            name=f"{measure}-confused-labels",
            provenance=provenance,
        )
    st.caption(
        "Each row shows which labels the texts of one label get, as shares of these texts. "
        "Macro-F1 and balanced accuracy, in the table, count every label alike, however rare."
    )


def _draw_paraphrases(results: Results, yardstick: Yardstick, provenance: About) -> None:
    sentence = describe_followed_quality(results, 0, yardstick, method_name, plain)
    show_headline(sentence, key="evaluation-paraphrases")
    drawings = list(quality_figures(results, 0))
    labels = {results.rows[row].label for row, *_ in drawings}
    label, measured = _pick_method(results, yardstick, "evaluation-paraphrases-by", labels)
    for row, kind, figure in drawings:
        if results.rows[row].label != label:
            continue
        with allow_swiping(f"evaluation-{kind}-wide", 320 * len(measured.paraphrases)):
            show_figure(
                figure,
                key=f"evaluation-{kind}",
                numbers=partial(_tabulate_maps, measured.paraphrases) if kind == "tau-c" else None,
                name=f"paraphrases-{kind}",
                provenance=provenance,
            )
    st.caption("One quality of similarity varies; the other two are fixed at the values shown.")


def _tabulate_maps(maps: Sequence[QualityMap]) -> pd.DataFrame:
    columns = ["quality", "fixed1", "fixed2", "tau-c", "n"]
    rows = [
        (quality.quality, first, second, quality.kendall_c[i, j], quality.n[i, j])
        for quality in maps
        for i, first in enumerate(quality.fixed1)
        for j, second in enumerate(quality.fixed2)
    ]
    return pd.DataFrame(rows, columns=columns)


_DRAW = {
    "Pair by pair": _draw_pair_by_pair,
    "Similar and dissimilar": _draw_histograms,
    "Confused labels": _draw_confusions,
    "Shared errors": _draw_shared_errors,
    "Controlled paraphrases": _draw_paraphrases,
}
