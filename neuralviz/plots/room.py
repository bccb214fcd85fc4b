"""What has room in a figure: numbers along an axis, values in the cells of a heatmap."""

from __future__ import annotations

from collections.abc import Iterable

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


def cell_values(template: str, n_columns: int) -> dict:
    """Values in the cells while they have room, in place of a scale beside them."""
    few = n_columns <= FEW_COLUMNS
    return {"texttemplate": template if few else None, "showscale": not few}
