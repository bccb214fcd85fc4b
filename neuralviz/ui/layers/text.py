"""The view of one text: how its tokens change from layer to layer, and SBERT-WK's weights."""

from __future__ import annotations

import html
import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.layers import NAMED, describe_map, describe_text
from neuralviz.jobs import Run
from neuralviz.jobs.layers import FollowedText, FollowText
from neuralviz.layers.geometry import (
    TokenStates,
    cosine_maps,
    followed_words,
    mean_map,
    offset_diagonals,
    word_importance,
)
from neuralviz.layers.settings import (
    VARIANT_NAMES,
    VARIANTS,
    WIDEST_WINDOW,
    SbertWkSettings,
    check_sbert_wk,
)
from neuralviz.models import TextModel
from neuralviz.models.shared import ModelRef, shared_text_model
from neuralviz.plots import layers as plots
from neuralviz.plots.report import About
from neuralviz.plots.theme import GREEN, shorten
from neuralviz.ui.choices import REMEMBERED
from neuralviz.ui.figures import (
    allow_swiping,
    download_table,
    list_cells,
    open_downloads,
    show_figure,
)
from neuralviz.ui.inputs import ask_text_fields
from neuralviz.ui.model_choice import choose_text_model, load_model_or_stop
from neuralviz.ui.page import dim_old_results, plain, wide_columns
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.layers.following import TokenWeights

Draw = Callable[..., object]

KEY = "layers-text"
RUNS = SessionRuns(KEY)
PATIENCE = 1.0  # seconds: enough to read most texts
BY_DEPTH = "One third of the way"
MEAN = -1  # in place of a token's number
STRONGEST = 60  # per cent of colour behind the most important word, which stays readable
EXAMPLES = {
    "Two banks": "The bank by the river bank closed early on Friday.",
    "Rare words": "The neuroscientist photographed bioluminescent jellyfish.",
    "Function words": "It was not that he did not want to, but that he could not.",
    "A short story": (
        "The lighthouse had no keeper any more, but every evening at six its lamp came on. "
        "Children in the village said that it was the old keeper's cat who pressed the switch."
    ),
}


def ask_text() -> str:
    examples = {name: {"followed-text": text} for name, text in EXAMPLES.items()}
    (text,) = ask_text_fields("followed", {"Text": EXAMPLES["Two banks"]}, examples, height=100)
    return text


def ask_more_figures() -> bool:
    """A switch for the further figures of a view."""
    return st.toggle("More figures", key="layers-more", **REMEMBERED)


def show() -> None:
    inputs, output = wide_columns([2, 3], KEY)
    with inputs:
        text = ask_text()
        model = load_model_or_stop(choose_text_model(), shared_text_model)
        task = FollowText(ModelRef.from_id(model.id), text, _choose_settings(model))
    run = RUNS.start(task)
    sentences = RunSentences(
        start="Running the model …",
        error_advice="Showing the last valid text." if _find_last() is not None else "",
        done="",
    )
    with output:
        show_run_panel(RUNS, run, _show_words, sentences=sentences, patience=PATIENCE)
    latest = _find_last()
    if latest is not None and ask_more_figures():
        with dim_old_results(f"{KEY}-more", latest is not run):
            draw = partial(show_figure, provenance=_describe_run(latest))
            _show_maps(latest.result.states, draw)
            _show_layer_weights(latest.result.states, latest.result.weights, draw)


def _find_last() -> Run[FollowedText] | None:
    """The last run with a result, shown while another text is read, or cannot be."""
    return next((run for run in reversed(RUNS.list_runs()) if run.result is not None), None)


def _choose_settings(model: TextModel) -> SbertWkSettings:
    windows = list(range(1, min(WIDEST_WINDOW, model.n_blocks) + 1))
    with st.expander("SBERT-WK settings", icon=":material/tune:"):
        columns = [*st.columns(2), *st.columns(2)]
        variant = columns[0].selectbox(
            "Variant",
            VARIANTS,
            format_func=VARIANT_NAMES.__getitem__,
            key="layers-variant",
            **REMEMBERED,
            help=(
                "The authors' program, which produced the paper's tables, differs from the "
                "paper's equations: for the first layers it uses only later layers, and it "
                "measures alignment with a layer's projection onto its neighbouring layers."
            ),
        )
        start = columns[1].selectbox(
            "First layer",
            [BY_DEPTH, *map(str, range(model.n_blocks))],
            key="layers-first",
            **REMEMBERED,
            help="Layers before this one are ignored. The paper starts at layer 4 of 12.",
        )
        window = columns[2].selectbox(
            "Layer window",
            windows,
            index=min(1, len(windows) - 1),
            key="layers-window",
            **REMEMBERED,
            help="Number of layers on each side that a layer is compared with.",
        )
        omega = columns[3].slider(
            "Omega: weight of alignment",
            0.0,
            1.0,
            0.5,
            0.1,
            key="layers-omega",
            **REMEMBERED,
            help="Novelty gets the rest.",
        )
    layer_start = None if start == BY_DEPTH else int(start)
    return check_sbert_wk(
        model, variant=variant, layer_start=layer_start, window=window, omega=round(omega, 1)
    )


def _describe_run(run: Run[FollowedText]) -> About:
    followed, settings = run.result, run.result.weights.settings
    return About(
        "A text, layer by layer",
        {
            "text": shorten(followed.states.text.text, 60),
            "model": run.task.model.id,
            "SBERT-WK": (
                f"{VARIANT_NAMES[settings.variant].lower()}, first layer {settings.layer_start}, "
                f"layer window {settings.window}, omega {settings.omega:g}"
            ),
        },
    )


# --- the text and its words ----------------------------------------------------------------------


def _show_words(result: FollowedText | None, live: bool) -> None:
    """Draw the headline, the text with its important words, and how far the words turn."""
    latest = _find_last()
    if latest is None:
        return
    states, weights = latest.result.states, latest.result.weights
    if states.is_cut:
        st.info(
            f"The text has {len(states.text):,} tokens, more than fit in the model's window, so "
            "it is read in parts. Only the first one is shown: "
            f"{len(states.tokens):,} tokens, special tokens included.",
            icon=":material/content_cut:",
        )
    words, provenance = followed_words(states, weights.importance), _describe_run(latest)
    headline = plain(describe_text(words, weights))
    with dim_old_results(KEY, latest.result is not result), slide(KEY, headline):
        _show_importance(states, weights, provenance)
        if words:
            cosines = np.array([word.turns for word in words])
            axes = {"word": [word.word for word in words], "layer": range(1, cosines.shape[1] + 1)}
            importance = np.repeat([word.importance for word in words], cosines.shape[1])
            n_named = min(NAMED, max(1, len(words) - 1))
            show_figure(
                plots.turns_figure(words, n_named, int(weights.layers[0])),
                "cosine-of-words-by-layer",
                lambda: list_cells(axes, importance=importance, cosine=cosines),
                provenance,
                height=330,
            )
        st.caption(
            "Each point is the cosine between a word's vectors before and after a layer: where a "
            "line drops, the layer turns the vector. The lines in colour are the most important "
            "words and the least important one."
        )


def _show_importance(states: TokenStates, weights: TokenWeights, provenance: About) -> None:
    """Draw the text, its words coloured by their share of the sentence vector."""
    shares, text = word_importance(states, weights.importance), states.text.text
    highest = max(float(shares.max(initial=0.0)), 1e-12)
    parts, words, end_before = [], [], 0
    for (start, end), share in zip(states.text.word_spans, shares, strict=False):
        words.append(text[start:end])
        parts.append(
            f'{html.escape(text[end_before:start])}<span title="{share:.1%}" style="background: '
            f'{_tint(share / highest)}; padding: 0.1em 0.12em; border-radius: 0.25em">'
            f"{html.escape(words[-1])}</span>"
        )
        end_before = max(end, end_before)
    st.html(
        '<div dir="auto" style="font-size: 1.35em; line-height: 1.9; white-space: pre-wrap; '
        f'overflow-wrap: anywhere; max-height: 24rem; overflow-y: auto">{"".join(parts)}</div>'
    )
    token_words = states.text.words[: states.n_counted - states.n_prefix]
    table = pd.DataFrame(
        {
            "position": range(states.n_counted),
            "token": states.counted,
            "word": [""] * states.n_prefix + [words[i] for i in token_words],
            "importance": weights.importance,
        }
    )
    key = f"{KEY}-importance"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            '<div style="display: flex; align-items: center; gap: 0.6em; font-size: 0.9em">'
            "<span>importance 0%</span>"
            f'<span style="width: 8em; height: 0.9em; border-radius: 0.25em; '
            f'background: linear-gradient(to right, {_tint(0)}, {_tint(1)})"></span>'
            f"<span>{highest:.1%} (highest)</span></div>",
            width="content",
        )
        with open_downloads(key):
            download_table(
                "Token importance", table, "token-importance", key=key, provenance=provenance
            )


def _tint(strength: float) -> str:
    return f"color-mix(in srgb, {GREEN} {STRONGEST * strength:.0f}%, transparent)"


# --- more figures --------------------------------------------------------------------------------


def _show_maps(states: TokenStates, draw: Draw) -> None:
    """Draw the cosine map of a token or of their mean, and its offset diagonals."""
    st.subheader("How the vectors change direction", anchor=False)
    names = {MEAN: f"Mean over {many(states.n_counted, 'token')}"}
    names |= {i: f"{i}. {shorten(token, 40)}" for i, token in enumerate(states.tokens)}
    token = st.selectbox(
        "Token",
        list(names),
        format_func=names.__getitem__,
        key=f"{KEY}-token-{zlib.crc32(' '.join(states.tokens).encode())}",  # of this text
        width=360,
        help="The mean includes the text's tokens and [CLS], as in SBERT-WK.",
    )
    if token == MEAN:
        cosines, source, subject = mean_map(states), "token mean", "the average word"
    else:
        cosines = cosine_maps(states.vectors[:, token : token + 1])[0]
        source = subject = f"“{shorten(states.tokens[token], 20)}”"
    layers, diagonals = range(len(cosines)), offset_diagonals(cosines)
    table = pd.DataFrame(
        [
            (offset, layer, layer + offset, value)
            for offset, values in diagonals.items()
            for layer, value in enumerate(values)
        ],
        columns=["offset", "layer", "other layer", "cosine"],
    )
    with slide(f"{KEY}-maps", plain(describe_map(cosines, subject))):
        map_column, diagonals_column = wide_columns(2, f"{KEY}-maps")
        with map_column:
            draw(
                plots.cosine_map_figure(cosines, source),
                "cosine-similarity-between-layers",
                list_cells({"layer": layers, "other layer": layers}, cosine=cosines),
                height=440,
            )
        with diagonals_column:
            figure = plots.diagonals_figure(diagonals, source)
            draw(figure, "cosine-similarity-by-layer-distance", table, height=440)
            st.caption(
                "Each line is a diagonal of the heatmap. A token's importance is the variance of "
                "its top line from the chosen *first layer* on."
            )


def _show_layer_weights(states: TokenStates, weights: TokenWeights, draw: Draw) -> None:
    """Draw alignment, novelty and both together, token by token."""
    st.subheader("Which layers shape a word's vector", anchor=False)
    kinds = {name: getattr(weights, name) for name in ("alignment", "novelty", "combined")}
    titled = {name.title(): values for name, values in kinds.items()}
    axes = {"position": range(states.n_counted), "layer": weights.layers}
    tokens = np.repeat(states.counted, len(weights.layers))
    with slide(f"{KEY}-weights"), allow_swiping(f"{KEY}-scrolled", 720):
        draw(
            plots.weights_figure(titled, weights.layers, states.counted),
            "layer-weights",
            lambda: list_cells(axes, token=tokens, **kinds),
        )
    if states.n_counted > plots.MAX_TOKENS:
        st.caption(f"Showing the first {plots.MAX_TOKENS} of {states.n_counted:,} tokens.")
    st.caption(
        "**Alignment** is high where a layer points away from its neighbouring layers, **novelty** "
        "where it contains something they do not. "
        f"**Combined** is {weights.settings.omega:.0%} alignment and "
        f"{1 - weights.settings.omega:.0%} novelty."
    )
