"""Parquet files as tables."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet, types

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import (
    MAX_ROWS,
    MAX_TEXT,
    Columns,
    check_damage,
    check_n_rows,
    count_bytes,
    is_dictionary,
    read_batches,
)
from neuralviz.reading.objects import TableBuilder
from neuralviz.reading.table import Table, check_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 10_000
_WORTH_A_LOOK = 1 << 24  # characters that a column may have, before its longest text is looked for


def read_parquet(
    name: str,
    file: IO[bytes],
    max_rows: int | None,
    max_characters: int = MAX_TEXT,
    limit: int = MAX_ROWS,
) -> Table:
    """The columns of texts and labels; see `neuralviz.reading.tables.read_table`."""
    with check_damage(name, "a Parquet file"):
        source = parquet.ParquetFile(file, pre_buffer=False)
        schema = source.schema_arrow
        n_rows = source.metadata.num_rows
        check_n_rows(name, n_rows, max_rows, limit)
        check_width(name, len(schema.names))
        columns = Columns.from_schema(schema)
        fields = columns.places
        at_once = _ROWS_AT_ONCE if max_rows is None else min(_ROWS_AT_ONCE, max_rows + 1)
        repeated = _find_nested_texts(source)
        if n_rows:
            repeated += _find_long_repeated(file, source, fields, max_characters)
        source = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=repeated)
        batches = _read_batches(source, fields, at_once) if fields else iter(())
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
        source = parquet.ParquetFile(file, pre_buffer=False)
        schema = source.schema_arrow
        columns = Columns.from_schema(schema)
        fields = columns.places
        repeated = _find_nested_texts(source) + _find_long_repeated(file, source, fields, MAX_TEXT)
        source = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=repeated)
        for group in groups:
            for batch in _read_batches(source, fields, at_once, group) if fields else ():
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


def _read_batches(
    source: pq.ParquetFile, fields: Sequence[int], n_rows: int, group: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Columns by their numbers, of all row groups or one; by name, others may come along."""
    leaves = [leaf for field in fields for leaf in _list_leaves(source)[field]]
    groups = range(source.num_row_groups) if group is None else [group]
    return source.reader.iter_batches(n_rows, row_groups=groups, column_indices=leaves)


def _list_leaves(source: pq.ParquetFile) -> list[range]:
    """The numbers of each column's leaves."""
    ends = np.cumsum([0, *(_count_leaves(field.type) for field in source.schema_arrow)]).tolist()
    return list(map(range, ends, ends[1:]))


def _find_long_repeated(
    file: IO[bytes], source: pq.ParquetFile, fields: Sequence[int], max_characters: int
) -> list[int]:
    """The numbers of leaves whose texts may be more than that when each row has its own.

    A file may hold a long text once, and a number in each of a million rows that stands for it.
    Such columns are read as numbers and texts. The others are not: that takes twice the time.
    """
    groups = [source.metadata.row_group(group) for group in range(source.num_row_groups)]
    first = {field: leaves[0] for field, leaves in enumerate(_list_leaves(source))}
    dictionaries = parquet.ParquetFile(
        file, pre_buffer=False, read_dictionary=[first[field] for field in fields]
    )
    schema = dictionaries.schema_arrow
    long_leaves = []
    for field in fields:
        if not is_dictionary(schema.field(field).type):
            continue
        leaf = first[field]
        at_most = 0
        for number, group in enumerate(groups):
            longest = group.column(leaf).total_uncompressed_size
            if longest * group.num_rows > _WORTH_A_LOOK:
                texts = next(_read_batches(dictionaries, [field], 1, number)).column(0).dictionary
                longest = compute.max(compute.binary_length(texts)).as_py() or 0
            at_most += longest * group.num_rows
        if at_most > max_characters:
            long_leaves.append(leaf)
    return long_leaves


def _find_nested_texts(source: pq.ParquetFile) -> list[int]:
    """The numbers of the leaves of texts within lists, structures and maps."""
    return [
        number
        for field, leaves in zip(source.schema_arrow, _list_leaves(source), strict=True)
        if types.is_nested(field.type)
        for number in leaves
        if (leaf := source.schema.column(number)).physical_type == "BYTE_ARRAY"
        and leaf.logical_type.type != "DECIMAL"
    ]


def _count_leaves(kind: pa.DataType) -> int:
    return sum(_count_leaves(kind.field(position).type) for position in range(kind.num_fields)) or 1
