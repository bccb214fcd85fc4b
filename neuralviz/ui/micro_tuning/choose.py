"""The widgets for the settings of a micro-tuning run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.micro_tuning import TuningSettings, parse_blueprints
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    check_numbers,
    check_tolerance,
    is_fast,
)
from neuralviz.models import BUNDLED, bundled
from neuralviz.models.language_model import Layer, head_layers, last_block_layers, list_layers
from neuralviz.models.shared import shared_model
from neuralviz.plots.micro_tuning import short_layer_names
from neuralviz.ui.choices import REMEMBERED, choose_one, choose_precision, load_model_or_none
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

LONG_WORK_SECONDS = 60
MASKED_TOKENS_PER_SECOND = 4000  # per epoch: two cores, the bundled model's head, exact
FAST_EPOCH = 0.15  # duration relative to an exact epoch, after the first
SHORT_WORK = 20_000  # characters times epochs: too short to announce its duration


def find_layers(model_id: str) -> tuple[tuple[Layer, ...], int] | None:
    """1-D parameters and vocabulary size, the bundled model's without loading it."""
    if model_id == BUNDLED:
        shapes = bundled.shapes()
        return list_layers(shapes, "bert"), shapes["cls.predictions.bias"][0]
    model = load_model_or_none(model_id, shared_model)
    return None if model is None else (model.layers, model.vocab_size)


def list_presets(layers: Sequence[Layer], vocab_size: int) -> dict[str, tuple[str, ...]]:
    """Names of the layers that are often tuned together."""
    presets = {"Head": head_layers(layers, vocab_size), "Last block": last_block_layers(layers)}
    if presets["Last block"]:
        kind = next(layer.kind for layer in layers if layer.name == presets["Last block"][-1])
        presets["Every block"] = tuple(
            layer.name for layer in layers if layer.block is not None and layer.kind == kind
        )
    return {name: chosen for name, chosen in presets.items() if chosen}


def ask_settings(layers: Sequence[Layer], vocab_size: int) -> TuningSettings | None:
    """Ask for the settings of a run; None, with a message, where one is not valid."""
    with st.expander(
        "Settings", icon=":material/tune:", key="settings", on_change="rerun"
    ) as place:
        chosen = _choose_layers(layers, vocab_size)
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
        epochs, learning_rate = ask_epochs_and_rate("epochs", "learning_rate")
        precision = choose_precision("precision", "exact")
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
        unmasked = st.toggle(
            "Predict all tokens without masking",
            key="unmasked",
            bind="query-params",
            help="The paper found that this works too, but less well.",
        )
    try:
        check_tolerance(tolerance)
        settings = check_choices(
            chosen,
            epochs,
            learning_rate,
            blueprints=parse_blueprints(blueprints or ""),
            predict_unmasked=unmasked,
            precision=precision,
            tolerance=tolerance,
        )
    except NeuralvizError as error:
        show_error(error)
        return None
    if settings.precision != "exact" and not place.open:
        st.caption(f"Precision: {settings.precision_in_words}.")
    return settings


def ask_epochs_and_rate(epochs_key: str, rate_key: str) -> tuple[int, float]:
    epochs = st.number_input(
        "Epochs",
        value=TuningSettings.epochs,
        step=1,
        key=epochs_key,
        **REMEMBERED,
        help="Number of passes over all masked inputs of a text, from 1 to 1000.",
    )
    learning_rate = st.number_input(
        "Learning rate",
        value=TuningSettings.learning_rate,
        step=0.005,
        format="%g",
        key=rate_key,
        **REMEMBERED,
        help="AdamW's learning rate. The paper uses 0.01.",
    )
    return epochs, learning_rate


def announce_duration(texts: Sequence[str], settings: TuningSettings) -> None:
    """Say how long a run will take, if that is minutes."""
    if sum(map(len, texts)) * settings.epochs < SHORT_WORK:
        return
    encodings = bundled.text_reader().encoder.encode_batch(list(texts), add_special_tokens=False)
    n_tokens = sum(map(len, encodings))
    # a period of k + m shifts masks every token m times
    times_masked = sum(blueprint.mask for blueprint in settings.blueprints)
    if settings.predict_unmasked:
        times_masked = 1
    epochs = 1 + (settings.epochs - 1) * (FAST_EPOCH if settings.is_fast else 1)
    seconds = n_tokens * times_masked * epochs / MASKED_TOKENS_PER_SECOND
    if seconds > LONG_WORK_SECONDS:
        st.info(
            f"About {many(math.ceil(seconds / 60), 'minute')} on two cores with the bundled model. "
            "You can stop at any time and keep what there is.",
            icon=":material/schedule:",
        )


def check_choices(
    layers: Sequence[str], epochs: int, learning_rate: float, **settings: Any
) -> TuningSettings:
    """The settings of a run from the widgets' values; raises SettingsError if one is not valid."""
    check_numbers(epochs, learning_rate, TuningSettings.weight_decay)
    if not layers:
        raise SettingsError("Choose at least one layer.")
    return TuningSettings(tuple(layers), epochs=epochs, learning_rate=learning_rate, **settings)


def _choose_layers(layers: Sequence[Layer], vocab_size: int) -> tuple[str, ...]:
    presets = list_presets(layers, vocab_size)
    first = next(iter(presets), "Choose")
    preset = choose_one(st.pills, "Layers", [*presets, "Choose"], default=first, key="layers")
    if preset != "Choose":
        st.caption(plain(", ".join(short_layer_names(presets[preset]))))
        return presets[preset]
    labels = {
        layer.name: f"{layer.part if layer.block is None else f'block {layer.block}'} · "
        f"{layer.kind} ({layer.size:,})"
        for layer in layers
    }
    return tuple(
        st.multiselect(
            "Layers (1-D parameters), by block",
            list(labels),
            default=list(presets.get(first, ())),
            format_func=labels.__getitem__,
            key="chosen-layers",
            bind="query-params",
            help=(
                "The key biases of attention cannot change the model's output; their delta "
                "is noise."
            ),
        )
    )
