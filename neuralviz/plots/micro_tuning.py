"""Figures of a micro-tuning run: losses, deltas, word shares, cosine similarities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from neuralviz.plots.theme import OKABE_ITO, escape, shorten, symmetric_range

MAX_LINES = 8
MAX_CELLS = 100_000  # of a heatmap that moves
FEW_EPOCHS = 12
UPRIGHT_WORDS = 14  # more are written upwards
FLAT_CHARACTERS = 36  # of words beside each other in half a page
_LINE_COLOURS = OKABE_ITO[:6]


def short_layer_names(names: Sequence[str]) -> list[str]:
    """Layer names without what all of them share: ``block 5 · output.dense.bias``."""
    out = []
    for name in names:
        parts = name.split(".")
        number = next((i for i, part in enumerate(parts[:-1]) if part.isdigit()), None)
        if number is None:
            out.append(".".join(parts[-2:]))
        else:
            out.append(f"block {parts[number]} · {'.'.join(parts[number + 1 :])}")
    return out


def loss_figure(curves: np.ndarray, texts: Sequence[str]) -> go.Figure:
    """Loss of each text by epoch; of many texts, mean and range.

    Args:
        curves: [text, epoch + 1] loss in nats after so many epochs; NaN where not known.
        texts: what the curves are named after.
    """
    figure = go.Figure()
    epochs = np.arange(curves.shape[1])
    if len(curves) <= MAX_LINES:
        for i, curve in enumerate(curves):
            figure.add_scatter(
                x=epochs,
                y=curve,
                mode="lines+markers",
                name=f"{i + 1}. {escape(shorten(texts[i], 24))}",
                line={"color": _LINE_COLOURS[i % len(_LINE_COLOURS)], "width": 3,
                      "dash": "solid" if i < len(_LINE_COLOURS) else "dot"},
                marker={"size": 8},
                hovertemplate="epoch %{x}<br>loss %{y:.3f}<extra></extra>",
            )  # fmt: skip
    else:
        finite = np.ma.masked_invalid(curves)
        low, mean, high = (
            np.ma.filled(values, np.nan)
            for values in (finite.min(axis=0), finite.mean(axis=0), finite.max(axis=0))
        )
        for values, name, width in ((high, "highest", 1), (mean, "mean", 4), (low, "lowest", 1)):
            figure.add_scatter(
                x=epochs,
                y=values,
                mode="lines",
                name=f"{name} of {len(curves):,} texts",
                line={"color": _LINE_COLOURS[0], "width": width},
                fill="tonexty" if name == "lowest" else None,
                fillcolor="rgba(213, 94, 0, 0.12)",
                hovertemplate="epoch %{x}<br>loss %{y:.3f}<extra></extra>",
            )
    figure.update_layout(
        title="Loss at the masked positions",
        xaxis=_epoch_axis(epochs[-1]),
        yaxis={"title": "cross-entropy, nats", "rangemode": "tozero"},
        showlegend=len(curves) > 1,
    )
    return figure


def delta_norm_figure(norms: np.ndarray, layers: Sequence[str], learnt: float) -> go.Figure:
    """How far each layer is from its pretrained weights.

    Args:
        norms: [epoch, layer] norm of the delta after each epoch; NaN where not known.
        layers: their full names.
        learnt: epochs that are over; of the last known norm a part of one may be missing.
    """
    figure = go.Figure()
    epochs = np.arange(len(norms) + 1)
    under_way = int(np.ceil(learnt))
    x = np.where(epochs == under_way, learnt, epochs)
    names = short_layer_names(layers)
    few = len(names) <= MAX_LINES
    for i, name in enumerate(names):
        figure.add_scatter(
            x=x,
            y=np.append(0.0, norms[:, i]),
            mode="lines+markers" if few else "lines",
            name=name,
            line={"color": _layer_colour(i, len(names)), "width": 3 if few else 2},
            marker={"size": 8},
            hovertemplate=f"{escape(name)}<br>epoch %{{x:.3~g}}: %{{y:.4f}}<extra></extra>",
        )
    figure.update_layout(
        title="Norm of each layer's delta",
        xaxis=_epoch_axis(epochs[-1]),
        yaxis={"title": "norm of the delta", "rangemode": "tozero"},
        showlegend=1 < len(names) <= MAX_LINES,
    )
    return figure


def delta_heatmap(
    deltas: np.ndarray, layer: str, strongest: Sequence[int], changes: np.ndarray
) -> go.Figure:
    """The delta of one layer, neurons × epochs, with triangles above the neurons that changed most.

    Args:
        deltas: [epoch, dim] the delta after each epoch; NaN where not known.
        layer: its full name.
        strongest: numbers of the neurons to point at.
        changes: [len(strongest)] their delta.
    """
    n_epochs, dim = deltas.shape
    n_rows = min(n_epochs, max(2, MAX_CELLS // dim))
    drawn = np.unique(np.linspace(0, n_epochs - 1, n_rows).round().astype(int))
    low, high = symmetric_range(deltas)
    name = short_layer_names([layer])[0]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(deltas[drawn], 5),
            y=drawn + 1,
            zmin=low,
            zmax=high,
            colorbar={"title": {"text": "delta", "side": "right"}},
            hovertemplate="neuron %{x}<br>after epoch %{y}: %{z:+.4f}<extra></extra>",
        )
    )
    if len(strongest):
        figure.add_scatter(
            x=list(strongest),
            y=[n_epochs + 0.5 + n_epochs * 0.06] * len(strongest),
            mode="markers",
            marker={"symbol": "triangle-down", "size": 13, "color": OKABE_ITO[0]},
            customdata=changes,
            hovertemplate="neuron %{x}: %{customdata:+.4f}<extra>among the largest</extra>",
            showlegend=False,
            cliponaxis=False,
        )
    figure.update_layout(
        title=f"Delta: {escape(name)}"
        + (f" ({len(drawn)} of {n_epochs:,} epochs shown)" if len(drawn) < n_epochs else ""),
        xaxis={"title": "neuron", "range": [-0.5, dim - 0.5], "showgrid": False, "zeroline": False},
        yaxis={
            "title": "epoch",
            "range": [0.5, n_epochs * 1.12 + 0.5],
            "showgrid": False,
            "tickvals": _epochs_to_name(n_epochs),
        },
    )
    return figure


def shares_figure(words: Sequence[str], shares: np.ndarray, title: str) -> go.Figure:
    """Each word's share of the delta, in the order of the text; negative ones pulled back."""
    percent = np.asarray(shares) * 100
    low, high = symmetric_range(percent)
    figure = go.Figure(
        go.Bar(
            x=np.arange(len(percent)),
            y=percent,
            marker={"color": percent, "cmin": low, "cmax": high, "coloraxis": "coloraxis"},
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


def products_figure(labels: Sequence[str], products: np.ndarray) -> go.Figure:
    """[text, text] cosine similarities of the embeddings, -1 … 1."""
    names = [f"{i + 1}" for i in range(len(labels))]
    hover = [
        [f"{escape(shorten(a, 60))}<br>{escape(shorten(b, 60))}" for b in labels] for a in labels
    ]
    figure = go.Figure(
        go.Heatmap(
            z=products,
            x=names,
            y=names,
            zmin=min(0.0, float(products.min())),
            zmax=1.0,
            colorscale="Cividis",
            autocolorscale=False,
            customdata=hover,
            texttemplate="%{z:.2f}" if len(labels) <= 12 else None,
            hovertemplate="%{customdata}<br>cosine similarity %{z:.3f}<extra></extra>",
        )
    )
    figure.update_layout(
        title="Cosine similarity of the embeddings",
        xaxis={"title": "text", "type": "category", "showgrid": False, "constrain": "domain"},
        yaxis={
            "title": "text",
            "type": "category",
            "autorange": "reversed",
            "showgrid": False,
            "scaleanchor": "x",
            "constrain": "domain",
        },
    )
    return figure


def _epoch_axis(n: int) -> dict:
    return {
        "title": "epoch",
        "range": [-0.04 * n, n * 1.04],
        "nticks": 12,
        "dtick": 1 if n <= FEW_EPOCHS else None,
        "tickformat": "d",
    }


def _epochs_to_name(n: int) -> list[int]:
    """The first epoch, the last, and round numbers between them that stay apart from both."""
    step = next((step for step in (5, 10, 20, 50, 100) if n <= 8 * step), 200)
    between = [epoch for epoch in range(step, n, step) if n - epoch > step // 2]
    return sorted({1, *between, n})


def _layer_colour(i: int, n: int) -> str:
    if n <= len(_LINE_COLOURS):
        return _LINE_COLOURS[i]
    return sample_colorscale("Cividis", [i / (n - 1)])[0]
