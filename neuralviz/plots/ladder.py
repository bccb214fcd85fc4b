"""Figures of the ladder of similarity models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used
from plotly.subplots import make_subplots

from neuralviz.evaluation.ladder_results import FLOOR, LINEAR, NEURAL, PUBLISHED_OF, SENTENCE
from neuralviz.plots.evaluation import Chart, interval_figure
from neuralviz.plots.layers import scatter_figure
from neuralviz.plots.theme import (
    BEFORE,
    BLUE,
    FONT_SIZE,
    GROUND,
    NAMES_OF_BARS,
    RUNG_COLOURS,
    SKY,
    VERMILLION,
    Trace,
    bars,
    dots,
    draw,
    format_two_places,
    line,
    number_axis,
    widen,
)
from neuralviz.training.similarity.settings import RUNG_NAMES, Rung
from neuralviz.words import number

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.evaluation.ladder_results import Curve, LadderLine

_BASELINE_COLOURS = {FLOOR: BLUE, LINEAR: BEFORE, SENTENCE: SKY, NEURAL: VERMILLION}
_LOSSES = [digit * 10.0**power for power in range(-6, 2) for digit in (1, 3)]  # on a log axis
_ON_DEV = "On the dev pairs"
_DASHED: Trace = {"width": 2, "dash": "dash", "size": 0}


def ladder_figure(lines: Sequence[LadderLine], rungs: Sequence[Rung]) -> go.Figure:
    """Baselines and rungs with intervals; hollow diamonds for published values."""
    by_name = {line.name: line for line in lines}
    names = [line.name for line in lines if line.rung is None]
    names += [RUNG_NAMES[rung] for rung in rungs]
    rung_of = {RUNG_NAMES[rung]: rung for rung in rungs}
    rows = [by_name.get(name) for name in names]
    published = [
        (row.published, PUBLISHED_OF) if row and row.published is not None else None for row in rows
    ]
    chart = Chart(
        names,
        [row.spearman if row else np.nan for row in rows],
        [row.interval if row else None for row in rows],
        "Spearman on the test pairs",
        "Spearman ↑",
        published=published,
    )
    figure = interval_figure(chart)
    for trace, name in zip(figure.data, names, strict=False):
        rung = rung_of.get(name)
        trace.marker.color = RUNG_COLOURS[rung] if rung else _BASELINE_COLOURS.get(name, BEFORE)
        trace.marker.symbol = "circle" if rung else "square"
    several = [(line.name, score) for line in lines for score in line.seeds if len(line.seeds) > 1]
    if several:
        owners, scores = zip(*several, strict=True)
        look: Trace = {"marker": {"symbol": "line-ns-open", "line": {"width": 2}}}
        look["name"] = "single seeds"
        figure.add_trace(dots(scores, owners, BEFORE, "one seed: %{x:.3f}", **look))
    ends = [entry[0] for entry in published if entry]
    for row in lines:
        ends += [row.spearman, *(row.interval or ()), *row.seeds]
    finite = [value for value in ends if np.isfinite(value)]
    figure.update_xaxes(range=widen(finite, 0.06) if finite else [0, 1])
    return figure.update_layout(showlegend=True)


def curves_figure(curves: Mapping[tuple[Rung, int], Curve]) -> go.Figure:
    """Spearman on the dev pairs by epoch, and the loss below; the first seed stands out."""
    figure = make_subplots(
        rows=2, shared_xaxes=True, vertical_spacing=0.16, subplot_titles=(_ON_DEV, "Loss")
    )
    drawn_rungs: set[Rung] = set()
    for (rung, seed), curve in curves.items():
        if curve.losses:
            figure.add_traces(_learning_lines(rung, seed, curve, pale=rung in drawn_rungs))
            drawn_rungs.add(rung)
    figure.update_annotations(x=0, xanchor="left", font={"size": FONT_SIZE})
    figure.update_layout(
        xaxis={"rangemode": "tozero"},
        xaxis2={"title": "epoch", "rangemode": "tozero"},
        yaxis={"title": "Spearman ↑", "nticks": 5},
        yaxis2={"title": "squared error ↓", "type": "log", "tickvals": _LOSSES},
        showlegend=False,  # on the page, the ladder beside it has the colours
        margin={"t": 28},
        meta={"picture": {"showlegend": True}},
    )
    if not figure.data:
        figure.update_layout(
            xaxis2={"range": [0, 10]}, yaxis={"range": [0, 1]}, yaxis2={"range": [-2, 0]}
        )
    return figure


def _learning_lines(rung: Rung, seed: int, curve: Curve, *, pale: bool) -> list[Trace]:
    dev, losses = np.asarray(curve.dev, float), np.asarray(curve.losses, float)
    colour = RUNG_COLOURS[rung]
    if rung == "log-variance":
        losses = np.exp(losses)  # the variance
    traces = []
    for axis, values, quantity in (("", dev, "Spearman"), ("2", losses, "loss")):
        hover = f"{RUNG_NAMES[rung]}, seed {seed}<br>epoch %{{x}}: {quantity} %{{y:.3f}}"
        look: Trace = {"size": 0, "opacity": 0.5 if pale else 1}
        look |= {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "name": RUNG_NAMES[rung]}
        look["showlegend"] = not (axis or pale)
        traces.append(line(np.arange(1, len(values) + 1), values, colour, hover, **look))
    if np.isfinite(dev).any():
        best = int(np.nanargmax(dev))
        place: Trace = {"xaxis": "x", "yaxis": "y", "showlegend": False}
        traces.append(dots([best + 1], [dev[best]], colour, size=11, **place))
    return traces


def layer_shares_figure(rung: Rung, shares: np.ndarray) -> go.Figure:
    """[layer] learnt weights of the layers, which sum to 1."""
    layers = np.arange(len(shares))
    return draw(
        [bars(layers, shares, RUNG_COLOURS[rung], "layer %{x}: %{y:.1%}")],
        "What the score depends on",
        number_axis("layer", layers, showgrid=False),
        {"title": "share of its changes", "tickformat": ".0%", "rangemode": "tozero"},
        bargap=0.3,
    )


def autoencoder_figure(rebuilt: Sequence[np.ndarray], losses: np.ndarray) -> go.Figure:
    """Reconstruction error per layer, after the first and last epoch (Figure 3)."""
    layers = np.arange(len(losses))
    drawn = [("after the last epoch", losses, "solid")]
    if len(rebuilt) > 1:
        drawn.insert(0, ("after the first epoch", rebuilt[0], "dot"))
    traces = []
    for name, values, dash in drawn:
        hover = f"{name}<br>layer %{{x}}: %{{y:.1%}}"
        colour = RUNG_COLOURS["autoencoder"]
        traces.append(line(layers, values, colour, hover, dash=dash, name=name))
    return draw(
        traces,
        "What the autoencoders lose",
        number_axis("layer", layers),
        {"title": "share of variance ↓", "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=len(drawn) > 1,
    )


def residual_figure(rung: Rung, errors: np.ndarray) -> go.Figure:
    """Histogram of [pair] errors, prediction minus human score (Figure 4), with half coloured."""
    half = float(np.median(abs(errors))) * (1 + 1e-9) or 0.5  # which the bins' edges include
    last = int(np.ceil(2 * abs(errors).max() / half)) + 1
    edges = half / 2 * np.arange(-last, last + 1)
    edges = edges[(edges >= errors.min() - half / 2) & (edges <= errors.max() + half / 2)]
    middles, counts = (edges[1:] + edges[:-1]) / 2, np.histogram(errors, edges)[0]
    hover = "%{customdata[0]:.2f} to %{customdata[1]:.2f}: %{y}"
    look: Trace = {"width": np.diff(edges), "customdata": np.stack([edges[:-1], edges[1:]], axis=1)}
    colours = np.where(abs(middles) < half, RUNG_COLOURS[rung], BEFORE)
    histogram = bars(middles, counts, colours, hover, **look)
    histogram["marker"]["line"] = {"width": 1, "color": "white"}
    x, y = {"title": "prediction − human score"}, {"title": "pairs"}
    figure = draw([histogram], "Errors: in colour, half of the pairs", x, y, margin={"t": 80})
    for end, side in ((-half, "right"), (half, "left")):
        label = {"text": number(end, ".2f"), "xanchor": side, "yanchor": "bottom"}
        look = {"color": GROUND, "width": 2, "dash": "dash"}
        figure.add_vline(x=end, line=look, annotation=label)
    return figure


def qq_figure(rung: Rung, errors: np.ndarray) -> go.Figure:
    """[pair] error quantiles against a normal distribution of equal spread (Figure 4)."""
    n = len(errors)
    normal = scipy.special.ndtri((np.arange(1, n + 1) - 3 / 8) / (n + 1 / 4))  # Blom 1958
    ends = normal[[0, -1]]
    hover = "error %{y:.2f}, normal %{x:.2f}"
    traces = [
        line(ends, float(errors.mean()) + float(errors.std()) * ends, BEFORE, **_DASHED),
        dots(normal, np.sort(errors), RUNG_COLOURS[rung], hover, size=8),
    ]
    x, y = ({"title": title, "zeroline": False} for title in ("error, if normal", "error"))
    return draw(traces, "Q–Q plot", x, y, showlegend=False)


def predictions_figure(
    rung: Rung, predicted: np.ndarray, scores: np.ndarray, sentences: Sequence[tuple[str, str]]
) -> go.Figure:
    title = "Predictions and human scores"
    figure = scatter_figure(predicted, scores, sentences, title, axis="prediction")
    figure.update_traces(marker={"color": RUNG_COLOURS[rung]}, showlegend=False)
    ends = [min(predicted.min(), scores.min()), max(predicted.max(), scores.max())]
    worst = [int(np.argmax(abs(predicted - scores)))]
    look: Trace = {"size": 20, "marker": {"symbol": "circle-open", "line": {"width": 3}}}
    look |= {"name": "the worst prediction", "mode": "markers+text"}
    side = "left" if 2 * predicted[worst[0]] > sum(ends) else "right"
    look |= {"text": [number(predicted[worst[0]], ".2f")], "textposition": f"middle {side}"}
    figure.add_trace(line(ends, ends, BEFORE, name="perfect prediction", **_DASHED))
    figure.add_trace(dots(predicted[worst], scores[worst], BEFORE, **look))
    return figure.update_layout(showlegend=True)


def pair_scores_figure(
    pair: Mapping[Rung, float], equal: Mapping[Rung, float], low: float, high: float
) -> go.Figure:
    """Each rung's score of a pair, with a line at that of identical texts."""
    names, values = [RUNG_NAMES[rung] for rung in pair], list(pair.values())
    lengths, colours = [value - low for value in values], [RUNG_COLOURS[rung] for rung in pair]
    look: Trace = {"orientation": "h", "base": low, "customdata": values, "showlegend": False}
    look |= {"text": list(map(format_two_places, values)), "textposition": "auto"}
    look |= {"insidetextfont": {"color": "white"}}
    scores = bars(lengths, names, colours, "%{y}: %{customdata:.2f}", **look)
    look = {"size": 26, "marker": {"symbol": "line-ns-open", "line": {"width": 3}}}
    look |= {"name": "two identical texts"}
    identical = dots(list(equal.values()), names, BEFORE, "identical texts: %{x:.2f}", **look)
    return draw(
        [scores, identical],
        "Scores by every rung",
        {"title": "score ↑", "range": [low, high + 0.02 * (high - low)]},
        NAMES_OF_BARS,
        bargap=0.35,
        showlegend=True,
    )
