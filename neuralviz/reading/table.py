"""Tables of texts and labels: as they are read from files, and put together from rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from neuralviz.errors import TextError
from neuralviz.reading.cells import cell_text
from neuralviz.reading.headers import describe_header
from neuralviz.reading.lines import tidy
from neuralviz.words import joined, many, name_lines

MAX_CHARACTERS = 1_000_000  # of a text
MAX_COLUMNS = 2_000
_VECTOR = 16  # a list of more numbers than this is no label
MISSING = frozenset(
    """#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan
null|-""".replace("\n", "|").split("|")
)
"""What pandas reads as missing by default, and a dash."""

_LONGEST = max(map(len, MISSING))
_MOST_BLANKS = 8  # around such a word
_ALIKE = 0.8  # share of the other values that are codes of the same form


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

    def add_all(self, rows: Iterable[tuple[int, Any]], max_rows: int | None) -> None:
        """Add numbered rows, at most one more than wanted."""
        for line, row in rows:
            self.add(line, row)
            if max_rows is not None and len(self.lines) > max_rows:
                break

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


def blank_missing(table: Table, titles: Collection[str] | None = None) -> Table:
    """A table in which words such as ``NA`` are empty, with notes that count them.

    A word stays where the other values of its column are codes of its form: ``NA`` beside ``DE``
    and ``FR`` is a country.

    Args:
        table: any.
        titles: of the columns to look at; by default all.
    """
    values: list[Sequence[str]] = []
    notes: list[str] = []
    for title, column in zip(table.columns, table.values, strict=True):
        looked_at = column if titles is None or title in titles else ()
        counts = Counter(word for value in looked_at if (word := _match_missing(value)))
        codes = _find_codes(counts, column) if counts else []
        if codes:
            notes.append(
                f"Read {_list_words(codes)} in the column “{title[:40]}” as a value, because the "
                "other values are codes of the same length."
            )
        blank = counts.keys() - set(codes)
        if blank:
            n = sum(counts[word] for word in blank)
            notes.append(
                f"Read {_list_words(sorted(blank))} in the column “{title[:40]}” as missing "
                f"({many(n, 'row')})."
            )
            column = ["" if _match_missing(value) in blank else value for value in column]
        values.append(column)
    return replace(table, values=tuple(values), notes=(*table.notes, *notes)) if notes else table


def _match_missing(value: str) -> str:
    """The word for a missing value that this is; empty for another value."""
    word = value.strip() if len(value) <= _LONGEST + _MOST_BLANKS else ""
    return word if word in MISSING else ""


def _find_codes(words: Iterable[str], column: Sequence[str]) -> list[str]:
    """The words that have the form of the other values of their column."""
    other_values = {value.strip() for value in column} - MISSING - {""}
    forms = Counter(map(_describe_form, other_values))
    return [
        word
        for word in sorted(words)
        if word.isalpha()
        and len(other_values) > 1
        and forms[_describe_form(word)] >= _ALIKE * len(other_values)
    ]


def _describe_form(word: str) -> tuple[int, bool, bool, bool]:
    """What codes of a kind have in common: length, letters and case."""
    return len(word), word.isalpha(), word.isupper(), word.islower()


def _list_words(words: Sequence[str]) -> str:
    return joined([f"“{word}”" for word in words])
