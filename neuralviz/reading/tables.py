"""Tables of texts from files: CSV, TSV, JSON, JSON lines, parquet, Excel.

A broken row is named by its line and left out, and the others are kept. That decides who reads
delimited text. DuckDB counts rows where it should name lines (of a text with line breaks it knows
one), drops without a word all that follows a quotation mark which is never closed, and refuses
files that mix ends of lines. pyarrow hands over the rows that have too many or too few fields, but
takes an open quotation mark to the next one wherever it stands. So ``_records`` finds where a row
begins and ends, and whether its quotation marks match; ``pyarrow.csv`` splits rows into fields.

Files are read as they come, so that no more of them is in memory than the rows that are kept and a
buffer; JSON and Excel workbooks have to be read whole and are therefore limited. Nothing that a
file holds is run or fetched.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import chain, compress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from neuralviz.errors import TextError
from neuralviz.reading.lines import TextLines, opened, tidy
from neuralviz.words import count, name_lines

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
MAX_CHARACTERS = 1_000_000  # of a text
MAX_COLUMNS = 2_000
MAX_RECORD = 1 << 24  # characters up to which a closing quotation mark is looked for
MAX_WHOLE = 1 << 28  # bytes of a JSON file
MAX_WORKBOOK = 1 << 30  # bytes of an Excel workbook, unpacked

_ONE_COLUMN = "\x1f"  # the separator of a table of one column, in which commas are text
_VECTOR = 16  # a list of more numbers than this is no label
_BUFFER = 1 << 22  # characters of delimited text that are split at once
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Table:
    """What a file holds that has columns.

    Attributes:
        columns: a name for every column, no two alike; none when the file holds nothing.
        values: [column][row] of the rows that are not blank; what is missing is ``""``, and what
            is longer than ``MAX_CHARACTERS`` is cut one character after it.
        lines: where in the file each row begins: its line, or its number among the rows.
        notes: sentences on what was left out or guessed.
        unit: what ``lines`` counts, ``line`` or ``row``.
    """

    columns: tuple[str, ...]
    values: tuple[Sequence[str], ...]
    lines: Sequence[int]
    notes: tuple[str, ...] = ()
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> Sequence[str]:
        """The values of a column, one a row."""
        return self.values[self.columns.index(name)]

    def first(self, n: int) -> Table:
        """The same with the first ``n`` rows alone."""
        values = tuple(values[:n] for values in self.values)
        return replace(self, values=values, lines=self.lines[:n])


def is_table(name: str) -> bool:
    """Whether a file of this name is read as a table."""
    return name.lower().endswith(TABLES)


def read_table(name: str, content: bytes | Path, *, max_rows: int | None = None) -> Table:
    """Read a table by the ending of its name; one of none of ``TABLES`` is read as CSV.

    Values become text as a person would write them: 1.0 is ``1``, a date ``2024-05-01``, a nested
    value JSON. Columns of binary data and of lists of many numbers are left out.

    - Delimited text: comma, semicolon, tab or bar, whichever the first line has most of; fields may
      be missing at the end of a row. Line breaks in a field become ``\\n``.
    - JSON lines: an object a line, or a text a line, which goes to the column ``text``.
    - JSON: a list of objects, a list of texts, an object of lists, or one with such a list in it.
    - Excel: the first sheet that has cells.

    Args:
        name: file name; its ending counts, and messages have it.
        content: the file, or where it is.
        max_rows: stop after so many rows, with a note; by default all are read.

    Raises:
        TextError: the file cannot be read, holds no such table, or is too large for its kind.
    """
    ending = name.lower().rpartition(".")[2]
    reader = _READERS.get(ending, _read_delimited)
    with opened(name, content) as file:
        table = reader(name, file, max_rows)
    if max_rows is None or len(table) <= max_rows:
        return table
    note = f"Only the first {count(max_rows, 'row')} read of {name}; there are more."
    return replace(table.first(max_rows), notes=(*table.notes, note))


# --- delimited text ------------------------------------------------------------------------------

_ADVICE = "write one that is part of a text twice, and the text in quotation marks."


def _read_delimited(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        first = next(((at, line) for at, line in numbered if line.strip()), None)
        if first is None:
            return Table((), (), (), lines.notes)
        outside = re.sub('"[^"]*"', "", first[1])
        separator = max(",;\t|", key=outside.count)
        rows: Iterator[tuple[int, str]] = chain([first], numbered)
        if separator not in outside:
            separator = _ONE_COLUMN
            rows = ((at, line.replace(separator, " ")) for at, line in rows)
        table = _read_records(name, rows, separator, max_rows)
    return replace(table, notes=lines.notes + table.notes)


def _read_records(
    name: str, lines: Iterator[tuple[int, str]], separator: str, max_rows: int | None
) -> Table:
    """The table in some lines, of which the first names the columns.

    Raises:
        TextError: no row can be used for its quotation marks or the number of its fields.
    """
    unmatched: list[int] = []
    records = _records(lines, separator, unmatched)
    header = next(records, None)
    broken = f"{name} is not a table that can be read:"
    if header is None or unmatched:
        line = unmatched[0]
        raise TextError(
            f"{broken} the quotation marks from line {line:,} on do not match; {_ADVICE}"
        )
    titles = _split([header[1]], separator)
    _check_width(name, len(titles))
    columns = _column_names([values[0] for values in titles])
    table: tuple[list[str], ...] = tuple([] for _ in columns)
    kept: list[int] = []
    too_long: list[int] = []
    for batch in _batches(records, None if max_rows is None else max_rows + 1):
        fields, at, wrong = _fields([record for _, record in batch], len(columns), separator)
        for values, column in zip(table, fields, strict=True):
            values += [value[: MAX_CHARACTERS + 1] for value in column]
        kept += [batch[place][0] for place in at]
        too_long += [batch[place][0] for place in wrong]
        if max_rows is not None and len(kept) > max_rows:
            break
    advice = f"put texts that contain “{separator}” in quotation marks."
    notes = []
    if unmatched:
        notes.append(
            f"{count(len(unmatched), 'row')} left out because the quotation marks from "
            f"{name_lines(unmatched)} on do not match; {_ADVICE}"
        )
    if too_long:
        notes.append(
            f"{count(len(too_long), 'row')} left out for more fields than the first line has "
            f"({name_lines(too_long)}); {advice}"
        )
    if too_long and not kept:
        raise TextError(f"{broken} its rows have more fields than its first line; {advice}")
    if unmatched and not kept:
        raise TextError(f"{broken} {notes[0]}")
    return Table(columns, table, kept, tuple(notes))


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
    records: Iterable[tuple[int, str]], first: int | None
) -> Iterator[list[tuple[int, str]]]:
    """Records in portions that are split at once; the first few early, if few are wanted."""
    batch: list[tuple[int, str]] = []
    size, wanted = 0, first
    for record in records:
        batch.append(record)
        size += len(record[1])
        if size > _BUFFER or len(batch) == wanted:
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
    import pyarrow as pa
    from pyarrow import csv

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


def _column_names(titles: Iterable[str]) -> tuple[str, ...]:
    """A name for every column, no two alike."""
    names: list[str] = []
    taken: set[str] = set()
    for number, title in enumerate(titles, 1):
        name = tidy(title) or f"column {number}"
        while name in taken:
            name = f"{name} ({number})"
        names.append(name)
        taken.add(name)
    return tuple(names)


def _check_width(name: str, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TextError(
            f"{name} has more than {MAX_COLUMNS:,} columns; keep those of texts and labels."
        )


# --- objects: JSON lines, JSON, parquet ----------------------------------------------------------


class _Objects:
    """Rows that come with the names of their columns, put together into a table."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit
        self.columns: dict[str, list[str]] = {}
        self.lines: list[int] = []
        self.wrong: list[int] = []
        self.vectors: set[str] = set()

    def add(self, line: int, row: Any) -> None:
        """Add an object, or a text of its own; what is neither is left out and named."""
        if isinstance(row, list):
            self.wrong.append(line)
            return
        if not isinstance(row, Mapping):
            row = {"text": row}
        written: dict[str, str] = {}
        for key, value in row.items():
            column = tidy(str(key)) or "column"
            if _is_vector(value):
                self.vectors.add(column)
            else:
                written[column] = _written(value)[: MAX_CHARACTERS + 1]
        if not any(map(str.strip, written.values())):
            return
        for column, value in written.items():
            if column not in self.columns:
                self.columns[column] = [""] * len(self.lines)
                _check_width(self.name, len(self.columns))
            self.columns[column].append(value)
        self.lines.append(line)
        if len(written) < len(self.columns):
            for column in self.columns.keys() - written.keys():
                self.columns[column].append("")

    def table(self, why: str, notes: tuple[str, ...] = ()) -> Table:
        """All rows; ``why`` is what is said of those that were left out."""
        if self.wrong:
            where = name_lines(self.wrong, self.unit)
            said = f"{count(len(self.wrong), self.unit)} left out for {why} ({where})."
            if not self.lines:
                raise TextError(f"{self.name} is not a table that can be read: {said}")
            notes += (said,)
        notes += tuple(_left_out(column, "lists of numbers") for column in sorted(self.vectors))
        return Table(
            tuple(self.columns), tuple(self.columns.values()), self.lines, notes, self.unit
        )


def _left_out(column: str, kind: str) -> str:
    return f"The {kind} in the column “{column[:40]}” were left out."


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > _VECTOR
        and all(isinstance(number, int | float) for number in value)
    )


def _written(value: Any) -> str:
    """A value as a person would write it."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # NaN alone is not itself
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_written)
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def _read_json_lines(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    lines, objects = TextLines(name, file), _Objects(name, "line")
    with closing(iter(lines)) as numbered:
        for number, line in numbered:
            if not line or line.isspace():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                objects.wrong.append(number)
                continue
            objects.add(number, row)
            if max_rows is not None and len(objects.lines) > max_rows:
                break
    return objects.table("holding no JSON object of one line", lines.notes)


def _read_json(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    lines = TextLines(name, file)
    if file.seek(0, io.SEEK_END) > MAX_WHOLE:
        raise TextError(
            f"{name} is larger than {MAX_WHOLE:,} bytes; save it as JSON lines (.jsonl), which are "
            "read one by one."
        )
    text = lines.read()
    try:
        rows = _rows_of(name, json.loads(text))
    except RecursionError as error:
        raise TextError(f"{name} is nested too deeply to be a table of texts.") from error
    except ValueError as error:
        if _starts_with_object(text):  # JSON lines with the ending of JSON
            return _read_json_lines(name, file, max_rows)
        where = f" in line {error.lineno:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise TextError(
            f"{name} is not JSON that can be read: it breaks off or errs{where}."
        ) from error
    objects = _Objects(name, "row")
    for number, row in enumerate(rows, 1):
        objects.add(number, row)
        if max_rows is not None and len(objects.lines) > max_rows:
            break
    return objects.table("being neither objects nor texts", lines.notes)


def _starts_with_object(text: str) -> bool:
    first = text.lstrip().split("\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _rows_of(name: str, found: Any) -> Iterable[Any]:
    """The rows in what a JSON file holds.

    Raises:
        TextError: there are none.
    """
    if isinstance(found, list):
        return found
    parts = found if isinstance(found, dict) else {}
    lists = {key: value for key, value in parts.items() if isinstance(value, list)}
    of_objects = [value for value in lists.values() if any(isinstance(row, dict) for row in value)]
    if len(of_objects) == 1:
        return of_objects[0]
    same_length = len({len(value) for value in lists.values()}) == 1
    if lists and len(lists) == len(parts) and same_length:
        return (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
    if len(lists) == 1:
        key, values = next(iter(lists.items()))
        return ({key: value} for value in values)
    raise TextError(
        f"{name} holds no table that can be read: it has to be a list of objects or of texts, an "
        "object of lists of the same length, or an object with one such list in it."
    )


def _read_parquet(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        source = parquet.ParquetFile(file, pre_buffer=False)
        schema = source.schema_arrow
        _check_width(name, len(schema.names))
        kinds = [_unwanted(field.type) for field in schema]
        columns = [column for column, kind in zip(schema.names, kinds, strict=True) if not kind]
        notes = tuple(
            _left_out(column, kind)
            for column, kind in zip(schema.names, kinds, strict=True)
            if kind
        )
        objects, number = _Objects(name, "row"), 0
        at_once = _ROWS_AT_ONCE if max_rows is None else min(_ROWS_AT_ONCE, max_rows + 1)
        for batch in source.iter_batches(at_once, columns=columns) if columns else ():
            names = _column_names(batch.schema.names)
            for row in zip(*map(_values, batch.columns), strict=True):
                number += 1
                objects.add(number, dict(zip(names, row, strict=True)))
            if max_rows is not None and len(objects.lines) > max_rows:
                break
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise TextError(
            f"{name} is not a parquet file that can be read, or it is damaged."
        ) from error
    return objects.table("", notes)


def _unwanted(kind: pa.DataType) -> str:
    """What is in a column that holds no labels; empty if it may."""
    from pyarrow import types

    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "binary data"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "lists of numbers" if types.is_floating(kind.value_type) else ""
    return ""


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; numbers of few digits have no more."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


# --- Excel ---------------------------------------------------------------------------------------

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00")
_NO_DAY = re.compile(r"1899-12-3[01] (\d\d:\d\d:\d\d)")


def _read_excel(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    import fastexcel

    damaged = f"{name} is not an Excel workbook (.xlsx) that can be read, or it is damaged."
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise TextError(damaged) from error
    if unpacked > MAX_WORKBOOK:
        raise TextError(f"{name} is larger than 1 GB, unpacked; save it as CSV.")
    file.seek(0)
    rows: list[tuple[str, ...]] = []
    sheet = ""
    try:
        workbook = fastexcel.read_excel(file.read())
        for sheet in workbook.sheet_names:
            cells = workbook.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string")
            if cells.height:
                columns = [map(_cell, column.to_pylist()) for column in cells.to_arrow().columns]
                rows = list(zip(*columns, strict=True))
                break
    except fastexcel.FastExcelError as error:
        raise TextError(damaged) from error
    filled = [(at, row) for at, row in enumerate(rows, 1) if any(map(str.strip, row))]
    if not filled:
        return Table((), (), (), unit="row")
    _check_width(name, len(filled[0][1]))
    names = _column_names(filled[0][1])
    lines = [at for at, _ in filled[1:]]
    values = tuple([row[place] for _, row in filled[1:]] for place in range(len(names)))
    notes: tuple[str, ...] = ()
    if len(workbook.sheet_names) > 1:
        notes = (f"{name} has {len(workbook.sheet_names)} sheets; “{sheet}” was read.",)
    return Table(names, values, lines, notes, "row")


def _cell(value: str | None) -> str:
    """A cell as text: dates without midnight, times without a day, blanks as nothing."""
    if value is None or not value.strip():
        return ""
    match = _MIDNIGHT.fullmatch(value) or _NO_DAY.fullmatch(value)
    return match[1] if match else value  # at most 32,767 characters


_READERS: dict[str, Callable[[str, IO[bytes], int | None], Table]] = {
    "jsonl": _read_json_lines,
    "ndjson": _read_json_lines,
    "json": _read_json,
    "parquet": _read_parquet,
    "xlsx": _read_excel,
}
