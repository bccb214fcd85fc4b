"""The stage, which shows a page slide by slide on the whole screen; the app's browser scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import streamlit as st
import streamlit.components.v2
from streamlit.components.v2.types import ComponentRenderer

ASSETS = Path(__file__).with_name("assets")


def script(name: str, html: str = "<span></span>") -> ComponentRenderer:
    """Register the component that runs ``assets/NAME.js``; call it once, at import."""
    return streamlit.components.v2.component(
        f"neuralviz_{name}",
        html=html,
        js=(ASSETS / f"{name}.js").read_text("utf-8"),
        isolate_styles=False,
    )


_leaving = script("leaving")
_switch = script(
    "stage", "<button class='neuralviz-stage-switch' title='Full screen (S)'>Stage</button>"
)


def show_stage_switch() -> None:
    """The button that opens the stage, as do the key S and ``?stage`` in a link.

    Past the last slide, *Right* presses ``stage-next`` or ``tour-next``; before the first, *Left*
    presses ``stage-back`` or ``tour-back``.
    """
    _switch(key="stage-switch")


def send_before_leaving() -> None:
    """Make links between pages wait until the text typed in a field has been sent."""
    with st.sidebar:
        _leaving(key="leaving")


@contextmanager
def hide_on_stage(key: str) -> Iterator[None]:
    with st.container(key=f"off-stage-{key}"):
        yield


@contextmanager
def show_only_on_stage(key: str) -> Iterator[None]:
    with st.container(key=f"stage-only-{key}"):
        yield


@contextmanager
def show_on_stage(key: str, width: Literal["stretch", "content"] = "stretch") -> Iterator[None]:
    """A widget that the tour asks the visitor to use: the stage then shows it, too, enlarged."""
    with st.container(key=f"on-stage-{key}", width=width):
        yield


def show_headline(sentence: str, *, key: str) -> None:
    """Show a headline in markdown in large type, its further paragraphs in small type."""
    if sentence:
        with st.container(key=f"headline-{key}"):
            st.markdown(sentence)


@contextmanager
def slide(key: str, headline: str = "") -> Iterator[Callable[[str], None]]:
    """A part of the page that is a slide on the stage, with headline and figures alone.

    What it yields writes the headline later, above what was drawn meanwhile.
    """
    with st.container(key=f"slide-{key}"):
        show_headline(headline, key=key)  # in no place of its own: figures below keep their zoom
        place = st.container() if not headline else None

        def write(sentence: str) -> None:
            with place or st.container():
                show_headline(sentence, key=key)

        yield write
