"""What the session remembers of a corpus: which texts are selected, looked at, searched for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.maps.selection import Selection

if TYPE_CHECKING:
    import numpy as np

ROW, HOVERED = "corpus-row", "corpus-hovered"
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SENTENCE = "corpus-sentence"
SEARCH_RESULT = "corpus-found"  # what a search by words has selected, or would have
SEARCH, LAST_SEARCH = "corpus-search", "corpus-asked"  # what is in the box; what was done
LINKED = "corpus-linked"  # the search of a link, until the browser is sure to have it in its box


def forget_selection() -> None:
    """Nothing is selected, searched for or chosen any more."""
    for key in (
        ROW,
        HOVERED,
        SELECTED,
        SELECTED_BY,
        SENTENCE,
        SEARCH_RESULT,
        SEARCH,
        LAST_SEARCH,
        LINKED,
    ):
        st.session_state.pop(key, None)


def current_selection(n_texts: int, within: np.ndarray | None = None) -> Selection | None:
    """Texts that are selected, and let through by a filter; None where nothing is selected."""
    selection: Selection | None = st.session_state.get(SELECTED)
    if selection is None or selection.n_texts != n_texts:
        return None
    return selection if within is None else Selection.of_mask(selection.mask() & within)


def select(chosen: Selection, reason: str) -> None:
    """Select texts on all maps, and say by what."""
    if len(chosen):
        st.session_state[SELECTED], st.session_state[SELECTED_BY] = chosen, reason
    else:
        deselect()


def deselect() -> None:
    """No text is selected any more."""
    st.session_state.pop(SELECTED, None)
    st.session_state.pop(SELECTED_BY, None)


def choose_row(row: int) -> None:
    """Look at a text."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)
