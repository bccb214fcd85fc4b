"""The map of a corpus: a point a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots import map_marks
from neuralviz.plots.map_marks import places, two_lines
from neuralviz.plots.point_colours import (
    GREY,
    MAX_CATEGORIES,
    SYMBOLS,
    PointColour,
    category_look,
    cluster_label,
)
from neuralviz.plots.theme import BLUE, SIGNED_POINTS, escape, shorten, symmetric_range

SYMBOLS_3D = ("circle", "diamond", "square", "cross")
MOST_DRAWN = 50_000  # points of a map
FADED = 0.12  # opacity of what is not selected
LEFT_OUT = 0.25  # opacity of what a filter leaves out
_NAME_CHARACTERS = 16
_ENTRY_WIDTH = 118  # px of a name in the legend
_ENTRY_HEIGHT, _SYMBOL_WIDTH = 22, 45  # px, in the legend
_HIGHEST_LEGEND = 156  # px: more entries are scrolled
_BAR_HEIGHT = 66  # px, of a colour bar with its name
_HOVERED_NAME = 40
_TITLE_CHARACTERS = 60
_TOOLS_WIDTH = 280  # px, of the buttons beside the title
_BESIDE_WIDTH = 720  # px, from which on the legend stands beside the points
_WIDTHS = (0, *range(280, _BESIDE_WIDTH + 1, 40))  # px, for which the legend is measured


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
        near: [neighbour, 2 or 3] coordinates to which lines go from the highlighted point.
        placed: new sentences and their [2 or 3] coordinates.
        names: of clusters and their [2 or 3] coordinates, the largest first.
    """

    selected: np.ndarray | None = None
    highlighted: int | None = None
    near: np.ndarray | None = None
    placed: Sequence[tuple[str, np.ndarray]] = ()
    names: Sequence[tuple[str, np.ndarray]] = ()


NO_STANDOUT = Standout()


def map_figure(
    coordinates: np.ndarray,
    rows: np.ndarray,
    colour: PointColour | None = None,
    *,
    title: str,
    standout: Standout = NO_STANDOUT,
    texts: Sequence[str] | None = None,
    within: np.ndarray | None = None,
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
        within: [text] whether a filter lets them through; the others are pale, and nothing can be
            done with them. None where there is no filter.
        axes: names of the axes where they mean something.
        uirevision: zoom is kept while it stays the same.
    """
    points = np.asarray(coordinates, dtype=np.float32)
    everything = points
    rows = np.asarray(rows, dtype=np.int32)
    flat = points.shape[1] == 2
    figure = go.Figure()
    if within is not None:
        figure.add_trace(_left_out(points[~within], len(rows)))
        points, rows = points[within], rows[within]
        colour = None if colour is None else colour.of(np.flatnonzero(within))
        texts = None if texts is None else [texts[i] for i in np.flatnonzero(within).tolist()]
    chosen = None if standout.selected is None else np.isin(rows, standout.selected)
    for group in point_groups(colour, len(rows), flat, bool(axes)):
        figure.add_traces(list(_traces(group, points, rows, texts, chosen)))
    _add_marks(figure, standout, points[rows == standout.highlighted], everything)
    figure.update_layout(title=escape(shorten(title, _TITLE_CHARACTERS)), uirevision=uirevision)
    _lay_out(figure, colour, flat, axes)
    return figure


def _left_out(points: np.ndarray, n: int) -> go.Scattergl | go.Scatter3d:
    """Points that a filter leaves out, of ``n`` points."""
    size, _ = marker_look(n)
    look = {
        **places(points),
        "mode": "markers",
        "marker": {"color": GREY, "opacity": LEFT_OUT, "size": 0.7 * size},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return go.Scattergl(look) if points.shape[1] == 2 else go.Scatter3d(look)


def _add_marks(
    figure: go.Figure, standout: Standout, highlighted: np.ndarray, points: np.ndarray
) -> None:
    """Lines, ring, stars and names, on top of the points.

    Args:
        figure: with the points.
        standout: what is marked.
        highlighted: [0 or 1, 2 or 3] the point with a ring.
        points: [text, 2 or 3] all of them.
    """
    flat = points.shape[1] == 2
    for point in highlighted:
        if standout.near is not None:
            figure.add_trace(map_marks.lines(point, standout.near))
        figure.add_trace(map_marks.ring(point))
    labels: list[dict[str, Any]] = []
    if standout.names and len(points):
        names = [cluster_label(name) for name, _ in standout.names]
        labels = map_marks.name_labels(names, np.stack([at for _, at in standout.names]), points)
    if standout.placed:
        at = np.array([place for _, place in standout.placed], dtype=np.float32)
        figure.add_trace(map_marks.stars(standout.placed, at))
        labels += map_marks.star_labels(standout.placed, at, points)
    if labels:
        figure.update_layout({"annotations" if flat else "scene_annotations": labels})


def even_out(figures: Sequence[go.Figure]) -> None:
    """Give maps that stand side by side frames of one height, in place, whatever is below them."""
    if not figures:
        return
    least = max(figure.layout.meta["from_width"][0][0] for figure in figures)
    below = [
        [width, {"margin.b": max(_room_below(figure, width) for figure in figures)}]
        for width in _WIDTHS
    ]
    for figure in figures:
        (_, title), (wide, legend) = figure.layout.meta["from_width"]
        figure.update_layout(meta={"from_width": [*below, [least, title], [wide, legend]]})


def _room_below(figure: go.Figure, width: int) -> int:
    """px that legend, colour bar and names of axes take below the frame of a map.

    Args:
        figure: of `map_figure`.
        width: of the figure, px.
    """
    room = 20
    if figure.layout.xaxis.title.text:
        room += 36
    if any(trace.marker.showscale for trace in figure.data if trace.mode == "markers"):
        room += _BAR_HEIGHT
    n_entries = sum(bool(trace.showlegend) for trace in figure.data)
    if n_entries and width < _BESIDE_WIDTH:
        columns = max(1, width // (int(figure.layout.legend.entrywidth) + _SYMBOL_WIDTH))
        room += min(_ENTRY_HEIGHT * -(-n_entries // columns), _HIGHEST_LEGEND)
    return room


def marker_look(n: int) -> tuple[float, float]:
    """Diameter in px and opacity of each of ``n`` points, so that few and many can be seen."""
    n = max(n, 1)
    size = float(np.clip(22 * n**-0.19, 2.5, 11))
    return round(size, 1), round(float(np.clip(1.15 - 0.05 * math.log(n), 0.6, 0.9)), 2)


@dataclass(frozen=True, eq=False)
class PointGroup:
    """Points that look alike: where they are among all, and what sets their trace apart."""

    at: np.ndarray
    trace: dict[str, Any]
    marker: dict[str, Any]
    values: np.ndarray | None = None  # [text], of all texts


def point_groups(
    colour: PointColour | None, n: int, flat: bool, axes: bool
) -> Iterator[PointGroup]:
    """The groups with points, in the order in which they are drawn: the last ones lie on top."""
    every = np.arange(n)
    if colour is None:
        yield PointGroup(every, {"showlegend": False}, {"color": BLUE})
    elif colour.values is not None:
        yield from _number_groups(colour, colour.values, axes)
    else:
        yield from _category_groups(colour, flat)


def _number_groups(colour: PointColour, values: np.ndarray, axes: bool) -> Iterator[PointGroup]:
    name = _in_template(shorten(colour.name, _HOVERED_NAME))
    is_finite = np.isfinite(values)
    if not is_finite.all():
        trace = {"name": escape(colour.missing), "legendrank": 2000, "showlegend": True}
        yield PointGroup(np.flatnonzero(~is_finite), trace, {"color": GREY})
    says = f"{name}: %{{marker.color:{colour.number_format}}}"
    trace = {"hovertemplate": says, "showlegend": False}
    marker = {"showscale": True, **_scale_of(colour, values, axes)}
    yield PointGroup(np.flatnonzero(is_finite), trace, marker, values)


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


def _category_groups(colour: PointColour, flat: bool) -> Iterator[PointGroup]:
    assert colour.codes is not None
    symbols = SYMBOLS if flat else SYMBOLS_3D
    n_others = max(0, len(colour.categories) - MAX_CATEGORIES)
    grey = [
        (colour.codes < 0, escape(colour.missing), 2001),
        (colour.codes >= MAX_CATEGORIES, f"other ({n_others:,} more)", 2000),
    ]
    for which, name, rank in grey:
        if which.any():
            trace = {"name": name, "legendrank": rank}
            yield PointGroup(np.flatnonzero(which), trace, {"color": GREY})
    name = _in_template(shorten(colour.name, _HOVERED_NAME))
    for code, category in enumerate(colour.categories[:MAX_CATEGORIES]):
        at = np.flatnonzero(colour.codes == code)
        trace = {
            "name": escape(shorten(category, _NAME_CHARACTERS)),
            "legendrank": 1000 + code,
            "hovertemplate": f"{name}: {_in_template(shorten(category, _HOVERED_NAME))}",
        }
        colour_of_category, symbol = category_look(code, symbols)
        marker = {"color": colour_of_category, "symbol": symbol}
        if len(at):
            yield PointGroup(at, trace, marker)


def _traces(
    group: PointGroup,
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
            **places(points[at]),
            "mode": "markers",
            "marker": marker,
            "customdata": rows[at],
        }
        if number < len(parts) - 1:
            trace["showlegend"] = marker["showscale"] = False  # both parts share one
        if not flat:
            trace["legendgroup"] = str(group.trace.get("legendrank"))
        _add_hover(trace, None if texts is None else [two_lines(texts[i]) for i in at])
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


def _in_template(name: str) -> str:
    """A user's name within a hover template, where ``%{`` begins a variable."""
    return escape(name).replace("%", "&#37;")


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
