"""Widgets that pages share: a choice, a file, a name, a corpus, a model, a method."""

from __future__ import annotations

import gc
import logging
import secrets
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from neuralviz.embedders import METHODS, EmbedderSpec, embedder_spec
from neuralviz.embedders.specs import Option, concatenate_specs, read_methods, select_options
from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.micro_tuning.settings import PRECISION_LINES, PRECISIONS, Precision, is_fast
from neuralviz.models import BUNDLED, MINILM, TextModel
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
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.database import tidy_soon
from neuralviz.store.importing import FILE
from neuralviz.ui.address import forget_loss, is_lost, mark_lost, read_new, run_page_again, write
from neuralviz.ui.limits import effective_settings, has_visitors
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error, slide
from neuralviz.words import many

T = TypeVar("T")
M = TypeVar("M", bound="TextModel")
_log = logging.getLogger(__name__)
# settings of a widget whose value a link restores and other pages leave as it is
REMEMBERED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}


def choose_one(
    widget: Callable[..., T | None],  # ``segmented_control`` or ``pills`` of a container
    label: str,
    options: Sequence[T],
    *,
    key: str,
    **settings: Any,
) -> T:
    """A segmented control or pills in the address, one option of which is always chosen.

    ``settings`` are the widget's. The ``default`` is the first option.
    """
    if st.query_params.get(key) == "":
        write({key: ""})
        run_page_again()  # widgets read the address as it was when the script run began
    settings = {"default": options[0], **settings}
    chosen = widget(label, options, key=key, required=True, bind="query-params", **settings)
    return settings["default"] if chosen is None else chosen


Write = Callable[[str], None]  # writes a headline


def show_views(
    page: str,
    views: Mapping[str, Callable[[Write], None]],  # by name; none draws a slide of its own
    *,
    key: str,  # of the choice, in the address
    n_on_stage: int | None = None,  # the first ones; all by default
) -> None:
    """A menu of a page's further views, the first of which is open, and the chosen one as a slide.

    On the stage, the arrow keys lead through all of them, or the first ones.
    """
    n = len(views) if n_on_stage is None else n_on_stage
    with st.container(key=f"views-{page}-{n}"):
        name = choose_one(
            st.segmented_control, "View", list(views), key=key, label_visibility="collapsed"
        )
    with slide(f"{page}-view") as write_headline:
        views.get(name, next(iter(views.values())))(write_headline)


def choose_precision(key: str, first: str) -> Precision:
    """Ask for a precision that the machine need not emulate, at the start ``first``."""
    offered = [name for name in PRECISIONS if "bf16" not in name or _computes_in_bf16(key)]
    requested = st.query_params.get(key, first)
    if requested not in offered:
        st.toast(
            plain(
                f"The precision “{requested[:40]}” in this link is not available here. Using "
                f"{first} instead."
            ),
            icon=":material/warning:",
            duration="long",
        )
    return st.selectbox(
        "Precision",
        offered,
        index=[str(name) for name in offered].index(first),
        key=key,
        bind="query-params",
        help="\n".join(f"- **{name}**: {PRECISION_LINES[name]}" for name in offered),
    )


def _computes_in_bf16(key: str) -> bool:
    """Whether the machine computes in bfloat16; torch is imported only if a link asks for it."""
    if "torch" not in sys.modules and "bf16" not in st.query_params.get(key, ""):
        return False
    import torch

    from neuralviz.micro_tuning.products import has_native_bf16

    return has_native_bf16("cuda" if torch.cuda.is_available() else "cpu")


def save_by_name(
    key: str,
    placeholder: str,
    identity: Hashable,  # tells what is saved from anything else
    save: Callable[[str], Path],  # may raise a `NeuralvizError`
    is_there: Callable[[str], bool],  # whether something of this name is still saved
) -> str:
    """Ask for a name, save under it at *Save*, and return it; empty until it is saved."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name", placeholder=placeholder, key=f"{key}-name").strip()
        pressed = st.button("Save", icon=":material/save:", key=f"{key}-save-it")
    *saved_as, place = st.session_state.get(f"{key}-saved", ("", None, ""))
    if saved_as == [name, identity] and is_there(name):
        folder_note = "" if has_visitors() else f" in {place}"
        st.success(plain(f"Saved as “{name}”{folder_note}."))
        return name
    if pressed:
        try:
            with let_others_draw(), st.spinner("Saving …"):
                st.session_state[f"{key}-saved"] = (name, identity, save(name))
        except NeuralvizError as error:
            show_error(error)
        else:
            run_page_again()  # so that the page knows it
    return ""


# --- saved corpora -------------------------------------------------------------------------------


def pick_corpus(
    selectbox: Callable[..., str | None],  # of a container
    corpora: Mapping[str, Corpus],  # by id; the first is chosen at first
    key: str,  # of the session state; the address has the id under the same name
    **settings: Any,
) -> Corpus | None:
    """Ask for a saved corpus by name and size; None if there is none, or the link's is gone."""
    if not corpora:
        st.session_state.pop(key, None)
    elif (linked := read_new(key)) is not None:
        named = [corpus.id for corpus in corpora.values() if linked == corpus.name]
        st.session_state[key] = (named or [linked or next(iter(corpora))])[0]
    elif st.session_state.get(key) is None and not is_lost(key):
        st.session_state[key] = next(iter(corpora))
    if corpora and st.session_state[key] not in corpora:
        mark_lost(key)
        st.session_state[key] = None
    if is_gone := bool(corpora) and st.session_state[key] is None:
        st.warning("The corpus of this link was deleted, or is not saved here. Choose another one.")
    chosen = selectbox(
        "Corpus",
        list(corpora),
        index=None if is_gone else 0,
        format_func=lambda corpus_id: (
            f"{corpora[corpus_id].name} · {many(corpora[corpus_id].n_texts, 'text')}"
        ),
        key=key,
        persist_state="session",
        placeholder="Choose a corpus" if corpora else "No corpora yet",
        **settings,
    )
    corpus = corpora.get(chosen or "")
    if corpus is not None:
        forget_loss(key)
        write({key: corpus.id})
    return corpus


BROWSER = "neuralviz_browser"  # the cookie that tells browsers apart
_SESSION = "browser"  # session state: identity of a browser without cookies, while its page is open


def corpus_store() -> CorpusStore:
    """The saved corpora that this browser sees; old files of the store are deleted on the way."""
    store = CorpusStore(owner=_browser() if effective_settings().private else None)
    tidy_soon(store.folder)
    return store


def may_change(corpus: Corpus) -> bool:
    """Whether this browser may rename, extend or delete a corpus."""
    if effective_settings().demo:
        return False
    return not effective_settings().private or corpus.owner == _browser()


def describe_corpus_visibility() -> str:
    """Who sees an added corpus, as a sentence; empty where the machine has one user."""
    if effective_settings().private:
        return "Only this browser sees the corpora that you add here."
    if effective_settings().open:
        return "Everybody who uses this server sees saved corpora, and can delete them."
    return ""


def _browser() -> str:
    """A digest that identifies the browser and does not reveal its cookie."""
    cookie = st.context.cookies.get(BROWSER)
    if not cookie:
        cookie = st.session_state.setdefault(_SESSION, secrets.token_urlsafe(16))
    return blake2b(cookie.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


# --- models --------------------------------------------------------------------------------------

_DEVICES = {"cuda": "the GPU"}
SUGGESTIONS = [BUNDLED, "bert-base-uncased", "distilbert-base-uncased", "roberta-base"]

_AGREED = "models-to-load"  # session state: models that the user agreed to load


def show_model_sidebar() -> None:
    """Offer the models in the sidebar."""
    with st.sidebar:
        choose_masked_model()


def choose_masked_model(*encoders: str) -> str:
    """Ask for the model that is micro-tuned, and say where it computes; return its id."""
    is_demo = effective_settings().demo
    model_id = st.selectbox(
        "Model",
        [*(SUGGESTIONS[:1] if is_demo else [*SUGGESTIONS, *encoders]), *trained_names("text")],
        key="model",
        **REMEMBERED,  # not all pages have it
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
    if held is not None and held.device.type != "cpu":
        st.caption(f"Runs on {_DEVICES.get(held.device.type, held.device.type)}.")
    return model_id or BUNDLED


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
    hint: str = "SBERT-WK was designed for sentence encoders, which are trained to compare texts.",
) -> str:
    """Ask for a model whose layers are used; return its id."""
    choice = st.selectbox(
        "Model",
        [MINILM, BUNDLED, *trained_names("text")],
        key=key,
        bind="query-params",
        accept_new_options=not effective_settings().demo,
        persist_state="session",
        help=hint,
    )
    return choice or MINILM


def load_model_or_none(model_id: str, load: Callable[[str], M]) -> M | None:
    """Load a page's model; None where the page says why not, or offers to load it."""
    was_available = _is_available(model_id)
    if not may_load(model_id):
        return None
    try:
        with let_others_draw(), st.spinner(plain(f"Loading “{model_id}” …")):
            model = load(model_id)
    except NeuralvizError as error:
        st.session_state[_AGREED].discard(model_id)
        show_error(error)
        return None
    if not was_available:
        run_page_again()  # so that the offer goes and the sidebar names the device
    return model


def may_load(model_id: str) -> bool:
    """Whether the page may load the model; else it says why not, or asks once a session."""
    # an address can name any model: only neuralviz's own are loaded without being asked for
    try:
        check_may_load(model_id)
    except NeuralvizError as error:
        show_error(error)
        return False
    agreed: set[str] = st.session_state.setdefault(_AGREED, set())
    if model_id in agreed or _is_available(model_id):
        return True
    offer = st.empty()
    sentence = (
        f"The model “{model_id}” is not loaded yet. If it is not on this machine, it will be "
        "downloaded from the Hugging Face Hub (usually several hundred megabytes)."
    )
    offer.info(plain(sentence))
    pressed = st.button("Load", icon=":material/download:")
    if pressed:
        agreed.add(model_id)
        offer.empty()  # else the reason of a failure would stand below it, out of sight
    return pressed


def _is_available(model_id: str) -> bool:
    return is_at_hand(model_id) or is_loaded(model_id)


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


def choose_method(
    key: str,  # begins the keys of all widgets
    label: str,
    first: str,  # the method at the start; with ``extra_methods`` it heads the list
    defaults: Mapping[str, str],  # of options; see `embedder_spec`
    *,
    optional: bool = False,  # offers ``none``, for which None is returned
    extra_methods: Mapping[str, EmbedderSpec] | None = None,  # by name
    in_address: bool = True,  # False where the page writes the method there
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
        bind="query-params" if in_address else None,
        persist_state=None if in_address else "session",
        accept_new_options=True,
        help=_HELP,
    )
    if not method or method == NOTHING:
        return None
    if extra_methods and method in extra_methods:
        return extra_methods[method]
    if method.startswith(FILE):
        raise SettingsError(
            f"The vectors “{method.removeprefix(FILE).strip()[:60]}” are not saved for these texts "
            "any more. Choose another method."
        )
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
