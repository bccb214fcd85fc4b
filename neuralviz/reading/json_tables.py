"""JSON and JSON lines as tables."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import IO, Any

from neuralviz.errors import TextError
from neuralviz.reading.json_shapes import find_rows
from neuralviz.reading.lines import TextLines
from neuralviz.reading.objects import Objects
from neuralviz.reading.table import Table

MAX_WHOLE = 1 << 28  # bytes of a JSON file
_WRONG = "not a JSON object"
_MOST_DIGITS = 1000  # of whole numbers that are read as such


def read_json_lines(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    """An object or a text a line; a file that holds one JSON value is read as `read_json` does."""
    if not _starts_with_row(name, file):
        with suppress(ValueError, RecursionError):
            return _table_of(name, *_read_whole(name, file, MAX_WHOLE), max_rows)
    lines, objects = TextLines(name, file), Objects(name, "line")
    for number, row in _numbered_rows(lines):
        objects.add(number, row)
        if max_rows is not None and len(objects.lines) > max_rows:
            break
    return objects.table(_WRONG, lines.notes)


def json_lines_blocks(name: str, file: IO[bytes], rows: int) -> Iterator[Table]:
    """The same piece by piece, ``rows`` at once; a broken line is named with those beside it.

    Raises:
        TextError: as it is read: the file is not text, or is one JSON value of several lines.
    """
    first = _first_line(name, file)
    if first.startswith("[") or first == "{":
        raise TextError(
            f"{name} holds one JSON value, not an object a line. Save it as JSON Lines."
        )
    lines, objects = TextLines(name, file), Objects(name, "line", is_part=True)
    for number, row in _numbered_rows(lines):
        objects.add(number, row)
        if len(objects.lines) + len(objects.wrong) >= rows:
            yield objects.table(_WRONG)
            objects = Objects(name, "line", is_part=True)
    yield objects.table(_WRONG, lines.notes)


def _numbered_rows(lines: TextLines) -> Iterator[tuple[int, Any]]:
    """What each line holds, with its number; a list, which is no row, where it is no JSON."""
    with closing(iter(lines)) as numbered:
        for number, line in numbered:
            if line and not line.isspace():
                try:
                    row = _parse(line)
                except (ValueError, RecursionError):
                    row = []
                yield number, row


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
        where = f" in line {error.lineno:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise TextError(
            f"{name} is not valid JSON: it is incomplete or has an error{where}."
        ) from error
    return _table_of(name, content, notes, max_rows)


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
    return _parse(lines.read()), lines.notes


def _table_of(name: str, content: Any, notes: tuple[str, ...], max_rows: int | None) -> Table:
    objects = Objects(name, "row")
    rows, more = find_rows(name, content)
    for number, row in enumerate(rows, 1):
        objects.add(number, row)
        if max_rows is not None and len(objects.lines) > max_rows:
            break
    return objects.table("neither an object nor a string", notes + more)


def _parse(text: str) -> Any:
    """What a JSON text holds; whole numbers of more digits than Python reads stay as they are."""
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


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
