"""The sentence above a page's figures that says what they show."""

from __future__ import annotations

import streamlit as st


def show_headline(sentence: str, *, key: str) -> None:
    """Say what the figures below show, in large type; on the stage, it is their headline.

    Args:
        sentence: one or two, made from the numbers that are shown; what is said in a paragraph
            after them is in small type. Markdown, so that texts of users go through `plain`.
            Nothing is shown when it is empty.
        key: names it on the page.
    """
    if sentence:
        with st.container(key=f"headline-{key}"):
            st.markdown(sentence)
