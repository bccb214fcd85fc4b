"""Session state of a corpus: the selected texts, the chosen text, the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.maps.filtering import Selection

if TYPE_CHECKING:
    import numpy as np

ROW, HOVERED = "corpus-row", "corpus-hovered"
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SENTENCE = "corpus-sentence"
SEARCH_RESULT = "corpus-found"  # what a search by words found, selected or not
SEARCH, LAST_SEARCH = "corpus-search", "corpus-asked"  # the text in the box; the search last made
LINKED = "corpus-linked"  # a link's search, until the browser's box has it


def forget_selection() -> None:
    """Forget the selection, the search and the chosen text."""
    chosen = ROW, HOVERED, SELECTED, SELECTED_BY
    for key in (*chosen, SENTENCE, SEARCH_RESULT, SEARCH, LAST_SEARCH, LINKED):
        st.session_state.pop(key, None)


def current_selection(n_texts: int, within: np.ndarray | None = None) -> Selection | None:
    """The selected texts that the filter shows; None where nothing is selected."""
    selection: Selection | None = st.session_state.get(SELECTED)
    if selection is None or selection.n_texts != n_texts:
        return None
    return selection if within is None else Selection.from_mask(selection.mask() & within)


def select(chosen: Selection, reason: str) -> None:
    """Select texts on all maps, with ``reason`` to show, such as ``in cluster ice, snow``."""
    if len(chosen):
        st.session_state[SELECTED], st.session_state[SELECTED_BY] = chosen, reason
    else:
        deselect()


def deselect() -> None:
    """Forget the selection."""
    st.session_state.pop(SELECTED, None)
    st.session_state.pop(SELECTED_BY, None)


def choose_row(row: int) -> None:
    """Choose a text to read."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)
