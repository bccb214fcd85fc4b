"""The evaluation page below its title."""

from __future__ import annotations

import streamlit as st

from neuralviz.models import BUNDLED, MINILM
from neuralviz.ui.evaluation.choose import OWN_METHODS, Chosen, choose
from neuralviz.ui.evaluation.show import offer_to_stop, show_evaluation
from neuralviz.words import many

QUICK = 100  # texts of an example that is measured without being asked to


def show() -> None:
    """Data, methods, *Evaluate*, and the table."""
    chosen = choose()
    button, note = st.columns([1, 6], vertical_alignment="center")
    pressed = button.button(
        "Evaluate", type="primary", icon=":material/play_arrow:", disabled=chosen is None,
        width="stretch",
    )  # fmt: skip
    if chosen is None:
        return
    asked = st.session_state.setdefault("evaluation-asked", [])
    if (pressed or _is_quick(chosen)) and chosen.identity not in asked:
        asked.append(chosen.identity)
    if chosen.identity in asked:
        show_evaluation(chosen, again=pressed)
        return
    n = len(chosen.data.texts)
    note.caption(
        f"{many(n, 'different text')}, {many(len(chosen.rows), 'method')}. Embeddings are "
        "saved, so you can stop and resume at any time."
    )
    offer_to_stop()


def _is_quick(chosen: Chosen) -> bool:
    """Whether it is measured without being asked for: an example, by models that are at hand."""
    return (
        chosen.is_example
        and len(chosen.data.texts) <= QUICK
        and len(chosen.rows) <= 3
        and st.session_state.get("experiment", OWN_METHODS) == OWN_METHODS
        and not st.session_state.get("options")
        and all(
            part.model_id in (BUNDLED, MINILM)
            for row in chosen.rows
            for part in row.spec.parts or (row.spec,)
        )
    )
