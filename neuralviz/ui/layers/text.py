"""The view of one text: how its tokens change from layer to layer, and SBERT-WK's weights."""

from __future__ import annotations

import html
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.layers import (
    NAMED,
    describe_map,
    describe_settings,
    describe_text,
)
from neuralviz.jobs import Run
from neuralviz.jobs.layers import FollowedText, FollowText
from neuralviz.layers.geometry import (
    FollowedWord,
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
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import GREEN, shorten
from neuralviz.ui.choices import REMEMBERED
from neuralviz.ui.figures import (
    allow_swiping,
    download_table,
    list_cells,
    open_downloads,
    show_figure,
)
from neuralviz.ui.model_choice import choose_text_model, load_model_or_stop
from neuralviz.ui.page import dim_old_results, plain, wide_columns
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import slide
from neuralviz.ui.texts import ask_text_fields
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.layers.following import Sensitivity, TokenWeights

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
        describe_done=lambda _: "",
    )
    with output:
        show_run_panel(RUNS, run, _show_words, sentences=sentences, patience=PATIENCE)
    latest = _find_last()
    if latest is not None and ask_more_figures():
        with dim_old_results(f"{KEY}-more", latest is not run):
            draw = partial(show_figure, provenance=_describe_run(latest))
            _show_maps(latest.result.states, draw)
            _show_layer_weights(latest.result.states, latest.result.weights, draw)
            _show_sensitivity(latest.result.sensitivity, draw)


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
            _show_turns(words, int(weights.layers[0]), provenance)
        st.caption(
            "Each point is the cosine between a word's vectors before and after a layer: where a "
            "line drops, the layer turns the vector. The lines in colour are the most important "
            "words and the least important one. "
            f"{plain(_describe_special_tokens(states, weights))}"
        )


def _show_importance(states: TokenStates, weights: TokenWeights, provenance: About) -> None:
    """Draw the text, its words coloured by their share of the sentence vector."""
    shares = word_importance(states, weights.importance)
    spans = states.text.word_spans[: len(shares)]
    highest = max(float(shares.max(initial=0.0)), 1e-12)
    st.html(_colour_words(states.text.text, spans, shares, highest))
    words = [states.text.text[start:end] for start, end in spans]
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
        st.html(_draw_legend(highest), width="content")
        with open_downloads(key):
            download_table(
                "Token importance", table, "token-importance", key=key, provenance=provenance
            )


def _colour_words(
    text: str, spans: Sequence[tuple[int, int]], shares: np.ndarray, highest: float
) -> str:
    """The text as HTML with a background behind each word, the stronger the larger its share."""
    parts, end_before = [], 0
    for (start, end), share in zip(spans, shares, strict=True):
        parts.append(html.escape(text[end_before:start]))
        parts.append(
            f'<span title="{share:.1%}" style="background: {_tint(share / highest)}; padding: '
            f'0.1em 0.12em; border-radius: 0.25em">{html.escape(text[start:end])}</span>'
        )
        end_before = max(end, end_before)
    return (
        '<div dir="auto" style="font-size: 1.35em; line-height: 1.9; white-space: pre-wrap; '
        f'overflow-wrap: anywhere; max-height: 24rem; overflow-y: auto">{"".join(parts)}</div>'
    )


def _draw_legend(highest: float) -> str:
    return (
        '<div style="display: flex; align-items: center; gap: 0.6em; font-size: 0.9em">'
        "<span>importance 0%</span>"
        f'<span style="width: 8em; height: 0.9em; border-radius: 0.25em; '
        f'background: linear-gradient(to right, {_tint(0)}, {_tint(1)})"></span>'
        f"<span>{highest:.1%} (highest)</span></div>"
    )


def _tint(strength: float) -> str:
    return f"color-mix(in srgb, {GREEN} {STRONGEST * strength:.0f}%, transparent)"


def _describe_special_tokens(states: TokenStates, weights: TokenWeights) -> str:
    shares = zip(states.tokens[: states.n_prefix], weights.importance, strict=False)
    notes = [f"{token} has {share:.1%}" for token, share in shares]
    notes += [f"{token} is not used" for token in states.tokens[states.n_counted :]]
    return f"The importances of all tokens sum to 100%: {'; '.join(notes)}." if notes else ""


def _show_turns(words: Sequence[FollowedWord], first_layer: int, provenance: About) -> None:
    """Draw how far the words' vectors turn in every layer."""
    cosines = np.array([word.turns for word in words])
    axes = {"word": [word.word for word in words], "layer": range(1, cosines.shape[1] + 1)}
    importance = np.repeat([word.importance for word in words], cosines.shape[1])
    show_figure(
        plots.turns_figure(words, min(NAMED, max(1, len(words) - 1)), first_layer),
        "cosine-of-words-by-layer",
        lambda: list_cells(axes, importance=importance, cosine=cosines),
        provenance,
        height=330,
    )


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


def _show_sensitivity(result: Sensitivity, draw: Draw) -> None:
    """Draw how similar the sentence vector stays at other settings."""
    st.subheader("Effect of the settings", anchor=False)
    windows, starts = result.windows, result.layer_starts
    chosen = (result.settings.window, result.settings.layer_start)
    axes = {"layer window": windows, "first layer": starts}
    with slide(f"{KEY}-settings", describe_settings(result)):
        window_column, omega_column = wide_columns(2, f"{KEY}-settings")
        with window_column:
            draw(
                plots.settings_figure(result.by_window, windows, starts, chosen),
                "sentence-vector-by-layer-window-and-first-layer",
                list_cells(axes, cosine=result.by_window),
                height=400,
            )
        with omega_column:
            draw(
                plots.omega_figure(result.omegas, result.by_omega, result.settings.omega),
                "sentence-vector-by-omega",
                pd.DataFrame({"omega": result.omegas, "cosine": result.by_omega}),
                height=400,
            )
    st.caption(
        "Cosine similarity between the embedding with your settings (framed, and at the dotted "
        "line) and the embeddings with other settings."
    )
