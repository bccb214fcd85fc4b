"""Figures of layer dynamics: cosines between layers, SBERT-WK's weights, changes by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from neuralviz.plots.theme import GREEN, OKABE_ITO, escape, shorten, symmetric_range

FEW_LAYERS = 8  # so many cells side by side have room for their values
MAX_TOKENS = 60
TOKEN_HEIGHT = 26  # px
_MARK = "#FFFFFF"


def floor_to(value: float, step: float) -> float:
    """``value`` rounded down to a multiple of ``step``."""
    return float(np.floor(value / step + 1e-9) * step)


def cosine_map_figure(cosines: np.ndarray, of_what: str) -> go.Figure:
    """Layer by layer cosines (SBERT-WK, Figure 1 a-d).

    Args:
        cosines: [layer, layer], -1 … 1.
        of_what: whose they are, e.g. "token mean"; escaped here.
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
            **_values("%{z:.2f}", n_layers),
            colorbar={"title": {"text": "cosine", "side": "right"}},
            hovertemplate="layers %{y} and %{x}<br>cosine %{z:.3f}<extra></extra>",
        )
    )
    axis = {"title": "layer", "showgrid": False, "zeroline": False, "constrain": "domain"}
    figure.update_layout(
        title=f"Cosine between layers: {escape(of_what)}",
        xaxis={**axis, **_layer_ticks(layers)},
        yaxis={**axis, **_layer_ticks(layers), "autorange": "reversed", "scaleanchor": "x"},
    )
    return figure


def diagonals_figure(diagonals: Mapping[int, np.ndarray], of_what: str) -> go.Figure:
    """Cosines of layers some steps apart (SBERT-WK, Figure 1 e-h).

    Args:
        diagonals: by offset, [layer - offset] cosines.
        of_what: as of `cosine_map_figure`.
    """
    figure = go.Figure()
    for colour, (offset, values) in zip(OKABE_ITO, diagonals.items(), strict=False):
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
        title=f"Cosine by layer distance: {escape(of_what)}",
        xaxis={
            "title": "earlier layer",
            "zeroline": False,
            "range": [-0.3, n_layers - 1.7],
            **_layer_ticks(np.arange(n_layers - 1)),
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
    shown = tokens[:MAX_TOKENS]
    drawn = {name: values[: len(shown)] for name, values in weights.items()}
    every = np.stack(list(drawn.values()))
    low, high = (0.0, float(every.max())) if every.min() >= 0 else symmetric_range(every)
    names = [escape(shorten(token, 14)) for token in shown]
    places = np.arange(len(shown))
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
            texttemplate="%{z:.2f}" if len(layers) <= FEW_LAYERS else None,
            customdata=[[escape(token)] * len(layers) for token in shown],
            hovertemplate=f"%{{customdata}}<br>layer %{{x}}<br>{name.lower()} %{{z:.3f}}"
            "<extra></extra>",
        )
        left = i * (width + gap)
        axes[f"xaxis{i + 1 if i else ''}"] = {
            "domain": [left, left + width],
            "title": "layer",
            "showgrid": False,
            "zeroline": False,
            **_layer_ticks(layers),
        }
        figure.add_annotation(
            text=f"<b>{name}</b>",
            x=left,
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
            "showscale": len(layers) > FEW_LAYERS,
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
            **_values("%{z:.2f}", len(layer_starts)),
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
            **_layer_ticks(layer_starts),
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
    figure.add_vline(x=chosen, line={"dash": "dot", "width": 2, "color": OKABE_ITO[0]})
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


def marks_figure(
    norms: np.ndarray,
    kinds: Sequence[str],
    blocks: Sequence[int],
    *,
    measure: str,
    when: str,
    full_kinds: Sequence[str] | None = None,
) -> go.Figure:
    """The delta of each kind of layer in each block.

    Args:
        norms: [kind, block]; NaN where a block has no such layer.
        kinds: what the rows are called.
        blocks: numbers of the columns.
        measure: what is drawn, in words.
        when: e.g. "after epoch 3".
        full_kinds: what the hover box calls the rows.
    """
    n_blocks = len(blocks)
    finite = norms[np.isfinite(norms)]
    high = float(finite.max(initial=0.0)) or 1.0
    low = min(float(finite.min(initial=high)), 0.9 * high)  # equal changes look equal
    figure = go.Figure(
        go.Heatmap(
            z=norms,
            x=list(blocks),
            y=np.arange(len(kinds)),
            zmin=low,
            zmax=high,
            colorscale="Cividis",
            autocolorscale=False,
            **_values("%{z:.2r}", n_blocks),
            customdata=[[escape(kind)] * n_blocks for kind in full_kinds or kinds],
            hovertemplate="block %{x}<br>%{customdata}<br>%{z:.4~g}<extra></extra>",
        )
    )
    figure.update_layout(
        title=f"{measure}, {when}",
        xaxis={"title": "block", "showgrid": False, "zeroline": False, **_layer_ticks(blocks)},
        yaxis={
            "tickvals": np.arange(len(kinds)),
            "ticktext": [escape(shorten(kind, 28)) for kind in kinds],
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
    )
    return figure


def block_totals_figure(
    totals: np.ndarray, blocks: Sequence[int], *, measure: str, epochs: int
) -> go.Figure:
    """The delta of each whole block over the epochs.

    Args:
        totals: [epoch, block] after each epoch; NaN where not known.
        blocks: their numbers.
        measure: what is drawn, in words.
        epochs: of the whole run.
    """
    figure = go.Figure()
    shades = _shades(len(blocks))
    for i, block in enumerate(blocks):
        figure.add_scatter(
            x=np.arange(epochs + 1),
            y=np.append(0.0, totals[:, i]),
            mode="lines+markers" if epochs <= 30 else "lines",
            name=f"block {block}",
            line={"color": shades[i], "width": 3},
            marker={"size": 7},
            hovertemplate=f"block {block}<br>epoch %{{x}}: %{{y:.4~g}}<extra></extra>",
        )
    figure.update_layout(
        title="Change of each block by epoch",
        xaxis={
            "title": "epoch",
            "range": [-0.04 * epochs, epochs * 1.04],
            "dtick": 1 if epochs <= 12 else None,
            "tickformat": "d",
            "nticks": 12,
        },
        yaxis={"title": measure, "rangemode": "tozero"},
        showlegend=1 < len(blocks) <= FEW_LAYERS,
    )
    return figure


def _values(template: str, n_columns: int) -> dict:
    """Values in the cells while they have room, in place of a scale beside them."""
    few = n_columns <= FEW_LAYERS
    return {"texttemplate": template if few else None, "showscale": not few}


def _shades(n: int) -> list[str]:
    """A colour for each of ``n`` blocks: categories while they are few, else from low to high."""
    if n <= 6:
        return list(OKABE_ITO[:6])[:n]
    return sample_colorscale("Viridis", np.linspace(0.1, 0.9, n).tolist())


def _layer_ticks(layers: Sequence[int] | np.ndarray) -> dict:
    """Whole numbers that stay apart, first and last among them."""
    numbers = list(map(int, layers))
    step = max(1, -(-(len(numbers) - 1) // 12))
    shown = numbers[::step]
    if numbers and shown[-1] != numbers[-1]:
        if numbers[-1] - shown[-1] < step:
            shown.pop()
        shown.append(numbers[-1])
    return {"tickvals": shown}
