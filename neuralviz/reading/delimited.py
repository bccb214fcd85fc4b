"""Delimited text: CSV, TSV, and whatever else parts its fields by a character.

A broken row is named by its line and left out, and the others are kept. That decides who reads
delimited text. DuckDB counts rows where it should name lines (of a text with line breaks it knows
one), drops without a word all that follows a quotation mark which is never closed, and refuses
files that mix ends of lines. pyarrow hands over the rows that have too many or too few fields, but
takes an open quotation mark to the next one wherever it stands. So `divide_records` finds where a
row begins and ends, and whether its quotation marks match; ``pyarrow.csv`` splits rows into fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import compress
from operator import ne
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv

from neuralviz.errors import TextError
from neuralviz.reading.cells import restore_inert
from neuralviz.reading.delimited_layout import ADVICE, Layout, find_layout
from neuralviz.reading.delimited_records import divide_records
from neuralviz.reading.lines import TextLines
from neuralviz.reading.table import MAX_CHARACTERS, MAX_COLUMNS, Table
from neuralviz.words import many, name_lines

AT_ONCE = 1 << 22  # characters of delimited text that are split at once
_WRITTEN = ("id", "text")  # the first columns of what `neuralviz.store.writing` writes


def read_delimited(
    name: str,
    file: IO[bytes],
    max_rows: int | None,
    header: int | None = None,
    at_once: int = AT_ONCE,
) -> Table:
    """The rows and their columns; see `neuralviz.reading.tables.read_table`.

    Raises:
        TextError: no row can be used for its quotation marks or the number of its fields.
    """
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        layout = find_layout(name, numbered, header)
        if layout is None:
            return Table((), (), (), lines.notes)
        broken = _Broken(layout.separator)
        table: tuple[list[str], ...] = tuple([] for _ in layout.columns)
        kept: list[int] = []
        wanted = None if max_rows is None else max_rows + 1
        for columns, places in _portions(layout, broken, wanted, at_once):
            for values, column in zip(table, columns, strict=True):
                values += column
            kept += places
            if wanted is not None and len(kept) >= wanted:
                break
    if not kept:
        broken.check(name)
    notes = lines.notes + layout.notes + broken.take_notes()
    return _restore_cells(Table(layout.columns, table, kept, notes, header=layout.header))


def delimited_blocks(
    name: str, file: IO[bytes], header: int | None = None, at_once: int = AT_ONCE
) -> Iterator[Table]:
    """The same piece by piece, so many characters at once; broken rows are named piece by piece.

    Raises:
        TextError: as it is read: the file is not text, or the first row cannot be read.
    """
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        layout = find_layout(name, numbered, header)
        if layout is not None:
            broken, notes = _Broken(layout.separator), layout.notes
            for columns, places in _portions(layout, broken, None, at_once):
                notes += broken.take_notes()
                table = Table(layout.columns, columns, places, notes, header=layout.header)
                yield _restore_cells(table)
                notes = ()
            if notes := notes + broken.take_notes():
                yield Table(layout.columns, tuple(() for _ in layout.columns), (), notes)
    yield Table((), (), (), lines.notes)


class _Broken:
    """The lines in which rows begin that are left out or in doubt."""

    def __init__(self, separator: str) -> None:
        self.unmatched: list[int] = []
        self.too_long: list[int] = []
        self.odd_marks: list[int] = []
        self._advice = f"Put texts that contain “{separator}” in quotation marks."

    def check(self, name: str) -> None:
        """Refuse a table that has no other rows.

        Raises:
            TextError: some are broken.
        """
        why = ""
        if self.too_long:
            why = f"its rows have more fields than its header. {self._advice}"
        elif self.unmatched:
            why = (
                f"{many(len(self.unmatched), 'row')} with an unmatched quotation mark ("
                f"{name_lines(self.unmatched)}). {ADVICE}"
            )
        if why:
            raise TextError(f"Could not read {name} as a table: {why}")

    def take_notes(self) -> tuple[str, ...]:
        """Sentences on these rows, which are forgotten then."""
        notes = []
        if self.unmatched:
            notes.append(
                f"Skipped {many(len(self.unmatched), 'row')} with an unmatched quotation mark ("
                f"{name_lines(self.unmatched)}). {ADVICE}"
            )
        if self.too_long:
            notes.append(
                f"Skipped {many(len(self.too_long), 'row')} with more fields than the header ("
                f"{name_lines(self.too_long)}). {self._advice}"
            )
        if self.odd_marks:
            notes.append(
                "Read quotation marks at the beginning of a field as text in "
                f"{many(len(self.odd_marks), 'row')}, not as enclosing several lines "
                f"({name_lines(self.odd_marks)})."
            )
        for lines in (self.unmatched, self.too_long, self.odd_marks):
            lines.clear()
        return tuple(notes)


def _portions(
    layout: Layout, broken: _Broken, first: int | None, at_once: int
) -> Iterator[tuple[tuple[list[str], ...], list[int]]]:
    """The columns of some rows at once, and the lines in which these rows begin."""
    separator, width = layout.separator, layout.width
    records = divide_records(layout.lines, separator, width, broken.unmatched, broken.odd_marks)
    for batch in _batches(records, first, at_once):
        fields, at, wrong = _fields([record for _, record in batch], width, separator)
        broken.too_long += [batch[place][0] for place in wrong]
        columns = tuple([value[: MAX_CHARACTERS + 1] for value in column] for column in fields)
        yield columns, [batch[place][0] for place in at]


def _restore_cells(table: Table) -> Table:
    """A table that neuralviz wrote, without the apostrophes that keep its cells from being run.

    Such a table begins with the columns id and text, and each cell that could be run has one.
    """
    if table.columns[:2] != _WRITTEN:
        return table
    restored = [list(map(restore_inert, cells)) for cells in (table.columns, *table.values)]
    titles, *values = [[cell for cell in cells if cell is not None] for cells in restored]
    if any(None in cells for cells in restored):
        return table
    n_changed = sum(sum(map(ne, *both)) for both in zip(values, table.values, strict=True))
    notes = table.notes
    if n_changed:
        notes += (
            f"Took away the apostrophe before {many(n_changed, 'cell')} that a spreadsheet would "
            "run, as neuralviz writes them.",
        )
    return replace(table, columns=tuple(titles), values=tuple(values), notes=notes)


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
