"""The widgets that say what is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders import METHODS, embedder_spec
from neuralviz.errors import NeuralvizError
from neuralviz.models import BUNDLED, MINILM
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from neuralviz.embedders import EmbedderSpec
    from neuralviz.embedders.registry import Option

NOTHING = "nothing"
FIRST_CHOICE = ("mean", "neural", "sbert-wk", NOTHING)
_HELP = "\n".join(
    [
        *(f"- **{name}**: {method.line}" for name, method in METHODS.items()),
        "",
        "Type names with a plus between them to join methods: neural+mean. The same method can be "
        "chosen twice, with different settings.",
    ]
)
JOINED = ("neural+mean", "neural+sbert-wk")


def choose_methods() -> tuple[EmbedderSpec, ...] | None:
    """Places for up to four methods with their settings; None where one makes no sense."""
    specs: list[EmbedderSpec] = []
    sound = True
    for number, (place, first) in enumerate(
        zip(st.columns(len(FIRST_CHOICE)), FIRST_CHOICE, strict=True), 1
    ):
        with place:
            try:
                spec = _choose_method(number, first)
            except NeuralvizError as error:
                show_error(error)
                sound = False
            else:
                specs += [spec] if spec else []
    if not sound:
        return None
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if twice is not None:
        st.error(plain(f"{twice.method} is chosen twice with the same settings; change one."))
        return None
    return tuple(specs)


def _choose_method(number: int, first: str) -> EmbedderSpec | None:
    options = [*METHODS, *JOINED]
    if number > 2:
        options.insert(0, NOTHING)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", wrap=False)
    method = row.selectbox(
        f"Method {number}",
        options,
        index=options.index(first),
        key=f"m{number}",
        bind="query-params",
        accept_new_options=True,
        help=_HELP,
    )
    if not method or method == NOTHING:
        return None
    parts = embedder_spec(method).parts or (embedder_spec(method),)
    typed = {}
    with row.popover("", icon=":material/tune:", help="Settings", key=f"m{number}-settings"):
        for part in parts:
            if len(parts) > 1:
                st.markdown(f"**{part.method}**")
            for option in METHODS[part.method].options:
                value = _ask(number, part.method, option)
                if value != option.default:
                    typed[f"{part.method}.{option.name}"] = value
            default = chosen_model_id() if part.model_id == BUNDLED else part.model_id
            model = st.text_input(
                "model",
                placeholder=default,
                key=f"m{number}-{part.method}-model",
                bind="query-params",
                help="“bundled”, all-MiniLM-L6-v2, the id of a model on the hub, or a folder.",
            )
            typed[f"{part.method}.model"] = (model or "").strip() or default
    return embedder_spec(method, typed)


def _ask(number: int, method: str, option: Option) -> str:
    label, key = option.name.replace("_", " "), f"m{number}-{method}-{option.name}"
    if option.choices:
        place = option.choices.index(option.default)
        chosen = st.selectbox(label, option.choices, index=place, key=key, bind="query-params")
        return chosen or option.default
    typed = st.text_input(
        label, option.default, key=key, bind="query-params", help=f"{option.expects.capitalize()}."
    )
    return (typed or "").strip() or option.default


def needs_asking(specs: tuple[EmbedderSpec, ...]) -> bool:
    """Whether a model among them is neither part of neuralviz nor loaded: nobody asked for it."""
    from neuralviz.models.shared import is_loaded

    models = {part.model_id for spec in specs for part in spec.parts or (spec,)}
    return any(model not in (BUNDLED, MINILM) and not is_loaded(model) for model in models)
