"""A plotly figure that stays the same element of the page while its data change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import plotly
import plotly.graph_objects as go
import streamlit as st
import streamlit.components.v1
import streamlit.components.v2

from neuralviz.plots.corpus_map import PointColumns
from neuralviz.plots.standalone import file_name
from neuralviz.plots.theme import escape, shorten, templates_json, unstyled_json
from neuralviz.ui.stage import script

FOOTER_LENGTH = 400
_ASSETS = Path(__file__).with_name("assets")
_PLOTLY = Path(plotly.__file__).with_name("package_data")

_VERSION = version("plotly")
_plotlyjs = streamlit.components.v1.declare_component("plotlyjs", path=str(_PLOTLY))
_component = streamlit.components.v2.component(
    "neuralviz_live_figure",
    html="<div class='neuralviz-figure' role='figure'></div>",
    css=".neuralviz-figure { width: 100%; overflow: hidden; }",
    js=f"const TEMPLATES = {templates_json()}\n{(_ASSETS / 'live_figure.js').read_text('utf-8')}",
    isolate_styles=False,
)
_columns = script("point_columns", "<div class='neuralviz-columns' hidden></div>")
MOST_AREAS = 100  # in one selection


@dataclass(frozen=True)
class Handlers:
    """Callbacks for clicks, selections and hovering, called before the page or fragment reruns."""

    # gets the click on a point or a cell; ``"rerun"`` only runs the script
    click: Literal["ignore", "rerun"] | Callable[[dict[str, Any]], None] = "ignore"
    # gets ``customdata``, whole numbers, of all points in a lasso or box; none after a double click
    select: Literal["ignore"] | Callable[[list[int]], None] = "ignore"
    # gets ``customdata``, a whole number, of the point under the pointer
    hover: Literal["ignore"] | Callable[[int], None] = "ignore"
    # in place of ``select``: gets lassos and boxes, [corner, 2] each, in units of the axes
    areas: Literal["ignore"] | Callable[[list[np.ndarray]], None] = "ignore"
    # gets what is seen after zooming: (left, right, bottom, top), None for the whole figure
    window: Literal["ignore"] | Callable[[tuple[float, ...] | None], None] = "ignore"

    @property
    def selects(self) -> Literal["", "points", "areas"]:
        """What the browser sends of a lasso or a box; empty for nothing."""
        if self.areas != "ignore":
            return "areas"
        return "points" if self.select != "ignore" else ""


NO_HANDLERS = Handlers()


@dataclass(frozen=True)
class DrawnFigure:
    content: bytes  # data and layout as JSON; megabytes for many points
    digest: str  # of the content
    uirevision: str | None
    title: str | None

    @classmethod
    def from_figure(cls, figure: go.Figure) -> DrawnFigure:
        content = unstyled_json(figure).encode()
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        return cls(content, digest, figure.layout.uirevision, figure.layout.title.text)


def draw_once(
    key: str, dependencies: tuple[object, ...], make: Callable[[], go.Figure]
) -> DrawnFigure:
    """The figure of a ``key``, made again only when its dependencies have changed."""
    kept = st.session_state.get(f"{key}-drawn")
    if kept is None or kept[0] != dependencies:
        kept = st.session_state[f"{key}-drawn"] = dependencies, DrawnFigure.from_figure(make())
    return kept[1]


def draw_live_figure(
    figure: go.Figure | DrawnFigure,
    *,
    key: str,  # without two underscores in a row
    height: int = 360,  # px, kept from the first moment
    handlers: Handlers = NO_HANDLERS,
    alt: str = "",  # for screen readers; the figure's title if empty
    name: str = "",  # of the pictures, without ending; ``key`` if empty; see `file_name`
    footer: str = "",  # below the pictures: how they were made
    columns: PointColumns | None = None,  # points that traces refer to; sent when they change
    window: tuple[float, ...] | None = None,  # seen at first; all if None; see `Handlers`
) -> dict[str, Any] | None:
    """Draw ``figure``, or update the one drawn under ``key``; return the click that caused the run.

    The click is ``{"x", "y", "z", "curve", "point", "customdata"}``; a heatmap's ``point`` is
    ``[row, column]``. Zoom and hidden legend entries stay until ``layout.uirevision`` changes.
    """
    drawn = figure if isinstance(figure, DrawnFigure) else DrawnFigure.from_figure(figure)
    layout = {"autosize": True, "height": height, "uirevision": drawn.uirevision or key}
    spec = {
        "layout": layout,
        "digest": f"{drawn.digest} {height} {columns.digest if columns else ''}",
        "columns": columns.digest if columns else None,
        "window": window,
        "plotly": f"component/{_plotlyjs.name}/plotly.min.js?v={_VERSION}",
        "alt": alt or drawn.title or key,
        "name": file_name(name or key),
        "footer": escape(shorten(footer, FOOTER_LENGTH)),
        "clicks": handlers.click != "ignore",
        "selects": handlers.selects,
        "hovers": handlers.hover != "ignore",
        "windows": handlers.window != "ignore",
    }
    if columns is not None:
        with st.container(key=f"{key}-columns"):
            _columns(
                key=f"{key}-points",
                data=columns.digest.encode() + b"\n" + columns.content,
                height=0,
            )

    def hand_over(event: str, handle: object) -> None:
        if callable(handle):
            handle(st.session_state[key][event])

    def hand_over_areas() -> None:
        if callable(handlers.areas):
            handlers.areas(_areas(st.session_state[key]["areas"]))

    def hand_over_window() -> None:
        event = st.session_state[key]["window"]
        if callable(handlers.window) and event["of"] == layout["uirevision"]:
            handlers.window(event["sides"] and tuple(map(float, event["sides"])))

    result = _component(
        key=key,
        data=json.dumps(spec).encode() + b"\n" + drawn.content,
        height=height,
        on_click_change=lambda: hand_over("click", handlers.click),
        on_select_change=lambda: hand_over("select", handlers.select),
        on_hover_change=lambda: hand_over("hover", handlers.hover),
        on_areas_change=hand_over_areas,
        on_window_change=hand_over_window,
    )
    return result.get("click")


def _areas(sent: list[dict[str, list[float]]]) -> list[np.ndarray]:
    """The browser's lassos and boxes as arrays, without invalid ones."""
    areas = [np.array([area["x"], area["y"]], dtype=float).T for area in sent[:MOST_AREAS]]
    return [area for area in areas if len(area) > 2 and np.isfinite(area).all()]
