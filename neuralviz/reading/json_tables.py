"""JSON and JSON lines as tables."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import IO, Any

from neuralviz.errors import TextError
from neuralviz.reading.lines import TextLines
from neuralviz.reading.objects import Objects
from neuralviz.reading.table import Table

MAX_WHOLE = 1 << 28  # bytes of a JSON file
_MOST_DIGITS = 1000  # of whole numbers that are read as such


def read_json_lines(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    lines, objects = TextLines(name, file), Objects(name, "line")
    with closing(iter(lines)) as numbered:
        for number, line in numbered:
            if not line or line.isspace():
                continue
            try:
                row = _parse(line)
            except (ValueError, RecursionError):
                objects.wrong.append(number)
                continue
            objects.add(number, row)
            if max_rows is not None and len(objects.lines) > max_rows:
                break
    return objects.table("not a JSON object", lines.notes)


def json_lines_blocks(name: str, file: IO[bytes], rows: int) -> Iterator[Table]:
    """The same piece by piece, ``rows`` at once; a broken line is named with those beside it.

    Raises:
        TextError: as it is read: the file is not text.
    """
    lines, objects = TextLines(name, file), Objects(name, "line", is_part=True)
    with closing(iter(lines)) as numbered:
        for number, line in numbered:
            if not line or line.isspace():
                continue
            try:
                objects.add(number, _parse(line))
            except (ValueError, RecursionError):
                objects.wrong.append(number)
            if len(objects.lines) + len(objects.wrong) >= rows:
                yield objects.table("not a JSON object")
                objects = Objects(name, "line", is_part=True)
    yield objects.table("not a JSON object", lines.notes)


def read_json(
    name: str, file: IO[bytes], max_rows: int | None, max_bytes: int = MAX_WHOLE
) -> Table:
    lines = TextLines(name, file)
    if file.seek(0, io.SEEK_END) > max_bytes:
        raise TextError(
            f"{name} is larger than {max_bytes:,} bytes. Save it as JSON Lines (.jsonl), "
            "which is read line by line."
        )
    text = lines.read()
    try:
        rows = _rows_of(name, _parse(text))
    except RecursionError as error:
        raise TextError(f"{name} is nested too deeply to be read as a table.") from error
    except ValueError as error:
        if _starts_with_object(text):  # JSON lines with the ending of JSON
            return read_json_lines(name, file, max_rows)
        where = f" in line {error.lineno:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise TextError(
            f"{name} is not valid JSON: it is incomplete or has an error{where}."
        ) from error
    objects = Objects(name, "row")
    for number, row in enumerate(rows, 1):
        objects.add(number, row)
        if max_rows is not None and len(objects.lines) > max_rows:
            break
    return objects.table("neither an object nor a string", lines.notes)


def _parse(text: str) -> Any:
    """What a JSON text holds; whole numbers of more digits than Python reads stay as they are."""
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _starts_with_object(text: str) -> bool:
    first = text.lstrip().split("\n", 1)[0]
    try:
        return isinstance(_parse(first), dict)
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
        f"{name} does not contain a table. It must be a list of objects or strings, an "
        "object of lists of equal length, or an object that contains one such list."
    )
