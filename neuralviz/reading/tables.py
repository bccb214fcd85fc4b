"""Tables of texts from files: CSV, TSV, JSON, JSON lines, Parquet, Arrow, Excel.

Files are read as they come, so that no more of them is in memory than the rows that are kept and a
buffer; JSON and Excel workbooks have to be read whole and are therefore limited. Nothing that a
file holds is run or fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import read_arrow
from neuralviz.reading.delimited import read_delimited
from neuralviz.reading.excel_tables import read_excel
from neuralviz.reading.json_tables import read_json, read_json_lines
from neuralviz.reading.parquet_tables import read_parquet
from neuralviz.reading.saved_data_sets import is_saved_data_set, read_saved
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table
from neuralviz.words import many, name_lines

_READERS: dict[str, Callable[[str, IO[bytes], int | None], Table]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}


def read_table(source: Source, *, max_rows: int | None = None) -> Table:
    """Read a table by the ending of its name; one of none of ``source.TABLES`` is read as CSV.

    Values become text as a person would write them: 1.0 is ``1``, a date ``2024-05-01``, a nested
    value JSON; words for missing values stay (see `blank_missing`). Columns of binary data and of
    lists of many numbers are left out.

    - Delimited text: tab, semicolon, bar or comma, whichever divides the first rows best, or what
      a line ``sep=;`` says; fields may be missing at the end of a row. Line breaks in a field
      become ``\\n``. Between tabs, quotation marks that do not enclose a field are text.
    - The header of these and of Excel: `Source.header`, else by `find_header`.
    - JSON lines: an object a line, or a text a line, which goes to the column ``text``.
    - JSON: the shapes of `find_rows`.
    - Excel: the first visible sheet that has cells.
    - Arrow: files, streams, and folders that ``datasets`` saved.

    Args:
        source: the file.
        max_rows: stop after so many rows, with a note; by default all are read.

    Raises:
        TextError: the file cannot be read, holds no such table, or is too large for its kind.
    """
    if isinstance(source.content, Path) and is_saved_data_set(source.content):
        table = read_saved(source.name, source.content, max_rows)
        return _limited(source.name, table, max_rows)
    reader = _READERS.get(source.ending)
    if reader is not None and source.header is not None:
        raise TextError(
            f"{source.name} names its columns itself, so no header line can be chosen for it."
        )
    with source.opened() as file:
        if reader is not None:
            table = reader(source.name, file, max_rows)
        elif source.ending == ".xlsx":
            table = read_excel(source.name, file, max_rows, source.header)
        else:
            table = read_delimited(source.name, file, max_rows, source.header)
    return _limited(source.name, _without_repeated_header(source.name, table), max_rows)


def _without_repeated_header(name: str, table: Table) -> Table:
    """A table without rows that repeat its header, as in files that were put together."""
    if not table.header or len(table.columns) < 2:
        return table
    places = [
        place
        for place, title in enumerate(table.values[0])
        if title == table.columns[0]
        and all(
            values[place] == title
            for title, values in zip(table.columns, table.values, strict=True)
        )
    ]
    if not places:
        return table
    lines = [table.lines[place] for place in places]
    where = name_lines(lines, table.unit)
    verb = "repeats" if len(places) == 1 else "repeat"
    note = f"Skipped {many(len(places), 'row')} of {name} that {verb} the header ({where})."
    repeated = set(places)
    kept = [place for place in range(len(table)) if place not in repeated]
    return replace(
        table,
        values=tuple([values[place] for place in kept] for values in table.values),
        lines=[table.lines[place] for place in kept],
        notes=(*table.notes, note),
    )


def _limited(name: str, table: Table, max_rows: int | None) -> Table:
    """The first rows, and a note where there are more."""
    if max_rows is None or len(table) <= max_rows:
        return table
    note = f"Limited to the first {many(max_rows, 'row')} of {name}."
    return replace(table.first(max_rows), notes=(*table.notes, note))
