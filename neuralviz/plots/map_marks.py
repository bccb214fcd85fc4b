"""What stands out on the map of a corpus: rings, lines, stars, names of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.point_colours import GREY
from neuralviz.plots.theme import SMALL_FONT_SIZE, YELLOW, escape, shorten

HOVERED_CHARACTERS = 60  # of a line
_FRAME = (420, 280)  # px that a map has at least, beside another one on a projector
_NAME_HEIGHT, _CHARACTER = 20, 9.5  # px
_NAME_STEPS = (0, 20, -20, 40, -40)  # px that a name may stand above its place


def two_lines(text: str, width: int = HOVERED_CHARACTERS) -> str:
    """The beginning of a user's text, safe in a figure."""
    line = shorten(text, 2 * width)
    if len(line) <= width:
        return escape(line)
    cut = line.rfind(" ", 0, width + 1)
    cut = width if cut < 1 else cut
    return f"{escape(line[:cut])}<br>{escape(shorten(line[cut:], width))}"


def places(points: np.ndarray) -> dict[str, np.ndarray]:
    return {axis: points[:, i] for i, axis in enumerate("xyz"[: points.shape[1]])}


def ring(point: np.ndarray) -> go.Scattergl | go.Scatter3d:
    """A dark ring within a light one, seen on any ground."""
    flat = len(point) == 2
    look = {
        **places(np.stack([point, point])),
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
    return go.Scattergl(look) if flat else go.Scatter3d(look)


def stars(
    placed: Sequence[tuple[str, np.ndarray]], positions: np.ndarray
) -> go.Scattergl | go.Scatter3d:
    flat = positions.shape[1] == 2
    look = {
        **places(positions),
        "mode": "markers",
        "marker": {
            "symbol": "star" if flat else "diamond",
            "size": 20 if flat else 9,
            "color": YELLOW,
            "line": {"color": "#000000", "width": 1.5},
        },
        "text": [two_lines(text) for text, _ in placed],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    return go.Scattergl(look) if flat else go.Scatter3d(look)


def star_labels(
    placed: Sequence[tuple[str, np.ndarray]], positions: np.ndarray, points: np.ndarray
) -> list[dict[str, Any]]:
    """How each new sentence begins, on the side of its star where there is room."""
    everything = np.concatenate([points, positions])[:, :2]
    low, high = everything.min(axis=0), everything.max(axis=0)
    thirds = np.clip(3 * (positions[:, :2] - low) / np.maximum(high - low, 1e-9), 0, 2).astype(int)
    return [
        {
            **dict(zip("xyz", place.tolist(), strict=False)),
            "text": f"<b>{two_lines(shorten(text, 32), 18)}</b>",
            "font": {"size": SMALL_FONT_SIZE, "shadow": "auto"},
            "showarrow": False,
            "xanchor": ("left", "center", "right")[across],
            "yanchor": "top" if up == 2 else "bottom",
            "yshift": -10 if up == 2 else 10,
        }
        for (text, _), place, (across, up) in zip(placed, positions, thirds, strict=True)
    ]


def lines(point: np.ndarray, near: np.ndarray) -> go.Scattergl | go.Scatter3d:
    """Lines from a point to others, as one trace.

    Args:
        point: [2 or 3].
        near: [neighbour, 2 or 3].
    """
    ends = np.full((3 * len(near), len(point)), np.nan, dtype=np.float32)  # a gap after each line
    ends[0::3], ends[1::3] = point, near
    look = {
        **places(ends),
        "mode": "lines",
        "line": {"color": GREY, "width": 2},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return go.Scattergl(look) if len(point) == 2 else go.Scatter3d(look)


def name_labels(
    names: Sequence[str],
    positions: np.ndarray,
    points: np.ndarray,
    obstacles: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Names at places of a map, moved up or down where they would lie on each other.

    A name for which there is no room is left out; those that come first have precedence.

    Args:
        names: of users' words; escaped here.
        positions: [name, 2 or 3] their places.
        points: [text, 2 or 3] of the whole map.
        obstacles: labels from `star_labels`, on which no name may lie.
    """
    flat = positions.shape[1] == 2
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    per_unit = min(np.array(_FRAME) / np.maximum(high - low, 1e-9))  # px
    occupied: list[tuple[float, float, float]] = []  # middle and half of the width, px
    for label in obstacles:
        x, y = ((np.array([label["x"], label["y"]]) - low) * per_unit).tolist()
        written = label["text"].removeprefix("<b>").removesuffix("</b>").split("<br>")
        half = max(map(len, written)) * _CHARACTER / 2
        x += {"left": half, "center": 0, "right": -half}[label["xanchor"]]
        up = 1 if label["yanchor"] == "bottom" else -1
        middles = [label["yshift"] + up * _NAME_HEIGHT * (n + 0.5) for n in range(len(written))]
        occupied += [(x, y + middle, half) for middle in middles]
    labels = []
    for name, place in zip(names, positions, strict=True):
        x, y = ((place[:2] - low) * per_unit).tolist()
        half = len(name) * _CHARACTER / 2
        hidden = (abs(points[:, :2] - place[:2]) * per_unit < (half, _NAME_HEIGHT / 2)).all(axis=1)
        is_lone = len(np.unique(points[hidden], axis=0)) == 1  # as a point of equal texts is
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
        labels.append(
            {
                **dict(zip("xyz", place.tolist(), strict=False)),
                "text": f"<b>{escape(name)}</b>",
                "font": {"size": SMALL_FONT_SIZE, "shadow": "auto"},
                "showarrow": False,
                "yshift": step or 0,
            }
        )
    return labels
