"""The points of a map in groups that look alike: a category each, or all that have a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuralviz.plots.point_colours import (
    GREY,
    MAX_CATEGORIES,
    SYMBOLS,
    PointColour,
    category_look,
)
from neuralviz.plots.theme import BLUE, SIGNED_POINTS, escape, shorten, symmetric_range

SYMBOLS_3D = ("circle", "diamond", "square", "cross")
_NAME_CHARACTERS = 16
_HOVERED_NAME = 40


@dataclass(frozen=True, eq=False)
class PointGroup:
    """Points that look alike: their positions among all points, and the settings of their trace."""

    positions: np.ndarray
    trace: dict[str, Any]
    marker: dict[str, Any]
    values: np.ndarray | None = None  # [text], of all texts


def point_groups(
    colour: PointColour | None,
    n: int,
    flat: bool,
    axes: bool,
    everywhere: PointColour | None = None,
) -> Iterator[PointGroup]:
    """The groups with points, in the order in which they are drawn: the last ones lie on top.

    Args:
        colour: of the points; one colour if None.
        n: points.
        flat: whether they lie in two dimensions.
        axes: whether the axes have names.
        everywhere: colour of all points, of which these are some: every group of those is there,
            with points or without.
    """
    all_points = np.arange(n)
    if colour is None:
        yield PointGroup(all_points, {"showlegend": False}, {"color": BLUE})
    elif colour.values is not None:
        yield from _number_groups(colour, colour.values, axes)
    else:
        yield from _category_groups(colour, flat, everywhere)


def _number_groups(colour: PointColour, values: np.ndarray, axes: bool) -> Iterator[PointGroup]:
    name = _escape_template(shorten(colour.name, _HOVERED_NAME))
    is_finite = np.isfinite(values)
    if not is_finite.all():
        trace = {"name": escape(colour.missing), "legendrank": 2000, "showlegend": True}
        yield PointGroup(np.flatnonzero(~is_finite), trace, {"color": GREY})
    hover = f"{name}: %{{marker.color:{colour.number_format}}}"
    trace = {"hovertemplate": hover, "showlegend": False}
    marker = {"showscale": True, **_scale_of(colour, values, axes)}
    yield PointGroup(np.flatnonzero(is_finite), trace, marker, values)


def _scale_of(colour: PointColour, values: np.ndarray, axes: bool) -> dict[str, Any]:
    """Range, colours and colour bar of numbers, for a marker."""
    low, high = colour.ends or scale_ends(values)
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


def scale_ends(values: np.ndarray) -> tuple[float, float]:
    """The ends of the middle 98% of numbers; of all, where these are one."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, (0.01, 0.99)).tolist() if len(finite) else (0.0, 1.0)
    if low == high and len(finite):
        low, high = float(finite.min()), float(finite.max())
    return low, high


def _category_groups(
    colour: PointColour, flat: bool, everywhere: PointColour | None
) -> Iterator[PointGroup]:
    assert colour.codes is not None
    all_codes = colour.codes if everywhere is None else everywhere.codes
    assert all_codes is not None
    symbols = SYMBOLS if flat else SYMBOLS_3D
    n_others = max(0, len(colour.categories) - MAX_CATEGORIES)
    grey = [
        (colour.codes < 0, all_codes < 0, escape(colour.missing), 2001),
        (colour.codes >= MAX_CATEGORIES, all_codes >= MAX_CATEGORIES,
         f"other ({n_others:,} more)", 2000),
    ]  # fmt: skip
    for mask, anywhere, name, rank in grey:
        if anywhere.any():
            trace = {"name": name, "legendrank": rank}
            yield PointGroup(np.flatnonzero(mask), trace, {"color": GREY})
    name = _escape_template(shorten(colour.name, _HOVERED_NAME))
    for code, category in enumerate(colour.categories[:MAX_CATEGORIES]):
        positions = np.flatnonzero(colour.codes == code)
        trace = {
            "name": escape(shorten(category, _NAME_CHARACTERS)),
            "legendrank": 1000 + code,
            "hovertemplate": f"{name}: {_escape_template(shorten(category, _HOVERED_NAME))}",
        }
        colour_of_category, symbol = category_look(code, symbols)
        marker = {"color": colour_of_category, "symbol": symbol}
        if len(positions) or everywhere is not None:
            yield PointGroup(positions, trace, marker)


def _escape_template(name: str) -> str:
    """A user's name within a hover template, where ``%{`` begins a variable."""
    return escape(name).replace("%", "&#37;")
