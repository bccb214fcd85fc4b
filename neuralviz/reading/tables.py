"""Read tables from CSV, TSV, JSON, JSON lines, Parquet, Arrow and Excel files.

Files are streamed, but JSON and Excel must be read whole and are limited. Nothing in a file is run
or fetched.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

import openpyxl
from openpyxl.utils.escape import unescape

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import is_saved_data_set, read_arrow, read_parquet, read_saved
from neuralviz.reading.delimited import read_delimited, restore_cells
from neuralviz.reading.source import Source, TextLines
from neuralviz.reading.table import (
    LOOKED_AT,
    MAX_COLUMNS,
    Table,
    TableBuilder,
    cell_text,
    column_names,
    describe_row,
    drop_vectors,
    find_header,
    is_usual_name,
    join_tables,
    name_columns,
    rate_texts,
)
from neuralviz.words import free_name, joined, many, name_lines

_ANSWERS = {"Response", "Open-Ended Response"}  # below the questions of SurveyMonkey


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
    readers = {
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".json": read_json,
        ".parquet": read_parquet,
        ".arrow": read_arrow,
        ".feather": read_arrow,
    }
    if reader := readers.get(source.ending):
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


MAX_WHOLE = 1 << 28  # bytes of a JSON file
SPLITS = "train training dev development validation valid val eval test testing".split()
_ROWS_AT_ONCE = 10_000
_MOST_DIGITS = 1000  # of whole numbers that are read as such
_FRAME = {"columns", "index", "data", "name", "index_names", "column_names"}  # keys of pandas
_GAP = re.compile(r"[\s,]*+")  # between JSON objects
_TEXT_KEYS = ("text", "content", "body", "document", "abstract", "full_text")  # names of a text
_INNER = ("row", "_source", "tweet", "data", "fields", "properties")  # what has the fields of a row
_NAMED = 6  # lists in a message
_ADVICE = "Save the rows as a list of objects, one a row, with a key for each column."


def read_json_lines(name: str, file: IO[bytes], n_wanted: int | None = None) -> Iterator[Table]:
    """Read an object or a text per line; a file with one JSON value is read by `read_json`."""
    lines = TextLines(name, file)
    first = next(iter(_take_first_lines(lines)), "")
    if first.startswith("[") or first == "{":
        with suppress(ValueError, RecursionError):
            yield _build_table(name, _read_whole(name, file, lines), lines.notes, n_wanted)
            return
    builder = TableBuilder(name, "line")
    with closing(iter(lines)) as numbered:
        for number, line in numbered:
            if line and not line.isspace():
                for row in _parse_line(line):
                    builder.add(number, row)
            if n_wanted is not None and builder.n_rows >= n_wanted:
                break
            if len(builder) >= _ROWS_AT_ONCE:
                yield builder.take()
    yield builder.finish("not a JSON object", lines.notes)


def read_json(name: str, file: IO[bytes], n_wanted: int | None = None) -> Iterator[Table]:
    """Read the rows of `find_rows`, or JSON lines in a file named ``.json``."""
    lines = TextLines(name, file)
    try:
        content = _read_whole(name, file, lines)
    except RecursionError as error:
        raise TextError(f"{name} is nested too deeply to be read as a table.") from error
    except ValueError as error:
        first_lines = _take_first_lines(lines)
        if len(first_lines) > 1 and isinstance(_parse_line(first_lines[0])[0], dict | str):
            yield from read_json_lines(name, file, n_wanted)
            return
        place = f" in line {error.lineno:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise TextError(
            f"{name} is not valid JSON: it is incomplete or has an error{place}."
        ) from error
    yield _build_table(name, content, lines.notes, n_wanted)


# --- JSON ----------------------------------------------------------------------------------------


def _take_first_lines(lines: TextLines) -> list[str]:
    with closing(iter(lines)) as numbered:
        return list(islice((line.strip() for _, line in numbered if line.strip()), 2))


def _read_whole(name: str, file: IO[bytes], lines: TextLines) -> Any:
    """A file's JSON value, or list of objects."""
    if file.seek(0, io.SEEK_END) > MAX_WHOLE:
        raise TextError(
            f"{name} is larger than {MAX_WHOLE:,} bytes. Save it as JSON Lines (.jsonl), "
            "which is read line by line."
        )
    values = _parse_values(lines.read())
    return values[0] if len(values) == 1 else values


def _parse_line(line: str) -> list[Any]:
    with suppress(ValueError, RecursionError):
        return _parse_values(line)
    return [[]]


def _parse_values(text: str) -> list[Any]:
    """The JSON value, or objects parted by blanks or commas."""
    values: list[Any] = []
    decoder, place = json.JSONDecoder(parse_int=_parse_whole), next(_GAP.finditer(text)).end()
    while place < len(text):
        start = place
        value, place = decoder.raw_decode(text, start)
        values.append(value)
        if len(values) > 1 and not (isinstance(values[0], dict) and isinstance(value, dict)):
            raise json.JSONDecodeError("Extra data", text, start)
        place = next(_GAP.finditer(text, place)).end()
    if not values:
        raise ValueError("no value")
    return values


def _parse_whole(digits: str) -> int | str:
    """A whole number; text if Python refuses to convert so many digits."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


# --- shapes of JSON ------------------------------------------------------------------------------


def _build_table(name: str, content: Any, notes: tuple[str, ...], n_wanted: int | None) -> Table:
    all_notes: list[str] = [*notes]
    rows = _name_cells(
        name, _unwrap_rows(name, find_rows(name, content, all_notes), all_notes), all_notes
    )
    builder = TableBuilder(name, "row")
    for number, row in enumerate(rows, 1):
        builder.add(number, row)
        if n_wanted is not None and builder.n_rows >= n_wanted:
            break
    return builder.finish("neither an object nor a string", tuple(all_notes))


def find_rows(name: str, content: Any, notes: list[str]) -> list[Any]:
    """The rows of a JSON value; adds notes on its lists. Ambiguous values are refused."""
    # a list of rows, a pandas data frame (orient split, columns, index, table), splits such as
    # train and test, columns of one length, texts by label, or one such list beside other values
    if isinstance(content, list):
        return content
    parts = content if isinstance(content, dict) else {}
    lists = {key: value for key, value in parts.items() if isinstance(value, list)}
    has_text = any(isinstance(v, str) and key.lower() in _TEXT_KEYS for key, v in parts.items())
    splits = {
        key: value
        for key, value in parts.items()
        if key.lower() in SPLITS and isinstance(value, list | dict)
    }
    if len(splits) > 1 and lists.keys() <= splits.keys():
        return _join_splits(name, splits, notes)
    if {"columns", "data"} <= parts.keys() <= _FRAME and not _has_objects(lists.get("data")):
        return _read_split_frame(name, parts)
    envelopes = [key for key, value in parts.items() if _is_envelope(key, value)]
    if len(envelopes) == 1 and not any(map(_has_objects, lists.values())):
        notes.append(f"The rows of {name} are those in “{envelopes[0][:40]}”.")
        return find_rows(name, parts[envelopes[0]], notes)
    if parts and all(isinstance(value, dict) and value for value in parts.values()):
        return _read_frame_of_objects(name, parts)
    if "rows" in lists:
        lists.pop("features", None)  # of the viewer of the Hugging Face Hub: what its columns are
    with_objects = [rows for rows in lists.values() if _has_objects(rows)]
    if has_text or not lists or len(with_objects) > 1:
        _refuse(name, content)
    if with_objects:
        rows = with_objects[0]
        if all(isinstance(row, dict) and isinstance(row.get("paragraphs"), list) for row in rows):
            raise TextError(f"{name} has paragraphs in articles, as SQuAD has. {_ADVICE}")
        return rows
    if len(lists) == 1:
        key, values = next(iter(lists.items()))
        if _are_cells(values) and _names_cells(values) and len(values[0]) > 1:
            return values
        return [{key: value} for value in values]
    if len(lists) < len(parts):
        _refuse(name, content)
    return _read_lists(name, lists, notes)


def _has_objects(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(value, dict) for value in values)


def _is_envelope(key: str, value: Any) -> bool:
    """Whether an object wraps a list of rows, as servers answer, and is not a row."""
    if not isinstance(value, dict) or key.isdecimal():
        return False
    has_text = any(isinstance(v, str) and title.lower() in _TEXT_KEYS for title, v in value.items())
    return not has_text and sum(map(_has_objects, value.values())) == 1


def _unwrap_rows(name: str, rows: list[Any], notes: list[str]) -> list[Any]:
    """Rows unwrapped from a known field of each; adds a note."""
    for key in _INNER:
        if rows and all(isinstance(row, dict) and isinstance(row.get(key), dict) for row in rows):
            inner_rows = [row.pop(key) for row in rows]
            notes.append(f"The rows of {name} are those under “{key}”.")
            # a field of the row itself comes before one of the inner object
            return [row | inner | row for row, inner in zip(rows, inner_rows, strict=True)]
    return rows


def _are_cells(rows: Sequence[Any]) -> bool:
    if not rows or not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        return False
    kinds = {type(cell) for row in rows for cell in row}
    return str in kinds and not kinds & {list, dict}


def _names_cells(rows: Sequence[Sequence[Any]]) -> bool:
    header = find_header([list(map(cell_text, row)) for row in rows[:LOOKED_AT]])
    return header.place == 0 and header.is_clear


def _name_cells(name: str, rows: list[Any], notes: list[str]) -> list[Any]:
    """Turn rows that are lists into objects; adds a note on their names."""
    if not _are_cells(rows):
        return rows
    if _names_cells(rows):
        titles, rows = column_names(map(cell_text, rows[0])), rows[1:]
        note = f"The rows of {name} are lists; the first names the columns: {describe_row(titles)}."
    else:
        titles = name_columns(len(rows[0]))
        note = f"The rows of {name} are lists without names of columns, so these are numbered."
    notes.append(note)
    return [dict(zip(titles, row, strict=True)) for row in rows]


def _join_splits(name: str, splits: Mapping[str, Any], notes: list[str]) -> list[dict[str, Any]]:
    """The rows of all splits; a column names the split if more than one has rows."""
    if any(isinstance(value, dict) and value.keys() & splits for value in splits.values()):
        _refuse(name, splits)  # splits of splits
    rows_by_split: dict[str, list[dict[str, Any]]] = {}
    for split, value in splits.items():
        rows = find_rows(name, value, notes) if value else []
        if any(isinstance(row, list) for row in rows):
            _refuse(name, splits)
        rows_by_split[split] = [row if isinstance(row, dict) else {"text": row} for row in rows]
    counts = joined([f"“{split}” ({len(rows):,})" for split, rows in rows_by_split.items()])
    filled = {split: rows for split, rows in rows_by_split.items() if rows}
    if len(filled) < 2:
        notes.append(f"{name} has the splits {counts}.")
        return next(iter(filled.values()), [])
    keys = {str(key) for rows in filled.values() for row in rows for key in row}
    title = free_name("split", keys)
    notes.append(f"{name} has the splits {counts}. All are read; the column “{title}” says which.")
    return [{**row, title: split} for split, rows in filled.items() for row in rows]


def _read_split_frame(name: str, frame: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns, data = frame["columns"], frame["data"]
    are_lists = isinstance(columns, list) and isinstance(data, list)
    if not are_lists or any(not isinstance(row, list) or len(row) != len(columns) for row in data):
        _refuse(name, frame)
    titles = column_names(
        " ".join(map(str, title)) if isinstance(title, list) else str(title) for title in columns
    )
    return [dict(zip(titles, row, strict=True)) for row in data]


def _read_frame_of_objects(
    name: str, objects: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of an object of objects, each a column or a row."""
    first, *other_keys = (list(inner) for inner in objects.values())
    has_lists = any(
        isinstance(value, list) for inner in objects.values() for value in inner.values()
    )
    are_alike = all(set(inner) == set(first) for inner in other_keys)
    shared = set(first).intersection(*other_keys)
    are_rows, are_columns = _are_counted(objects), _are_counted(first)
    if are_rows == are_columns:  # names tell
        are_rows, are_columns = any(map(is_usual_name, shared)), any(map(is_usual_name, objects))
    if has_lists or are_rows == are_columns or (are_columns and not are_alike) or not shared:
        _refuse(name, objects)
    if are_columns:
        return [{title: column[row] for title, column in objects.items()} for row in first]
    if _are_counted(objects):
        return [dict(row) for row in objects.values()]
    title = free_name("id", {key for row in objects.values() for key in row})
    return [{title: key, **row} for key, row in objects.items()]


def _are_counted(keys: Iterable[str]) -> bool:
    return all(key.isdecimal() for key in keys)


def _read_lists(
    name: str, lists: Mapping[str, list[Any]], notes: list[str]
) -> list[dict[str, Any]]:
    """Rows of several lists: columns of one length, or texts by label."""
    has_one_length = len({len(values) for values in lists.values()}) == 1
    has_known = any(map(is_usual_name, lists))
    are_strings = all(isinstance(value, str) for values in lists.values() for value in values)
    are_alike = are_strings and len({rate_texts(values) for values in lists.values() if values}) < 2
    if has_one_length and (has_known or not are_alike):
        columns = zip(*lists.values(), strict=True)
        return [dict(zip(lists, row, strict=True)) for row in columns]
    if has_one_length or has_known or not are_strings:
        _refuse(name, lists)
    notes.append(
        f"{name} has a list of texts for each label: {_describe_lists(lists)}. The names of the "
        "lists are in the column “label”."
    )
    return [{"text": text, "label": key} for key, texts in lists.items() for text in texts]


def _describe_lists(lists: Mapping[str, Sequence[Any]]) -> str:
    names = [f"“{key[:40]}” ({many(len(values), 'value')})" for key, values in lists.items()]
    return joined(names[:_NAMED]) + " …" * (len(names) > _NAMED)


def _refuse(name: str, content: Any) -> NoReturn:
    parts = content if isinstance(content, Mapping) else {}
    lists: dict[str, Any] = {key: v for key, v in parts.items() if isinstance(v, list | dict)}
    reason = "there is no list in it"
    if lists:
        reason = f"it has {_describe_lists(lists)}, of which the rows are unclear"
    raise TextError(f"{name} does not contain a table: {reason}. {_ADVICE}")


# --- Excel ---------------------------------------------------------------------------------------

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
