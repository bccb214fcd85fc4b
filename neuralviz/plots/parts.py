"""Common parts of figures: traces, axes and ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from neuralviz.plots.theme import LAYER_COLOURS, SMALL_FONT_SIZE, escape, shorten
from neuralviz.words import number

Trace = dict[str, Any]  # or some of its settings
Values = Any  # numbers or names: a sequence, an array, a series
BARE = {"showgrid": False, "zeroline": False}  # an axis beside cells
TOP_DOWN = {"autorange": "reversed"}
NAMES_OF_BARS = {"showgrid": False, "ticks": "", "ticklabelstandoff": 6, **TOP_DOWN}
CIVIDIS = {"colorscale": "Cividis", "autocolorscale": False}
GROUND = "#8A9096"  # of lines that are not data
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


def label_bars(
    x: Values, names: Values, colours: Values, hover: str, text: Sequence[str], **extra: Any
) -> Trace:
    """Horizontal named bars, with ``text`` in white inside or beside them."""
    look: Trace = {"orientation": "h", "text": text, "textposition": "auto"}
    return bars(x, names, colours, hover, **look | {"insidetextfont": {"color": "white"}} | extra)


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


def cell_values(
    values: np.ndarray, format_value: Callable[[float], str] = format_two_places
) -> dict[str, Any]:
    """Write values into the cells if they fit, else show a colour bar."""
    has_room = values.shape[1] <= FEW_COLUMNS
    return {"showscale": not has_room, **(cell_labels(values, format_value) if has_room else {})}
