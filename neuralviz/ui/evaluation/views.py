"""The views of a table that is full: each is one way to look at where methods go wrong."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.in_words import NAMES
from neuralviz.evaluation.measures import WORST
from neuralviz.plots.evaluation import rows_height
from neuralviz.plots.pairs import scatter_figure
from neuralviz.plots.results import (
    broken_figure,
    common_figures,
    correlation_figure,
    histograms,
    neighbours_figure,
    quality_figures,
)
from neuralviz.plots.theme import escape, shorten
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from neuralviz.evaluation.paraphrases import QualityMap
    from neuralviz.evaluation.results import Results

ROW_HEIGHT = 84  # px, for four lines: words are broken into lines above 64
SHORT = 25  # characters: a column of texts that are no longer is as wide as they are
PAIR_HEADS = {
    "text1": "text 1",
    "text2": "text 2",
    "score": "human score",
    "product": "cosine similarity",
}
MANY = 6  # methods: more are looked at one by one


def views_of(results: Results) -> list[str]:
    """Names of the views that have something to show."""
    measured = [results.measured(0, at) for at in range(len(results.rows))]
    found = [one for one in measured if one is not None]
    has = {
        "Correlations": any(one.correlations is not None for one in found),
        "Errors": any(one.pairs or one.triplets for one in found),
        "k-NN accuracy": any(one.neighbours for one in found),
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(found),
        "Similar and dissimilar": any(len(one.same) and len(one.diff) for one in found),
        "Shared errors": any(True for _ in common_figures(results, 0)),
        "Controlled paraphrases": any(one.paraphrases for one in found),
    }
    return [view for view in _DRAW if has[view]]


def draw_view(view: str, results: Results) -> None:
    """Draw one of `views_of`."""
    _DRAW[view](results)


def _correlations(results: Results) -> None:
    names = {NAMES[name]: name for name in COEFFICIENTS}
    chosen = choose_one(
        st.segmented_control, "Coefficient", list(names), default="Spearman", key="coefficient"
    )
    name = names[chosen]
    found = correlation_figure(results, 0, name)
    if found is None:
        return
    figure, n_rows = found
    show_figure(
        figure,
        key="evaluation-correlations",
        numbers=lambda: _intervals(results, name),
        name="correlations",
        height=rows_height(n_rows),
    )


def _intervals(results: Results, name: str) -> pd.DataFrame:
    measured = [(label, one) for _, label, one in results.finished(0) if one.correlations]
    nowhere = (np.nan, np.nan)
    bounds = [getattr(one.intervals, name) if one.intervals else nowhere for _, one in measured]
    return pd.DataFrame(
        {
            "method": [label for label, _ in measured],
            NAMES[name]: [getattr(one.correlations, name) for _, one in measured],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
        }
    )


def _errors(results: Results) -> None:
    for name in ("pairs", "triplets"):
        found = broken_figure(results, 0, name)
        if found is None:
            continue
        figure, n_rows = found
        show_figure(
            figure,
            key=f"evaluation-{name}",
            numbers=partial(_counts, results, name),
            name=f"{name}-broken",
            height=rows_height(n_rows),
        )
    _worst_triplets(results)


def _worst_triplets(results: Results) -> None:
    broken = [(label, one.worst_triplets) for _, label, one in results.finished(0)]
    of = {label: worst for label, worst in broken if worst}
    if not of:
        return
    st.markdown("**Worst broken triplets, one per anchor**")
    worst = of[_pick(of, "evaluation-triplets-of")]
    texts = results.data[0].texts
    _in_words(
        {
            "anchor": [texts[at] for at in worst.anchor],
            "positive": [texts[at] for at in worst.positive],
            "cosine (positive)": worst.alike,
            "negative": [texts[at] for at in worst.negative],
            "cosine (negative)": worst.unlike,
        },
        "evaluation-worst-triplets",
    )


def _neighbours(results: Results) -> None:
    found = neighbours_figure(results, 0)
    if found is None:
        return
    figure, n_rows = found
    show_figure(
        figure,
        key="evaluation-neighbours",
        numbers=partial(_accuracies, results),
        name="knn-accuracy",
        height=rows_height(n_rows) + 40,
    )
    of = {label: one.outvoted for _, label, one in results.finished(0) if one.outvoted}
    if not of:
        return
    st.markdown("**Texts whose neighbours vote for a different label**")
    outvoted = of[_pick(of, "evaluation-outvoted-of")]
    texts = results.data[0].texts
    _in_words(
        {
            "text": [texts[one.text] for one in outvoted],
            "label": [one.label for one in outvoted],
            "predicted label": [one.voted for one in outvoted],
            "votes for the true label": [f"{one.agree:.0%}" for one in outvoted],
        },
        "evaluation-outvoted",
    )


def _accuracies(results: Results) -> pd.DataFrame:
    counted = [(label, one.neighbours) for _, label, one in results.finished(0)]
    return pd.DataFrame(
        {
            "method": label,
            "accuracy": one.accuracy,
            "low": one.interval[0],
            "high": one.interval[1],
            "k": one.k,
            "n": one.n,
            "baseline": one.baseline,
        }
        for label, one in counted
        if one is not None
    )


def _counts(results: Results, name: str) -> pd.DataFrame:
    counted = [(label, getattr(one, name)) for _, label, one in results.finished(0)]
    return pd.DataFrame(
        {"method": label, **asdict(one)} for label, one in counted if one is not None
    )


def _pick(of: Iterable[str], key: str) -> str:
    labels = list(of)
    return st.selectbox("Method", labels, key=key) or labels[0]


def _in_words(
    columns: pd.DataFrame | Mapping[str, Any], key: str, digits: Mapping[str, str] | None = None
) -> None:
    """A table of texts, each cut at 300 characters, and of numbers, ``digits`` or three each."""
    frame = pd.DataFrame(columns).copy()
    config: dict[str, Any] = {}
    for name in frame.columns:
        if is_numeric_dtype(frame[name]):
            shown = (digits or {}).get(name, "%.3f")
            config[name] = st.column_config.NumberColumn(format=shown, width="small")
            continue
        frame[name] = [shorten(text, 300) for text in frame[name]]
        if frame[name].str.len().max() > SHORT:
            config[name] = st.column_config.TextColumn(width="medium")
    st.dataframe(frame, hide_index=True, key=key, column_config=config, row_height=ROW_HEIGHT)


def _pair_by_pair(results: Results) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    of = {label: one for _, label, one in results.finished(0)}
    label = _pick(of, "evaluation-pairs-of")
    one = of[label]
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
        height=520,
    )
    ranks = table[["score", "product"]].rank(pct=True)
    apart = (ranks["product"] - ranks["score"]).abs()
    worst = table.loc[apart.sort_values(ascending=False).index[:WORST]]
    st.markdown("**Pairs with the largest disagreement between human score and cosine similarity**")
    _in_words(worst.rename(columns=PAIR_HEADS), "evaluation-worst", {"human score": "%.3g"})


def _similar_and_dissimilar(results: Results) -> None:
    places = (place for _ in results.rows for place in st.columns(2))
    drawn = list(histograms(results, 0))
    if len(drawn) > MANY:
        of = {results.rows[at].label: (at, figure) for at, figure in drawn}
        drawn = [of[_pick(of, "evaluation-histograms-of")]]
    for at, figure in drawn:
        with next(places) if len(drawn) > 1 else st.container():
            show_figure(
                figure,
                key=f"evaluation-histogram-{at}",
                numbers=partial(_products, results, at),
                name="products",
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


def _shared_errors(results: Results) -> None:
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


def _paraphrases(results: Results) -> None:
    for at, kind, figure in quality_figures(results, 0):
        one = results.measured(0, at)
        maps = () if one is None else one.paraphrases
        with swiped(f"evaluation-{kind}-{at}-wide", 320 * len(maps)):
            show_figure(
                figure,
                key=f"evaluation-{kind}-{at}",
                numbers=partial(_maps, maps) if kind == "tau-c" else None,
                name=f"paraphrases-{kind}",
                height=420,
            )
    st.caption("One quality of similarity varies; the other two are fixed at the values shown.")


def _maps(maps: Sequence[QualityMap]) -> pd.DataFrame:
    return pd.DataFrame(
        {"quality": m.quality, "fixed1": a, "fixed2": b, "tau-c": m.kendall_c[i, j], "n": m.n[i, j]}
        for m in maps
        for i, a in enumerate(m.fixed1)
        for j, b in enumerate(m.fixed2)
    )


_DRAW = {
    "Correlations": _correlations,
    "Errors": _errors,
    "k-NN accuracy": _neighbours,
    "Pair by pair": _pair_by_pair,
    "Similar and dissimilar": _similar_and_dissimilar,
    "Shared errors": _shared_errors,
    "Controlled paraphrases": _paraphrases,
}
