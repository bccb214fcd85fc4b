"""Maps of a corpus."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.parts import BARE, Trace, draw
from neuralviz.plots.point_colours import GREY, PointColour, PointGroup, cluster_label, point_groups
from neuralviz.plots.theme import SMALL_FONT_SIZE, YELLOW, escape, shorten

MOST_DRAWN = 50_000  # points of a map
STAGE_SCALE, STAGE_NAME = 1.9, 24  # factor for text in presentation mode; px of names
MOST_NAMED = 30  # clusters; more names would hide the points
FADED = 0.12  # opacity of unselected points
LEFT_OUT = 0.25  # opacity of filtered-out points
_ENTRY_WIDTH = 118  # px of a name in the legend
_ENTRY_HEIGHT, _SYMBOL_WIDTH = 22, 45  # px, in the legend
_HIGHEST_LEGEND = 156  # px; beyond, the legend scrolls
_BAR_HEIGHT = 66  # px of a colour bar with its title
TITLE_CHARACTERS = 60
_TOOLS_WIDTH = 280  # px of the buttons beside the title
_BESIDE_WIDTH = 720  # px from which the legend is beside the points
_WIDTHS = (0, *range(280, _BESIDE_WIDTH + 1, 10))  # px for which the legend is measured
HOVERED_CHARACTERS = 60  # per line
_FRAME = (420, 280)  # px: minimum, next to another map on a projector
_NAME_HEIGHT, _CHARACTER = 20, 9.5  # px
_NAME_STEPS = (0, 20, -20, 40, -40)  # px by which a name may be shifted up
DENSITY_BINS = 256  # maximum per side
UNDRAWN_SELECTION = "selected"  # trace of selected points that are not drawn otherwise
_SHADE = "154, 159, 165"  # visible on light and dark pages
_DARKEST = 0.8  # opacity of the densest bin
_LEVELS = 255


def drawn_rows(n: int) -> np.ndarray:
    """Rows to draw of ``n``, ascending: all, or a fixed random sample."""
    if n <= MOST_DRAWN:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_DRAWN, replace=False))


@dataclass(frozen=True, eq=False)
class Standout:
    """Highlights on a map."""

    selected: np.ndarray | None = None  # row numbers; the others fade; None without a selection
    highlighted: int | None = None  # row number of the point with a ring
    near: np.ndarray | None = None  # [neighbour, 2 or 3] ends of lines from that point
    placed: Sequence[tuple[str, np.ndarray]] = ()  # new sentences and their [2 or 3] places
    near_placed: Sequence[np.ndarray] = ()  # per sentence, ends of lines from it
    names: Sequence[tuple[str, np.ndarray]] = ()  # cluster names and places, largest first


NO_STANDOUT = Standout()


def map_figure(
    coordinates: np.ndarray,
    rows: np.ndarray,  # [text] row numbers in the corpus
    colour: PointColour | None = None,
    *,
    title: str,
    standout: Standout = NO_STANDOUT,
    texts: Sequence[str] | None = None,  # for hover boxes
    within: np.ndarray | None = None,  # [text] mask of a filter; the others are pale and inert
    axes: Sequence[str] | None = None,
    uirevision: str | None = None,  # zoom is kept while it stays the same
) -> go.Figure:
    """A map of a corpus: points with their row numbers as ``customdata``."""
    points = np.asarray(coordinates, dtype=np.float32)
    everything = points
    rows = np.asarray(rows, dtype=np.int32)
    flat = points.shape[1] == 2
    traces: list[Trace] = []
    if within is not None:
        look = {"color": GREY, "opacity": LEFT_OUT, "size": 0.7 * marker_look(len(rows))[0]}
        traces.append(_mark_trace(points[~within], "markers", marker=look))
        points, rows = points[within], rows[within]
        colour = None if colour is None else colour.select(np.flatnonzero(within))
        texts = None if texts is None else [texts[i] for i in np.flatnonzero(within).tolist()]
    chosen = None if standout.selected is None else np.isin(rows, standout.selected)
    for group in point_groups(colour, len(rows), flat, bool(axes)):
        traces += _traces(group, points, rows, texts, chosen)
    figure = draw(traces, escape(shorten(title, TITLE_CHARACTERS)), uirevision=uirevision)
    _add_marks(figure, standout, points[rows == standout.highlighted], everything)
    _lay_out(figure, colour, flat, axes)
    return figure


def _mark_trace(points: np.ndarray, mode: str, **look: Any) -> Trace:
    kind = "scattergl" if points.shape[1] == 2 else "scatter3d"
    silent = {} if "hovertemplate" in look else {"hoverinfo": "skip"}
    return {"type": kind, **_places(points), "mode": mode, "showlegend": False, **silent, **look}


def _add_marks(
    figure: go.Figure, standout: Standout, highlighted: np.ndarray, points: np.ndarray
) -> None:
    flat = points.shape[1] == 2
    for point in highlighted:
        if standout.near is not None:
            figure.add_trace(_lines(point, standout.near))
        figure.add_trace(_ring(point))
    labels: list[dict[str, Any]] = []
    if standout.placed:
        positions = np.array([place for _, place in standout.placed], dtype=np.float32)
        figure.add_traces(list(map(_lines, positions, standout.near_placed)))
        figure.add_trace(_stars(standout.placed, positions))
        labels = _star_labels(standout.placed, positions, points)
    if standout.names and len(points):
        labels = _name_labels(standout.names[:MOST_NAMED], points, labels) + labels
    if labels:
        figure.update_layout({"annotations" if flat else "scene_annotations": labels})


def even_out(figures: Sequence[go.Figure]) -> None:
    """Give maps side by side equal frame heights, in place."""
    if not figures:
        return
    least = max(figure.layout.meta["from_width"][0][0] for figure in figures)
    bottom_margins = [
        [width, {"margin.b": max(_room_below(figure, width) for figure in figures)}]
        for width in _WIDTHS
    ]
    for figure in figures:
        (_, title), (wide, legend) = figure.layout.meta["from_width"]
        widths = [*bottom_margins, [least, title], [wide, legend]]
        figure.update_layout(meta={**figure.layout.meta, "from_width": widths})


def _room_below(figure: go.Figure, width: int) -> int:
    """Height in px of legend, colour bar and axis titles below the map."""
    room = 20
    if figure.layout.xaxis.title.text:
        room += 36
    points = (trace for trace in figure.data if "mode" in trace and trace.mode == "markers")
    if any(trace.marker.showscale for trace in points):
        room += _BAR_HEIGHT
    n_entries = sum(bool(trace.showlegend) for trace in figure.data)
    if n_entries and width < _BESIDE_WIDTH:
        columns = max(1, width // (int(figure.layout.legend.entrywidth) + _SYMBOL_WIDTH))
        room += min(_ENTRY_HEIGHT * -(-n_entries // columns), _HIGHEST_LEGEND)
    return room


def marker_look(n: int) -> tuple[float, float]:
    """Diameter in px and opacity of each of ``n`` points."""
    n = max(n, 1)
    size = float(np.clip(22 * n**-0.19, 2.5, 11))
    return round(size, 1), round(float(np.clip(1.15 - 0.05 * math.log(n), 0.6, 0.9)), 2)


def _traces(
    group: PointGroup,
    points: np.ndarray,
    rows: np.ndarray,
    texts: Sequence[str] | None,
    chosen: np.ndarray | None,
) -> Iterator[Trace]:
    """Traces of a group; in three dimensions, unselected points need their own."""
    size, opacity = marker_look(len(rows))
    flat = points.shape[1] == 2
    size = size if flat else 0.6 * size  # 3-D scenes draw them larger
    parts = [(group.positions, opacity)]
    if chosen is not None and not flat:
        bright = chosen[group.positions]
        parts = [(group.positions[~bright], FADED), (group.positions[bright], opacity)]
        parts = [part for part in parts if len(part[0])]
    for number, (positions, how_opaque) in enumerate(parts):
        trace = _group_trace(group, "scattergl" if flat else "scatter3d", size, how_opaque)
        trace |= {**_places(points[positions]), "customdata": rows[positions]}
        if group.values is not None:
            trace["marker"]["color"] = group.values[positions]
        if number < len(parts) - 1:
            trace["showlegend"] = trace["marker"]["showscale"] = False  # shared by both parts
        if not flat:
            trace["legendgroup"] = str(group.trace.get("legendrank"))
        _add_hover(trace, None if texts is None else [_two_lines(texts[i]) for i in positions])
        if flat and chosen is not None:
            # plotly.js needs a list here, not a typed array
            trace["selectedpoints"] = np.flatnonzero(chosen[positions]).tolist()
            trace["unselected"] = {"marker": {"opacity": FADED}}
        yield trace


def _group_trace(group: PointGroup, kind: str, size: float, opacity: float) -> Trace:
    marker = {"size": size, "opacity": opacity, **group.marker}
    return {"type": kind, "showlegend": True, **group.trace, "mode": "markers", "marker": marker}


def _add_hover(trace: dict[str, Any], texts: list[str] | None) -> None:
    hover = trace.pop("hovertemplate", "")
    if texts is not None:
        trace["text"] = texts
        hover = f"%{{text}}<br>{hover}" if hover else "%{text}"
    # without a box, hover events still fire
    trace |= {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "none"}


def _lay_out(
    figure: go.Figure, colour: PointColour | None, flat: bool, axes: Sequence[str] | None
) -> None:
    plain: dict[str, Any] = {"showticklabels": False, "showline": True, **BARE}
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
        far = 1.55 if named else 1.25  # leaves room for names
        camera = {"eye": dict.fromkeys("xyz", far)}
        figure.update_layout(scene={**scene, "aspectmode": "data", "camera": camera})
    longest = max((len(trace.name or "") for trace in figure.data), default=0)
    entry_width = min(_ENTRY_WIDTH, 9 * longest)
    # On narrow screens, the title is below the tools and the legend below the points.
    least = _TOOLS_WIDTH + 9 * len(figure.layout.title.text)
    beside_look = {"orientation": "v", "x": 1.01, "y": 1, "yref": "paper", "yanchor": "top"}
    legend_beside = {f"legend.{name}": value for name, value in beside_look.items()}
    legend_beside["legend.maxheight"] = 1
    legend_below: dict[str, Any] = {}
    if colour is not None and colour.codes is not None and not named:
        legend_below = {"y": 0, "yref": "paper", "yanchor": "top"}  # directly below the frame
    names = range(len(figure.layout.annotations))
    figure.update_layout(
        title={"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 36}},
        margin={"l": 2, "r": 2, "t": 70},
        legend={
            "itemsizing": "constant",
            "entrywidth": entry_width,
            "tracegroupgap": 0,
            "maxheight": 0.34,
            "uirevision": colour.name if colour else "",
            **legend_below,
        },
        meta={
            "from_width": [
                [least, {"title.pad.t": 8, "margin.t": 42}],
                [_BESIDE_WIDTH, legend_beside],
            ],
            "stage": {  # presentation mode, with larger text
                "title.pad.t": 8,  # no tools beside it
                "margin.t": 74,
                "legend.entrywidth": round(STAGE_SCALE * entry_width),
                **{f"annotations.{place}.font.size": STAGE_NAME for place in names},
            },
        },
    )


# --- what stands out ---------------------------------------------------------------------------


def _two_lines(text: str, width: int = HOVERED_CHARACTERS) -> str:
    """The beginning of a user's text, escaped."""
    line = shorten(text, 2 * width)
    if len(line) <= width:
        return escape(line)
    cut = line.rfind(" ", 0, width + 1)
    cut = width if cut < 1 else cut
    return f"{escape(line[:cut])}<br>{escape(shorten(line[cut:], width))}"


def _places(points: np.ndarray) -> dict[str, np.ndarray]:
    return {axis: points[:, i] for i, axis in enumerate("xyz"[: points.shape[1]])}


def _ring(point: np.ndarray) -> Trace:
    """A dark and a light ring, visible on any background."""
    flat = len(point) == 2
    sizes, width = ([22, 22], [7, 3]) if flat else ([20, 15], 3)
    look = {"symbol": "circle-open", "size": sizes, "line": {"width": width}}
    marker = {**look, "color": ["#FFFFFF", "#000000"]}
    return _mark_trace(np.stack([point, point]), "markers", marker=marker)


def _stars(placed: Sequence[tuple[str, np.ndarray]], positions: np.ndarray) -> Trace:
    symbol, size = ("star", 20) if positions.shape[1] == 2 else ("diamond", 9)
    look = {"symbol": symbol, "size": size, "line": {"color": "#000000", "width": 1.5}}
    hover: Trace = {"text": [_two_lines(text) for text, _ in placed]}
    hover["hovertemplate"] = "%{text}<extra></extra>"
    return _mark_trace(positions, "markers", marker={**look, "color": YELLOW}, **hover)


def _star_labels(
    placed: Sequence[tuple[str, np.ndarray]], positions: np.ndarray, points: np.ndarray
) -> list[dict[str, Any]]:
    everything = np.concatenate([points, positions])[:, :2]
    low, high = everything.min(axis=0), everything.max(axis=0)
    thirds = np.clip(3 * (positions[:, :2] - low) / np.maximum(high - low, 1e-9), 0, 2).astype(int)
    below, above = {"yanchor": "top", "yshift": -10}, {"yanchor": "bottom", "yshift": 10}
    return [
        _label(
            f"<b>{_two_lines(shorten(text, 32), 18)}</b>",
            place,
            xanchor=("left", "center", "right")[across],
            **(below if up == 2 else above),
        )
        for (text, _), place, (across, up) in zip(placed, positions, thirds, strict=True)
    ]


def _lines(point: np.ndarray, near: np.ndarray) -> Trace:
    ends = np.full((3 * len(near), len(point)), np.nan, dtype=np.float32)  # a gap after each line
    ends[0::3], ends[1::3] = point, near
    return _mark_trace(ends, "lines", line={"color": GREY, "width": 2})


def _name_labels(
    names: Sequence[tuple[str, np.ndarray]], points: np.ndarray, obstacles: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Place names without overlaps; names without room are left out, the last first."""
    flat = points.shape[1] == 2
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    per_unit = min(np.array(_FRAME) / np.maximum(high - low, 1e-9))  # px
    occupied = [place for label in obstacles for place in _occupied_places(label, low, per_unit)]
    labels = []
    for name, place in ((cluster_label(name), place) for name, place in names):
        x, y = ((place[:2] - low) * per_unit).tolist()
        half = len(name) * _CHARACTER / 2
        hidden = (abs(points[:, :2] - place[:2]) * per_unit < (half, _NAME_HEIGHT / 2)).all(axis=1)
        is_lone = len(np.unique(points[hidden], axis=0)) == 1  # equal texts share a point
        free = (
            step
            for step in (_NAME_STEPS[is_lone:] if flat else (0,))
            if all(
                abs(y + step - other_y) >= _NAME_HEIGHT or abs(x - other_x) >= half + other_half
                for other_x, other_y, other_half in occupied
            )
        )
        step = next(free, None)
        if flat and step is None:
            continue
        occupied.append((x, y + (step or 0), half))
        labels.append(_label(f"<b>{escape(name)}</b>", place, yshift=step or 0))
    return labels


def _occupied_places(
    label: dict[str, Any], low: np.ndarray, per_unit: float
) -> list[tuple[float, float, float]]:
    """Centre and half width of each line of a star's label, in px."""
    x, y = ((np.array([label["x"], label["y"]]) - low) * per_unit).tolist()
    written = label["text"].removeprefix("<b>").removesuffix("</b>").split("<br>")
    half = max(map(len, written)) * _CHARACTER / 2
    x += {"left": half, "center": 0, "right": -half}[label["xanchor"]]
    up = 1 if label["yanchor"] == "bottom" else -1
    middles = [label["yshift"] + up * _NAME_HEIGHT * (n + 0.5) for n in range(len(written))]
    return [(x, y + middle, half) for middle in middles]


def _label(text: str, place: np.ndarray, **extra: Any) -> dict[str, Any]:
    font = {"size": SMALL_FONT_SIZE, "shadow": "auto"}
    where = dict(zip("xyz", place.tolist(), strict=False))
    return {**where, "text": text, "font": font, "showarrow": False, **extra}


# --- more texts than can be drawn --------------------------------------------------------------
#
# The points are binary columns apart from the figure, sent once, whatever is marked on them. Its
# traces say where their points are among the columns, and what is selected is a bit a point;
# `ui.figures` puts both together in the browser.


@dataclass(frozen=True, eq=False)
class LargePoints:
    """Some points of a large map in drawing order, and the density of all."""

    x: np.ndarray  # [point] float32
    y: np.ndarray  # [point] float32
    rows: np.ndarray  # [point] int32 row numbers in the corpus
    values: np.ndarray | None  # [point] float32 for colours; None for categories
    density: np.ndarray  # [up, across] uint8, from the bottom
    traces: go.Figure  # density and groups of points, without data
    colour: PointColour | None  # of the points

    @cached_property
    def content(self) -> bytes:
        """A JSON line with the lengths, then the columns, little-endian."""
        header = {
            "n": len(self.rows),
            "values": self.values is not None,
            "density": list(self.density.shape),
        }
        columns = [self.x, self.y, self.rows, *([] if self.values is None else [self.values])]
        types = ["<f4", "<f4", "<i4", "<f4"]
        parts = [
            np.ascontiguousarray(column, dtype=kind).tobytes()
            for column, kind in zip(columns, types, strict=False)
        ]
        return b"".join([json.dumps(header).encode(), b"\n", *parts, self.density.tobytes()])

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(self.content, digest_size=16).hexdigest()


def large_points(
    coordinates: np.ndarray,
    rows: np.ndarray,
    colour: PointColour | None,
    counts: np.ndarray,  # [up, across] points per bin, from the bottom left
    covered: tuple[float, float, float, float],  # left, right, bottom, top of the bins
    *,
    everywhere: PointColour | None = None,  # colour of all points, for a stable legend
    axes: Sequence[str] | None = None,
) -> LargePoints:
    """Some points of a map on the density of all."""
    groups = list(point_groups(colour, len(rows), True, bool(axes), everywhere))
    order = np.concatenate([group.positions for group in groups]) if groups else np.arange(0)
    size, opacity = marker_look(len(rows))
    figure = go.Figure([_density_trace(counts, covered)])
    end = 0
    for group in groups:
        start, end = end, end + len(group.positions)
        by_values = group.values is not None
        trace = _group_trace(group, "scattergl", size, opacity)
        trace["unselected"] = {"marker": {"opacity": FADED}}
        if start == end:
            trace |= {"x": [None], "y": [None]}  # for the legend
        else:
            trace["meta"] = {"points": [start, end], "values": by_values}
        _add_hover(trace, None)
        figure.add_trace(trace)
    values = None
    if colour is not None and colour.values is not None:
        values = colour.values[order]
    x, y = coordinates[order].T
    return LargePoints(x, y, rows[order], values, levels(counts), figure, colour)


def levels(counts: np.ndarray) -> np.ndarray:
    """uint8 levels of bin counts on a logarithmic scale: 0 for empty, 255 for the largest."""
    highest = np.log1p(counts.max(initial=1))
    scaled = np.rint(_LEVELS * np.log1p(counts) / highest)
    return np.maximum(scaled, counts > 0).astype(np.uint8)  # keeps single points visible


def large_map_figure(
    drawn: LargePoints,
    *,
    title: str,
    bounds: tuple[float, float, float, float],  # left, right, bottom, top of all points
    selected: np.ndarray | None = None,  # [drawn] mask; the others fade
    undrawn: tuple[np.ndarray, np.ndarray] | None = None,  # rows, [point, 2] of selected points
    highlighted: np.ndarray | None = None,  # [2] place of the point with a ring
    standout: Standout = NO_STANDOUT,  # its ``selected`` and ``highlighted`` are ignored
    axes: Sequence[str] | None = None,
    uirevision: str | None = None,
) -> go.Figure:
    """A map without its points, which ``drawn`` has."""
    x_min, x_max, y_min, y_max = bounds
    corners = np.array([[x_min, y_min], [x_max, y_max]], dtype=np.float32)
    x, y = corners.T.tolist()
    hidden = {"marker": {"opacity": 0, "size": 1}, "hoverinfo": "skip", "showlegend": False}
    figure = go.Figure(drawn.traces)
    figure.add_trace({"type": "scattergl", "x": x, "y": y, "mode": "markers", **hidden})
    if undrawn is not None and len(undrawn[0]):
        undrawn_trace = _mark_trace(
            undrawn[1].astype(np.float32),
            "markers",
            name=UNDRAWN_SELECTION,
            marker={"size": 8, "color": YELLOW, "line": {"color": "#000000", "width": 1}},
            customdata=undrawn[0].astype(np.int32),
            unselected={"marker": {"opacity": 1}},
            hoverinfo="none",
        )
        figure.add_trace(undrawn_trace)
    points = np.zeros((0, 2)) if highlighted is None else highlighted[None]
    _add_marks(figure, standout, points, corners)
    figure.update_layout(title=escape(shorten(title, TITLE_CHARACTERS)), uirevision=uirevision)
    _lay_out(figure, drawn.colour, True, axes)
    figure.update_layout(xaxis_ticks="", yaxis_ticks="")  # a heatmap would add some
    figure.update_layout(meta={**figure.layout.meta, "selected": encode_bits(selected)})
    return figure


def _density_trace(
    counts: np.ndarray, covered: tuple[float, float, float, float]
) -> dict[str, Any]:
    up, across = counts.shape
    x_min, x_max, y_min, y_max = covered
    wide, high = (x_max - x_min) / across, (y_max - y_min) / up
    return {
        "type": "heatmap",
        "meta": {"density": True},
        "x0": x_min + wide / 2,
        "dx": wide,
        "y0": y_min + high / 2,
        "dy": high,
        "zmin": 0,
        "zmax": _LEVELS,
        "zsmooth": "fast",
        "autocolorscale": False,
        "colorscale": [[0, f"rgba({_SHADE}, 0)"], [1, f"rgba({_SHADE}, {_DARKEST})"]],
        "showscale": False,
        "hoverinfo": "skip",
    }


def encode_bits(selected: np.ndarray | None) -> str | None:
    """[point] selection as base64 of one bit per point, lowest first."""
    if selected is None:
        return None
    return base64.b64encode(np.packbits(selected, bitorder="little").tobytes()).decode()
