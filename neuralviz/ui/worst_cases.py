"""A table of what goes most wrong: the worst few rows, and the others on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st
from pandas.api.types import is_numeric_dtype

from neuralviz.plots.theme import shorten
from neuralviz.ui.page import plain
from neuralviz.ui.stage import hide_on_stage
from neuralviz.words import number

if TYPE_CHECKING:
    import pandas as pd

VISIBLE_CASES = 3  # the others are in the expander
QUOTE_LENGTH = 90  # characters of a text in a sentence
CELL_LENGTH = 300  # characters of a text in the table


def list_worst(frame: pd.DataFrame, key: str) -> None:
    """Show a table of texts and numbers, the worst row first; ``key`` names it on the page."""
    written = frame.copy()
    for name in frame.columns:
        if is_numeric_dtype(frame[name]):
            digits = ".3g" if name == "human score" else ".3f"
            written[name] = [number(value, digits) for value in frame[name]]
        else:
            written[name] = [shorten(text, CELL_LENGTH) for text in frame[name]]
    st.table(written[:VISIBLE_CASES].map(plain), hide_index=True)
    if len(frame) > VISIBLE_CASES:
        with hide_on_stage(key), st.expander(f"The worst {len(frame)}"):
            st.dataframe(written, hide_index=True, key=key)


def quote(text: str) -> str:
    """A user's text in a sentence of markdown."""
    return f"“{plain(shorten(text, QUOTE_LENGTH))}”"
