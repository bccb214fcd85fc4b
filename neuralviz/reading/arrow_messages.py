"""How large the batches of an Arrow file become, read from their metadata before they are unpacked.

The metadata are FlatBuffers. A table has fields by number; where each is, its *vtable* says. See
https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess Communication".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from neuralviz.errors import TextError

MAX_UNPACKED = 1 << 28  # bytes of a batch, as of an Excel workbook
_USUAL = 20  # times smaller that texts become when they are packed, at most
_FILE = b"ARROW1"
_LONGEST = 1 << 26  # bytes of metadata
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_BUFFER, _BLOCK = 16, 24  # bytes of an entry


def check_unpacked(name: str, file: IO[bytes], most: int = MAX_UNPACKED) -> None:
    """Refuse a file with a small batch that becomes a very large one, whatever its columns.

    Args:
        name: of the file.
        file: an Arrow file or stream; it is read from its beginning, without the batches.
        most: bytes that a batch may have.

    Raises:
        TextError: one has more, and is far smaller as it is packed.
    """
    for body, data in _find_messages(file):
        kind, batch = _number(data, _field(data, _root(data), 1), 1), _table(data, _root(data), 2)
        if kind == _DICTIONARY:
            batch = _table(data, batch, 1)
        if kind not in (_DICTIONARY, _BATCH) or not _field(data, batch, 3):
            continue  # nothing is packed
        packed = unpacked = 0
        for buffer in _entries(data, batch, 2, _BUFFER):
            length = _number(data, buffer + 8, 8)
            file.seek(body + max(0, _number(data, buffer, 8)))
            packed += length
            unpacked += max(length, int.from_bytes(file.read(8), "little", signed=True))
        if unpacked > max(most, _USUAL * packed):
            raise TextError(
                f"{name} has a batch of {unpacked:,} bytes when unpacked. Save it in smaller "
                "batches, or as Parquet."
            )


def _find_messages(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The metadata of each message, and where its body begins."""
    file.seek(0)
    is_file = file.read(len(_FILE)) == _FILE
    if is_file:  # whose footer names them
        end = file.seek(0, 2) - len(_FILE) - 4
        file.seek(max(0, end))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, end - length))
        footer = file.read(length)
        for field in (2, 3):  # dictionaries, and batches
            for block in _entries(footer, _root(footer), field, _BLOCK):
                start = _number(footer, block, 8)
                file.seek(start)
                yield start + _number(footer, block + 8, 4), _next_metadata(file)
        return
    file.seek(0)
    while data := _next_metadata(file):
        body = file.tell()
        yield body, data
        file.seek(body + max(0, _number(data, _field(data, _root(data), 3), 8)))


def _next_metadata(file: IO[bytes]) -> bytes:
    mark = file.read(4)
    length = int.from_bytes(file.read(4) if mark == b"\xff" * 4 else mark, "little")
    return file.read(length) if length <= _LONGEST else b""


def _entries(data: bytes, table: int, field: int, size: int) -> range:
    """The positions of a vector's entries."""
    vector = _table(data, table, field)
    n = min(_number(data, vector, 4), len(data) // size)
    return range(vector + 4, vector + 4 + n * size, size)


def _root(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


def _table(data: bytes, table: int, field: int) -> int:
    """The position of what a field of a table refers to; 0 where it has none."""
    position = _field(data, table, field)
    return position + _number(data, position, 4) if position else 0


def _field(data: bytes, table: int, field: int) -> int:
    """The position of a field of a table; 0 where it has none."""
    vtable, place = table - _number(data, table, 4), 4 + 2 * field
    offset = _number(data, vtable + place, 2) if place < _number(data, vtable, 2) else 0
    return table + offset if offset else 0


def _number(data: bytes, start: int, size: int) -> int:
    """The number at a position; 0 where nothing is."""
    if start <= 0:
        return 0
    return int.from_bytes(data[start : start + size], "little", signed=size > 2)
