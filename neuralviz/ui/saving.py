"""The field and the button that save what was trained under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.ui.limits import has_visitors
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path


def save_by_name(
    key: str,
    placeholder: str,
    identity: Hashable,
    save: Callable[[str], Path],
    is_there: Callable[[str], bool],
) -> str:
    """Ask for a name, and save under it at the press of *Save*; a double click saves once.

    Args:
        key: names the widgets.
        placeholder: in the empty field.
        identity: tells what is saved from anything else.
        save: saves under a name, and returns the place; raises a `NeuralvizError`.
        is_there: whether something of this name is still saved.

    Returns:
        The name under which it was saved; empty before.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name", placeholder=placeholder, key=f"{key}-name").strip()
        pressed = st.button("Save", icon=":material/save:", key=f"{key}-save-it")
    *saved_as, place = st.session_state.get(f"{key}-saved", ("", None, ""))
    if saved_as == [name, identity] and is_there(name):
        folder_note = "" if has_visitors() else f" in {place}"
        st.success(plain(f"Saved as “{name}”{folder_note}."))
        return name
    if pressed:
        try:
            with let_others_draw(), st.spinner("Saving …"):
                st.session_state[f"{key}-saved"] = (name, identity, save(name))
        except NeuralvizError as error:
            show_error(error)
        else:
            st.rerun()  # so that the page knows it
    return ""
