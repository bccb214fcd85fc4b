"""The settings of a run on the micro-tuning page, and the widgets for them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.micro_tuning import TuningSettings, parse_blueprints
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    Precision,
    check_numbers,
    check_tolerance,
    is_fast,
)
from neuralviz.models import BUNDLED, bundled
from neuralviz.models.language_model import head_layers, last_block_layers, list_layers
from neuralviz.models.shared import shared_model
from neuralviz.plots.micro_tuning import short_layer_names
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import choose_one, choose_precision
from neuralviz.ui.model_choice import load_model_or_none
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.models.language_model import Layer

LONG_WORK_SECONDS = 60
MASKED_TOKENS_PER_SECOND = 4000  # per epoch: two cores, the bundled model's head, exact
FAST_EPOCH = 0.15  # duration relative to an exact epoch, after the first
SHORT_WORK = 20_000  # characters times epochs: too short to announce its duration


@dataclass(frozen=True)
class Inputs:
    """The values of the widgets before a run.

    Attributes:
        settings: of a run; None where they are not valid, which the page has explained.
        button: the place of the button that starts a run.
    """

    settings: TuningSettings | None
    button: DeltaGenerator


def ask_settings(model_id: str, texts: Sequence[str]) -> Inputs | None:
    """Widgets for the settings of a run; None without a model, which the page has explained."""
    choice = available_layers(model_id)
    if choice is None:
        return None
    button = st.container()
    folder = st.expander("Settings", icon=":material/tune:", key="settings", on_change="rerun")
    with folder:
        layers = choose_layers(*choice)
        blueprints = st.text_input(
            "Blueprints (keep, mask)",
            "(2, 1), (1, 1), (1, 2), (1, 3)",
            key="blueprints",
            bind="query-params",
            help=(
                "(2, 1) keeps two tokens, masks the next one, and repeats. Each shift of this "
                "pattern gives one masked input. See the Masking blueprints page."
            ),
        )
        epochs, learning_rate = ask_epochs_and_rate((folder, folder), "epochs", "learning_rate")
        precision = choose_precision("Precision", "precision", "exact")
        tolerance = DEFAULT_TOLERANCE
        if is_fast(precision):
            tolerance = st.number_input(
                "Tolerance",
                value=DEFAULT_TOLERANCE,
                step=0.001,
                format="%g",
                key="tolerance",
                bind="query-params",
                help=(
                    "How far the cosine similarity of a fast embedding to the exact one "
                    "may fall below 1."
                ),
            )
        error_place = st.container()
        unmasked = st.toggle(
            "Predict all tokens without masking",
            key="unmasked",
            bind="query-params",
            help="The paper found that this works too, but less well.",
        )

    settings = None
    try:
        settings = run_settings(
            layers, blueprints or "", epochs, learning_rate, unmasked, precision, tolerance
        )
        if settings.precision != "exact" and not folder.open:
            st.caption(f"Precision: {settings.precision_in_words}.")
        announce_duration(texts, settings)
    except NeuralvizError as error:
        with error_place if folder.open else st.container():
            show_error(error)
    return Inputs(settings, button)


def ask_epochs_and_rate(
    places: Sequence[DeltaGenerator], epochs_key: str, rate_key: str
) -> tuple[int, float]:
    """Widgets for the number of epochs and the learning rate.

    Args:
        places: of the two widgets.
        epochs_key, rate_key: their keys; a link brings both back, as does another visit.
    """
    epochs = places[0].number_input(
        "Epochs",
        value=TuningSettings.epochs,
        step=1,
        key=epochs_key,
        bind="query-params",
        persist_state="session",
        help="Number of passes over all masked inputs of a text, from 1 to 1000.",
    )
    learning_rate = places[1].number_input(
        "Learning rate",
        value=TuningSettings.learning_rate,
        step=0.005,
        format="%g",
        key=rate_key,
        bind="query-params",
        persist_state="session",
        help="AdamW's learning rate. The paper uses 0.01.",
    )
    return epochs, learning_rate


def pick_text(record: RunRecord) -> int:
    """A box that chooses a text of a run; other runs on the same texts keep the choice."""
    if len(record.texts) == 1:
        return 0
    return st.selectbox(
        "Look at text",
        range(len(record.texts)),
        format_func=lambda i: f"{i + 1}. {shorten(record.texts[i], 60)}",
        key=f"look-at-{texts_key(record)}",
        persist_state="session",
    )


def texts_key(record: RunRecord) -> str:
    """A digest of a run's texts, for the keys of widgets."""
    return hashlib.blake2b(repr(record.texts).encode(), digest_size=8).hexdigest()


def available_layers(model_id: str) -> tuple[tuple[Layer, ...], int] | None:
    """1-D parameters and vocabulary size; of the bundled model without loading it.

    None when the model is not available yet; the page has said so.
    """
    if model_id == BUNDLED:
        shapes = bundled.shapes()
        return list_layers(shapes, "bert"), shapes["cls.predictions.bias"][0]
    model = load_model_or_none(model_id, shared_model)
    return None if model is None else (model.layers, model.vocab_size)


def choose_layers(layers: Sequence[Layer], vocab_size: int) -> tuple[str, ...]:
    """Widgets for the layers to tune; the names of the chosen ones."""
    presets = _presets(layers, vocab_size)
    first = next(iter(presets), "Choose")
    preset = choose_one(st.pills, "Layers", [*presets, "Choose"], default=first, key="layers")
    if preset != "Choose":
        chosen = presets[preset]
        st.caption(plain(", ".join(short_layer_names(chosen))))
        return chosen
    by_name = {layer.name: layer for layer in layers}
    return tuple(
        st.multiselect(
            "Layers (1-D parameters), by block",
            list(by_name),
            default=list(presets.get(first, ())),
            format_func=lambda name: _describe_layer(by_name[name]),
            key="chosen-layers",
            bind="query-params",
            help=(
                "The key biases of attention cannot change the model's output; their delta "
                "is noise."
            ),
        )
    )


def _describe_layer(layer: Layer) -> str:
    place = layer.part if layer.block is None else f"block {layer.block}"
    return f"{place} · {layer.kind} ({layer.size:,})"


def _presets(layers: Sequence[Layer], vocab_size: int) -> dict[str, tuple[str, ...]]:
    presets = {"Head": head_layers(layers, vocab_size), "Last block": last_block_layers(layers)}
    if presets["Last block"]:
        last = next(la for la in layers if la.name == presets["Last block"][-1])
        presets["Every block"] = tuple(
            la.name for la in layers if la.block is not None and la.kind == last.kind
        )
    return {name: chosen for name, chosen in presets.items() if chosen}


def run_settings(
    layers: Sequence[str],
    blueprints: str,
    epochs: int,
    learning_rate: float,
    unmasked: bool,
    precision: Precision = "exact",
    tolerance: float = DEFAULT_TOLERANCE,
) -> TuningSettings:
    """The settings of a run, from what the widgets hold.

    Raises:
        SettingsError: one is not valid.
    """
    check_numbers(epochs, learning_rate, TuningSettings.weight_decay)
    check_tolerance(tolerance)
    if not layers:
        raise SettingsError("Choose at least one layer.")
    return TuningSettings(
        layers=tuple(layers),
        blueprints=parse_blueprints(blueprints),
        epochs=epochs,
        learning_rate=learning_rate,
        predict_unmasked=unmasked,
        precision=precision,
        tolerance=tolerance,
    )


def announce_duration(texts: Sequence[str], settings: TuningSettings) -> None:
    """Say how long a run will take, if that is minutes."""
    if sum(map(len, texts)) * settings.epochs < SHORT_WORK:
        return
    reader = bundled.text_reader().encoder
    n_tokens = sum(map(len, reader.encode_batch(list(texts), add_special_tokens=False)))
    # a period of k + m shifts masks every token m times
    times_masked = sum(blueprint.mask for blueprint in settings.blueprints)
    if settings.predict_unmasked:
        times_masked = 1
    epochs = 1 + (settings.epochs - 1) * (FAST_EPOCH if settings.is_fast else 1)
    seconds = n_tokens * times_masked * epochs / MASKED_TOKENS_PER_SECOND
    if seconds > LONG_WORK_SECONDS:
        minutes = math.ceil(seconds / 60)
        st.info(
            (
                f"{n_tokens:,} tokens take about {many(minutes, 'minute')} on two cores with the "
                "bundled model. You can stop at any time and keep the losses, deltas and "
                "embeddings so far; word shares and predictions are shown only for finished texts."
            ),
            icon=":material/schedule:",
        )
