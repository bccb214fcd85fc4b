"""The widgets that choose an embedding method and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import streamlit as st

from neuralviz.embedders import METHODS, EmbedderSpec, embedder_spec
from neuralviz.embedders.methods import Option
from neuralviz.embedders.specs import concatenate_specs, read_methods, select_defaults
from neuralviz.micro_tuning.settings import is_fast
from neuralviz.models import BUNDLED
from neuralviz.models.shared import check_may_load, is_loaded
from neuralviz.models.trained import is_at_hand
from neuralviz.ui.choices import choose_precision
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.model_choice import chosen_model_id, offline_models
from neuralviz.ui.page import plain

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
    key: str,
    label: str,
    first: str,
    defaults: Mapping[str, str],
    *,
    optional: bool = False,
    extra_methods: Mapping[str, EmbedderSpec] | None = None,
) -> EmbedderSpec | None:
    """Widgets for a method, its settings and its model; a link restores them all.

    Args:
        key: begins the keys of all its widgets.
        first: the method at the start.
        defaults: of options, as of `embedder_spec`.
        optional: whether ``none`` can be chosen, for which None is returned.
        extra_methods: further choices, by name. With them, ``first`` heads the list, so that the
            session may choose it anew.

    Raises:
        SettingsError: a method or a value that was typed makes no sense.
        ModelError: as of `check_may_load`.
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
    """Widgets for the options and the model of a method, but for those in ``fixed``."""
    typed: dict[str, str] = {}
    precision = fixed.get("precision", "")
    method_defaults = select_defaults(method, defaults)
    for option in METHODS[method].options:
        default = method_defaults.get(option.name, option.default)
        if option.name in fixed or (option.name == "tolerance" and not is_fast(precision)):
            continue
        if option.name == "precision":
            value: str = choose_precision("Precision", f"{key}-precision", default)
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
    """Whether loading a model needs the user's consent: it is neither at hand nor loaded."""
    models = {part.model_id for spec in specs for part in spec.singles}
    return any(not is_at_hand(model) and not is_loaded(model) for model in models)
