"""The layer dynamics page below its title, which shows one of its views."""

from __future__ import annotations

import streamlit as st

from neuralviz.ui.choices import choose_one
from neuralviz.ui.layers import blocks, pairs, text, words

VIEWS = {
    "A text": text.show,
    "A corpus": words.show,
    "Scored pairs": pairs.show,
    "Change by block": blocks.show,
}


def show() -> None:
    view = choose_one(
        st.segmented_control,
        "View",
        list(VIEWS),
        default="A text",
        key="layers-view",
        on_change=_leave_texts,
        persist_state="session",
        label_visibility="collapsed",
    )
    VIEWS[view]()


def _leave_texts() -> None:
    """Remove the former view's texts from the address; each view has its own."""
    st.query_params.pop("view", None)
