"""Texts from files (.txt, .csv) and from what was pasted, cleaned, with notes on what was left."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from neuralviz.errors import TextError

Mode = Literal["line", "blank line", "one"]

TEXT_COLUMNS = ("text", "texts", "sentence", "sentence1", "document", "content", "body", "abstract")

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_BINARY_SHARE = 0.02  # more control characters than this and a file holds no text
_ONE_COLUMN = "\x1f"  # the separator of a table of one column, in which commas are text
_NAMED_LINES = 5  # so many lines that were left out are named

csv.field_size_limit(2**31 - 1)  # by itself, the module refuses texts over 131,072 characters


@dataclass(frozen=True)
class ReadTexts:
    """Texts in the order they came in.

    Attributes:
        texts: none of them blank.
        notes: sentences on what was left out or changed.
        ids: one a text, if the file has a column ``id``.
        column: the CSV column that was read.
        columns: the CSV columns that can be read.
        labels: the other CSV columns, one value a text.
    """

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    column: str | None = None
    columns: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def first(self, n: int) -> ReadTexts:
        """The same with the first ``n`` texts alone."""
        return replace(
            self,
            texts=self.texts[:n],
            ids=None if self.ids is None else self.ids[:n],
            labels={name: values[:n] for name, values in self.labels.items()},
        )


@dataclass(frozen=True)
class Table:
    """What a CSV file holds.

    Attributes:
        columns: a name for every column, no two alike; none when the file holds nothing.
        rows: the rows below the first line that are not blank, a field a column.
        lines: the line of the file that each row begins in.
        notes: sentences on what was left out.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    notes: tuple[str, ...] = ()


def split_pasted(text: str, mode: Mode = "line") -> ReadTexts:
    """Split what was pasted: a text a line, a blank line between texts, or all as one text.

    Nothing at all gives no texts and no notes.
    """
    text = _unix(text)
    if mode == "one":
        parts = [text]
    elif mode == "line":
        parts = text.split("\n")
    else:
        parts = re.split(r"\n[^\S\n]*\n\s*", text)
    return ReadTexts(*_clean(parts))


def join_pasted(texts: list[str]) -> tuple[str, Mode]:
    """What to paste, and in which mode, to get ``texts`` from ``split_pasted`` again.

    Blank lines inside one of several texts are lost.
    """
    if len(texts) == 1 and "\n" in texts[0]:
        return texts[0], "one"
    if any("\n" in text for text in texts):
        return "\n\n".join(re.sub(r"\n\s*\n", "\n", text) for text in texts), "blank line"
    return "\n".join(texts), "line"


def read_texts(name: str, content: bytes, column: str | None = None) -> ReadTexts:
    """Read a file: CSV or TSV by the ending of ``name``, else one text a line.

    Args:
        name: file name; only its ending counts.
        content: UTF-8, UTF-16 or Windows-1252.
        column: the CSV column to read; by default guessed by its name, else the one with the
            longest texts.

    Raises:
        TextError: there is no text in it, it is no text file, it is no table, or it has no such
            column.
    """
    if not content.strip():
        raise TextError(f"{name} is empty.")
    text, notes = decode(name, content)
    if name.lower().endswith((".csv", ".tsv")):
        read = _texts_of(name, read_table(name, text), column)
    elif column is not None:
        raise TextError(f"{name} is not a CSV file, so it has no column “{column}”.")
    else:
        lines = _unix(text).removesuffix("\n").split("\n")
        read = ReadTexts(*_clean(lines, blanks="line"))
    if not read.texts:
        raise TextError(f"There is no text in {name}.")
    return replace(read, notes=notes + read.notes)


def _unix(text: str) -> str:
    """The text with every end of line as a line feed; other separators are part of a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _clean(parts: list[str], blanks: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts without blanks and unreadable characters, and notes that say so.

    ``blanks`` is what a part without text is called; empty, it is not reported.
    """
    cleaned = [tidy(part) for part in parts]
    texts = tuple(text for text in cleaned if text)
    notes = []
    unreadable = sum(len(_UNREADABLE.findall(part)) for part in parts)
    if unreadable:
        notes.append(f"{count(unreadable, 'unreadable character')} replaced by blanks.")
    left_out = len(parts) - len(texts)
    if blanks and left_out:
        notes.append(f"{left_out:,} {blanks}{'s' if left_out != 1 else ''} without text left out.")
    return texts, tuple(notes)


def count(n: int, noun: str) -> str:
    """``1 row was``, ``2 rows were``."""
    return f"{n:,} {noun}{'s were' if n != 1 else ' was'}"


def decode(name: str, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and a note when its encoding had to be guessed."""
    notes: tuple[str, ...] = ()
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = content.decode("utf-16")
        else:
            text = content.decode(_unmarked_utf16(content) or "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
        notes = (f"{name} is not in UTF-8; it was read as Windows-1252.",)
    if len(_UNREADABLE.findall(text)) > _BINARY_SHARE * len(text) + 1:
        raise TextError(f"{name} does not look like text; save it as plain text or CSV in UTF-8.")
    return text, notes


def _unmarked_utf16(content: bytes) -> str | None:
    """The kind of UTF-16 that this is, without saying so; None if it is none.

    Half of the characters of such a text, or more, have a byte that is zero, always the same one.
    """
    first, second = content[::2].count(0), content[1::2].count(0)
    if len(content) % 2 or max(first, second) < len(content) / 4:
        return None
    return "utf-16-le" if second >= first else "utf-16-be"


def read_table(name: str, text: str) -> Table:
    """The table in the text of a CSV file, whatever separates its columns.

    Raises:
        TextError: a quotation mark is left open, or no row fits the first line.
    """
    header = _unix(text.lstrip()).split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    rows = _rows(name, text, separator if separator in header else _ONE_COLUMN)
    if not rows:
        return Table((), (), ())
    columns = _column_names(rows.pop(0)[1])
    advice = f"put texts that contain “{separator}” in quotation marks."
    table, lines, too_long = [], [], []
    for line, row in rows:
        if any(field.strip() for field in row[len(columns) :]):
            too_long.append(line)
        else:
            table.append(tuple(row + [""] * (len(columns) - len(row)))[: len(columns)])
            lines.append(line)
    if too_long and not table:
        raise TextError(
            f"{name} is not a table that can be read: its rows have more fields than its first "
            f"line; {advice}"
        )
    notes: tuple[str, ...] = ()
    if too_long:
        notes = (
            f"{count(len(too_long), 'row')} left out for more fields than the first line has "
            f"({name_lines(too_long)}); {advice}",
        )
    return Table(columns, tuple(table), tuple(lines), notes)


def name_lines(lines: list[int]) -> str:
    """The first few of some lines: ``line 2, 5, 9 …``."""
    named = ", ".join(f"{line:,}" for line in lines[:_NAMED_LINES])
    return f"line {named}" + " …" * (len(lines) > _NAMED_LINES)


def tidy(field: str) -> str:
    """A field without blanks around it, its unreadable characters made blanks."""
    return _UNREADABLE.sub(" ", field).strip()


def _texts_of(name: str, table: Table, column: str | None) -> ReadTexts:
    columns = table.columns
    if not columns:
        return ReadTexts(())
    if column is None:
        column = _guess_column(name, columns, table.rows)
    elif column not in columns:
        raise TextError(
            f"{name} has no column “{column}”; it has {', '.join(f'“{c}”' for c in columns)}."
        )
    parts = [row[columns.index(column)] for row in table.rows]
    texts, notes = _clean(parts, blanks="row")
    used = [row for row, part in zip(table.rows, parts, strict=True) if tidy(part)]
    labels = {
        name: tuple(row[place] for row in used)
        for place, name in enumerate(columns)
        if name != column
    }
    ids = next((labels[name] for name in labels if name.strip().lower() == "id"), None)
    return ReadTexts(texts, notes + table.notes, ids, column, columns, labels)


def _rows(name: str, text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of the line it begins in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, line = [], 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise TextError(
            f"{name} is not a table that can be read: the quotation marks from line {line:,} on "
            "do not match; write one that is part of a text twice, and the text in quotation marks."
        ) from error
    return rows


def _column_names(header: list[str]) -> tuple[str, ...]:
    """A name for every column, no two alike."""
    names: list[str] = []
    for number, title in enumerate(header, 1):
        name = title or f"column {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return tuple(names)


def _guess_column(file_name: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> str:
    """The column named like one of texts, else the one with the longest texts on average.

    Raises:
        TextError: no column has a word in it.
    """
    by_name = {name.strip().lower(): name for name in reversed(columns)}
    for name in TEXT_COLUMNS:
        if name in by_name:
            return by_name[name]
    lengths = [
        sum(len(row[place]) for row in rows) if any(_has_word(row[place]) for row in rows) else 0
        for place in range(len(columns))
    ]
    if rows and not any(lengths):
        named = ", ".join(f"“{name[:40]}”" for name in columns[:12])
        raise TextError(
            f"{file_name} has no column of texts: there is no word in {named}. Name the column of "
            "the texts “text”, whatever is in it."
        )
    return columns[lengths.index(max(lengths))]


def _has_word(cell: str) -> bool:
    """Whether a cell holds more than numbers."""
    try:
        float(cell)
    except ValueError:
        return any(character.isalpha() for character in cell)
    return False
