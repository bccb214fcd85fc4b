"""Figures of measured embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from neuralviz.plots.room import cell_labels
from neuralviz.plots.theme import (
    DISSIMILAR,
    SIMILAR,
    SMALL_FONT_SIZE,
    escape,
    method_colours,
    shorten,
    shorten_apart,
    symmetric_range,
)
from neuralviz.words import number

MAX_BINS = 60
ROW_HEIGHT = 48  # px: a dot with its number above
LABEL_LENGTH = 34  # characters
WITH_BASELINE = 80  # px above a figure whose line of the baseline is named
NARROW = 0.2  # of the longest bar: no room for its number in it


def rows_height(n_rows: int) -> int:
    """px for a figure with a line for each row."""
    return 120 + ROW_HEIGHT * max(2, n_rows)


def interval_figure(
    labels: Sequence[str],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    title: str,
    axis: str,
    published: Sequence[tuple[float, str] | None] = (),
    *,
    written: str = ".2f",
    among: Sequence[str] = (),
) -> go.Figure:
    """A dot with its interval for each row; a hollow diamond for what was published of it.

    Args:
        labels: of the rows, no two alike.
        values: NaN where there is none.
        intervals: lower and upper bound at 95%; None where there is none.
        title: of the figure.
        axis: what the values are.
        published: value and model; None where there is none.
        written: format of the number above a dot.
        among: labels of all methods that are coloured together; by default those of the rows.
    """
    names = shorten_apart(labels, LABEL_LENGTH)
    colours = method_colours(among or labels)
    figure = go.Figure()
    for place, (name, label, value, bounds) in enumerate(
        zip(names, labels, values, intervals, strict=True)
    ):
        error = None
        if bounds is not None:
            error = {
                "type": "data",
                "symmetric": False,
                "array": [bounds[1] - value],
                "arrayminus": [value - bounds[0]],
                "thickness": 2.5,
                "width": 7,
            }
        interval = (
            ""
            if bounds is None
            else f"<br>95% interval: {number(bounds[0], '.3f')} to {number(bounds[1], '.3f')}"
        )
        figure.add_scatter(
            x=[value],
            y=[name],
            mode="markers+text",
            marker={"size": 13, "color": colours[label]},
            text=[number(value, written) if np.isfinite(value) else ""],
            textposition="top center",
            textfont={"size": SMALL_FONT_SIZE},
            cliponaxis=False,
            error_x=error,
            showlegend=False,
            hovertemplate=f"{name}: %{{x:.3f}}{interval}<extra></extra>",
            name=f"row {place}",
        )
    diamonds = [
        (name, *entry)
        for name, entry in zip(names, published or [None] * len(names), strict=True)
        if entry
    ]
    if diamonds:
        figure.add_trace(
            published_trace(
                [value for _, value, _ in diamonds],
                [name for name, _, _ in diamonds],
                [model for _, _, model in diamonds],
                value="x",
            )
        )
    figure.update_layout(
        title=title,
        xaxis={"title": axis, "nticks": 8},
        yaxis={
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "showgrid": True,
            "ticks": "",
            "range": [-0.6, len(names) - 0.4],
        },
    )
    return figure


def lead_figure(
    best: str, rivals: Sequence[str], leads: Sequence[WrittenLead], among: Sequence[str] = ()
) -> go.Figure:
    """How far the best method is ahead of each other one, with intervals; a line at no lead.

    Args:
        best: label of the best method.
        rivals: labels of the others, no two alike.
        leads: over each of them.
        among: as of `interval_figure`.
    """
    unit = leads[0].unit if leads else ""
    figure = interval_figure(
        rivals,
        [lead.value for lead in leads],
        [lead.interval for lead in leads],
        f"Lead of {escape(shorten(best, LABEL_LENGTH))} over …",
        f"{unit or 'lead'} ↑",
        among=among,
    )
    for trace, lead in zip(figure.data, leads, strict=True):
        trace.text = [lead.text]
    figure.add_vline(x=0, line={"color": "#8A9096", "width": 2}, layer="below")
    ends = [0.0, *(lead.value for lead in leads)]
    ends += [end for lead in leads for end in lead.interval or ()]
    room = 0.08 * (max(ends) - min(ends) or 1)
    figure.update_xaxes(range=[min(ends) - room, max(ends) + room])
    return figure


class WrittenLead(NamedTuple):
    """A lead as it is drawn: in its unit, percentage points or none, and as it is read."""

    value: float
    interval: tuple[float, float] | None
    unit: str
    text: str


def published_trace(
    x: Sequence[object], y: Sequence[object], models: Sequence[str], *, value: str
) -> go.Scatter:
    """Hollow diamonds at what was published, with the models that were measured there.

    Args:
        x, y: where they stand.
        models: one a diamond.
        value: ``x`` or ``y``, whichever is the published value.
    """
    names = [escape(model) for model in models]
    return go.Scatter(
        x=x,
        y=y,
        customdata=names,
        mode="markers",
        marker={"size": 13, "symbol": "diamond-open", "color": "#8A9096", "line": {"width": 2.5}},
        name=f"published, {', '.join(dict.fromkeys(names))}",
        hovertemplate=f"published: %{{{value}:.3f}}<br>%{{customdata}}<extra></extra>",
    )


def error_figure(
    labels: Sequence[str],
    errors: Sequence[float],
    strict: Sequence[float],
    title: str,
    among: Sequence[str] = (),
) -> go.Figure:
    """The share of relations that each row breaks, as bars; without ties, a line in the bar.

    Args:
        labels: of the rows.
        errors: shares, 0 … 1, ties broken.
        strict: shares without ties.
        title: of the figure.
        among: as of `interval_figure`.
    """
    names = shorten_apart(labels, LABEL_LENGTH)
    colours = method_colours(among or labels)
    figure = go.Figure(
        go.Bar(
            x=np.asarray(errors) * 100,
            y=names,
            orientation="h",
            marker={"color": [colours[label] for label in labels]},
            text=[f"{error:.2%}" for error in errors],
            textposition=[
                "inside" if error > NARROW * max(errors) else "outside" for error in errors
            ],
            textfont={"size": SMALL_FONT_SIZE},
            insidetextfont={"color": "white"},
            cliponaxis=False,
            customdata=np.asarray(strict) * 100,
            hovertemplate="%{y}: %{x:.4g}%<br>without ties %{customdata:.4g}%<extra></extra>",
        )
    )
    figure.update_layout(
        title=title,
        xaxis={"title": "error, % ↓", "rangemode": "tozero", "nticks": 6},
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": "", "ticklabelstandoff": 6},
        bargap=0.3,
    )
    return figure


def accuracy_figure(
    labels: Sequence[str],
    accuracies: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    baselines: Mapping[str, float],
    title: str,
    among: Sequence[str] = (),
) -> go.Figure:
    """How often the label of a text is told, with intervals; a line for each baseline.

    Args:
        labels: of the rows.
        accuracies: 0 … 1.
        intervals: at 95%.
        baselines: what is reached without embeddings, by name, two at most.
        title: of the figure.
        among: as of `interval_figure`.
    """
    figure = interval_figure(
        labels, accuracies, intervals, title, "accuracy ↑", written=".1%", among=among
    )
    for place, (name, value) in enumerate(baselines.items()):
        figure.add_vline(
            x=value, line={"dash": "dot" if place else "dash", "color": "#8A9096", "width": 2},
            annotation={"text": name, "yanchor": "bottom", "yshift": 18 * place},
        )  # fmt: skip
    low = min([*baselines.values(), *(bounds[0] for bounds in intervals)])
    high = max([*baselines.values(), *(bounds[1] for bounds in intervals)])
    room = 0.08 * (high - low or 1)
    figure.update_layout(
        xaxis={"tickformat": ".0%", "range": [low - room, high + room]},
        margin={"t": WITH_BASELINE + 18 * (len(baselines) - 1)},
    )
    return figure


def product_histogram(similar: np.ndarray, dissimilar: np.ndarray, title: str) -> go.Figure:
    """How the cosine similarities of similar and of dissimilar texts are distributed.

    Args:
        similar, dissimilar: cosine similarities, -1 … 1.
        title: of the figure.
    """
    cosines = np.concatenate([similar, dissimilar])
    low, high = (float(cosines.min()), float(cosines.max())) if len(cosines) else (0.0, 1.0)
    fewer = min(len(similar), len(dissimilar))
    n_bins = int(np.clip(3 * np.sqrt(max(fewer, 1)), 16, MAX_BINS))
    edges = np.linspace(low, high if high > low else low + 1e-3, n_bins + 1)
    figure = go.Figure()
    for values, name, colour in (
        (dissimilar, "dissimilar", DISSIMILAR),
        (similar, "similar", SIMILAR),
    ):
        counts, _ = np.histogram(values, edges)
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts / max(1, len(values)) * 100,
            width=np.diff(edges),
            name=f"{name} ({len(values):,})",
            marker={"color": colour, "opacity": 0.6, "line": {"width": 0}},
            hovertemplate=f"{name}: %{{y:.2g}}%<br>around %{{x:.3f}}<extra></extra>",
        )
    figure.update_layout(
        title=title,
        barmode="overlay",
        bargap=0,
        xaxis={"title": "cosine similarity", "nticks": 8},
        yaxis={"title": "pairs, %"},
    )
    return figure


def overlap_figure(
    labels: Sequence[str], share: np.ndarray, shared: np.ndarray, title: str
) -> go.Figure:
    """The share of errors that two methods have in common, as a matrix (Eq. 3).

    Args:
        labels: of the rows.
        share: [row, row] ``I``, 0 … 1; NaN where a row breaks nothing.
        shared: [row, row] how many.
        title: of the figure.
    """
    names = shorten_apart(labels, LABEL_LENGTH)
    figure = go.Figure(
        go.Heatmap(
            z=share,
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            colorbar={"title": {"text": "I"}},
            **cell_labels(share),
            textfont={"size": SMALL_FONT_SIZE},
            customdata=shared,
            hovertemplate=("%{y}<br>%{x}<br>I = %{z:.3f}, %{customdata:,} shared<extra></extra>"),
        )
    )
    figure.update_layout(
        title=title,
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": ""},
        xaxis={"showgrid": False, "ticks": "", "tickangle": -35},
    )
    return figure


def quality_figure(
    qualities: Sequence[str],
    matrices: Sequence[np.ndarray],
    fixed: Sequence[tuple[np.ndarray, np.ndarray]],
    title: str,
    *,
    is_ratio: bool = False,
) -> go.Figure:
    """A heatmap for each quality that varies, over the values of the two others (section 3.1).

    Args:
        qualities: names.
        matrices: [fixed1, fixed2] tau-c, or ratios of two methods' tau-c.
        fixed: values of the two others.
        title: of the figure.
        is_ratio: colours centred at 1, cut to 0.5 … 1.5.
    """
    figure = make_subplots(
        cols=max(1, len(qualities)),
        subplot_titles=[f"{escape(shorten(name, 20))} varies" for name in qualities],
        horizontal_spacing=0.08,
    )
    for column, (matrix, (rows, columns)) in enumerate(zip(matrices, fixed, strict=True), 1):
        # a diverging scale is centred at 0: ratios are drawn as what they are above 1
        drawn = matrix - 1 if is_ratio else matrix
        figure.add_trace(
            go.Heatmap(
                z=drawn,
                x=[f"{value:g}" for value in columns],
                y=[f"{value:g}" for value in rows],
                coloraxis="coloraxis",
                **cell_labels(matrix),
                hovertemplate="others fixed at %{y} and %{x}: %{text}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    finite = np.concatenate([np.zeros(1), *(np.ravel(matrix) for matrix in matrices)])
    finite = finite[np.isfinite(finite)]
    if is_ratio:
        low, high = -0.5, 0.5
    elif finite.min() < 0:
        low, high = symmetric_range(finite)
    else:
        low, high = 0.0, float(finite.max()) or 1.0
    bar: dict[str, Any] = {"title": {"text": "ratio" if is_ratio else "tau-c"}}
    if is_ratio:
        bar |= {"tickvals": [-0.5, -0.25, 0, 0.25, 0.5],
                "ticktext": ["≤ 0.5", "0.75", "1", "1.25", "≥ 1.5"]}  # fmt: skip
    figure.update_layout(
        title=title, coloraxis={"cmin": low, "cmax": high, "colorbar": bar}, margin={"t": 90}
    )
    figure.update_xaxes(showgrid=False, ticks="", type="category")
    figure.update_yaxes(showgrid=False, ticks="", type="category")
    return figure
