"""Text fields of a page that a link brings back: the address holds an id, never the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.ui.views import load_texts, save_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def text_fields(page: str, fields: Mapping[str, str], *, height: int = 68) -> list[str]:
    """A text area for each field, side by side; what is typed outlives a visit to another page.

    Args:
        page: names the page; the key of a field is ``page-label`` in lower case.
        fields: label to the text that is in it at first.
        height: px.

    Returns:
        What is in the fields, as typed.
    """
    keys = field_keys(page, fields)
    _open_view(page, keys)
    texts = []
    for column, key, (label, text) in zip(st.columns(len(keys)), keys, fields.items(), strict=True):
        st.session_state.setdefault(key, text)
        with column:
            texts.append(
                st.text_area(
                    label,
                    height=height,
                    key=key,
                    on_change=keep_texts,
                    args=(page, keys),
                    persist_state="session",
                )
            )
    return texts


def field_keys(page: str, labels: Iterable[str]) -> list[str]:
    """The session-state keys of a page's fields."""
    return [f"{page}-{label}".lower() for label in labels]


def keep_texts(page: str, keys: list[str]) -> None:
    """Keep what is in the fields on this machine and put its id into the address."""
    try:
        view = save_texts([st.session_state.get(key, "") for key in keys])
    except OSError:  # a link brings back the settings, then, without the texts
        return
    st.session_state[f"{page}-view"] = view
    st.query_params["view"] = view


def _open_view(page: str, keys: list[str]) -> None:
    """Bring back the texts of the address's view; give the address the view of this visit."""
    asked, known = st.query_params.get("view"), st.session_state.get(f"{page}-view")
    if asked and asked != known:
        st.session_state[f"{page}-view"] = asked
        texts = load_texts(asked)
        if texts is None:
            st.info("The texts of this link are not kept on this machine; here is an example.")
            return
        st.session_state.update(zip(keys, texts, strict=False))
    elif known and not asked:
        st.query_params["view"] = known
