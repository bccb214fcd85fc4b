"""The map of a corpus of more texts than can be drawn: how dense it is, and some of its points.

The points are binary columns apart from the figure, sent once, whatever is marked on them. Its
traces say where their points are among the columns, and what is selected is a bit a point;
`ui.live_figure` puts both together in the browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.corpus_map import (
    FADED,
    NO_STANDOUT,
    TITLE_CHARACTERS,
    Standout,
    add_hover,
    add_marks,
    lay_out,
    mark_trace,
    marker_look,
)
from neuralviz.plots.parts import Trace
from neuralviz.plots.point_colours import point_groups
from neuralviz.plots.theme import YELLOW, escape, shorten

if TYPE_CHECKING:
    from neuralviz.plots.point_colours import PointColour

DENSITY_BINS = 256  # across or up, at most
UNDRAWN_SELECTION = "selected"  # trace of selected points that are not among the others
_SHADE = "154, 159, 165"  # seen on light and on dark pages
_DARKEST = 0.8  # opacity of the densest bin
_LEVELS = 255


@dataclass(frozen=True, eq=False)
class PointColumns:
    """Points in the order in which they are drawn, and the density of all of which they are some.

    Attributes:
        x, y: [point] float32.
        rows: [point] int32 row numbers that say which texts they are.
        values: [point] float32 by which they are coloured; None where it is not by numbers.
        density: [up, across] uint8, from the bottom.
    """

    x: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    values: np.ndarray | None
    density: np.ndarray

    @cached_property
    def content(self) -> bytes:
        """A line of JSON that says how long they are, and the columns, little-endian."""
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
        """Differs from that of any other columns."""
        return hashlib.blake2b(self.content, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class LargePoints:
    """The points and the density of a large map, without what stands out on it.

    Attributes:
        columns: the points, and the density.
        traces: of the density and the groups of points, without their data.
        colour: what the points are coloured by.
    """

    columns: PointColumns
    traces: go.Figure
    colour: PointColour | None


def large_points(
    coordinates: np.ndarray,
    rows: np.ndarray,
    colour: PointColour | None,
    counts: np.ndarray,
    covered: tuple[float, float, float, float],
    *,
    everywhere: PointColour | None = None,
    axes: Sequence[str] | None = None,
) -> LargePoints:
    """Some points of a map on the density of all of them.

    Args:
        counts: [up, across] points in each bin, from the left and the bottom.
        covered: what the bins cover: left, right, bottom, top.
        everywhere: colour of all points: the legend is the same whichever of them are drawn.
    """
    groups = list(point_groups(colour, len(rows), True, bool(axes), everywhere))
    order = np.concatenate([group.positions for group in groups]) if groups else np.arange(0)
    size, opacity = marker_look(len(rows))
    figure = go.Figure([_density_trace(counts, covered)])
    end = 0
    for group in groups:
        start, end = end, end + len(group.positions)
        by_values = group.values is not None
        trace: Trace = {
            "type": "scattergl",
            "showlegend": True,
            **group.trace,
            "mode": "markers",
            "marker": {"size": size, "opacity": opacity, **group.marker},
            "unselected": {"marker": {"opacity": FADED}},
        }
        if start == end:
            trace |= {"x": [None], "y": [None]}  # for the legend
        else:
            trace["meta"] = {"points": [start, end], "values": by_values}
        add_hover(trace, None)
        figure.add_trace(trace)
    values = None
    if colour is not None and colour.values is not None:
        values = colour.values[order]
    points = coordinates[order]
    columns = PointColumns(points[:, 0], points[:, 1], rows[order], values, levels(counts))
    return LargePoints(columns, figure, colour)


def levels(counts: np.ndarray) -> np.ndarray:
    """uint8 of the counts of bins, by the logarithm: 0 for none alone, 255 for the most."""
    highest = np.log1p(counts.max(initial=1))
    scaled = np.rint(_LEVELS * np.log1p(counts) / highest)
    return np.maximum(scaled, counts > 0).astype(np.uint8)  # a single point is seen, too


def large_map_figure(
    drawn: LargePoints,
    *,
    title: str,
    bounds: tuple[float, float, float, float],
    selected: np.ndarray | None = None,
    undrawn: tuple[np.ndarray, np.ndarray] | None = None,
    highlighted: np.ndarray | None = None,
    standout: Standout = NO_STANDOUT,
    axes: Sequence[str] | None = None,
    uirevision: str | None = None,
) -> go.Figure:
    """A map without its points, which are in ``drawn.columns``.

    Args:
        bounds: of all points: left, right, bottom, top. The whole map shows them.
        selected: [drawn] whether each point of the columns is selected; the others fade. None where
            nothing is.
        undrawn: row numbers and [point, 2] coordinates of selected points that are not drawn.
        highlighted: [2] place of the point with a ring, drawn or not.
        standout: what else stands out; its ``selected`` and ``highlighted`` do not count.
        uirevision: zoom is kept while it stays the same.
    """
    figure = go.Figure(drawn.traces)
    x_min, x_max, y_min, y_max = bounds
    corners = np.array([[x_min, y_min], [x_max, y_max]], dtype=np.float32)
    x, y = corners.T.tolist()
    hidden = {"marker": {"opacity": 0, "size": 1}, "hoverinfo": "skip", "showlegend": False}
    figure.add_trace({"type": "scattergl", "x": x, "y": y, "mode": "markers", **hidden})
    if undrawn is not None and len(undrawn[0]):
        figure.add_trace(_undrawn_selection(*undrawn))
    points = np.zeros((0, 2)) if highlighted is None else highlighted[None]
    add_marks(figure, standout, points, corners)
    figure.update_layout(title=escape(shorten(title, TITLE_CHARACTERS)), uirevision=uirevision)
    lay_out(figure, drawn.colour, True, axes)
    figure.update_layout(xaxis_ticks="", yaxis_ticks="")  # else a heatmap brings some
    figure.update_layout(meta={**figure.layout.meta, "selected": encode_bits(selected)})
    return figure


def _undrawn_selection(rows: np.ndarray, points: np.ndarray) -> Trace:
    """Selected points that are not among those that are drawn."""
    return mark_trace(
        points.astype(np.float32),
        "markers",
        name=UNDRAWN_SELECTION,
        marker={"size": 8, "color": YELLOW, "line": {"color": "#000000", "width": 1}},
        customdata=rows.astype(np.int32),
        unselected={"marker": {"opacity": 1}},
        hoverinfo="none",
    )


def _density_trace(
    counts: np.ndarray, covered: tuple[float, float, float, float]
) -> dict[str, Any]:
    """The density as shades of grey, without its levels."""
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
    """[point] whether it is selected, as base64 of a bit a point, the lowest first."""
    if selected is None:
        return None
    return base64.b64encode(np.packbits(selected, bitorder="little").tobytes()).decode()
