"""Figures that stay the same element while their data change, and tables, with downloads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly
import plotly.graph_objects as go
import streamlit as st
import streamlit.components.v1
import streamlit.components.v2
from pandas.api.types import is_numeric_dtype
from streamlit.delta_generator import DeltaGenerator

from neuralviz.plots.report import NAMES_SCRIPT, NOTHING, About, file_name, standalone_html
from neuralviz.plots.theme import escape, shorten, templates_json, unstyled_json
from neuralviz.store.writing import frame_csv, frame_parquet
from neuralviz.ui.page import hide_on_stage, plain
from neuralviz.words import number

VISIBLE_CASES = 3  # the others are in the expander
QUOTE_LENGTH = 90  # characters of a text in a sentence
CELL_LENGTH = 300  # characters of a text in the table
FOOTER_LENGTH = 400
_ASSETS = Path(__file__).with_name("assets")
_PLOTLY = Path(plotly.__file__).with_name("package_data")

_VERSION = version("plotly")
_plotlyjs = streamlit.components.v1.declare_component("plotlyjs", path=str(_PLOTLY))
_component = streamlit.components.v2.component(
    "neuralviz_live_figure",
    html="<div class='neuralviz-figure' role='figure'></div>",
    css=".neuralviz-figure { width: 100%; overflow: hidden; }",
    js=f"const TEMPLATES = {templates_json()}\n{NAMES_SCRIPT}\n"
    f"{(_ASSETS / 'live_figure.js').read_text('utf-8')}",
    isolate_styles=False,
)
MOST_AREAS = 100  # in one selection


# --- the live figure -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Handlers:
    """Callbacks for clicks, selections and hovering, called before the page or fragment reruns."""

    # gets {"x", "y", "z", "curve", "point", "customdata"}; a heatmap's ``point`` is [row, column]
    click: Callable[[dict[str, Any]], None] | None = None
    # gets ``customdata``, whole numbers, of all points in a lasso or box; none after a double click
    select: Callable[[list[int]], None] | None = None
    # gets ``customdata``, a whole number, of the point under the pointer
    hover: Callable[[int], None] | None = None
    # in place of ``select``: gets lassos and boxes, [corner, 2] each, in units of the axes
    areas: Callable[[list[np.ndarray]], None] | None = None
    # gets what is seen after zooming: (left, right, bottom, top), None for the whole figure
    window: Callable[[tuple[float, ...] | None], None] | None = None


NO_HANDLERS = Handlers()


def draw_live_figure(
    figure: go.Figure,
    *,
    key: str,  # without two underscores in a row
    height: int = 360,  # px, kept from the first moment
    handlers: Handlers = NO_HANDLERS,
    alt: str = "",  # for screen readers; the figure's title if empty
    name: str = "",  # of the pictures, without ending; ``key`` if empty; see `file_name`
    footer: str = "",  # below the pictures: how they were made
    window: tuple[float, ...] | None = None,  # seen at first; all if None; see `Handlers`
) -> None:
    """Draw ``figure``, or update the one drawn under ``key``.

    Zoom and hidden legend entries stay until ``layout.uirevision`` changes.
    """
    content = unstyled_json(figure).encode()  # megabytes for many points
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    layout = {"autosize": True, "height": height, "uirevision": figure.layout.uirevision or key}
    spec = {
        "layout": layout,
        "digest": f"{digest} {height}",
        "window": window,
        "plotly": f"component/{_plotlyjs.name}/plotly.min.js?v={_VERSION}",
        "alt": alt or figure.layout.title.text or key,
        "name": file_name(name or key),
        "footer": escape(shorten(footer, FOOTER_LENGTH)),
        "clicks": handlers.click is not None,
        "selects": "areas" if handlers.areas else "points" if handlers.select else "",
        "hovers": handlers.hover is not None,
        "windows": handlers.window is not None,
    }

    def hand_over(event: str, handle: Callable[[Any], None] | None) -> Callable[[], None]:
        return lambda: handle(st.session_state[key][event]) if handle is not None else None

    def hand_over_areas(sent: list[dict[str, list[float]]]) -> None:
        if handlers.areas is not None:
            handlers.areas(_areas(sent))

    def hand_over_window(event: dict[str, Any]) -> None:
        if handlers.window is not None and event["of"] == layout["uirevision"]:
            handlers.window(event["sides"] and tuple(map(float, event["sides"])))

    _component(
        key=key,
        data=json.dumps(spec).encode() + b"\n" + content,
        height=height,
        on_click_change=hand_over("click", handlers.click),
        on_select_change=hand_over("select", handlers.select),
        on_hover_change=hand_over("hover", handlers.hover),
        on_areas_change=hand_over("areas", hand_over_areas),
        on_window_change=hand_over("window", hand_over_window),
    )


def _areas(sent: list[dict[str, list[float]]]) -> list[np.ndarray]:
    """The browser's lassos and boxes as arrays, without invalid ones."""
    areas = [np.array([area["x"], area["y"]], dtype=float).T for area in sent[:MOST_AREAS]]
    return [area for area in areas if len(area) > 2 and np.isfinite(area).all()]


# --- with downloads ------------------------------------------------------------------------------


def show_figure(
    figure: go.Figure,
    name: str,  # of all downloads, without ending; see `file_name`
    numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,  # a row per mark; CSV and parquet
    provenance: About = NOTHING,  # title and settings, for downloads
    *,
    key: str = "",  # of the figure on the page; ``name`` if empty
    height: int = 0,  # px; by default that of the figure, else 420
    page: Callable[[], str] | None = None,  # the standalone page; by default the figure on white
    embeddings: Callable[[str], bytes] | None = None,  # a file by its ending, with the points
    **live: Any,  # see `draw_live_figure`
) -> None:
    """Draw a live figure with its downloads below it."""
    named, key = file_name(name, provenance), key or name
    draw_live_figure(
        figure,
        key=key,
        height=height or figure.layout.height or 420,
        name=named,
        footer=provenance.line,
        **live,
    )
    with open_downloads(key):
        make_page = page or (lambda: standalone_html(figure, provenance))
        download("Figure (HTML)", make_page, f"{named}.html", key=key)
        if numbers is not None:
            download_table("Numbers", numbers, name, key=key, provenance=provenance)
        if embeddings is not None:
            for ending, kind in ((".parquet", "Parquet"), (".csv", "CSV")):
                label, make = f"Points and embeddings ({kind})", partial(embeddings, ending)
                download(label, make, f"{named} embeddings{ending}", key=key)
        st.caption("For PNG and SVG, use the buttons at the top right of the figure.")


def open_downloads(key: str, label: str = "Download") -> DeltaGenerator:
    """A popover for download buttons."""
    return st.popover(label, icon=":material/download:", type="tertiary", key=f"{key}-take")


def list_cells(axes: Mapping[str, Iterable[Any]], **values: np.ndarray) -> pd.DataFrame:
    """A row for every cell of arrays: its place on each axis, by name, and the ``values`` there."""
    index = pd.MultiIndex.from_product([list(axis) for axis in axes.values()], names=list(axes))
    return pd.DataFrame(
        {name: cells.ravel() for name, cells in values.items()}, index
    ).reset_index()


def download_table(
    label: str,  # what the buttons call the table
    table: pd.DataFrame | Callable[[], pd.DataFrame],
    name: str,
    *,
    key: str,
    provenance: About = NOTHING,
) -> None:
    """Two buttons: a table as CSV, and as parquet with ``provenance`` in its metadata."""
    make = table if callable(table) else lambda: table
    named = file_name(name, provenance)
    metadata = {"title": provenance.title, **provenance.settings} if provenance != NOTHING else {}
    parquet = f"{named}.parquet"
    download(f"{label} (CSV)", lambda: frame_csv(make()), f"{named}.csv", key=key)
    download(f"{label} (Parquet)", lambda: frame_parquet(make(), metadata), parquet, key=key)


def download(label: str, make: Callable[[], str | bytes], name: str, *, key: str) -> None:
    """A button whose file is made when it is pressed, without another run of the page."""
    file = file_name(name)
    st.download_button(label, make, file, key=f"{key}-{file}", on_click="ignore", width="stretch")


def allow_swiping(key: str, min_width: int) -> DeltaGenerator:
    """Keep a figure ``min_width`` px wide on a narrow screen, where it can be swiped."""
    place, container = f".st-key-{key}", st.container(key=key)
    container.html(
        f"<style>{place} {{overflow-x: auto}} {place} "
        f".stElementContainer:has(.neuralviz-figure) {{min-width: {min_width}px}}</style>"
    )
    return container


def list_worst(frame: pd.DataFrame, key: str) -> None:
    """Show a table of texts and numbers, the worst row first."""
    written = frame.copy()
    for name in frame.columns:
        if is_numeric_dtype(frame[name]):
            digits = ".3g" if name == "human score" else ".3f"
            written[name] = [number(value, digits) for value in frame[name]]
        else:
            written[name] = [shorten(text, CELL_LENGTH) for text in frame[name]]
    st.table(written[:VISIBLE_CASES].map(plain), hide_index=True)
    if len(frame) > VISIBLE_CASES:
        with hide_on_stage(key), st.expander(f"The worst {len(frame)}"):
            st.dataframe(written, hide_index=True, key=key)


def quote(text: str) -> str:
    """A user's text as a quotation in a sentence of markdown."""
    return f"“{plain(shorten(text, QUOTE_LENGTH))}”"
