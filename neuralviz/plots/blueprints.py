"""Grid of a text's masked inputs (paper, Figure 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.plots.parts import BARE, bars, cells, dots, draw
from neuralviz.plots.theme import AFTER, escape, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from neuralviz.micro_tuning import Blueprint
    from neuralviz.micro_tuning.blueprints import MaskedInputs

KEPT, MASKED = "#C4C9CE", AFTER  # visible on light and dark pages
MAX_ROWS = 200
_LONGEST = 14  # characters of a token

_BAND_HEAD = 27  # px above each band for its name
_STRIP = 56  # px for the counts under the grid
_LEGEND = 40  # px


def blueprint_grid(
    inputs: MaskedInputs, blueprints: Sequence[Blueprint], tokens: Sequence[str], window: range
) -> go.Figure:
    """Inputs × tokens, a band per blueprint, above the mask count of each token."""
    drawn = slice(window.start, window.stop)
    by_row = inputs.blueprint[:MAX_ROWS]  # which blueprint
    names = [escape(shorten(token, _LONGEST)) for token in tokens[drawn]]
    x = np.arange(window.start, window.stop) + 1
    starts = np.flatnonzero(np.diff(by_row, prepend=-1))  # first row of each band
    row = float(np.clip(900 / len(by_row), 5, 18))  # px
    heads = np.cumsum(np.diff(by_row, prepend=-1) != 0)
    tops = np.arange(len(by_row)) * row + heads * _BAND_HEAD  # px from the grid's top to each row
    bottom = tops[-1] + row
    plot_height = bottom + _BAND_HEAD + _STRIP
    # room for the name above each band
    edges = np.append(np.insert(tops, starts, tops[starts] - _BAND_HEAD), bottom)
    masked = inputs.masked[: len(tops), drawn].astype(float)
    hover = _describe_cells(inputs, blueprints, names, drawn, len(tops))
    grid = cells(
        np.insert(masked, starts, np.nan, axis=0),
        x,
        edges,
        "%{text}",
        (0, 1),
        text=np.insert(hover, starts, "", axis=0),
        hoverongaps=False,
        autocolorscale=False,
        colorscale=[[0, KEPT], [1, MASKED]],
        showscale=False,
        xgap=2 if len(x) <= 60 else 1,
        ygap=2 if row > 8 else 0,
    )
    times = inputs.times_masked[drawn]
    counts = bars(
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
    legend = [
        dots([None], [None], colour, size=16, marker={"symbol": "square"}, name=name)
        for name, colour in (("kept", KEPT), ("masked", MASKED))
    ]
    bands = [(blueprints[by_row[start]], tops[start]) for start in starts]
    titles = [_head(f"keep {band.keep}, mask {band.mask}", top, "y") for band, top in bands]
    titles.append(_head("how often each token is masked", _STRIP / plot_height, "paper"))
    shifts = [
        f"shift {shift}" if number in starts else str(shift)
        for number, shift in enumerate(inputs.shift[: len(tops)])
    ]
    # a few tokens are horizontal, more are vertical
    longest = min(_LONGEST, max(map(len, tokens[drawn])))
    token_height = 40 if len(x) <= 16 else 30 + 8 * longest
    bare: dict[str, Any] = {"ticks": "", **BARE}
    return draw(
        [grid, counts, *legend],
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
            "range": [bottom, 0],
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
        annotations=titles,
        margin={"t": token_height, "b": _LEGEND, "l": 8, "r": 8},
        bargap=0.12,
        height=token_height + int(bottom) + _BAND_HEAD + _STRIP + _LEGEND,
    )


def _describe_cells(
    inputs: MaskedInputs, blueprints: Sequence[Blueprint], names: list[str], drawn: slice, n: int
) -> np.ndarray:
    """[row, token] hover texts of the first ``n`` rows."""
    hover = [
        [
            f"blueprint {blueprints[inputs.blueprint[i]]}, shift {inputs.shift[i]}<br>"
            f"masked input {i + 1}, position {drawn.start + j + 1}: <b>{name}</b><br>"
            f"{'masked' if inputs.masked[i, drawn.start + j] else 'kept'}"
            for j, name in enumerate(names)
        ]
        for i in range(n)
    ]
    return np.array(hover, dtype=object)


def _head(text: str, y: float, yref: str) -> dict[str, Any]:
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "yref": yref, "yanchor": "bottom"}
    return {"text": f"<b>{text}</b>", "showarrow": False, **place}
