"""What has room in a figure: numbers along an axis, values in the cells of a heatmap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from neuralviz.words import number

FEW_COLUMNS = 8  # so many cells side by side have room for their values
MAX_TICKS = 10  # numbers that keep apart, however narrow the figure


def spaced_ticks(numbers: Iterable[int]) -> list[int]:
    """The numbers that have room as ticks along an axis, the first and the last among them."""
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
) -> dict:
    """[row, column] values written in the cells of a heatmap; nothing where there is none.

    plotly.js itself would write a minus sign as a hyphen.
    """
    text = [[format_value(float(v)) if np.isfinite(v) else "" for v in row] for row in values]
    return {"text": text, "texttemplate": "%{text}"}


def cell_values(
    values: np.ndarray,
    format_value: Callable[[float], str] = format_two_places,
    *,
    most_columns: int = FEW_COLUMNS,
) -> dict:
    """[row, column] values in the cells while they have room, in place of a scale beside them."""
    has_room = values.shape[1] <= most_columns
    return {"showscale": not has_room, **(cell_labels(values, format_value) if has_room else {})}
