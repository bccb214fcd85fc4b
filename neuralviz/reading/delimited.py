"""Delimited text: CSV, TSV, and whatever else a first line parts its fields by.

A broken row is named by its line and left out, and the others are kept. That decides who reads
delimited text. DuckDB counts rows where it should name lines (of a text with line breaks it knows
one), drops without a word all that follows a quotation mark which is never closed, and refuses
files that mix ends of lines. pyarrow hands over the rows that have too many or too few fields, but
takes an open quotation mark to the next one wherever it stands. So ``_records`` finds where a row
begins and ends, and whether its quotation marks match; ``pyarrow.csv`` splits rows into fields.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, compress
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv

from neuralviz.errors import TextError
from neuralviz.reading.lines import TextLines
from neuralviz.reading.table import (
    MAX_CHARACTERS,
    MAX_COLUMNS,
    Table,
    check_width,
    column_names,
)
from neuralviz.words import many, name_lines

MAX_RECORD = 1 << 24  # characters up to which a closing quotation mark is looked for

_ONE_COLUMN = "\x1f"  # the separator of a table of one column, in which commas are text
AT_ONCE = 1 << 22  # characters of delimited text that are split at once
_ADVICE = "Put the text in quotation marks and double any quotation mark inside it."


def read_delimited(
    name: str, file: IO[bytes], max_rows: int | None, at_once: int = AT_ONCE
) -> Table:
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        rows, separator = _parted(numbered)
        if not separator:
            return Table((), (), (), lines.notes)
        table = _read_records(name, rows, separator, max_rows, at_once)
    return replace(table, notes=lines.notes + table.notes)


def delimited_blocks(name: str, file: IO[bytes], at_once: int = AT_ONCE) -> Iterator[Table]:
    """The same piece by piece, so many characters at once; broken rows are named piece by piece.

    Raises:
        TextError: as it is read: the file is not text, or the first row cannot be read.
    """
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        rows, separator = _parted(numbered)
        if separator:
            unmatched: list[int] = []
            records = _records(rows, separator, unmatched)
            columns = _header(name, records, separator, unmatched)
            for batch in _batches(records, None, at_once):
                fields, at, wrong = _fields(
                    [record for _, record in batch], len(columns), separator
                )
                values = tuple([one[: MAX_CHARACTERS + 1] for one in column] for column in fields)
                notes = _skipped(unmatched, [batch[place][0] for place in wrong], separator)
                yield Table(columns, values, [batch[place][0] for place in at], notes)
                unmatched.clear()
            if unmatched:
                nothing = tuple(() for _ in columns)
                yield Table(columns, nothing, (), _skipped(unmatched, [], separator))
    yield Table((), (), (), lines.notes)


def _parted(lines: Iterator[tuple[int, str]]) -> tuple[Iterator[tuple[int, str]], str]:
    """The lines from the first that is not blank, and what parts its fields; empty without one."""
    first = next(((at, line) for at, line in lines if line.strip()), None)
    if first is None:
        return iter(()), ""
    outside = re.sub('"[^"]*"', "", first[1])
    separator = max(",;\t|", key=outside.count)
    rows: Iterator[tuple[int, str]] = chain([first], lines)
    if separator not in outside:
        separator = _ONE_COLUMN
        rows = ((at, line.replace(separator, " ")) for at, line in rows)
    return rows, separator


def _header(
    name: str, records: Iterator[tuple[int, str]], separator: str, unmatched: list[int]
) -> tuple[str, ...]:
    """Names of the columns, from the first record.

    Raises:
        TextError: it cannot be read.
    """
    header = next(records, None)
    if header is None or unmatched:
        raise TextError(
            f"Could not read {name} as a table: unmatched quotation mark in the row that starts "
            f"at line {unmatched[0]:,}. {_ADVICE}"
        )
    titles = _split([header[1]], separator)
    check_width(name, len(titles))
    return column_names([values[0] for values in titles])


def _skipped(unmatched: list[int], too_long: list[int], separator: str) -> tuple[str, ...]:
    """Sentences on rows that were left out, by the lines in which they begin."""
    notes = []
    if unmatched:
        notes.append(
            f"Skipped {many(len(unmatched), 'row')} with an unmatched quotation mark ("
            f"{name_lines(unmatched)}). {_ADVICE}"
        )
    if too_long:
        notes.append(
            f"Skipped {many(len(too_long), 'row')} with more fields than the header ("
            f"{name_lines(too_long)}). {_advice(separator)}"
        )
    return tuple(notes)


def _advice(separator: str) -> str:
    return f"Put texts that contain “{separator}” in quotation marks."


def _read_records(
    name: str,
    lines: Iterator[tuple[int, str]],
    separator: str,
    max_rows: int | None,
    at_once: int,
) -> Table:
    """The table in some lines, of which the first names the columns.

    Raises:
        TextError: no row can be used for its quotation marks or the number of its fields.
    """
    unmatched: list[int] = []
    records = _records(lines, separator, unmatched)
    broken = f"Could not read {name} as a table:"
    columns = _header(name, records, separator, unmatched)
    table: tuple[list[str], ...] = tuple([] for _ in columns)
    kept: list[int] = []
    too_long: list[int] = []
    for batch in _batches(records, None if max_rows is None else max_rows + 1, at_once):
        fields, at, wrong = _fields([record for _, record in batch], len(columns), separator)
        for values, column in zip(table, fields, strict=True):
            values += [value[: MAX_CHARACTERS + 1] for value in column]
        kept += [batch[place][0] for place in at]
        too_long += [batch[place][0] for place in wrong]
        if max_rows is not None and len(kept) > max_rows:
            break
    if too_long and not kept:
        raise TextError(f"{broken} its rows have more fields than its header. {_advice(separator)}")
    if unmatched and not kept:
        raise TextError(
            f"{broken} {many(len(unmatched), 'row')} with an unmatched quotation mark ("
            f"{name_lines(unmatched)}). {_ADVICE}"
        )
    return Table(columns, table, kept, _skipped(unmatched, too_long, separator))


def _records(
    lines: Iterator[tuple[int, str]], separator: str, unmatched: list[int]
) -> Iterator[tuple[int, str]]:
    """The rows that are not blank, with the line each begins in; a row may have several lines.

    A line whose quotation marks match in no way is put on ``unmatched``, and the next line begins a
    row of its own: what is lost to a quotation mark that is never closed is one line.
    """
    next_field = re.escape(separator)
    inside = '[^"]*+(?:""[^"]*+)*+'
    field = f'(?:"{inside}"|[^"{next_field}][^{next_field}]*+|)'
    whole = re.compile(f"{field}(?:{next_field}{field})*+")
    opening = re.compile(f'(?:{field}{next_field})*+"{inside}')
    within = re.compile(f'{inside}(?:"{next_field}(?:{field}{next_field})*+"{inside})?')
    closing_line = re.compile(f'{inside}"(?:{next_field}{field})*+')
    again: deque[tuple[int, str]] = deque()

    def take() -> tuple[int, str] | None:
        return again.popleft() if again else next(lines, None)

    while (item := take()) is not None:
        number, line = item
        if '"' not in line:
            if line and not line.isspace():
                yield item
            continue
        if whole.fullmatch(line):
            yield item
            continue
        more: list[tuple[int, str]] = []
        closed = False
        size = len(line) if opening.fullmatch(line) else MAX_RECORD
        while not closed and size < MAX_RECORD and (following := take()) is not None:
            more.append(following)
            size += len(following[1]) + 1
            closed = closing_line.fullmatch(following[1]) is not None
            if not closed and not within.fullmatch(following[1]):
                break
        if closed:
            yield number, "\n".join([line, *(text for _, text in more)])
        else:
            unmatched.append(number)
            again.extendleft(reversed(more))


def _batches(
    records: Iterable[tuple[int, str]], first: int | None, at_once: int
) -> Iterator[list[tuple[int, str]]]:
    """Records in portions that are split at once; the first few early, if few are wanted."""
    batch: list[tuple[int, str]] = []
    size, wanted = 0, first
    for record in records:
        batch.append(record)
        size += len(record[1])
        if size > at_once or len(batch) == wanted:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _fields(
    records: Sequence[str], width: int, separator: str
) -> tuple[list[list[str]], list[int], list[int]]:
    """Records as columns, the places of those that are in them, and of those with too many fields.

    Fields that are missing at the end are empty; empty ones beyond the last column are no fields.
    Blank rows are in neither list.
    """
    odd: dict[int, int] = {}  # how many fields, by place
    table = _split(records, separator, width, odd)
    places = [place for place in range(len(records)) if place not in odd]
    wrong: list[int] = []
    if odd:
        mended: dict[int, str] = {}
        for place, n_fields in odd.items():
            record = records[place]
            if n_fields < width:
                mended[place] = record + separator * (width - n_fields)
            else:
                cut, *beyond = record.rsplit(separator, n_fields - width)
                if any(map(str.strip, beyond)):
                    wrong.append(place)
                else:
                    mended[place] = cut
        if mended:
            added = _split([*mended.values()], separator, width)
            table = [old + new for old, new in zip(table, added, strict=True)]
            places += mended
        order = sorted(range(len(places)), key=places.__getitem__)
        table = [[values[at] for at in order] for values in table]
        places = [places[at] for at in order]
    filled = [any(map(str.strip, row)) for row in zip(*table, strict=True)]
    if not all(filled):
        table = [list(compress(values, filled)) for values in table]
        places = list(compress(places, filled))
    return table, places, wrong


def _split(
    records: Sequence[str],
    separator: str,
    width: int | None = None,
    odd: dict[int, int] | None = None,
) -> list[list[str]]:
    """The columns of records that are sound.

    Those that have not ``width`` fields are left out and their places and numbers of fields put
    into ``odd``; without a width, that of the first record counts.
    """

    def skip(row: Any) -> str:
        if odd is not None:
            odd[row.number - 1] = row.actual_columns
        return "skip"

    # The mark at the head is taken off, and not one that the first text begins with.
    data = ("\ufeff" + "\n".join(records) + "\n").encode()
    names = [f"f{place}" for place in range(MAX_COLUMNS + 1 if width is None else width)]
    table = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(
            use_threads=False,  # else rows have no numbers
            block_size=len(data) + 1,
            column_names=None if width is None else names,
            autogenerate_column_names=width is None,
        ),
        csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
        ),
    )
    return [column.to_pylist() for column in table.columns]
