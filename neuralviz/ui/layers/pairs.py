"""The view that measures layers, poolings and the parts of SBERT-WK on scored pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.best_layer import BEST_OF_ALL, BestLayer, MeasuredPooling
from neuralviz.headlines.layers import describe_best_layer, describe_parts
from neuralviz.jobs.layers import MeasureLayers
from neuralviz.layers.settings import PARTS, POOLING_NAMES, VARIANT_NAMES, VARIANTS
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.plots.layers import ablation_figure, layer_figure, scatter_figure, sweep_figure
from neuralviz.plots.report import About
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import list_worst, show_figure
from neuralviz.ui.inputs import choose_pairs, put_upload_in_address
from neuralviz.ui.layers.text import ask_more_figures
from neuralviz.ui.limits import row_limit
from neuralviz.ui.model_choice import choose_text_model, may_load
from neuralviz.ui.page import plain, wide_columns
from neuralviz.ui.runs import SessionRuns, show_run_panel
from neuralviz.ui.stage import slide
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.layer_pairs import LayerPairs

Draw = Callable[..., object]

KEY = "layers-pairs"
RUNS = SessionRuns(KEY)
EXAMPLE = "scored_pairs.csv"
MAX_PAIRS = 1000
MOST_DISAGREEING = 20
COEFFICIENTS = {"Spearman": "spearman", "Pearson": "pearson", "Kendall tau-b": "kendall_b"}


def show() -> None:
    inputs, output = wide_columns([2, 3], KEY)
    with inputs:
        model_id = choose_text_model()
        pairs = _choose_pairs()
        coefficient = choose_one(
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
    if pairs is None or not may_load(model_id):
        return
    put_upload_in_address(KEY)
    run = RUNS.start(MeasureLayers(ModelRef.from_id(model_id), pairs))
    with output:
        show_run_panel(RUNS, run, partial(_show_best_layer, coefficient))
    if run.is_over and run.result is not None and ask_more_figures():
        draw = partial(show_figure, provenance=_describe_run(run.result))
        _show_parts(run.result, coefficient, draw)
        _show_scatter(run.result, coefficient, draw)


def _choose_pairs() -> ScoredPairs | None:
    """The example's pairs, or those of a table; None, with a message, without any."""
    chosen = choose_pairs(KEY, _read_example)
    if chosen is None:
        return None
    name, pairs, _ = chosen
    limit, n_pairs = row_limit(MAX_PAIRS, texts_in_row=2), many(len(pairs), "pair")
    counted = n_pairs if len(pairs) <= limit else f"Using the first {limit:,} of {n_pairs}"
    st.caption(plain(" ".join([*pairs.notes, f"{counted} from {name}."])))
    return pairs.first(limit)


@st.cache_data(max_entries=1, show_spinner=False)
def _read_example() -> tuple[str, ScoredPairs]:
    return EXAMPLE, read_pairs(Source.from_path(sample_data() / EXAMPLE))


def _describe_run(result: LayerPairs) -> About:
    title = f"Layers against human scores on {many(len(result.pairs), 'pair')}"
    return About(title, {"model": result.model_id})


def _get_values(measured: Iterable[MeasuredPooling], coefficient: str) -> list[float]:
    return [getattr(row.correlation, COEFFICIENTS[coefficient]) for row in measured]


def _list_coefficients(measured: MeasuredPooling) -> dict[str, float]:
    correlation = measured.correlation
    return {
        "Spearman": correlation.spearman,
        "Pearson": correlation.pearson,
        "Kendall tau-b": correlation.kendall_b,
        "Kendall tau-c": correlation.kendall_c,
        "pairs": correlation.n,
    }


def _show_best_layer(coefficient: str, result: LayerPairs | None, live: bool) -> None:
    """Draw which layer agrees best with the scores, and how well all layers do."""
    if result is None:
        return
    if np.ptp(result.pairs.scores) == 0:
        st.warning("All pairs have the same human score, so the correlation is undefined.")
    sentence, best = _find_best_layer(result, coefficient, not live)
    values = {name: _get_values(layers, coefficient) for name, layers in result.by_layer.items()}
    figure = layer_figure(values, coefficient, (best.pooling, best.layer) if best else None)

    def tabulate() -> pd.DataFrame:
        return pd.DataFrame(
            {"pooling": pooling, "layer": layer, **_list_coefficients(measured)}
            for pooling, layers in result.by_layer.items()
            for layer, measured in enumerate(layers)
        )

    with slide(KEY, sentence):
        show_figure(figure, "correlation-by-layer", tabulate, _describe_run(result))
    st.caption(BEST_OF_ALL)


@lru_cache(maxsize=8)  # the page draws it again and again
def _find_best_layer(
    result: LayerPairs, coefficient: str, is_whole: bool
) -> tuple[str, BestLayer | None]:
    return describe_best_layer(
        result.by_layer, COEFFICIENTS[coefficient], coefficient, is_whole=is_whole
    )


def _show_parts(result: LayerPairs, coefficient: str, draw: Draw) -> None:
    """Draw the parts of SBERT-WK and the effect of its settings."""
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
    parts = result.ablation[variant]
    headline = describe_parts(
        parts[PARTS["all"]], parts[PARTS["last"]], COEFFICIENTS[coefficient], coefficient
    )
    values = dict(zip(parts, _get_values(parts.values(), coefficient), strict=True))

    def tabulate() -> pd.DataFrame:
        return pd.DataFrame(
            {"variant": VARIANT_NAMES[name], "part": part, **_list_coefficients(measured)}
            for name, parts in result.ablation.items()
            for part, measured in parts.items()
        )

    with slide(f"{KEY}-ablation", headline):
        draw(ablation_figure(values, coefficient), "ablation", tabulate)
    st.caption(
        "SBERT-WK (green) and the mean of the last layer (blue), all without [SEP]. "
        "*Alignment* and *novelty* weight the layers of each token; *token importance* "
        "weights the tokens of a sentence."
    )
    with slide(f"{KEY}-sweeps"):
        window_column, start_column = wide_columns(2, f"{KEY}-sweeps")
        with window_column:
            _show_sweep(result, coefficient, "layer window", draw)
        with start_column:
            _show_sweep(result, coefficient, "first layer", draw)


def _show_sweep(result: LayerPairs, coefficient: str, setting: str, draw: Draw) -> None:
    """Draw how the result depends on one of the two settings."""
    by_variant, first = result.layer_starts, 0
    if setting == "layer window":
        by_variant, first = result.windows, 1
    lines = {name: _get_values(row, coefficient) for name, row in by_variant.items()}
    figure = sweep_figure(
        range(first, first + len(next(iter(lines.values())))),
        lines,
        plain=_get_values([result.ablation["authors"][PARTS["last"]]], coefficient)[0],
        title=f"SBERT-WK by {setting}",
        axis=setting,
        coefficient=coefficient,
    )

    def tabulate() -> pd.DataFrame:
        return pd.DataFrame(
            {"variant": VARIANT_NAMES[name], setting: value, **_list_coefficients(measured)}
            for name, row in by_variant.items()
            for value, measured in enumerate(row, first)
        )

    draw(figure, f"sbert-wk-{setting}", tabulate)


def _show_scatter(result: LayerPairs, coefficient: str, draw: Draw) -> None:
    """Draw every pair, and list those on which scores and cosines disagree most."""
    st.subheader("Pair by pair", anchor=False)
    last = len(result.by_layer["mean"]) - 1
    with st.container(horizontal=True, gap="large"):
        pooling = st.selectbox(
            "Pooling",
            list(result.by_layer),
            format_func=POOLING_NAMES.__getitem__,
            key="layers-pairs-pooling",
            width=300,
        )
        layer_key = f"layers-pairs-layer-of-{last}"
        layer = st.selectbox("Layer", range(last + 1), index=last, key=layer_key, width=140)
    pairs, measured = result.pairs, result.by_layer[pooling][layer]
    table = pd.DataFrame(
        {
            "sentence1": pairs.sentences1,
            "sentence2": pairs.sentences2,
            "score": pairs.scores,
            "cosine": measured.cosines,
            **pairs.labels,
        }
    )
    value = number(_get_values([measured], coefficient)[0], ".3f")
    sentences = list(zip(pairs.sentences1, pairs.sentences2, strict=True))
    kinds, title = pairs.labels.get("kind"), f"Score and cosine: {coefficient} {value}"
    figure = scatter_figure(measured.cosines, pairs.scores, sentences, kinds, title)
    draw(figure, "pairs", table, height=520)
    st.caption(
        "Each dot is a pair; hover over it to read the sentences. At the lower right, the cosine "
        "similarity is high but the human score is low."
    )
    ranks = table[["score", "cosine"]].rank(pct=True)
    disagreement = (ranks["cosine"] - ranks["score"]).abs().sort_values(ascending=False)
    st.markdown("**Pairs with the largest disagreement**")
    worst = table.loc[disagreement.index[:MOST_DISAGREEING]]
    list_worst(worst.rename(columns={"score": "human score"}), f"{KEY}-worst")
