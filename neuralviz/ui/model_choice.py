"""The widgets that choose models, loaded when first needed, and methods."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from neuralviz.embedders import METHODS, EmbedderSpec, embedder_spec
from neuralviz.embedders.specs import Option, concatenate_specs, read_methods, select_options
from neuralviz.errors import NeuralvizError
from neuralviz.micro_tuning.settings import is_fast
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.shared import (
    ModelKind,
    check_may_load,
    find_held,
    is_at_hand,
    is_loaded,
    loading_hooks,
    shared_model,
    trained_encoders,
)
from neuralviz.ui.choices import choose_precision
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from neuralviz.models import TextModel

OF_SIDEBAR = "Model in the sidebar"
SUGGESTIONS = [BUNDLED, "bert-base-uncased", "distilbert-base-uncased", "roberta-base"]

NOTHING = "none"
MODEL_HELP = "You can also enter a Hugging Face Hub ID or a folder."
JOINED = ("neural+mean", "neural+sbert-wk")
_HELP = "\n".join(
    [
        *(f"- **{name}**: {method.line}" for name, method in METHODS.items()),
        "",
        (
            "To concatenate methods, type their names with a plus: neural+mean. You can choose "
            "a method twice with different settings, or type these behind an @: mean@bundled, "
            "neural@epochs=5."
        ),
    ]
)
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
        held = find_held("text", model_id or BUNDLED)
        device = held and held.device.type
        st.caption(
            f"Runs on {_DEVICES.get(device, device)}." if device
            else "Loaded on first use."
        )  # fmt: skip


def trained_names(kind: ModelKind) -> list[str]:
    """Encoders trained here that serve as models of a kind."""
    if kind == "masked":
        return []
    with_tables = kind == "sentence-transformer"
    return [encoder.name for encoder in trained_encoders() if with_tables or not encoder.is_table]


def offline_models(kind: ModelKind) -> list[str]:
    """Models of a kind that need no network."""
    shipped = {"masked": [BUNDLED], "text": [BUNDLED, MINILM], "sentence-transformer": [MINILM]}
    return [*shipped[kind], *trained_names(kind)]


def chosen_model_id() -> str:
    """The sidebar's choice: ``bundled``, a trained encoder, a Hub ID or a folder."""
    return st.session_state.get("model") or BUNDLED


def choose_text_model(
    key: str = "layers-model",
    hint: str = (
        "SBERT-WK was designed for sentence encoders, which are trained to compare texts. The "
        "model in the sidebar is the one used for micro-tuning."
    ),
) -> str:
    """Ask for an encoder or the sidebar's model; return its id."""
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
    """Load a page's model; where it is not available, say why and end the page."""
    model = load_model_or_none(model_id, load)
    if model is None:
        st.stop()
    return model


def load_model_or_none(model_id: str, load: Callable[[str], M]) -> M | None:
    """Load a page's model; None where the page says why not, or offers to load it."""
    # an address can name any model: only neuralviz's own are loaded without being asked for
    was_available = _is_available(model_id)
    if not _is_wanted(model_id):
        return None
    try:
        with let_others_draw(), st.spinner(plain(f"Loading “{model_id}” …")):
            model = load(model_id)
    except NeuralvizError as error:
        show_error(error)
        return None
    if not was_available:
        st.rerun()  # so that the offer goes and the sidebar names the device
    return model


def may_load(model_id: str) -> bool:
    """Whether the page may load the model; else it asks the user, once a session."""
    agreed: set[str] = st.session_state.setdefault("models-to-load", set())
    if model_id not in agreed:
        if not _is_wanted(model_id):
            return False
        agreed.add(model_id)
    return True


def _is_available(model_id: str) -> bool:
    return is_at_hand(model_id) or is_loaded(model_id)


def _is_wanted(model_id: str) -> bool:
    """Whether a model is available, or its *Load* was pressed just now."""
    try:
        check_may_load(model_id)
    except NeuralvizError as error:
        show_error(error)
        return False
    if _is_available(model_id):
        return True
    offer = st.empty()
    sentence = (
        f"The model “{model_id}” is not loaded yet. If it is not on this machine, it will be "
        "downloaded from the Hugging Face Hub (usually several hundred megabytes)."
    )
    offer.info(plain(sentence))
    pressed = st.button("Load", icon=":material/download:")
    if pressed:
        offer.empty()  # else the reason of a failure would stand below it, out of sight
    return pressed


def _freeze_loaded() -> None:
    """Exclude models from garbage collection, which delays tuning after every script run."""
    gc.collect()
    gc.freeze()


loading_hooks.append(_freeze_loaded)


def load_bundled() -> None:
    """Load the bundled model, so that the first run need not wait for it."""
    try:
        shared_model(BUNDLED)
    except NeuralvizError as error:
        _log.warning("Could not preload the bundled model: %s", error)


# --- methods -------------------------------------------------------------------------------------


def choose_method(
    key: str,  # begins the keys of all widgets
    label: str,
    first: str,  # the method at the start; with ``extra_methods`` it heads the list
    defaults: Mapping[str, str],  # of options; see `embedder_spec`
    *,
    optional: bool = False,  # offers ``none``, for which None is returned
    extra_methods: Mapping[str, EmbedderSpec] | None = None,  # by name
) -> EmbedderSpec | None:
    """Ask for a method, its settings and its model, all of which a link restores.

    Raises:
        SettingsError: a method or a value that was typed is not valid.
        ModelError: see `check_may_load`.
    """
    options = [*METHODS, *JOINED]
    if optional:
        options.insert(0, NOTHING)
    if extra_methods is not None:
        options = list(dict.fromkeys([first, *options, *extra_methods]))
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", wrap=False)
    method = row.selectbox(
        label,
        options,
        index=options.index(first),
        key=key,
        bind="query-params",
        accept_new_options=True,
        help=_HELP,
    )
    if not method or method == NOTHING:
        return None
    if extra_methods and method in extra_methods:
        return extra_methods[method]
    for part in embedder_spec(method).singles:  # raises where the typed method is not valid
        check_may_load(part.model_id)
    named, parts = read_methods(method), []
    with row.popover("", icon=":material/tune:", help="Settings", key=f"{key}-settings"):
        for place, (name, fixed) in enumerate(named):
            if len(named) > 1:
                st.markdown(f"**{name}**")
            if fixed:
                st.caption(plain("; ".join(map(": ".join, fixed.items()))))
            n_before = [earlier for earlier, _ in named[:place]].count(name)
            part_key = f"{key}-{name}" + f"-{n_before + 1}" * bool(n_before)
            settings = _ask_settings(part_key, name, fixed, defaults) | fixed
            parts.append(embedder_spec(name, settings))
    return concatenate_specs(parts)


def _ask_settings(
    key: str, method: str, fixed: Mapping[str, str], defaults: Mapping[str, str]
) -> dict[str, str]:
    typed: dict[str, str] = {}
    precision = fixed.get("precision", "")
    method_defaults = select_options(method, defaults)
    for option in METHODS[method].options:
        default = method_defaults.get(option.name, option.default)
        if option.name in fixed or (option.name == "tolerance" and not is_fast(precision)):
            continue
        if option.name == "precision":
            value: str = choose_precision(f"{key}-precision", default)
            precision = value
        else:
            value = _ask_option(f"{key}-{option.name}", option, default)
        if value != option.default:
            typed[option.name] = value
    if "model" not in fixed:
        usual = METHODS[method].model_id
        usual = chosen_model_id() if usual == BUNDLED else usual
        model = st.selectbox(
            "Model",
            offline_models(METHODS[method].kind),
            index=None,
            placeholder=usual,
            key=f"{key}-model",
            bind="query-params",
            accept_new_options=not effective_settings().demo,
            help=MODEL_HELP,
        )
        typed["model"] = (model or "").strip() or usual
    return typed


def _ask_option(key: str, option: Option, default: str) -> str:
    label = option.name.replace("_", " ").capitalize()
    if option.choices:
        chosen = st.selectbox(
            label,
            option.choices,
            index=option.choices.index(default),
            key=key,
            bind="query-params",
            help=f"{option.line}.",
        )
    else:
        help_ = f"{option.line}: {option.expects}."
        chosen = st.text_input(label, default, key=key, bind="query-params", help=help_)
    return (chosen or "").strip() or default


def needs_asking(specs: Iterable[EmbedderSpec]) -> bool:
    """Whether loading a model needs the user's consent: it is neither available nor loaded."""
    return not all(_is_available(part.model_id) for spec in specs for part in spec.singles)
