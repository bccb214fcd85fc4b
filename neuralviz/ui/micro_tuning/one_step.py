"""Opens the Compare page with a run's gradient, its first epoch, and the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders import embedder_spec
from neuralviz.jobs.comparing import Compare
from neuralviz.micro_tuning.blueprints import DEFAULT_BLUEPRINTS
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models import BUNDLED, bundled
from neuralviz.models.language_model import head_layers, last_block_layers, list_layers
from neuralviz.models.shared import is_held, shared_model
from neuralviz.paths import app_folder
from neuralviz.ui.compare.main import MAX_TEXTS, RUNS
from neuralviz.ui.links import View, save_once
from neuralviz.ui.method_choice import NOTHING
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.models.language_model import Layer


def one_step_methods(record: RunRecord) -> tuple[tuple[str, dict[str, str]], ...]:
    """Three methods with a run's settings, as a user would type them: name, and options by name.

    They are `gradient`, `neural` with one epoch, and `neural` as it was run.
    """
    settings = record.settings
    shared = {"layers": _layers_as_typed(record), "model": record.model_id}
    if settings.blueprints != DEFAULT_BLUEPRINTS:
        shared["blueprints"] = ", ".join(map(str, settings.blueprints))
    if settings.predict_unmasked:
        shared["predict_unmasked"] = "yes"
    learnt = {**shared, "precision": settings.precision}
    if settings.learning_rate != TuningSettings.learning_rate:
        learnt["learning_rate"] = str(settings.learning_rate)
    if settings.is_fast:
        learnt["tolerance"] = str(settings.tolerance)
    return (
        ("gradient", shared),
        ("neural", {**learnt, "epochs": "1"}),
        ("neural", {**learnt, "epochs": str(settings.epochs)}),
    )


def one_step_address(record: RunRecord) -> dict[str, str]:
    """The query parameters that open the Compare page with the three methods."""
    address = {"m4": NOTHING}
    for place, (method, options) in enumerate(one_step_methods(record), 1):
        address[f"m{place}"] = method
        address |= {f"m{place}-{method}-{name}": value for name, value in options.items()}
    return address


def start_one_step(record: RunRecord) -> str:
    """Start the comparison of the three methods, unless it has been made; the id of its view.

    Raises:
        OSError: the texts cannot be kept on this machine.
    """
    texts = record.texts[:MAX_TEXTS]
    view = save_once(View(texts))
    specs = [embedder_spec(method, options) for method, options in one_step_methods(record)]
    task = Compare.for_current_models(specs, texts)
    run = RUNS.recall(task, view)
    if run is None or run.status in ("failed", "stopped"):
        RUNS.start(task, again=True, view=view)
    return view


def _layers_as_typed(record: RunRecord) -> str:
    """The run's layers as the option *layers* takes them: ``head``, ``last_block``, or names."""
    chosen, vocab_size = record.settings.layers, 0
    layers: Sequence[Layer] = ()
    if record.model_id == BUNDLED:
        shapes = bundled.shapes()
        layers, vocab_size = list_layers(shapes, "bert"), shapes["cls.predictions.bias"][0]
    elif is_held("masked", record.model_id):
        model = shared_model(record.model_id)
        layers, vocab_size = model.layers, model.vocab_size
    if chosen == head_layers(layers, vocab_size):
        return "head"
    return "last_block" if chosen == last_block_layers(layers) else ",".join(chosen)


def offer_one_step(record: RunRecord, key: str) -> None:
    """A button that compares a run of several epochs with its first step."""
    if len(record.texts) < 2 or record.settings.epochs < 2:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(
            "Compare with one step",
            icon=":material/compare_arrows:",
            key=f"{key}-one-step",
            help=(
                "AdamW's first step moves every weight by about the learning rate: the delta of "
                "one epoch is the sign of the gradient."
            ),
        )
        st.caption(
            "Are the texts as similar by their gradient, and after one epoch, as after "
            f"{many(record.settings.epochs, 'epoch')}? The answer opens on the Compare page."
        )
    if pressed:
        address = one_step_address(record)
        try:
            address["view"] = start_one_step(record)
        except OSError:
            st.error("The texts could not be saved, so Compare cannot open them.")
            return
        st.switch_page(app_folder() / "pages/compare.py", query_params=address)
