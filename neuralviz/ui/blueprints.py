"""The page of the masking blueprints below its title: a text, blueprints, a grid of inputs."""

from __future__ import annotations

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines.micro_tuning import describe_masks
from neuralviz.micro_tuning import DEFAULT_BLUEPRINTS, Blueprint, mask_inputs, parse_blueprints
from neuralviz.models import BUNDLED, TokenizedText, tokenize
from neuralviz.models.bundled import text_reader
from neuralviz.models.shared import shared_model
from neuralviz.plots.micro_tuning import MAX_ROWS, blueprint_grid
from neuralviz.plots.report import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import chosen_model_id, load_model_or_none
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.inputs import ALL_EXAMPLES, ask_text_fields
from neuralviz.ui.page import show_error, slide, wide_columns
from neuralviz.words import many

PAGE, BLUEPRINTS = "grid", "blueprints"  # the latter is the field's key, in the address, too
WINDOW = 40  # tokens drawn at once: more cannot be read from the back of a room
PAPERS_MIX = ", ".join(f"({keep}, {mask})" for keep, mask in DEFAULT_BLUEPRINTS)
EXAMPLES = {
    name: {f"{PAGE}-text": text, BLUEPRINTS: "".join(blueprints) or PAPERS_MIX}
    for name, (text, *blueprints) in ALL_EXAMPLES["blueprints"].items()
}


def show() -> None:
    text_column, blueprints_column = wide_columns([3, 2], PAGE)
    st.session_state.setdefault(BLUEPRINTS, PAPERS_MIX)
    typed = blueprints_column.text_input(
        "Blueprints (keep, mask)",
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
    _show_grid(text, blueprints)


def _show_grid(text: TokenizedText, blueprints: tuple[Blueprint, ...]) -> None:
    tokens = text.tokens[_choose_chunk(text)]
    inputs = mask_inputs(len(tokens), blueprints)
    window = _choose_window(len(tokens))
    n_inputs = len(inputs.masked)
    if n_inputs > MAX_ROWS:
        st.caption(f"Showing the first {MAX_ROWS} of {n_inputs:,} masked inputs.")
    listed = ", ".join(map(str, blueprints))
    with (
        slide(PAGE, describe_masks(inputs)),
        allow_swiping("blueprint-grid", 70 + 22 * len(window)),
    ):
        show_figure(
            blueprint_grid(inputs, blueprints, tokens, window),
            "masking-blueprints",
            alt=f"{many(n_inputs, 'masked input')} of {many(len(tokens), 'token')}",
            provenance=About(
                "Masked inputs by blueprint and shift",
                {"text": shorten(text.text, 60), "blueprints": listed},
                files=(text.text, listed),
            ),
        )


def _choose_chunk(text: TokenizedText) -> slice:
    n_chunks = len(text.chunks)
    if n_chunks == 1:
        return text.chunks[0]
    key = f"{PAGE}-chunk"
    st.session_state[key] = min(st.session_state.get(key, 1), n_chunks)
    number = st.number_input(
        f"Chunk (1 to {n_chunks})",
        1,
        n_chunks,
        key=key,
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
    return chunk


def _choose_window(n_tokens: int) -> range:
    if n_tokens <= WINDOW:
        return range(n_tokens)
    key = f"{PAGE}-first"
    last = n_tokens - WINDOW + 1
    st.session_state[key] = min(st.session_state.get(key, 1), last)
    first = st.slider(f"First token to show ({WINDOW} of {n_tokens:,} at a time)", 1, last, key=key)
    return range(first - 1, first - 1 + WINDOW)
