"""The map of a corpus: a point a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.point_colours import COLOURS, GREY, MAX_CATEGORIES, SYMBOLS, PointColour
from neuralviz.plots.standalone import standalone_html
from neuralviz.plots.theme import (
    BLUE,
    SIGNED_POINTS,
    SMALL_FONT_SIZE,
    YELLOW,
    escape,
    shorten,
    symmetric_range,
)
from neuralviz.words import many

SYMBOLS_3D = ("circle", "diamond", "square", "cross")
MOST_DRAWN = 50_000  # points of a map
FADED = 0.12  # opacity of what is not selected
HOVERED_CHARACTERS = 60  # of a line
_NAME_CHARACTERS = 16
_ENTRY_WIDTH = 118  # px of a name in the legend
_HOVERED_NAME = 40
_TITLE_CHARACTERS = 60
_TOOLS_WIDTH = 280  # px, of the buttons beside the title
_BESIDE_WIDTH = 720  # px, from which on the legend stands beside the points


def drawn_rows(n: int) -> np.ndarray:
    """Rows that are drawn of ``n``, in their order: all, or the same random sample every time."""
    if n <= MOST_DRAWN:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_DRAWN, replace=False))


@dataclass(frozen=True, eq=False)
class Standout:
    """What stands out on a map.

    Attributes:
        selected: row numbers; the other points fade. None where nothing is selected.
        highlighted: row number of the point with a ring.
        placed: new sentences and their [2 or 3] coordinates.
    """

    selected: np.ndarray | None = None
    highlighted: int | None = None
    placed: Sequence[tuple[str, np.ndarray]] = ()


NO_STANDOUT = Standout()


def map_figure(
    coordinates: np.ndarray,
    rows: np.ndarray,
    colour: PointColour | None = None,
    *,
    title: str,
    standout: Standout = NO_STANDOUT,
    texts: Sequence[str] | None = None,
    axes: Sequence[str] | None = None,
    uirevision: str | None = None,
) -> go.Figure:
    """A map of a corpus: points with their row numbers as ``customdata``.

    Distances across are drawn as distances up. Colours of numbers span the middle 98% of them.

    Args:
        coordinates: [text, 2 or 3].
        rows: [text] numbers that say which texts they are.
        colour: what the points are coloured by; one colour if None.
        title: of the figure; escaped here.
        standout: what is selected, highlighted and placed.
        texts: [text] shown where one points at them; for corpora small enough to be sent whole.
        axes: names of the axes where they mean something.
        uirevision: zoom is kept while it stays the same.
    """
    points = np.asarray(coordinates, dtype=np.float32)
    rows = np.asarray(rows, dtype=np.int32)
    flat = points.shape[1] == 2
    selected, highlighted, placed = standout.selected, standout.highlighted, standout.placed
    chosen = None if selected is None else np.isin(rows, selected)
    figure = go.Figure()
    for group in _groups(colour, len(rows), flat, bool(axes)):
        figure.add_traces(list(_traces(group, points, rows, texts, chosen)))
    if highlighted is not None and (rows == highlighted).any():
        figure.add_trace(_ring(points[rows == highlighted][0]))
    if placed:
        at = np.array([place for _, place in placed], dtype=np.float32)
        figure.add_trace(_stars(placed, at))
        labels = _star_labels(placed, at, points)
        figure.update_layout({"annotations" if flat else "scene_annotations": labels})
    figure.update_layout(title=escape(shorten(title, _TITLE_CHARACTERS)), uirevision=uirevision)
    _lay_out(figure, colour, flat, axes)
    return figure


def map_page(
    coordinates: np.ndarray, texts: Sequence[str], colour: PointColour, *, title: str
) -> str:
    """A page with a map that needs no network; texts are read by pointing at them.

    Args:
        coordinates, colour, title: as of `map_figure`.
        texts: [text], of which the page holds the beginnings.
    """
    rows = np.arange(len(coordinates))
    return standalone_html(map_figure(coordinates, rows, colour, title=title, texts=texts))


def marker_look(n: int) -> tuple[float, float]:
    """Diameter in px and opacity of each of ``n`` points, so that few and many can be seen."""
    n = max(n, 1)
    size = float(np.clip(22 * n**-0.19, 2.5, 11))
    return round(size, 1), round(float(np.clip(1.15 - 0.05 * math.log(n), 0.6, 0.9)), 2)


@dataclass(frozen=True, eq=False)
class _Group:
    """Points that look alike: where they are among all, and what sets their trace apart."""

    at: np.ndarray
    trace: dict[str, Any]
    marker: dict[str, Any]
    values: np.ndarray | None = None  # [text], of all texts


def _groups(colour: PointColour | None, n: int, flat: bool, axes: bool) -> Iterator[_Group]:
    """The groups with points, in the order in which they are drawn: the last ones lie on top."""
    every = np.arange(n)
    if colour is None:
        yield _Group(every, {"showlegend": False}, {"color": BLUE})
    elif colour.values is not None:
        yield from _number_groups(colour, colour.values, axes)
    else:
        yield from _category_groups(colour, flat)


def _number_groups(colour: PointColour, values: np.ndarray, axes: bool) -> Iterator[_Group]:
    name = _in_template(shorten(colour.name, _HOVERED_NAME))
    is_finite = np.isfinite(values)
    if not is_finite.all():
        trace = {"name": escape(colour.missing), "legendrank": 2000, "showlegend": True}
        yield _Group(np.flatnonzero(~is_finite), trace, {"color": GREY})
    says = f"{name}: %{{marker.color:{colour.number_format}}}"
    trace = {"hovertemplate": says, "showlegend": False}
    marker = {"showscale": True, **_scale_of(colour, values, axes)}
    yield _Group(np.flatnonzero(is_finite), trace, marker, values)


def _scale_of(colour: PointColour, values: np.ndarray, axes: bool) -> dict[str, Any]:
    """Range, colours and colour bar of numbers, for a marker."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, (0.01, 0.99)).tolist() if len(finite) else (0.0, 1.0)
    if low == high and len(finite):
        low, high = float(finite.min()), float(finite.max())
    signed = low < 0 < high
    if signed:
        low, high = symmetric_range([low, high])
    return {
        "cmin": low,
        "cmax": high,
        **({"colorscale": SIGNED_POINTS} if signed else {}),
        "colorbar": {
            "title": {"text": escape(shorten(colour.name, 40)), "side": "top"},
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": -0.1 if axes else 0,  # below the name of an axis
            "yanchor": "top",
            "len": 1,
            "nticks": 6,
            "tickformat": colour.number_format,
        },
    }


def _category_groups(colour: PointColour, flat: bool) -> Iterator[_Group]:
    assert colour.codes is not None
    symbols = SYMBOLS if flat else SYMBOLS_3D
    n_others = max(0, len(colour.categories) - MAX_CATEGORIES)
    grey = [
        (colour.codes < 0, escape(colour.missing), 2001),
        (colour.codes >= MAX_CATEGORIES, many(n_others, "other"), 2000),
    ]
    for which, name, rank in grey:
        if which.any():
            trace = {"name": name, "legendrank": rank}
            yield _Group(np.flatnonzero(which), trace, {"color": GREY})
    name = _in_template(shorten(colour.name, _HOVERED_NAME))
    for code, category in enumerate(colour.categories[:MAX_CATEGORIES]):
        at = np.flatnonzero(colour.codes == code)
        trace = {
            "name": escape(shorten(category, _NAME_CHARACTERS)),
            "legendrank": 1000 + code,
            "hovertemplate": f"{name}: {_in_template(shorten(category, _HOVERED_NAME))}",
        }
        look = code // len(COLOURS)
        marker = {"color": COLOURS[code % len(COLOURS)], "symbol": symbols[look]}
        if len(at):
            yield _Group(at, trace, marker)


def _traces(
    group: _Group,
    points: np.ndarray,
    rows: np.ndarray,
    texts: Sequence[str] | None,
    chosen: np.ndarray | None,
) -> Iterator[go.Scattergl | go.Scatter3d]:
    """The group as one trace; in three dimensions what is not selected is one of its own."""
    size, opacity = marker_look(len(rows))
    flat = points.shape[1] == 2
    size = size if flat else 0.6 * size  # in a scene they are drawn larger
    parts = [(group.at, opacity)]
    if chosen is not None and not flat:
        bright = chosen[group.at]
        parts = [(group.at[~bright], FADED), (group.at[bright], opacity)]
        parts = [part for part in parts if len(part[0])]
    for number, (at, how_opaque) in enumerate(parts):
        marker = {"size": size, "opacity": how_opaque, **group.marker}
        if group.values is not None:
            marker["color"] = group.values[at]
        trace: dict[str, Any] = {
            "showlegend": True,
            **group.trace,
            **_places(points[at]),
            "mode": "markers",
            "marker": marker,
            "customdata": rows[at],
        }
        if number < len(parts) - 1:
            trace["showlegend"] = marker["showscale"] = False  # both parts share one
        if not flat:
            trace["legendgroup"] = str(group.trace.get("legendrank"))
        _add_hover(trace, None if texts is None else [_two_lines(texts[i]) for i in at])
        if flat and chosen is not None:
            # a list: plotly.js does not read this one as a typed array
            trace["selectedpoints"] = np.flatnonzero(chosen[at]).tolist()
            trace["unselected"] = {"marker": {"opacity": FADED}}
        yield go.Scattergl(trace) if flat else go.Scatter3d(trace)


def _add_hover(trace: dict[str, Any], texts: list[str] | None) -> None:
    says = trace.pop("hovertemplate", "")
    if texts is not None:
        trace["text"] = texts
        says = f"%{{text}}<br>{says}" if says else "%{text}"
    if says:
        trace["hovertemplate"] = f"{says}<extra></extra>"
    else:
        trace["hoverinfo"] = "none"  # the events come all the same


def _two_lines(text: str, width: int = HOVERED_CHARACTERS) -> str:
    """The beginning of a user's text, safe in a figure."""
    line = shorten(text, 2 * width)
    if len(line) <= width:
        return escape(line)
    cut = line.rfind(" ", 0, width + 1)
    cut = width if cut < 1 else cut
    return f"{escape(line[:cut])}<br>{escape(shorten(line[cut:], width))}"


def _in_template(name: str) -> str:
    """A user's name within a hover template, where ``%{`` begins a variable."""
    return escape(name).replace("%", "&#37;")


def _places(points: np.ndarray) -> dict[str, np.ndarray]:
    return {axis: points[:, i] for i, axis in enumerate("xyz"[: points.shape[1]])}


def _ring(point: np.ndarray) -> go.Scattergl | go.Scatter3d:
    """A dark ring within a light one, seen on any ground."""
    flat = len(point) == 2
    ring = {
        **_places(np.stack([point, point])),
        "mode": "markers",
        "marker": {
            "symbol": "circle-open",
            "size": [22, 22] if flat else [20, 15],
            "color": ["#FFFFFF", "#000000"],
            "line": {"width": [7, 3] if flat else 3},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return go.Scattergl(ring) if flat else go.Scatter3d(ring)


def _stars(placed: Sequence[tuple[str, np.ndarray]], at: np.ndarray) -> go.Scattergl | go.Scatter3d:
    flat = at.shape[1] == 2
    stars = {
        **_places(at),
        "mode": "markers",
        "marker": {
            "symbol": "star" if flat else "diamond",
            "size": 20 if flat else 9,
            "color": YELLOW,
            "line": {"color": "#000000", "width": 1.5},
        },
        "text": [_two_lines(text) for text, _ in placed],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    return go.Scattergl(stars) if flat else go.Scatter3d(stars)


def _star_labels(
    placed: Sequence[tuple[str, np.ndarray]], at: np.ndarray, points: np.ndarray
) -> list[dict[str, Any]]:
    """How each new sentence begins, on the side of its star where there is room."""
    everything = np.concatenate([points, at])[:, :2]
    low, high = everything.min(axis=0), everything.max(axis=0)
    thirds = np.clip(3 * (at[:, :2] - low) / np.maximum(high - low, 1e-9), 0, 2).astype(int)
    return [
        {
            **dict(zip("xyz", place.tolist(), strict=False)),
            "text": f"<b>{_two_lines(shorten(text, 32), 18)}</b>",
            "font": {"size": SMALL_FONT_SIZE, "shadow": "auto"},
            "showarrow": False,
            "xanchor": ("left", "center", "right")[across],
            "yanchor": "top" if up == 2 else "bottom",
            "yshift": -10 if up == 2 else 10,
        }
        for (text, _), place, (across, up) in zip(placed, at, thirds, strict=True)
    ]


def _lay_out(
    figure: go.Figure, colour: PointColour | None, flat: bool, axes: Sequence[str] | None
) -> None:
    plain: dict[str, Any] = {
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "showline": True,
    }
    named = [{**plain, "title": {"text": escape(name)}} for name in axes or ()]
    if flat:
        x, y = named or (plain, plain)
        figure.update_layout(
            xaxis={**x, "mirror": True}, yaxis={**y, "mirror": True, "scaleanchor": "x"}
        )
    else:
        room = {"showbackground": False, "showspikes": False, "visible": bool(named)}
        scene = {
            f"{letter}axis": axis | room
            for letter, axis in zip("xyz", named or [plain] * 3, strict=True)
        }
        far = 1.55 if named else 1.25  # so that the names are seen whole
        camera = {"eye": dict.fromkeys("xyz", far)}
        figure.update_layout(scene={**scene, "aspectmode": "data", "camera": camera})
    longest = max((len(trace.name or "") for trace in figure.data), default=0)
    # On narrow screens the title stands below the tools and the legend below the points.
    least = _TOOLS_WIDTH + 9 * len(figure.layout.title.text)
    beside = {
        "legend.orientation": "v",
        "legend.x": 1.01,
        "legend.y": 1,
        "legend.yref": "paper",
        "legend.yanchor": "top",
        "legend.maxheight": 1,
    }
    figure.update_layout(
        title={"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 36}},
        margin={"l": 2, "r": 2, "t": 70},
        legend={
            "itemsizing": "constant",
            "entrywidth": min(_ENTRY_WIDTH, 9 * longest),
            "tracegroupgap": 0,
            "maxheight": 0.34,
            "uirevision": colour.name if colour else "",
        },
        meta={
            "from_width": [
                [least, {"title.pad.t": 8, "margin.t": 42}],
                [_BESIDE_WIDTH, beside],
            ]
        },
    )
