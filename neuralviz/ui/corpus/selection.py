"""What a session has chosen on the maps of a corpus, and what of it the address brings back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.maps.filtering import Selection

if TYPE_CHECKING:
    import numpy as np

# keys of the session state
ROW, HOVERED = "corpus-row", "corpus-hovered"  # the clicked text; the one under the pointer
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SEARCH, LAST_SEARCH = "corpus-search", "corpus-asked"  # the box; the search that was made last
SENTENCE = "corpus-sentence"  # that is placed on the maps
LIST = "corpus-list"  # the list below the maps
_WRITTEN = "corpus-written"

CHOSEN_TEXT, SELECTION, NEAREST = "Text", "Selection", "Neighbours of your sentence"
DIFFERENT, CLUSTERS = "Where the maps disagree", "Clusters"


def choose_row(row: int, *, show: bool = True) -> None:
    """Choose a text to read, and show it below the maps."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)
    if show:
        st.session_state[LIST] = CHOSEN_TEXT


def hover_row(row: int) -> None:
    """Show the text under the pointer, unless that rests on the chosen one."""
    if row != st.session_state.get(ROW):
        st.session_state[HOVERED] = int(row)
        st.session_state[LIST] = CHOSEN_TEXT


def chosen_row(n_texts: int) -> int | None:
    """The row of the chosen text, if the corpus has it."""
    row = st.session_state.get(ROW)
    return row if row is not None and row < n_texts else None


def row_to_read(n_texts: int) -> int | None:
    """The row of the text under the pointer, else of the chosen one."""
    row = st.session_state.get(HOVERED)
    return row if row is not None and row < n_texts else chosen_row(n_texts)


def select(chosen: Selection, reason: str, *, show: bool = True) -> None:
    """Select texts on all maps, with ``reason`` to show, such as ``in cluster ice, snow``."""
    st.session_state[SELECTED], st.session_state[SELECTED_BY] = chosen, reason
    if show and len(chosen):
        st.session_state[LIST] = SELECTION


def current_selection(n_texts: int, within: np.ndarray | None = None) -> Selection | None:
    """The selected texts that the filter shows; None where nothing is selected."""
    selection: Selection | None = st.session_state.get(SELECTED)
    if not selection or selection.n_texts != n_texts:
        return None
    return selection if within is None else Selection.from_mask(selection.mask() & within)


def forget_selection() -> None:
    """Forget the selection and the chosen text; the search is made anew."""
    for key in (ROW, HOVERED, SELECTED, SELECTED_BY, SENTENCE, LAST_SEARCH):
        st.session_state.pop(key, None)


def clear_selection() -> None:
    """Forget the selection, the chosen text and the search."""
    forget_selection()
    st.session_state[SEARCH] = ""


def read_new_value(name: str) -> str:
    """The value of a name in an address that was just opened; empty where it is not new.

    The last two values that the page wrote are not new: a click that was on its way when the
    address changed comes with the old one.
    """
    value = st.query_params.get(name, "")
    return "" if value in st.session_state.get(_WRITTEN, {}).get(name, ()) else value


def write_value(name: str, value: str) -> None:
    """Put a value into the address; an empty one takes the name out of it."""
    written = st.session_state.setdefault(_WRITTEN, {})
    last = written.get(name, ("",))[0]
    if value != last:
        written[name] = value, last
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)
