"""The layer dynamics page below its title, which shows one of its views."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines import layers as headlines
from neuralviz.headlines.micro_tuning import warn_of_unread
from neuralviz.jobs import Run
from neuralviz.jobs.layers import FollowedText, FollowText, ReadLayers, ReadText
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
from neuralviz.micro_tuning.blanks import BLANK
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models import BUNDLED, MINILM, TextModel
from neuralviz.models.language_model import Layer
from neuralviz.models.shared import ModelRef, shared_lens_model, shared_text_model
from neuralviz.plots import layers as plots
from neuralviz.plots.report import About
from neuralviz.plots.theme import GREEN, shorten
from neuralviz.ui.address import remember_number, write
from neuralviz.ui.choices import (
    REMEMBERED,
    choose_masked_model,
    choose_one,
    choose_text_model,
    load_model_or_none,
)
from neuralviz.ui.downloads import table_files
from neuralviz.ui.figures import Handlers, allow_swiping, list_cells, show_figure, show_html
from neuralviz.ui.inputs import ALL_EXAMPLES, VIEW, ask_text_fields
from neuralviz.ui.micro_tuning import find_layers, list_presets
from neuralviz.ui.page import (
    dim_old_results,
    hide_on_stage,
    is_tour_at,
    plain,
    show_only_on_stage,
    slide,
    stage_step,
    wide_columns,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.layers.words import TokenWeights
    from neuralviz.micro_tuning.lens import Lens

Draw = Callable[..., object]


def show() -> None:
    tab = choose_one(
        st.segmented_control,
        "View",
        list(TABS),
        key="layers-view",
        on_change=_forget_texts,
        persist_state="session",
        label_visibility="collapsed",
    )
    if not is_tour_at("Layer dynamics"):
        _lead_through_tabs(tab)
    TABS[tab]()


def _lead_through_tabs(tab: str) -> None:
    """Buttons that the stage presses at the ends of a tab."""
    tabs = list(TABS)
    place = tabs.index(tab)
    key = stage_step(place + 1, len(tabs))
    with show_only_on_stage("views"), st.container(key=key, horizontal=True):
        for label, moved in (("Back", -1), ("Next", 1)):
            other = tabs[(place + moved) % len(tabs)]
            is_last = not 0 <= place + moved < len(tabs)
            st.button(
                label,
                key=f"stage-{label.lower()}",
                on_click=_open_tab,
                args=(other,),
                disabled=is_last,
            )


def _open_tab(tab: str) -> None:
    st.session_state["layers-view"] = tab
    _forget_texts()


def _forget_texts() -> None:
    """Take the last tab's texts out of the address: each tab has its own."""
    write({VIEW: ""})


# --- a text: how its tokens change from layer to layer, and SBERT-WK's weights --------------------


TEXT_KEY = "layers-text"
TEXT_RUNS = SessionRuns(TEXT_KEY)
PATIENCE = 1.0  # seconds: enough to read most texts
BY_DEPTH = "One third of the way"
MEAN = -1  # in place of a token's number
STRONGEST = 60  # per cent of colour behind the most important word, which stays readable
EXAMPLES: dict[str, str] = ALL_EXAMPLES["layers"]


def ask_text() -> str:
    examples = {name: {"followed-text": text} for name, text in EXAMPLES.items()}
    (text,) = ask_text_fields("followed", {"Text": EXAMPLES["Two banks"]}, examples, height=100)
    return text


def _show_text() -> None:
    inputs, output = wide_columns([2, 3], TEXT_KEY)
    with inputs:
        text = ask_text()
        model = load_model_or_none(choose_text_model(), shared_text_model)
        if model is None:
            return
        task = FollowText(ModelRef.from_id(model.id), text, _choose_settings(model))
    run = TEXT_RUNS.start(task)
    sentences = RunSentences(
        start="Running the model …",
        error_advice="Showing the last valid text."
        if TEXT_RUNS.last_with_result() is not None
        else "",
        done="",
    )
    with output:
        show_run_panel(TEXT_RUNS, run, _show_words, sentences=sentences, patience=PATIENCE)
    latest = TEXT_RUNS.last_with_result()
    if latest is not None and st.toggle("More figures", key="layers-more", **REMEMBERED):
        with dim_old_results(f"{TEXT_KEY}-more", latest is not run):
            draw = partial(show_figure, provenance=_describe_text(latest))
            _show_maps(latest.result.states, draw)
            _show_layer_weights(latest.result.states, latest.result.weights, draw)


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


def _describe_text(run: Run[FollowedText]) -> About:
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


def _show_words(result: FollowedText | None, live: bool) -> None:
    """Draw the headline, the text with its important words, and the share of each word."""
    latest = TEXT_RUNS.last_with_result()
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
    words, provenance = followed_words(states, weights.importance), _describe_text(latest)
    shares = word_importance(states, weights.importance)
    punctuation = float(shares.sum()) - sum(word.importance for word in words)
    headline = plain(headlines.describe_text(words, weights))
    with dim_old_results(TEXT_KEY, latest.result is not result), slide(TEXT_KEY, headline):
        if latest.result.is_hardly_read:
            st.warning(plain(warn_of_unread("this text", latest.task.model.id)))
        with hide_on_stage("importance"):
            _show_importance(states, weights, provenance)
        if words:
            with show_only_on_stage("importance"):
                st.markdown(headlines.TEXT_IN_SHORT)
                st.markdown(plain(f"Text: {shorten(states.text.text, LONGEST_ON_STAGE)}"))
            n_named = headlines.count_named(words)
            figure, table = plots.word_shares_figure(words, n_named, punctuation)
            show_figure(figure, "shares-of-words", pd.DataFrame(table), provenance, height=330)


def _show_importance(states: TokenStates, weights: TokenWeights, provenance: About) -> None:
    """Draw the text, its words coloured by their share of the sentence vector."""
    shares, text = word_importance(states, weights.importance), states.text.text
    highest = max(float(shares.max(initial=0.0)), 1e-12)
    parts, words, end_before = [], [], 0
    for (start, end), share in zip(states.text.word_spans, shares, strict=False):
        words.append(text[start:end])
        tint = f"color-mix(in srgb, {GREEN} {STRONGEST * share / highest:.0f}%, transparent)"
        parts.append(
            f'{html.escape(text[end_before:start])}<span title="{share:.1%}" style="background: '
            f'{tint}; padding: 0.1em 0.12em; border-radius: 0.25em">'
            f"{html.escape(words[-1])}</span>"
        )
        end_before = max(end, end_before)
    token_words = states.text.words[: states.n_counted - states.n_prefix]
    table = pd.DataFrame(
        {
            "position": range(states.n_counted),
            "token": states.counted,
            "word": [""] * states.n_prefix + [words[i] for i in token_words],
            "importance": weights.importance,
        }
    )
    show_html(
        '<div dir="auto" style="font-size: 1.35em; line-height: 1.9; white-space: pre-wrap; '
        f'overflow-wrap: anywhere; max-height: 7.6em; overflow-y: auto">{"".join(parts)}</div>',
        f"{TEXT_KEY}-importance",
        title="Importance of tokens",
        files=table_files(table, "token-importance", provenance),
    )
    st.caption(f"Words in colour by importance, up to {highest:.1%}.")


def _show_maps(states: TokenStates, draw: Draw) -> None:
    """Draw the cosine map of a token or of their mean, and its offset diagonals."""
    st.subheader("How the vectors change direction", anchor=False)
    names = {MEAN: f"Mean over {many(states.n_counted, 'token')}"}
    names |= {i: f"{i}. {shorten(token, 40)}" for i, token in enumerate(states.tokens)}
    key = f"{TEXT_KEY}-token"
    remember_number(key, range(MEAN, len(states.tokens)), MEAN, states.tokens)
    token = st.selectbox(
        "Token",
        list(names),
        format_func=names.__getitem__,
        key=key,
        persist_state="session",
        width=360,
        help="The mean includes the text's tokens and [CLS], as in SBERT-WK.",
    )
    if token == MEAN:
        cosines, source, subject, value = (
            mean_map(states),
            "token mean",
            "words",
            "mean of 1 − cosine",
        )
    else:
        cosines = cosine_maps(states.vectors[:, token : token + 1])[0]
        source = subject = f"“{shorten(states.tokens[token], 20)}”"
        value = "1 − cosine"
    layers, diagonals = range(len(cosines)), offset_diagonals(cosines)
    table = pd.DataFrame(
        [
            (offset, layer, layer + offset, value)
            for offset, values in diagonals.items()
            for layer, value in enumerate(values)
        ],
        columns=["offset", "layer", "other layer", "cosine"],
    )
    with slide(f"{TEXT_KEY}-maps", plain(headlines.describe_map(cosines, subject, value))):
        map_column, diagonals_column = wide_columns(2, f"{TEXT_KEY}-maps")
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
    with slide(f"{TEXT_KEY}-weights"), allow_swiping(f"{TEXT_KEY}-scrolled", 720):
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


# --- the lens: what the model would predict from every layer --------------------------------------


LENS_KEY = "layers-lens"
LENS_RUNS = SessionRuns(LENS_KEY)
LONGEST_ON_STAGE = 400  # characters of a text
NO_TOKEN = -1  # chosen: the one that tells most is, before and after micro-tuning
TOKEN = f"{LENS_KEY}-token"  # session state and address: the place of the chosen token
AS_IT_IS, TRANSLATED = "As it is", "Translated"
NOT_TUNED = "None"


def _show_lens() -> None:
    inputs, output = wide_columns([1, 2], LENS_KEY)
    with inputs:
        model_id = choose_masked_model(MINILM)
        text = ask_text()
        choice = find_layers(model_id, shared_lens_model)
        if choice is None:
            return
        settings = _choose_tuned(*choice) if choice[0] else None
        reading = AS_IT_IS
        if model_id == BUNDLED:
            reading = choose_one(
                st.segmented_control,
                "Vectors of the layers",
                [TRANSLATED, AS_IT_IS],
                key=f"{LENS_KEY}-reading",
                help="Translated: an affine map, fitted for every layer, first makes its vectors "
                "like those of the last layer. As it is: the lower a layer, the odder its guesses.",
            )
    task = ReadLayers(ModelRef.from_id(model_id), text, settings, reading == TRANSLATED)
    run = LENS_RUNS.start(task)
    sentences = RunSentences(start="The model reads every layer …", done="")
    with output:
        draw = partial(_show_guesses, (text, model_id))
        show_run_panel(LENS_RUNS, run, draw, sentences=sentences, patience=PATIENCE)


def _choose_tuned(layers: Sequence[Layer], vocab_size: int) -> TuningSettings | None:
    """Ask for the part of the model that is tuned on the text: its head, or any block."""
    parts = dict(list_presets(layers, vocab_size))
    kinds = {layer.kind for layer in layers if layer.name in parts.get("Last block", ())}
    blocks = {layer.block for layer in layers if layer.block is not None}
    for block in sorted(blocks, reverse=True)[1:]:
        names = tuple(la.name for la in layers if la.block == block and la.kind in kinds)
        parts |= {f"Block {block + 1}": names} if names else {}
    part = st.selectbox(
        "Tuned on the text",
        [*parts, NOT_TUNED],
        key=f"{LENS_KEY}-tuned",
        help="The part of the model whose weights change, for ten epochs.",
        **REMEMBERED,
    )
    return None if part == NOT_TUNED else TuningSettings(parts[part], precision="fast")


def _show_guesses(data: tuple[str, str], read: ReadText | None, _live: bool) -> None:
    """Draw what is read from every layer, and where the chosen token takes the lead."""
    if read is None:
        return
    before, after = read.before, read.after
    chosen = remember_number(TOKEN, range(NO_TOKEN, len(before.tokens)), NO_TOKEN, data)
    position = before.find_telling(after) if chosen == NO_TOKEN else chosen
    n_tokens, n_all = len(before.tokens), len(before.text)
    provenance = About("Guesses by layer", {"text": shorten(before.text.text, 60)})
    with slide(LENS_KEY, plain(headlines.describe_lens(before, after, position))):
        if read.is_hardly_read:
            st.warning(plain(warn_of_unread("this text", data[1])))
        terms = headlines.explain_lens(before, after, position)
        with show_only_on_stage(LENS_KEY):
            st.markdown(plain(terms))
            if before.has_head:
                hidden = slice(*before.text.spans[before.tokens[position]].tolist())
                st.markdown(plain(f"Text: {_hide(before.text.text, hidden)}"))
        part = f" (first {n_tokens} of {n_all:,} tokens)" * (n_tokens < n_all)
        moments = {"before": before} | ({"after": after} if after else {})
        for moment, lens in moments.items():
            title = f"Guesses {moment} training on the text" if lens.has_head else "Nearest tokens"
            map_key = f"{LENS_KEY}-{moment}"
            with hide_on_stage(map_key), allow_swiping(f"{map_key}-wide", 80 + 55 * n_tokens):
                show_figure(
                    plots.lens_figure(lens, title + part, position),
                    f"lens-{moment}",
                    partial(_list_guesses, lens),
                    provenance,
                    key=map_key,
                    height=110 + 34 * lens.values.shape[1],
                    handlers=Handlers(click=_choose_token),
                )
        st.caption(plain(headlines.explain_guesses(before, plots.MOST_GUESSES)))
        sides = {moment: lens.values[position] for moment, lens in moments.items()}
        show_figure(
            plots.leads_figure(sides, before.names[position], has_head=before.has_head),
            "lens-token",
            pd.DataFrame({"layer": range(len(sides["before"])), **sides}),
            provenance,
            key=f"{LENS_KEY}-lead",
            height=300,
        )
        st.caption(plain(headlines.describe_lead(before, after, position)))


def _hide(text: str, hidden: slice) -> str:
    """A text with a blank, or as much around it as fits on the stage."""
    start = max(0, hidden.start - LONGEST_ON_STAGE // 2)
    seen = f"{text[start : hidden.start]}{BLANK}{text[hidden.stop :]}"
    return "… " * (start > 0) + shorten(seen, LONGEST_ON_STAGE)


def _choose_token(click: dict[str, Any]) -> None:
    st.session_state[TOKEN] = int(click["x"])


def _list_guesses(lens: Lens) -> pd.DataFrame:
    """A row for every token and layer."""
    rows = [
        (token, layer, lens.values[i, layer], lens.rank[i, layer], *words)
        for i, token in enumerate(lens.names)
        for layer, words in enumerate(lens.words[i])
    ]
    n, measure = len(lens.words[0][0]), "probability" if lens.has_head else "cosine"
    heads = ["token", "layer", measure, "rank", *(f"guess {k + 1}" for k in range(n))]
    return pd.DataFrame(rows, columns=heads)


TABS = {"Lens": _show_lens, "A text": _show_text}
