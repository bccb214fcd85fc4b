"""Figures that can be taken away: the picture, and the numbers in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from neuralviz.plots.theme import standalone_html
from neuralviz.ui.live_figure import live_figure

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import plotly.graph_objects as go


def show_figure(
    figure: go.Figure,
    *,
    key: str,
    numbers: pd.DataFrame | None,
    name: str,
    height: int = 420,
    on_click: Literal["ignore", "rerun"] | Callable[[dict[str, Any]], None] = "ignore",
    alt: str = "",
) -> dict[str, Any] | None:
    """Draw ``figure`` with the means to take it away below it.

    Args:
        key: names the figure on the page; neither empty nor with two underscores in a row.
        numbers: what is drawn, one row a mark; offered as CSV and parquet.
        name: file name of everything that is downloaded, without ending.
        height: px.
        on_click: as in ``live_figure``.
        alt: what a screen reader says; the figure's title if empty.

    Returns:
        The click that caused this run, as ``live_figure`` gives it, else None.
    """
    click = live_figure(figure, key=key, height=height, on_click=on_click, alt=alt, name=name)
    with st.popover("Take away", icon=":material/download:", type="tertiary", key=f"{key}-take"):
        st.caption("PNG and SVG are in the figure's own toolbar, at its upper right corner.")
        _download(
            "Figure (HTML)", lambda: standalone_html(figure), f"{name}.html", "text/html", key
        )
        if numbers is not None:
            _download(
                "Numbers (CSV)",
                lambda: numbers.to_csv(index=False),
                f"{name}.csv",
                "text/csv",
                key,
            )
            _download(
                "Numbers (parquet)",
                lambda: numbers.to_parquet(index=False),
                f"{name}.parquet",
                "application/vnd.apache.parquet",
                key,
            )
    return click


def _download(
    label: str, make: Callable[[], str | bytes], file_name: str, mime: str, key: str
) -> None:
    """A button whose file is made when it is pressed, without running the page again."""
    st.download_button(
        label, make, file_name, mime, key=f"{key}-{file_name}", on_click="ignore", width="stretch"
    )
