"""Widgets that pages share: one of a few options, a row of a table, a precision, a name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.errors import NeuralvizError
from neuralviz.micro_tuning.settings import PRECISION_LINES, PRECISIONS, Precision
from neuralviz.reading.source import WITHOUT_NAMES, Source
from neuralviz.ui.limits import has_visitors
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error

T = TypeVar("T")
REMEMBERED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""Settings of a widget whose value a link brings back, and other pages leave as it is."""
# how caches tell files apart
BY_DIGEST: dict[str | type[Any], Callable[[Any], Any]] = {Source: lambda source: source.digest}
DETECTED = "detect automatically"
ROW_HEIGHT, LIST_HEIGHT = 37, 390  # px: of a row of a table, of a table at most
_LINES = 20
_CHOICES: dict[str, int | None] = {
    DETECTED: None,
    "none": 0,
    **{f"line {number}": number for number in range(1, _LINES + 1)},
}


def choose_one(
    widget: Callable[..., T | None], label: str, options: Sequence[T], *, key: str, **settings: Any
) -> T:
    """A segmented control or pills in the address, one of whose options is always chosen.

    An address that names the key and no option chooses none: the key is taken out of it.

    Args:
        widget: ``segmented_control`` or ``pills`` of the place where it should be.
        settings: of the widget; where none is the ``default``, the first option is.
    """
    if st.query_params.get(key) == "":
        del st.query_params[key]
        st.rerun()  # widgets read the address as it was when the script run began
    chosen = widget(label, options, key=key, required=True, bind="query-params", **settings)
    if chosen is None:  # *Back* to an address without the key empties the session's value
        return settings.get("default", options[0])
    return chosen


def show_choosable_table(
    table: Mapping[str, Any],
    key: str,
    choose: Callable[[int], None],
    columns: Mapping[str, Any],
    order: Sequence[str] | None = None,
) -> None:
    """A table without empty rows, of which a long one scrolls; ticking a row chooses its place.

    ``columns`` say how they are shown, as of ``st.dataframe``; ``order`` names those that are.
    """

    def choose_ticked() -> None:
        for place in st.session_state[key]["selection"]["rows"]:
            choose(place)

    frame = pd.DataFrame(table)
    st.dataframe(
        frame,
        hide_index=True,
        height=min(LIST_HEIGHT, ROW_HEIGHT * (len(frame) + 1) + 3),
        key=key,
        on_select=choose_ticked,
        selection_mode="single-row",
        column_config=columns,
        column_order=order,
    )


def choose_precision(key: str, first: str) -> Precision:
    """Widget for the precision; one that the machine would have to emulate is not offered.

    A link brings its value back; ``first`` is chosen at the start.
    """
    offered = [name for name in PRECISIONS if "bf16" not in name or _computes_in_bf16(key)]
    requested = st.query_params.get(key, first)
    if requested not in offered:
        st.toast(
            plain(
                f"The precision “{requested[:40]}” in this link is not available here. Using "
                f"{first} instead."
            ),
            icon=":material/warning:",
            duration="long",
        )
    return st.selectbox(
        "Precision",
        offered,
        index=[str(name) for name in offered].index(first),
        key=key,
        bind="query-params",
        help="\n".join(f"- **{name}**: {PRECISION_LINES[name]}" for name in offered),
    )


def _computes_in_bf16(key: str) -> bool:
    """Whether the machine computes in bfloat16, as far as is known.

    Only torch can tell, and it is not imported for that unless a link asks for bfloat16.
    """
    is_requested = "bf16" in st.query_params.get(key, "")
    return (is_requested or "torch" in sys.modules) and _native_bf16()


@cache
def _native_bf16() -> bool:
    import torch

    from neuralviz.micro_tuning.products import has_native_bf16

    return has_native_bf16("cuda" if torch.cuda.is_available() else "cpu")


def upload_file(key: str, **settings: Any) -> Source | None:
    """Ask for a file, which the session keeps under ``KEY-kept``; None before there is one."""
    file = st.file_uploader(key=f"{key}-file", **settings)
    if file is not None:
        st.session_state[f"{key}-kept"] = Source(file.name, file.getvalue())
    return st.session_state.get(f"{key}-kept")


def choose_header(source: Source, key: str, place: DeltaGenerator | None = None) -> Source:
    """The file, to be read with the header that is chosen; nothing is asked where it has one."""
    if source.ending not in WITHOUT_NAMES:
        return source
    chosen = (place or st).selectbox(
        "Header",
        list(_CHOICES),
        key=key,
        help="The line with the names of the columns; in a workbook, the row.",
    )
    return replace(source, header=_CHOICES.get(chosen))


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
