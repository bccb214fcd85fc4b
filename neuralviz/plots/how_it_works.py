"""Figures of the nine steps from two texts to their cosine similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.plots.micro_tuning import probabilities_figure
from neuralviz.plots.parts import (
    BARE,
    Trace,
    cells,
    dots,
    draw,
    line,
    name_axis,
)
from neuralviz.plots.theme import (
    AFTER,
    BEFORE,
    LAYER_COLOURS,
    VERMILLION,
    escape,
    shorten,
    symmetric_range,
)
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

_BEFORE, _AFTER = ("before", BEFORE), ("after micro-tuning", AFTER)


def layer_label(name: str) -> str:
    """The end of a parameter's name: ``LayerNorm.weight``."""
    return ".".join(name.split(".")[-2:])


def _draw(
    traces: Sequence[Trace], title: str, x: dict, y: dict, *, bottom: int = 16, **layout: Any
) -> go.Figure:
    margin = {"l": 8, "r": 8, "b": bottom}
    return draw(traces, title, x, y, **{"margin": margin, **layout})


def overview_figure(stations: Sequence[str]) -> go.Figure:
    """The steps as a vertical line of stations, with plotly markup."""
    n = len(stations)
    track = line(
        np.zeros(n),
        np.arange(n),
        VERMILLION,
        size=16,
        mode="lines+markers+text",
        text=[f"   {station}" for station in stations],
        textposition="middle right",
        textfont={"size": 19},
        cliponaxis=False,
    )
    track["marker"]["color"] = VERMILLION
    hidden = {"visible": False, "fixedrange": True}
    return _draw(
        [track],
        "From a text to its cosine similarities",
        {**hidden, "range": [-0.02, 1]},
        {**hidden, "range": [n - 0.6, -0.4]},
        margin={"l": 16, "r": 0, "b": 16},
    )


def words_figure(
    words: Sequence[str], before: Sequence[float], after: Sequence[float], label: str
) -> go.Figure:
    """[word] probabilities at a masked token before and after, likeliest first; NaN for none."""
    names = [
        f"<b>{escape(word)} ✓</b>" if word == label else escape(word)
        for word in (shorten(word, 16) or word for word in words)
    ]
    title = "What the model predicts for the masked token"
    return probabilities_figure(names, before, after, title)


def losses_figure(
    tokens: Sequence[str], token_of: np.ndarray, before: np.ndarray, after: np.ndarray
) -> go.Figure:
    """[position] cross-entropy in nats of masked tokens, and each token's mean."""
    sides = ((*_BEFORE, before, -0.14), (*_AFTER, after, 0.14))
    hover = "<b>%{customdata}</b> masked<br>%{y:.2f} nats"
    look: Trace = {"size": 11, "marker": {"opacity": 0.75}}
    look["customdata"] = [escape(tokens[i]) for i in token_of]
    traces = [
        dots(token_of + side, loss, colour, hover, name=f"{name}, mean {loss.mean():.2f}", **look)
        for name, colour, loss, side in sides
    ]
    figure = _draw(
        traces,
        "Loss at every masked position",
        name_axis(tokens, 14, autotickangles=[0, -60, -90], **BARE),
        {"title": "cross-entropy, nats", "rangemode": "tozero"},
        bottom=120,
    )
    for _, colour, loss, _ in sides:
        figure.add_hline(y=loss.mean(), line={"color": colour, "width": 2, "dash": "dash"})
    return figure


def weights_figure(neurons: np.ndarray, before: np.ndarray, after: np.ndarray) -> go.Figure:
    """[neuron] weights of a layer before and after."""
    x = np.arange(len(neurons))
    gaps = np.full(len(neurons), np.nan)
    ways = np.stack([before, after, gaps], axis=1).ravel()
    traces = [line(np.repeat(x, 3), ways, AFTER, size=0, showlegend=False)]
    for (name, colour), values in ((_BEFORE, before), (_AFTER, after)):
        hover = f"neuron %{{customdata}}<br>%{{y:.4f}} {name}"
        traces.append(dots(x, values, colour, hover, size=13, name=name, customdata=neurons))
    numbers = {"tickvals": x, "ticktext": neurons.astype(str), "tickangle": -90}
    x_axis = {"title": "neuron", **numbers, **BARE}
    return _draw(traces, "The weights that change most", x_axis, {"title": "weight"}, bottom=110)


def delta_figure(deltas: np.ndarray) -> go.Figure:
    """[epoch, dim] weight changes of a layer since the start."""
    n_epochs, dim = deltas.shape
    hover = "neuron %{x}, after epoch %{y}<br>delta %{z:.4f}"
    epochs = np.arange(1, n_epochs + 1)
    return _draw(
        [cells(deltas, np.arange(dim), epochs, hover, symmetric_range(deltas))],
        "Change of every weight, epoch by epoch",
        {"title": "neuron", **BARE},
        {"title": "epoch", "dtick": max(1, n_epochs // 10), **BARE},
        bottom=60,
    )


def concatenated_figure(
    names: Sequence[str], vectors: Sequence[np.ndarray], title: str
) -> go.Figure:
    """Each layer's [dim] vector, in one row."""
    ends = np.cumsum([len(vector) for vector in vectors])
    parts = zip(names, vectors, ends, _layer_colours(len(names)), strict=True)
    look: Trace = {"width": 1.5, "size": 0, "fill": "tozeroy"}
    hover, traces = "value %{x}<br>%{y:.4f}", []
    for name, vector, end, colour in parts:
        places = np.arange(end - len(vector), end)
        traces.append(line(places, vector, colour, hover, name=layer_label(name), **look))
    x = {"title": f"{ends[-1]:,} values", "showgrid": False}
    return _draw(traces, title, x, {"title": "value"}, bottom=120)


def product_figure(
    names: Sequence[str], sizes: Sequence[int], first: np.ndarray, embeddings: Sequence[np.ndarray]
) -> go.Figure:
    """Cumulative cosine similarities of ``first`` to others, value by value, by layer."""
    ends = np.cumsum(sizes)
    by_text = [np.append(0.0, np.cumsum(first * embedding)) for embedding in embeddings]
    traces = []
    for text, sums in enumerate(by_text, 2):
        is_main = text == 2
        colours = _layer_colours(len(names)) if is_main else [BEFORE] * len(names)
        hover = f"text {text}, after %{{x}} values<br>%{{y:.3f}}"
        look: Trace = {"width": 4, "size": 0, "dash": None if is_main else "dot"}
        for name, size, end, colour in zip(names, sizes, ends, colours, strict=True):
            places = np.arange(end - size, end + 1)
            title = f"{layer_label(name)} {number(sums[end] - sums[end - size], '+.3f')}"
            look |= {"name": title, "showlegend": is_main}
            traces.append(line(places, sums[places], colour, hover, **look))
        look = {"size": 16, "mode": "markers+text", "textfont": {"size": 20}, "showlegend": False}
        is_highest = sums[-1] == max(other[-1] for other in by_text)
        look |= {"textposition": f"{'top' if is_highest else 'bottom'} left", "cliponaxis": False}
        look["text"] = [f"<b>text {text}: {number(sums[-1], '.3f')}</b>"]
        hover = f"cosine similarity to text {text}: %{{y:.3f}}"
        traces.append(dots(ends[-1:], sums[-1:], colours[-1], hover, **look))
    return _draw(
        traces,
        "The dot product, value by value",
        {"title": "values summed", "range": [0, ends[-1] * 1.03], **BARE},
        {"title": "running sum"},
        bottom=120,
    )


def _layer_colours(n_layers: int) -> list[str]:
    return [LAYER_COLOURS[i % len(LAYER_COLOURS)] for i in range(n_layers)]
