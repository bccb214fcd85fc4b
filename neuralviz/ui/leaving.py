"""Sends text that is being typed before a link opens another page."""

from __future__ import annotations

import streamlit as st

from neuralviz.ui.scripts import script

_leaving = script("leaving")


def send_before_leaving() -> None:
    """Make links between pages wait until the text typed in a field has been sent."""
    with st.sidebar:
        _leaving(key="leaving")
