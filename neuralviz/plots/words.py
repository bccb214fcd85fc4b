"""Figures of the words of a corpus by how unevenly they change from layer to layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from neuralviz.plots.theme import escape, shorten
from neuralviz.words import many

DIMMEST = 0.3  # place along the scale from which its colours are seen on dark pages
ROW = 24  # px of a word
_AROUND_ROWS = 110  # px: title and axis


def words_figure(
    words: Sequence[str],
    variance: np.ndarray,
    occurrences: np.ndarray,
    limits: tuple[float, float],
    title: str,
    gap: int | None = None,
) -> go.Figure:
    """Words as dots along their variance, the first at the top.

    Args:
        words: what the dots are named after.
        variance: [word], 0 or above.
        occurrences: [word] in the corpus; the more, the larger the dot.
        limits: smallest and largest variance among all groups, so that their figures compare.
        title: of the figure.
        gap: number of the word before which a row is left empty.
    """
    rows = np.arange(len(words)) + (np.arange(len(words)) >= gap if gap else 0)
    low, high = limits
    logarithmic = low > 0 and high > 4 * low
    places = DIMMEST + (1 - DIMMEST) * _scale_places(variance, limits, logarithmic)
    colours = sample_colorscale("Cividis", places.tolist())
    figure = go.Figure(
        go.Scatter(
            x=variance,
            y=rows,
            mode="markers",
            marker={
                "color": colours,
                "size": 9 + 3 * np.log10(np.maximum(occurrences, 1)),
                "line": {"width": 1, "color": "#8A9096"},
            },
            customdata=np.array(
                [
                    [escape(shorten(word, 60)), many(count, "occurrence")]
                    for word, count in zip(words, occurrences.tolist(), strict=True)
                ],
                dtype=object,
            ).reshape(len(words), 2),
            hovertemplate="%{customdata[0]}: variance %{x:.2~g}<br>%{customdata[1]}<extra></extra>",
            cliponaxis=False,
        )
    )
    figure.update_layout(
        title=title,
        showlegend=False,
        xaxis=_axis(limits, logarithmic),
        yaxis={
            "tickvals": rows,
            "ticktext": [escape(shorten(word, 16)) for word in words],
            "range": [len(words) + bool(gap) - 0.4, -0.6],
            "zeroline": False,
            "ticklabelstandoff": 6,
        },
    )
    return figure


def words_height(n_words: int) -> int:
    """Height in px of `words_figure` with so many words."""
    return _AROUND_ROWS + ROW * max(n_words, 3)


def _scale_places(
    variance: np.ndarray, limits: tuple[float, float], logarithmic: bool
) -> np.ndarray:
    """[word] places between the limits, 0 … 1."""
    scaled = np.log if logarithmic else np.asarray
    low, high, values = scaled(limits[0]), scaled(limits[1]), scaled(variance)
    return np.clip((values - low) / (high - low), 0, 1) if high > low else np.full(len(values), 0.5)


def _axis(limits: tuple[float, float], logarithmic: bool) -> dict:
    axis = {"title": "variance", "zeroline": False, "nticks": 4}
    if not logarithmic:
        room = 0.06 * (limits[1] - limits[0]) or 0.5 * limits[1] or 1.0
        return axis | {"range": [limits[0] - room, limits[1] + room], "tickformat": ".2~g"}
    low, high = np.log10(limits)
    room = 0.06 * (high - low)
    ticks = [
        digit * 10.0**power
        for power in range(int(np.floor(low)), int(np.ceil(high)) + 1)
        for digit in ((1, 2, 5) if high - low < 2 else (1,))
    ]
    return axis | {
        "type": "log",
        "range": [low - room, high + room],
        "tickvals": ticks,
        "ticktext": [f"{tick:.4g}" for tick in ticks],
    }
