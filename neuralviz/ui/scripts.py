"""The app's own scripts for the browser, as components of a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit.components.v2

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_ASSETS = Path(__file__).with_name("assets")


def script(name: str, html: str = "<span></span>") -> ComponentRenderer:
    """Register the component that runs ``assets/NAME.js``; call it once, at import."""
    return streamlit.components.v2.component(
        f"neuralviz_{name}",
        html=html,
        js=(_ASSETS / f"{name}.js").read_text("utf-8"),
        isolate_styles=False,
    )
