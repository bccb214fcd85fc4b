"""Figures and tables with downloads: pictures, a standalone page, and the numbers in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.api.types import is_numeric_dtype
from streamlit.delta_generator import DeltaGenerator

from neuralviz.plots.corpus_map import PointColumns
from neuralviz.plots.standalone import NOTHING, About, file_name, standalone_html
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import frame_csv, frame_parquet
from neuralviz.ui.live_figure import NO_HANDLERS, Handlers, draw_live_figure
from neuralviz.ui.page import plain
from neuralviz.ui.stage import hide_on_stage
from neuralviz.words import number

VISIBLE_CASES = 3  # the others are in the expander
QUOTE_LENGTH = 90  # characters of a text in a sentence
CELL_LENGTH = 300  # characters of a text in the table


@dataclass(frozen=True)
class Download:
    label: str
    make: Callable[[], str | bytes]  # called when a user downloads the file
    ending: str


def show_figure(
    figure: go.Figure,
    name: str,  # of all downloads, without ending; see `file_name`
    numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,  # a row per mark; CSV and parquet
    provenance: About = NOTHING,  # title and settings, for downloads
    *,
    key: str = "",  # of the figure on the page; ``name`` if empty
    height: int = 0,  # px; by default that of the figure, else 420
    alt: str = "",
    handlers: Handlers = NO_HANDLERS,
    page: Callable[[], str] | None = None,  # the standalone page; by default the figure on white
    downloads: Sequence[Download] = (),
    columns: PointColumns | None = None,  # with these, ``page`` is required
    window: tuple[float, ...] | None = None,
) -> dict[str, Any] | None:
    """Draw a live figure with its downloads below it; return the click that caused this run.

    For ``alt``, ``handlers``, ``columns`` and ``window``, see `draw_live_figure`.
    """
    named, key = file_name(name, provenance), key or name
    click = draw_live_figure(
        figure,
        key=key,
        height=height or figure.layout.height or 420,
        handlers=handlers,
        alt=alt,
        name=named,
        footer=provenance.line,
        columns=columns,
        window=window,
    )
    with open_downloads(key):
        make_page = page or (lambda: standalone_html(figure, provenance))
        download("Figure (HTML)", make_page, f"{named}.html", key=key)
        if numbers is not None:
            download_table("Numbers", numbers, name, key=key, provenance=provenance)
        for file in downloads:
            download(file.label, file.make, f"{named} embeddings.{file.ending}", key=key)
        st.caption("For PNG and SVG, use the buttons at the top right of the figure.")
    return click


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


@contextmanager
def allow_swiping(key: str, min_width: int) -> Iterator[None]:
    """Keep a figure ``min_width`` px wide on a narrow screen, where it can be swiped."""
    place = f".st-key-{key}"
    with st.container(key=key):
        st.html(
            f"<style>{place} {{overflow-x: auto}} {place} "
            f".stElementContainer:has(.neuralviz-figure) {{min-width: {min_width}px}}</style>"
        )
        yield


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
