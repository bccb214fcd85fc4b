"""Parquet files as tables."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import (
    MAX_ROWS,
    MAX_TEXT,
    Columns,
    check_damage,
    check_n_rows,
    count_bytes,
    read_batches,
)
from neuralviz.reading.table import Table, TableBuilder, check_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 10_000


def read_parquet(
    name: str,
    file: IO[bytes],
    max_rows: int | None,
    max_characters: int = MAX_TEXT,
    limit: int = MAX_ROWS,
) -> Table:
    """The columns of texts and labels; see `neuralviz.reading.tables.read_table`."""
    with check_damage(name, "a Parquet file"):
        columns, source = _open(file)
        check_n_rows(name, source.metadata.num_rows, max_rows, limit)
        check_width(name, len(source.schema_arrow.names))
        at_once = _ROWS_AT_ONCE if max_rows is None else min(_ROWS_AT_ONCE, max_rows + 1)
        batches = _read_batches(source, columns.places, at_once)
        return read_batches(name, columns, batches, max_rows, max_characters, limit)


def read_parquet_blocks(
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
    with check_damage(name, "a Parquet file"):
        columns, source = _open(file)
        for group in groups:
            for batch in _read_batches(source, columns.places, at_once, group):
                if sum(map(count_bytes, batch.columns)) > MAX_TEXT:
                    raise TextError(f"{name} has rows with more than {MAX_TEXT:,} characters.")
                objects = TableBuilder(name, "row", is_part=True)
                columns.add_rows(batch, objects, number)
                number += len(batch)
                yield objects.table("")


def read_group_sizes(name: str, file: IO[bytes]) -> list[int]:
    """Bytes of each row group of a file, as they are in memory.

    Raises:
        TextError: it is no Parquet file.
    """
    with check_damage(name, "a Parquet file"):
        metadata = parquet.ParquetFile(file, pre_buffer=False).metadata
    return [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]


def _open(file: IO[bytes]) -> tuple[Columns, pq.ParquetFile]:
    """The columns of texts and labels, and the file in which texts have dictionaries."""
    source = parquet.ParquetFile(file, pre_buffer=False)
    texts = _find_texts(source)
    columns = Columns.from_schema(source.schema_arrow)
    return columns, parquet.ParquetFile(file, pre_buffer=False, read_dictionary=texts)


def _read_batches(
    source: pq.ParquetFile, fields: Sequence[int], n_rows: int, group: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Columns by their numbers, of all row groups or one; by name, others may come along."""
    if not fields:
        return
    leaves = [leaf for field in fields for leaf in _list_leaves(source)[field]]
    groups = range(source.num_row_groups) if group is None else [group]
    yield from source.reader.iter_batches(n_rows, row_groups=groups, column_indices=leaves)


def _list_leaves(source: pq.ParquetFile) -> list[range]:
    """The numbers of each column's leaves."""
    ends = np.cumsum([0, *(_count_leaves(field.type) for field in source.schema_arrow)]).tolist()
    return list(map(range, ends, ends[1:]))


def _find_texts(source: pq.ParquetFile) -> list[int]:
    """The numbers of the leaves of texts; they are read as numbers and different texts.

    A file may hold a long text once, and a number in each of a million rows that stands for it.
    """
    leaves = map(source.schema.column, range(len(source.schema.names)))
    return [
        number
        for number, leaf in enumerate(leaves)
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
    ]


def _count_leaves(kind: pa.DataType) -> int:
    return sum(_count_leaves(kind.field(position).type) for position in range(kind.num_fields)) or 1
