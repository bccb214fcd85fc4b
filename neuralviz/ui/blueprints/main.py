"""The page of the masking blueprints below its title: a text, blueprints, a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines.micro_tuning import describe_masks
from neuralviz.micro_tuning import DEFAULT_BLUEPRINTS, mask_inputs, parse_blueprints
from neuralviz.models import BUNDLED, tokenize
from neuralviz.models.bundled import text_reader
from neuralviz.models.shared import shared_model
from neuralviz.plots.blueprints import MAX_ROWS, blueprint_grid, grid_height
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.model_choice import chosen_model_id, load_model_or_stop
from neuralviz.ui.page import dim_old_results, show_error, wide_columns
from neuralviz.ui.stage import slide
from neuralviz.ui.texts import ask_text_fields, field_keys, show_example_pills
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.micro_tuning import Blueprint
    from neuralviz.micro_tuning.blueprints import MaskedInputs
    from neuralviz.models import TextModel, TokenizedText
    from neuralviz.models.bundled import TextReader

PAGE = "grid"
BLUEPRINTS = "blueprints"  # the field's key, in the session and in the address
WINDOW = 40  # tokens drawn at once: more cannot be read from the back of a room
PAPERS_MIX = ", ".join(f"({keep}, {mask})" for keep, mask in DEFAULT_BLUEPRINTS)
EXAMPLES = {
    "A sentence": ("A cat that purrs is a cat that trusts you.", PAPERS_MIX),
    "The paper's Figure 9": ("The ball rolled down the hill", PAPERS_MIX),
    "Rare words": ("The neuroscientist photographed bioluminescent jellyfish.", "(3, 1), (1, 3)"),
    "A long text": (
        "The lighthouse had no keeper any more, but every evening at six its lamp came on. "
        "Children in the village said that it was the old keeper's cat who pressed the switch. "
        "Their parents knew of a timer in the cellar, bought when the last keeper retired. "
        "Then came the winter in which the power failed for eleven days. The bakery closed, the "
        "school closed, and the fishing boats stayed in the harbour. Yet every evening at six "
        "the lamp came on, and its beam went round over the black water as it always had. On the "
        "twelfth day two men climbed the stairs to see how that could be. They found the timer "
        "stopped at noon, a cold lamp, and on the window sill a grey cat, fast asleep.",
        "(5, 1), (2, 1)",
    ),
}


@dataclass(frozen=True)
class Grid:
    """A text and the list of blueprints it is shown with."""

    text: TokenizedText
    blueprints: tuple[Blueprint, ...]
    mask: str


def show() -> None:
    """Draw the page: a text, blueprints, and the grid of their masked inputs."""
    place = st.container()
    inputs, output = wide_columns([3, 2], PAGE)
    with inputs:
        (text,) = ask_text_fields(PAGE, {"Text": EXAMPLES["A sentence"][0]})
    with output:
        st.session_state.setdefault(BLUEPRINTS, PAPERS_MIX)
        typed = st.text_input(
            "Blueprints (keep, mask)",
            key=BLUEPRINTS,
            bind="query-params",
            help="For example (2, 1), (1, 3). Edit the list and press Enter.",
        )
    keys = field_keys(PAGE, ["Text"])
    examples = {name: {keys[0]: text, BLUEPRINTS: mix} for name, (text, mix) in EXAMPLES.items()}
    with place:
        show_example_pills(PAGE, examples, keys)
    grid, is_old = _ask_grid(text, typed or "")
    if grid is not None:
        with dim_old_results(PAGE, is_old):
            _show_grid(grid)


def _ask_grid(text: str, typed: str) -> tuple[Grid | None, bool]:
    """The grid of the inputs, else the last valid grid with an error message; whether it is old."""
    model_id = chosen_model_id()
    reader = text_reader() if model_id == BUNDLED else load_model_or_stop(model_id, shared_model)
    last: Grid | None = st.session_state.get(f"{PAGE}-last")
    try:
        blueprints = parse_blueprints(typed)
        tokens = _tokenize(getattr(reader, "fingerprint", model_id), text, reader)
    except NeuralvizError as error:
        show_error(error, "Showing the last valid input." if last else "")
        return last, True
    grid = Grid(tokens, blueprints, reader.encoder.id_to_token(reader.mask_id) or "[MASK]")
    st.session_state[f"{PAGE}-last"] = grid
    return grid, False


@st.cache_data(max_entries=16, show_spinner="Tokenizing …")
def _tokenize(fingerprint: str, text: str, _reader: TextModel | TextReader) -> TokenizedText:
    return tokenize(_reader, [text])[0]


def _show_grid(grid: Grid) -> None:
    chunk = _choose_chunk(grid.text)
    tokens = grid.text.tokens[chunk]
    inputs = mask_inputs(len(tokens), grid.blueprints)
    window = _choose_window(len(tokens))
    if len(inputs.masked) > MAX_ROWS:
        st.caption(
            f"Showing the first {MAX_ROWS} of {len(inputs.masked):,} masked inputs. Counts "
            "and downloads include all of them."
        )
    with slide(PAGE):
        show_headline(describe_masks(inputs), key=PAGE)
        with allow_swiping("blueprint-grid", 70 + 22 * len(window)):
            show_figure(
                blueprint_grid(inputs, grid.blueprints, tokens, window),
                key="grid",
                numbers=lambda: _make_table(inputs, grid.blueprints, tokens),
                name="masking-blueprints",
                height=grid_height(inputs, tokens[window.start : window.stop]),
                alt=f"{many(len(inputs.masked), 'masked input')} of {many(len(tokens), 'token')}",
                provenance=_describe_settings(grid),
            )
    _show_counts(inputs)
    with st.expander("The masked inputs as the model sees them"):
        table = _make_sentence_table(inputs, grid, tokens, window)
        st.dataframe(table, hide_index=True, width="stretch")


def _describe_settings(grid: Grid) -> About:
    return About(
        "Masked inputs by blueprint and shift",
        {
            "text": shorten(grid.text.text, 60),
            "blueprints": ", ".join(map(str, grid.blueprints)),
        },
        files=(grid.text.text, " ".join(map(str, grid.blueprints))),
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


def _show_counts(inputs: MaskedInputs) -> None:
    times = inputs.times_masked
    often = f"{times.min()}" if times.min() == times.max() else f"{times.min()} to {times.max()}"
    with st.container(horizontal=True, gap="medium"):
        st.metric("Masked inputs", f"{len(inputs.masked):,}", width="content")
        st.metric(
            "Masked positions",
            f"{inputs.masked.sum():,}",
            help=(
                f"Out of {inputs.masked.size:,} positions: "
                f"{many(len(inputs.masked), 'masked input')} of {many(len(times), 'token')} each."
            ),
            width="content",
        )
        st.metric("Times each token is masked", often, width="content")


def _make_table(
    inputs: MaskedInputs, blueprints: tuple[Blueprint, ...], tokens: tuple[str, ...]
) -> pd.DataFrame:
    """A row for every input and token of the chunk."""
    n_inputs, n_tokens = inputs.masked.shape
    inputs_table = pd.DataFrame(
        {
            "input": range(1, n_inputs + 1),
            "keep": [blueprints[i].keep for i in inputs.blueprint],
            "mask": [blueprints[i].mask for i in inputs.blueprint],
            "shift": inputs.shift,
        }
    )
    tokens_table = pd.DataFrame({"position": range(1, n_tokens + 1), "token": tokens})
    return inputs_table.merge(tokens_table, how="cross").assign(masked=inputs.masked.ravel())


def _make_sentence_table(
    inputs: MaskedInputs, grid: Grid, tokens: tuple[str, ...], window: range
) -> pd.DataFrame:
    tokens_in_window = [tokens[i] for i in window]
    rows = inputs.masked[:MAX_ROWS, window.start : window.stop]
    return pd.DataFrame(
        {
            "blueprint": [str(grid.blueprints[i]) for i in inputs.blueprint[:MAX_ROWS]],
            "shift": inputs.shift[:MAX_ROWS],
            "masked input": [
                " ".join(
                    grid.mask if masked else token
                    for token, masked in zip(tokens_in_window, row, strict=True)
                )
                for row in rows
            ],
        }
    )
