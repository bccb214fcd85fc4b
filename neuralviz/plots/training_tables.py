"""Figures of tables of trainings: bars, lines or a map, with the range of the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from neuralviz.evaluation.training_frames import training_numbers
from neuralviz.plots.room import spaced_ticks
from neuralviz.plots.theme import AFTER, BEFORE, PAIR_COLOURS, escape, shorten

if TYPE_CHECKING:
    import pandas as pd

    from neuralviz.evaluation.training_tables import TrainingCell, TrainingTable

_NOT_DRAWN = ["steps", "seconds", "diverged"]


def training_table_figure(
    table: TrainingTable, cells: Sequence[TrainingCell], label: str
) -> go.Figure:
    """A table as far as it is filled.

    Bars of the last layer's accuracy; for tables of layers and epochs, lines; for one of spaces,
    a map.

    Args:
        table: that is filled.
        cells: at least one.
        label: what texts are told apart by.
    """
    numbers = training_numbers(table, cells).drop(columns=_NOT_DRAWN)
    draw = {"accuracy": _bars, "layers": _lines, "epochs": _lines, "spaces": _map}
    figure = draw[table.columns](numbers)
    place = "last layer" if table.columns == "accuracy" else table.columns
    figure.update_layout(
        title=f"10-NN accuracy of “{escape(shorten(label, 30))}”, {place}; higher is better"
    )
    return figure


def _colour(row: str) -> str:
    """A row's colour: that of its kind of pairs on the page, grey before training."""
    if "before" in row:
        return BEFORE
    return next((PAIR_COLOURS[kind] for kind in PAIR_COLOURS if kind in row), AFTER)


def _bars(numbers: pd.DataFrame) -> go.Figure:
    accuracies = numbers.groupby("row", sort=False)["last layer"]
    mean, low, high = accuracies.mean(), accuracies.min(), accuracies.max()
    figure = go.Figure(
        go.Bar(
            y=[escape(row) for row in mean.index],
            x=mean,
            orientation="h",
            marker_color=[_colour(row) for row in mean.index],
            error_x={
                "type": "data", "array": high - mean, "arrayminus": mean - low,
                "visible": bool((high > low).any()),
            },
            texttemplate="%{x:.1%}",
            textposition="inside",
            insidetextanchor="start",
            hovertemplate="%{y}: %{x:.1%}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_layout(
        xaxis={"tickformat": ".0%", "rangemode": "tozero", "title": "accuracy"},
        yaxis={"autorange": "reversed"},
        showlegend=False,
    )
    return figure


def _lines(numbers: pd.DataFrame) -> go.Figure:
    figure = go.Figure()
    names = [name for name in numbers.columns if name not in ("row", "seed")]
    places = np.arange(len(names))
    for row, row_numbers in numbers.groupby("row", sort=False):
        values = row_numbers[names].to_numpy(float)
        mean = np.nanmean(values, axis=0)
        figure.add_scatter(
            x=places, y=mean, name=str(row), mode="lines+markers",
            line={
                "color": _colour(str(row)), "width": 4,
                "dash": "dot" if row == "before" else "solid",
            },
            marker={"size": 9},
            error_y={
                "type": "data", "visible": len(values) > 1,
                "array": np.nanmax(values, axis=0) - mean,
                "arrayminus": mean - np.nanmin(values, axis=0),
            },
            hovertemplate=f"{escape(str(row))}<br>%{{x}}: %{{y:.1%}}<extra></extra>",
        )  # fmt: skip
    ticks = spaced_ticks(range(len(names)))
    axis = "layer" if names[-1].startswith("layer") else "epoch"
    figure.update_layout(
        xaxis={
            "tickvals": list(ticks),
            "ticktext": [names[place].removeprefix(f"{axis} ") for place in ticks],
            "title": axis
        },
        yaxis={"tickformat": ".0%", "title": "accuracy"},
        showlegend=True,
    )  # fmt: skip
    return figure


def _map(numbers: pd.DataFrame) -> go.Figure:
    mean = numbers.drop(columns="seed").groupby("row", sort=False).mean()
    figure = go.Figure(
        go.Heatmap(
            z=mean.to_numpy(float),
            x=[name.replace(" ", "<br>") for name in mean.columns],
            y=[escape(row) for row in mean.index],
            texttemplate="%{z:.1%}",
            colorbar={"title": {"text": "accuracy", "side": "right"}, "tickformat": ".0%"},
            hovertemplate="%{y}, %{x}: %{z:.1%}<extra></extra>",
        )
    )
    figure.update_layout(
        xaxis={"showgrid": False},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return figure
