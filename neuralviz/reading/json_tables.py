"""JSON and JSON lines as tables."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import IO, Any, NoReturn

from neuralviz.errors import TextError
from neuralviz.reading.cells import cell_text
from neuralviz.reading.headers import (
    LOOKED_AT,
    describe_row,
    find_header,
    is_usual_name,
)
from neuralviz.reading.lines import TextLines
from neuralviz.reading.table import Table, TableBuilder, column_names, name_columns
from neuralviz.reading.text_columns import rate_texts
from neuralviz.words import free_name, joined, many

MAX_WHOLE = 1 << 28  # bytes of a JSON file
_WRONG = "not a JSON object"
_MOST_DIGITS = 1000  # of whole numbers that are read as such
SPLITS = (
    *("train", "training", "dev", "development", "validation", "valid", "val", "eval"),
    *("test", "testing"),
)
_OF_A_FRAME = {"columns", "index", "data", "name", "index_names", "column_names"}  # of pandas
_BETWEEN = re.compile(r"[\s,]*+")  # JSON objects
_SHOWN = 40  # characters
_OWN = ("text", "content", "body", "document", "abstract", "full_text")  # names of a text
_INNER = ("row", "_source", "tweet", "data", "fields", "properties")  # what has the fields of a row
_NAMED = 6  # lists in a message


def read_json_lines(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    """An object or a text a line; a file that holds one JSON value is read as `read_json` does."""
    if _holds_one_value(name, file):
        with suppress(ValueError, RecursionError):
            return _build_table(name, *_read_whole(name, file, MAX_WHOLE), max_rows)
    lines, objects = TextLines(name, file), TableBuilder(name, "line")
    objects.add_all(_numbered_rows(lines), max_rows)
    return objects.table(_WRONG, lines.notes)


def read_json_lines_blocks(name: str, file: IO[bytes], rows: int) -> Iterator[Table]:
    """The same piece by piece, ``rows`` at once; a broken line is named with those beside it.

    Raises:
        TextError: as it is read: the file is not text, or is one JSON value of several lines.
    """
    if _holds_one_value(name, file):
        raise TextError(f"{name} does not have a JSON object a line. Save it as JSON Lines.")
    lines, objects = TextLines(name, file), TableBuilder(name, "line", is_part=True)
    for number, row in _numbered_rows(lines):
        objects.add(number, row)
        if len(objects.lines) + len(objects.wrong) >= rows:
            yield objects.table(_WRONG)
            objects = TableBuilder(name, "line", is_part=True)
    yield objects.table(_WRONG, lines.notes)


def _numbered_rows(lines: TextLines) -> Iterator[tuple[int, Any]]:
    """What each line holds, with its number; a list, which is no row, where it is no JSON."""
    with closing(iter(lines)) as numbered:
        for number, line in numbered:
            if line and not line.isspace():
                for row in _parse_line(line):
                    yield number, row


def _parse_line(line: str) -> list[Any]:
    """What a line holds: one value, or objects one after the other; a list for no JSON."""
    with suppress(ValueError, RecursionError):
        return [_parse(line)]
    with suppress(ValueError, RecursionError):
        return _parse_objects(line)
    return [[]]


def read_json(
    name: str, file: IO[bytes], max_rows: int | None, max_bytes: int = MAX_WHOLE
) -> Table:
    """The rows that `find_rows` finds; JSON lines with the ending of JSON are read as such."""
    try:
        content, notes = _read_whole(name, file, max_bytes)
    except RecursionError as error:
        raise TextError(f"{name} is nested too deeply to be read as a table.") from error
    except ValueError as error:
        if _starts_with_row(name, file):
            return read_json_lines(name, file, max_rows)
        place = f" in line {error.lineno:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise TextError(
            f"{name} is not valid JSON: it is incomplete or has an error{place}."
        ) from error
    return _build_table(name, content, notes, max_rows)


def _read_whole(name: str, file: IO[bytes], max_bytes: int) -> tuple[Any, tuple[str, ...]]:
    """The JSON value of a file, and notes on its encoding.

    Raises:
        TextError: it is too large.
        ValueError, RecursionError: it is none.
    """
    lines = TextLines(name, file)
    if file.seek(0, io.SEEK_END) > max_bytes:
        raise TextError(
            f"{name} is larger than {max_bytes:,} bytes. Save it as JSON Lines (.jsonl), "
            "which is read line by line."
        )
    text = lines.read()
    try:
        return _parse(text), lines.notes
    except ValueError:
        if not text.lstrip().startswith("{") or _starts_with_row(name, file):
            raise
    return _parse_objects(text), lines.notes


def _build_table(name: str, content: Any, notes: tuple[str, ...], max_rows: int | None) -> Table:
    objects = TableBuilder(name, "row")
    rows, shape_notes = find_rows(name, content)
    rows, inner_notes = _unwrap_rows(name, list(rows))
    rows, cell_notes = _read_cells(name, rows)
    shape_notes += (*inner_notes, *cell_notes)
    objects.add_all(enumerate(rows, 1), max_rows)
    return objects.table("neither an object nor a string", notes + shape_notes)


def _parse(text: str) -> Any:
    """What a JSON text holds; whole numbers of more digits than Python reads stay as they are."""
    return json.loads(text, parse_int=_parse_whole)


def _parse_objects(text: str) -> list[Any]:
    """The objects that follow each other in a text, with blanks or commas between.

    Raises:
        ValueError, RecursionError: something else is in it.
    """
    objects: list[Any] = []
    decoder, place = json.JSONDecoder(parse_int=_parse_whole), _skip_between(text, 0)
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        if not isinstance(value, dict):
            raise ValueError(text[:_SHOWN])
        objects.append(value)
        place = _skip_between(text, place)
    return objects


def _skip_between(text: str, place: int) -> int:
    between = _BETWEEN.match(text, place)
    return between.end() if between else place


def _parse_whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _holds_one_value(name: str, file: IO[bytes]) -> bool:
    """Whether the first line begins a list, or an object of several lines."""
    first = _first_line(name, file)
    return first[:1] == "[" or first == "{"


def _starts_with_row(name: str, file: IO[bytes]) -> bool:
    """Whether the first line is an object or a string."""
    try:
        return isinstance(_parse(_first_line(name, file)), dict | str)
    except (ValueError, RecursionError):
        return False


def _first_line(name: str, file: IO[bytes]) -> str:
    """The first line that is not blank."""
    with closing(iter(TextLines(name, file))) as numbered:
        return next((line.strip() for _, line in numbered if line and not line.isspace()), "")


def find_rows(name: str, content: Any) -> tuple[Iterable[Any], tuple[str, ...]]:
    """The rows in what a JSON file holds, and sentences on what was made of its lists.

    A list holds its rows. An object may be a data frame of pandas (``orient`` split, columns,
    index or table), articles of SQuAD, splits such as train and test, columns of equal length, the
    texts of each label, or one such list beside other values.

    Args:
        name: of the file.
        content: what it holds.

    Raises:
        TextError: it holds no table, or one that can be read in several ways.
    """
    if isinstance(content, list):
        return content, ()
    parts = content if isinstance(content, dict) else {}
    lists = {key: value for key, value in parts.items() if isinstance(value, list)}
    splits = {
        key: value
        for key, value in parts.items()
        if key.lower() in SPLITS and isinstance(value, list | dict)
    }
    if len(splits) > 1 and lists.keys() <= splits.keys():
        return _join_splits(name, splits)
    is_frame = {"columns", "data"} <= parts.keys() <= _OF_A_FRAME
    if is_frame and not any(isinstance(row, dict) for row in lists.get("data", ())):
        return _read_split_frame(name, parts), ()
    envelopes = [key for key, value in parts.items() if _is_envelope(key, value)]
    if len(envelopes) == 1 and not any(map(_holds_objects, lists.values())):
        rows, notes = find_rows(name, parts[envelopes[0]])
        return rows, (f"The rows of {name} are those in “{envelopes[0][:40]}”.", *notes)
    if parts and all(isinstance(value, dict) and value for value in parts.values()):
        return _read_frame_of_objects(name, parts), ()
    if "rows" in lists:
        lists.pop("features", None)  # of the viewer of the Hugging Face Hub: what its columns are
    of_objects = [rows for rows in lists.values() if any(isinstance(row, dict) for row in rows)]
    if len(of_objects) == 1 and not _has_text(parts):
        return _read_questions(name, of_objects[0])
    if of_objects or not lists or _has_text(parts):
        _refuse(name, content)
    if len(lists) == 1:
        key, values = next(iter(lists.items()))
        if _are_cells(values) and _names_cells(values) and len(values[0]) > 1:
            return values, ()
        return ({key: value} for value in values), ()
    if len(lists) < len(parts):
        _refuse(name, content)
    return _read_lists(name, lists)


def _holds_objects(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(value, dict) for value in values)


def _is_envelope(key: str, value: Any) -> bool:
    """Whether a part of an object is one with the list of rows, as servers answer, and no row."""
    if not isinstance(value, dict) or key.isdecimal():
        return False
    return not _has_text(value) and sum(map(_holds_objects, value.values())) == 1


def _has_text(parts: Mapping[str, Any]) -> bool:
    """Whether an object has a text of its own, so that its lists are parts of one document."""
    return any(isinstance(part, str) and title.lower() in _OWN for title, part in parts.items())


def _unwrap_rows(name: str, rows: list[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Rows with the fields of the object that each has under a name for that, and a note on it.

    A field of the row itself comes before one of the same name in the object.
    """
    for key in _INNER:
        if rows and all(isinstance(row, dict) and isinstance(row.get(key), dict) for row in rows):
            outer_rows = [{t: value for t, value in row.items() if t != key} for row in rows]
            joined_rows = [
                outer | row[key] | outer for outer, row in zip(outer_rows, rows, strict=True)
            ]
            return joined_rows, (f"The rows of {name} are those under “{key}”.",)
    return rows, ()


def _are_cells(rows: Sequence[Any]) -> bool:
    """Whether rows are lists of one length, with a text somewhere."""
    return (
        bool(rows)
        and all(isinstance(row, list) and row and len(row) == len(rows[0]) for row in rows)
        and any(isinstance(cell, str) for row in rows for cell in row)
        and not any(isinstance(cell, list | dict) for row in rows for cell in row)
    )


def _names_cells(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether the first of these lists names the columns."""
    header = find_header([list(map(cell_text, row)) for row in rows[:LOOKED_AT]])
    return header.place == 0 and header.is_clear


def _read_cells(name: str, rows: list[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Rows that are lists as objects, and a sentence on their names; others as they are."""
    if not _are_cells(rows):
        return rows, ()
    if _names_cells(rows):
        titles, rows = column_names(map(cell_text, rows[0])), rows[1:]
        note = f"The rows of {name} are lists; the first names the columns: {describe_row(titles)}."
    else:
        titles = name_columns(len(rows[0]))
        note = f"The rows of {name} are lists without names of columns, so these are numbered."
    return [dict(zip(titles, row, strict=True)) for row in rows], (note,)


def _join_splits(name: str, splits: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
    """The rows of all splits; a column says which, where more than one has rows."""
    if any(isinstance(value, dict) and value.keys() & splits for value in splits.values()):
        _refuse(name, splits)  # splits of splits
    rows_and_notes = {split: find_rows(name, value) for split, value in splits.items() if value}
    rows_and_notes = {split: (list(rows), notes) for split, (rows, notes) in rows_and_notes.items()}
    if any(isinstance(row, list) for rows, _ in rows_and_notes.values() for row in rows):
        _refuse(name, splits)
    of_splits = {
        split: [row if isinstance(row, dict) else {"text": row} for row in rows]
        for split, (rows, _) in rows_and_notes.items()
    }
    counts = joined([f"“{split}” ({len(of_splits.get(split, ())):,})" for split in splits])
    rows = [row for rows in of_splits.values() for row in rows]
    notes = tuple(note for _, notes in rows_and_notes.values() for note in notes)
    if len(of_splits) < 2:
        return rows, (f"{name} has the splits {counts}.", *notes)
    title = free_name("split", {str(key) for row in rows for key in row})
    rows = [{**row, title: split} for split, split_rows in of_splits.items() for row in split_rows]
    note = f"{name} has the splits {counts}. All are read; the column “{title}” says which."
    return rows, (note, *notes)


def _read_split_frame(name: str, frame: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a data frame that pandas wrote with the orient *split* or *tight*."""
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
    """The rows of an object of objects, each of which is a column or a row."""
    first, *other_keys = (list(inner) for inner in objects.values())
    is_lists = any(
        isinstance(value, list) for inner in objects.values() for value in inner.values()
    )
    alike = all(set(inner) == set(first) for inner in other_keys)
    shared = set(first).intersection(*other_keys)
    count_outside, count_inside = _are_counted(objects), _are_counted(first)
    if count_outside == count_inside:  # names tell which of both are columns
        count_outside, count_inside = (
            any(map(is_usual_name, shared)),
            any(map(is_usual_name, objects)),
        )
    if is_lists or count_outside == count_inside or (count_inside and not alike) or not shared:
        _refuse(name, objects)
    if count_inside:
        return [{title: column[row] for title, column in objects.items()} for row in first]
    if _are_counted(objects):
        return [dict(row) for row in objects.values()]
    title = free_name("id", {key for row in objects.values() for key in row})
    return [{title: key, **row} for key, row in objects.items()]


def _are_counted(keys: Iterable[str]) -> bool:
    return all(key.isdecimal() for key in keys)


def _read_questions(name: str, articles: Sequence[Any]) -> tuple[Sequence[Any], tuple[str, ...]]:
    """A row for each question of SQuAD; rows of another kind as they are."""
    if not all(
        isinstance(article, dict) and isinstance(article.get("paragraphs"), list)
        for article in articles
    ):
        return articles, ()
    rows: list[dict[str, Any]] = []
    for article in articles:
        for paragraph in _list_objects(article["paragraphs"]):
            context = {"context": paragraph.get("context"), "title": article.get("title")}
            for question in _list_objects(paragraph.get("qas")):
                answers = _list_objects(question.get("answers"))
                answer = {"answer": answers[0].get("text"), "id": question.get("id")}
                rows.append({"question": question.get("question"), **context, **answer})
    note = (
        f"{name} has paragraphs with questions, as SQuAD has. Each question is a row, with its "
        "paragraph in the column “context” and its first answer in “answer”."
    )
    return rows, (note,)


def _list_objects(values: Any) -> list[dict[str, Any]]:
    """The objects in a list; an empty one where there are none."""
    objects = values if isinstance(values, list) else []
    return [value for value in objects if isinstance(value, dict)] or [{}]


def _read_lists(
    name: str, lists: Mapping[str, list[Any]]
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of several lists, which are columns, or the texts of one label each.

    Columns have one length. Where all lists have, a usual name, or a list unlike the others, tells
    columns.
    """
    has_one_length = len({len(values) for values in lists.values()}) == 1
    has_known = any(map(is_usual_name, lists))
    are_strings = all(isinstance(value, str) for values in lists.values() for value in values)
    are_alike = are_strings and len({rate_texts(values) for values in lists.values() if values}) < 2
    if has_one_length and (has_known or not are_alike):
        columns = zip(*lists.values(), strict=True)
        return [dict(zip(lists, row, strict=True)) for row in columns], ()
    if has_one_length or has_known or not are_strings:
        _refuse(name, lists)
    rows = [{"text": text, "label": key} for key, texts in lists.items() for text in texts]
    note = (
        f"{name} has a list of texts for each label: {_describe_lists(lists)}. The names of the "
        "lists are in the column “label”."
    )
    return rows, (note,)


def _describe_lists(lists: Mapping[str, Sequence[Any]]) -> str:
    names = [f"“{key[:40]}” ({many(len(values), 'value')})" for key, values in lists.items()]
    n_more = len(names) - _NAMED
    return joined([*names[:_NAMED], *([f"{n_more:,} more"] if n_more > 0 else [])])


def _refuse(name: str, content: Any) -> NoReturn:
    parts = content if isinstance(content, Mapping) else {}
    lists: dict[str, Any] = {key: v for key, v in parts.items() if isinstance(v, list | dict)}
    reason = "there is no list in it"
    if lists:
        reason = f"it has {_describe_lists(lists)}, of which the rows are unclear"
    raise TextError(
        f"{name} does not contain a table: {reason}. Save the rows as a list of objects, one a "
        "row, with a key for each column."
    )
