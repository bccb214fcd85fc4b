"""What is being typed when a link to another page is pressed."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
import streamlit.components.v2

_leaving = streamlit.components.v2.component(
    "neuralviz_leaving",
    html="<span></span>",
    js=(Path(__file__).with_name("assets") / "leaving.js").read_text("utf-8"),
    isolate_styles=False,
)


def send_before_leaving() -> None:
    """Let links between pages lead on once what is typed in a field has been sent."""
    with st.sidebar:
        _leaving(key="leaving")
