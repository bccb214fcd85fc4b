"""Figures of a micro-tuning run: losses, deltas, cosine similarities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from neuralviz.plots.room import cell_values
from neuralviz.plots.theme import (
    AFTER,
    BEFORE,
    LAYER_COLOURS,
    escape,
    make_live_figure,
    shorten,
    symmetric_range,
)

MAX_LINES = 8
PALE, PALE_WIDTH = 0.4, 11  # of the lines of an earlier run: seen also where both runs agree
EXTREME = 15  # neurons of either end
MAX_CELLS = 100_000  # of a heatmap that moves
MAX_WRITTEN = 12  # texts whose similarities are written into the cells
FEW_EPOCHS = 12


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


def loss_figure(
    curves: np.ndarray,
    texts: Sequence[str],
    chosen: int = 0,
    earlier: np.ndarray | None = None,
    runs: tuple[int, int] = (2, 1),
) -> go.Figure:
    """Loss by epoch: one text over the others, of which more than eight are a band.

    Args:
        curves: [text, epoch + 1] loss in nats after so many epochs; NaN where not known, and of
            texts that should not be drawn.
        texts: what the curves are of.
        chosen: the text that stands out.
        earlier: the same of another run on the same texts, which lies wide and pale below.
        runs: numbers of the run and of the earlier one.
    """
    traces: list[dict[str, Any]] = []
    for run_curves, pale in ((earlier, True), (curves, False)):
        if run_curves is None:
            continue
        if len(run_curves) > MAX_LINES:
            traces += _band(run_curves, pale)
        else:
            traces += _other_curves(run_curves, chosen, pale)
        name = f"{chosen + 1}. {escape(shorten(texts[chosen], 24))}"
        if earlier is not None:
            name = f"run {runs[0]}" if len(curves) == 1 else f"run {runs[0]}: {name}"
        traces.append(
            _curve(
                run_curves[chosen],
                name=_pale_name(runs) if pale else name,
                line={"color": AFTER, "width": PALE_WIDTH if pale else 4},
                opacity=PALE if pale else 1,
                mode="lines" if pale else "lines+markers",
                marker={"size": 8},
            )
        )
    n_epochs = (
        max(len(run_curves[0]) for run_curves in (curves, earlier) if run_curves is not None) - 1
    )
    return make_live_figure(
        traces,
        {
            "title": "Loss at the masked positions",
            "xaxis": _epoch_axis(n_epochs),
            "yaxis": {"title": "loss, nats", "rangemode": "tozero"},
            "showlegend": len(curves) > 1 or earlier is not None,
        },
    )


def _pale_name(runs: tuple[int, int]) -> str:
    return f"run {runs[1]} (wide line)"


def _curve(curve: np.ndarray, *, hover_name: str = "", **settings: Any) -> dict[str, Any]:
    """A line of losses; ``hover_name`` stands in its hover box, by default its own name."""
    hover = f"{hover_name or settings['name']}<br>epoch %{{x}}: loss %{{y:.3f}}<extra></extra>"
    x = np.arange(len(curve))
    return {"type": "scatter", "x": x, "y": curve, "hovertemplate": hover, **settings}


def _other_curves(curves: np.ndarray, chosen: int, pale: bool) -> list[dict[str, Any]]:
    """A grey line for every other text, with one entry in the legend."""
    other_texts = [i for i in range(len(curves)) if i != chosen]
    return [
        _curve(
            curves[i],
            hover_name=f"text {i + 1}",
            name="the other text" if len(other_texts) == 1 else "the other texts",
            mode="lines",
            line={"color": BEFORE, "width": PALE_WIDTH / 2 if pale else 2},
            opacity=PALE if pale else 1,
            legendgroup="others",
            showlegend=not pale and i == other_texts[0],
        )
        for i in other_texts
    ]


def _band(curves: np.ndarray, pale: bool) -> list[dict[str, Any]]:
    """Median of the texts; of the newer run the range from the lowest to the highest, too."""
    n_texts = int(np.isfinite(curves).any(axis=1).sum())
    if n_texts < 2:
        return []
    finite = np.ma.masked_invalid(curves)
    low, median, high = (
        np.ma.filled(values.astype(float), np.nan)
        for values in (finite.min(axis=0), np.ma.median(finite, axis=0), finite.max(axis=0))
    )
    edge = {"color": BEFORE, "width": 1}
    ends = [
        _curve(high, name="highest", mode="lines", line=edge, showlegend=False),
        _curve(
            low,
            hover_name="lowest",
            name="lowest to highest",
            mode="lines",
            line=edge,
            fill="tonexty",
            fillcolor="rgba(138, 144, 150, 0.18)",
        ),
    ]
    middle = _curve(
        median,
        name=f"median of {n_texts:,} texts",
        mode="lines",
        line={"color": BEFORE, "width": PALE_WIDTH if pale else 3},
        opacity=PALE if pale else 1,
        showlegend=not pale,
    )
    return [middle] if pale else [*ends, middle]


@dataclass(frozen=True, eq=False)
class Norms:
    """How far the layers of a run are from their pretrained weights, of one text.

    Attributes:
        values: [epoch, layer] norm of the delta after each epoch; NaN where not known.
        layers: their full names.
    """

    values: np.ndarray
    layers: Sequence[str]


def delta_norm_figure(
    norms: Norms, earlier: Norms | None = None, runs: tuple[int, int] = (2, 1)
) -> go.Figure:
    """How far each layer is from its pretrained weights; an ``earlier`` run is wide and pale.

    Args:
        norms, earlier: of the two runs.
        runs: their numbers.
    """
    traces: list[dict[str, Any]] = []
    all_layers = [*norms.layers, *(earlier.layers if earlier else ())]
    layers = list(dict.fromkeys(all_layers))  # a layer has one colour in both runs
    names = dict(zip(layers, _names_of_kind(layers), strict=True))
    has_few_layers = len(norms.layers) <= MAX_LINES
    for run_norms, pale in ((earlier, True), (norms, False)):
        if run_norms is None:
            continue
        epochs = np.arange(len(run_norms.values) + 1)
        for i, layer in enumerate(run_norms.layers):
            name = escape(names[layer])
            traces.append(
                {
                    "type": "scatter",
                    "x": epochs,
                    "y": np.append(0.0, run_norms.values[:, i]),
                    "mode": "lines+markers" if has_few_layers and not pale else "lines",
                    "name": name,
                    "legendgroup": name,
                    "showlegend": not pale and 1 < len(norms.layers) <= MAX_LINES,
                    "line": {
                        "color": _layer_colour(layers.index(layer), len(layers)),
                        "width": PALE_WIDTH if pale else 3 if has_few_layers else 2,
                    },
                    "opacity": PALE if pale else 1,
                    "marker": {"size": 8},
                    "hovertemplate": f"{name}<br>epoch %{{x:.3~g}}: %{{y:.4f}}<extra></extra>",
                }
            )
    if earlier is not None:
        traces.append(
            {
                "type": "scatter",
                "x": [None],
                "y": [None],
                "mode": "lines",
                "name": _pale_name(runs),
                "line": {"color": BEFORE, "width": PALE_WIDTH},
                "opacity": PALE,
            }
        )
    n_epochs = max(len(run_norms.values) for run_norms in (norms, earlier) if run_norms is not None)
    kind = _shared_kind(layers)
    subject = f"each block's {escape(kind)}" if kind else "each layer's delta"
    return make_live_figure(
        traces,
        {
            "title": f"Norm of {subject}",
            "xaxis": _epoch_axis(n_epochs),
            "yaxis": {"title": "norm of the delta", "rangemode": "tozero"},
            "showlegend": earlier is not None or 1 < len(norms.layers) <= MAX_LINES,
        },
    )


def _shared_kind(layers: Sequence[str]) -> str:
    """The kind that all of several layers have; empty where they differ."""
    kinds = {name.partition(" · ")[2] for name in short_layer_names(layers)}
    return kinds.pop() if len(kinds) == 1 and len(layers) > 1 else ""


def _names_of_kind(layers: Sequence[str]) -> list[str]:
    """Short names, of which the blocks alone are left where the kind is the same."""
    names = short_layer_names(layers)
    return [name.partition(" · ")[0] for name in names] if _shared_kind(layers) else names


def neurons_figure(deltas: np.ndarray, layer: str, *, all_neurons: bool = False) -> go.Figure:
    """The delta of one layer, neurons × epochs, sorted by the latest delta; epochs run upwards.

    Args:
        deltas: [epoch, dim] the delta after each epoch; NaN where not known.
        layer: its full name.
        all_neurons: all neurons, rather than those that fell and those that rose most.
    """
    n_epochs, dim = deltas.shape
    order = neurons_in_order(deltas, all_neurons=all_neurons)
    n_rows = min(n_epochs, max(2, MAX_CELLS // len(order)))
    drawn = np.unique(np.linspace(0, n_epochs - 1, n_rows).round().astype(int))
    low, high = symmetric_range(deltas)
    heatmap = {
        "type": "heatmap",
        "z": np.round(deltas[drawn][:, order], 5),
        "x": [str(neuron) for neuron in order],
        "y": drawn + 1,
        "zmin": low,
        "zmax": high,
        "colorbar": {"title": {"text": "delta", "side": "right"}},
        "hovertemplate": "neuron %{x}<br>after epoch %{y}: %{z:+.4f}<extra></extra>",
    }
    shapes = []
    name = escape(short_layer_names([layer])[0])
    title, wide_title = f"Neurons of {name}", f"All neurons of {name}, sorted by their delta"
    if len(order) < dim:
        wide_title = f"{name}: the {EXTREME} neurons that fell and the {EXTREME} that rose most"
        position = {"x0": EXTREME - 0.5, "x1": EXTREME - 0.5, "y0": 0, "y1": 1, "yref": "y domain"}
        line = {"dash": "dot", "width": 2, "color": BEFORE}
        shapes = [{"type": "line", "xref": "x", **position, "line": line}]
    if len(drawn) < n_epochs:
        wide_title += f" ({len(drawn)} of {n_epochs:,} epochs shown)"
    return make_live_figure(
        [heatmap],
        {
            "title": title,
            "shapes": shapes,
            "xaxis": {
                "title": "neuron, sorted by its delta",
                "type": "category",
                "showgrid": False,
                "showticklabels": len(order) <= 2 * EXTREME,
                "tickangle": -90,
                "tickfont": {"size": 13},
            },
            "yaxis": {
                "title": "epoch",
                "range": [0.5, n_epochs + 0.5],
                "showgrid": False,
                "tickvals": _labelled_epochs(n_epochs),
            },
            "meta": {
                "from_width": [[560, {"title.text": wide_title, "xaxis.dtick": 1}]],
                "stage": {"xaxis.tickfont.size": 18},
            },
        },
    )


def neurons_in_order(deltas: np.ndarray, *, all_neurons: bool = False) -> np.ndarray:
    """Numbers of the neurons that `neurons_figure` draws, from left to right."""
    finite_epochs = np.flatnonzero(np.isfinite(deltas).all(axis=1))
    order = np.argsort(
        deltas[finite_epochs[-1]] if len(finite_epochs) else deltas[0], kind="stable"
    )
    if all_neurons or len(order) <= 2 * EXTREME:
        return order
    return np.concatenate([order[:EXTREME], order[-EXTREME:]])


def products_figure(
    texts: Sequence[str], products: np.ndarray, numbers: Sequence[int]
) -> go.Figure:
    """Cosine similarities [text, text] of embeddings, -1 … 1; ``numbers`` of the texts from 0."""
    names = [f"{i + 1}" for i in numbers]
    hover = [
        [f"{escape(shorten(a, 60))}<br>{escape(shorten(b, 60))}" for b in texts] for a in texts
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
            **cell_values(products, most_columns=MAX_WRITTEN),
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
        "nticks": 12 if n < 100 else 6,  # more would be written upright where there is little room
        "dtick": 1 if n <= FEW_EPOCHS else None,
        "tickformat": ",d",
    }


def _labelled_epochs(n: int) -> list[int]:
    """The first epoch, the last, and round numbers between them that stay apart from both."""
    step = next((step for step in (5, 10, 20, 50, 100) if n <= 8 * step), 200)
    inner_epochs = [epoch for epoch in range(step, n, step) if n - epoch > step // 2]
    return sorted({1, *inner_epochs, n})


def _layer_colour(i: int, n: int) -> str:
    if n <= len(LAYER_COLOURS):
        return LAYER_COLOURS[i]
    return sample_colorscale("Cividis", [i / (n - 1)])[0]
