"""Which of the first rows of a table names its columns, told by what stands in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neuralviz.reading.cells import finite_number
from neuralviz.words import many

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
_ALIKE = 0.8  # share of a column that decides its kind
_TELLING = 200  # first characters of a cell by which its kind is known
_MAX_SHOWN = 60  # characters of a cell in a message


@dataclass(frozen=True)
class Header:
    """The row that names the columns.

    Attributes:
        place: of the row among those looked at; None where no row names them.
        is_clear: whether the rows leave little doubt.
    """

    place: int | None
    is_clear: bool = True


def find_header(rows: Sequence[Sequence[str]]) -> Header:
    """Find the row that names the columns by comparing the first rows with those below them.

    A header has names that are usual, or cells unlike those of their columns: words above numbers
    or dates, one word above sentences, a value that never comes again above categories. Rows above
    it have fewer cells, such as a title. Where the evidence is even, a table of several columns is
    taken to have a header, and a single column is not.

    Args:
        rows: the first ones of a table, at most about `LOOKED_AT`; blank ones left out.
    """
    if not rows:
        return Header(None)
    widths = Counter(_n_filled(row) for row in rows)
    width = max(widths, key=lambda n: (widths[n], n))
    evidence = _weigh_row(rows[0], rows[1:])
    below_title = _find_below_title(rows, width, evidence.total)
    if below_title is not None:
        return Header(below_title)
    title = rows[0][0]
    if width > 1 and title.strip() and _n_filled(rows[0]) == 1 and not is_usual_name(title):
        return Header(None)  # a title above rows that nothing names
    if width == 1:
        return Header(0 if evidence.total >= 2 else None)
    if len(rows) == 1 and not evidence.total:
        return Header(None)
    is_clear = evidence.total >= 2 and not evidence.is_mixed
    return Header(0 if evidence.total >= 0 else None, is_clear=is_clear)


def _find_below_title(rows: Sequence[Sequence[str]], width: int, evidence: int) -> int | None:
    """A header below rows with fewer cells, such as a title and a date; None without one."""
    widest = _n_filled(rows[0])
    plain: int | None = None
    for place, row in enumerate(rows[1:_MOST_BEFORE], 1):
        n_filled = _n_filled(row)
        if widest < n_filled and _weigh_row(row, rows[place + 1 :]).total >= 2:
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
    """The name of a column without its capitals, blanks and signs."""
    return _PLAIN.sub("", title).lower()


def is_usual_name(title: str) -> bool:
    """Whether a column is often called so, alone or with a number: ``Text``, ``sentence 2``."""
    name = fold_title(title)
    return (
        name in _USUAL_NAMES
        or name.rstrip("0123456789") in _USUAL_NAMES
        or bool(_UNNAMED.fullmatch(title))
    )


def describe_row(row: Sequence[str]) -> str:
    """The first cells of a row, in quotation marks and shortened."""
    cells = [" ".join(cell.split()) for cell in row]
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    cut = [cell if len(cell) <= _MAX_SHOWN else f"{cell[: _MAX_SHOWN - 1]}…" for cell in cells[:6]]
    return ", ".join(f"“{cell}”" for cell in cut) + " …" * (len(cells) > 6)


def describe_header(
    name: str, unit: str, header: int | None, columns: Sequence[str], first: Sequence[str]
) -> str:
    """A sentence on the header that was taken, with the first row; empty where there is none."""
    if not header:
        return ""
    return (
        f"{unit.capitalize()} {header:,} of {name} names its columns: {describe_row(columns)}. The "
        f"first row is {describe_row(first)}."
    )


def header_notes(
    name: str,
    unit: str,
    header: int,
    first: int,
    row: Sequence[str],
    *,
    is_clear: bool,
    is_chosen: bool,
) -> tuple[str, ...]:
    """Sentences on a header that a person may want to check.

    Args:
        name, unit: of the file, as of `Table`.
        header: its line or row, from 1; 0 for none.
        first: the line or row that is the first to hold something.
        row: the header, or without one the first row.
        is_clear: whether the rows leave little doubt.
        is_chosen: whether a person chose the header, so that there is no doubt.
    """
    if is_chosen:
        return () if header else (f"Read {unit} {first:,} of {name} as data: {describe_row(row)}.",)
    if not header:
        return (
            f"No {unit} of {name} seems to name its columns, so {unit} {first:,} was read as "
            f"data: {describe_row(row)}. If it names the columns, choose {unit} {first:,} as the "
            "header.",
        )
    notes: tuple[str, ...] = ()
    if header > first:
        notes = (
            f"Skipped {many(header - first, unit)} before the header of {name}, {unit} "
            f"{header:,}: {describe_row(row)}.",
        )
    if not is_clear:
        notes += (
            f"It is not clear whether {unit} {header:,} of {name} names its columns. It was read "
            f"as the header: {describe_row(row)}. If it is data, choose no header.",
        )
    return notes


def _n_filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns of those below it without doubt."""
    evidence = _weigh_row(rows[0], rows[1:])
    return evidence.total >= 2 and not evidence.is_mixed


class Evidence(NamedTuple):
    """What speaks for a row as the names of the columns of those below it.

    Attributes:
        total: below 0 where more speaks against it.
        is_mixed: whether a cell looks like data of its column, whatever the others look like.
    """

    total: int
    is_mixed: bool


def _weigh_row(row: Sequence[str], rows_below: Sequence[Sequence[str]]) -> Evidence:
    other_rows = [other_row for other_row in rows_below if list(other_row) != list(row)]
    columns = [
        [
            cell
            for other_row in other_rows
            if place < len(other_row) and (cell := other_row[place].strip())
        ]
        for place in range(len(row))
    ]
    scores = [
        _weigh_column(title.strip(), cells, place)
        for place, (title, cells) in enumerate(zip(row, columns, strict=True))
    ]
    return Evidence(sum(scores), _LIKE_DATA in scores)


def _weigh_column(title: str, cells: Sequence[str], place: int) -> int:
    """The same of one column; 0 where nothing can be told."""
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
    """The same where words stand above words."""
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
    """Whether a title of one word stands above texts all of which have several."""
    if len(title.split()) > 1 or len(cells) < _FEWEST:
        return False
    wide = any(character >= "\u2e80" for character in title)  # no blanks between words
    least = 3 * len(title) if wide else len(title)
    return all(len(cell) > least and (wide or len(cell.split()) > 2) for cell in cells)


def _is_sentence(text: str) -> bool:
    return len(text.split()) > 6 or bool(_ENDS_A_SENTENCE.search(text))


def _is_near(title: str, cells: Sequence[str]) -> bool:
    """Whether a number may be one of its column: no year, say, above shares."""
    numbers = [number for cell in cells if (number := finite_number(cell)) is not None]
    mine = finite_number(title)
    if mine is None or not numbers:
        return True
    low, high = min(numbers), max(numbers)
    reach = (2 if len(numbers) > _FEW_NUMBERS else 20) * max(high - low, abs(high), 1)
    return low - reach <= mine <= high + reach


def _classify_cell(cell: str) -> str:
    """What a cell that is not blank looks like."""
    cell = cell[:_TELLING]
    if _DATE.fullmatch(cell):
        return "date"
    if _NUMBER.fullmatch(cell) or finite_number(cell) is not None:
        return "number"
    if _WEB.fullmatch(cell):
        return "web"
    return "code" if _CODE.fullmatch(cell) else "words"
