"""The views of the page on layer dynamics; the model whose layers they follow."""

from __future__ import annotations

import streamlit as st

from neuralviz.models import MINILM
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.model_choice import chosen_model_id, trained_names
from neuralviz.ui.stage import show_on_stage
from neuralviz.ui.texts import ask_text_fields, field_keys, show_example_pills

PAGE = "followed"
OF_SIDEBAR = "Model in the sidebar"
EXAMPLES = {
    "Two banks": "The bank by the river bank closed early on Friday.",
    "Rare words": "The neuroscientist photographed bioluminescent jellyfish.",
    "Function words": "It was not that he did not want to, but that he could not.",
    "A short story": (
        "The lighthouse had no keeper any more, but every evening at six its lamp came on. "
        "Children in the village said that it was the old keeper's cat who pressed the switch."
    ),
}


_MODEL_HELP = (
    "SBERT-WK was designed for sentence encoders, which are trained to compare texts. The model in "
    "the sidebar is the one used for micro-tuning."
)


def followed_model_id(key: str = "layers-model", hint: str = _MODEL_HELP) -> str:
    """A box with encoders and the sidebar's model; the id of the chosen model.

    Args:
        key: of the widget, and in the address.
        hint: help on what to choose.
    """
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


def ask_text() -> str:
    """A field for the text of the views "A text" and "Change by block", and examples."""
    place = st.container()
    with show_on_stage("text"):
        (text,) = ask_text_fields(PAGE, {"Text": next(iter(EXAMPLES.values()))}, height=100)
    keys = field_keys(PAGE, ["Text"])
    with place:
        show_example_pills(PAGE, {name: {keys[0]: value} for name, value in EXAMPLES.items()}, keys)
    return text


def ask_more_figures() -> bool:
    """A switch for the further figures of a view; whether it is on."""
    return st.toggle(
        "More figures", key="layers-more", bind="query-params", persist_state="session"
    )
