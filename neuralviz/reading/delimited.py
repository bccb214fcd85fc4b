"""Delimited text: CSV, TSV, and whatever else parts its fields by a character.

A broken row is named by its line and left out, and the others are kept. DuckDB names rows instead
of lines, and drops all that follows an open quotation mark without a word; pyarrow takes an open
quotation mark to the next one wherever it stands. So `divide_records` finds where a row begins and
ends, and whether its quotation marks match.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from operator import ne
from typing import IO

from neuralviz.errors import TextError
from neuralviz.reading.cells import restore_formula
from neuralviz.reading.delimited_layout import ADVICE, Layout, find_layout
from neuralviz.reading.delimited_records import cut_fields, divide_records
from neuralviz.reading.lines import TextLines
from neuralviz.reading.table import MAX_CHARACTERS, Table
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
        broken = _FaultyRows(layout.separator)
        table: tuple[list[str], ...] = tuple([] for _ in layout.columns)
        kept: list[int] = []
        n_wanted = None if max_rows is None else max_rows + 1
        for columns, places in _read_portions(layout, broken, n_wanted, at_once):
            for values, column in zip(table, columns, strict=True):
                values += column
            kept += places
            if n_wanted is not None and len(kept) >= n_wanted:
                break
    if not kept:
        broken.check(name)
    notes = lines.notes + layout.notes + broken.take_notes()
    return _restore_cells(Table(layout.columns, table, kept, notes, header=layout.header))


def read_delimited_blocks(
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
            broken, notes = _FaultyRows(layout.separator), layout.notes
            for columns, places in _read_portions(layout, broken, None, at_once):
                notes += broken.take_notes()
                table = Table(layout.columns, columns, places, notes, header=layout.header)
                yield _restore_cells(table)
                notes = ()
            if notes := notes + broken.take_notes():
                yield Table(layout.columns, tuple(() for _ in layout.columns), (), notes)
    yield Table((), (), (), lines.notes)


class _FaultyRows:
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
        reason = ""
        if self.too_long:
            reason = f"its rows have more fields than its header. {self._advice}"
        elif self.unmatched:
            reason = (
                f"{many(len(self.unmatched), 'row')} with an unmatched quotation mark ("
                f"{name_lines(self.unmatched)}). {ADVICE}"
            )
        if reason:
            raise TextError(f"Could not read {name} as a table: {reason}")

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


def _read_portions(
    layout: Layout, broken: _FaultyRows, first: int | None, at_once: int
) -> Iterator[tuple[tuple[list[str], ...], list[int]]]:
    """The columns of some rows at once, and the lines in which these rows begin.

    Fields that are missing at the end are empty; empty ones beyond the last column are no fields.
    The first few rows come early, if few are wanted.
    """
    separator, width = layout.separator, layout.width
    rows: list[list[str]] = []
    lines: list[int] = []
    size = 0
    for line, record in divide_records(
        layout.lines, separator, width, broken.unmatched, broken.odd_marks
    ):
        row = cut_fields(record, separator)
        if len(row) != width:
            if any(map(str.strip, row[width:])):
                broken.too_long.append(line)
                continue
            row = [*row[:width], *[""] * (width - len(row))]
        if len(record) > MAX_CHARACTERS:
            row = [field[: MAX_CHARACTERS + 1] for field in row]
        if any(map(str.strip, row)):
            rows.append(row)
            lines.append(line)
        size += len(record)
        if rows and (size > at_once or len(rows) == first):
            yield tuple(map(list, zip(*rows, strict=True))), lines
            rows, lines, size = [], [], 0
    if rows:
        yield tuple(map(list, zip(*rows, strict=True))), lines


def _restore_cells(table: Table) -> Table:
    """A table that neuralviz wrote, without the apostrophes that keep its cells from being run.

    Such a table begins with the columns id and text, and each cell that could be run has one.
    """
    if table.columns[:2] != _WRITTEN:
        return table
    restored = [list(map(restore_formula, cells)) for cells in (table.columns, *table.values)]
    titles, *values = [[cell for cell in cells if cell is not None] for cells in restored]
    if any(None in cells for cells in restored):
        return table
    n_changed = sum(sum(map(ne, *pair)) for pair in zip(values, table.values, strict=True))
    notes = table.notes
    if n_changed:
        notes += (
            f"Took away the apostrophe before {many(n_changed, 'cell')} that a spreadsheet would "
            "run, as neuralviz writes them.",
        )
    return replace(table, columns=tuple(titles), values=tuple(values), notes=notes)
