"""Colours of map points, and groups of points that look alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuralviz.plots.theme import (
    BLUE,
    GREEN,
    LAYER_COLOURS,
    ORANGE,
    PURPLE,
    SIGNED_POINTS,
    SKY,
    VERMILLION,
    escape,
    shorten,
    symmetric_range,
)
from neuralviz.reading.cells import cell_text, finite_number

# Visible on light and dark pages, most distinct first.
COLOURS = (VERMILLION, BLUE, GREEN, PURPLE, ORANGE, SKY, *LAYER_COLOURS)
SYMBOLS = ("circle", "diamond", "square", "x")
SYMBOLS_3D = ("circle", "diamond", "square", "cross")
PER_SYMBOL = 6  # categories with one symbol: up to 12 have a colour of their own, and half of them
MAX_CATEGORIES = PER_SYMBOL * len(SYMBOLS)  # another symbol, too
GREY = "#9A9FA5"
LABEL_CHARACTERS = 18
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

    def select(self, rows: np.ndarray) -> PointColour:
        """Colours of some texts, with the scale and categories of all."""
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, codes=codes, values=None if self.values is None else self.values[rows])


UNNAMED = "no typical words"  # of a cluster


def cluster_names(cluster_words: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of clusters: number from 1, and first words."""
    return tuple(
        f"{number} {', '.join(words[:2]) or UNNAMED}"
        for number, words in enumerate(cluster_words, 1)
    )


def cluster_label(name: str) -> str:
    """A short name for the map."""
    if len(name) > LABEL_CHARACTERS:
        name = name.partition(",")[0]
    return shorten(name, LABEL_CHARACTERS)


def category_look(code: int, symbols: Sequence[str] = SYMBOLS) -> tuple[str, str]:
    """A unique pair of colour and symbol."""
    return COLOURS[code % len(COLOURS)], symbols[code // PER_SYMBOL]


def colour_by_category(
    name: str, labels: Sequence[object], missing: str = "no value"
) -> PointColour:
    """Colour by label: largest categories first, numbers in order."""
    by_label = {label: cell_text(label).strip() for label in set(labels)}
    texts = [by_label[label] for label in labels]
    names = list(dict.fromkeys(text for text in texts if text))
    place = {label: code for code, label in enumerate(names)}
    codes = np.fromiter((place.get(text, -1) for text in texts), np.int32, len(texts))
    return colour_by_code(name, codes, names, missing)


def colour_by_code(
    name: str, codes: np.ndarray, names: Sequence[str], missing: str = "no value"
) -> PointColour:
    """`colour_by_category` from [text] codes, -1 for none."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    counts = Counter({label: n for label, n in zip(names, sizes, strict=True) if n})
    ordered = [label for label, _ in counts.most_common()]
    if all(finite_number(label) is not None for label in ordered):  # sort numbers
        coloured, uncoloured = ordered[:MAX_CATEGORIES], ordered[MAX_CATEGORIES:]
        ordered = [*sorted(coloured, key=float), *sorted(uncoloured, key=float)]
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


def point_groups(
    colour: PointColour | None,
    n: int,
    flat: bool,
    axes: bool,
    everywhere: PointColour | None = None,
) -> Iterator[PointGroup]:
    """Non-empty groups in drawing order; all groups of ``everywhere``, if given."""
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
            "y": -0.1 if axes else 0,  # below the axis title
            "yanchor": "top",
            "len": 1,
            "nticks": 6,
            "tickformat": colour.number_format,
        },
    }


def scale_ends(values: np.ndarray) -> tuple[float, float]:
    """Range of the middle 98% of values; of all if that is empty."""
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
    """Escape ``%{`` in a hover template."""
    return escape(name).replace("%", "&#37;")
