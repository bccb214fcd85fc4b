"""The widgets that say how texts are embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders import METHODS, embedder_spec
from neuralviz.embedders.specs import defaults_of
from neuralviz.micro_tuning.settings import is_fast
from neuralviz.models import BUNDLED
from neuralviz.ui.allowed import allowed
from neuralviz.ui.model_choice import chosen_model_id, offline_models
from neuralviz.ui.precision import choose_precision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.embedders import EmbedderSpec
    from neuralviz.embedders.methods import Option

NOTHING = "none"
MODEL_HELP = "You can also enter a Hugging Face Hub ID or a folder."
JOINED = ("neural+mean", "neural+sbert-wk")
_HELP = "\n".join(
    [
        *(f"- **{name}**: {method.line}" for name, method in METHODS.items()),
        "",
        (
            "To concatenate methods, type their names with a plus: neural+mean. You can choose "
            "a method twice with different settings."
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
    more: Mapping[str, EmbedderSpec] | None = None,
) -> EmbedderSpec | None:
    """A method with its settings and its model; a link brings all of it back.

    Args:
        key: begins the keys of all its widgets.
        label: of the method.
        first: the method at the start.
        defaults: of options, as of `embedder_spec`.
        optional: whether ``none`` can be chosen.
        more: what can be chosen beside the methods, as it is. Then ``first`` is the first of all,
            so that the session may choose it anew.

    Returns:
        What was chosen; None for ``none``.

    Raises:
        SettingsError: a method or a value that was typed makes no sense.
    """
    options = [*METHODS, *JOINED]
    if optional:
        options.insert(0, NOTHING)
    if more is not None:
        options = list(dict.fromkeys([first, *options, *more]))
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
    if more and method in more:
        return more[method]
    parts = embedder_spec(method).parts or (embedder_spec(method),)
    typed = {}
    with row.popover("", icon=":material/tune:", help="Settings", key=f"{key}-settings"):
        for part in parts:
            if len(parts) > 1:
                st.markdown(f"**{part.method}**")
            has_tolerance = False
            other = defaults_of(part.method, defaults)
            for option in METHODS[part.method].options:
                option_key = f"{key}-{part.method}-{option.name}"
                default = other.get(option.name, option.default)
                if option.name == "precision":
                    value: str = choose_precision("Precision", option_key, default)
                    has_tolerance = is_fast(value)
                elif option.name == "tolerance" and not has_tolerance:
                    continue
                else:
                    value = _ask(option_key, option, default)
                if value != option.default:
                    typed[f"{part.method}.{option.name}"] = value
            usual = chosen_model_id() if part.model_id == BUNDLED else part.model_id
            model = st.selectbox(
                "Model",
                offline_models(METHODS[part.method].kind),
                index=None,
                placeholder=usual,
                key=f"{key}-{part.method}-model",
                bind="query-params",
                accept_new_options=not allowed().demo,
                help=MODEL_HELP,
            )
            typed[f"{part.method}.model"] = (model or "").strip() or usual
    return embedder_spec(method, typed)


def _ask(key: str, option: Option, default: str) -> str:
    label = option.name.replace("_", " ").capitalize()
    if option.choices:
        place = option.choices.index(default)
        chosen = st.selectbox(
            label,
            option.choices,
            index=place,
            key=key,
            bind="query-params",
            help=f"{option.line}.",
        )
        return chosen or default
    typed = st.text_input(
        label,
        default,
        key=key,
        bind="query-params",
        help=f"{option.line}: {option.expects}.",
    )
    return (typed or "").strip() or default
