"""What all pages share: header, columns, errors, and users' text as markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.errors import NeuralvizError
from neuralviz.ui.tour import show_card

_JOINED = re.compile(r"(?i)www(?=\.)|https?(?=://)|@|-(?=[->])|<(?=-)")  # begin links and arrows
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#|~$:<>&]|(?<=:material)/")
_AT_START = re.compile(r"^(\s*\d*)([-+.](?=\s|$)|=)", re.MULTILINE)
WORD_JOINER = "\u2060"  # invisible; prevents links and arrows, which escapes do not


def show_page_header(title: str, line: str, formula_md: str, reading_md: str, source: str) -> None:
    """Draw the title, a line below it, and a popover on how to read the page, all in markdown."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        with st.popover(
            "How to read this", icon=":material/menu_book:", type="tertiary", key="how-to-read"
        ):
            st.markdown(reading_md)
            st.markdown(formula_md)
            st.caption(source)
    if not show_card(title):
        st.markdown(line)


def wide_columns(spec: int | Sequence[int], key: str) -> list[DeltaGenerator]:
    """Columns side by side on a wide page, and below each other where there is no room."""
    with st.container(key=f"wide-{key}"):
        return st.columns(spec, gap="medium")


@contextmanager
def dim_old_results(key: str, is_old: bool) -> Iterator[None]:
    """A place for results, faded when they belong to other texts or settings than the widgets."""
    # the same elements either way, so that no figure is drawn anew
    opacity = 0.4 if is_old else 1
    st.html(f"<style>.st-key-result-{key} {{ --result-opacity: {opacity} }}</style>")
    with st.container(key=f"result-{key}"):
        yield


def plain(text: str) -> str:
    """A user's text as markdown that shows it as it is, without links and arrows."""
    apart = _JOINED.sub(rf"\g<0>{WORD_JOINER}", text)
    return _AT_START.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", apart))


def show_error(error: NeuralvizError, replacement: str = "") -> None:
    """Show what is wrong and what to do; ``replacement`` says what is shown instead."""
    st.error(plain(f"{error} {replacement}".rstrip()))
