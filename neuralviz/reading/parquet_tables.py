"""Parquet files as tables."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from neuralviz.errors import TextError
from neuralviz.reading.objects import Objects, left_out
from neuralviz.reading.table import Table, check_width, column_names

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 10_000


def read_parquet(name: str, file: IO[bytes], max_rows: int | None) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        source = parquet.ParquetFile(file, pre_buffer=False)
        schema = source.schema_arrow
        check_width(name, len(schema.names))
        kinds = [_unwanted(field.type) for field in schema]
        columns = [column for column, kind in zip(schema.names, kinds, strict=True) if not kind]
        notes = tuple(
            left_out(column, kind) for column, kind in zip(schema.names, kinds, strict=True) if kind
        )
        objects, number = Objects(name, "row"), 0
        at_once = _ROWS_AT_ONCE if max_rows is None else min(_ROWS_AT_ONCE, max_rows + 1)
        for batch in source.iter_batches(at_once, columns=columns) if columns else ():
            names = column_names(batch.schema.names)
            for row in zip(*map(_values, batch.columns), strict=True):
                number += 1
                objects.add(number, dict(zip(names, row, strict=True)))
            if max_rows is not None and len(objects.lines) > max_rows:
                break
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise TextError(
            f"{name} is not a parquet file that can be read, or it is damaged."
        ) from error
    return objects.table("", notes)


def _unwanted(kind: pa.DataType) -> str:
    """What is in a column that holds no labels; empty if it may."""
    from pyarrow import types

    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "binary data"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "lists of numbers" if types.is_floating(kind.value_type) else ""
    return ""


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; numbers of few digits have no more."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    values: list[Any] = column.to_pylist()
    return values
