"""Figures with downloads: a standalone page, and the numbers in it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.plots.theme import standalone_html
from neuralviz.store.writing import frame_csv
from neuralviz.ui.live_figure import NO_HANDLERS, Handlers, live_figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Download:
    """A file that is made when somebody downloads it."""

    label: str
    make: Callable[[], str | bytes]
    ending: str


def show_figure(
    figure: go.Figure,
    *,
    key: str,
    numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,
    name: str,
    height: int = 420,
    alt: str = "",
    handlers: Handlers = NO_HANDLERS,
    page: Callable[[], str] | None = None,
    more: Sequence[Download] = (),
) -> dict[str, Any] | None:
    """`live_figure` with its downloads below it.

    Args:
        figure: to draw.
        key: names the figure on the page.
        numbers: what is drawn, one row a mark, or what makes that table when it is downloaded;
            offered as CSV and parquet.
        name: file name of everything that is downloaded, without ending.
        height: px.
        alt: what a screen reader says; the figure's title if empty.
        handlers: as of `live_figure`.
        page: makes the standalone page; by default it is the figure on white.
        more: files that are offered beside these.

    Returns:
        The click that caused this run, if any.
    """
    click = live_figure(
        figure,
        key=key,
        height=height,
        handlers=handlers,
        alt=alt,
        name=name,
    )
    with st.popover("Download", icon=":material/download:", type="tertiary", key=f"{key}-take"):
        make_page = page or (lambda: standalone_html(figure))
        _download("Figure (HTML)", make_page, f"{name}.html", "text/html", key)
        if numbers is not None:
            make = numbers if callable(numbers) else lambda: numbers
            _download(
                "Numbers (CSV)",
                lambda: frame_csv(make()),
                f"{name}.csv",
                "text/csv",
                key,
            )
            _download(
                "Numbers (Parquet)",
                lambda: make().to_parquet(index=False),
                f"{name}.parquet",
                "application/vnd.apache.parquet",
                key,
            )
        for file in more:
            _download(file.label, file.make, f"{name} embeddings.{file.ending}", None, key)
        st.caption("For PNG and SVG, use the buttons at the top right of the figure.")
    return click


@contextmanager
def swiped(key: str, least: int) -> Iterator[None]:
    """A place for a figure that keeps ``least`` px on a narrow screen, to be swiped in the page."""
    place = f".st-key-{key}"
    with st.container(key=key):
        st.html(
            f"<style>{place} {{overflow-x: auto}} {place} "
            f".stElementContainer:has(.neuralviz-figure) {{min-width: {least}px}}</style>"
        )
        yield


def _download(
    label: str, make: Callable[[], str | bytes], file_name: str, mime: str | None, key: str
) -> None:
    """A button whose file is made when it is pressed, without running the page again."""
    st.download_button(
        label, make, file_name, mime, key=f"{key}-{file_name}", on_click="ignore", width="stretch"
    )
