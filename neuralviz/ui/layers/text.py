"""The view of one text: how its tokens change from layer to layer, and SBERT-WK's weights."""

from __future__ import annotations

import html
import zlib
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.jobs.layers import FollowText
from neuralviz.layers.settings import VARIANT_NAMES, VARIANTS
from neuralviz.models.shared import ModelRef
from neuralviz.plots import layers as plots
from neuralviz.plots.theme import GREEN, shorten
from neuralviz.store.writing import frame_csv
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.layers import followed_model_id, one_text
from neuralviz.ui.model_choice import text_model_or_stop
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import SessionRuns, Words, run_panel
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.jobs.layers import FollowedText
    from neuralviz.layers.following import Sensitivity, TokenWeights
    from neuralviz.layers.geometry import TokenStates
    from neuralviz.layers.settings import SbertWkSettings
    from neuralviz.models import TextModel

KEY = "layers-text"
RUNS = SessionRuns(KEY)
PATIENCE = 1.0  # seconds: a text is read by then, unless it is long
BY_DEPTH = "One third of the way"
MEAN = -1
STRONGEST = 60  # per cent of colour behind the most important word: text stays readable on it


def show() -> None:
    """The whole view."""
    text = one_text()
    model = text_model_or_stop(followed_model_id())
    task = FollowText(ModelRef.now(model.id), text, _settings(model))
    run = RUNS.start(task)
    last = _last_result(task)
    words = Words(
        begins="Running the model …",
        after_error="Showing the last valid text." if last is not None else "",
        done=lambda _: "",
    )
    run_panel(RUNS, run, partial(_show, last), words=words, patience=PATIENCE)


def _last_result(task: FollowText) -> FollowedText | None:
    """What is shown while a text is read, or cannot be: the last one that this model has read."""
    for run in reversed(RUNS.all()):
        if run.result is not None and cast("FollowText", run.task).model == task.model:
            return run.result
    return None


def _show(last: FollowedText | None, result: FollowedText | None, live: bool) -> None:
    followed = result or last
    if followed is None:
        return
    states = followed.states
    if states.is_cut:
        st.info(
            (
                f"The text has {len(states.text):,} tokens, more than fit in the model's "
                f"window. Only the first {len(states.tokens):,} tokens (including special "
                "tokens) are shown."
            ),
            icon=":material/content_cut:",
        )
    _importance(states, followed.weights)
    _maps(states)
    _layer_weights(states, followed.weights)
    _sensitivity(followed.sensitivity)


# --- what is asked for -------------------------------------------------------------------------


def _settings(model: TextModel) -> SbertWkSettings:
    """Widgets for SBERT-WK's settings, those that the model has room for."""
    from neuralviz.layers.settings import WIDEST_WINDOW, check_sbert_wk

    usual = check_sbert_wk(model).layer_start
    starts = [BY_DEPTH, *map(str, range(model.n_blocks))]
    windows = list(range(1, min(WIDEST_WINDOW, model.n_blocks) + 1))
    _forget_unless("layers-first", starts)
    _forget_unless("layers-window", windows)
    with st.expander("SBERT-WK settings", icon=":material/tune:"):
        columns = st.columns(4)
        variant = columns[0].selectbox(
            "Variant",
            VARIANTS,
            format_func=VARIANT_NAMES.__getitem__,
            key="layers-variant",
            bind="query-params",
            persist_state="session",
            help=(
                "The authors' program, which produced the paper's tables, differs from the "
                "paper's equations: for the first layers it uses only later layers, and it "
                "measures alignment with a layer's projection onto its neighbouring layers."
            ),
        )
        start = columns[1].selectbox(
            "First layer",
            starts,
            key="layers-first",
            bind="query-params",
            persist_state="session",
            help=(
                "Layers before this one are ignored. The paper starts at layer 4 of 12, one third "
                f"of the way; here, that is layer {usual}."
            ),
        )
        window = columns[2].selectbox(
            "Layer window",
            windows,
            index=min(1, len(windows) - 1),
            key="layers-window",
            bind="query-params",
            persist_state="session",
            help="Number of layers on each side that a layer is compared with.",
        )
        omega = columns[3].slider(
            "Omega: weight of alignment",
            0.0,
            1.0,
            0.5,
            0.1,
            key="layers-omega",
            bind="query-params",
            persist_state="session",
            help="Novelty gets the rest.",
        )
    return check_sbert_wk(
        model,
        variant=variant,
        layer_start=None if start == BY_DEPTH else int(start),
        window=window,
        omega=round(omega, 1),
    )


def _forget_unless(key: str, options: list) -> None:
    """Drop what a deeper model, or an address, has left that this one does not offer."""
    if key in st.session_state and st.session_state[key] not in options:
        del st.session_state[key]


# --- what is shown -----------------------------------------------------------------------------


def _importance(states: TokenStates, weights: TokenWeights) -> None:
    """The words of the text, coloured by their share of the sentence vector."""
    from neuralviz.layers.geometry import word_importance

    st.subheader("Which words shape the embedding", anchor=False)
    of_words = word_importance(states, weights.importance)
    spans = states.text.word_spans[: len(of_words)]
    strongest = max(float(of_words.max(initial=0.0)), 1e-12)
    st.html(_coloured(states.text.text, spans, of_words / strongest, of_words))
    st.html(_legend(strongest))
    special = [
        f"{token} has {share:.1%}"
        for token, share in zip(states.tokens[: states.n_prefix], weights.importance, strict=False)
    ]
    unused = [f"{token} is not used" for token in states.tokens[states.n_counted :]]
    notes = special + unused
    st.caption(
        plain(
            "A word is important if its vector changes direction unevenly from layer to layer. "
            "The importances of all tokens sum to 100%."
            + (f" Special tokens: {'; '.join(notes)}." if notes else "")
        )
    )
    words = [states.text.text[start:end] for start, end in spans]
    st.download_button(
        "Numbers (CSV)",
        lambda: frame_csv(_importance_table(states, weights, words)),
        "token-importance.csv",
        "text/csv",
        key=f"{KEY}-importance",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
    )


def _importance_table(states: TokenStates, weights: TokenWeights, words: list[str]) -> pd.DataFrame:
    of_token = states.text.words[: states.n_counted - states.n_prefix]
    return pd.DataFrame(
        {
            "position": range(states.n_counted),
            "token": states.counted,
            "word": [""] * states.n_prefix + [words[i] for i in of_token],
            "importance": weights.importance,
        }
    )


def _coloured(
    text: str, spans: list[tuple[int, int]], strength: np.ndarray, shares: np.ndarray
) -> str:
    """The text in reading order, a background behind each word; ``strength`` is 0 … 1."""
    parts, end_before = [], 0
    for (start, end), strong, share in zip(spans, strength, shares, strict=True):
        parts.append(html.escape(text[end_before:start]))
        parts.append(
            f'<span title="{share:.1%}" style="background: {_behind(strong)}; padding: 0.1em '
            f'0.12em; border-radius: 0.25em">{html.escape(text[start:end])}</span>'
        )
        end_before = max(end, end_before)
    return (
        '<div dir="auto" style="font-size: 1.35rem; line-height: 1.9; white-space: pre-wrap; '
        f'overflow-wrap: anywhere; max-height: 24rem; overflow-y: auto">{"".join(parts)}</div>'
    )


def _behind(strength: float) -> str:
    return f"color-mix(in srgb, {GREEN} {STRONGEST * strength:.0f}%, transparent)"


def _legend(strongest: float) -> str:
    steps = ", ".join(f"{_behind(s)} {s:.0%}" for s in (0.0, 1.0))
    return (
        '<div style="display: flex; align-items: center; gap: 0.6em; font-size: 0.9rem">'
        "<span>importance 0%</span>"
        f'<span style="width: 8em; height: 0.9em; border-radius: 0.25em; '
        f'background: linear-gradient(to right, {steps})"></span>'
        f"<span>{strongest:.1%} (highest)</span></div>"
    )


def _maps(states: TokenStates) -> None:
    """The cosine map of a token or of their mean, and its offset diagonals."""
    from neuralviz.layers.geometry import cosine_maps, mean_map, offset_diagonals

    st.subheader("How the vectors change direction", anchor=False)
    n = states.n_counted
    token = st.selectbox(
        "Token",
        [MEAN, *range(len(states.tokens))],
        format_func=lambda i: (
            f"Mean over {many(n, 'token')}" if i == MEAN
            else f"{i}. {shorten(states.tokens[i], 40)}"
        ),
        key=f"{KEY}-token-{zlib.crc32(' '.join(states.tokens).encode())}",  # of this text
        width=360,
        help="The mean includes the text's tokens and [CLS], as in SBERT-WK.",
    )  # fmt: skip
    if token == MEAN:
        cosines, whose = mean_map(states), "token mean"
    else:
        cosines = cosine_maps(states.vectors[:, token : token + 1])[0]
        whose = f"“{shorten(states.tokens[token], 20)}”"
    left, right = st.columns(2)
    n_layers = len(cosines)
    with left:
        show_figure(
            plots.cosine_map_figure(cosines, whose),
            key=f"{KEY}-map",
            numbers=pd.DataFrame(
                {
                    "layer": np.repeat(np.arange(n_layers), n_layers),
                    "other layer": np.tile(np.arange(n_layers), n_layers),
                    "cosine": cosines.ravel(),
                }
            ),
            name="cosine-similarity-between-layers",
            height=440,
        )
        st.caption(
            "Each cell is the cosine similarity between a token's vectors at two layers. "
            "In bright squares along the diagonal, the vectors hardly change from layer to layer."
        )
    with right:
        diagonals = offset_diagonals(cosines)
        show_figure(
            plots.diagonals_figure(diagonals, whose),
            key=f"{KEY}-diagonals",
            numbers=pd.DataFrame(
                [
                    (offset, layer, layer + offset, value)
                    for offset, values in diagonals.items()
                    for layer, value in enumerate(values)
                ],
                columns=["offset", "layer", "other layer", "cosine"],
            ),
            name="cosine-similarity-by-layer-distance",
            height=440,
        )
        st.caption(
            "Each line is a diagonal of the heatmap. Where the top line drops, the vectors "
            "change direction sharply. A token's importance is the variance of its top "
            "line from the chosen *first layer* on."
        )


def _layer_weights(states: TokenStates, weights: TokenWeights) -> None:
    """Alignment, novelty and both together, token by token."""
    st.subheader("Which layers shape a word's vector", anchor=False)
    kinds = {
        "Alignment": weights.alignment,
        "Novelty": weights.novelty,
        "Combined": weights.combined,
    }
    n_layers = len(weights.layers)
    with swiped(f"{KEY}-wide", 720):
        show_figure(
            plots.weights_figure(kinds, weights.layers, states.counted),
            key=f"{KEY}-weights",
            numbers=lambda: pd.DataFrame(
                {
                    "position": np.repeat(np.arange(states.n_counted), n_layers),
                    "token": np.repeat(states.counted, n_layers),
                    "layer": np.tile(weights.layers, states.n_counted),
                    **{name.lower(): values.ravel() for name, values in kinds.items()},
                }
            ),
            name="layer-weights",
            height=plots.weights_height(states.n_counted),
        )
    if states.n_counted > plots.MAX_TOKENS:
        st.caption(
            f"Showing the first {plots.MAX_TOKENS} of {states.n_counted:,} tokens. The "
            "download contains all of them."
        )
    st.caption(
        "Each row sums to 1 in each panel. **Alignment** is high where a layer points away "
        "from its neighbouring layers, **novelty** where it contains something they do not. "
        f"**Combined** is {weights.settings.omega:.0%} alignment and "
        f"{1 - weights.settings.omega:.0%} novelty."
    )


def _sensitivity(result: Sensitivity) -> None:
    """The sentence vector at other settings."""
    st.subheader("Effect of the settings", anchor=False)
    left, right = st.columns(2)
    with left:
        chosen = (result.settings.window, result.settings.layer_start)
        show_figure(
            plots.settings_figure(result.by_window, result.windows, result.layer_starts, chosen),
            key=f"{KEY}-by-window",
            numbers=pd.DataFrame(
                {
                    "layer window": np.repeat(result.windows, len(result.layer_starts)),
                    "first layer": np.tile(result.layer_starts, len(result.windows)),
                    "cosine": result.by_window.ravel(),
                }
            ),
            name="sentence-vector-by-layer-window-and-first-layer",
            height=400,
        )
        st.caption(
            "Cosine similarity between the embedding with your settings (framed) and the "
            "embeddings with other settings. Values close to 1 mean that the settings hardly "
            "matter for this text."
        )
    with right:
        show_figure(
            plots.omega_figure(result.omegas, result.by_omega, result.settings.omega),
            key=f"{KEY}-by-omega",
            numbers=pd.DataFrame({"omega": result.omegas, "cosine": result.by_omega}),
            name="sentence-vector-by-omega",
            height=400,
        )
        st.caption(
            "Cosine similarity between the embedding with your omega (dotted line) and the "
            "embeddings with other values of omega."
        )
