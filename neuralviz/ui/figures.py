"""Figures and tables with downloads: a standalone page, and the numbers in it."""

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
    """A file that is made when a user downloads it."""

    label: str
    make: Callable[[], str | bytes]
    ending: str


def show_figure(
    figure: go.Figure,
    name: str,
    numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,
    provenance: About = NOTHING,
    *,
    key: str = "",
    height: int = 0,
    alt: str = "",
    handlers: Handlers = NO_HANDLERS,
    page: Callable[[], str] | None = None,
    downloads: Sequence[Download] = (),
    columns: PointColumns | None = None,
    window: tuple[float, ...] | None = None,
) -> dict[str, Any] | None:
    """`draw_live_figure` with its downloads below it.

    Args:
        figure: to draw.
        name: of all downloads, without ending; see `file_name`.
        numbers: what is drawn, one row a mark, or what makes that table when it is downloaded;
            offered as CSV and parquet.
        provenance: title and settings, for what is downloaded.
        key: names the figure on the page; the ``name`` if empty.
        page: makes the standalone page; by default it is the figure on white, with ``provenance``.
        downloads: further files to offer.
        height: px; by default that of the figure, else 420.
        alt, handlers, columns, window: as of `draw_live_figure`; with columns there must
            be a ``page``.

    Returns:
        The click that caused this run, if any.
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
    """A popover for the buttons of downloads."""
    return st.popover(label, icon=":material/download:", type="tertiary", key=f"{key}-take")


def list_cells(axes: Mapping[str, Iterable[Any]], **values: np.ndarray) -> pd.DataFrame:
    """A row for every cell of arrays: its place on each axis, by name, and the ``values`` there."""
    index = pd.MultiIndex.from_product([list(axis) for axis in axes.values()], names=list(axes))
    return pd.DataFrame(
        {name: cells.ravel() for name, cells in values.items()}, index
    ).reset_index()


def download_table(
    label: str,
    table: pd.DataFrame | Callable[[], pd.DataFrame],
    name: str,
    *,
    key: str,
    provenance: About = NOTHING,
) -> None:
    """Two buttons: a table as CSV, and as parquet with ``provenance`` in its metadata.

    The table, or what makes it when it is downloaded, is called ``label`` on the buttons.
    """
    make = table if callable(table) else lambda: table
    named = file_name(name, provenance)
    metadata = {"title": provenance.title, **provenance.settings} if provenance != NOTHING else {}
    parquet = f"{named}.parquet"
    download(f"{label} (CSV)", lambda: frame_csv(make()), f"{named}.csv", key=key)
    download(f"{label} (Parquet)", lambda: frame_parquet(make(), metadata), parquet, key=key)


def download(label: str, make: Callable[[], str | bytes], name: str, *, key: str) -> None:
    """A button whose file is made at its press, without another run of the page."""
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
    """Show a table of texts and numbers, the worst row first; ``key`` names it on the page."""
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
    """A user's text in a sentence of markdown."""
    return f"“{plain(shorten(text, QUOTE_LENGTH))}”"
