"""Colours, fonts, light and dark templates, and the parts of figures: traces, axes and ticks."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
from plotly.colors import sample_colorscale, sequential

from neuralviz.words import number

if TYPE_CHECKING:
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
_PURPLE_TO_ORANGE_DARK = ["#B9A1FF", "#8F73DB", "#553F8C", None, "#8A4A06", "#DD8420", "#FFB54D"]

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


def shorten_text(text: str, n: int) -> str:
    """``text`` on one line, cut to ``n`` characters between words, where there are several."""
    cut = textwrap.shorten(text, n, placeholder=" …")
    return cut if len(cut) > n / 2 or len(text) <= n else shorten(text, n)  # a long "word"


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


Trace = dict[str, Any]  # or some of its settings
Values = Any  # numbers or names: a sequence, an array, a series
BARE = {"showgrid": False, "zeroline": False}  # an axis beside cells
TOP_DOWN = {"autorange": "reversed"}
NAMES_OF_BARS = {"showgrid": False, "ticks": "", "ticklabelstandoff": 6, **TOP_DOWN}
CIVIDIS = {"colorscale": "Cividis", "autocolorscale": False}
GROUND = "#8A9096"  # of lines that are not data
NOT_MEASURED = "rgba(138, 144, 150, 0.35)"  # cells without a value
FEW_COLUMNS = 8  # cells side by side with room for values
MAX_TICKS = 10  # ticks that fit even a narrow figure


def draw(
    traces: Iterable[Trace],
    title: str | None = None,
    x: Mapping[str, Any] | None = None,
    y: Mapping[str, Any] | None = None,
    **layout: Any,
) -> go.Figure:
    """Make a figure in one go, much faster than trace by trace; ``layout`` has further settings."""
    axes = {"title": title, "xaxis": x, "yaxis": y}
    return go.Figure({"data": list(traces), "layout": {**axes, **layout, "template": "none"}})


def line(
    x: Values,
    y: Values,
    colour: str,
    hover: str = "",
    *,
    width: float = 3,
    dash: str | None = None,
    size: float = 9,
    **extra: Any,
) -> Trace:
    look: Trace = {"line": {"color": colour, "width": width, **({"dash": dash} if dash else {})}}
    if size:
        look["marker"] = {"size": size}
    mode = "lines+markers" if size else "lines"
    return {"type": "scatter", "x": x, "y": y, "mode": mode, **look, **_hover_box(hover), **extra}


def dots(
    x: Values,
    y: Values,
    colour: Any,
    hover: str = "",
    *,
    size: Any = 9,
    marker: Mapping[str, Any] | None = None,
    **extra: Any,
) -> Trace:
    look = {"color": colour, "size": size, **(marker or {})}
    return {
        "type": "scatter", "x": x, "y": y, "mode": "markers", "marker": look,
        **_hover_box(hover), **extra,
    }  # fmt: skip


def bars(x: Values, y: Values, colour: Any, hover: str, **extra: Any) -> Trace:
    """Bars, vertical unless ``orientation`` is ``h``."""
    written: Trace = {}
    if "text" in extra:
        written = {"textfont": {"size": SMALL_FONT_SIZE}, "cliponaxis": False}
    return {
        "type": "bar", "x": x, "y": y, "marker": {"color": colour},
        **written, **_hover_box(hover), **extra,
    }  # fmt: skip


def token_bars(
    x: Values, names: Sequence[str], colour: str, hover: str, text: Sequence[str], **extra: Any
) -> Trace:
    """Horizontal bars at 0, 1, … for one of several names, with ``text`` behind."""
    look: Trace = {"textposition": "outside", "constraintext": "none", "customdata": names}
    places = list(range(len(names)))
    return bars(x, places, colour, hover, orientation="h", text=text, **look, **extra)


def cells(
    z: np.ndarray,
    x: Values,
    y: Values,
    hover: str,
    limits: Sequence[float] | None = None,
    **extra: Any,
) -> Trace:
    """A [row, column] heatmap."""
    ends = {} if limits is None else {"zmin": limits[0], "zmax": limits[1]}
    return {"type": "heatmap", "z": z, "x": x, "y": y, **ends, **_hover_box(hover), **extra}


def _hover_box(template: str) -> dict[str, str]:
    if not template:
        return {"hoverinfo": "skip"}
    return {"hovertemplate": f"{template}<extra></extra>"}


def bar_title(text: str) -> dict[str, Any]:
    """A vertical title for a colour bar."""
    return {"colorbar": {"title": {"text": text, "side": "right"}}}


def number_axis(title: str, numbers: Iterable[int], **extra: Any) -> dict[str, Any]:
    return {"title": title, "tickvals": spaced_ticks(numbers), **extra}


def name_axis(names: Sequence[str], n_characters: int, **extra: Any) -> dict[str, Any]:
    """An axis with users' words at 0, 1, …, shortened and escaped."""
    written = [escape(shorten(name, n_characters)) for name in names]
    return {"tickvals": list(range(len(names))), "ticktext": written, **extra}


def layer_colours(n: int) -> list[str]:
    if n <= len(LAYER_COLOURS):
        return list(LAYER_COLOURS[:n])
    return sample_colorscale("Viridis", np.linspace(0.3, 0.8, n).tolist())


def widen(values: Iterable[float], share: float = 0.08) -> list[float]:
    """The range of the values with a margin."""
    values = list(values)
    low, high = min(values), max(values)
    room = share * (high - low or 1)
    return [low - room, high + room]


def even_ticks(limits: Sequence[float], least: float = 0) -> dict[str, Any]:
    """At most six round ticks between limits, ``least`` apart, written with as many decimals."""
    step = max(least, (limits[1] - limits[0]) / 5)  # which may be NaN
    if not step > 0:
        return {}
    power = math.floor(math.log10(step))
    step = next(m for m in (1, 2, 5, 10) if m * 10.0**power >= 0.999 * step) * 10.0**power
    n_decimals = max(0, -math.floor(math.log10(1.001 * step)))
    return {"dtick": step, "tickformat": f".{n_decimals}f"}


def spaced_ticks(numbers: Iterable[int]) -> list[int]:
    """Ticks that fit, including the first and last number."""
    values = list(map(int, numbers))
    step = max(1, -(-(len(values) - 1) // (MAX_TICKS - 1)))
    ticks = values[::step]
    if values and ticks[-1] != values[-1]:
        if len(ticks) > 1 and len(values) - 1 - values.index(ticks[-1]) < step:
            ticks.pop()
        ticks.append(values[-1])
    return ticks


def format_two_places(value: float) -> str:
    """``−0.05``."""
    return number(value, ".2f")


def cell_labels(
    values: np.ndarray, format_value: Callable[[float], str] = format_two_places
) -> dict[str, Any]:
    """Labels of [row, column] cells, blank for NaN; plotly.js would use a hyphen as minus."""
    text = [[format_value(float(v)) if np.isfinite(v) else "" for v in row] for row in values]
    return {"text": text, "texttemplate": "%{text}"}
