"""Tables of texts from files: CSV, TSV, JSON, JSON lines, Parquet, Arrow, Excel.

Files are read as they come, so that no more of them is in memory than the rows that are kept and a
buffer; JSON and Excel workbooks have to be read whole and are therefore limited. Nothing that a
file holds is run or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import is_saved_data_set, read_arrow, read_parquet, read_saved
from neuralviz.reading.columns import guess_column, names_columns
from neuralviz.reading.delimited import read_delimited, restore_cells
from neuralviz.reading.excel_tables import read_excel
from neuralviz.reading.json_tables import read_json, read_json_lines
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table, describe_row, drop_vectors, join_tables
from neuralviz.words import many, name_lines

_ANSWERS = {"Response", "Open-Ended Response"}  # below the questions of SurveyMonkey
_LONGEST_FOOTER = 3  # rows
_REMARK = re.compile(
    r"(sources?|quellen?|notes?|remarks?|(grand )?total)\s*([:.]|$)|[*†‡©]|\(c\)", re.IGNORECASE
)
_READERS: dict[str, Callable[[str, IO[bytes], int | None], Iterator[Table]]] = {
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

    Rows beyond ``max_rows`` are left out, with a note.

    Raises:
        TextError: the file cannot be read, holds no such table, or is too large for its kind.
    """
    name = source.name
    n_wanted = None if max_rows is None else max_rows + 1
    if isinstance(source.content, Path) and is_saved_data_set(source.content):
        try:
            table = join_tables(name, read_saved(name, source.content, n_wanted))
        except OSError as error:
            raise TextError(f"Could not read {name}: {error.strerror or error}.") from error
        return _limit_rows(name, table, max_rows)
    with source.opened() as file:
        table = join_tables(name, _read_blocks(source, file, n_wanted))
    table = _drop_descriptions(name, _drop_repeated_headers(name, restore_cells(table)))
    return _limit_rows(name, drop_vectors(_drop_footer(name, table)), max_rows)


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


def _drop_rows(table: Table, places: Container[int], note: str) -> Table:
    """A table without the rows at some places, and a note on them."""
    kept = [place for place in range(len(table)) if place not in places]
    return replace(
        table,
        values=tuple([values[place] for place in kept] for values in table.values),
        lines=[table.lines[place] for place in kept],
        notes=(*table.notes, note),
    )


def _drop_repeated_headers(name: str, table: Table) -> Table:
    """A table without rows that repeat its header, as in files that were put together."""
    if not table.header or len(table.columns) < 2:
        return table
    places = [
        place
        for place, title in enumerate(table.values[0])
        if title == table.columns[0]
        and tuple(values[place] for values in table.values) == table.columns
    ]
    if not places:
        return table
    place_names = name_lines([table.lines[place] for place in places], table.unit)
    verb = "repeats" if len(places) == 1 else "repeat"
    note = f"Skipped {many(len(places), 'row')} of {name} that {verb} the header ({place_names})."
    return _drop_rows(table, set(places), note)


def _drop_descriptions(name: str, table: Table) -> Table:
    """A table without the rows in which Qualtrics and SurveyMonkey describe their columns.

    Below columns of two levels, as pandas writes them, this is the row of the second one.
    """
    if not table.header:
        return table
    rows = [[values[place] for values in table.values] for place in range(min(20, len(table)))]
    n = 0
    for place, row in enumerate(rows[:2], 1):
        if any(cell.startswith('{"ImportId"') for cell in row):
            n = place
    if not n and len(rows) > 1:
        is_of_survey = not rows[0][0].strip() and not _ANSWERS.isdisjoint(rows[0])
        n = int(is_of_survey or (_has_repeated(table.columns) and names_columns(rows)))
    if not n:
        return table
    verb = "describes" if n == 1 else "describe"
    note = (
        f"Skipped {many(n, 'row')} below the header of {name} that {verb} its columns: "
        f"{describe_row(rows[0])}."
    )
    return _drop_rows(table, range(n), note)


def _drop_footer(name: str, table: Table) -> Table:
    """A table without the sources and remarks below it: a blank line, then first cells alone.

    Where the first cells are its texts, or one is no remark, all rows stay.
    """
    if not table.header or not len(table) or any(values[-1].strip() for values in table.values[1:]):
        return table
    others = [any(map(str.strip, row)) for row in zip(*table.values[1:], strict=True)]
    n = len(others)
    while n and not others[n - 1]:
        n -= 1
    if not 0 < n < len(others) <= n + _LONGEST_FOOTER or not all(others[:n]):
        return table
    breaks = (values[n - 1].count("\n") for values in table.values)
    n_breaks = sum(breaks) if table.unit == "line" else 0
    if table.lines[n] - table.lines[n - 1] - n_breaks < 2:  # no blank line between
        return table
    if not _are_remarks(table.values[0], n) or _begins_with_texts(name, table.first(n)):
        return table
    n_left_out = len(table) - n
    note = (
        f"Skipped {many(n_left_out, 'row')} below the table in {name}: “{table.values[0][n][:60]}”."
    )
    return _drop_rows(table, range(n, len(table)), note)


def _are_remarks(cells: Sequence[str], start: int) -> bool:
    """Whether cells from a place on begin as remarks do, or are longer sentences than those above.

    A sentence has three words.
    """
    longest = max(map(len, cells[:start]))
    return all(
        _REMARK.match(cell.strip()) or (len(cell) > longest and len(cell.split()) > 2)
        for cell in cells[start:]
    )


def _begins_with_texts(name: str, table: Table) -> bool:
    """Whether the first column is the one that is read as texts; also where none is."""
    try:
        return guess_column(name, table) == table.columns[0]
    except TextError:
        return True


def _has_repeated(columns: Sequence[str]) -> bool:
    """Whether a name came again in the header, so that `column_names` added its number."""
    return any(
        title.endswith(f" ({n})") and title.removesuffix(f" ({n})") in columns
        for n, title in enumerate(columns, 1)
    )


def _limit_rows(name: str, table: Table, max_rows: int | None) -> Table:
    """The first rows, and a note where there are more."""
    if max_rows is None or len(table) <= max_rows:
        return table
    note = f"Limited to the first {many(max_rows, 'row')} of {name}."
    return replace(table.first(max_rows), notes=(*table.notes, note))
