"""The grid of a text's masked inputs: what is kept, what is masked, how often (paper, Figure 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.plots.parts import BARE, Trace, bars, cells, dots, draw
from neuralviz.plots.theme import AFTER, escape, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from neuralviz.micro_tuning import Blueprint
    from neuralviz.micro_tuning.blueprints import MaskedInputs

KEPT, MASKED = "#C4C9CE", AFTER  # both seen on light and on dark pages
MAX_ROWS = 200
_LONGEST = 14  # characters of a token

_BAND_HEAD = 27  # px above each band, for its name
_STRIP = 56  # px for the counts under the grid
_LEGEND = 40  # px


def grid_height(inputs: MaskedInputs, tokens: Sequence[str]) -> int:
    """px that `blueprint_grid` needs to draw these tokens."""
    tops, row = _rows(inputs)
    return _token_height(tokens) + int(tops[-1] + row) + _BAND_HEAD + _STRIP + _LEGEND


def blueprint_grid(
    inputs: MaskedInputs, blueprints: Sequence[Blueprint], tokens: Sequence[str], window: range
) -> go.Figure:
    """Inputs × tokens, a band a blueprint, with a strip of how often each token is masked."""
    tops, row = _rows(inputs)
    n_rows, drawn = len(tops), slice(window.start, window.stop)
    starts = np.flatnonzero(np.diff(inputs.blueprint[:n_rows], prepend=-1))
    names = [escape(shorten(token, _LONGEST)) for token in tokens[drawn]]
    x = np.arange(window.start, window.stop) + 1
    times = inputs.times_masked[drawn]
    edges, masked, hover = _with_band_heads(inputs, blueprints, names, drawn, tops, row, starts)
    grid = _draw_grid(x, edges, masked, hover, gap=2 if row > 8 else 0)
    legend = [
        dots([None], [None], colour, size=16, marker={"symbol": "square"}, name=name)
        for name, colour in (("kept", KEPT), ("masked", MASKED))
    ]
    plot_height = tops[-1] + row + _BAND_HEAD + _STRIP
    shifts = [
        f"shift {shift}" if number in starts else str(shift)
        for number, shift in enumerate(inputs.shift[:n_rows])
    ]
    bare: dict[str, Any] = {"ticks": "", **BARE}
    heads = [
        _head(f"keep {blueprint.keep}, mask {blueprint.mask}", tops[start], "y")
        for start in starts
        for blueprint in [blueprints[inputs.blueprint[start]]]
    ]
    heads.append(_head("how often each token is masked", _STRIP / plot_height, "paper"))
    return draw(
        [grid, _draw_counts(x, times, names), *legend],
        None,
        {
            "side": "top",
            "anchor": "free",
            "position": 1,
            "tickvals": x,
            "ticktext": names,
            "autotickangles": [0, -60, -90],
            "range": [x[0] - 0.5, x[-1] + 0.5],
            **bare,
        },
        {
            "domain": [(_STRIP + _BAND_HEAD) / plot_height, 1],
            "range": [tops[-1] + row, 0],
            "tickvals": tops + row / 2 if row > 14 else [],
            "ticktext": shifts,
            **bare,
        },
        yaxis2={
            "domain": [0, _STRIP / plot_height],
            "range": [0, 1.7 * (times.max() or 1)],
            "showticklabels": False,
            "fixedrange": True,
            **BARE,
        },
        annotations=heads,
        margin={"t": _token_height(tokens[drawn]), "b": _LEGEND, "l": 8, "r": 8},
        bargap=0.12,
    )


def _draw_grid(
    x: np.ndarray, edges: np.ndarray, masked: np.ndarray, hover: np.ndarray, *, gap: int
) -> Trace:
    return cells(
        masked,
        x,
        edges,
        "%{text}",
        (0, 1),
        text=hover,
        hoverongaps=False,
        autocolorscale=False,
        colorscale=[[0, KEPT], [1, MASKED]],
        showscale=False,
        xgap=2 if len(x) <= 60 else 1,
        ygap=gap,
    )


def _draw_counts(x: np.ndarray, times: np.ndarray, names: Sequence[str]) -> Trace:
    """[token] how often each is masked, in the strip under the grid."""
    return bars(
        x,
        times,
        MASKED,
        "position %{x}: <b>%{customdata}</b><br>times masked: %{y}",
        yaxis="y2",
        text=times,
        textfont=None,
        textposition="outside",
        textangle=0,
        customdata=names,
        showlegend=False,
    )


def _token_height(tokens: Sequence[str]) -> int:
    """px for the tokens over the grid: lying flat when they are few, else upright."""
    longest = min(_LONGEST, max(map(len, tokens)))
    return 40 if len(tokens) <= 16 else 30 + 8 * longest


def _rows(inputs: MaskedInputs) -> tuple[np.ndarray, float]:
    """[row] px from the grid's top to each row's, and the height of a row."""
    blueprint = inputs.blueprint[:MAX_ROWS]
    row = float(np.clip(900 / len(blueprint), 5, 18))
    heads = np.cumsum(np.diff(blueprint, prepend=-1) != 0)
    return np.arange(len(blueprint)) * row + heads * _BAND_HEAD, row


def _with_band_heads(
    inputs: MaskedInputs,
    blueprints: Sequence[Blueprint],
    names: list[str],
    drawn: slice,
    tops: np.ndarray,
    row: float,
    starts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[line + 1] edges, [line, token] cells and their hover texts; a line is a row or a head.

    Heads are empty lines above each band.
    """
    cells = inputs.masked[: len(tops), drawn].astype(float)
    hover = np.array(
        [
            [
                f"blueprint {blueprints[inputs.blueprint[i]]}, shift {inputs.shift[i]}<br>"
                f"masked input {i + 1}, position {drawn.start + j + 1}: <b>{name}</b><br>"
                f"{'masked' if masked else 'kept'}"
                for j, (name, masked) in enumerate(zip(names, cells[i], strict=True))
            ]
            for i in range(len(tops))
        ],
        dtype=object,
    )
    edges = np.append(np.insert(tops, starts, tops[starts] - _BAND_HEAD), tops[-1] + row)
    return edges, np.insert(cells, starts, np.nan, axis=0), np.insert(hover, starts, "", axis=0)


def _head(text: str, y: float, yref: str) -> dict[str, Any]:
    """Words above a band, at the figure's left edge."""
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "yref": yref, "yanchor": "bottom"}
    return {"text": f"<b>{text}</b>", "showarrow": False, **place}
