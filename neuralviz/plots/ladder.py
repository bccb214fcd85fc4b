"""Figures of the ladder of similarity models, and of what its rungs have learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from neuralviz.evaluation.ladder_events import FLOOR, LINEAR, NEURAL, SENTENCE
from neuralviz.evaluation.ladder_table import PUBLISHED_OF
from neuralviz.evaluation.normal_plot import normal_plot
from neuralviz.plots.evaluation import interval_figure
from neuralviz.plots.pairs import scatter_figure
from neuralviz.plots.room import spaced_ticks
from neuralviz.plots.theme import (
    BEFORE,
    BLUE,
    FONT_SIZE,
    RUNG_COLOURS,
    SKY,
    SMALL_FONT_SIZE,
    VERMILLION,
)
from neuralviz.training.similarity.names import RUNG_NAMES
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_events import Curve
    from neuralviz.evaluation.ladder_table import LadderLine, Prediction
    from neuralviz.training.similarity.settings import Rung

ROW_HEIGHT = 40  # px
_BASELINE_COLOURS = {FLOOR: BLUE, LINEAR: BEFORE, SENTENCE: SKY, NEURAL: VERMILLION}
_MOST_BINS = 24
_LOSSES = [digit * 10.0**power for power in range(-6, 2) for digit in (1, 3)]  # on a log axis
_ON_DEV = "On the dev pairs"
_ROOM = 0.06  # beside the outermost dot


def ladder_height(n_lines: int) -> int:
    """px for a ladder with so many lines."""
    return 120 + ROW_HEIGHT * n_lines


def ladder_figure(lines: Sequence[LadderLine], rungs: Sequence[Rung]) -> go.Figure:
    """Baselines and rungs as dots with intervals; hollow diamonds for what was published.

    Diamonds are drawn where the lines have what was published: on the pairs that it is of.
    A rung that is not there yet has its line already.

    Args:
        lines: of baselines and of the rungs that are there.
        rungs: all that are to be climbed.
    """
    by_name = {line.name: line for line in lines}
    names = [line.name for line in lines if line.rung is None]
    names += [RUNG_NAMES[rung] for rung in rungs]
    rung_of = {RUNG_NAMES[rung]: rung for rung in rungs}
    drawn_lines = [by_name.get(name) for name in names]
    published = [
        (line.published, PUBLISHED_OF) if line and line.published is not None else None
        for line in drawn_lines
    ]
    figure = interval_figure(
        names,
        [line.spearman if line else np.nan for line in drawn_lines],
        [line.interval if line else None for line in drawn_lines],
        "Spearman on the test pairs",
        "Spearman ↑",
        published,
    )
    for trace, name in zip(figure.data, names, strict=False):
        rung = rung_of.get(name)
        trace.marker.color = RUNG_COLOURS[rung] if rung else _BASELINE_COLOURS.get(name, BEFORE)
        trace.marker.symbol = "circle" if rung else "square"
    several = [(line.name, score) for line in lines for score in line.seeds if len(line.seeds) > 1]
    if several:
        figure.add_scatter(
            x=[score for _, score in several],
            y=[name for name, _ in several],
            mode="markers",
            name="single seeds",
            marker={"size": 9, "symbol": "line-ns-open", "color": BEFORE, "line": {"width": 2}},
            hovertemplate="one seed: %{x:.3f}<extra></extra>",
        )
    ends = [
        value for line in lines for value in (line.spearman, *(line.interval or ()), *line.seeds)
    ]
    ends = [value for value in [*ends, *(p[0] for p in published if p)] if np.isfinite(value)]
    if ends:
        room = _ROOM * (max(ends) - min(ends) or 1)
        figure.update_xaxes(range=[min(ends) - room, max(ends) + room])
    figure.update_layout(showlegend=True, title=None, margin={"t": 16})
    return figure


def curves_figure(curves: Mapping[tuple[Rung, int], Curve]) -> go.Figure:
    """How the rungs learn: Spearman on the dev pairs by epoch, and below it the loss.

    The best epoch of each is marked. Losses are squared errors of scores as shares of their range;
    the log-variance loss is drawn as the variance that it is the logarithm of.

    Args:
        curves: as far as they are; of several seeds, those behind the first are pale.
    """
    figure = make_subplots(
        rows=2, shared_xaxes=True, vertical_spacing=0.16, subplot_titles=(_ON_DEV, "Loss")
    )
    drawn_rungs: set[Rung] = set()
    for (rung, seed), curve in curves.items():
        dev, losses = np.asarray(curve.dev, float), np.asarray(curve.losses, float)
        if not len(losses):
            continue
        if rung == "log-variance":
            losses = np.exp(losses)
        for row, values, quantity in ((1, dev, "Spearman"), (2, losses, "loss")):
            figure.add_scatter(
                x=np.arange(1, len(values) + 1), y=values, mode="lines", row=row, col=1,
                opacity=0.5 if rung in drawn_rungs else 1,
                line={"color": RUNG_COLOURS[rung], "width": 3},
                hovertemplate=f"{RUNG_NAMES[rung]}, seed {seed}<br>epoch %{{x}}: {quantity} "
                "%{y:.3f}<extra></extra>",
            )  # fmt: skip
        if np.isfinite(dev).any():
            best = int(np.nanargmax(dev))
            figure.add_scatter(
                x=[best + 1], y=[dev[best]], mode="markers", hoverinfo="skip", row=1, col=1,
                marker={"size": 11, "color": RUNG_COLOURS[rung]},
            )  # fmt: skip
        drawn_rungs.add(rung)
    figure.update_annotations(x=0, xanchor="left", font={"size": FONT_SIZE})
    figure.update_layout(
        xaxis={"rangemode": "tozero"},
        xaxis2={"title": "epoch", "rangemode": "tozero"},
        yaxis={"title": "Spearman ↑", "nticks": 5},
        yaxis2={"title": "squared error ↓", "type": "log", "tickvals": _LOSSES},
        showlegend=False,
        margin={"t": 28},
    )
    if not figure.data:
        figure.update_layout(
            xaxis2={"range": [0, 10]}, yaxis={"range": [0, 1]}, yaxis2={"range": [-2, 0]}
        )
    return figure


def layer_shares_figure(rung: Rung, shares: np.ndarray) -> go.Figure:
    """The layers that a rung listens to, as bars.

    Args:
        rung: that was trained.
        shares: [layer] shares, together 1.
    """
    layers = np.arange(len(shares))
    figure = go.Figure(
        go.Bar(
            x=layers,
            y=shares,
            marker={"color": RUNG_COLOURS[rung]},
            hovertemplate="layer %{x}: %{y:.1%}<extra></extra>",
        )
    )
    figure.update_layout(
        title="What the score depends on",
        xaxis={"title": "layer", "tickvals": spaced_ticks(layers), "showgrid": False},
        yaxis={"title": "share", "tickformat": ".0%", "rangemode": "tozero"},
        bargap=0.3,
    )
    return figure


def autoencoder_figure(rebuilt: Sequence[np.ndarray], losses: np.ndarray) -> go.Figure:
    """What the autoencoders lose at each layer, after the first and the last epoch (Figure 3).

    Args:
        rebuilt: [epoch, layer] of all epochs, if they are known.
        losses: [layer] after the last one.
    """
    layers = np.arange(len(losses))
    figure = go.Figure()
    drawn = [("after the last epoch", losses, "solid")]
    if len(rebuilt) > 1:
        drawn.insert(0, ("after the first epoch", rebuilt[0], "dot"))
    for name, values, dash in drawn:
        figure.add_scatter(
            x=layers,
            y=values,
            name=name,
            mode="lines+markers",
            line={"color": RUNG_COLOURS["autoencoder"], "width": 3, "dash": dash},
            marker={"size": 9},
            hovertemplate=f"{name}<br>layer %{{x}}: %{{y:.1%}}<extra></extra>",
        )
    figure.update_layout(
        title="What the autoencoders lose",
        xaxis={"title": "layer", "tickvals": spaced_ticks(layers)},
        yaxis={"title": "share of variance ↓", "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=len(drawn) > 1,
    )
    return figure


def residual_figure(rung: Rung, errors: np.ndarray) -> go.Figure:
    """A histogram of the errors of predictions (Figure 4).

    Args:
        rung: whose predictions.
        errors: [pair] prediction minus people's score.
    """
    edges = np.histogram_bin_edges(errors, bins="auto" if np.ptp(errors) else 1)
    if len(edges) > _MOST_BINS + 1:
        edges = np.linspace(edges[0], edges[-1], _MOST_BINS + 1)
    counts, _ = np.histogram(errors, edges)
    figure = go.Figure(
        go.Bar(
            x=(edges[1:] + edges[:-1]) / 2,
            y=counts,
            width=np.diff(edges),
            marker={"color": RUNG_COLOURS[rung], "line": {"width": 1, "color": "white"}},
            customdata=np.stack([edges[:-1], edges[1:]], axis=1),
            hovertemplate="%{customdata[0]:.2f} to %{customdata[1]:.2f}: %{y}<extra></extra>",
        )
    )
    figure.add_vline(x=0, line={"color": BEFORE, "width": 2, "dash": "dash"})
    figure.update_layout(
        title="Errors",
        xaxis={"title": "prediction − human score"},
        yaxis={"title": "pairs"},
    )
    return figure


def qq_figure(rung: Rung, errors: np.ndarray) -> go.Figure:
    """The errors in order against those of a normal distribution of their spread (Figure 4).

    Args:
        rung: whose predictions.
        errors: [pair] prediction minus people's score.
    """
    plot = normal_plot(errors)
    expected, ordered = plot.normal, plot.values
    mean, spread = float(errors.mean()), float(errors.std())
    figure = go.Figure()
    ends = expected[[0, -1]]
    figure.add_scatter(
        x=ends, y=mean + spread * ends, mode="lines", hoverinfo="skip",
        line={"color": BEFORE, "width": 2, "dash": "dash"},
    )  # fmt: skip
    figure.add_scatter(
        x=expected, y=ordered, mode="markers", marker={"size": 8, "color": RUNG_COLOURS[rung]},
        hovertemplate="error %{y:.2f}, normal %{x:.2f}<extra></extra>",
    )  # fmt: skip
    figure.update_layout(
        title="Q–Q plot",
        xaxis={"title": "if they were normal", "zeroline": False},
        yaxis={"title": "error", "zeroline": False},
        showlegend=False,
    )
    return figure


def predictions_figure(rung: Rung, pairs: Sequence[Prediction]) -> go.Figure:
    """Predictions against people's scores; the pair is named where one points.

    Args:
        rung: whose predictions.
        pairs: at least one.
    """
    predicted = np.array([pair.predicted for pair in pairs])
    scores = np.array([pair.score for pair in pairs])
    figure = scatter_figure(
        predicted,
        scores,
        [pair.sentences for pair in pairs],
        None,
        "Predictions and human scores",
        axis="prediction",
    )
    figure.update_traces(marker={"color": RUNG_COLOURS[rung]})
    ends = [min(predicted.min(), scores.min()), max(predicted.max(), scores.max())]
    figure.add_scatter(
        x=ends, y=ends, mode="lines", hoverinfo="skip", showlegend=False,
        line={"color": BEFORE, "width": 2, "dash": "dash"},
    )  # fmt: skip
    return figure


def pair_scores_figure(
    pair: Mapping[Rung, float], equal: Mapping[Rung, float], low: float, high: float
) -> go.Figure:
    """The scores of two texts by every rung as bars, with a line at that of identical texts.

    Args:
        pair: the scores.
        equal: of two identical texts.
        low, high: ends of people's scale.
    """
    names = [RUNG_NAMES[rung] for rung in pair]
    figure = go.Figure(
        go.Bar(
            x=[value - low for value in pair.values()],
            base=low,
            y=names,
            orientation="h",
            marker={"color": [RUNG_COLOURS[rung] for rung in pair]},
            text=[number(value, ".2f") for value in pair.values()],
            textposition="auto",
            textfont={"size": SMALL_FONT_SIZE},
            insidetextfont={"color": "white"},
            customdata=list(pair.values()),
            hovertemplate="%{y}: %{customdata:.2f}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_scatter(
        x=list(equal.values()),
        y=names,
        mode="markers",
        name="two identical texts",
        marker={"size": 26, "symbol": "line-ns-open", "color": BEFORE, "line": {"width": 3}},
        hovertemplate="identical texts: %{x:.2f}<extra></extra>",
    )
    figure.update_layout(
        xaxis={"title": "score ↑", "range": [low, high + 0.02 * (high - low)]},
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": "", "ticklabelstandoff": 6},
        bargap=0.35,
        showlegend=True,
        margin={"t": 16},
    )
    return figure
