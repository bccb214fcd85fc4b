"""How large the batches of an Arrow file become, read from their metadata before they are unpacked.

The metadata are FlatBuffers. A table has fields by number; where each is, its *vtable* says. See
https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess Communication".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
from pyarrow import types

from neuralviz.errors import TextError

MAX_UNPACKED = 1 << 28  # bytes of a batch, as of an Excel workbook
_USUAL = 20  # times smaller that texts become when they are packed, at most
_FILE = b"ARROW1"
_CONTINUED = b"\xff" * 4
_LONGEST = 1 << 26  # bytes of metadata
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_BUFFER, _BLOCK = 16, 24  # bytes of an entry


def check_unpacked(
    name: str,
    file: IO[bytes],
    schema: pa.Schema,
    places: Sequence[int],
    most: int = MAX_UNPACKED,
) -> None:
    """Refuse a file with a small batch that becomes a very large one.

    Args:
        name: of the file.
        file: an Arrow file or stream; it is read from its beginning, without the batches.
        schema: of all columns.
        places: of the columns that will be unpacked.
        most: bytes that a batch may have.

    Raises:
        TextError: one has more, and is far smaller as it is packed.
    """
    counts = [_count_buffers(field.type) for field in schema]
    ends = [sum(counts[: at + 1]) for at in range(len(counts))]
    wanted = {n for at in places for n in range(ends[at] - counts[at], ends[at])}
    has_views = any(_has_views(field.type) for field in schema)  # of any number of buffers
    for position, metadata in _find_messages(file):
        kind, message = _read(metadata, _slot(metadata, _root(metadata), 1), 1), _root(metadata)
        batch = _follow(metadata, _slot(metadata, message, 2))
        if kind == _DICTIONARY:
            batch = _follow(metadata, _slot(metadata, batch, 1))
        if kind not in (_DICTIONARY, _BATCH) or not _slot(metadata, batch, 3):
            continue  # nothing is packed
        packed = unpacked = 0
        for number, (offset, length) in enumerate(_buffers(metadata, batch)):
            if length and (kind == _DICTIONARY or has_views or number in wanted):
                file.seek(position + offset)
                size = int.from_bytes(file.read(8), "little", signed=True)
                packed += length
                unpacked += length if size < 0 else size
        if unpacked > max(most, _USUAL * packed):
            raise TextError(
                f"{name} has a batch of {unpacked:,} bytes when unpacked. Save it in smaller "
                "batches, or as Parquet."
            )


def _find_messages(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The metadata of each message, and where its body begins."""
    file.seek(0)
    if file.read(len(_FILE)) == _FILE:
        end = file.seek(0, 2) - len(_FILE) - 4
        file.seek(max(0, end))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, end - length))
        footer = file.read(length)
        for field in (2, 3):
            for at in _entries(footer, _root(footer), field, _BLOCK):
                file.seek(_read(footer, at, 8))
                metadata = _next_metadata(file)
                yield _read(footer, at, 8) + _read(footer, at + 8, 4), metadata
        return
    file.seek(0)
    while metadata := _next_metadata(file):
        body = file.tell()
        yield body, metadata
        length = _slot(metadata, _root(metadata), 3)
        file.seek(body + (max(0, _read(metadata, length, 8)) if length else 0))


def _next_metadata(file: IO[bytes]) -> bytes:
    mark = file.read(4)
    length = int.from_bytes(file.read(4) if mark == _CONTINUED else mark, "little")
    return file.read(length) if length <= _LONGEST else b""


def _buffers(metadata: bytes, batch: int) -> Iterator[tuple[int, int]]:
    """Where the buffers of a batch are in its body, and their lengths."""
    for at in _entries(metadata, batch, 2, _BUFFER):
        yield _read(metadata, at, 8), _read(metadata, at + 8, 8)


def _entries(data: bytes, table: int, field: int, size: int) -> range:
    """The positions of a vector's entries."""
    vector = _follow(data, _slot(data, table, field))
    n = min(_read(data, vector, 4), len(data) // size) if vector else 0
    return range(vector + 4, vector + 4 + n * size, size)


def _root(data: bytes) -> int:
    return _read(data, 0, 4)


def _slot(data: bytes, table: int, field: int) -> int:
    """The position of a field of a table; 0 where it has none."""
    vtable = table - _read(data, table, 4)
    place = 4 + 2 * field
    offset = _read(data, vtable + place, 2) if place < _read(data, vtable, 2) else 0
    return table + offset if offset else 0


def _follow(data: bytes, at: int) -> int:
    return at + _read(data, at, 4) if at else 0


def _read(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little", signed=size > 2) if at >= 0 else 0


def _count_buffers(kind: pa.DataType) -> int:
    """Buffers that a column of a type has in a file, views without those of their texts."""
    kind = getattr(kind, "storage_type", kind)
    if types.is_dictionary(kind):
        return _count_buffers(kind.index_type)
    is_bare = types.is_null(kind) or types.is_union(kind) or types.is_run_end_encoded(kind)
    inner = sum(_count_buffers(kind.field(at).type) for at in range(kind.num_fields))
    return kind.num_buffers - is_bare + inner


def _has_views(kind: pa.DataType) -> bool:
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    return any(_has_views(kind.field(at).type) for at in range(kind.num_fields))
