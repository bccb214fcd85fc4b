"""What a link to a corpus map brings back besides its settings: search, chosen text, list."""

from __future__ import annotations

import re

import streamlit as st

TEXT, QUERY, SEARCH_MODE, LIST = "text", "search", "by", "list"  # their names in it
MOST_IN_ADDRESS = 300  # characters; what is longer stays out
_ROW = re.compile(r"[1-9][0-9]{0,8}")
_WRITTEN = "corpus-written"


def read_link(name: str) -> str:
    """The value of a name in an address that was just opened; empty where it is not new.

    The last two values that the page itself wrote are not new: a click that was on its way when the
    address changed comes with the old one.
    """
    value = st.query_params.get(name, "")
    is_new = value not in st.session_state.get(_WRITTEN, {}).get(name, ())
    return value if is_new and len(value) <= MOST_IN_ADDRESS else ""


def read_linked_row(n_texts: int) -> int | None:
    """The row of the text that a newly opened address names; None where there is none."""
    value = read_link(TEXT)
    row = int(value) - 1 if _ROW.fullmatch(value) else n_texts
    return row if row < n_texts else None


def write_link(name: str, value: str) -> None:
    """Write a value into the address; remove the name where the value is empty or too long."""
    if len(value) > MOST_IN_ADDRESS:
        value = ""
    written = st.session_state.setdefault(_WRITTEN, {})
    last = written.get(name, ("",))[0]
    if value != last:
        written[name] = value, last
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)
