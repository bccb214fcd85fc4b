"""The views of a table that is full: each is one way to look at where methods go wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.asides import (
    describe_followed_quality,
    describe_halves,
    describe_separation,
    describe_shared_errors,
)
from neuralviz.evaluation.claims import spoken_by
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.leads import compute_leads
from neuralviz.evaluation.yardsticks import best_first
from neuralviz.plots.pairs import scatter_figure
from neuralviz.plots.results import (
    common_figures,
    confusion_figures,
    histograms,
    quality_figures,
)
from neuralviz.plots.theme import escape
from neuralviz.ui.evaluation.pick import pick_method
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.page import plain
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import slide
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import plotly.graph_objects as go

    from neuralviz.evaluation.measured import Measured
    from neuralviz.evaluation.paraphrases import QualityMap
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick
    from neuralviz.plots.standalone import About

MANY = 6  # methods: more are looked at one by one


def views_of(results: Results) -> list[str]:
    """Names of the views that have something to show."""
    measured = [results.measured(0, at) for at in range(len(results.rows))]
    found = [one for one in measured if one is not None]
    has = {
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(found),
        "Similar and dissimilar": any(len(one.same) and len(one.diff) for one in found),
        "Confused labels": any(
            one.confusion_of(measure) for one in found for measure in ("neighbours", "probe")
        ),
        "Shared errors": any(True for _ in common_figures(results, 0)),
        "Controlled paraphrases": any(one.paraphrases for one in found),
    }
    return [view for view in _DRAW if has[view]]


def draw_view(view: str, results: Results, by: Yardstick, about: About) -> None:
    """Draw one of `views_of` with its slide; ``by`` says which method is the best."""
    _DRAW[view](results, by, about)


def _on_a_slide(draw: Callable[..., None]) -> Callable[..., None]:
    """A view that fits on a slide as it is."""

    def drawn(results: Results, by: Yardstick, about: About) -> None:
        with slide("evaluation-view"):
            draw(results, by, about)

    return drawn


def yardstick_numbers(results: Results, by: Yardstick) -> pd.DataFrame:
    """A yardstick of every method with its interval, and the counts behind it."""
    measured = [(label, one) for _, label, one in results.finished(0) if np.isfinite(by.read(one))]
    nowhere = (np.nan, np.nan)
    bounds = [by.interval(one) or nowhere for _, one in measured]
    return pd.DataFrame(
        {
            "method": [label for label, _ in measured],
            by.title: [by.read(one) for _, one in measured],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
            **_counted([one for _, one in measured], by),
        }
    )


def _counted(measured: Sequence[Measured], by: Yardstick) -> dict[str, list[Any]]:
    """Columns of what was counted."""
    counts = ("wrong", "wrong_strict", "total", "same", "diff")
    columns = {
        "neighbours": ("k", "n", "baseline"),
        "probe": ("n", "n_labels", "folds", "baseline", "tfidf"),
        "pairs": counts,
        "triplets": counts,
    }
    names: tuple[str, ...] = columns.get(by.measure, ())
    return {name: [getattr(getattr(one, by.measure), name) for one in measured] for name in names}


def lead_numbers(results: Results, by: Yardstick) -> pd.DataFrame:
    """How far each method is ahead of each that is not better, with intervals."""
    found = compute_leads(results, 0, by)
    nowhere = (np.nan, np.nan)
    return pd.DataFrame(
        {
            "A": [lead.first for lead in found],
            "B": [lead.second for lead in found],
            f"lead of A in {by.title}": [lead.value for lead in found],
            "low": [(lead.interval or nowhere)[0] for lead in found],
            "high": [(lead.interval or nowhere)[1] for lead in found],
            "decided": [lead.is_decided for lead in found],
        }
    )


def method_name(label: str) -> str:
    """The label of a method in a sentence."""
    return f"**{plain(label)}**"


@_on_a_slide
def _pair_by_pair(results: Results, by: Yardstick, about: About) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    top = st.container()
    label, one = pick_method(results, by, "evaluation-pairs-of")
    with top:
        said = describe_halves(data, one, spoken_by(results, method_name)(label))
        show_point(said, key="evaluation-pairs")
    sentences = [
        (data.texts[a], data.texts[b]) for a, b in zip(data.first, data.second, strict=True)
    ]
    spearman = one.correlations.spearman if one.correlations else np.nan
    correlation = "correlation undefined"
    if np.isfinite(spearman):
        correlation = f"Spearman {number(spearman, '.3f')}"
    table = pd.DataFrame(
        {
            "text1": [first for first, _ in sentences],
            "text2": [second for _, second in sentences],
            "score": data.scores,
            "product": one.products,
        }
    )
    show_figure(
        scatter_figure(
            one.products,
            data.scores,
            sentences,
            None,
            f"{escape(label)}: {correlation}",
        ),
        key="evaluation-scatter",
        alt=f"Human score and cosine similarity by {label}",
        numbers=table,
        name="pairs",
        about=about,
        height=520,
    )


@_on_a_slide
def _similar_and_dissimilar(results: Results, by: Yardstick, about: About) -> None:
    show_point(describe_separation(results, 0, by, name=method_name), key="evaluation-separated")
    drawn = list(histograms(results, 0))
    if len(drawn) > MANY:
        of = {results.rows[at].label: (at, figure) for at, figure in drawn}
        label, _ = pick_method(results, by, "evaluation-histograms-of", among=of)
        drawn = [of[label]]
    beside = 3 if len(drawn) == 3 else 2  # no empty corner
    places = (place for _ in drawn for place in st.columns(beside))
    for at, figure in drawn:
        with next(places) if len(drawn) > 1 else st.container():
            show_figure(
                figure,
                key=f"evaluation-histogram-{at}",
                numbers=partial(_products, results, at),
                name="products",
                about=about,
                height=360,
            )
    st.caption(
        "The less the two distributions overlap, the better the method separates similar "
        "from dissimilar texts. At most 20,000 pairs of each kind are shown."
    )


def _products(results: Results, row: int) -> pd.DataFrame:
    one = results.measured(0, row)
    same, diff = (np.zeros(0), np.zeros(0)) if one is None else (one.same, one.diff)
    kinds = ["similar"] * len(same) + ["dissimilar"] * len(diff)
    return pd.DataFrame({"kind": kinds, "product": np.concatenate([same, diff])})


@_on_a_slide
def _shared_errors(results: Results, by: Yardstick, about: About) -> None:
    show_point(describe_shared_errors(results, 0, name=method_name), key="evaluation-shared")
    compared = results.compared[0]
    labels = [results.rows[at].label for at in compared.rows]
    for name, figure, n_rows in common_figures(results, 0):
        frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
        frame.insert(0, "method", labels)
        with swiped(f"evaluation-overlap-{name}-wide", 320 + 60 * n_rows):
            show_figure(
                figure,
                key=f"evaluation-overlap-{name}",
                numbers=frame,
                name=f"{name}-shared-errors",
                about=about,
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


@_on_a_slide
def _confused_labels(results: Results, by: Yardstick, about: About) -> None:
    drawn = list(confusion_figures(results, 0))
    label, _ = pick_method(
        results,
        by,
        "evaluation-confused-by",
        among={results.rows[at].label for at, *_ in drawn},
    )
    for at, measure, confusion, figure in drawn:
        if results.rows[at].label != label:
            continue
        frame = pd.DataFrame(confusion.counts, columns=list(confusion.labels))
        frame.insert(0, "own label", list(confusion.labels), allow_duplicates=True)
        show_figure(
            figure,
            key=f"evaluation-confused-{measure}",
            numbers=frame,
            name=f"{measure}-confused-labels",
            about=about,
            height=240 + 36 * len(confusion.labels),
        )
    st.caption(
        "Each row shows which labels the texts of one label get, as shares of these texts. "
        "Macro-F1 and balanced accuracy, in the table, count every label alike, however rare."
    )


def _paraphrases(results: Results, by: Yardstick, about: About) -> None:
    best, *_ = best_first(results, 0, by)
    drawn = list(quality_figures(results, 0))
    drawn.sort(key=lambda one: (one[1] != "tau-c", results.rows[one[0]].label != best[0]))
    with slide("evaluation-view"):
        said = describe_followed_quality(results, 0, by, method_name, plain)
        show_point(said, key="evaluation-paraphrases")
        _draw_map(results, *drawn[0], about)
    for one in drawn[1:]:  # there is no room for them on the stage
        _draw_map(results, *one, about)
    st.caption("One quality of similarity varies; the other two are fixed at the values shown.")


def _draw_map(results: Results, at: int, kind: str, figure: go.Figure, about: About) -> None:
    """A method's map, of the kind ``tau-c`` or ``ratio``."""
    measured = results.measured(0, at)
    maps = () if measured is None else measured.paraphrases
    with swiped(f"evaluation-{kind}-{at}-wide", 320 * len(maps)):
        show_figure(
            figure,
            key=f"evaluation-{kind}-{at}",
            numbers=partial(_maps, maps) if kind == "tau-c" else None,
            name=f"paraphrases-{kind}",
            about=about,
            height=420,
        )


def _maps(maps: Sequence[QualityMap]) -> pd.DataFrame:
    return pd.DataFrame(
        {"quality": m.quality, "fixed1": a, "fixed2": b, "tau-c": m.kendall_c[i, j], "n": m.n[i, j]}
        for m in maps
        for i, a in enumerate(m.fixed1)
        for j, b in enumerate(m.fixed2)
    )


_DRAW = {
    "Pair by pair": _pair_by_pair,
    "Similar and dissimilar": _similar_and_dissimilar,
    "Confused labels": _confused_labels,
    "Shared errors": _shared_errors,
    "Controlled paraphrases": _paraphrases,
}
