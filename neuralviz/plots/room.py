"""What has room in a figure: numbers along an axis, values in the cells of a heatmap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from neuralviz.words import number

FEW_COLUMNS = 8  # so many cells side by side have room for their values
MOST = 10  # numbers that stay apart, however narrow the figure


def apart(numbers: Iterable[int]) -> list[int]:
    """Those of some numbers that have room along an axis, first and last among them."""
    every = list(map(int, numbers))
    step = max(1, -(-(len(every) - 1) // (MOST - 1)))
    shown = every[::step]
    if every and shown[-1] != every[-1]:
        if len(shown) > 1 and len(every) - 1 - every.index(shown[-1]) < step:
            shown.pop()
        shown.append(every[-1])
    return shown


def two_places(value: float) -> str:
    """``−0.05``."""
    return number(value, ".2f")


def in_cells(values: np.ndarray, said: Callable[[float], str] = two_places) -> dict:
    """[row, column] values written in the cells of a heatmap; nothing where there is none.

    plotly.js itself would write a minus sign as a hyphen.
    """
    text = [[said(float(value)) if np.isfinite(value) else "" for value in row] for row in values]
    return {"text": text, "texttemplate": "%{text}"}


def cell_values(
    values: np.ndarray,
    said: Callable[[float], str] = two_places,
    *,
    most_columns: int = FEW_COLUMNS,
) -> dict:
    """[row, column] values in the cells while they have room, in place of a scale beside them."""
    has_room = values.shape[1] <= most_columns
    return {"showscale": not has_room, **(in_cells(values, said) if has_room else {})}
