"""Texts from a file: plain text, or a column of a table; with notes on what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from neuralviz.errors import TextError
from neuralviz.reading.cleaning import clean_texts, unique_ids
from neuralviz.reading.headers import ID_COLUMNS as ID_COLUMNS
from neuralviz.reading.headers import TEXT_COLUMNS as TEXT_COLUMNS
from neuralviz.reading.headers import describe_header
from neuralviz.reading.lines import TextLines, tidy
from neuralviz.reading.missing import blank_missing
from neuralviz.reading.nested import flatten_texts
from neuralviz.reading.source import Source
from neuralviz.reading.table import MAX_CHARACTERS, Table
from neuralviz.reading.tables import read_table
from neuralviz.reading.text_columns import guess_column
from neuralviz.words import many

Mode = Literal["line", "blank line", "one"]

MAX_TEXTS = 1_000_000


@dataclass(frozen=True)
class ReadTexts:
    """Texts in the order they came in.

    Attributes:
        texts: none of them blank.
        notes: sentences on what was left out or changed.
        ids: one a text, no two alike, if the file has a column of them.
        column: the column of the table that was read.
        columns: the columns that can be read.
        labels: the other columns, one value a text; what is missing is ``""``.
        header, unit: as of `Table`.
    """

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    column: str | None = None
    columns: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    header: int | None = None
    unit: str = "line"

    def describe_header(self, name: str) -> str:
        """A sentence on the header of the file of a name; empty where it has no choice of one."""
        return describe_header(name, self.unit, self.header, self.columns, self.texts[:1])

    def first(self, n: int) -> ReadTexts:
        """The same with the first ``n`` texts alone."""
        return replace(
            self,
            texts=self.texts[:n],
            ids=None if self.ids is None else self.ids[:n],
            labels={name: values[:n] for name, values in self.labels.items()},
        )


def read_texts(
    source: Source,
    column: str | None = None,
    *,
    mode: Mode = "line",
    id_column: str | None = None,
    max_texts: int | None = None,
) -> ReadTexts:
    """Read a file: a table by the ending of its name (see ``source.TABLES``), else plain text.

    Texts of more than ``MAX_CHARACTERS`` are left out and named.

    Args:
        source: the file, in any usual encoding; it is read as it comes.
        column: the column to read; by default that of `guess_column`.
        mode: where a text of plain text ends.
        id_column: the column of the ids; by default the first that is called like one
            (``ID_COLUMNS``). An id that is missing or was there before is made one of its own.
        max_texts: read so many rows or texts and no more; at most, and by default, ``MAX_TEXTS``.
            It is said when there are more.

    Raises:
        TextError: there is no text in it, it is no text file, it is no table, it has no such
            column, or it cannot be read.
    """
    most = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    name = source.name
    if source.is_table:
        table = blank_missing(read_table(source, max_rows=most))
        read = _texts_of(name, table, column, id_column)
    elif column is not None or id_column is not None:
        wanted = id_column if column is None else column
        raise TextError(f"{name} is plain text, not a table, so it has no column “{wanted}”.")
    elif source.header is not None:
        raise TextError(f"{name} is plain text, not a table, so it has no header line.")
    else:
        read = _plain_texts(source, mode, most)
    if not read.texts:
        raise TextError(" ".join([f"{name} contains no text.", *read.notes]))
    return read


def _plain_texts(source: Source, mode: Mode, most: int) -> ReadTexts:
    parts: list[str] = []
    starts: list[int] = []
    n_texts = 0
    more: tuple[str, ...] = ()
    with source.opened() as file:
        lines = TextLines(source.name, file)
        with closing(iter(lines)) as numbered:
            for start, part in _parts(numbered, mode):
                blank = not part or part.isspace()
                if n_texts == most and not blank:
                    more = (f"Limited to the first {many(most, 'text')} of {source.name}.",)
                    break
                parts.append(part[: MAX_CHARACTERS + 1])
                starts.append(start)
                n_texts += not blank
        notes = lines.notes
    texts, cut_notes, _ = clean_texts(parts, starts, blanks="line" if mode == "line" else "")
    return ReadTexts(texts, notes + cut_notes + more)


def _parts(lines: Iterator[tuple[int, str]], mode: Mode) -> Iterator[tuple[int, str]]:
    """What stands between two ends of a text, and the line it begins in.

    A part that is far too long for a text is cut, so that it is known for one and no more is held.
    """
    if mode == "line":
        yield from lines
        return
    held: list[str] = []
    start, size = 1, 0
    for number, line in lines:
        if mode == "blank line" and not line.strip():
            if held:
                yield start, "\n".join(held)
            held, size = [], 0
        elif size <= MAX_CHARACTERS + 1:
            start = start if held else number
            held.append(line)
            size += len(line) + 1
        elif mode == "one":
            break  # it is known for too long
    if held:
        yield start, "\n".join(held)


def _texts_of(name: str, table: Table, column: str | None, id_column: str | None) -> ReadTexts:
    columns = table.columns
    for wanted in (column, id_column):
        if wanted is not None and wanted not in columns:
            named = ", ".join(f"“{one[:40]}”" for one in columns) or "none"
            raise TextError(f"{name} has no column “{wanted}”. Its columns are: {named}.")
    if not columns:
        return ReadTexts((), table.notes)
    if column is None:
        column = guess_column(name, table)
    parts, nested_notes = flatten_texts(column, table.column(column))
    texts, notes, used = clean_texts(parts, table.lines, blanks="row", unit=table.unit)
    labels = {
        other: tuple([tidy(values[place]) for place in used])
        for other, values in zip(columns, table.values, strict=True)
        if other != column
    }
    if id_column is None:
        by_name = {other.strip().lower(): other for other in reversed(list(labels))}
        id_column = next((by_name[one] for one in ID_COLUMNS if one in by_name), None)
    ids: tuple[str, ...] | None = None
    if id_column is not None:
        ids, id_notes = unique_ids(texts if id_column == column else labels[id_column])
        notes += id_notes
    return ReadTexts(
        texts,
        notes + nested_notes + table.notes,
        ids,
        column,
        columns,
        labels,
        table.header,
        table.unit,
    )
