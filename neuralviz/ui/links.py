"""What a link brings back: the address holds settings and the id of a view, never its texts."""

from __future__ import annotations

import time

import streamlit as st

from neuralviz.store.results import is_of_corpus
from neuralviz.ui.views import View, load_view, save_view

COMMON_VIEW = "common"  # of examples and data on the Hub, which everybody can open
GIVEN = ("Paste", "Upload")  # sources of what a user gives
LATE_SECONDS = 2.0  # a click that was on its way when the address changed comes with the old one


def put_in_address(key: str, view: View, *, over: bool = False) -> None:
    """Keep a view on this machine and let the address bring it back.

    An address keeps its view: others get another one. With ``over``, for what is put in with every
    edit, the session writes over what it kept under ``key`` before, never over a link's view.

    Args:
        key: names the inputs on the page.
        view: what is in them.
        over: see above.
    """
    kept, view_id = st.session_state.get(f"{key}-own-view", (None, None))
    if kept != view:
        try:
            view_id = save_view(view, view_id if over else None)
        except OSError:
            st.toast(
                "The texts could not be saved on this machine, so the link does not include them."
            )
            return
    before = st.query_params.get("view")
    if before != view_id:
        st.session_state[f"{key}-replaced"] = (before, time.monotonic())
    st.session_state[f"{key}-own-view"] = (view, view_id)
    st.session_state[f"{key}-view"] = view_id
    st.query_params["view"] = view_id


def open_view(key: str) -> View | None:
    """The address's view, when it has just been asked for.

    An address without a view gets the one that was last shown under ``key``; where an example is
    shown now, the address is of that, and has none.
    """
    asked, shown = st.query_params.get("view"), st.session_state.get(f"{key}-view")
    if asked in (None, "", shown):
        if st.session_state.get(f"{key}-source", GIVEN[0]) not in GIVEN:
            st.query_params.pop("view", None)
        elif shown:
            st.query_params["view"] = shown
        return None
    replaced, when = st.session_state.get(f"{key}-replaced", (None, 0.0))
    if shown and asked == replaced and time.monotonic() - when < LATE_SECONDS:
        st.query_params["view"] = shown  # else a double click would bring the texts before back
        return None
    st.session_state[f"{key}-view"] = asked
    view = load_view(asked)
    if view is None:
        st.toast("The texts in this link are not on this machine. Showing an example instead.")
    return view


def is_shared(view: str) -> bool:
    """Whether the results under an id are those of what everybody on this machine can open."""
    return view == COMMON_VIEW or is_of_corpus(view)


def kept_under(key: str) -> str:
    """The id that results of what is in the inputs are kept under; empty where they have none yet.

    What a user gives gets its own by `put_in_address`; all else has one for everybody.
    """
    if st.session_state.get(f"{key}-source") in GIVEN:
        return st.session_state.get(f"{key}-view") or ""
    return COMMON_VIEW
