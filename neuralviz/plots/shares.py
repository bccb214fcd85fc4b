"""Bars: how much each word of a text contributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.theme import BEFORE, escape, shorten, symmetric_range

UPRIGHT_WORDS = 14  # more are written upwards
FLAT_CHARACTERS = 36  # of words beside each other in half a page


def shares_figure(words: Sequence[str], shares: np.ndarray, title: str) -> go.Figure:
    """Each word's share of the delta, in the order of the text; negative ones pulled back."""
    percent = np.asarray(shares) * 100
    low, high = symmetric_range(percent)
    figure = go.Figure(
        go.Bar(
            x=np.arange(len(percent)),
            y=percent,
            marker={"color": percent, "coloraxis": "coloraxis"},
            marker_line={"width": 1, "color": BEFORE},  # around 0 a bar has the ground's colour
            customdata=[escape(word) for word in words],
            hovertemplate="%{customdata}: %{y:,.1f}%<extra></extra>",
        )
    )
    few = len(words) <= 60
    figure.update_layout(
        title=title,
        coloraxis={"cmin": low, "cmax": high, "showscale": False},
        xaxis={
            "tickvals": np.arange(len(words)) if few else None,
            "ticktext": [escape(shorten(word, 14)) for word in words] if few else None,
            "tickangle": _word_angle(words),
            "tickfont": {"size": 13} if len(words) > UPRIGHT_WORDS else None,
            "showgrid": False,
            "title": None if few else "word",
        },
        yaxis={"title": "share of the delta, %", "zeroline": True},
        bargap=0.15,
        meta={"stage": {"xaxis.tickangle": -45}} if UPRIGHT_WORDS < len(words) <= 30 else None,
    )
    return figure


def _word_angle(words: Sequence[str]) -> int:
    """Degrees at which words do not run into each other, also in half a page."""
    if len(words) > UPRIGHT_WORDS:
        return -90
    fits = sum(len(word) + 2 for word in words) <= FLAT_CHARACTERS
    return 0 if fits else -45


def shares_width(words: Sequence[str]) -> int:
    """px below which the words of `shares_figure` would stand on each other."""
    return 80 + 13 * len(words) if len(words) <= 60 else 300
