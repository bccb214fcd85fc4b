"""A plotly figure that stays the same node of the page while its data move."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import plotly
import streamlit as st
import streamlit.components.v1
import streamlit.components.v2

from neuralviz.plots.theme import style
from neuralviz.ui.session import is_dark

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

_ASSETS = Path(__file__).with_name("assets")
_PLOTLY = Path(plotly.__file__).with_name("package_data")

_plotlyjs = streamlit.components.v1.declare_component("plotlyjs", path=str(_PLOTLY))
_component = streamlit.components.v2.component(
    "neuralviz_live_figure",
    html="<div class='neuralviz-figure' role='figure'></div>",
    css=".neuralviz-figure { width: 100%; overflow: hidden; }",
    js=(_ASSETS / "live_figure.js").read_text("utf-8"),
    isolate_styles=False,
)


def live_figure(
    figure: go.Figure,
    *,
    key: str,
    height: int = 360,
    on_click: Literal["ignore", "rerun"] | Callable[[dict[str, Any]], None] = "ignore",
    alt: str = "",
    name: str = "",
) -> dict[str, Any] | None:
    """Draw ``figure``, or bring the one drawn under ``key`` up to date.

    Zoom, hover and hidden legend entries stay while the data change; give the figure a
    ``layout.uirevision`` of its own that changes when they should be reset. The figure takes the
    colours of the page. Works in fragments.

    Args:
        key: names the figure on the page; neither empty nor with two underscores in a row.
        height: px, kept from the first moment.
        on_click: ``"rerun"`` runs the script (or fragment) again when a point or a cell is
            clicked; a function is called with the click before that.
        alt: what a screen reader says; the figure's title if empty.
        name: file name of the pictures, without ending; ``key`` if empty.

    Returns:
        The click that caused this run, ``{"x", "y", "z", "curve", "point", "customdata"}``,
        else None. Of a heatmap, ``point`` is ``[row, column]``.
    """
    style(figure, is_dark())
    layout = {
        "autosize": True,
        "height": height,
        "uirevision": figure.layout.uirevision or key,
    }
    spec = {
        "figure": json.loads(figure.to_json(validate=False)),
        "layout": layout,
        "plotly": f"component/{_plotlyjs.name}/plotly.min.js?v={version('plotly')}",
        "alt": alt or figure.layout.title.text or key,
        "name": name or key,
        "clicks": on_click != "ignore",
    }
    handle = on_click if callable(on_click) else lambda _: None
    result = _component(
        key=key,
        data=json.dumps(spec).encode(),
        height=height,
        on_click_change=lambda: handle(st.session_state[key]["click"]),
    )
    return result.get("click")
