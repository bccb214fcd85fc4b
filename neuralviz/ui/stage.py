"""The stage, a page without its controls, one slide at a time, as large as the screen; and the
app's own scripts for the browser.
"""

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

    The arrow keys change slides there; Escape or S leaves it, and S comes back to the same slide.

    Behind the last slide, *Right* presses the page's button with the key ``stage-next``, else the
    one with ``tour-next``; before the first, *Left* presses ``stage-back`` or ``tour-back``.
    """
    _switch(key="stage-switch")


def send_before_leaving() -> None:
    """Make links between pages wait until the text typed in a field has been sent."""
    with st.sidebar:
        _leaving(key="leaving")


@contextmanager
def hide_on_stage(key: str) -> Iterator[None]:
    """A part of a slide that the stage hides."""
    with st.container(key=f"off-stage-{key}"):
        yield


@contextmanager
def show_only_on_stage(key: str) -> Iterator[None]:
    """A part of a slide that only the stage shows, because the page has it beside the slide."""
    with st.container(key=f"stage-only-{key}"):
        yield


@contextmanager
def show_on_stage(key: str, width: Literal["stretch", "content"] = "stretch") -> Iterator[None]:
    """A button or field that a stop of the tour asks the visitor to use.

    On the tour it is seen on the stage, too, in large type: within a slide where it stands, beside
    slides at the foot of each. While something is typed the arrow keys stay in the field.
    """
    with st.container(key=f"on-stage-{key}", width=width):
        yield


def show_headline(sentence: str, *, key: str) -> None:
    """Say what the figures below show, in large type; on the stage, it is their headline.

    Args:
        sentence: markdown, so that texts of users go through `plain`; a paragraph after the first
            is in small type. Nothing is shown when it is empty.
        key: names it on the page.
    """
    if sentence:
        with st.container(key=f"headline-{key}"):
            st.markdown(sentence)


@contextmanager
def slide(key: str, headline: str = "") -> Iterator[Callable[[str], None]]:
    """A slide of the stage: a headline (see `show_headline`) and the figures that prove it.

    Off the stage it is a part of the page like any other. On the stage slides follow each other in
    the order of the page; widgets, captions and downloads within them are not seen, and their
    figures share the height of the screen. What it yields writes the headline later, above what
    was drawn meanwhile.
    """
    with st.container(key=f"slide-{key}"):
        show_headline(headline, key=key)  # in no place of its own: figures below keep their zoom
        place = st.container() if not headline else None

        def write(sentence: str) -> None:
            with place or st.container():
                show_headline(sentence, key=key)

        yield write
