"""Parquet files as tables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet, types

from neuralviz.errors import TextError
from neuralviz.reading.objects import Objects, left_out
from neuralviz.reading.table import Table, check_width, column_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_TEXT = 1 << 31  # characters of all columns
MAX_ROWS = 10_000_000  # a file of a few kilobytes can have a billion rows of nothing
_ROWS_AT_ONCE = 10_000
_WORTH_A_LOOK = 1 << 24  # characters that a column may have, before its longest text is looked for


def read_parquet(
    name: str,
    file: IO[bytes],
    max_rows: int | None,
    max_characters: int = MAX_TEXT,
    most: int = MAX_ROWS,
) -> Table:
    """The columns of texts and labels; see `neuralviz.reading.tables.read_table`."""
    with _damage_told(name):
        source = parquet.ParquetFile(file, pre_buffer=False)
        schema = source.schema_arrow
        n_rows = source.metadata.num_rows
        if n_rows > most and max_rows is None:
            raise TextError(
                f"{name} has {n_rows:,} rows. Up to {most:,} can be read: split the file."
            )
        check_width(name, len(schema.names))
        kinds = [_unwanted(field.type) for field in schema]
        wanted = [at for at, kind in enumerate(kinds) if not kind]
        names = column_names(schema.names[at] for at in wanted)
        plain = [schema.field(at).type for at in wanted]
        notes = tuple(
            left_out(column, kind) for column, kind in zip(schema.names, kinds, strict=True) if kind
        )
        objects, number, n_bytes = Objects(name, "row"), 0, 0
        at_once = _ROWS_AT_ONCE if max_rows is None else min(_ROWS_AT_ONCE, max_rows + 1)
        repeated = _nested_texts(source)
        if n_rows:
            repeated += _long_and_repeated(file, source, wanted, max_characters)
        source = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=repeated)
        for batch in _batches(source, wanted, at_once) if wanted else ():
            n_bytes += sum(map(_n_bytes, batch.columns))
            if n_bytes > max_characters:
                raise TextError(
                    f"{name} has more than {max_characters:,} characters in its first "
                    f"{number + len(batch):,} rows. Split it."
                )
            for row in zip(*map(_values, batch.columns, plain), strict=True):
                number += 1
                objects.add(number, dict(zip(names, row, strict=True)))
            if number >= most or (max_rows is not None and len(objects.lines) > max_rows):
                break
    return objects.table("", notes)


def parquet_blocks(
    name: str, file: IO[bytes], groups: Sequence[int], at_once: int = _ROWS_AT_ONCE
) -> Iterator[Table]:
    """Some row groups of a file, so many rows at once.

    Args:
        name: of the file.
        file: to be read.
        groups: numbers of the row groups.
        at_once: rows.

    Raises:
        TextError: as it is read: the file is damaged, or a few rows hold too many characters.
    """
    number = 0
    with _damage_told(name):
        source = parquet.ParquetFile(file, pre_buffer=False)
        schema = source.schema_arrow
        wanted = [at for at, field in enumerate(schema) if not _unwanted(field.type)]
        names = column_names(schema.names[at] for at in wanted)
        plain = [schema.field(at).type for at in wanted]
        repeated = _nested_texts(source) + _long_and_repeated(file, source, wanted, MAX_TEXT)
        source = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=repeated)
        for group in groups:
            for batch in _batches(source, wanted, at_once, group) if wanted else ():
                if sum(map(_n_bytes, batch.columns)) > MAX_TEXT:
                    raise TextError(f"{name} has rows with more than {MAX_TEXT:,} characters.")
                objects = Objects(name, "row", is_part=True)
                for row in zip(*map(_values, batch.columns, plain), strict=True):
                    number += 1
                    objects.add(number, dict(zip(names, row, strict=True)))
                yield objects.table("")


@contextmanager
def _damage_told(name: str) -> Iterator[None]:
    """What Arrow says of a file's content is said in a sentence.

    Raises:
        TextError: the file is damaged, or none of its kind.
        OSError: it could not be read, whatever it holds.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TextError(f"{name} is damaged, or not a Parquet file.") from error


def row_groups(name: str, file: IO[bytes]) -> list[int]:
    """Bytes of each row group of a file, as they are in memory.

    Raises:
        TextError: it is no Parquet file.
    """
    with _damage_told(name):
        about = parquet.ParquetFile(file, pre_buffer=False).metadata
    return [about.row_group(group).total_byte_size for group in range(about.num_row_groups)]


def _batches(
    source: pq.ParquetFile, fields: Sequence[int], n_rows: int, group: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Columns by their numbers, of all row groups or one; by name, others may come along."""
    leaves = [leaf for at in fields for leaf in _leaves(source)[at]]
    groups = range(source.num_row_groups) if group is None else [group]
    return source.reader.iter_batches(n_rows, row_groups=groups, column_indices=leaves)


def _leaves(source: pq.ParquetFile) -> list[range]:
    """The numbers of each column's leaves."""
    ends = np.cumsum([0, *(_n_leaves(field.type) for field in source.schema_arrow)]).tolist()
    return list(map(range, ends, ends[1:]))


def _long_and_repeated(
    file: IO[bytes], source: pq.ParquetFile, fields: Sequence[int], max_characters: int
) -> list[int]:
    """The numbers of leaves whose texts may be more than that when each row has its own.

    A file may hold a long text once, and a number in each of a million rows that stands for it.
    Such columns are read as numbers and texts. The others are not: that takes twice the time.
    """
    groups = [source.metadata.row_group(group) for group in range(source.num_row_groups)]
    first = {field: leaves[0] for field, leaves in enumerate(_leaves(source))}
    dictionaries = parquet.ParquetFile(
        file, pre_buffer=False, read_dictionary=[first[field] for field in fields]
    )
    schema = dictionaries.schema_arrow
    found = []
    for field in fields:
        if not _is_dictionary(schema.field(field).type):
            continue
        at = first[field]
        at_most = 0
        for number, group in enumerate(groups):
            longest = group.column(at).total_uncompressed_size
            if longest * group.num_rows > _WORTH_A_LOOK:
                texts = next(_batches(dictionaries, [field], 1, number)).column(0).dictionary
                longest = compute.max(compute.binary_length(texts)).as_py() or 0
            at_most += longest * group.num_rows
        if at_most > max_characters:
            found.append(at)
    return found


def _nested_texts(source: pq.ParquetFile) -> list[int]:
    """The numbers of the leaves of texts within lists, structures and maps."""
    return [
        at
        for field, leaves in zip(source.schema_arrow, _leaves(source), strict=True)
        if types.is_nested(field.type)
        for at in leaves
        if (leaf := source.schema.column(at)).physical_type == "BYTE_ARRAY"
        and leaf.logical_type.type != "DECIMAL"
    ]


def _n_leaves(kind: pa.DataType) -> int:
    return sum(_n_leaves(kind.field(at).type) for at in range(kind.num_fields)) or 1


def _is_dictionary(kind: pa.DataType) -> bool:
    """Whether it is one of texts."""
    if not types.is_dictionary(kind):
        return False
    return types.is_string(kind.value_type) or types.is_large_string(kind.value_type)


def _n_bytes(column: pa.Array) -> int:
    """What the values of a column take, each by itself."""
    kind = column.type
    if types.is_map(kind):
        return _n_bytes(column.keys) + _n_bytes(column.items)
    if types.is_struct(kind):
        return sum(map(_n_bytes, column.flatten()))
    if types.is_nested(kind):
        return _n_bytes(column.flatten())
    if _is_dictionary(column.type):
        lengths = compute.binary_length(column.dictionary).take(column.indices)
    elif types.is_string(column.type) or types.is_large_string(column.type):
        lengths = compute.binary_length(column)
    else:
        return column.nbytes
    return compute.sum(lengths).as_py() or 0


def _unwanted(kind: pa.DataType) -> str:
    """What is in a column that holds no labels; empty if it may."""
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "binary data"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "lists of numbers" if types.is_floating(kind.value_type) else ""
    return ""


def _values(column: pa.Array, plain: pa.DataType) -> list[Any]:
    """The values of a column; numbers of few digits have no more.

    Args:
        column: as it was read.
        plain: its type without dictionaries.
    """
    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    if _is_dictionary(column.type):  # equal texts are one object
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        used, places = np.unique(codes[codes >= 0], return_inverse=True)
        texts = [*column.dictionary.take(pa.array(used)).to_pylist(), None]
        rows = np.full(len(codes), len(used))
        rows[codes >= 0] = places
        return [texts[row] for row in rows.tolist()]
    values: list[Any] = (column.cast(plain) if types.is_nested(plain) else column).to_pylist()
    return values
