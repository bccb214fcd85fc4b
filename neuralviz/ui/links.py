"""What a link restores: the address holds settings and the id of a view, never its texts."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.store.results import COMMON_VIEW
from neuralviz.ui.views import View, load_view, save_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RUN = "run"  # query parameter: the id of a run
USER_SOURCES = ("Paste", "Upload")  # sources that hold a user's own texts
_drawing = threading.local()  # by thread: values that wait for the end of `one_history_entry`
LATE_SECONDS = 2.0  # a click sent before the address changed still carries the old one


@contextmanager
def one_history_entry() -> Iterator[None]:
    """Make all changes of the address within it one entry of the browser's history.

    So *Back* leads from a run to the run before, never to a view with another view's run.
    """
    held: dict[str, str] = {}
    _drawing.held = held
    try:
        yield
    finally:
        _drawing.held = None
        if held:
            st.query_params.update(held)


def set_query_params(values: Mapping[str, str]) -> None:
    """Put values into the address by their names."""
    held = getattr(_drawing, "held", None)
    if held is None:
        st.query_params.update(values)
    else:
        held.update(values)


def put_in_address(key: str, view: View, *, overwrite: bool = False) -> None:
    """Keep a view on this machine and let the address bring it back.

    An address keeps its view: others get another one. ``overwrite`` is for what changes with every
    edit: the session then replaces what it kept under ``key`` before, never a link's view.

    Args:
        key: names the inputs on the page.
        view: what is in them.
        overwrite: see above.
    """
    kept, view_id = st.session_state.get(f"{key}-own-view", (None, None))
    if kept != view:
        try:
            view_id = save_view(view, view_id if overwrite else None)
        except OSError:
            st.toast("The texts could not be saved, so the link does not include them.")
            return
    before = st.query_params.get("view")
    if before != view_id:
        st.session_state[f"{key}-replaced"] = (before, time.monotonic())
    st.session_state[f"{key}-own-view"] = (view, view_id)
    st.session_state[f"{key}-view"] = view_id
    if before != view_id:
        set_query_params({"view": view_id, **({RUN: ""} if RUN in st.query_params else {})})


def open_view(key: str) -> View | None:
    """The view that the address names, if the page does not show it yet.

    An address without a view gets the one that was last shown under ``key``; where an example is
    shown now, the address is of that, and has none.
    """
    view_id, shown_id = st.query_params.get("view"), st.session_state.get(f"{key}-view")
    if view_id in (None, "", shown_id):
        if st.session_state.get(f"{key}-source", USER_SOURCES[0]) not in USER_SOURCES:
            st.query_params.pop("view", None)
        elif shown_id:
            st.query_params["view"] = shown_id
        return None
    replaced, replaced_time = st.session_state.get(f"{key}-replaced", (None, 0.0))
    if shown_id and view_id == replaced and time.monotonic() - replaced_time < LATE_SECONDS:
        st.query_params["view"] = shown_id  # else a double click would restore the former texts
        return None
    st.session_state[f"{key}-view"] = view_id
    view = load_view(view_id)
    if view is None:
        st.toast("The texts in this link are not saved here. Showing an example instead.")
    return view


def result_view_id(key: str) -> str:
    """The id under which results of the inputs are saved; empty where they have none yet.

    A user's own texts get an id by `put_in_address`; everything else shares one.
    """
    if st.session_state.get(f"{key}-source") in USER_SOURCES:
        return st.session_state.get(f"{key}-view") or ""
    return COMMON_VIEW
