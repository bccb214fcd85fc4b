"""Figures that can be taken away: the picture, and the numbers in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.plots.theme import standalone_html, style
from neuralviz.ui.session import is_dark

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import plotly.graph_objects as go

PICTURES = ("PNG", "SVG")


def show_figure(
    figure: go.Figure,
    *,
    key: str,
    numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,
    name: str,
    height: int = 420,
    alt: str = "",
) -> None:
    """Draw a ``figure`` that does not move, with the means to take it away below it.

    What moves, or wants clicks, is drawn by ``live_figure``.

    Args:
        key: names the figure on the page.
        numbers: what is drawn, one row a mark, or what makes that table when somebody takes it;
            offered as CSV and parquet.
        name: file name of everything that is downloaded, without ending.
        height: px.
        alt: what a screen reader says; the figure's title if empty.
    """
    style(figure, is_dark())
    figure.update_layout(height=height)
    if "Mobi" in (st.context.headers.get("User-Agent") or ""):
        figure.update_layout(dragmode=False)  # a finger on the figure scrolls the page
    picture = st.session_state.get(f"{key}-picture", PICTURES[0])
    st.plotly_chart(
        figure,
        theme=None,
        width="stretch",
        alt=alt or figure.layout.title.text or name,
        key=f"{key}-{picture}",  # a chart keeps the config it was made with
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
            "toImageButtonOptions": {"format": picture.lower(), "filename": name, "scale": 2},
        },
    )
    with st.popover("Download", icon=":material/download:", type="tertiary", key=f"{key}-take"):
        st.segmented_control(
            "Picture",
            PICTURES,
            default=PICTURES[0],
            required=True,
            key=f"{key}-picture",
            help="What the camera in the figure's own toolbar saves.",
        )
        _download(
            "Figure (HTML)", lambda: standalone_html(figure), f"{name}.html", "text/html", key
        )
        if numbers is not None:
            make = numbers if callable(numbers) else lambda: numbers
            _download(
                "Numbers (CSV)",
                lambda: make().to_csv(index=False),
                f"{name}.csv",
                "text/csv",
                key,
            )
            _download(
                "Numbers (parquet)",
                lambda: make().to_parquet(index=False),
                f"{name}.parquet",
                "application/vnd.apache.parquet",
                key,
            )


def _download(
    label: str, make: Callable[[], str | bytes], file_name: str, mime: str, key: str
) -> None:
    """A button whose file is made when it is pressed, without running the page again."""
    st.download_button(
        label, make, file_name, mime, key=f"{key}-{file_name}", on_click="ignore", width="stretch"
    )
