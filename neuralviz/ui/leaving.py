"""What is being typed when a link to another page is pressed."""

from __future__ import annotations

import streamlit as st

from neuralviz.ui.scripts import script

_leaving = script("leaving")


def send_before_leaving() -> None:
    """Let links between pages lead on once what is typed in a field has been sent."""
    with st.sidebar:
        _leaving(key="leaving")
