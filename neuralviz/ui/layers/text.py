"""The view of one text: how its tokens change from layer to layer, and SBERT-WK's weights."""

from __future__ import annotations

import html
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.layers import NAMED, describe_text
from neuralviz.jobs.layers import FollowText
from neuralviz.layers.geometry import followed_words, word_importance
from neuralviz.layers.settings import VARIANT_NAMES, VARIANTS
from neuralviz.models.shared import ModelRef, shared_text_model
from neuralviz.plots import layers as plots
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import GREEN, shorten
from neuralviz.ui.figures import download_table, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.layers import ask_more_figures, ask_text, followed_model_id
from neuralviz.ui.layers.text_details import show_more
from neuralviz.ui.model_choice import load_model_or_stop
from neuralviz.ui.page import dim_old_results, plain, wide_columns
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.layers import FollowedText
    from neuralviz.layers.following import TokenWeights
    from neuralviz.layers.geometry import FollowedWord, TokenStates
    from neuralviz.layers.settings import SbertWkSettings
    from neuralviz.models import TextModel

KEY = "layers-text"
RUNS = SessionRuns(KEY)
PATIENCE = 1.0  # seconds: enough to read most texts
BY_DEPTH = "One third of the way"
STRONGEST = 60  # per cent of colour behind the most important word, which stays readable


def show() -> None:
    """Draw the view."""
    inputs, output = wide_columns([2, 3], KEY)
    with inputs:
        text = ask_text()
        model = load_model_or_stop(followed_model_id(), shared_text_model)
        task = FollowText(ModelRef.from_id(model.id), text, _choose_settings(model))
    run = RUNS.start(task)
    last = _last_result(task)
    words = RunSentences(
        start="Running the model …",
        error_advice="Showing the last valid text." if last is not None else "",
        describe_done=lambda _: "",
    )
    with output:
        show_run_panel(
            RUNS, run, partial(_show_words, task, last), sentences=words, patience=PATIENCE
        )
    followed = run.result or last
    if followed is None or not ask_more_figures():
        return
    with dim_old_results(f"{KEY}-more", run.result is None):
        show_more(KEY, followed, _describe_run(task, followed))


def _last_result(task: FollowText) -> FollowedText | None:
    """The last text that this model has read, shown while another one is read or fails."""
    for run in reversed(RUNS.list_runs()):
        if run.result is not None and cast("FollowText", run.task).model == task.model:
            return run.result
    return None


def _describe_run(task: FollowText, followed: FollowedText) -> About:
    """Title and settings of the shown result, for downloads."""
    settings = followed.weights.settings
    return About(
        "A text, layer by layer",
        {
            "text": shorten(followed.states.text.text, 60),
            "model": task.model.id,
            "SBERT-WK": (
                f"{VARIANT_NAMES[settings.variant].lower()}, first layer {settings.layer_start}, "
                f"layer window {settings.window}, omega {settings.omega:g}"
            ),
        },
    )


def _show_words(
    task: FollowText, last: FollowedText | None, result: FollowedText | None, live: bool
) -> None:
    """Draw the main sentence, the text with its important words, and how far the words turn."""
    followed = result or last
    if followed is None:
        return
    states = followed.states
    if states.is_cut:
        st.info(
            (
                f"The text has {len(states.text):,} tokens, more than fit in the model's "
                "window, so it is read in parts. Only the first one is shown: "
                f"{len(states.tokens):,} tokens, special tokens included."
            ),
            icon=":material/content_cut:",
        )
    words = followed_words(states, followed.weights.importance)
    with dim_old_results(KEY, result is None), slide(KEY):
        show_headline(plain(describe_text(words, followed.weights)), key=KEY)
        _show_importance(states, followed.weights, _describe_run(task, followed))
        _show_turns(words, followed.weights, _describe_run(task, followed))
        st.caption(
            "Each point is the cosine between a word's vectors before and after a layer: where a "
            "line drops, the layer turns the vector. The lines in colour are the "
            "most important words and the least important one; the others are grey. "
            f"{plain(_describe_special_tokens(states, followed.weights))}"
        )


# --- what is asked for -------------------------------------------------------------------------


def _choose_settings(model: TextModel) -> SbertWkSettings:
    """Widgets for SBERT-WK's settings, within the model's number of layers."""
    from neuralviz.layers.settings import WIDEST_WINDOW, check_sbert_wk

    usual = check_sbert_wk(model).layer_start
    starts = [BY_DEPTH, *map(str, range(model.n_blocks))]
    windows = list(range(1, min(WIDEST_WINDOW, model.n_blocks) + 1))
    _forget_unless("layers-first", starts)
    _forget_unless("layers-window", windows)
    with st.expander("SBERT-WK settings", icon=":material/tune:"):
        columns = [*st.columns(2), *st.columns(2)]
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
    """Forget a value, of a deeper model or an address, that is none of the options."""
    if key in st.session_state and st.session_state[key] not in options:
        del st.session_state[key]


# --- what is shown -----------------------------------------------------------------------------


def _show_importance(states: TokenStates, weights: TokenWeights, provenance: About) -> None:
    """The words of the text, coloured by their share of the sentence vector."""
    word_shares = word_importance(states, weights.importance)
    spans = states.text.word_spans[: len(word_shares)]
    strongest = max(float(word_shares.max(initial=0.0)), 1e-12)
    st.html(_colour_words(states.text.text, spans, word_shares / strongest, word_shares))
    words = [states.text.text[start:end] for start, end in spans]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(_legend(strongest), width="content")
        with st.popover(
            "Download", icon=":material/download:", type="tertiary", key=f"{KEY}-importance-take"
        ):
            download_table(
                "Token importance",
                lambda: _importance_table(states, weights, words),
                "token-importance",
                key=f"{KEY}-importance",
                provenance=provenance,
            )


def _describe_special_tokens(states: TokenStates, weights: TokenWeights) -> str:
    """A sentence on the importance of the special tokens."""
    shares = zip(states.tokens[: states.n_prefix], weights.importance, strict=False)
    notes = [f"{token} has {share:.1%}" for token, share in shares]
    notes += [f"{token} is not used" for token in states.tokens[states.n_counted :]]
    return f"The importances of all tokens sum to 100%: {'; '.join(notes)}." if notes else ""


def _show_turns(words: Sequence[FollowedWord], weights: TokenWeights, provenance: About) -> None:
    """How far the words' vectors turn in every layer."""
    if not words:
        return
    n_layers = len(words[0].turns)
    show_figure(
        plots.turns_figure(words, min(NAMED, max(1, len(words) - 1)), int(weights.layers[0])),
        key=f"{KEY}-turns",
        numbers=lambda: pd.DataFrame(
            {
                "word": np.repeat([word.word for word in words], n_layers),
                "importance": np.repeat([word.importance for word in words], n_layers),
                "layer": np.tile(np.arange(1, n_layers + 1), len(words)),
                "cosine": np.concatenate([word.turns for word in words]),
            }
        ),
        name="cosine-of-words-by-layer",
        height=330,
        provenance=provenance,
    )


def _importance_table(states: TokenStates, weights: TokenWeights, words: list[str]) -> pd.DataFrame:
    token_words = states.text.words[: states.n_counted - states.n_prefix]
    return pd.DataFrame(
        {
            "position": range(states.n_counted),
            "token": states.counted,
            "word": [""] * states.n_prefix + [words[i] for i in token_words],
            "importance": weights.importance,
        }
    )


def _colour_words(
    text: str, spans: list[tuple[int, int]], strength: np.ndarray, shares: np.ndarray
) -> str:
    """The text as HTML with a background behind each word; ``strength`` is 0 … 1."""
    parts, end_before = [], 0
    for (start, end), strong, share in zip(spans, strength, shares, strict=True):
        parts.append(html.escape(text[end_before:start]))
        parts.append(
            f'<span title="{share:.1%}" style="background: {_tint(strong)}; padding: 0.1em '
            f'0.12em; border-radius: 0.25em">{html.escape(text[start:end])}</span>'
        )
        end_before = max(end, end_before)
    return (
        '<div dir="auto" style="font-size: 1.35em; line-height: 1.9; white-space: pre-wrap; '
        f'overflow-wrap: anywhere; max-height: 24rem; overflow-y: auto">{"".join(parts)}</div>'
    )


def _tint(strength: float) -> str:
    return f"color-mix(in srgb, {GREEN} {STRONGEST * strength:.0f}%, transparent)"


def _legend(strongest: float) -> str:
    steps = ", ".join(f"{_tint(s)} {s:.0%}" for s in (0.0, 1.0))
    return (
        '<div style="display: flex; align-items: center; gap: 0.6em; font-size: 0.9em">'
        "<span>importance 0%</span>"
        f'<span style="width: 8em; height: 0.9em; border-radius: 0.25em; '
        f'background: linear-gradient(to right, {steps})"></span>'
        f"<span>{strongest:.1%} (highest)</span></div>"
    )
