"""Which list is below the maps: what has just been done on them comes first."""

from __future__ import annotations

import streamlit as st

from neuralviz.ui.corpus import address
from neuralviz.ui.corpus.selecting import HOVERED, ROW, SELECTED, SELECTED_BY, SENTENCE

THIS, CHOSEN, NEAREST = "Selection", "Text", "Neighbours of your sentence"
DIFFERENT, CLUSTERS = "Where the maps disagree", "Clusters"
_DONE = "corpus-done"  # what had been done on the maps when the page was last drawn to its end
_FOLLOWING = "corpus-following"  # the list before something was done, and what was done
SHOWN_LIST = "corpus-list-shown"  # where the session keeps it while another page is open
IN_ADDRESS = {
    THIS: "selection",
    CHOSEN: "text",
    NEAREST: "sentence",
    DIFFERENT: "disagree",
    CLUSTERS: "clusters",
}


def follow(options: list[str], n_maps: int) -> None:
    """Bring forward the list of what has just been done on the maps."""
    chosen = st.session_state.get(SELECTED)
    now = {
        CHOSEN: (st.session_state.get(ROW), st.session_state.get(HOVERED)),
        THIS: (chosen and chosen.digest, st.session_state.get(SELECTED_BY)),
        NEAREST: st.session_state.get(SENTENCE),
    }
    before = st.session_state.setdefault(_DONE, now)
    wanted = st.session_state.get("corpus-list", st.session_state.get(SHOWN_LIST))
    if st.session_state.pop("corpus-list-stays", False):
        st.session_state[_DONE] = now
    else:
        changed = [name for name in now if now[name] != before[name] and name in options]
        if changed:
            since, _ = st.session_state.get(_FOLLOWING, (wanted, None))
            if wanted in (since, *changed):  # else another list was asked for meanwhile
                wanted = changed[-1]
            st.session_state[_FOLLOWING] = since, now
    linked = address.opened(address.LIST)
    wanted = next((name for name, called in IN_ADDRESS.items() if called == linked), wanted)
    if wanted not in options:
        wanted = first_list(n_maps)
    st.session_state["corpus-list"] = wanted


def followed() -> None:
    """The page was drawn to its end: the browser knows which list was brought forward.

    A click that comes sooner runs the page again with the list that the browser still shows; what
    was done before is followed once more then.
    """
    _, now = st.session_state.pop(_FOLLOWING, (None, None))
    if now is not None:
        st.session_state[_DONE] = now


def first_list(n_maps: int) -> str:
    """The list at the start."""
    return DIFFERENT if n_maps > 1 else CLUSTERS
