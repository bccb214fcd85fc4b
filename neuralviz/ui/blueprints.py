"""The page of the masking blueprints below its title: a text, blueprints, a grid of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines.micro_tuning import describe_guesses, describe_masks, warn_of_unread
from neuralviz.jobs.micro_tuning import PredictTokens
from neuralviz.micro_tuning import DEFAULT_BLUEPRINTS, Blueprint, mask_inputs, parse_blueprints
from neuralviz.micro_tuning.events import MaskedPredictions
from neuralviz.models import BUNDLED, TokenizedText, tokenize
from neuralviz.models.bundled import text_reader
from neuralviz.models.shared import ModelRef, shared_model
from neuralviz.plots.micro_tuning import MAX_ROWS, blueprint_grid
from neuralviz.plots.report import WORD_JOINER, About
from neuralviz.plots.theme import shorten
from neuralviz.ui.address import accept_former, read_new, read_numbers, write
from neuralviz.ui.choices import REMEMBERED, chosen_model_id, load_model_or_none, may_load
from neuralviz.ui.figures import Handlers, allow_swiping, show_figure
from neuralviz.ui.inputs import ALL_EXAMPLES, View, ask_text_fields, save_view
from neuralviz.ui.page import (
    find_page,
    plain,
    show_error,
    show_headline,
    show_only_on_stage,
    slide,
    wide_columns,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import many

PAGE, BLUEPRINTS = "grid", "grid-blueprints"  # the latter is the field's key
MASKED = f"{PAGE}-masked"  # session state and address: positions of tokens masked by hand
SHOWN_MASKED = f"{MASKED}-shown"  # session state: those that can be clicked
_MASKED_TEXT = f"{MASKED}-of"  # session state: the text that they are of
GUESSES = SessionRuns(f"{PAGE}-guesses")
PATIENCE = 0.6  # seconds
WINDOW = 40  # tokens drawn at once: more cannot be read from the back of a room
BLUEPRINTS_IN_SHORT = (
    "The model learns a text by predicting **masked** (hidden) tokens: words, or pieces of words "
    "(## continues a word). A **blueprint** tells how many tokens to keep and to mask by turns; "
    "each row moves it one token on, and **shift** tells by how many."
)
PAPERS_MIX = ", ".join(f"({keep}, {mask})" for keep, mask in DEFAULT_BLUEPRINTS)
EXAMPLES = {
    name: {f"{PAGE}-text": text, BLUEPRINTS: "".join(blueprints) or PAPERS_MIX}
    for name, (text, *blueprints) in ALL_EXAMPLES["blueprints"].items()
}


def show() -> None:
    text_column, blueprints_column = wide_columns([3, 2], PAGE)
    accept_former({"blueprints": BLUEPRINTS})
    typed = blueprints_column.text_input(
        "Blueprints (keep, mask)",
        PAPERS_MIX,
        key=BLUEPRINTS,
        bind="query-params",
        help="For example (2, 1), (1, 3). Edit the list and press Enter.",
    )
    with text_column:
        first_text = EXAMPLES["A sentence"][f"{PAGE}-text"]
        (typed_text,) = ask_text_fields(PAGE, {"Text": first_text}, EXAMPLES)
    model_id = chosen_model_id()
    reader = text_reader() if model_id == BUNDLED else load_model_or_none(model_id, shared_model)
    if reader is None:
        return
    try:
        blueprints = parse_blueprints(typed or "")
        (text,) = tokenize(reader, [typed_text])
    except NeuralvizError as error:
        show_error(error)
        return
    if blueprints_column.button("Tune with these", icon=":material/trending_down:"):
        _open_micro_tuning(text.text, blueprints)
    if text.is_spelt_out:  # what else it hardly reads, only the model's guesses tell
        st.warning(plain(warn_of_unread("this text", model_id)))
    _show_grid(text, blueprints)


def _open_micro_tuning(text: str, blueprints: Sequence[Blueprint]) -> None:
    """Open the Micro-tuning page with the text and the blueprints."""
    address = {"blueprints": ", ".join(map(str, blueprints))}
    with suppress(OSError):  # the page then opens with its own text
        address["view"] = save_view(View((text,)))
    st.switch_page(find_page("Micro-tuning"), query_params=address)


def _show_grid(text: TokenizedText, blueprints: tuple[Blueprint, ...]) -> None:
    number = _choose_chunk(text)
    chunk = text.chunks[number - 1]
    tokens = text.tokens[chunk]
    inputs = mask_inputs(len(tokens), blueprints)
    window = _choose_window(len(tokens))
    masked = _ask_masks(text, chunk, window)
    if masked:  # of this chunk, also beyond the window
        _show_guesses(text, number - 1, masked)
    n_inputs = len(inputs.masked)
    if n_inputs > MAX_ROWS:
        st.caption(f"Showing the first {MAX_ROWS} of {n_inputs:,} masked inputs.")
    listed = ", ".join(map(str, blueprints))
    with slide(PAGE, describe_masks(inputs)):
        with show_only_on_stage(PAGE):
            shown = f"tokens {window[0] + 1} to {window[-1] + 1} of {len(tokens):,}"
            is_part = len(window) < len(tokens)
            st.markdown(BLUEPRINTS_IN_SHORT + f" Drawn: {shown}." * is_part)
        with allow_swiping("blueprint-grid", 70 + 22 * len(window)):
            show_figure(
                blueprint_grid(
                    inputs, blueprints, tokens, window, [i - chunk.start for i in masked]
                ),
                "masking-blueprints",
                alt=f"{many(n_inputs, 'masked input')} of {many(len(tokens), 'token')}",
                handlers=Handlers(click=partial(_toggle_mask, chunk.start)),
                provenance=About(
                    "Masked inputs by blueprint and shift",
                    {"text": shorten(text.text, 60), "blueprints": listed},
                    files=(text.text, listed),
                ),
            )


def _ask_masks(text: TokenizedText, chunk: slice, window: range) -> list[int]:
    """Click tokens of a window; the tokens of the chunk masked by hand, as indices in the text."""
    options = [chunk.start + place + 1 for place in window]
    if (linked := read_new(MASKED)) is not None:
        st.session_state[MASKED] = list(read_numbers(linked))
    elif st.session_state.get(_MASKED_TEXT, text.text) != text.text:
        st.session_state[MASKED] = []
    st.session_state[_MASKED_TEXT] = text.text
    positions = range(1, len(text) + 1)
    masked = sorted(set(st.session_state.get(MASKED) or []).intersection(positions))
    st.session_state[MASKED] = masked
    st.session_state[SHOWN_MASKED] = [position for position in masked if position in options]

    def keep_others() -> None:
        others = set(st.session_state[MASKED]).difference(options)
        st.session_state[MASKED] = sorted(others.union(st.session_state[SHOWN_MASKED]))

    st.pills(
        "Click tokens to mask them by hand",
        options,
        selection_mode="multi",
        # two options of one name would be one
        format_func=lambda position: plain(text.tokens[position - 1]) + WORD_JOINER * position,
        key=SHOWN_MASKED,
        on_change=keep_others,
    )
    write({MASKED: ",".join(map(str, masked))})
    return [position - 1 for position in masked if chunk.start < position <= chunk.stop]


def _toggle_mask(first: int, click: dict[str, Any]) -> None:
    """Mask the token of the column that was clicked, or unmask it."""
    masked = set(st.session_state.get(MASKED) or [])
    st.session_state[MASKED] = sorted(masked ^ {first + int(click["x"])})


def _show_guesses(text: TokenizedText, chunk: int, masked: Sequence[int]) -> None:
    """What the model predicts for tokens that are masked by hand."""
    model_id = chosen_model_id()
    if not may_load(model_id):
        return
    task = PredictTokens(ModelRef.from_id(model_id), text.text, chunk, tuple(masked))

    def show_sentence(predictions: MaskedPredictions | None, _live: bool) -> None:
        if predictions is not None:
            sentence = plain(describe_guesses(text.tokens, predictions))
            show_headline(sentence, key=f"{PAGE}-guesses")

    sentences = RunSentences(start="The model reads the tokens …", done="")
    show_run_panel(
        GUESSES, GUESSES.start(task), show_sentence, sentences=sentences, patience=PATIENCE
    )


def _choose_chunk(text: TokenizedText) -> int:
    """The number of a chunk, from 1."""
    n_chunks = len(text.chunks)
    if n_chunks == 1:
        return 1
    key = f"{PAGE}-chunk"
    st.session_state[key] = min(st.session_state.get(key, 1), n_chunks)
    number = st.number_input(
        f"Chunk (1 to {n_chunks})",
        1,
        n_chunks,
        key=key,
        **REMEMBERED,
        help=(
            "A text longer than the model's window is split between sentences. Each chunk "
            "is masked separately; the model learns from the inputs of all chunks in one step."
        ),
    )
    chunk = text.chunks[number - 1]
    st.caption(
        f"The text has {len(text):,} tokens, more than fit in the model's window. Showing "
        f"chunk {number} of {n_chunks}: tokens {chunk.start + 1:,} to {chunk.stop:,}."
    )
    return number


def _choose_window(n_tokens: int) -> range:
    if n_tokens <= WINDOW:
        return range(n_tokens)
    key = f"{PAGE}-first"
    last = n_tokens - WINDOW + 1
    st.session_state[key] = min(st.session_state.get(key, 1), last)
    label = f"First token to show ({WINDOW} of {n_tokens:,} at a time)"
    first = st.slider(label, 1, last, key=key, **REMEMBERED)
    return range(first - 1, first - 1 + WINDOW)
