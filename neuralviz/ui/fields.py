"""Text fields of a page that a link brings back: the address holds an id, never the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.ui.limits import character_limit
from neuralviz.ui.links import open_view, put_in_address
from neuralviz.ui.stage import show_on_stage
from neuralviz.ui.views import View

if TYPE_CHECKING:
    from collections.abc import Mapping


def ask_text_fields(
    page: str,
    fields: Mapping[str, str],
    examples: Mapping[str, Mapping[str, str]] | None = None,
    *,
    height: int = 68,
) -> list[str]:
    """A text area for each field, side by side; typed text outlives a visit to another page.

    Args:
        page: names the page; the key of a field is ``page-label`` in lower case.
        fields: label to the text that is in it at first.
        examples: by name, what they put into widgets, by key; offered above the fields.
        height: px.

    Returns:
        What is in the fields, as typed.
    """
    keys = [f"{page}-{label}".lower() for label in fields]
    if (view := open_view(page)) is not None:
        st.session_state.update(zip(keys, view.texts, strict=False))
    for key, text in zip(keys, fields.values(), strict=True):
        st.session_state.setdefault(key, text)
    if examples:
        _show_examples(page, examples, keys)
    texts = []
    with show_on_stage(page):
        for column, key, label in zip(st.columns(len(keys)), keys, fields, strict=True):
            text = column.text_area(
                label,
                height=height,
                max_chars=character_limit(len(keys)),
                key=key,
                on_change=_keep_texts,
                args=(page, keys),
                persist_state="session",
            )
            texts.append(text)
    return texts


def _show_examples(page: str, examples: Mapping[str, Mapping[str, str]], keys: list[str]) -> None:
    """Examples that fill a page's widgets; the example that they hold is marked."""
    key = f"{page}-example"
    st.session_state[key] = None
    for name, values in examples.items():
        if all(st.session_state.get(widget_key) == value for widget_key, value in values.items()):
            st.session_state[key] = name

    def open_example() -> None:
        name = st.session_state[key]
        if name is not None:  # None after a second click on the same example
            st.session_state.update(examples[name])
            _keep_texts(page, keys)

    st.pills(
        "Example", list(examples), key=key, on_change=open_example, label_visibility="collapsed"
    )


def _keep_texts(page: str, keys: list[str]) -> None:
    """Save the fields' texts on this machine and put their id into the address."""
    texts = tuple(st.session_state.get(key, "") for key in keys)
    put_in_address(page, View(texts), overwrite=True)
