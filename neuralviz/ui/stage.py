"""The stage: a page without its controls, one slide at a time, as large as the screen."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def slide(key: str) -> Iterator[None]:
    """What is shown together on the stage: a point and the figures that prove it.

    Off the stage it is a part of the page like any other. On the stage slides follow each other in
    the order of the page; widgets, captions and downloads within them are not seen, and their
    figures share the height of the screen.
    """
    with st.container(key=f"slide-{key}"):
        yield
