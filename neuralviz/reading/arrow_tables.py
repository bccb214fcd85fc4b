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
from neuralviz.reading.arrow_messages import check_unpacked
from neuralviz.reading.objects import Objects, left_out
from neuralviz.reading.table import Table, check_width, column_names

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
    def of(cls, schema: pa.Schema) -> Columns:
        """Those of a schema; binary data and lists of numbers are left out."""
        unwanted = [_unwanted(field.type) for field in schema]
        places = [at for at, what in enumerate(unwanted) if not what]
        return cls(
            places,
            column_names(schema.names[at] for at in places),
            [schema.field(at).type for at in places],
            tuple(
                left_out(name, what)
                for name, what in zip(schema.names, unwanted, strict=True)
                if what
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

    def add_rows(self, batch: pa.RecordBatch, objects: Objects, n_before: int) -> None:
        """Add the rows of a batch that has these columns alone, to ``n_before`` rows."""
        rows = zip(*map(_values, batch.columns, self.kinds), strict=True)
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
        columns = Columns.of(schema)
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


def check_n_rows(name: str, n_rows: int, max_rows: int | None, most: int = MAX_ROWS) -> None:
    """Refuse a file of too many rows, unless only some are wanted.

    Raises:
        TextError: it has more than ``most``.
    """
    if n_rows > most and max_rows is None:
        raise TextError(f"{name} has {n_rows:,} rows. Up to {most:,} can be read: split the file.")


def read_batches(
    name: str,
    columns: Columns,
    batches: Iterable[pa.RecordBatch],
    max_rows: int | None,
    max_characters: int = MAX_TEXT,
    most: int = MAX_ROWS,
) -> Table:
    """The rows of batches as a table.

    Args:
        name: of the file.
        columns: those of the batches.
        batches: of some thousand rows, with these columns alone.
        max_rows: as of `read_table`.
        max_characters: of all rows.
        most: rows.

    Raises:
        TextError: there are too many rows or characters.
    """
    objects, number, n_bytes = Objects(name, "row"), 0, 0
    for batch in batches:
        n_bytes += sum(map(count_bytes, batch.columns))
        if n_bytes > max_characters:
            raise TextError(
                f"{name} has more than {max_characters:,} characters in its first "
                f"{number + len(batch):,} rows. Split it."
            )
        columns.add_rows(batch, objects, number)
        number += len(batch)
        check_n_rows(name, number, max_rows, most)
        if number >= most or (max_rows is not None and len(objects.lines) > max_rows):
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
        lengths = _lengths(column.dictionary).take(column.indices)
    elif _is_text(column.type):
        lengths = _lengths(column)
    else:
        return column.nbytes
    return compute.sum(lengths).as_py() or 0


def _lengths(texts: pa.Array) -> pa.Array:
    """Bytes of each text; of views, which may share their bytes, the first number of each."""
    if not types.is_string_view(texts.type):
        return compute.binary_length(texts)
    views = np.frombuffer(texts.buffers()[1], np.int32).reshape(-1, 4)
    return pa.array(views[texts.offset : texts.offset + len(texts), 0].astype(np.int64))


def _unwanted(kind: pa.DataType) -> str:
    """What is in a column that holds no labels; empty if it may."""
    if types.is_struct(kind):  # an image or a sound with its path
        inner = (kind.field(at).type for at in range(kind.num_fields))
        return "binary data" if any(map(_unwanted, inner)) else ""
    if types.is_map(kind):
        return _unwanted(kind.key_type) or _unwanted(kind.item_type)
    for is_kind, what in _LEFT_OUT:
        if is_kind(kind):
            return what
    if any(is_kind(kind) for is_kind in _BINARY):
        return "binary data"
    if any(is_kind(kind) for is_kind in _LISTS):
        if types.is_floating(kind.value_type):
            return "lists of numbers"
        return _unwanted(kind.value_type)
    return ""


def _values(column: pa.Array, plain: pa.DataType) -> list[Any]:
    """The values of a column; numbers of few digits have no more.

    Args:
        column: as it was read.
        plain: its type without dictionaries.
    """
    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    if is_dictionary(column.type):  # equal texts are one object
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        used, places = np.unique(codes[codes >= 0], return_inverse=True)
        texts = [*(column.dictionary[at].as_py() for at in used.tolist()), None]
        rows = np.full(len(codes), len(used))
        rows[codes >= 0] = places
        return [texts[row] for row in rows.tolist()]
    values: list[Any] = (column.cast(plain) if types.is_nested(plain) else column).to_pylist()
    return values
