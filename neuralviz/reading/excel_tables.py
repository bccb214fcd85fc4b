"""Excel workbooks (.xlsx) as tables."""

from __future__ import annotations

import io
import re
from typing import IO

import fastexcel

from neuralviz.errors import TextError
from neuralviz.reading.table import Table, check_width, column_names
from neuralviz.reading.workbook_size import (
    DamagedWorkbookError,
    LargeWorkbookError,
    WorkbookLimits,
    copy_without,
    oversized_sheets,
)

LIMITS = WorkbookLimits()

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00")
_NO_DAY = re.compile(r"1899-12-3[01] (\d\d:\d\d:\d\d)")


def read_excel(
    name: str, file: IO[bytes], max_rows: int | None, limits: WorkbookLimits = LIMITS
) -> Table:
    """The first sheet that has cells; see `neuralviz.reading.tables.read_table`."""
    damaged = f"{name} is damaged, or not an Excel workbook (.xlsx)."
    try:
        oversized = oversized_sheets(file, limits)
    except DamagedWorkbookError as error:
        raise TextError(damaged) from error
    except LargeWorkbookError as error:
        raise TextError(f"{name} {error}. Save it as CSV.") from error
    readable: IO[bytes] = file
    if oversized:
        readable = io.BytesIO()
        copy_without(oversized, file, readable)
    readable.seek(0)
    rows: list[tuple[str, ...]] = []
    sheet = ""
    try:
        workbook = fastexcel.read_excel(readable.read())
        for sheet in workbook.sheet_names:
            cells = workbook.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string")
            if cells.height:
                columns = [map(_cell, column.to_pylist()) for column in cells.to_arrow().columns]
                rows = list(zip(*columns, strict=True))
                break
    except fastexcel.FastExcelError as error:
        if sheet and oversized:
            why = next(iter(oversized.values()))
            raise TextError(
                f"The sheet “{sheet[:40]}” of {name} {why}, or save it as CSV."
            ) from error
        raise TextError(damaged) from error
    filled = [(at, row) for at, row in enumerate(rows, 1) if any(map(str.strip, row))]
    if not filled:
        return Table((), (), (), unit="row")
    check_width(name, len(filled[0][1]))
    names = column_names(filled[0][1])
    lines = [at for at, _ in filled[1:]]
    values = tuple([row[place] for _, row in filled[1:]] for place in range(len(names)))
    notes: tuple[str, ...] = ()
    if len(workbook.sheet_names) > 1:
        notes = (f"{name} has {len(workbook.sheet_names)} sheets. Only “{sheet}” was read.",)
    return Table(names, values, lines, notes, "row")


def _cell(value: str | None) -> str:
    """A cell as text: dates without midnight, times without a day, blanks as nothing."""
    if value is None or not value.strip():
        return ""
    match = _MIDNIGHT.fullmatch(value) or _NO_DAY.fullmatch(value)
    return match[1] if match else value  # at most 32,767 characters
