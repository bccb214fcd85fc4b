"""Chooses the list below the maps: the list of the user's last action on them comes first."""

from __future__ import annotations

import streamlit as st

from neuralviz.ui.corpus import address
from neuralviz.ui.corpus.selecting import HOVERED, ROW, SELECTED, SELECTED_BY, SENTENCE

SELECTION, CHOSEN_TEXT, NEAREST = "Selection", "Text", "Neighbours of your sentence"
DIFFERENT, CLUSTERS = "Where the maps disagree", "Clusters"
_LAST_ACTIONS = (
    "corpus-done"  # what had been done on the maps when the page was last drawn to its end
)
_PENDING_LIST = "corpus-following"  # the list before the last actions, and these actions
SHOWN_LIST = "corpus-list-shown"  # session state: the chosen list while another page is open
IN_ADDRESS = {
    SELECTION: "selection",
    CHOSEN_TEXT: "text",
    NEAREST: "sentence",
    DIFFERENT: "disagree",
    CLUSTERS: "clusters",
}


def follow(options: list[str], n_maps: int) -> None:
    """Show the list that belongs to what the user has just done on the maps."""
    chosen = st.session_state.get(SELECTED)
    actions = {
        CHOSEN_TEXT: (st.session_state.get(ROW), st.session_state.get(HOVERED)),
        SELECTION: (chosen and chosen.digest, st.session_state.get(SELECTED_BY)),
        NEAREST: st.session_state.get(SENTENCE),
    }
    before = st.session_state.setdefault(_LAST_ACTIONS, actions)
    list_name = st.session_state.get("corpus-list", st.session_state.get(SHOWN_LIST))
    if st.session_state.pop("corpus-list-stays", False):
        st.session_state[_LAST_ACTIONS] = actions
    else:
        changed = [name for name in actions if actions[name] != before[name] and name in options]
        if changed:
            since, _ = st.session_state.get(_PENDING_LIST, (list_name, None))
            if list_name in (since, *changed):  # else another list was asked for meanwhile
                list_name = changed[-1]
            st.session_state[_PENDING_LIST] = since, actions
    linked = address.read_link(address.LIST)
    list_name = next((name for name, key in IN_ADDRESS.items() if key == linked), list_name)
    if list_name not in options:
        list_name = first_list(n_maps)
    st.session_state["corpus-list"] = list_name


def finish_following() -> None:
    """Note that the page was drawn to its end, so the browser knows which list is shown.

    A click that comes sooner runs the page again with the list that the browser still shows; what
    was done before is followed once more then.
    """
    _, actions = st.session_state.pop(_PENDING_LIST, (None, None))
    if actions is not None:
        st.session_state[_LAST_ACTIONS] = actions


def first_list(n_maps: int) -> str:
    """The list at the start."""
    return DIFFERENT if n_maps > 1 else CLUSTERS
