"""Read tables from CSV, TSV, JSON, JSON lines, Parquet, Arrow and Excel files.

Files are streamed, but JSON and Excel must be read whole and are limited. Nothing in a file is run
or fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import is_saved_data_set, read_arrow, read_parquet, read_saved
from neuralviz.reading.delimited import read_delimited, restore_cells
from neuralviz.reading.excel_tables import read_excel
from neuralviz.reading.json_tables import read_json, read_json_lines
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table, describe_row, drop_vectors, join_tables
from neuralviz.words import many, name_lines

_ANSWERS = {"Response", "Open-Ended Response"}  # below the questions of SurveyMonkey
_READERS: dict[str, Callable[[str, IO[bytes], int | None], Iterator[Table]]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}


def read_table(source: Source, *, max_rows: int | None = None) -> Table:
    """Read a table by its file ending, by default as CSV; see docs/corpora.md for each kind.

    Values become text (`cell_text`); words for missing values stay (see `blank_missing`). Binary
    columns, lists of many numbers, and rows beyond ``max_rows`` are left out, with notes.
    `TextError` if the file is unreadable, holds no table, or is too large.
    """
    name = source.name
    n_wanted = None if max_rows is None else max_rows + 1
    if isinstance(source.content, Path) and is_saved_data_set(source.content):
        try:
            table = join_tables(name, read_saved(name, source.content, n_wanted))
        except OSError as error:
            raise TextError(f"Could not read {name}: {error.strerror or error}.") from error
        return limit_rows(name, table, max_rows)
    with source.opened() as file:
        table = join_tables(name, _read_blocks(source, file, n_wanted))
    table = _drop_descriptions(name, _drop_repeated_headers(name, restore_cells(table)))
    return limit_rows(name, drop_vectors(table), max_rows)


def _read_blocks(source: Source, file: IO[bytes], n_wanted: int | None) -> Iterable[Table]:
    reader = _READERS.get(source.ending)
    if reader is not None:
        if source.header is not None:
            raise TextError(
                f"{source.name} names its columns itself, so no header line can be chosen for it."
            )
        return reader(source.name, file, n_wanted)
    if source.ending == ".xlsx":
        return [read_excel(source.name, file, n_wanted, source.header)]
    return read_delimited(source.name, file, n_wanted, source.header)


def _drop_rows(name: str, table: Table, places: Collection[int], reason: str) -> Table:
    if not places:
        return table
    kept = [place for place in range(len(table)) if place not in places]
    return replace(
        table,
        values=tuple([values[place] for place in kept] for values in table.values),
        lines=[table.lines[place] for place in kept],
        notes=(*table.notes, f"Skipped {many(len(places), 'row')} of {name} {reason}."),
    )


def _drop_repeated_headers(name: str, table: Table) -> Table:
    if not table.header or len(table.columns) < 2:
        return table
    rows = enumerate(zip(*table.values, strict=True))
    places = {place: table.lines[place] for place, row in rows if row == table.columns}
    lines = name_lines(list(places.values()), table.unit)
    return _drop_rows(name, table, places, f"like the header ({lines})")


def _drop_descriptions(name: str, table: Table) -> Table:
    """A table without the rows in which Qualtrics and SurveyMonkey describe columns."""
    if not table.header:
        return table
    rows = [[values[place] for values in table.values] for place in range(min(20, len(table)))]
    n = 0
    for place, row in enumerate(rows[:2], 1):
        if any(cell.startswith('{"ImportId"') for cell in row):
            n = place
    if not n and len(rows) > 1:
        n = int(not rows[0][0].strip() and not _ANSWERS.isdisjoint(rows[0]))
    description = describe_row(rows[0]) if n else ""
    return _drop_rows(name, table, range(n), f"with descriptions of its columns: {description}")


def limit_rows(name: str, table: Table, max_rows: int | None) -> Table:
    if max_rows is None or len(table) <= max_rows:
        return table
    note = f"Limited to the first {many(max_rows, 'row')} of {name}."
    return replace(table.first(max_rows), notes=(*table.notes, note))
