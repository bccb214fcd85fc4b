"""Figures of how far micro-tuning on a text moves each block, and each kind of layer in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from neuralviz.plots.room import FEW_COLUMNS, cell_values, spaced_ticks
from neuralviz.plots.theme import LAYER_COLOURS, escape, shorten


def marks_figure(
    norms: np.ndarray,
    kinds: Sequence[str],
    blocks: Sequence[int],
    *,
    measure: str,
    moment: str,
    full_kinds: Sequence[str] | None = None,
) -> go.Figure:
    """The delta of each kind of layer in each block.

    Args:
        norms: [kind, block]; NaN where a block has no such layer.
        kinds: what the rows are called.
        blocks: numbers of the columns.
        measure: what is drawn, in words.
        moment: e.g. "after epoch 3".
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
            **cell_values(norms, _format_two_digits),
            customdata=[[escape(kind)] * n_blocks for kind in full_kinds or kinds],
            hovertemplate="block %{x}<br>%{customdata}<br>%{z:.4~g}<extra></extra>",
        )
    )
    figure.update_layout(
        title=f"{measure}, {moment}",
        xaxis={
            "title": "block",
            "showgrid": False,
            "zeroline": False,
            "tickvals": spaced_ticks(blocks),
        },
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
            "tickvals": spaced_ticks(range(epochs + 1)),
            "tickformat": "d",
        },
        yaxis={"title": measure, "rangemode": "tozero"},
        showlegend=1 < len(blocks) <= FEW_COLUMNS,
    )
    return figure


def _format_two_digits(value: float) -> str:
    """Two digits that count: ``0.034``, ``120``."""
    return np.format_float_positional(value, 2, unique=False, fractional=False, trim="-")


def _shades(n: int) -> list[str]:
    """A colour for each of ``n`` blocks: categories while they are few, else from low to high."""
    if n <= len(LAYER_COLOURS):
        return list(LAYER_COLOURS[:n])
    return sample_colorscale("Viridis", np.linspace(0.3, 0.8, n).tolist())
