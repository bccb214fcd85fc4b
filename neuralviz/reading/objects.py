"""Rows that come with the names of their columns, put together into a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuralviz.errors import TextError
from neuralviz.reading.cells import cell_text
from neuralviz.reading.lines import tidy
from neuralviz.reading.table import MAX_CHARACTERS, Table, check_width
from neuralviz.words import many, name_lines

_VECTOR = 16  # a list of more numbers than this is no label


class TableBuilder:
    """Rows that come with the names of their columns, put together into a table.

    Args:
        name: of the file.
        unit: what its rows are counted in.
        is_part: whether these are some of its rows, so that none of them may be good.
    """

    def __init__(self, name: str, unit: str, *, is_part: bool = False) -> None:
        self.name, self.unit = name, unit
        self.is_part = is_part
        self.columns: dict[str, list[str]] = {}
        self.lines: list[int] = []
        self.wrong: list[int] = []
        self.vectors: set[str] = set()

    def add(self, line: int, row: Any) -> None:
        """Add an object, or a text of its own; what is neither is left out and named."""
        if isinstance(row, list):
            self.wrong.append(line)
            return
        if not isinstance(row, Mapping):
            row = {"text": row}
        written: dict[str, str] = {}
        for key, value in row.items():
            column = tidy(str(key)) or "column"
            if _is_vector(value):
                self.vectors.add(column)
            else:
                written[column] = cell_text(value)[: MAX_CHARACTERS + 1]
        if not any(map(str.strip, written.values())):
            return
        for column, value in written.items():
            if column not in self.columns:
                self.columns[column] = [""] * len(self.lines)
                check_width(self.name, len(self.columns))
            self.columns[column].append(value)
        self.lines.append(line)
        if len(written) < len(self.columns):
            for column in self.columns.keys() - written.keys():
                self.columns[column].append("")

    def table(self, reason: str, notes: tuple[str, ...] = ()) -> Table:
        """All rows; ``reason`` is what is said of those that were left out."""
        if self.wrong:
            place = name_lines(self.wrong, self.unit)
            sentence = f"Skipped {many(len(self.wrong), self.unit)}: {reason} ({place})."
            if not self.lines and not self.is_part:
                raise TextError(f"Could not read {self.name} as a table. {sentence}")
            notes += (sentence,)
        notes += tuple(
            describe_skipped(column, "lists of numbers") for column in sorted(self.vectors)
        )
        return Table(
            tuple(self.columns), tuple(self.columns.values()), self.lines, notes, self.unit
        )


def describe_skipped(column: str, kind: str) -> str:
    return f"Skipped the {kind} in the column “{column[:40]}”."


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > _VECTOR
        and all(isinstance(number, int | float) for number in value)
    )
