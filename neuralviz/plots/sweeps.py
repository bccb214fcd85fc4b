"""Figures of a measure over one or two settings of a method, varied from row to row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.evaluation import published_trace
from neuralviz.plots.room import cell_labels
from neuralviz.plots.theme import BLUE, SMALL_FONT_SIZE, escape
from neuralviz.words import number

WIDE_RANGE = 20  # times the smallest value: beyond, an axis of settings is logarithmic
NO_BASELINES: Mapping[str, float] = MappingProxyType({})
_BAND = "rgba(0, 114, 178, 0.16)"


def line_figure(
    setting: str,
    values: Sequence[float],
    measured: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    title: str,
    axis: str,
    published: Sequence[tuple[float, str] | None],
    baselines: Mapping[str, float] = NO_BASELINES,
) -> go.Figure:
    """A measure over one setting, with its intervals as a band.

    Args:
        setting: what it is called.
        values: of the setting, no two alike.
        measured: the measure; NaN where there is none, and the line goes on behind.
        intervals: lower and upper bound at 95%; None where there is none.
        title: of the figure.
        axis: what the measure is.
        published: what a paper has for a value, and the model there; None where it has nothing.
        baselines: what is reached without embeddings, by name: a line each.
    """
    order = [index for index in np.argsort(values) if np.isfinite(measured[index])]
    x = [values[index] for index in order]
    figure = go.Figure()
    bounds = [intervals[index] for index in order]
    if bounds and all(interval is not None for interval in bounds):
        for side in (0, 1):
            figure.add_scatter(
                x=x,
                y=[interval[side] for interval in bounds if interval is not None],
                mode="lines",
                line={"width": 0},
                fill="tonexty" if side else None,
                fillcolor=_BAND,
                hoverinfo="skip",
                showlegend=bool(side),
                name="95% interval",
            )
    figure.add_scatter(
        x=x,
        y=[measured[index] for index in order],
        mode="lines+markers",
        line={"color": BLUE, "width": 2.5},
        marker={"size": 9, "color": BLUE},
        name=axis,
        showlegend=False,
        hovertemplate=f"{escape(setting)} %{{x}}: %{{y:.3f}}<extra></extra>",
    )
    references = [
        (value, *reference) for value, reference in zip(values, published, strict=True) if reference
    ]
    if references:
        figure.add_trace(
            published_trace(
                [value for value, _, _ in references],
                [value for _, value, _ in references],
                [model for _, _, model in references],
                value="y",
            )
        )
    for place, (name, value) in enumerate(baselines.items()):
        figure.add_hline(
            y=value, line={"dash": "dot" if place else "dash", "color": "#8A9096", "width": 2},
            annotation={"text": name, "xanchor": "right", "x": 1, "yanchor": "bottom"},
        )  # fmt: skip
    if baselines and x:
        bounded = [end for interval in bounds for end in interval or ()]
        ends = [*baselines.values(), *(measured[index] for index in order), *bounded]
        room = 0.08 * (max(ends) - min(ends) or 1)
        figure.update_yaxes(range=[min(ends) - room, max(ends) + room])
    is_wide = min(values) > 0 and max(values) > WIDE_RANGE * min(values)
    figure.update_layout(
        title=title,
        xaxis={"title": escape(setting)},
        yaxis={"title": axis, "nticks": 6},
    )
    if is_wide:
        figure.update_xaxes(type="log", tickvals=x, ticktext=[f"{value:g}" for value in x])
    return figure


def grid_figure(
    settings: tuple[str, str],
    values: tuple[Sequence[float], Sequence[float]],
    measured: Sequence[float],
    title: str,
    axis: str,
) -> go.Figure:
    """A measure over two settings, as a heatmap.

    Args:
        settings: what they are called.
        values: of each setting, one a row of the experiment.
        measured: the measure, one a row; NaN where there is none.
        title: of the figure.
        axis: what the measure is.
    """
    down, across = (sorted(set(setting_values)) for setting_values in values)
    matrix = np.full((len(down), len(across)), np.nan)
    for a, b, value in zip(*values, measured, strict=True):
        matrix[down.index(a), across.index(b)] = value
    figure = go.Figure(
        go.Heatmap(
            z=matrix,
            x=[f"{value:g}" for value in across],
            y=[f"{value:g}" for value in down],
            colorbar={"title": {"text": axis}},
            **cell_labels(matrix, _format_rounded),
            textfont={"size": SMALL_FONT_SIZE},
            hovertemplate=f"{escape(settings[0])} %{{y}}, {escape(settings[1])} %{{x}}: %{{text}}"
            "<extra></extra>",
        )
    )
    figure.update_layout(title=title)
    figure.update_xaxes(title=escape(settings[1]), type="category", showgrid=False, ticks="")
    figure.update_yaxes(
        title=escape(settings[0]), type="category", showgrid=False, ticks="", autorange="reversed"
    )
    return figure


def _format_rounded(value: float) -> str:
    """Three digits that count, and no lone point."""
    return number(value, "#.3g").rstrip(".")
