"""The widgets that choose the methods of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.models.shared import is_loaded
from neuralviz.models.trained import is_at_hand
from neuralviz.ui.method_choice import NOTHING, choose_method
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from neuralviz.embedders import EmbedderSpec

QUICK = {"precision": "fast"}  # the default here: a page should answer soon
FIRST_CHOICE = ("mean", "neural", "sbert-wk", NOTHING)


def choose_methods() -> tuple[EmbedderSpec, ...] | None:
    """Widgets for up to four methods with their settings; None where a setting is not valid."""
    specs: list[EmbedderSpec] = []
    sound = True
    places = [*st.columns(2), *st.columns(2)]
    for number, (place, first) in enumerate(zip(places, FIRST_CHOICE, strict=True), 1):
        with place:
            try:
                spec = choose_method(
                    f"m{number}", f"Method {number}", first, QUICK, optional=number > 2
                )
            except NeuralvizError as error:
                show_error(error)
                sound = False
            else:
                specs += [spec] if spec else []
    if not sound:
        return None
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if twice is not None:
        st.error(
            plain(f"{twice.method} is selected twice with the same settings. Change one of them.")
        )
        return None
    return tuple(specs)


def needs_asking(specs: tuple[EmbedderSpec, ...]) -> bool:
    """Whether loading a model needs the user's consent: it is neither at hand nor loaded."""
    models = {part.model_id for spec in specs for part in spec.singles}
    return any(not is_at_hand(model) and not is_loaded(model) for model in models)
