"""Maps of a corpus."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.io.json import to_json_plotly

from neuralviz.maps.clusters import UNNAMED
from neuralviz.maps.opened import OpenCorpus, OpenMap, Window
from neuralviz.maps.projection import REDUCERS, SETTING_NAMES
from neuralviz.plots.report import NAMES_SCRIPT, About, page_html
from neuralviz.plots.theme import (
    BARE,
    BLUE,
    GREEN,
    LAYER_COLOURS,
    ORANGE,
    PURPLE,
    SIGNED_POINTS,
    SKY,
    SMALL_FONT_SIZE,
    VERMILLION,
    YELLOW,
    Trace,
    draw,
    escape,
    shorten,
    shorten_apart,
    style,
    symmetric_range,
)
from neuralviz.reading.dates import find_day, write_day
from neuralviz.reading.table import finite_number
from neuralviz.words import many

MOST_DRAWN = 50_000  # points of a map
STAGE_SCALE = 1.9  # factor for text in presentation mode
MOST_NAMED = 200  # clusters, from which names.js chooses those in view
MOST_NAMED_IN_SPACE = 30  # whose names may lie on points
FADED = 0.2  # opacity of unselected points
LEFT_OUT = 0.25  # opacity of filtered-out points
LEGEND_ROOM = 260  # letters' heights in px, on the stage
_ENTRY_WIDTH = 118  # px of a name in the legend
TITLE_CHARACTERS = 60
_WIDE = 720  # px from which the legend is beside the points
HOVERED_CHARACTERS = 60  # per line
_LINE = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1.2}  # from a name to its place
_NAME_FONT = {"size": SMALL_FONT_SIZE, "shadow": "auto"}
_TEXT_LUMINANCE = 0.2  # at most: 4.2 to 1 on white
DENSITY_BINS = 256  # maximum per side
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

    selected: np.ndarray | None = None  # [text] mask of the corpus; the others fade
    highlighted: int | None = None  # row number of the point with a ring
    placed: tuple[str, np.ndarray] | None = None  # a new sentence and its [2 or 3] place
    near: np.ndarray | None = None  # [neighbour, 2 or 3] ends of lines from it, or from that point
    names: Sequence[tuple[str, np.ndarray]] = ()  # of clusters, and their places, largest first
    wrong: np.ndarray | None = None  # [text, 2 or 3] places of crosses


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
    density: Density | None = None,  # of all points, where only some are given
    home: Window | None = None,  # seen at first; all if None
    window: Window | None = None,  # seen now; ``home`` if None
) -> go.Figure:
    """A map of a corpus: points with their row numbers as ``customdata``."""
    points = np.asarray(coordinates, dtype=np.float32)
    whole = points if density is None else density.corners
    n = len(whole)
    rows = np.asarray(rows, dtype=np.int32)
    flat = points.shape[1] == 2
    traces = [] if density is None else _density_traces(density)
    if within is not None:
        look = {"color": GREY, "opacity": LEFT_OUT, "size": 0.7 * marker_look(len(rows))[0]}
        traces.append(_mark_trace(points[~within], "markers", marker=look))
        points, rows = points[within], rows[within]
        colour = None if colour is None else colour.select(np.flatnonzero(within))
        texts = None if texts is None else [texts[i] for i in np.flatnonzero(within).tolist()]
    chosen = None if standout.selected is None else standout.selected[rows]
    for group in point_groups(colour, len(rows), flat, bool(axes)):
        traces += _traces(group, points, rows, texts, chosen)
    figure = draw(traces, escape(shorten(title, TITLE_CHARACTERS)), uirevision=uirevision)
    seen = _bound(whole, window or home) if flat and n else None
    _add_marks(figure, standout, points[rows == standout.highlighted], seen, colour)
    _lay_out(figure, colour, axes, home, is_flat=flat and n > 0)
    n_categories = 0 if colour is None else len(colour.categories)
    if standout.wrong is not None and n_categories <= STAGE_CATEGORIES:  # the legend tells all
        figure.layout.meta["stage"]["annotations"] = []
    if density is not None:
        figure.update_layout(xaxis_ticks="", yaxis_ticks="")  # a heatmap would add some
    return figure


def _mark_trace(points: np.ndarray, mode: str, **look: Any) -> Trace:
    kind = "scattergl" if points.shape[1] == 2 else "scatter3d"
    silent = {} if "hovertemplate" in look else {"hoverinfo": "skip"}
    return {"type": kind, **_places(points), "mode": mode, "showlegend": False, **silent, **look}


def _add_marks(
    figure: go.Figure,
    standout: Standout,
    highlighted: np.ndarray,
    seen: _Seen | None,  # None in three dimensions, and without points
    colour: PointColour | None,
) -> None:
    if standout.wrong is not None and len(standout.wrong):
        look = {"symbol": "x", "size": 9, "color": "#000000"}
        look["line"] = {"color": "#FFFFFF", "width": 1.5}
        listed = {"name": "predicted wrongly", "showlegend": True, "legendrank": 3000}
        figure.add_trace(_mark_trace(standout.wrong, "markers", marker=look, **listed))
    starts = list(highlighted) if standout.placed is None else [standout.placed[1]]
    if standout.near is not None:
        figure.add_traces([_lines(start, standout.near) for start in starts])
        figure.add_trace(_rings(standout.near, 14, 2))
    if len(highlighted):
        figure.add_trace(_rings(highlighted, 22, 3))
    labels: list[dict[str, Any]] = []
    if standout.placed is not None:
        figure.add_trace(_star(*standout.placed))
        labels = [_star_label(*standout.placed)]
    if standout.names:
        colours = {} if colour is None or not colour.are_clusters else colour.looks
        labels += _name_labels(standout.names, seen, colours)
    if labels:
        in_space = len(labels[0].keys() & set("xyz")) == 3
        figure.update_layout({"scene_annotations" if in_space else "annotations": labels})


def even_out(figures: Sequence[go.Figure]) -> None:
    """Give maps side by side equal frame heights, in place: room for titles, and for legends.

    On the stage, one legend is enough for maps with equal ones.
    """
    legends = {
        tuple(
            trace.name
            for trace in figure.data
            if trace.showlegend and figure.layout.showlegend is not False
        )
        for figure in figures
    }
    for place, figure in enumerate(figures):
        figure.layout.meta["hides_legend"] = place > 0 and len(legends) == 1
        figure.layout.meta["titles"] = [other.layout.title.text for other in figures]
        if len(legends) > 1:
            figure.update_layout(margin_b=_LEGEND_HEIGHT)
            figure.layout.meta["stage"]["margin.b"] = round(STAGE_SCALE * _LEGEND_HEIGHT)


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
    kind = "scattergl" if flat else "scatter3d"
    size = size if flat else 0.6 * size  # 3-D scenes draw them larger
    parts = [(group.positions, opacity)]
    if chosen is not None and not flat:
        bright = chosen[group.positions]
        parts = [(group.positions[~bright], FADED), (group.positions[bright], opacity)]
        parts = [part for part in parts if len(part[0])]
    for number, (positions, how_opaque) in enumerate(parts):
        marker = {"size": size, "opacity": how_opaque, **group.marker}
        trace = {"type": kind, "showlegend": True, **group.trace, "mode": "markers"}
        trace |= {"marker": marker, **_places(points[positions]), "customdata": rows[positions]}
        if group.values is not None:
            trace["marker"]["color"] = group.values[positions]
        if group.written is not None:
            trace["hovertext"] = [group.written[i] for i in positions]
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


def _add_hover(trace: dict[str, Any], texts: list[str] | None) -> None:
    hover = trace.pop("hovertemplate", "")
    if texts is not None:
        trace["text"] = texts
        hover = f"%{{text}}<br>{hover}" if hover else "%{text}"
    # without a box, hover events still fire
    trace |= {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "none"}


def _lay_out(
    figure: go.Figure,
    colour: PointColour | None,
    axes: Sequence[str] | None,
    home: Window | None,
    *,
    is_flat: bool,
) -> None:
    plain: dict[str, Any] = {"showticklabels": False, "showline": True, **BARE}
    named = [{**plain, "title": {"text": escape(name)}} for name in axes or ()]
    if is_flat or len(named) == 2:
        x, y = named or (plain, plain)
        ends = {} if home is None else {"x": [home.left, home.right], "y": [home.bottom, home.top]}
        figure.update_layout(
            xaxis={**x, "mirror": True, "range": ends.get("x")},
            yaxis={**y, "mirror": True, "range": ends.get("y")},
        )
        if named:  # its distances mean something; others fill the frame
            figure.update_layout(yaxis_scaleanchor="x")
    else:
        room = {"showbackground": False, "showspikes": False, "visible": bool(named)}
        scene = {
            f"{letter}axis": axis | room
            for letter, axis in zip("xyz", named or [plain] * 3, strict=True)
        }
        far = 1.55 if named else 1.25  # leaves room for names
        camera = {"eye": dict.fromkeys("xyz", far)}
        figure.update_layout(scene={**scene, "aspectmode": "data", "camera": camera})
    if colour is not None and colour.are_clusters:
        are_named = any(not name.endswith(UNNAMED) for name in colour.categories)
        if figure.layout.annotations or not are_named:  # the map says which is which, or nothing
            figure.update_layout(showlegend=False)
    n_categories = 0 if colour is None or colour.are_clusters else len(colour.categories)
    n_entries = len({trace.name for trace in figure.data if trace.name})
    n_entries = min(max(1, n_entries), STAGE_CATEGORIES + 1)
    scale = min(STAGE_SCALE, LEGEND_ROOM / n_entries / SMALL_FONT_SIZE)
    longest = max((len(trace.name or "") for trace in figure.data), default=0)
    entry_width = min(_ENTRY_WIDTH, 9 * longest)
    # on narrow screens, the legend is below the points; live_figure.js places the title
    beside = {"orientation": "v", "x": 1.01, "y": 1, "yref": "paper", "yanchor": "top"}
    legend_beside = {f"legend.{name}": value for name, value in {**beside, "maxheight": 1}.items()}
    legend_below: dict[str, Any] = {}
    if colour is not None and colour.codes is not None and not named:
        legend_below = {"y": 0, "yref": "paper", "yanchor": "top"}  # directly below the frame
    figure.update_layout(
        title={"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 8}},
        margin={"l": 2, "r": 2, "t": 42},
        legend={
            "itemsizing": "constant",
            "entrywidth": entry_width,
            "tracegroupgap": 0,
            "maxheight": 0.34,
            "uirevision": colour.name if colour else "",
            **legend_below,
        },
        meta={
            "from_width": [[_WIDE, legend_beside]],
            "others": {"n": n_categories - STAGE_CATEGORIES, "from": 1000 + STAGE_CATEGORIES},
            "stage": {  # presentation mode, with larger text
                "margin.t": 74,
                "legend.entrywidth": round(scale * entry_width),
                "legend.font.size": scale * SMALL_FONT_SIZE,
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


def _rings(points: np.ndarray, size: int, width: int) -> Trace:
    """A dark and a light ring around each point, visible on any background."""
    n, is_flat = len(points), points.shape[1] == 2
    sizes, widths = (
        ([size, size], [width + 4, width]) if is_flat else ([size - 2, size - 7], [3, 3])
    )
    look = {"symbol": "circle-open", "size": sizes * n, "color": ["#FFFFFF", "#000000"] * n}
    marker = {**look, "line": {"width": widths * n if is_flat else width}}
    return _mark_trace(np.repeat(points, 2, axis=0), "markers", marker=marker)


def _star(sentence: str, place: np.ndarray) -> Trace:
    symbol, size = ("star", 13) if len(place) == 2 else ("diamond", 9)
    marker = {"symbol": symbol, "size": size, "line": {"color": "#000000", "width": 1.5}}
    hover = {"text": [_two_lines(sentence)], "hovertemplate": "%{text}<extra></extra>"}
    return _mark_trace(place[None], "markers", marker={**marker, "color": YELLOW}, **hover)


def _star_label(sentence: str, place: np.ndarray) -> dict[str, Any]:
    """The sentence above its star; on a flat map, names.js moves it to where no point is."""
    text = f"<b>“{escape(shorten(sentence, LABEL_CHARACTERS))}”</b>"
    where = {**_LINE, "arrowcolor": GREY} if len(place) == 2 else {"yshift": 22}
    return _label(text, place, name="sentence", **where)


def _lines(point: np.ndarray, near: np.ndarray) -> Trace:
    ends = np.full((3 * len(near), len(point)), np.nan, dtype=np.float32)  # a gap after each line
    ends[0::3], ends[1::3] = point, near
    return _mark_trace(ends, "lines", line={"color": GREY, "width": 2})


class _Seen(NamedTuple):
    """The part of a flat map that is seen, in map units."""

    low: np.ndarray  # left bottom
    size: np.ndarray  # width and height, above 0


def _bound(points: np.ndarray, window: Window | None) -> _Seen:
    """What a window shows, or all points."""
    low, high = points.min(axis=0), points.max(axis=0)
    if window is not None:
        low = np.array([window.left, window.bottom])
        high = np.array([window.right, window.top])
    return _Seen(low, np.maximum(high - low, 1e-9))


def _name_labels(
    names: Sequence[tuple[str, np.ndarray]],
    seen: _Seen | None,
    colours: Mapping[int, str],  # by cluster; empty where colours mean something else
) -> list[dict[str, Any]]:
    """Names with lines to their clusters; on a flat map, names.js shows those with room."""
    chosen = list(range(len(names)))
    if seen is not None and len(names) > MOST_NAMED:
        shares = (np.array([place for _, place in names]) - seen.low) / seen.size
        chosen = np.flatnonzero(((shares >= 0) & (shares <= 1)).all(axis=1)).tolist()
    labels = []
    for cluster in chosen[: MOST_NAMED_IN_SPACE if seen is None else MOST_NAMED]:
        name, place = names[cluster]
        if name == UNNAMED:
            continue
        look = {"name": str(cluster), "captureevents": True, **_tint(colours, cluster)}
        if seen is not None:
            look |= {"visible": False, **_LINE, "arrowcolor": colours.get(cluster, GREY)}
        labels.append(_label(f"<b>{escape(cluster_label(name))}</b>", place, **look))
    return labels


def _tint(colours: Mapping[int, str], cluster: int) -> dict[str, Any]:
    if not colours:
        return {}
    return {"font": {"size": SMALL_FONT_SIZE, "color": darken(colours.get(cluster, GREY))}}


def darken(colour: str) -> str:
    """A colour ``#RRGGBB``, no lighter than can be read on a light page."""
    shares = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    luminance = float(shares**2.2 @ [0.2126, 0.7152, 0.0722])
    shares *= min(1, (_TEXT_LUMINANCE / luminance) ** (1 / 2.2)) if luminance else 1
    return "#" + "".join(f"{round(255 * share):02X}" for share in shares.tolist())


def _label(text: str, place: np.ndarray, **extra: Any) -> dict[str, Any]:
    where = dict(zip("xyz", place.tolist(), strict=False))
    return {**where, "text": text, "font": _NAME_FONT, "showarrow": False, **extra}


@dataclass(frozen=True, eq=False)
class Density:
    """How many points of a large map lie where, behind those that are drawn."""

    counts: np.ndarray  # [up, across] points per bin, from the bottom left
    covered: tuple[float, ...]  # left, right, bottom, top of the bins
    bounds: tuple[float, ...]  # the same of all points

    @property
    def corners(self) -> np.ndarray:
        """[2, 2] float32 opposite corners of all points."""
        return np.array(self.bounds, dtype=np.float32).reshape(2, 2).T


def levels(counts: np.ndarray) -> np.ndarray:
    """uint8 levels of bin counts on a logarithmic scale: 0 for empty, 255 for the largest."""
    highest = np.log1p(counts.max(initial=1))
    scaled = np.rint(_LEVELS * np.log1p(counts) / highest)
    return np.maximum(scaled, counts > 0).astype(np.uint8)  # keeps single points visible


def _density_traces(density: Density) -> list[Trace]:
    """The shades, and invisible corners, so that the whole map is seen at first."""
    up, across = density.counts.shape
    x_min, x_max, y_min, y_max = density.covered
    wide, high = (x_max - x_min) / across, (y_max - y_min) / up
    shades = {
        "type": "heatmap",
        "z": levels(density.counts),
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
    return [shades, _mark_trace(density.corners, "markers", marker={"opacity": 0, "size": 1})]


# Visible on light and dark pages, most distinct first.
COLOURS = (VERMILLION, BLUE, GREEN, PURPLE, ORANGE, SKY, *LAYER_COLOURS)
SYMBOLS = ("circle", "diamond", "square", "x")
SYMBOLS_3D = ("circle", "diamond", "square", "cross")
PER_SYMBOL = 6  # categories with one symbol: up to 12 have a colour of their own, and half of them
MAX_CATEGORIES = PER_SYMBOL * len(SYMBOLS)  # another symbol, too
STAGE_CATEGORIES = 2 * PER_SYMBOL  # with colours on the stage, to be told apart from afar
GREY = "#9A9FA5"
LABEL_CHARACTERS = 28
_NAME_CHARACTERS = 16
_HOVERED_NAME = 40
EXACT_IN_FLOAT32 = 2**24  # larger integers, such as timestamps, lose precision


@dataclass(frozen=True, eq=False)
class PointColour:
    """Categories or numbers that colour the points of a map."""

    name: str  # of the column or measure
    categories: tuple[str, ...] = ()  # those with their own colour first
    codes: np.ndarray | None = None  # [text] category, -1 for none; None for numbers
    values: np.ndarray | None = None  # [text] float32, NaN for none; None for categories
    number_format: str = ".3~g"  # d3 format of the values
    missing: str = "no value"  # name for texts without a value
    ends: tuple[float, float] | None = None  # of the scale; default: middle 98%
    is_date: bool = False  # whether values are days since 1970
    are_clusters: bool = False  # whether categories are the map's clusters, in their order

    @property
    def looks(self) -> dict[int, str]:
        """The colours of categories that have their own."""
        n = min(len(self.categories), MAX_CATEGORIES)
        return {code: category_look(code)[0] for code in range(n)}

    def select(self, rows: np.ndarray) -> PointColour:
        """Colours of some texts, with the scale and categories of all."""
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, codes=codes, values=None if self.values is None else self.values[rows])


def cluster_label(name: str) -> str:
    """A short name for the map."""
    if len(name) > LABEL_CHARACTERS:  # as many whole words as fit, if one does
        name = name[: LABEL_CHARACTERS + 1].rpartition(" ")[0] or name
    return shorten(name, LABEL_CHARACTERS)


def category_look(code: int, symbols: Sequence[str] = SYMBOLS) -> tuple[str, str]:
    """A unique pair of colour and symbol."""
    return COLOURS[code % len(COLOURS)], symbols[code // PER_SYMBOL]


def colour_by_code(
    name: str, codes: np.ndarray, names: Sequence[str], missing: str = "no value"
) -> PointColour:
    """Colour by [text] codes, -1 for none: largest categories first, numbers in order."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    counts = Counter({label: n for label, n in zip(names, sizes, strict=True) if n})
    ordered = [label for label, _ in counts.most_common()]
    if all(finite_number(label) is not None for label in ordered):  # sort numbers
        edges = pairwise([0, STAGE_CATEGORIES, MAX_CATEGORIES, len(ordered)])
        ordered = [label for i, j in edges for label in sorted(ordered[i:j], key=float)]
    place = {label: code for code, label in enumerate(ordered)}
    new = np.array([*(place.get(label, -1) for label in names), -1], dtype=np.int32)
    return PointColour(name, tuple(ordered), codes=new[codes], missing=missing)


def colour_by_number(name: str, values: Sequence[float] | np.ndarray) -> PointColour:
    """Colour by number; non-finite values count as missing."""
    numbers = np.asarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    if np.abs(finite).max(initial=0) < EXACT_IN_FLOAT32:
        numbers = numbers.astype(np.float32)
    number_format = ".3~g"
    if len(finite) and (finite == np.round(finite)).all():
        number_format = ",.0f" if np.abs(finite).max() >= 10_000 else ".0f"
    return PointColour(
        name, values=np.where(np.isfinite(numbers), numbers, np.nan), number_format=number_format
    )


# --- groups of points --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointGroup:
    """Points that look alike."""

    positions: np.ndarray
    trace: dict[str, Any]
    marker: dict[str, Any]
    values: np.ndarray | None = None  # [text], of all texts
    written: Sequence[str] | None = None  # [text], of all texts, for their box


def point_groups(
    colour: PointColour | None, n: int, flat: bool, axes: bool
) -> Iterator[PointGroup]:
    """Non-empty groups in drawing order."""
    if colour is None:
        yield PointGroup(np.arange(n), {"showlegend": False}, {"color": BLUE})
    elif colour.values is not None:
        yield from _number_groups(colour, colour.values, axes)
    elif colour.codes is not None:
        yield from _category_groups(colour, colour.codes, flat)


def _number_groups(colour: PointColour, values: np.ndarray, axes: bool) -> Iterator[PointGroup]:
    name = _escape_template(shorten(colour.name, _HOVERED_NAME))
    is_finite = np.isfinite(values)
    if not is_finite.all():
        trace = {"name": escape(colour.missing), "legendrank": 2000, "showlegend": True}
        yield PointGroup(np.flatnonzero(~is_finite), trace, {"color": GREY})
    written = _write_dates(values) if colour.is_date else None
    value = f"marker.color:{colour.number_format}" if written is None else "hovertext"
    trace = {"hovertemplate": f"{name}: %{{{value}}}", "showlegend": False}
    marker = {"showscale": True, **_scale_of(colour, values, axes)}
    yield PointGroup(np.flatnonzero(is_finite), trace, marker, values, written)


def _write_dates(days: np.ndarray) -> list[str]:
    finite = days[np.isfinite(days)]
    with_time = bool((finite % 1).any())
    return [write_day(d, with_time=with_time) if np.isfinite(d) else "" for d in days.tolist()]


def date_ticks(low: float, high: float) -> dict[str, Any]:
    """Few ticks from ``low`` to ``high``, days since 1970: years or months, else days."""
    first, last = (np.datetime64(find_day(end), "M") for end in (low, high))
    n_months = int((last - first).astype(int))
    if n_months >= _FEWEST_MONTHS:
        step = next(n for n in _MONTHS if n_months / n <= _MOST_TICKS)
        months = np.arange(first, last + 1)
        chosen = months[months.astype(int) % step == 0]
        days = chosen.astype("datetime64[D]").astype(int)
        written = [str(month)[:4] if step % 12 == 0 else str(month) for month in chosen]
        places = [(d, w) for d, w in zip(days.tolist(), written, strict=True) if low <= d <= high]
    else:
        step = max(1, math.ceil((high - low) / (_MOST_TICKS - 1)))
        places = [(d, write_day(d)) for d in range(math.ceil(low), math.floor(high) + 1, step)]
    return {"tickvals": [d for d, _ in places], "ticktext": [w for _, w in places]}


def _scale_of(colour: PointColour, values: np.ndarray, axes: bool) -> dict[str, Any]:
    low, high = colour.ends or scale_ends(values)
    signed = low < 0 < high and not colour.is_date
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
            "y": -0.1 if axes else 0,  # below the axis title
            "yanchor": "top",
            "len": 1,
            "nticks": 6,
            "tickformat": colour.number_format,
            **(date_ticks(low, high) if colour.is_date else {}),
        },
    }


_MONTHS = (1, 2, 3, 6, *(12 * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)))
_FEWEST_MONTHS, _MOST_TICKS = 4, 4


def scale_ends(values: np.ndarray) -> tuple[float, float]:
    """Range of the middle 98% of values; of all if that is empty."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, (0.01, 0.99)).tolist() if len(finite) else (0.0, 1.0)
    if low == high and len(finite):
        low, high = float(finite.min()), float(finite.max())
    return low, high


def _category_groups(colour: PointColour, codes: np.ndarray, flat: bool) -> Iterator[PointGroup]:
    symbols = SYMBOLS if flat else SYMBOLS_3D
    n_others = max(0, len(colour.categories) - MAX_CATEGORIES)
    others = f"other ({n_others:,} more)"
    grey = [(codes < 0, escape(colour.missing), 2001), (codes >= MAX_CATEGORIES, others, 2000)]
    for mask, name, rank in grey:
        if mask.any():
            trace = {"name": name, "legendrank": rank}
            yield PointGroup(np.flatnonzero(mask), trace, {"color": GREY})
    name = _escape_template(shorten(colour.name, _HOVERED_NAME))
    categories = colour.categories[:MAX_CATEGORIES]
    names = shorten_apart(categories, _NAME_CHARACTERS)
    for code, (category, short) in enumerate(zip(categories, names, strict=True)):
        positions = np.flatnonzero(codes == code)
        trace = {
            "name": short,
            "meta": category,
            "legendrank": 1000 + code,
            "hovertemplate": f"{name}: {_escape_template(shorten(category, _HOVERED_NAME))}",
        }
        colour_of_category, symbol = category_look(code, symbols)
        marker = {"color": colour_of_category, "symbol": symbol}
        if len(positions):
            yield PointGroup(positions, trace, marker)


def _escape_template(name: str) -> str:
    """Escape ``%{`` in a hover template."""
    return escape(name).replace("%", "&#37;")


CLUSTERS, LENGTH = "clusters", "length"  # keys of `list_page_colours`
MOST_CHARACTERS = 8_000_000  # of all texts on a page
LONGEST_TEXT = 2_000  # characters of a text on a page
FEWEST_CHARACTERS = 120  # of a text on a page, shown on hover
_HEIGHT = 560  # px of a map
_LEGEND_HEIGHT = 110  # px for its legend or colour bar
_SCRIPT = Path(__file__).with_name("map_page.js")
_STYLE = f"""
h2 {{ font-size: 1.15rem; margin: 0 }}
label {{ margin-right: .5rem }} input, select {{ font: inherit; padding: .25rem .5rem }}
main {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr));
  gap: 1.5rem; margin-top: 1rem }}
section {{ min-width: 0 }} .map {{ height: {_HEIGHT}px }}
"""


@dataclass(frozen=True, eq=False)
class PageMap:
    title: str  # plain text
    coordinates: np.ndarray
    colours: Mapping[str, PointColour]  # by name; the first is the default
    names: Sequence[tuple[str, np.ndarray]] = ()  # cluster names and their [2 or 3] coordinates
    axes: Sequence[str] | None = None
    home: Window | None = None  # seen at first


def list_page_colours(corpus: OpenCorpus) -> dict[str, str]:
    """Names of ways to colour points on a page, by key, labels first."""
    options = {f"label:{name}": name for name in corpus.label_names}
    options[CLUSTERS] = "Clusters"
    for name in corpus.number_names:
        kind = "date" if name in corpus.date_names else "number"
        options[f"number:{name}"] = f"{name} ({kind})"
    return options if corpus.is_large else {**options, LENGTH: "Length (characters)"}


def colour_points(open_map: OpenMap, option: str) -> PointColour:
    """The colours of all points by one of `list_page_colours`."""
    corpus = open_map.corpus
    kind, _, name = option.partition(":")
    if kind == "label":
        return colour_by_code(name, *corpus.codes(name))
    if kind == "number":
        values = corpus.numbers(name)
        ends = scale_ends(values[drawn_rows(len(values))]) if corpus.is_large else None
        colour = colour_by_number(name, values)
        return replace(colour, ends=ends, is_date=name in corpus.date_names)
    if kind == LENGTH:
        return colour_by_number("length, characters", np.array(list(map(len, corpus.texts))))
    names = tuple(open_map.numbered_clusters)
    labels = open_map.clusters.labels
    return PointColour("cluster", names, labels, missing="no cluster", are_clusters=True)


def describe_maps(
    maps: Sequence[OpenMap],
    n_drawn: int,
    shown: str = "",  # by the filter: how many texts, and which
    n_shown: int | None = None,  # by the filter; None for all
) -> About:
    """Title and settings of maps, for downloads."""
    corpus = maps[0].corpus.corpus
    settings = {"corpus": f"{corpus.name}, {many(corpus.n_texts, 'text')}"}
    if shown:
        settings["shown"] = shown
    if n_drawn < (corpus.n_texts if n_shown is None else n_shown):
        settings["drawn"] = f"a random sample of {n_drawn:,}"
    for number, open_map in enumerate(maps, 1):
        name = "map" if len(maps) == 1 else f"map {number}"
        models = list(dict.fromkeys(part.model_id for part in open_map.spec.singles))
        models_note = f" ({', '.join(models)})" if models else ""
        settings[name] = f"{open_map.label}{models_note}, {_describe_projection(open_map)}"
    labels = " and ".join(open_map.label for open_map in maps)
    return About(f"{corpus.name}: {labels}", settings)


def _describe_projection(open_map: OpenMap) -> str:
    """The projection and its settings, such as ``UMAP, dimensions 2, neighbours 15``."""
    relevant = dict(open_map.kept.settings.relevant())
    reducer = REDUCERS[str(relevant.pop("reducer"))]
    if "n_neighbors" in relevant:  # the map used fewer where the corpus is small
        relevant["n_neighbors"] = open_map.kept.settings.possible_neighbors(open_map.corpus.n_texts)
    named = (f"{SETTING_NAMES.get(name, name)} {value}" for name, value in relevant.items())
    return ", ".join([reducer, *named])


def maps_html(
    maps: Sequence[OpenMap], colours: Sequence[Mapping[str, PointColour]], rows: np.ndarray
) -> str:
    """Maps with search, as part of a page; ``colours`` are of all points, by map and name."""
    pages = [
        PageMap(
            open_map.title,
            open_map.coordinates[rows],
            {name: colour.select(rows) for name, colour in by_name.items()},
            open_map.named_clusters,
            open_map.axes,
            open_map.home,
        )
        for open_map, by_name in zip(maps, colours, strict=True)
    ]
    return draw_searchable(pages, maps[0].corpus.texts_at(rows))


def page_of_maps(
    maps: Sequence[OpenMap], colours: Sequence[Mapping[str, PointColour]], rows: np.ndarray
) -> str:
    """A standalone page of `maps_html`."""
    return page_html(describe_maps(maps, len(rows)), maps_html(maps, colours, rows))


def draw_searchable(maps: Sequence[PageMap], texts: Sequence[str]) -> str:
    """Maps with one search, as part of a page."""
    max_characters = min(
        LONGEST_TEXT, max(FEWEST_CHARACTERS, MOST_CHARACTERS // max(1, len(texts)))
    )
    data = {  # plotly escapes text that could end the script
        "texts": [text[:max_characters] for text in texts],
        "faded": FADED,
        "maps": [_map(page_map) for page_map in maps],
    }
    cut = any(len(text) > max_characters for text in texts)
    note = f" Search covers the first {max_characters:,} characters of each text." if cut else ""
    sections = "".join(_section(place, page_map) for place, page_map in enumerate(maps))
    return f"""<style>{_STYLE}</style>
<label for="search">Search</label>
<input id="search" type="search" size="30" autocomplete="off" placeholder="Find words in the texts">
<span id="found" aria-live="polite"></span>
<p class="note">Each point is a text. Point at it to read it.{note}</p>
<main>{sections}</main>
<script id="data" type="application/json">{to_json_plotly(data)}</script>
<script>{NAMES_SCRIPT}{_SCRIPT.read_text("utf-8")}</script>
"""


def _section(place: int, page_map: PageMap) -> str:
    options = "".join(
        f'<option value="{number}">{html.escape(name)}</option>'
        for number, name in enumerate(page_map.colours)
    )
    title = html.escape(page_map.title)
    return (
        f'<section><h2>{title}</h2><label for="colour-{place}">Colour by</label>'
        f'<select id="colour-{place}">{options}</select>'
        f'<div class="map" id="map-{place}" role="figure" aria-label="{title}">'
        "</div></section>"
    )


def _map(page_map: PageMap) -> dict[str, Any]:
    n, dimensions = page_map.coordinates.shape
    size, opacity = marker_look(n)
    first, standout = next(iter(page_map.colours.values())), Standout(names=page_map.names)
    figure = map_figure(
        page_map.coordinates,
        np.arange(n),
        replace(first, are_clusters=False),  # names get the colour of clusters on the page
        title="",
        standout=standout,
        axes=page_map.axes,
        home=page_map.home,
    )
    layout = style(figure, dark=False).layout
    look = layout.to_plotly_json() | {"height": _HEIGHT, "autosize": True}
    look["margin"] = look["margin"] | {"t": 36, "b": _LEGEND_HEIGHT}  # whatever colour is chosen
    return {
        "points": [[_short(value) for value in axis] for axis in page_map.coordinates.T.tolist()],
        "size": size if dimensions == 2 else 0.6 * size,
        "opacity": opacity,
        "layout": {name: value for name, value in look.items() if name != "meta"},
        "colours": [
            {
                "groups": [
                    _group(group)
                    for group in point_groups(colour, n, dimensions == 2, bool(page_map.axes))
                ],
                **({"tints": _page_tints(colour)} if colour.are_clusters else {}),
            }
            for colour in page_map.colours.values()
        ],
    }


def _page_tints(colour: PointColour) -> dict[str, str]:
    return {str(cluster): darken(tint) for cluster, tint in colour.looks.items()}


def _group(group: PointGroup) -> dict[str, Any]:
    trace = dict(group.trace)
    hover = trace.pop("hovertemplate", "")
    entry = {"at": group.positions.tolist(), "trace": trace, "marker": group.marker, "says": hover}
    if group.values is not None:
        entry["values"] = [_short(value) for value in group.values.tolist()]
    if group.written is not None:
        entry["written"] = group.written
    return entry


def _short(value: float) -> float:
    return float(f"{value:.5g}")
