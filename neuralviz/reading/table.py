"""A table of texts and labels, as it is read from a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from neuralviz.errors import TextError
from neuralviz.reading.headers import describe_header
from neuralviz.reading.lines import tidy

MAX_CHARACTERS = 1_000_000  # of a text
MAX_COLUMNS = 2_000


@dataclass(frozen=True)
class Table:
    """What a file holds that has columns.

    Attributes:
        columns: a name for every column, no two alike; none when the file holds nothing.
        values: [column][row] of the rows that are not blank; what is missing is ``""``, and what
            is longer than ``MAX_CHARACTERS`` is cut one character after it.
        lines: where in the file each row begins: its line, or its number among the rows.
        notes: sentences on what was left out or guessed.
        unit: what ``lines`` counts, ``line`` or ``row``.
        header: the line or row that names the columns, 0 where none does; None in files of a kind
            that has a name for each column.
    """

    columns: tuple[str, ...]
    values: tuple[Sequence[str], ...]
    lines: Sequence[int]
    notes: tuple[str, ...] = ()
    unit: str = "line"
    header: int | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def describe_header(self, name: str) -> str:
        """A sentence on the header of the file of a name; empty where it has no choice of one."""
        first = [values[0] for values in self.values if values]
        return describe_header(name, self.unit, self.header, self.columns, first)

    def column(self, name: str) -> Sequence[str]:
        """The values of a column, one a row."""
        return self.values[self.columns.index(name)]

    def first(self, n: int) -> Table:
        """The same with the first ``n`` rows alone."""
        values = tuple(values[:n] for values in self.values)
        return replace(self, values=values, lines=self.lines[:n])


def column_names(titles: Iterable[str]) -> tuple[str, ...]:
    """A name for every column, no two alike."""
    names: list[str] = []
    used_names: set[str] = set()
    for number, title in enumerate(titles, 1):
        name = tidy(title) or f"column {number}"
        while name in used_names:
            name = f"{name} ({number})"
        names.append(name)
        used_names.add(name)
    return tuple(names)


def name_columns(width: int) -> tuple[str, ...]:
    """Names for the columns of a table that has none: ``text`` for one, else by their numbers."""
    return ("text",) if width == 1 else column_names([""] * width)


def check_width(name: str, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TextError(
            f"{name} has more than {MAX_COLUMNS:,} columns. Keep only the texts and labels."
        )
