"""Views of finished results: each shows in one way where methods go wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.yardsticks import best_first, compute_leads
from neuralviz.headlines.evaluation import (
    describe_followed_quality,
    describe_pairs,
    describe_separation,
    describe_shared_errors,
    short_name,
)
from neuralviz.plots.pairs import scatter_figure
from neuralviz.plots.results import (
    common_figures,
    confusion_figures,
    histograms,
    quality_figures,
)
from neuralviz.plots.theme import escape
from neuralviz.ui.evaluation.pick import pick_method
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain
from neuralviz.ui.stage import slide
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import plotly.graph_objects as go

    from neuralviz.evaluation.events import Measured
    from neuralviz.evaluation.paraphrases import QualityMap
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick
    from neuralviz.plots.standalone import About

MAX_DRAWN_METHODS = 6  # with more, the user picks one


def available_views(results: Results) -> list[str]:
    """Names of the views that have something to show."""
    measurements = [results.measured(0, row) for row in range(len(results.rows))]
    finished = [measurement for measurement in measurements if measurement is not None]
    has_view = {
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(finished),
        "Similar and dissimilar": any(
            len(measurement.same) and len(measurement.diff) for measurement in finished
        ),
        "Confused labels": any(
            measurement.confusion_of(measure)
            for measurement in finished
            for measure in ("neighbours", "probe")
        ),
        "Shared errors": any(True for _ in common_figures(results, 0)),
        "Controlled paraphrases": any(measurement.paraphrases for measurement in finished),
    }
    return [view for view in _DRAW if has_view[view]]


def draw_view(view: str, results: Results, yardstick: Yardstick, provenance: About) -> None:
    """Draw one of `available_views` with its slide; ``yardstick`` says which method is the best."""
    _DRAW[view](results, yardstick, provenance)


def _draw_on_slide(draw: Callable[..., None]) -> Callable[..., None]:
    """Draw a view within a slide."""

    def drawn(results: Results, yardstick: Yardstick, provenance: About) -> None:
        with slide("evaluation-view"):
            draw(results, yardstick, provenance)

    return drawn


def yardstick_numbers(results: Results, yardstick: Yardstick) -> pd.DataFrame:
    """A yardstick of every method with its interval, and the counts behind it."""
    measured = [
        (label, measurement)
        for _, label, measurement in results.finished(0)
        if np.isfinite(yardstick.read(measurement))
    ]
    nowhere = (np.nan, np.nan)
    bounds = [yardstick.interval(measurement) or nowhere for _, measurement in measured]
    return pd.DataFrame(
        {
            "method": [label for label, _ in measured],
            yardstick.title: [yardstick.read(measurement) for _, measurement in measured],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
            **_count_columns([measurement for _, measurement in measured], yardstick),
        }
    )


def _count_columns(measured: Sequence[Measured], yardstick: Yardstick) -> dict[str, list[Any]]:
    """The counts behind a yardstick, a column each."""
    counts = ("wrong", "wrong_strict", "total", "same", "diff")
    columns = {
        "neighbours": ("k", "n", "baseline"),
        "probe": ("n", "n_labels", "folds", "baseline", "tfidf"),
        "pairs": counts,
        "triplets": counts,
    }
    names: tuple[str, ...] = columns.get(yardstick.measure, ())
    return {
        name: [getattr(getattr(measurement, yardstick.measure), name) for measurement in measured]
        for name in names
    }


def lead_numbers(results: Results, yardstick: Yardstick) -> pd.DataFrame:
    """How far each method is ahead of each that is not better, with intervals."""
    all_leads = compute_leads(results, 0, yardstick)
    nowhere = (np.nan, np.nan)
    return pd.DataFrame(
        {
            "A": [lead.first for lead in all_leads],
            "B": [lead.second for lead in all_leads],
            f"lead of A in {yardstick.title}": [lead.value for lead in all_leads],
            "low": [(lead.interval or nowhere)[0] for lead in all_leads],
            "high": [(lead.interval or nowhere)[1] for lead in all_leads],
            "decided": [lead.is_decided for lead in all_leads],
        }
    )


def method_name(label: str) -> str:
    """The label of a method in a sentence."""
    return f"**{plain(label)}**"


@_draw_on_slide
def _draw_pair_by_pair(results: Results, yardstick: Yardstick, provenance: About) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    top = st.container()
    label, measurement = pick_method(results, yardstick, "evaluation-pairs-of")
    with top:
        sentence = describe_pairs(data, measurement, short_name(results, method_name)(label))
        show_headline(sentence, key="evaluation-pairs")
    sentences = [
        (data.texts[a], data.texts[b]) for a, b in zip(data.first, data.second, strict=True)
    ]
    spearman = measurement.correlations.spearman if measurement.correlations else np.nan
    correlation = "correlation undefined"
    if np.isfinite(spearman):
        correlation = f"Spearman {number(spearman, '.3f')}"
    table = pd.DataFrame(
        {
            "text1": [first for first, _ in sentences],
            "text2": [second for _, second in sentences],
            "score": data.scores,
            "product": measurement.products,
        }
    )
    show_figure(
        scatter_figure(
            measurement.products,
            data.scores,
            sentences,
            None,
            f"{escape(label)}: {correlation}",
        ),
        key="evaluation-scatter",
        alt=f"Human score and cosine similarity by {label}",
        numbers=table,
        name="pairs",
        provenance=provenance,
        height=520,
    )


@_draw_on_slide
def _draw_histograms(results: Results, yardstick: Yardstick, provenance: About) -> None:
    show_headline(
        describe_separation(results, 0, yardstick, name=method_name), key="evaluation-separated"
    )
    drawn = list(histograms(results, 0))
    if len(drawn) > MAX_DRAWN_METHODS:
        figures_by_label = {results.rows[row].label: (row, figure) for row, figure in drawn}
        label, _ = pick_method(
            results, yardstick, "evaluation-histograms-of", among=figures_by_label
        )
        drawn = [figures_by_label[label]]
    n_columns = 3 if len(drawn) == 3 else 2  # no empty corner
    places = (place for _ in drawn for place in st.columns(n_columns))
    for row, figure in drawn:
        with next(places) if len(drawn) > 1 else st.container():
            show_figure(
                figure,
                key=f"evaluation-histogram-{row}",
                numbers=partial(_tabulate_products, results, row),
                name="products",
                provenance=provenance,
                height=360,
            )
    st.caption(
        "The less the two distributions overlap, the better the method separates similar "
        "from dissimilar texts. At most 20,000 pairs of each kind are shown."
    )


def _tabulate_products(results: Results, row: int) -> pd.DataFrame:
    measurement = results.measured(0, row)
    similar, dissimilar = (
        (np.zeros(0), np.zeros(0)) if measurement is None else (measurement.same, measurement.diff)
    )
    kinds = ["similar"] * len(similar) + ["dissimilar"] * len(dissimilar)
    return pd.DataFrame({"kind": kinds, "product": np.concatenate([similar, dissimilar])})


@_draw_on_slide
def _draw_shared_errors(results: Results, yardstick: Yardstick, provenance: About) -> None:
    show_headline(describe_shared_errors(results, 0, name=method_name), key="evaluation-shared")
    compared = results.compared[0]
    labels = [results.rows[row].label for row in compared.rows]
    for name, figure, n_rows in common_figures(results, 0):
        frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
        frame.insert(0, "method", labels)
        with allow_swiping(f"evaluation-overlap-{name}-wide", 320 + 60 * n_rows):
            show_figure(
                figure,
                key=f"evaluation-overlap-{name}",
                numbers=frame,
                name=f"{name}-shared-errors",
                provenance=provenance,
                height=220 + 64 * n_rows,
            )
    st.caption(
        "The number of triplets or comparisons that both methods break, divided by the number "
        "that the better of the two breaks (Eq. 3). Low values mean that the methods make "
        "different errors, so combining them may help. A cell is empty if one of the two makes "
        "no errors."
    )
    if left_out := results.left_out(0):
        st.caption(left_out)


@_draw_on_slide
def _draw_confusions(results: Results, yardstick: Yardstick, provenance: About) -> None:
    drawn = list(confusion_figures(results, 0))
    label, _ = pick_method(
        results,
        yardstick,
        "evaluation-confused-by",
        among={results.rows[row].label for row, *_ in drawn},
    )
    for row, measure, confusion, figure in drawn:
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
            height=240 + 36 * len(confusion.labels),
        )
    st.caption(
        "Each row shows which labels the texts of one label get, as shares of these texts. "
        "Macro-F1 and balanced accuracy, in the table, count every label alike, however rare."
    )


def _draw_paraphrases(results: Results, yardstick: Yardstick, provenance: About) -> None:
    best, *_ = best_first(results, 0, yardstick)
    drawn = list(quality_figures(results, 0))
    drawn.sort(
        key=lambda drawing: (drawing[1] != "tau-c", results.rows[drawing[0]].label != best[0])
    )
    with slide("evaluation-view"):
        sentence = describe_followed_quality(results, 0, yardstick, method_name, plain)
        show_headline(sentence, key="evaluation-paraphrases")
        _draw_map(results, *drawn[0], provenance)
    for drawing in drawn[1:]:  # they do not fit on the stage
        _draw_map(results, *drawing, provenance)
    st.caption("One quality of similarity varies; the other two are fixed at the values shown.")


def _draw_map(results: Results, row: int, kind: str, figure: go.Figure, provenance: About) -> None:
    """A method's map, of the kind ``tau-c`` or ``ratio``."""
    measured = results.measured(0, row)
    maps = () if measured is None else measured.paraphrases
    with allow_swiping(f"evaluation-{kind}-{row}-wide", 320 * len(maps)):
        show_figure(
            figure,
            key=f"evaluation-{kind}-{row}",
            numbers=partial(_tabulate_maps, maps) if kind == "tau-c" else None,
            name=f"paraphrases-{kind}",
            provenance=provenance,
            height=420,
        )


def _tabulate_maps(maps: Sequence[QualityMap]) -> pd.DataFrame:
    return pd.DataFrame(
        {"quality": m.quality, "fixed1": a, "fixed2": b, "tau-c": m.kendall_c[i, j], "n": m.n[i, j]}
        for m in maps
        for i, a in enumerate(m.fixed1)
        for j, b in enumerate(m.fixed2)
    )


_DRAW = {
    "Pair by pair": _draw_pair_by_pair,
    "Similar and dissimilar": _draw_histograms,
    "Confused labels": _draw_confusions,
    "Shared errors": _draw_shared_errors,
    "Controlled paraphrases": _draw_paraphrases,
}
