"""Tables of texts and labels, read from files or built from rows."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from numbers import Integral, Real
from typing import Any

from neuralviz.errors import TextError
from neuralviz.reading.lines import tidy
from neuralviz.words import joined, many, name_lines

MAX_CHARACTERS = 1_000_000  # of a text
MAX_COLUMNS = 2_000
_NUMBERS = re.compile(r"[\[{](?:[-+\d.,eE\s]|nan|NaN|inf|Infinity|null)++[\]}]")
_FRACTION = re.compile(r"\.\d*[1-9]|\d[eE]")
_FEWEST_FRACTIONS = 3  # values with one, from which short lists are no labels
_VECTOR = 16  # a list of more numbers than this is no label
# what pandas reads as missing by default
MISSING = frozenset(
    """#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan
null""".replace("\n", "|").split("|")
)

_LONGEST = max(map(len, MISSING))
_MOST_BLANKS = 8  # around such a word
_ALIKE = 0.8  # share of the other values that are codes of the same form
_MOST_CODES = 300  # different values of a column of codes; there are 249 of countries
_LOOKED_AT = 10_000  # values
_MOST_LISTED = 40  # columns in a message
_MAX_SHOWN = 60  # characters of a cell in a message


@dataclass(frozen=True)
class Table:
    """The non-blank rows of a file; missing values are ``""``."""

    columns: tuple[str, ...]  # no two alike; none when the file holds nothing
    values: tuple[Sequence[str], ...]  # [column][row], cut one character after ``MAX_CHARACTERS``
    lines: Sequence[int]  # [row] the line of the file in which it begins, or its number
    notes: tuple[str, ...] = ()  # sentences on what was left out or guessed
    unit: str = "line"  # what ``lines`` counts, ``line`` or ``row``
    header: int | None = None  # the line that names the columns, 0 for none; None for typed files

    def __len__(self) -> int:
        return len(self.lines)

    def describe_header(self, name: str) -> str:
        """A sentence on the header and the first row; empty without a header."""
        if not self.header:
            return ""
        place = f"{self.unit.capitalize()} {self.header:,} of {name}"
        sentence = f"{place} names its columns: {describe_row(self.columns)}."
        first = [values[0] for values in self.values if values]
        return f"{sentence} The first row is {describe_row(first)}." if first else sentence

    def column(self, name: str) -> Sequence[str]:
        return self.values[self.columns.index(name)]

    def first(self, n: int) -> Table:
        values = tuple(values[:n] for values in self.values)
        return replace(self, values=values, lines=self.lines[:n])


def describe_row(row: Sequence[str]) -> str:
    cells = strip_empty_end([" ".join(cell.split()) for cell in row])
    cut = [cell if len(cell) <= _MAX_SHOWN else f"{cell[: _MAX_SHOWN - 1]}…" for cell in cells[:6]]
    return ", ".join(f"“{cell}”" for cell in cut) + " …" * (len(cells) > 6)


def strip_empty_end(row: Sequence[str]) -> Sequence[str]:
    """A row without blank cells at its end, keeping the first cell."""
    n_cells = len(row)
    while n_cells > 1 and not row[n_cells - 1].strip():
        n_cells -= 1
    return row[:n_cells]


def list_columns(columns: Sequence[str]) -> str:
    listed = ", ".join(f"“{column[:40]}”" for column in columns[:_MOST_LISTED]) or "none"
    return listed + " …" * (len(columns) > _MOST_LISTED)


def column_names(titles: Iterable[str]) -> tuple[str, ...]:
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
    """Names for unnamed columns: ``text`` for one, else numbered."""
    return ("text",) if width == 1 else column_names([""] * width)


def check_width(name: str, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TextError(
            f"{name} has more than {MAX_COLUMNS:,} columns. Keep only the texts and labels."
        )


class TableBuilder:
    """Builds tables from rows that name their columns."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit
        self.n_rows = 0  # of all tables
        self._columns: dict[str, list[str]] = {}
        self._lines: list[int] = []
        self._wrong: list[int] = []
        self._vectors: set[str] = set()

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: int, row: Any) -> None:
        """Add an object or a text; lists are left out and noted."""
        if isinstance(row, list):
            self._wrong.append(line)
            return
        written: dict[str, str] = {}
        for key, value in (row if isinstance(row, Mapping) else {"text": row}).items():
            column = tidy(str(key)) or "column"
            if _is_vector(value):
                self._vectors.add(column)
            else:
                written[column] = cell_text(value)[: MAX_CHARACTERS + 1]
        if not any(map(str.strip, written.values())):
            return
        for column in [title for title in written if title not in self._columns]:
            check_width(self.name, len(self._columns) + 1)
            self._columns[column] = [""] * len(self._lines)
        for column, values in self._columns.items():
            values.append(written.get(column, ""))
        self._lines.append(line)
        self.n_rows += 1

    def take(self) -> Table:
        columns, lines = self._columns, self._lines
        self._columns, self._lines = {}, []
        return Table(tuple(columns), tuple(columns.values()), lines, unit=self.unit)

    def finish(self, reason: str, notes: tuple[str, ...] = ()) -> Table:
        """The last rows and all notes; `TextError` if all rows were left out, for ``reason``."""
        if self._wrong:
            place = name_lines(self._wrong, self.unit)
            sentence = f"Skipped {many(len(self._wrong), self.unit)}: {reason} ({place})."
            if not self.n_rows:
                raise TextError(f"Could not read {self.name} as a table. {sentence}")
            notes += (sentence,)
        skipped = describe_skipped(sorted(self._vectors), "lists of numbers")
        return replace(self.take(), notes=notes + skipped)


def join_tables(name: str, blocks: Iterable[Table]) -> Table:
    columns: dict[str, list[str]] = {}
    lines: list[int] = []
    joined_table = Table((), (), ())
    for block in blocks:
        for title, values in zip(block.columns, block.values, strict=True):
            columns.setdefault(title, [""] * len(lines)).extend(values)
        for title in columns.keys() - set(block.columns):
            columns[title] += [""] * len(block)
        lines += block.lines
        joined_table = replace(block, notes=joined_table.notes + block.notes)
    check_width(name, len(columns))
    return replace(
        joined_table, columns=tuple(columns), values=tuple(columns.values()), lines=lines
    )


def drop_vectors(table: Table) -> Table:
    columns = dict(zip(table.columns, table.values, strict=True))
    vectors = [title for title, values in columns.items() if _are_vectors(values)]
    for title in vectors:
        del columns[title]
    notes = table.notes + describe_skipped(vectors, "lists of numbers")
    return replace(table, columns=tuple(columns), values=tuple(columns.values()), notes=notes)


def _are_vectors(column: Sequence[str]) -> bool:
    """Whether all non-blank values are lists of numbers of one length."""
    # short ones with few fractions may be labels, such as [0, 1]
    length = n_fractions = 0
    for value in column:
        if not value or value.isspace():
            continue
        if not _NUMBERS.fullmatch(value.strip()):
            return False
        n_numbers = len(value.strip("[{}] ").replace(",", " ").split())
        if n_numbers < 2 or n_numbers != (length or n_numbers):
            return False
        length = n_numbers
        n_fractions += bool(_FRACTION.search(value))
    return length > _VECTOR or n_fractions >= _FEWEST_FRACTIONS


def describe_skipped(columns: Iterable[str], kind: str) -> tuple[str, ...]:
    return tuple(f"Skipped the {kind} in the column “{column[:40]}”." for column in columns)


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > _VECTOR
        and all(isinstance(number, int | float) for number in value)
    )


def blank_missing(
    table: Table,
    titles: Collection[str] | None = None,
    codes: Mapping[str, Collection[str]] | None = None,
) -> Table:
    """Blank words such as ``NA``, with notes; typed files stay unchanged."""
    # ``titles``: the columns to look at, by default all; ``codes``: by column, words that are
    # values there, by default those of `find_codes`
    if table.header is None:
        return table
    values: list[Sequence[str]] = []
    notes: list[str] = []
    for title, column in zip(table.columns, table.values, strict=True):
        looked_at = column if titles is None or title in titles else ()
        counts = Counter(word for value in looked_at if (word := _match_missing(value)))
        if not counts:
            values.append(column)
            continue
        kept = find_codes(column) if codes is None else codes.get(title, ())
        blank = counts.keys() - set(kept)
        n_blank = many(sum(counts[word] for word in blank), "row")
        for words, meaning in (
            (counts.keys() - blank, "a value, like the others of this column"),
            (blank, f"missing ({n_blank})"),
        ):
            if words:
                listed = joined([f"“{word}”" for word in sorted(words)])
                notes.append(f"Read {listed} in the column “{title[:40]}” as {meaning}.")
        if blank:
            column = ["" if _match_missing(value) in blank else value for value in column]
        values.append(column)
    return replace(table, values=tuple(values), notes=(*table.notes, *notes)) if notes else table


def find_codes(column: Sequence[str]) -> frozenset[str]:
    """Which of ``NA`` and ``None`` are values of a column."""
    # ``NA`` among short codes in capitals (country, region), ``None`` among few capitalised words
    values = {value.strip() for value in column[:_LOOKED_AT]} - MISSING - {""}
    if not 0 < len(values) <= _MOST_CODES:
        return frozenset()
    n_short = sum(value.isalpha() and value.isupper() and len(value) <= 5 for value in values)
    n_titles = sum(value.isalpha() and value.istitle() for value in values)
    return frozenset(
        word for word, n in (("NA", n_short), ("None", n_titles)) if n >= _ALIKE * len(values)
    )


def _match_missing(value: str) -> str:
    """The word for a missing value that this is; empty if none."""
    word = value.strip() if len(value) <= _LONGEST + _MOST_BLANKS else ""
    return word if word in MISSING else ""


_FORMULA = re.compile("'*[-=+@\t\r]")  # what may run, or what `escape_formula` made of it
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_WITH_POINT = re.compile(r"\d\.\d")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_PERCENT = re.compile(r"(?<=\d)\s*[%\uff05]$")


def escape_formula(text: str) -> str:
    """A CSV cell, with an apostrophe in front if a spreadsheet would run it as a formula."""
    return f"'{text}" if _may_run(text) else text


def restore_formula(text: str) -> str | None:
    """The text before `escape_formula`; None if that would have written it otherwise."""
    if not _may_run(text):
        return text
    return text[1:] if text[0] == "'" and _may_run(text[1:]) else None


def _may_run(text: str) -> bool:
    if not text or text[0] not in "'=+-@\t\r" or not _FORMULA.match(text):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def cell_text(value: Any) -> str:
    """A value as a person would write it; empty for None and NaN."""
    # 1.0 is ``1``, true ``true``, a day ``2024-05-01``, a duration of a day ``24:00:00``, nested
    # JSON
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() and abs(number) <= 2**53 else str(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _write_duration(value)
    return str(value)


def _write_duration(value: timedelta) -> str:
    """Hours, minutes and seconds; hours may exceed 24, as in spreadsheets."""
    seconds, rest = divmod(abs(value), timedelta(seconds=1))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if value < timedelta() else ""
    nanoseconds = getattr(rest, "nanoseconds", 0)  # of a duration of pandas
    fraction = f".{rest.microseconds:06}{nanoseconds:03}".rstrip("0") if rest else ""
    return f"{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"


def finite_number(text: str) -> float | None:
    """The number that a text states; None if it is not a finite one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None  # 1_000 is a name


def parse_numbers(column: Sequence[str]) -> list[float | None]:
    """[row] the numbers of a column; None for other values."""
    # decimal commas, true minus signs, or percentages throughout (80% is 80); where only some are,
    # the majority counts
    written = [value.strip().replace("\u2212", "-") for value in column]
    bare = [_PERCENT.sub("", value).strip() for value in written]
    has_sign = [value != text for value, text in zip(written, bare, strict=True)]
    parts_decimals = any(
        _WITH_COMMA.fullmatch(value) and not _THOUSANDS.fullmatch(value) for value in bare
    )
    if parts_decimals and not any(map(_WITH_POINT.search, bare)):
        bare = [v.replace(",", ".") if _WITH_COMMA.fullmatch(v) else v for v in bare]
    numbers = [finite_number(value) for value in bare]
    shares = [sign for number, sign in zip(numbers, has_sign, strict=True) if number is not None]
    are_shares = 2 * sum(shares) > len(shares)
    return [
        number if sign == are_shares else None
        for number, sign in zip(numbers, has_sign, strict=True)
    ]
