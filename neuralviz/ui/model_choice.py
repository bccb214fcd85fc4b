"""The model that is looked at: chosen in the sidebar, loaded late, shared by all sessions."""

from __future__ import annotations

import atexit
import gc
import logging
import threading
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.models import BUNDLED, MINILM
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.session import is_served

if TYPE_CHECKING:
    from collections.abc import Callable

    from sentence_transformers import SentenceTransformer

    from neuralviz.embedders.registry import Loaders
    from neuralviz.models import LanguageModel, TextModel

SUGGESTIONS = [BUNDLED, "bert-base-uncased", "distilbert-base-uncased", "roberta-base"]
WARM_UP_AFTER = 2.0  # seconds: the first page is drawn before torch takes the cores
END_SECONDS = 10.0  # for the warm-up to end when the process does

_log = logging.getLogger(__name__)
M = TypeVar("M", bound="TextModel")
T = TypeVar("T")
_devices: dict[str, str] = {}


def model_sidebar() -> None:
    """Offer the models in the sidebar and say where the chosen one computes."""
    with st.sidebar:
        model_id = st.selectbox(
            "Model",
            SUGGESTIONS,
            key="model",
            bind="query-params",
            accept_new_options=True,
            help="“bundled” needs no network. Or type the id of a masked language model on the "
            "Hugging Face hub, or the path of a local folder that holds one.",
        )
        device = _devices.get(model_id)
        st.caption(f"Computes on {device}." if device else "Loaded when it is first needed.")


def chosen_model_id() -> str:
    """``bundled``, a hub id or a folder, as chosen in the sidebar."""
    return st.session_state.get("model") or BUNDLED


def model_or_stop(model_id: str) -> LanguageModel:
    """The model for a page; where it cannot be had, the page says why and ends there."""
    model = model_or_none(model_id)
    if model is None:
        st.stop()
    return model


def model_or_none(model_id: str) -> LanguageModel | None:
    """The model for a page, or None: then the page has said why, or offered to load it.

    Nothing but what comes with neuralviz is loaded without being asked for: an address can name
    any model.
    """
    return _or_none(model_id, load_for_app)


def text_model_or_stop(model_id: str) -> TextModel:
    """`model_or_stop` for any model whose layers can be followed, sentence encoders included."""
    model = _or_none(model_id, load_text_model_for_app)
    if model is None:
        st.stop()
    return model


def _or_none(model_id: str, load: Callable[[str], M]) -> M | None:
    from neuralviz.models.shared import is_loaded

    if model_id not in (BUNDLED, MINILM) and not is_loaded(model_id):
        is_path = model_id.startswith(("/", ".", "~"))
        st.info(
            plain(f"The model “{model_id}” is not loaded yet. ")
            + ("It is read from this folder of the machine that neuralviz runs on." if is_path else
               "If it is not on this machine, it is fetched from the hub: some hundred megabytes.")
        )  # fmt: skip
        if not st.button("Load it", icon=":material/download:"):
            return None
    try:
        with st.spinner(plain(f"Loading the model “{model_id}” …")):
            model = load(model_id)
    except NeuralvizError as error:
        show_error(error)
        return None
    _devices[model_id] = _device_in_words(model.device.type)
    return model


def load_for_app(model_id: str) -> LanguageModel:
    """`shared_model` for a process that serves pages; safe to call from any thread.

    Raises:
        ModelError: it cannot be had; the message says why and what to do.
    """
    from neuralviz.models.shared import shared_model

    return _load_aside(model_id, shared_model)


def load_text_model_for_app(model_id: str) -> TextModel:
    """`shared_text_model` for a process that serves pages; safe to call from any thread.

    Raises:
        ModelError: it cannot be had; the message says why and what to do.
    """
    from neuralviz.models.shared import shared_text_model

    return _load_aside(model_id, shared_text_model)


def load_sentence_transformer_for_app(model_id: str) -> tuple[SentenceTransformer, str]:
    """`shared_sentence_transformer` for a process that serves pages; safe from any thread.

    Raises:
        ModelError: it cannot be had; the message says why and what to do.
    """
    from neuralviz.models.shared import shared_sentence_transformer

    return _load_aside(model_id, shared_sentence_transformer)


def _load_aside(model_id: str, load: Callable[[str], T]) -> T:
    """Load a model and set aside what loading made.

    Streamlit collects garbage after every script run, and every tick of a live figure is one. With
    torch in the process each collection goes through hundreds of thousands of objects and holds
    Python's lock for longer than a step of tuning takes.
    """
    from neuralviz.models.shared import is_loaded

    if is_loaded(model_id):
        return load(model_id)
    model = load(model_id)
    gc.collect()
    gc.freeze()
    return model


def warm_up() -> None:
    """Load the bundled model in the background, once a process, soon after the first page."""
    if is_served():
        _start_warm_up()


@cache
def _start_warm_up() -> None:
    timer = threading.Timer(WARM_UP_AFTER, _load_bundled)
    timer.daemon = True
    timer.start()
    atexit.register(_end_warm_up, timer)


def _end_warm_up(timer: threading.Timer) -> None:
    """Wait for it: a thread inside torch when Python ends takes the process down with it."""
    timer.cancel()
    timer.join(END_SECONDS)


def _load_bundled() -> None:
    try:
        model = load_for_app(BUNDLED)
    except NeuralvizError as error:
        _log.warning("The bundled model was not loaded ahead: %s", error)
    except Exception:  # imports fail in any way once Python has begun to end
        if threading.main_thread().is_alive():
            raise
    else:
        _devices[BUNDLED] = _device_in_words(model.device.type)


def _device_in_words(kind: str) -> str:
    return {"cpu": "the CPU", "cuda": "the GPU"}.get(kind, kind)


LOADERS: Loaders = {
    "masked": load_for_app,
    "text": load_text_model_for_app,
    "sentence-transformer": load_sentence_transformer_for_app,
}
"""Where the embedders of pages get their models from."""
