"""Colours, fonts and light and dark templates."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
from plotly.colors import sequential

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
YELLOW = "#F0E442"
_METHOD_COLOURS = {"sbert-wk": GREEN, "sentence-transformer": SKY, "tf-idf": ORANGE}
_METHOD_COLOURS |= {"gradient": "#B3A100", "file": "#5B7F95"}  # file: imported vectors
_METHOD_COLOURS |= dict.fromkeys(("mean", "cls", "sep", "last", "avg"), BLUE)
_NAMESAKES = ("#A62BD9", "#BB2266", "#8A6A4F")  # of a method's second, third and fourth model

# Colours of other things than methods, distinct from those; visible on light and dark pages.
LAYER_COLOURS = ("#A34AA0", "#8C7A2B", "#5F7F95", "#C2607A", "#8B6F5C", "#6E8B3D")
SIMILAR, DISSIMILAR = "#A34AA0", "#8A9096"  # kinds of pairs
BEFORE, AFTER = "#8A9096", "#7267D8"
RUNG_COLOURS = {  # of the ladder
    "cosines": "#8C7A2B", "siamese": "#5F7F95", "autoencoder": "#A34AA0", "log-variance": "#C2607A",
}  # fmt: skip
PAIR_COLOURS = {"crops": "#B0563F", "dropout": "#4C7A9E", "masking": "#8F8F2E"}  # ways to train

_END_OF_NAME = re.compile(r"[\s,(:]")

FONT = "'Source Sans', 'Source Sans Pro', 'Helvetica Neue', Arial, sans-serif"
FONT_SIZE = 16  # px: readable from the back of a room
SMALL_FONT_SIZE = 15


def _scale(colours: Sequence[str]) -> list[list]:
    return [[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)]


_CIVIDIS = _scale(sequential.Cividis)
_PURPLE_TO_ORANGE = ["#3B1B6B", "#6F56A6", "#B3A9D3", None, "#F7B96B", "#D4760A", "#7F3B08"]
_PURPLE_TO_ORANGE_DARK = ["#CDBFF2", "#9A83D6", "#553F8C", None, "#8A4A06", "#DD8420", "#FFD59E"]

# Points on the page background: invisible ends and middles are left out.
_POINTS, _POINTS_DARK = _scale(sequential.Cividis[:-1]), _scale(sequential.Cividis[2:])
SIGNED_POINTS = _scale(["#6F4FBF", "#A6A6A6", "#E07B00"])


def _template(
    *, ink: str, paper: str, grid: str, zero: str, diverging: list, points: list
) -> go.layout.Template:
    """A template for one background; heatmaps that span 0 get the diverging scale."""
    centred = [[i / 6, colour or zero] for i, colour in enumerate(diverging)]
    axis = {
        "automargin": True,
        "gridcolor": grid,
        "linecolor": grid,
        "zerolinecolor": grid,
        "tickfont": {"size": SMALL_FONT_SIZE},
        "title": {"font": {"size": FONT_SIZE}, "standoff": 10},
    }
    bar = {"outlinewidth": 0, "thickness": 14, "tickfont": {"size": SMALL_FONT_SIZE}}
    marker = {"autocolorscale": False, "colorscale": points, "colorbar": bar}
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": FONT_SIZE, "color": ink},
            "title": {"font": {"size": FONT_SIZE + 3}, "x": 0, "xanchor": "left"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": [VERMILLION, BLUE, GREEN, PURPLE, ORANGE, SKY, ink],
            "colorscale": {
                "sequential": _CIVIDIS,
                "sequentialminus": _CIVIDIS,
                "diverging": centred,
            },
            "coloraxis": {"colorbar": bar},
            "margin": {"l": 16, "r": 16, "t": 44, "b": 16},
            "hoverlabel": {
                "bgcolor": paper,
                "bordercolor": grid,
                "font": {"family": FONT, "size": SMALL_FONT_SIZE, "color": ink},
                "align": "left",
            },
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
                "font": {"size": SMALL_FONT_SIZE},
                "bgcolor": "rgba(0,0,0,0)",
            },
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8A9096", "activecolor": ink},
            "xaxis": axis,
            "yaxis": axis,
        },
        data={
            "heatmap": [{"autocolorscale": True, "colorbar": bar, "hoverongaps": False}],
            "scattergl": [{"marker": marker}],
            "scatter3d": [{"marker": marker}],
        },
    )


_TEMPLATES = {
    "neuralviz_light": _template(
        ink="#1F2328",
        paper="#FFFFFF",
        grid="#E6E3DC",
        zero="#F7F7F5",
        diverging=_PURPLE_TO_ORANGE,
        points=_POINTS,
    ),
    "neuralviz_dark": _template(
        ink="#ECEAE6",
        paper="#14171A",
        grid="#333A41",
        zero="#1B1F23",
        diverging=_PURPLE_TO_ORANGE_DARK,
        points=_POINTS_DARK,
    ),
}
for _name, _value in _TEMPLATES.items():
    pio.templates[_name] = _value


def style(figure: go.Figure, dark: bool) -> go.Figure:
    """Apply the light or dark template in place."""
    figure.layout.template = "neuralviz_dark" if dark else "neuralviz_light"
    return figure


def unstyled_json(figure: go.Figure) -> str:
    """JSON of the figure without its template."""
    spec = figure.to_dict()
    spec["layout"].pop("template", None)
    return pio.to_json(spec, validate=False)


def templates_json() -> str:
    """JSON of the templates, by ``light`` and ``dark``."""
    return pio.to_json(
        {name.removeprefix("neuralviz_"): template for name, template in _TEMPLATES.items()},
        validate=False,
    )


def method_colour(label: str) -> str:
    """A method's colour, by its label with or without settings."""
    name = _method_name(label)
    return PURPLE if "+" in name else _METHOD_COLOURS.get(name, VERMILLION)


def method_colours(labels: Sequence[str]) -> dict[str, str]:
    """Unique colours of methods drawn together; the first of each name has `method_colour`."""
    names: set[str] = set()
    colours: dict[str, str] = {}
    n_namesakes = 0
    for label in dict.fromkeys(labels):
        name = _method_name(label)
        colours[label] = method_colour(label)
        if name in names:
            colours[label] = _NAMESAKES[n_namesakes % len(_NAMESAKES)]
            n_namesakes += 1
        names.add(name)
    return colours


def _method_name(label: str) -> str:
    return _END_OF_NAME.split(label.lower(), maxsplit=1)[0]


def symmetric_range(values: ArrayLike) -> tuple[float, float]:
    """``(-m, m)`` for the largest finite magnitude m; 1 if there is none above 0."""
    magnitudes = np.abs(np.asarray(values, dtype=float))
    largest = float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes))) or 1.0
    return -largest, largest


def escape(text: str) -> str:
    """Escape ``<`` and ``&`` in user text, which plotly reads as HTML."""
    return html.escape(text, quote=False)


def shorten(text: str, n: int) -> str:
    """``text`` on one line, cut to ``n`` characters with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= n else line[: n - 1].rstrip() + "…"


def shorten_apart(labels: Sequence[str], n: int) -> list[str]:
    """Escaped labels of at most ``n`` characters; distinct labels stay distinct."""
    short = [shorten(label, n) for label in labels]
    names: list[str] = []
    for label, name in zip(labels, short, strict=True):
        if len({whole for whole, cut in zip(labels, short, strict=True) if cut == name}) > 1:
            name = f"{label[: n // 2 - 1].rstrip()}…{label[-(n - n // 2) :].lstrip()}"
        name = escape(name)
        names.append(name if name not in names else f"{name} · {len(names) + 1}")
    return names
