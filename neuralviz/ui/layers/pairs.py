"""The view that measures layers, poolings and the parts of SBERT-WK on scored pairs."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.best_layer import BEST_OF_ALL
from neuralviz.headlines.layers import describe_best_layer, describe_parts, describe_settings_range
from neuralviz.jobs.layers import MeasureLayers
from neuralviz.layers.settings import PARTS, POOLING_NAMES, VARIANT_NAMES, VARIANTS
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.plots.pairs import (
    ablation_figure,
    layer_figure,
    scatter_figure,
    sweep_figure,
)
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.layers import ask_more_figures, followed_model_id
from neuralviz.ui.limits import row_limit
from neuralviz.ui.model_choice import may_load
from neuralviz.ui.page import plain, wide_columns
from neuralviz.ui.run_panel import show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide
from neuralviz.ui.tables import choose_pairs, put_upload_in_address
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.best_layer import BestLayer, MeasuredPooling
    from neuralviz.evaluation.layer_pairs import LayerPairs
    from neuralviz.layers.settings import Variant

KEY = "layers-pairs"
RUNS = SessionRuns(KEY)
EXAMPLE = "scored_pairs.csv"
MAX_PAIRS = 1000
MOST_DISAGREEING = 20
COEFFICIENTS = {"Spearman": "spearman", "Pearson": "pearson", "Kendall tau-b": "kendall_b"}
HALF = 420  # px


def show() -> None:
    """Draw the view."""
    inputs, output = wide_columns([2, 3], KEY)
    with inputs:
        model_id = followed_model_id()
        pairs = _choose_pairs()
        coefficient = _choose_coefficient()
    if pairs is None or not may_load(model_id):
        return
    put_upload_in_address(KEY)
    run = RUNS.start(MeasureLayers(ModelRef.from_id(model_id), pairs))
    with output:
        show_run_panel(RUNS, run, partial(_show_best_layer, coefficient))
    result: LayerPairs | None = run.result if run.is_over else None
    if result is not None and ask_more_figures():
        _show_more(result, coefficient)


def _choose_coefficient() -> str:
    return choose_one(
        st.segmented_control,
        "Correlation",
        list(COEFFICIENTS),
        default="Spearman",
        key="layers-coefficient",
        persist_state="session",
        help=(
            "Spearman and Kendall compare only the order of the pairs. Pearson "
            "measures a linear relation."
        ),
    )


def _choose_pairs() -> ScoredPairs | None:
    """The example's pairs, or those of a table; None without any, which the page explains."""
    chosen = choose_pairs(KEY, _example)
    if chosen is None:
        return None
    name, pairs, is_example = chosen
    for note in pairs.notes:
        st.caption(plain(note))
    limit = row_limit(MAX_PAIRS, texts_in_row=2)
    if len(pairs) > limit:
        st.caption(plain(f"Using the first {limit:,} of {len(pairs):,} pairs from {name}."))
    elif not is_example:
        st.caption(plain(f"{many(len(pairs), 'pair')} from {name}."))
    else:
        st.caption(
            f"{many(len(pairs), 'pair')} written for neuralviz and scored from 0 to 5. Many are "
            "deliberately hard: the same words with a different meaning, a negation, a "
            "different number."
        )
    return pairs.first(limit)


@st.cache_data(max_entries=1, show_spinner=False)
def _example() -> tuple[str, ScoredPairs]:
    return EXAMPLE, read_pairs(Source.from_path(sample_data() / EXAMPLE))


def _describe_run(result: LayerPairs) -> About:
    return About(
        f"Layers against human scores on {many(len(result.pairs), 'pair')}",
        {"model": result.model_id},
    )


def _show_best_layer(coefficient: str, result: LayerPairs | None, live: bool) -> None:
    """Draw which layer agrees best with the scores, and how well all layers do."""
    if result is None:
        return
    if np.ptp(result.pairs.scores) == 0:
        st.warning("All pairs have the same human score, so the correlation is undefined.")
    sentence, best = _describe_best_layer(result, coefficient, not live)
    with slide(KEY):
        show_headline(sentence, key=KEY)
        _show_by_layer(result, coefficient, best)


@lru_cache(maxsize=8)  # the page draws it again and again
def _describe_best_layer(
    result: LayerPairs, coefficient: str, is_whole: bool
) -> tuple[str, BestLayer | None]:
    return describe_best_layer(
        result.by_layer, COEFFICIENTS[coefficient], coefficient, is_whole=is_whole
    )


def _show_more(result: LayerPairs, coefficient: str) -> None:
    """Draw the parts of SBERT-WK, its settings, and every pair."""
    st.subheader("SBERT-WK on these pairs", anchor=False)
    variant = choose_one(
        st.segmented_control,
        "SBERT-WK variant",
        VARIANTS,
        default="authors",
        format_func=VARIANT_NAMES.__getitem__,
        key="layers-pairs-variant",
        persist_state="session",
        help=(
            "The authors' program, which produced the paper's tables, differs from the "
            "paper's equations in three places."
        ),
    )
    _show_ablation(result, coefficient, variant)
    windows, starts = (
        [_value(measured, coefficient) for measured in values_by_variant[variant]]
        for values_by_variant in (result.windows, result.layer_starts)
    )
    with slide(f"{KEY}-sweeps"):
        show_headline(describe_settings_range(windows, starts, coefficient), key=f"{KEY}-sweeps")
        window_column, start_column = wide_columns(2, f"{KEY}-sweeps")
        with window_column:
            _show_sweep(result, coefficient, "windows")
        with start_column:
            _show_sweep(result, coefficient, "layer_starts")
    st.caption(
        "How much the result depends on two settings: the *layer window* (the number of "
        "layers on each side that a layer is compared with) and the *first layer* used."
    )
    _show_scatter(result, coefficient)


def _value(measured: MeasuredPooling, coefficient: str) -> float:
    return getattr(measured.correlation, COEFFICIENTS[coefficient])


def _row(measured: MeasuredPooling) -> dict[str, float]:
    correlation = measured.correlation
    return {
        "Spearman": correlation.spearman,
        "Pearson": correlation.pearson,
        "Kendall tau-b": correlation.kendall_b,
        "Kendall tau-c": correlation.kendall_c,
        "pairs": correlation.n,
    }


def _show_by_layer(result: LayerPairs, coefficient: str, best: BestLayer | None) -> None:
    values = {
        pooling: [_value(measured, coefficient) for measured in layers]
        for pooling, layers in result.by_layer.items()
    }
    show_figure(
        layer_figure(values, coefficient, (best.pooling, best.layer) if best else None),
        key=f"{KEY}-layers",
        numbers=lambda: pd.DataFrame(
            {"pooling": pooling, "layer": layer, **_row(measured)}
            for pooling, layers in result.by_layer.items()
            for layer, measured in enumerate(layers)
        ),
        name="correlation-by-layer",
        height=HALF,
        provenance=_describe_run(result),
    )
    note = BEST_OF_ALL
    if "cls" in values and not np.isfinite(values["cls"][0]):
        note += (
            " At layer 0, [CLS] has not seen the sentence yet, so its vector is the "
            "same for all sentences."
        )
    st.caption(note)


def _show_ablation(result: LayerPairs, coefficient: str, variant: Variant) -> None:
    parts = {
        name: _value(measured, coefficient) for name, measured in result.ablation[variant].items()
    }
    whole, plain_mean = (result.ablation[variant][PARTS[part]] for part in ("all", "last"))
    sentence = describe_parts(whole, plain_mean, COEFFICIENTS[coefficient], coefficient)
    with slide(f"{KEY}-ablation"):
        show_headline(sentence, key=f"{KEY}-ablation")
        show_figure(
            ablation_figure(parts, coefficient),
            key=f"{KEY}-ablation",
            numbers=lambda: pd.DataFrame(
                {"variant": VARIANT_NAMES[name], "part": part, **_row(measured)}
                for name, parts in result.ablation.items()
                for part, measured in parts.items()
            ),
            name="ablation",
            height=HALF,
            provenance=_describe_run(result),
        )
    st.caption(
        "SBERT-WK (green) and the mean of the last layer (blue), all without [SEP]. "
        "*Alignment* and *novelty* weight the layers of each token; *token importance* "
        "weights the tokens of a sentence."
    )


def _show_sweep(result: LayerPairs, coefficient: str, setting: str) -> None:
    measured = result.windows if setting == "windows" else result.layer_starts
    first = 1 if setting == "windows" else 0
    settings = list(range(first, first + len(next(iter(measured.values())))))
    axis = "layer window" if setting == "windows" else "first layer"
    show_figure(
        sweep_figure(
            settings,
            {name: [_value(m, coefficient) for m in row] for name, row in measured.items()},
            plain=_value(result.ablation["authors"][PARTS["last"]], coefficient),
            title=f"SBERT-WK by {axis}",
            axis=axis,
            coefficient=coefficient,
        ),
        key=f"layers-pairs-{setting}",
        numbers=lambda: pd.DataFrame(
            {"variant": VARIANT_NAMES[name], axis: value, **_row(m)}
            for name, row in measured.items()
            for value, m in zip(settings, row, strict=True)
        ),
        name=f"sbert-wk-{axis}",
        height=HALF,
        provenance=_describe_run(result),
    )


def _show_scatter(result: LayerPairs, coefficient: str) -> None:
    st.subheader("Pair by pair", anchor=False)
    last = len(result.by_layer["mean"]) - 1
    with st.container(horizontal=True, gap="large"):
        pooling = st.selectbox(
            "Pooling",
            list(result.by_layer),
            format_func=lambda name: POOLING_NAMES[name],
            key="layers-pairs-pooling",
            width=300,
        )
        layer = st.selectbox(
            "Layer",
            range(last + 1),
            index=last,
            key=f"layers-pairs-layer-of-{last}",
            width=140,
        )
    measured = result.by_layer[pooling][layer]
    pairs = result.pairs
    kinds = pairs.labels.get("kind")
    table = pd.DataFrame(
        {
            "sentence1": pairs.sentences1,
            "sentence2": pairs.sentences2,
            "score": pairs.scores,
            "cosine": measured.cosines,
            **pairs.labels,
        }
    )
    show_figure(
        scatter_figure(
            measured.cosines,
            pairs.scores,
            list(zip(pairs.sentences1, pairs.sentences2, strict=True)),
            kinds,
            f"Score and cosine: {coefficient} {number(_value(measured, coefficient), '.3f')}",
        ),
        key="layers-pairs-scatter",
        numbers=table,
        name="pairs",
        height=520,
        provenance=_describe_run(result),
    )
    st.caption(
        "Each dot is a pair; hover over it to read the sentences. Pairs far from the "
        "rising diagonal are misjudged: at the lower right, the cosine similarity is high but the "
        "human score is low."
    )
    ranks = table[["score", "cosine"]].rank(pct=True)
    disagreement = (ranks["cosine"] - ranks["score"]).abs()
    with st.expander("Pairs with the largest disagreement"):
        worst = table.loc[disagreement.sort_values(ascending=False).index[:MOST_DISAGREEING]].copy()
        for column in ("sentence1", "sentence2"):
            worst[column] = [shorten(sentence, 300) for sentence in worst[column]]
        st.dataframe(
            worst,
            hide_index=True,
            column_config={
                "score": st.column_config.NumberColumn(format="%.3g", width="small"),
                "cosine": st.column_config.NumberColumn(format="%.2f", width="small"),
            },
        )
