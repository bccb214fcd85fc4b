"""Text fields of a page that a link brings back: the address holds an id, never the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.ui.limits import character_limit
from neuralviz.ui.links import open_view, put_in_address
from neuralviz.ui.views import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def ask_text_fields(page: str, fields: Mapping[str, str], *, height: int = 68) -> list[str]:
    """A text area for each field, side by side; typed text outlives a visit to another page.

    Args:
        page: names the page; the key of a field is ``page-label`` in lower case.
        fields: label to the text that is in it at first.
        height: px.

    Returns:
        What is in the fields, as typed.
    """
    keys = field_keys(page, fields)
    if (view := open_view(page)) is not None:
        st.session_state.update(zip(keys, view.texts, strict=False))
    texts = []
    for column, key, (label, text) in zip(st.columns(len(keys)), keys, fields.items(), strict=True):
        st.session_state.setdefault(key, text)
        with column:
            texts.append(
                st.text_area(
                    label,
                    height=height,
                    max_chars=character_limit(len(keys)),
                    key=key,
                    on_change=keep_texts,
                    args=(page, keys),
                    persist_state="session",
                )
            )
    return texts


def show_example_pills(
    page: str, examples: Mapping[str, Mapping[str, str]], keys: list[str]
) -> None:
    """Examples that fill a page's widgets; the example that they hold is marked.

    Call it after the widgets, whose values tell which example that is; a container puts the pills
    above them.

    Args:
        page: names the page.
        examples: by name, the values of widgets, by key.
        keys: of the page's text fields.
    """
    key, held = f"{page}-example", None
    for name, values in examples.items():
        if all(st.session_state.get(widget_key) == value for widget_key, value in values.items()):
            held = name
    st.session_state[key] = held

    def open_example() -> None:
        name = st.session_state[key]
        if name is not None:  # None after a second click on the same example
            st.session_state.update(examples[name])
            keep_texts(page, keys)

    st.pills(
        "Example",
        list(examples),
        key=key,
        on_change=open_example,
        label_visibility="collapsed",
    )


def field_keys(page: str, labels: Iterable[str]) -> list[str]:
    """The session-state keys of a page's fields."""
    return [f"{page}-{label}".lower() for label in labels]


def keep_texts(page: str, keys: list[str]) -> None:
    """Save the fields' texts on this machine and put their id into the address."""
    texts = tuple(st.session_state.get(key, "") for key in keys)
    put_in_address(page, View(texts), overwrite=True)
