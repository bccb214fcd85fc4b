"""The model of the sidebar: loaded when it is first needed, shared by all sessions."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.shared import (
    ModelKind,
    add_loading_hook,
    check_may_load,
    find_device,
    is_loaded,
    shared_model,
)
from neuralviz.models.trained import is_at_hand, trained_encoders
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from neuralviz.models import TextModel

OF_SIDEBAR = "Model in the sidebar"
SUGGESTIONS = [BUNDLED, "bert-base-uncased", "distilbert-base-uncased", "roberta-base"]

_log = logging.getLogger(__name__)
M = TypeVar("M", bound="TextModel")
_DEVICES = {"cpu": "the CPU", "cuda": "the GPU"}


def show_model_sidebar() -> None:
    """Offer the models in the sidebar and say where the chosen one computes."""
    is_demo = effective_settings().demo
    with st.sidebar:
        model_id = st.selectbox(
            "Model",
            [*(SUGGESTIONS[:1] if is_demo else SUGGESTIONS), *trained_names("text")],
            key="model",
            bind="query-params",
            accept_new_options=not is_demo,
            help=(
                "“bundled” is the only masked language model of this demo."
                if is_demo
                else "“bundled” works offline. You can also enter the Hugging Face Hub ID of a "
                "masked language model, or the path of a local folder with one. Encoders that "
                "you trained cannot be micro-tuned."
            ),
        )
        device = find_device(model_id or BUNDLED)
        st.caption(
            f"Runs on {_DEVICES.get(device, device)}." if device
            else "Loaded on first use."
        )  # fmt: skip


def trained_names(kind: ModelKind) -> list[str]:
    """Names of the encoders trained here that serve as models of a kind."""
    if kind == "masked":
        return []
    with_tables = kind == "sentence-transformer"
    return [encoder.name for encoder in trained_encoders() if with_tables or not encoder.is_table]


def offline_models(kind: ModelKind) -> list[str]:
    """The models of a kind that need no network."""
    shipped = {"masked": [BUNDLED], "text": [BUNDLED, MINILM], "sentence-transformer": [MINILM]}
    return [*shipped[kind], *trained_names(kind)]


def chosen_model_id() -> str:
    """``bundled``, a trained encoder, a Hub ID or a folder, as chosen in the sidebar."""
    return st.session_state.get("model") or BUNDLED


def choose_text_model(
    key: str = "layers-model",
    hint: str = (
        "SBERT-WK was designed for sentence encoders, which are trained to compare texts. The "
        "model in the sidebar is the one used for micro-tuning."
    ),
) -> str:
    """A box with encoders and the sidebar's model; the id of the chosen model."""
    choice = st.selectbox(
        "Model",
        [MINILM, *trained_names("text"), OF_SIDEBAR],
        key=key,
        bind="query-params",
        accept_new_options=not effective_settings().demo,
        persist_state="session",
        help=hint,
    )
    return chosen_model_id() if choice == OF_SIDEBAR else choice or MINILM


def load_model_or_stop(model_id: str, load: Callable[[str], M]) -> M:
    """The model for a page; where it is not available, the page says why and ends there."""
    model = load_model_or_none(model_id, load)
    if model is None:
        st.stop()
    return model


def load_model_or_none(model_id: str, load: Callable[[str], M]) -> M | None:
    """The model for a page, or None: then the page has said why, or offered to load it.

    Nothing but what comes with neuralviz is loaded without being asked for: an address can name
    any model. ``load`` is `shared_model`, or `shared_text_model` for any model that reads texts.
    """
    was_at_hand = is_at_hand(model_id) or is_loaded(model_id)
    if not _is_wanted(model_id):
        return None
    try:
        with let_others_draw(), st.spinner(plain(f"Loading “{model_id}” …")):
            model = load(model_id)
    except NeuralvizError as error:
        show_error(error)
        return None
    if not was_at_hand:
        st.rerun()  # so that the offer goes and the sidebar names the device
    return model


def may_load(model_id: str) -> bool:
    """Whether a run of the page may load the model; where it may not, the page asks for it.

    Once the user has said yes, this session does not ask again.
    """
    agreed: set[str] = st.session_state.setdefault("models-to-load", set())
    if model_id not in agreed:
        if not _is_wanted(model_id):
            return False
        agreed.add(model_id)
    return True


def _is_wanted(model_id: str) -> bool:
    """Whether a model is at hand, or its *Load* was pressed just now."""
    try:
        check_may_load(model_id)
    except NeuralvizError as error:
        show_error(error)
        return False
    if is_at_hand(model_id) or is_loaded(model_id):
        return True
    offer = st.empty()
    source = _describe_source(model_id)
    offer.info(f"{plain(f'The model “{model_id}” is not loaded yet.')} {source}")
    pressed = st.button("Load", icon=":material/download:")
    if pressed:
        offer.empty()  # else the reason of a failure would stand below it, out of sight
    return pressed


def _describe_source(model_id: str) -> str:
    """Where a model that is not loaded would come from."""
    if model_id.startswith(("/", ".", "~")):
        return "It will be read from this folder on the machine that runs neuralviz."
    is_typed = "/" not in model_id and model_id not in SUGGESTIONS
    return "You have no trained encoder of this name. " * is_typed + (
        "If neuralviz does not have it yet, it will be downloaded from the Hugging Face Hub "
        "(usually several hundred megabytes)."
    )


def _freeze_loaded() -> None:
    """Exclude the objects of loaded models from Python's garbage collection.

    Streamlit collects garbage after every script run, and every tick of a live figure is one. With
    torch in the process each collection goes through hundreds of thousands of objects and holds
    Python's lock for longer than a step of tuning takes.
    """
    gc.collect()
    gc.freeze()


add_loading_hook(_freeze_loaded)


def load_bundled() -> None:
    """Load the bundled model, so that the first run need not wait for it."""
    try:
        shared_model(BUNDLED)
    except NeuralvizError as error:
        _log.warning("Could not preload the bundled model: %s", error)
