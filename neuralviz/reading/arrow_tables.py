"""Arrow files as tables, and what Parquet files share with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from neuralviz.errors import TextError
from neuralviz.reading.table import Table, TableBuilder, check_width, column_names, describe_skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TEXT = 1 << 31  # characters of all columns
MAX_ROWS = 10_000_000  # a file of a few kilobytes can have a billion rows of nothing
_ROWS_AT_ONCE = 10_000
_FILE = b"ARROW1"  # what files begin with; streams have no mark
_FEATHER_1 = b"FEA1"
_BINARY = (
    *(types.is_binary, types.is_large_binary, types.is_binary_view),
    types.is_fixed_size_binary,
)
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list)
_LEFT_OUT = (
    (types.is_run_end_encoded, "run-end encoded values"),
    (types.is_union, "values of several types"),
    (types.is_list_view, "views of lists"),
    (types.is_large_list_view, "views of lists"),
)
MAX_UNPACKED = 1 << 28  # bytes of a batch, as of an Excel workbook
_USUAL = 20  # times smaller that texts become when they are packed, at most
_LONGEST = 1 << 26  # bytes of metadata
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_BUFFER, _BLOCK, _LENGTH_BYTES = 16, 24, 8  # bytes of an entry


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of an Arrow schema that hold texts and labels.

    Attributes:
        places: of the columns in the schema.
        names: no two alike.
        kinds: their types.
        notes: sentences on the columns that are left out.
    """

    places: Sequence[int]
    names: Sequence[str]
    kinds: Sequence[pa.DataType]
    notes: tuple[str, ...]

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> Columns:
        """Those of a schema; binary data and lists of numbers are left out."""
        unwanted = [_describe_unwanted(field.type) for field in schema]
        places = [position for position, kind in enumerate(unwanted) if not kind]
        return cls(
            places,
            column_names(schema.names[position] for position in places),
            [schema.field(position).type for position in places],
            tuple(
                describe_skipped(name, kind)
                for name, kind in zip(schema.names, unwanted, strict=True)
                if kind
            ),
        )

    def batches(self, name: str, file: IO[bytes]) -> Iterator[pa.RecordBatch]:
        """These columns of an Arrow file or stream, some thousand rows at once.

        Raises:
            TextError: as of `check_unpacked`.
            pyarrow.ArrowException: as it is read: it is damaged.
        """
        if not self.places:
            return
        check_unpacked(name, file)
        file.seek(0)
        is_file = file.read(len(_FILE)) == _FILE
        file.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=list(self.places))
        if is_file:
            reader = pa.ipc.open_file(file, options=options)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = iter(pa.ipc.open_stream(file, options=options))
        for batch in batches:
            batch.validate(full=True)
            for start in range(0, len(batch), _ROWS_AT_ONCE):
                yield batch.slice(start, _ROWS_AT_ONCE)

    def add_rows(self, batch: pa.RecordBatch, objects: TableBuilder, n_before: int) -> None:
        """Add the rows of a batch that has these columns alone, to ``n_before`` rows."""
        rows = zip(*map(_read_values, batch.columns, self.kinds), strict=True)
        for number, row in enumerate(rows, n_before + 1):
            objects.add(number, dict(zip(self.names, row, strict=True)))


def read_arrow(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    """The columns of texts and labels of an Arrow file (Feather, from version 2) or stream.

    Raises:
        TextError: it is damaged or none of these, or holds too much.
    """
    with check_damage(name):
        schema = read_schema(name, file)
        check_width(name, len(schema.names))
        columns = Columns.from_schema(schema)
        return read_batches(name, columns, columns.batches(name, file), max_rows)


def read_schema(name: str, file: IO[bytes]) -> pa.Schema:
    """The schema of an Arrow file or stream.

    Raises:
        TextError: it is a Feather file of the first version.
        pyarrow.ArrowException: it is damaged, or none of these.
    """
    head = file.read(len(_FILE))
    file.seek(0)
    if head.startswith(_FEATHER_1):
        raise TextError(
            f"{name} is a Feather file of version 1, which is not read. Read it with "
            "pandas.read_feather, and save it with to_feather or to_parquet."
        )
    opened = pa.ipc.open_file if head == _FILE else pa.ipc.open_stream
    return opened(file).schema


@contextmanager
def check_damage(name: str, kind: str = "an Arrow file") -> Iterator[None]:
    """What Arrow says of a file's content is said in a sentence.

    Args:
        name: of the file.
        kind: that it should be of.

    Raises:
        TextError: the file is damaged, or none of its kind.
        OSError: it could not be read, whatever it holds.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TextError(f"{name} is damaged, or not {kind}.") from error


def check_n_rows(name: str, n_rows: int, max_rows: int | None, limit: int = MAX_ROWS) -> None:
    """Refuse a file of too many rows, unless only some are wanted.

    Raises:
        TextError: it has more than ``limit``.
    """
    if n_rows > limit and max_rows is None:
        raise TextError(f"{name} has {n_rows:,} rows. Up to {limit:,} can be read: split the file.")


def read_batches(
    name: str,
    columns: Columns,
    batches: Iterable[pa.RecordBatch],
    max_rows: int | None,
    max_characters: int = MAX_TEXT,
    limit: int = MAX_ROWS,
) -> Table:
    """The rows of batches as a table.

    Args:
        name: of the file.
        columns: those of the batches.
        batches: of some thousand rows, with these columns alone.
        max_rows: as of `read_table`.
        max_characters: of all rows.
        limit: rows.

    Raises:
        TextError: there are too many rows or characters.
    """
    objects, number, n_bytes = TableBuilder(name, "row"), 0, 0
    for batch in batches:
        n_bytes += sum(map(count_bytes, batch.columns))
        if n_bytes > max_characters:
            raise TextError(
                f"{name} has more than {max_characters:,} characters in its first "
                f"{number + len(batch):,} rows. Split it."
            )
        columns.add_rows(batch, objects, number)
        number += len(batch)
        check_n_rows(name, number, max_rows, limit)
        if number >= limit or (max_rows is not None and len(objects.lines) > max_rows):
            break
    return objects.table("", columns.notes)


def is_dictionary(kind: pa.DataType) -> bool:
    """Whether a column holds texts by their numbers in a dictionary."""
    if not types.is_dictionary(kind):
        return False
    return _is_text(kind.value_type)


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def count_bytes(column: pa.Array) -> int:
    """Bytes that the values of a column take, each by itself."""
    kind = column.type
    if types.is_map(kind):
        return count_bytes(column.keys) + count_bytes(column.items)
    if types.is_struct(kind):
        return sum(map(count_bytes, column.flatten()))
    if types.is_nested(kind):
        return count_bytes(column.flatten())
    if is_dictionary(column.type):
        lengths = _measure_texts(column.dictionary).take(column.indices)
    elif _is_text(column.type):
        lengths = _measure_texts(column)
    else:
        return column.nbytes
    return compute.sum(lengths).as_py() or 0


def _measure_texts(texts: pa.Array) -> pa.Array:
    """Bytes of each text; of views, which may share their bytes, the first number of each."""
    if not types.is_string_view(texts.type):
        return compute.binary_length(texts)
    views = np.frombuffer(texts.buffers()[1], np.int32).reshape(-1, 4)
    return pa.array(views[texts.offset : texts.offset + len(texts), 0].astype(np.int64))


def _describe_unwanted(kind: pa.DataType) -> str:
    """What is in a column that holds no labels; empty if it may."""
    if types.is_struct(kind):  # an image or a sound with its path
        inner = (kind.field(position).type for position in range(kind.num_fields))
        return "binary data" if any(map(_describe_unwanted, inner)) else ""
    if types.is_map(kind):
        return _describe_unwanted(kind.key_type) or _describe_unwanted(kind.item_type)
    for is_kind, content in _LEFT_OUT:
        if is_kind(kind):
            return content
    if any(is_kind(kind) for is_kind in _BINARY):
        return "binary data"
    if any(is_kind(kind) for is_kind in _LISTS):
        if types.is_floating(kind.value_type):
            return "lists of numbers"
        return _describe_unwanted(kind.value_type)
    return ""


def _read_values(column: pa.Array, plain: pa.DataType) -> list[Any]:
    """The values of a column; numbers of few digits have no more."""
    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    if is_dictionary(column.type):  # equal texts are one object
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        used, places = np.unique(codes[codes >= 0], return_inverse=True)
        texts = [*(column.dictionary[code].as_py() for code in used.tolist()), None]
        rows = np.full(len(codes), len(used))
        rows[codes >= 0] = places
        return [texts[row] for row in rows.tolist()]
    values: list[Any] = (column.cast(plain) if types.is_nested(plain) else column).to_pylist()
    return values


def check_unpacked(name: str, file: IO[bytes], max_bytes: int = MAX_UNPACKED) -> None:
    """Refuse a file with a small batch that becomes a very large one, whatever its columns.

    Args:
        name: of the file.
        file: an Arrow file or stream; it is read from its beginning, without the batches.
        max_bytes: bytes that a batch may have.

    Raises:
        TextError: one has more, and is far smaller as it is packed.
    """
    for body, data in _find_messages(file):
        kind, batch = (
            _read_number(data, _find_field(data, _find_root(data), 1), 1),
            _find_table(data, _find_root(data), 2),
        )
        if kind == _DICTIONARY:
            batch = _find_table(data, batch, 1)
        if kind not in (_DICTIONARY, _BATCH) or not _find_field(data, batch, 3):
            continue  # nothing is packed
        packed = unpacked = 0
        for buffer in _find_entries(data, batch, 2, _BUFFER):
            length = _read_number(data, buffer + 8, 8)
            file.seek(body + max(0, _read_number(data, buffer, 8)))
            packed += length
            if length >= _LENGTH_BYTES:  # an empty buffer has no length before it
                size = int.from_bytes(file.read(_LENGTH_BYTES), "little", signed=True)
                unpacked += max(length, size)
        if unpacked > max(max_bytes, _USUAL * packed):
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
            for block in _find_entries(footer, _find_root(footer), field, _BLOCK):
                start = _read_number(footer, block, 8)
                file.seek(start)
                yield start + _read_number(footer, block + 8, 4), _read_metadata(file)
        return
    file.seek(0)
    while data := _read_metadata(file):
        body = file.tell()
        yield body, data
        file.seek(body + max(0, _read_number(data, _find_field(data, _find_root(data), 3), 8)))


def _read_metadata(file: IO[bytes]) -> bytes:
    mark = file.read(4)
    length = int.from_bytes(file.read(4) if mark == b"\xff" * 4 else mark, "little")
    return file.read(length) if length <= _LONGEST else b""


def _find_entries(data: bytes, table: int, field: int, size: int) -> range:
    """The positions of a vector's entries."""
    vector = _find_table(data, table, field)
    n = min(_read_number(data, vector, 4), len(data) // size)
    return range(vector + 4, vector + 4 + n * size, size)


def _find_root(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


def _find_table(data: bytes, table: int, field: int) -> int:
    """The position of what a field of a table refers to; 0 where it has none."""
    position = _find_field(data, table, field)
    return position + _read_number(data, position, 4) if position else 0


def _find_field(data: bytes, table: int, field: int) -> int:
    """The position of a field of a table; 0 where it has none."""
    vtable, place = table - _read_number(data, table, 4), 4 + 2 * field
    offset = _read_number(data, vtable + place, 2) if place < _read_number(data, vtable, 2) else 0
    return table + offset if offset else 0


def _read_number(data: bytes, start: int, size: int) -> int:
    """The number at a position; 0 where nothing is."""
    if start <= 0:
        return 0
    return int.from_bytes(data[start : start + size], "little", signed=size > 2)
