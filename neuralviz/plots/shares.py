"""Bars: how much each word of a text contributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.theme import BEFORE, escape, shorten, symmetric_range

ALL_NAMED = 60  # words: of a longer text only the largest bars have theirs
MOST_NAMED = 10
LINES = 16  # written upwards, so many stand beside each other on a phone
UPRIGHT_WORDS = 14  # more are written upwards
FLAT_CHARACTERS = 36  # of words beside each other in half a page


def shares_figure(words: Sequence[str], shares: np.ndarray, title: str) -> go.Figure:
    """Each word's share of the delta, in the order of the text; negative ones pulled back.

    Of more than `ALL_NAMED` words, only those of the largest bars are written below them.
    """
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
    named = _named_places(percent)
    figure.update_layout(
        title=title,
        coloraxis={"cmin": low, "cmax": high, "showscale": False},
        xaxis={
            "tickvals": named,
            "ticktext": [escape(shorten(words[place], 14)) for place in named],
            "tickangle": _word_angle(words),
            "tickfont": {"size": 13} if len(words) > UPRIGHT_WORDS else None,
            "showgrid": False,
        },
        yaxis={"title": "share of the delta, %", "zeroline": True},
        bargap=0.15,
        meta={"stage": {"xaxis.tickangle": -45}} if UPRIGHT_WORDS < len(words) <= 30 else None,
    )
    return figure


def _named_places(shares: np.ndarray) -> list[int]:
    """Places of the words to write: all, or the largest that have room for a line of text."""
    if len(shares) <= ALL_NAMED:
        return list(range(len(shares)))
    named: list[int] = []
    for place in np.argsort(-np.abs(shares), kind="stable").tolist():
        if all(abs(place - named_place) * LINES >= len(shares) for named_place in named):
            named.append(place)
        if len(named) == MOST_NAMED:
            break
    return sorted(named)


def _word_angle(words: Sequence[str]) -> int:
    """Degrees at which words do not run into each other, also in half a page."""
    if len(words) > UPRIGHT_WORDS:
        return -90
    fits = sum(len(word) + 2 for word in words) <= FLAT_CHARACTERS
    return 0 if fits else -45


def shares_width(words: Sequence[str]) -> int:
    """px below which the words of `shares_figure` would stand on each other."""
    return 80 + 13 * len(words) if len(words) <= ALL_NAMED else 300
