"""How well neighbours share their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.point_colours import GREY
from neuralviz.plots.theme import SMALL_FONT_SIZE, escape, method_colours, shorten, shorten_apart
from neuralviz.words import percent

_NAME_CHARACTERS, _METHOD_CHARACTERS = 16, 40
_PATTERNS = ("", "/", ".", "x")


def accuracy_figure(
    methods: Sequence[str],
    accuracies: Mapping[str, np.ndarray],
    baselines: Mapping[str, float],
    *,
    title: str = "k-NN accuracy",
) -> go.Figure:
    """Accuracy of the k nearest neighbours, a bar for each method, a group for each label column.

    Args:
        methods: labels of the methods.
        accuracies: by label column, [method, 3] accuracy, and the lower and upper end of its
            interval, 0 … 1; NaN where there is none.
        baselines: by label column, the accuracy of always saying the most frequent label.
        title: of the figure.
    """
    columns = list(accuracies)
    values = np.array([np.asarray(accuracies[name], dtype=float) for name in columns]) * 100
    figure = go.Figure()
    colours, names = method_colours(methods), shorten_apart(methods, _METHOD_CHARACTERS)
    used: list[str] = []
    for i, method in enumerate(methods):
        share, low, high = values[:, i].T
        look = colours[method]
        figure.add_bar(
            x=np.arange(len(columns)),
            y=share,
            name=names[i],
            marker={
                "color": look,
                "pattern": {
                    "shape": _PATTERNS[used.count(look) % 4],
                    "fillmode": "overlay",
                    "fgcolor": "white",
                    "fgopacity": 0.4,
                },
            },
            error_y={
                "array": high - share,
                "arrayminus": share - low,
                "thickness": 2,
                "width": 5,
                "color": GREY,
            },
            customdata=np.stack([low, high], axis=1),
            text=[percent(value / 100) for value in share],
            textposition="inside",
            insidetextanchor="middle",  # above the line of the baseline
            textangle=0,
            insidetextfont={"color": "white", "size": SMALL_FONT_SIZE},
            hovertemplate="%{fullData.name}<br>%{y:.1f}% (95% interval: %{customdata[0]:.1f}% to "
            "%{customdata[1]:.1f}%)<extra></extra>",
        )
        used.append(look)
    for i, name in enumerate(columns):
        figure.add_scatter(
            x=[i - 0.45, i + 0.45],
            y=[100 * baselines[name]] * 2,
            mode="lines",
            line={"color": GREY, "width": 3, "dash": "dash"},
            name="majority baseline",
            legendgroup="baseline",
            showlegend=i == 0,
            hovertemplate="majority baseline: %{y:.1f}%<extra></extra>",
        )
    figure.update_layout(
        title=escape(title),
        xaxis={
            "tickvals": list(range(len(columns))),
            "ticktext": [escape(shorten(name, _NAME_CHARACTERS)) for name in columns],
            "range": [-0.5, len(columns) - 0.5],
            "showgrid": False,
        },
        yaxis={"title": "accuracy (higher is better)", "range": [0, 100], "ticksuffix": "%"},
        barmode="group",
        bargap=0.2,
        showlegend=True,
    )
    return figure
