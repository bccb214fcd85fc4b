"""Tables of texts and labels, and what their columns are: header, names, texts, nested texts."""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from numbers import Integral, Real
from typing import Any, NamedTuple

from neuralviz.errors import TextError
from neuralviz.reading.source import tidy
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
        skipped = [describe_skipped(title, "lists of numbers") for title in sorted(self._vectors)]
        return replace(self.take(), notes=(*notes, *skipped))


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
    skipped = [describe_skipped(title, "lists of numbers") for title in vectors]
    notes = (*table.notes, *skipped)
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


class SkippedColumn(str):
    """A note on a column that was left out, with the name of the column."""

    column: str


def describe_skipped(column: str, kind: str) -> SkippedColumn:
    note = SkippedColumn(f"Skipped the {kind} in the column “{column[:40]}”.")
    note.column = column
    return note


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
        codes_here = find_codes(column) if codes is None else codes.get(title, ())
        kept = counts.keys() & set(codes_here)
        blank = counts.keys() - kept
        if kept:
            notes.append(f"Read {_name_words(kept, title)} as a value, like the others.")
        if blank:
            n_rows = many(sum(counts[word] for word in blank), "row")
            notes.append(f"Read {_name_words(blank, title)} as missing ({n_rows}).")
            column = ["" if _match_missing(value) in blank else value for value in column]
        values.append(column)
    return replace(table, values=tuple(values), notes=(*table.notes, *notes)) if notes else table


def _name_words(words: Collection[str], title: str) -> str:
    return f"{joined([f'“{word}”' for word in sorted(words)])} in the column “{title[:40]}”"


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


# --- the header ----------------------------------------------------------------------------------

LOOKED_AT = 500  # rows
TEXT_COLUMNS = (
    *("text", "texts", "sentence", "sentences", "sentence1", "text1", "document", "content"),
    *("body", "abstract", "abstract note", "description", "review", "comment", "message"),
    *("tweet", "post", "passage", "paragraph", "utterance", "question", "query", "summary"),
    *("headline", "title"),
)
ID_COLUMNS = ("id", "_id", "ids", "text_id", "doc_id", "document_id", "uuid", "guid")

_OTHER_NAMES = """anchor answer author avg category channel city class cluster code column comments
conv conversation count country created date datetime day documents email embedding end feedback
field file filename folder gender gold group hypothesis idx index intent key keyword keywords kind
label labels lang language length link location messages metadata model month name notes number
original page premise prompt published rank rating ratings reply response responses reviews role
score section sent sentiment sex similarity sno source speaker split stars start status subject tag
tags target time timestamp token tokens topic topics train tweets type updated url user userid
username value values var variable vector version views week year""".split()
_PLAIN = re.compile(r"[\W_]+")
_USUAL_NAMES = {_PLAIN.sub("", name) for name in (*TEXT_COLUMNS, *ID_COLUMNS, *_OTHER_NAMES)}
_UNNAMED = re.compile(r"unnamed: ?\d+", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z][^\W_]*+_\w++|[a-z]++[A-Z]\w*+")  # snake_case, camelCase
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}:\d\d(:\d\d)?.*")
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*\s?[%$€£]?")
_WEB = re.compile(r"[a-z]+://\S+|\S+@\S+\.\w+")
_CODE = re.compile(r"(?=\S*\d)[\w.:-]+")
_ENDS_A_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)»]*$")
_MOST_BEFORE = 30  # rows above a header
_LIKE_DATA = -3  # evidence of a cell that looks like those below
_FEW_NUMBERS = 5  # numbers of which the range says little
_FEWEST = 3  # texts that a word is compared with
_TELLING = 200  # first characters of a cell by which its kind is known


class Header(NamedTuple):
    place: int | None  # among the rows looked at; None where no row names them
    is_clear: bool = True  # whether the rows leave little doubt
    is_chosen: bool = False  # by the user

    def notes(
        self,
        name: str,
        unit: str,
        numbers: Sequence[int],  # the lines, or whatever ``unit`` is, of the rows looked at
        rows: Sequence[Sequence[str]],
        first: int,  # the line from which on the file was looked at
    ) -> tuple[str, ...]:
        number, cells = numbers[self.place or 0], describe_row(rows[self.place or 0])
        place = f"{unit} {number:,}"
        if self.place is None:
            note = f"Read {place} of {name} as data: {cells}."
            advice = f"If it names the columns, choose {place} as the header."
            return (note if self.is_chosen else f"{note} {advice}",)
        notes: tuple[str, ...] = ()
        if number > first:
            skipped = many(number - first, unit)
            notes = (f"Skipped {skipped} before the header of {name}, {place}: {cells}.",)
        if not self.is_clear:
            notes += (
                f"Read {place} of {name} as the header: {cells}. If it is data, choose no header.",
            )
        return notes


def find_header(rows: Sequence[Sequence[str]], chosen: int | None = None) -> Header:
    """Find the row that names the columns among about `LOOKED_AT` rows, none of them blank.

    A header has usual names, or cells unlike those below: words above numbers, one word above
    sentences, a unique value above categories. Titles above it have fewer cells. If in doubt, a
    table has a header and a single column has none. ``chosen``: 0 for no header, any other number
    for the first row.
    """
    if chosen is not None:
        return Header(0 if chosen else None, is_chosen=True)
    if not rows:
        return Header(None)
    widths = Counter(_n_filled(row) for row in rows)
    width = max(widths, key=lambda n: (widths[n], n))
    evidence, is_clear = _weigh_row(rows[0], rows[1:])
    below_title = _find_below_title(rows, width, evidence)
    if below_title is not None:
        return Header(below_title)
    title = rows[0][0]
    if width > 1 and title.strip() and _n_filled(rows[0]) == 1 and not is_usual_name(title):
        return Header(None)  # a title above rows that nothing names
    if width == 1:
        return Header(0 if evidence >= 2 else None)
    if len(rows) == 1 and not evidence:
        return Header(None)
    return Header(0 if evidence >= 0 else None, is_clear)


def _find_below_title(rows: Sequence[Sequence[str]], width: int, evidence: int) -> int | None:
    """A header below rows with fewer cells, such as a title; None without one."""
    widest = _n_filled(rows[0])
    plain: int | None = None
    for place, row in enumerate(rows[1:_MOST_BEFORE], 1):
        n_filled = _n_filled(row)
        if widest < n_filled and _weigh_row(row, rows[place + 1 :])[0] >= 2:
            n_known = sum(map(is_usual_name, row))
            is_named = n_known > 1 or (n_known == 1 and n_filled >= width)
            if is_named and n_known > sum(map(is_usual_name, rows[0])):
                return place
            if plain is None and n_filled >= width and (evidence < 2 or _n_filled(rows[0]) == 1):
                plain = place
        widest = max(widest, n_filled)
        if widest >= width and plain is None and n_filled >= width:
            break
    return plain


def fold_title(title: str) -> str:
    """A column's name without capitals, blanks and signs."""
    return _PLAIN.sub("", title).lower()


def match_names(columns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The columns with some names, ignoring capitals, in the order of the names."""
    by_name = {title.strip().lower(): title for title in reversed(columns)}
    return [by_name[name] for name in names if name in by_name]


def is_usual_name(title: str) -> bool:
    """Whether this is a usual name, perhaps with a number: ``Text``, ``sentence 2``."""
    name = fold_title(title)
    return (
        name in _USUAL_NAMES
        or name.rstrip("0123456789") in _USUAL_NAMES
        or bool(_UNNAMED.fullmatch(title))
    )


def _n_filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _weigh_row(row: Sequence[str], rows_below: Sequence[Sequence[str]]) -> tuple[int, bool]:
    """Evidence that a row names the columns of those below, and whether it is clear."""
    # below 0 where more speaks against it; unclear where a cell looks like data of its column
    other_rows = [other_row for other_row in rows_below if list(other_row) != list(row)]
    scores = []
    for place, title in enumerate(row):
        cells = [other_row[place].strip() for other_row in other_rows if place < len(other_row)]
        scores.append(_weigh_column(title.strip(), list(filter(None, cells)), place))
    total = sum(scores)
    return total, total >= 2 and _LIKE_DATA not in scores


def _weigh_column(title: str, cells: Sequence[str], place: int) -> int:
    """Evidence from one column; 0 if none."""
    if not title:
        return 1 if place == 0 and cells else 0  # above numbers of rows
    kind = _classify_cell(title)
    if kind == "words" and title in cells:
        return -2
    kinds = Counter(map(_classify_cell, cells))
    usual, n_usual = kinds.most_common(1)[0] if cells else ("words", 0)
    if is_usual_name(title):
        return 3 if usual == "words" else 6
    if not cells:
        return 0
    if n_usual < _ALIKE * len(cells):
        return 2 if _IDENTIFIER.fullmatch(title) else 0
    if usual != "words":
        if kind == usual:
            return _LIKE_DATA if kind != "number" or _is_near(title, cells) else 0
        return 2 if kind in ("words", "code") else 0
    if kind != "words":
        return 3 if title == str(place) else 2 * (kind == "code" and _is_longer(cells, title))
    return _weigh_words(title, cells)


def _weigh_words(title: str, cells: Sequence[str]) -> int:
    if _is_sentence(title):
        n_questions = sum(cell.endswith("?") for cell in cells)
        if title.endswith("?") and len(cells) >= _FEWEST and n_questions < 0.1 * len(cells):
            return 1  # a question above answers
        if sum(map(_is_sentence, cells)) >= 0.3 * len(cells):
            return _LIKE_DATA
        return int(len(title) > 2 * max(map(len, cells)))
    if _IDENTIFIER.fullmatch(title) and not any(map(_IDENTIFIER.fullmatch, cells)):
        return 2
    if _is_longer(cells, title):
        return 2
    n_different = len(set(cells))
    return int(len(cells) >= 4 and n_different <= len(cells) / 2)


def _is_longer(cells: Sequence[str], title: str) -> bool:
    """Whether a one-word title stands above texts that all have several words."""
    if len(title.split()) > 1 or len(cells) < _FEWEST:
        return False
    wide = any(character >= "\u2e80" for character in title)  # no blanks between words
    least = 3 * len(title) if wide else len(title)
    return all(len(cell) > least and (wide or len(cell.split()) > 2) for cell in cells)


def _is_sentence(text: str) -> bool:
    return len(text.split()) > 6 or bool(_ENDS_A_SENTENCE.search(text))


def _is_near(title: str, cells: Sequence[str]) -> bool:
    """Whether a number fits its column, unlike, say, a year above shares."""
    numbers = [number for cell in cells if (number := finite_number(cell)) is not None]
    mine = finite_number(title)
    if mine is None or not numbers:
        return True
    low, high = min(numbers), max(numbers)
    reach = (2 if len(numbers) > _FEW_NUMBERS else 20) * max(high - low, abs(high), 1)
    return low - reach <= mine <= high + reach


def _classify_cell(cell: str) -> str:
    cell = cell[:_TELLING]
    if _DATE.fullmatch(cell):
        return "date"
    if _NUMBER.fullmatch(cell) or finite_number(cell) is not None:
        return "number"
    if _WEB.fullmatch(cell):
        return "web"
    return "code" if _CODE.fullmatch(cell) else "words"


# --- the column of texts -------------------------------------------------------------------------

_SAMPLE = 2000  # values of a column, about
_PHRASE = 1.5  # words of a value, on average, from which a column reads as texts
_TEXT_NAMES = ("text", "texts", "sentence")  # names that mean texts, even of a single word
_SENTENCE = 3  # words from which it does without doubt
_LETTER = re.compile(r"[^\W\d_]")
_WITHOUT_BLANKS = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\uabff\uf900-\ufaff]")


def guess_column(file_name: str, table: Table) -> str:
    """The column of texts: most like sentences, then the most usual name, then the longest.

    A usual name above numbers or categories counts only if no other column has sentences.
    `TextError` if no column has words or a usual name, or all are constant.
    """
    samples = dict(zip(table.columns, map(_take_sample, table.values), strict=True))
    rates = {title: rate_texts(values) for title, values in samples.items()}
    named = match_names(table.columns, TEXT_COLUMNS)
    sentence = (
        f"{file_name} has no column with texts: no words, or the same in every row, in "
        f"{list_columns(table.columns)}. If one of them contains the texts, rename it to “text”."
    )
    refusal = " ".join([sentence, *table.notes])
    if not any(rates.values()):
        filled = [title for title in named if samples[title] or not len(table)]
        if filled or not len(table):
            return next(iter(filled), table.columns[0])
        raise TextError(refusal)
    for title in named:
        means_texts = title.strip().lower() in _TEXT_NAMES and not _is_repeated(samples[title])
        if rates[title] >= (1 if means_texts else 2):
            return title
    sentences = [title for title in table.columns if rates[title] == 3]
    words = [title for title in named if rates[title]]
    if words and not sentences:
        return words[0]
    best = max(rates.values()) if sentences else 1
    likely = [title for title in table.columns if rates[title] >= best]
    if len(table.columns) > 1 and len(table) > 2:  # the same in every row is a mark of the format
        likely = [title for title in likely if len(set(samples[title])) > 1]
    if not likely:
        raise TextError(refusal)
    return max(likely, key=lambda title: sum(map(len, map(_extract_text, samples[title]))))


def rate_texts(values: Sequence[str]) -> int:
    """How text-like values are: 0 no words, 1 words or categories, 2 phrases, 3 sentences."""
    filled = [value for value in values if value.strip()]
    n_words = [_count_words(_extract_text(value)) for value in filled]
    if not any(n_words):
        return 0
    mean = 0 if _is_repeated(filled) else sum(n_words) / len(filled)
    return 1 + (mean >= _PHRASE) + (mean >= _SENTENCE)


def _is_repeated(filled: Sequence[str]) -> bool:
    return len(filled) >= 4 and 2 * len(set(filled)) <= len(filled)


def _take_sample(values: Sequence[str]) -> list[str]:
    step = max(1, len(values) // _SAMPLE)
    filled = [value for value in values[::step] if value.strip()]
    return filled or [value for value in values if value.strip()][:_SAMPLE]


def _extract_text(value: str) -> str:
    """The text in a value; empty for lists of numbers and objects without text."""
    if value.startswith(("[", "{")):
        nested = parse_nested(value)
        if nested is not None:
            return extract_text(nested) or ""
        if _NUMBERS.fullmatch(value):
            return ""
    return value


def _count_words(text: str) -> float:
    """Words with a letter, less numbers; without blanks, two characters make a word."""
    n_wide = 0 if text.isascii() else len(_WITHOUT_BLANKS.findall(text))
    parts = text.split()
    n_words = 0
    for part in parts:
        is_number = part[0] in "+-.0123456789" and finite_number(part) is not None
        n_words += bool(_LETTER.search(part)) and not is_number
    return max(min(n_words, 1), 2 * n_words - len(parts), n_wide / 2)


# --- nested values -------------------------------------------------------------------------------

_KEYS = (*TEXT_COLUMNS, "full_text", "value", "parts", "messages")
_PYTHON = re.compile(r"\[\s*(['\"{[]|\])|\{\s*'")  # how Python prints lists and objects
_NUMPY = re.compile(r"(['\"])\s+(?=['\"])")  # how numpy prints arrays: no commas between texts
_COMMAS = re.compile(r"['\"],\s")
_LONGEST_PRINTED = 200_000  # characters of what Python printed


def extract_text(value: Any) -> str | None:
    """The text in a value; None if ambiguous."""
    # lists are joined: words and sentences by blanks, messages by line ends; of an object, the part
    # named like a text
    if value is None:
        return ""
    if isinstance(value, str):
        return tidy(value)
    if isinstance(value, Mapping):
        by_name = {str(key).strip().lower(): key for key in reversed(list(value))}
        texts = [extract_text(value[by_name[key]]) for key in _KEYS if key in by_name]
        return next(filter(None, texts), "" if "" in texts else None)
    if not isinstance(value, list | tuple):
        return None
    if any(isinstance(part, Mapping) for part in value):
        spans = [part["text"] if _is_span(part) else part for part in value]
        if all(isinstance(span, str) for span in spans):
            return tidy("".join(spans))
        parts = [extract_text(part) for part in value if not _is_other_medium(part)]
        return None if None in parts or not parts else "\n".join(filter(None, parts))
    parts = [extract_text(part) for part in value]
    return None if None in parts else " ".join(filter(None, parts))


def flatten_texts(name: str, values: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Replace nested cells (JSON or Python) of a column by their text; with notes."""
    flat: list[str] = []
    n_nested = n_joined = 0
    for value in values:
        nested = parse_nested(value)
        text = None if nested is None else extract_text(nested)
        n_nested += nested is not None
        n_joined += text is not None
        flat.append(value if text is None else text)
    if not n_nested:
        return values, ()
    values_of = f"{many(n_nested, 'nested value')} in the column “{name[:40]}”"
    note = (
        f"Took the text out of {n_joined:,} of {values_of}: lists are joined, and of objects the "
        "text or content is read. Others stay as written."
        if n_joined
        else f"Found no text inside {values_of}: read as written."
    )
    return flat, (note,)


def parse_nested(cell: str) -> Any:
    """The list or object in a cell, as JSON, Python or numpy print it; else None."""
    if not cell.lstrip().startswith(("[", "{")):
        return None
    value = None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        printed = cell.strip()
        if len(printed) <= _LONGEST_PRINTED and _PYTHON.match(printed):
            if _NUMPY.search(printed) and not _COMMAS.search(printed):
                printed = _NUMPY.sub(r"\1, ", printed)
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(printed)  # nothing is run
    return value if isinstance(value, list | dict) else None


def _is_span(part: Any) -> bool:
    """Whether this is a piece of formatted text, such as a link, with its own blanks."""
    return isinstance(part, Mapping) and "type" in part and isinstance(part.get("text"), str)


def _is_other_medium(part: Any) -> bool:
    """Whether this is an image or sound in a message."""
    return isinstance(part, Mapping) and "type" in part and not any(key in part for key in _KEYS)
