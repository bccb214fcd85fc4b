"""What a table of trainings says, in a sentence of markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.training_tables import TrainingCell, TrainingTable

LEVEL = 0.005  # shares that differ by less are called alike


def table_point(table: TrainingTable, cells: Sequence[TrainingCell], label: str) -> str:
    """The point of a table as far as it is filled; empty before there is one.

    Args:
        table: that is filled.
        cells: that are finished.
        label: what texts are told apart by, as markdown.
    """
    sentence_of = {"accuracy": _rows, "layers": _layers, "spaces": _spaces, "epochs": _epochs}
    return sentence_of[table.columns](cells, label) if cells else ""


def _rows(cells: Sequence[TrainingCell], label: str) -> str:
    of_rows = {row: [cell.layers[-1] for cell in cells if cell.row == row] for row in _names(cells)}
    order = sorted(of_rows, key=lambda row: -np.mean(of_rows[row]))
    best, *rest = order
    sentence = f"10-NN accuracy of the {label}: **{best} {_percent(of_rows[best])}**"
    if not rest:
        return f"{sentence}."
    sentence += f", then {rest[0]} {_percent(of_rows[rest[0]])}"
    if len(rest) > 1:
        sentence += f"; last, {rest[-1]} {_percent(of_rows[rest[-1]])}"
    n_seeds = len(of_rows[best])
    if n_seeds == 1:
        return f"{sentence}."
    if min(of_rows[best]) > max(of_rows[rest[0]]):
        return f"{sentence}. The first is ahead with every one of {many(n_seeds, 'seed')}."
    return f"{sentence}. The seeds do not tell the first two apart."


def _layers(cells: Sequence[TrainingCell], label: str) -> str:
    before = _mean(cells, "before", "layers")
    trained = [row for row in _names(cells) if row != "before"]
    if before is None or not trained:
        return ""
    sentences = []
    for row in trained:
        after = _mean(cells, row, "layers")
        assert after is not None
        gain = after - before
        best_layer = int(gain.argmax())
        if gain[best_layer] < LEVEL:
            sentences.append(f"**{row}** lift no layer")
        else:
            sentences.append(
                f"**{row}** lift layer {best_layer} most, by {_points(gain[best_layer])}"
            )
    joint = "; ".join(sentences)
    return f"{joint[:2]}{joint[2].upper()}{joint[3:]} (10-NN accuracy of the {label})."


def _spaces(cells: Sequence[TrainingCell], label: str) -> str:
    row = _names(cells)[-1]
    mean = {
        name: float(np.mean([cell.spaces[name] for cell in cells if cell.row == row]))
        for name in cells[-1].spaces
    }
    best, worst = max(mean, key=mean.__getitem__), min(mean, key=mean.__getitem__)
    if mean[best] - mean[worst] < LEVEL:
        return f"For **{row}**, space and distance make no difference to the {label}."
    return (
        f"For **{row}**, **{best}** distances tell the {label} best: {mean[best]:.0%} of the "
        f"tested texts, against {mean[worst]:.0%} with {worst} ones."
    )


def _epochs(cells: Sequence[TrainingCell], label: str) -> str:
    sentences = []
    for row in _names(cells):
        runs = [cell.epochs for cell in cells if cell.row == row and None not in cell.epochs]
        longest = max(map(len, runs), default=0)
        runs = [run for run in runs if len(run) == longest]  # others diverged before their end
        if longest < 2:
            continue
        mean = np.mean(np.array(runs, dtype=float), axis=0)
        best = int(mean.argmax())
        if best == 0:
            sentences.append(f"**{row}**: best before any training, {mean[0]:.0%}")
            continue
        first, all_of_it = mean[1] - mean[0], mean[best] - mean[0]
        sentences.append(
            f"**{row}**: from {mean[0]:.0%} to {mean[best]:.0%} after "
            f"{many(best, 'epoch')}" + (f", {first / all_of_it:.0%} of it in the first"
            if best > 1 else "")
        )  # fmt: skip
    return f"10-NN accuracy of the {label}, {'; '.join(sentences)}." if sentences else ""


def _names(cells: Sequence[TrainingCell]) -> list[str]:
    return list(dict.fromkeys(cell.row for cell in cells))


def _mean(cells: Sequence[TrainingCell], row: str, attribute: str) -> np.ndarray | None:
    values = [getattr(cell, attribute) for cell in cells if cell.row == row]
    return np.mean(values, axis=0) if values else None


def _percent(values: Sequence[float]) -> str:
    return f"{np.mean(values):.0%}"


def _points(gain: float) -> str:
    return f"{number(100 * gain, '.1f')} points"
