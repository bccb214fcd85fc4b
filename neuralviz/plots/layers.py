"""Figures of layer dynamics: cosines between layers, SBERT-WK's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.room import FEW_COLUMNS, cell_labels, cell_values, spaced_ticks
from neuralviz.plots.theme import (
    DISSIMILAR,
    GREEN,
    LAYER_COLOURS,
    escape,
    shorten,
    symmetric_range,
)

if TYPE_CHECKING:
    from neuralviz.layers.geometry import FollowedWord

MAX_TOKENS = 60
MAX_WORDS = 80  # lines
TOKEN_HEIGHT = 26  # px
_MARK = "#FFFFFF"


def floor_to(value: float, step: float) -> float:
    """``value`` rounded down to a multiple of ``step``."""
    return float(np.floor(value / step + 1e-9) * step)


def cosine_map_figure(cosines: np.ndarray, subject: str) -> go.Figure:
    """Layer by layer cosines (SBERT-WK, Figure 1 a-d).

    Args:
        cosines: [layer, layer], -1 … 1.
        subject: whose they are, e.g. "token mean"; escaped here.
    """
    n_layers = len(cosines)
    layers = np.arange(n_layers)
    figure = go.Figure(
        go.Heatmap(
            z=cosines,
            x=layers,
            y=layers,
            zmin=min(floor_to(float(cosines.min()), 0.1), 0.9),
            zmax=1.0,
            colorscale="Cividis",
            autocolorscale=False,
            **cell_values(cosines),
            colorbar={"title": {"text": "cosine", "side": "right"}},
            hovertemplate="layers %{y} and %{x}<br>cosine %{z:.3f}<extra></extra>",
        )
    )
    axis = {"title": "layer", "showgrid": False, "zeroline": False, "constrain": "domain"}
    figure.update_layout(
        title=f"Cosine between layers: {escape(subject)}",
        xaxis={**axis, "tickvals": spaced_ticks(layers)},
        yaxis={
            **axis,
            "tickvals": spaced_ticks(layers),
            "autorange": "reversed",
            "scaleanchor": "x",
        },
    )
    return figure


def turns_figure(words: Sequence[FollowedWord], named: int, first_layer: int) -> go.Figure:
    """How far the vectors of a text's words turn in every layer, a line a word.

    Args:
        words: the most important first.
        named: so many of them, and the least important, have names; the others are grey.
        first_layer: the first that counts; what lies before it is shaded.
    """
    figure = go.Figure()
    coloured = dict(zip(range(named), LAYER_COLOURS, strict=False))
    if len(words) > named:
        coloured[len(words) - 1] = LAYER_COLOURS[named]
    for place in [*(i for i in range(len(words)) if i not in coloured), *coloured][-MAX_WORDS:]:
        word, colour = words[place], coloured.get(place)
        name = escape(shorten(word.word, 20))
        figure.add_scatter(
            x=np.arange(1, len(word.turns) + 1),
            y=word.turns,
            mode="lines+markers" if colour else "lines",
            name=name,
            line={"color": colour or DISSIMILAR, "width": 4 if colour else 1.5},
            marker={"size": 9},
            opacity=1 if colour else 0.6,
            hovertemplate=f"{name}, into layer %{{x}}<br>cosine %{{y:.3f}}<extra></extra>",
            showlegend=colour is not None,
            legendrank=place + 1,
        )
    n_steps = len(words[0].turns) if words else 1
    if first_layer > 0:
        figure.add_vrect(
            x0=0.7, x1=first_layer + 0.5, fillcolor=DISSIMILAR, opacity=0.12, line_width=0
        )
        figure.add_annotation(
            text="does not count", x=0.75, xanchor="left", y=0, yref="paper", yanchor="bottom",
            showarrow=False,
        )  # fmt: skip
    figure.update_layout(
        title="How far each layer turns a word",
        xaxis={
            "title": "layer",
            "zeroline": False,
            "range": [0.7, n_steps + 0.3],
            "tickvals": spaced_ticks(range(1, n_steps + 1)),
        },
        yaxis={"title": "cosine (1: no turn)", "zeroline": False},
        showlegend=True,
    )
    return figure


def diagonals_figure(diagonals: Mapping[int, np.ndarray], subject: str) -> go.Figure:
    """Cosines of layers some steps apart (SBERT-WK, Figure 1 e-h).

    Args:
        diagonals: by offset, [layer - offset] cosines.
        subject: as of `cosine_map_figure`.
    """
    figure = go.Figure()
    for colour, (offset, values) in zip(LAYER_COLOURS, diagonals.items(), strict=False):
        figure.add_scatter(
            x=np.arange(len(values)),
            y=values,
            mode="lines+markers",
            name=f"distance {offset}",
            line={"color": colour, "width": 3},
            marker={"size": 9},
            customdata=np.arange(len(values)) + offset,
            hovertemplate="layers %{x} and %{customdata}<br>cosine %{y:.3f}<extra></extra>",
        )
    n_layers = max((len(values) + offset for offset, values in diagonals.items()), default=2)
    figure.update_layout(
        title=f"Cosine by layer distance: {escape(subject)}",
        xaxis={
            "title": "earlier layer",
            "zeroline": False,
            "range": [-0.3, n_layers - 1.7],
            "tickvals": spaced_ticks(range(n_layers - 1)),
        },
        yaxis={"title": "cosine", "zeroline": False},
        showlegend=True,
    )
    return figure


def weights_figure(
    weights: Mapping[str, np.ndarray], layers: np.ndarray, tokens: Sequence[str]
) -> go.Figure:
    """SBERT-WK's weights of the layers, a row a token, a panel a kind of weight.

    Args:
        weights: by name, [token, layer]; the first 60 tokens are drawn.
        layers: [layer] their numbers.
        tokens: [token].
    """
    drawn_tokens = tokens[:MAX_TOKENS]
    drawn = {name: values[: len(drawn_tokens)] for name, values in weights.items()}
    all_weights = np.stack(list(drawn.values()))
    low, high = (
        (0.0, float(all_weights.max())) if all_weights.min() >= 0 else symmetric_range(all_weights)
    )
    names = [escape(shorten(token, 14)) for token in drawn_tokens]
    places = np.arange(len(drawn_tokens))
    figure = go.Figure()
    axes: dict[str, dict] = {}
    gap, n = 0.04, len(drawn)
    width = (1 - gap * (n - 1)) / n
    for i, (name, values) in enumerate(drawn.items()):
        axis = "x" if i == 0 else f"x{i + 1}"
        figure.add_heatmap(
            z=values,
            x=layers,
            y=places,
            xaxis=axis,
            coloraxis="coloraxis",
            **(cell_labels(values) if len(layers) <= FEW_COLUMNS else {}),
            customdata=[[escape(token)] * len(layers) for token in drawn_tokens],
            hovertemplate=f"%{{customdata}}<br>layer %{{x}}<br>{name.lower()} %{{z:.3f}}"
            "<extra></extra>",
        )
        start = i * (width + gap)
        axes[f"xaxis{i + 1 if i else ''}"] = {
            "domain": [start, start + width],
            "title": "layer",
            "showgrid": False,
            "zeroline": False,
            "tickvals": spaced_ticks(layers),
        }
        figure.add_annotation(
            text=f"<b>{name}</b>",
            x=start,
            y=1,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
        )
    figure.update_layout(
        title="Layer weights by token",
        margin={"t": 78},
        coloraxis={
            "cmin": low,
            "cmax": high,
            "colorscale": "Cividis" if low >= 0 else None,
            "showscale": len(layers) > FEW_COLUMNS,
        },
        yaxis={
            "tickvals": places,
            "ticktext": names,
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
        **axes,
    )
    return figure


def weights_height(n_tokens: int) -> int:
    """Height in px of `weights_figure` of so many tokens."""
    return 170 + TOKEN_HEIGHT * min(n_tokens, MAX_TOKENS)


def settings_figure(
    cosines: np.ndarray,
    windows: np.ndarray,
    layer_starts: np.ndarray,
    chosen: tuple[int, int],
) -> go.Figure:
    """The sentence vector at other windows and first layers, against the chosen (Figure 3).

    Args:
        cosines: [window, layer_start].
        windows, layer_starts: what the rows and columns stand for.
        chosen: window and first layer that all are compared with.
    """
    figure = go.Figure(
        go.Heatmap(
            z=cosines,
            x=layer_starts,
            y=windows,
            zmin=min(floor_to(float(cosines.min()), 0.05), 0.95),
            zmax=1.0,
            colorscale="Cividis",
            autocolorscale=False,
            **cell_values(cosines),
            colorbar={"title": {"text": "cosine", "side": "right"}},
            hovertemplate="layer window %{y}, first layer %{x}<br>cosine %{z:.4f}<extra></extra>",
        )
    )
    window, start = chosen
    if window in windows and start in layer_starts:
        for width, colour in ((5, "#000000"), (2, _MARK)):  # seen on every colour
            figure.add_shape(
                type="rect",
                x0=start - 0.48,
                x1=start + 0.48,
                y0=window - 0.48,
                y1=window + 0.48,
                line={"color": colour, "width": width},
            )
    figure.update_layout(
        title="Effect of layer window and first layer",
        xaxis={
            "title": "first layer",
            "showgrid": False,
            "zeroline": False,
            "tickvals": spaced_ticks(layer_starts),
        },
        yaxis={
            "title": "layer window",
            "showgrid": False,
            "zeroline": False,
            "tickvals": windows,
        },
    )
    return figure


def omega_figure(omegas: np.ndarray, cosines: np.ndarray, chosen: float) -> go.Figure:
    """The sentence vector at other omegas, against the chosen.

    Args:
        omegas: [omega] 0 … 1.
        cosines: [omega].
        chosen: the omega that all are compared with.
    """
    figure = go.Figure(
        go.Scatter(
            x=omegas,
            y=cosines,
            mode="lines+markers",
            line={"color": GREEN, "width": 3},
            marker={"size": 9},
            hovertemplate="omega %{x:.1f}<br>cosine %{y:.4f}<extra></extra>",
        )
    )
    figure.add_vline(x=chosen, line={"dash": "dot", "width": 2, "color": DISSIMILAR})
    figure.update_layout(
        title="Effect of omega",
        xaxis={"title": "omega (0: novelty only, 1: alignment only)", "zeroline": False},
        yaxis={
            "title": "cosine",
            "zeroline": False,
            "range": [min(floor_to(float(cosines.min()), 0.05), 0.95), 1.005],
        },
    )
    return figure
