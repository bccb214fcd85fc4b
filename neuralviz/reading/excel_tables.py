"""Read Excel workbooks (.xlsx) as tables."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import replace
from typing import IO, Any

import openpyxl
from openpyxl.utils.escape import unescape

from neuralviz.errors import TextError
from neuralviz.reading.table import (
    LOOKED_AT,
    MAX_COLUMNS,
    Table,
    cell_text,
    column_names,
    find_header,
    name_columns,
)
from neuralviz.words import many, name_lines

MAX_UNPACKED = 1 << 28  # bytes of all parts
MAX_OF_SHEET = 1 << 30  # of all cells
_LAST_ROW = 1 << 20  # that Excel has
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell [^>]*?ref=\"([A-Z]+\d+:[A-Z]+\d+)\"")
_UNSAVED = (
    re.compile(  # a formula without a result; a result that is an empty text has the type str
        rb'<(?:\w+:)?c (?![^<>]*t="str")[^<>]*r="[A-Z]+(\d+)"[^<>]*>\s*'
        rb"<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)\s*"
        rb"(?:<(?:\w+:)?v\s*(?:/>|></(?:\w+:)?v>))?\s*</(?:\w+:)?c>"
    )
)

SheetRows = list[tuple[int, list[str]]]  # by their numbers from 1, those that are not blank


def read_excel(
    name: str, file: IO[bytes], n_wanted: int | None = None, header: int | None = None
) -> Table:
    """The first visible sheet with cells; it notes rows whose formulas have no stored result."""
    limit = None if n_wanted is None else n_wanted + 2 * LOOKED_AT
    rows: SheetRows = []
    errors: list[int] = []
    merged: list[int] = []
    unsaved: list[int] = []
    title = ""
    try:
        _check_size(name, file)
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in sorted(workbook.worksheets, key=lambda sheet: sheet.sheet_state != "visible"):
            title = sheet.title
            rows, errors = _read_rows(name, sheet, limit)
            with zipfile.ZipFile(file) as archive:
                content = archive.read(sheet._worksheet_path.lstrip("/"))
            merged = _fill_merged(set(_MERGED.findall(content)), rows)
            unsaved = list(map(int, _UNSAVED.findall(content)))
            if rows or unsaved:
                break
    except TextError:
        raise
    except Exception as error:  # whatever the parts of a broken workbook may run into
        raise TextError(f"{name} is damaged, or not an Excel workbook (.xlsx).") from error
    table = _build_sheet(name, rows, header)
    notes = table.notes
    if unsaved:
        place = name_lines(list(dict.fromkeys(unsaved)), "row")
        notes += (
            f"No result is stored for {many(len(unsaved), 'formula')} of {name} ({place}). Open "
            "the workbook in Excel or LibreOffice, save it, and use that file.",
        )
    if merged:
        notes += (f"Filled merged cells with their value ({name_lines(merged, 'row')}).",)
    if errors:
        notes += (f"Left error values such as #N/A empty ({name_lines(errors, 'row')}).",)
    if len(workbook.sheetnames) > 1 and rows:
        notes += (f"{name} has {len(workbook.sheetnames)} sheets. Only “{title}” was read.",)
    return replace(table, notes=notes)


def _check_size(name: str, file: IO[bytes]) -> None:
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
    if any(part.compress_type not in _PACKED for part in parts):
        raise zlib.error("packed in a way that workbooks are not")
    if sum(part.file_size for part in parts) > MAX_UNPACKED:
        raise TextError(
            f"{name} is larger than {MAX_UNPACKED:,} bytes when unpacked. Save it as CSV."
        )


def _read_rows(name: str, sheet: Any, limit: int | None) -> tuple[SheetRows, list[int]]:
    """The non-blank rows of a sheet, and the numbers of rows with errors."""
    rows: SheetRows = []
    errors: list[int] = []
    n_characters = 0
    sheet.reset_dimensions()  # what a sheet says of its size may be wrong
    for number, cells in enumerate(sheet.iter_rows(max_row=_LAST_ROW), 1):
        row = [_cell_text(cell) if cell.value is not None else "" for cell in cells]
        while row and not row[-1]:
            row.pop()
        if len(row) > MAX_COLUMNS:
            raise TextError(
                f"The sheet “{sheet.title[:40]}” of {name} has a cell in row {number:,} and column "
                f"{len(row):,}. Delete stray cells far from the table, or save it as CSV."
            )
        if any(cell.data_type == "e" for cell in cells):
            errors.append(number)
        if not any(row):
            continue
        rows.append((number, row))
        n_characters += sum(map(len, row))
        if n_characters > MAX_OF_SHEET:
            raise TextError(f"{name} has more than {MAX_OF_SHEET:,} characters. Split it.")
        if limit is not None and len(rows) > limit:
            break
    return rows, errors


def _cell_text(cell: Any) -> str:
    text = cell_text(cell.value)
    return "" if cell.data_type == "e" or text.isspace() else unescape(text)


def _fill_merged(references: Collection[bytes], rows: SheetRows) -> list[int]:
    """Fill cells merged over rows, in their first column; returns the rows filled."""
    by_number = dict(rows)
    filled: set[int] = set()
    for reference in references:
        column, first, _, last = openpyxl.utils.range_boundaries(reference.decode())
        values = by_number.get(first, [])[column - 1 : column]
        for number in range(first + 1, last + 1):
            row = by_number.get(number)
            if row is None or not any(values):
                continue
            row += [""] * (column - len(row))
            if not row[column - 1]:
                row[column - 1] = values[0]
                filled.add(number)
    return sorted(filled)


def _build_sheet(name: str, rows: SheetRows, header: int | None) -> Table:
    if header:
        rows = [(row_number, row) for row_number, row in rows if row_number >= header]
        if not rows or rows[0][0] != header:
            raise TextError(f"{name} has nothing in row {header:,} that could name its columns.")
    if not rows:
        return Table((), (), (), unit="row")
    first_column = min(next(index for index, cell in enumerate(row) if cell) for _, row in rows)
    width = max(len(row) for _, row in rows) - first_column
    cells = [[*row[first_column:], *[""] * (width + first_column - len(row))] for _, row in rows]
    numbers = [number for number, _ in rows]
    header_row = find_header(cells[:LOOKED_AT], header)
    notes = header_row.notes(name, "row", numbers, cells, numbers[0])
    start, number, columns = 0, 0, name_columns(width)
    if header_row.place is not None:
        start, number = header_row.place + 1, numbers[header_row.place]
        columns = column_names(cells[header_row.place])
    values = tuple([row[column] for row in cells[start:]] for column in range(width))
    return Table(columns, values, numbers[start:], notes, "row", number)
