"""Texts from a file: plain text, or a column of a table; with notes on what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count as numbers
from typing import Literal

from neuralviz.errors import LONG_TEXT, TextError
from neuralviz.reading.headers import ID_COLUMNS as ID_COLUMNS
from neuralviz.reading.headers import TEXT_COLUMNS as TEXT_COLUMNS
from neuralviz.reading.headers import describe_header
from neuralviz.reading.lines import TextLines, count_unreadable, tidy
from neuralviz.reading.nested import flatten_texts
from neuralviz.reading.plain_text import Mode as Mode
from neuralviz.reading.plain_text import split_texts
from neuralviz.reading.source import Source
from neuralviz.reading.table import MAX_CHARACTERS, Table, blank_missing
from neuralviz.reading.tables import read_table
from neuralviz.reading.text_columns import guess_column
from neuralviz.words import joined, many, name_lines

_DELETED = ("[deleted]", "[removed]")  # what Reddit has in place of a text
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
    limit = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    name = source.name
    if source.is_table:
        table = blank_missing(read_table(source, max_rows=limit))
        read = _read_column(name, table, column, id_column)
    elif column is not None or id_column is not None:
        missing_column = id_column if column is None else column
        raise TextError(
            f"{name} is plain text, not a table, so it has no column “{missing_column}”."
        )
    elif source.header is not None:
        raise TextError(f"{name} is plain text, not a table, so it has no header line.")
    else:
        read = _read_plain_texts(source, mode, limit)
    if not read.texts:
        raise TextError(" ".join([f"{name} contains no text.", *read.notes]))
    return read


def _read_plain_texts(source: Source, mode: Mode, limit: int) -> ReadTexts:
    parts: list[str] = []
    starts: list[int] = []
    n_texts = 0
    limit_notes: tuple[str, ...] = ()
    with source.opened() as file:
        lines = TextLines(source.name, file)
        with closing(iter(lines)) as numbered:
            texts, kind_note = split_texts(source.name, numbered, mode)
            for start, part in texts:
                is_blank = not part.strip()
                if n_texts == limit and not is_blank:
                    limit_notes = (f"Limited to the first {many(limit, 'text')} of {source.name}.",)
                    break
                parts.append(part[: MAX_CHARACTERS + 1])
                starts.append(start)
                n_texts += not is_blank
        notes = (kind_note, *lines.notes) if kind_note else lines.notes
    cleaned, cut_notes, _ = clean_texts(parts, starts, blanks="line" if mode == "line" else "")
    return ReadTexts(cleaned, notes + cut_notes + limit_notes)


def _read_column(name: str, table: Table, column: str | None, id_column: str | None) -> ReadTexts:
    columns = table.columns
    for title in (column, id_column):
        if title is not None and title not in columns:
            named = ", ".join(f"“{title[:40]}”" for title in columns) or "none"
            raise TextError(f"{name} has no column “{title}”. Its columns are: {named}.")
    if not columns:
        return ReadTexts((), table.notes)
    if column is None:
        column = guess_column(name, table)
    parts, nested_notes = flatten_texts(column, table.column(column))
    n_deleted = sum(map(parts.count, _DELETED))
    if n_deleted:
        parts = ["" if part in _DELETED else part for part in parts]
        nested_notes += (
            f"Read {joined([f'“{word}”' for word in _DELETED], 'or')} as no text "
            f"({many(n_deleted, 'row')}).",
        )
    texts, notes, used = clean_texts(parts, table.lines, blanks="row", unit=table.unit)
    labels = {
        label: tuple([tidy(values[place]) for place in used])
        for label, values in zip(columns, table.values, strict=True)
        if label != column
    }
    if id_column is None:
        by_name = {label.strip().lower(): label for label in reversed(list(labels))}
        id_column = next((by_name[title] for title in ID_COLUMNS if title in by_name), None)
    ids: tuple[str, ...] | None = None
    if id_column is not None:
        ids, id_notes = make_ids_unique(texts if id_column == column else labels[id_column])
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


def clean_texts(
    parts: Sequence[str],
    starts: Sequence[int],
    blanks: Literal["line", "row", ""] = "",
    unit: str = "line",
) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """Texts without blanks and unreadable characters, notes that say so, and which parts they are.

    ``blanks`` says how parts without text are counted: as empty lines, as rows without a text, or,
    empty, not at all. ``starts`` is the line, or whatever ``unit`` is, that each part begins in.
    """
    texts, used, too_long = [], [], []
    unreadable = 0
    for place, part in enumerate(parts):
        text = tidy(part)
        unreadable += count_unreadable(part)
        if len(part) > MAX_CHARACTERS:
            too_long.append(starts[place])
        elif text:
            texts.append(text)
            used.append(place)
    notes = []
    if unreadable:
        notes.append(f"Replaced {many(unreadable, 'unreadable character')} with spaces.")
    left_out = len(parts) - len(texts) - len(too_long)
    if blanks and left_out:
        is_row = blanks == "row"  # whose other fields may hold something
        left_out_parts = (
            f"{many(left_out, 'row')} without a text" if is_row else many(left_out, "empty line")
        )
        notes.append(f"Skipped {left_out_parts}.")
    if too_long:
        notes.append(
            f"Skipped {many(len(too_long), 'text')} with more than {MAX_CHARACTERS:,} "
            f"characters ({name_lines(too_long, unit)})."
        )
    longest = max(range(len(texts)), key=lambda index: len(texts[index]), default=0)
    if texts and len(texts[longest]) > LONG_TEXT:
        notes.append(
            f"The longest text has {len(texts[longest]):,} characters ("
            f"{name_lines([starts[used[longest]]], unit)})."
        )
    return tuple(texts), tuple(notes), used


def make_ids_unique(ids: Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Ids of which no two are alike and none is missing, with notes; None if all are missing."""
    used_ids = {text_id for text_id in ids if text_id}
    if not used_ids:
        return None, ()
    counts: dict[str, int] = {}  # how often, by id
    free = numbers(1)
    unique: list[str] = []
    repeated = missing = 0
    for text_id in ids:
        if not text_id:
            missing += 1
            text_id = next(text for number in free if (text := str(number)) not in used_ids)
        elif text_id in counts:
            repeated += 1
            first = text_id
            while text_id in used_ids:
                counts[first] += 1
                text_id = f"{first} ({counts[first]})"
        counts.setdefault(text_id, 1)
        used_ids.add(text_id)
        unique.append(text_id)
    notes = []
    if repeated:
        notes.append(f"Added a number in brackets to {many(repeated, 'duplicate ID')}.")
    if missing:
        notes.append(f"Numbered {many(missing, 'text')} without an ID.")
    return tuple(unique), tuple(notes)
