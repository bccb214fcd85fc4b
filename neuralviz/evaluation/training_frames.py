"""Tables of trainings as frames: in words for reading, in numbers for a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.evaluation.training_tables import TrainingCell, TrainingTable


def training_frame(table: TrainingTable, cells: Sequence[TrainingCell]) -> pd.DataFrame:
    """The table as far as it is filled, a row each in the order of the first cells.

    Args:
        table: decides the columns: ``accuracy`` of the last layer and the best one, ``layers``,
            ``spaces``, or ``epochs``.
        cells: of any seeds.

    Returns:
        Percent as text, the mean over the seeds and, where there are several, the range of them;
        then steps and seconds, the mean.
    """
    rows = []
    for label in dict.fromkeys(cell.row for cell in cells):
        seeds = [cell for cell in cells if cell.row == label]
        row = {"row": label}
        for name in dict.fromkeys(name for cell in seeds for name in _values(table, cell)):
            row[name] = _percent([_values(table, cell).get(name) for cell in seeds])
        row["steps"] = f"{sum(cell.steps for cell in seeds) / len(seeds):,.0f}"
        row["seconds"] = f"{sum(cell.seconds for cell in seeds) / len(seeds):,.0f}"
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def training_numbers(table: TrainingTable, cells: Sequence[TrainingCell]) -> pd.DataFrame:
    """The numbers, a row a cell: row, seed, accuracies (0 … 1), steps, seconds, diverged."""
    return pd.DataFrame(
        {"row": cell.row, "seed": cell.seed}
        | _values(table, cell)
        | {"steps": cell.steps, "seconds": cell.seconds, "diverged": cell.diverged}
        for cell in cells
    )


def _values(table: TrainingTable, cell: TrainingCell) -> dict[str, float | None]:
    if table.columns == "layers":
        return {f"layer {layer}": value for layer, value in enumerate(cell.layers)}
    if table.columns == "spaces":
        return dict(cell.spaces)
    if table.columns == "epochs":
        names = ["before", *(f"epoch {n}" for n in range(1, len(cell.epochs)))]
        return dict(zip(names, cell.epochs, strict=True))
    return {"last layer": cell.layers[-1], "best layer": max(cell.layers)}


def _percent(values: Sequence[float | None]) -> str:
    percents = [100 * value for value in values if value is not None]
    if not percents:
        return "–"
    mean = number(sum(percents) / len(percents), ".1f")
    if len(percents) == 1:
        return mean
    return f"{mean} ({number(min(percents), '.1f')} … {number(max(percents), '.1f')})"
