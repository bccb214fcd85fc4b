"""Read Parquet files, and tables of Arrow, as tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet, types

from neuralviz.errors import TextError
from neuralviz.reading.table import Table, TableBuilder, check_width, column_names, describe_skipped

MAX_TEXT = 1 << 31  # characters of all columns
MAX_ROWS = 10_000_000  # a file of a few kilobytes can have a billion rows of nothing
_ROWS_AT_ONCE = 10_000
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list)
_VIEWS = (types.is_list_view, types.is_large_list_view)
_BINARY = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)


class Columns:
    """The columns of texts and labels, without binary data or lists of numbers."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        check_width(name, len(schema.names))
        unwanted = [_describe_unwanted(field.type) for field in schema]
        self.places = [place for place, kind in enumerate(unwanted) if not kind]  # in the schema
        self.names = column_names(schema.names[place] for place in self.places)
        self._notes: tuple[str, ...] = ()
        for title, kind in zip(schema.names, unwanted, strict=True):
            self._notes += describe_skipped([title] if kind else [], kind)

    def read_blocks(
        self, name: str, batches: Iterable[pa.RecordBatch], n_wanted: int | None
    ) -> Iterator[Table]:
        """A table per batch of some thousand rows; a last, empty one carries the notes."""
        n_rows = n_bytes = 0
        builder = TableBuilder(name, "row")
        for batch in batches:
            n_bytes += sum(map(count_bytes, batch.columns))
            if n_bytes > MAX_TEXT:
                raise TextError(
                    f"{name} has more than {MAX_TEXT:,} characters in its first "
                    f"{n_rows + len(batch):,} rows. Split it."
                )
            rows = zip(*map(_read_values, batch.columns), strict=True)
            for number, row in enumerate(rows, n_rows + 1):
                builder.add(number, dict(zip(self.names, row, strict=True)))
            n_rows += len(batch)
            _check_n_rows(name, n_rows)
            yield builder.take()
            if n_wanted is not None and builder.n_rows >= n_wanted:
                break
        yield builder.finish("", self._notes)


def read_rows(name: str, rows: pa.Table) -> Iterator[Table]:
    columns = Columns(name, rows.schema)
    batches = rows.select(columns.places).to_batches(_ROWS_AT_ONCE)
    return columns.read_blocks(name, batches, None)


@contextmanager
def check_damage(name: str) -> Iterator[None]:
    """Raise `TextError` for Arrow's errors on a file's content; let system errors pass."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TextError(f"{name} is damaged, or not a Parquet file.") from error


def _check_n_rows(name: str, n_rows: int) -> None:
    if n_rows > MAX_ROWS:
        raise TextError(
            f"{name} has {n_rows:,} rows. Up to {MAX_ROWS:,} can be read: split the file."
        )


# --- Parquet -------------------------------------------------------------------------------------


def read_parquet(
    name: str, file: IO[bytes], n_wanted: int | None = None, groups: Sequence[int] = ()
) -> Iterator[Table]:
    """Read a Parquet file, or some of its row groups."""
    # as dictionaries, since a long text may be stored once for a million rows; columns by number,
    # since names may repeat
    with check_damage(name):
        source = parquet.ParquetFile(file, pre_buffer=False)
        columns = Columns(name, source.schema_arrow)
        if n_wanted is None and not groups:
            _check_n_rows(name, source.metadata.num_rows)
        leaves = [source.schema.column(place) for place in range(len(source.schema.names))]
        texts = [
            place
            for place, leaf in enumerate(leaves)
            if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
        ]
        reader = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=texts).reader
        ends = np.cumsum([0, *(_count_leaves(field.type) for field in source.schema_arrow)])
        leaf_columns = [
            leaf for place in columns.places for leaf in range(ends[place], ends[place + 1])
        ]
        n_at_once = min(_ROWS_AT_ONCE, n_wanted or _ROWS_AT_ONCE)
        batches = (  # group by group, so that all before a damaged one can be read
            batch
            for group in groups or range(source.num_row_groups)
            for batch in reader.iter_batches(
                n_at_once, row_groups=[group], column_indices=leaf_columns
            )
        )
        yield from columns.read_blocks(name, batches if leaf_columns else (), n_wanted)


def read_group_sizes(name: str, file: IO[bytes]) -> list[int]:
    with check_damage(name):
        metadata = parquet.ParquetFile(file, pre_buffer=False).metadata
    return [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]


def _count_leaves(kind: pa.DataType) -> int:
    return sum(_count_leaves(kind.field(place).type) for place in range(kind.num_fields)) or 1


# --- values --------------------------------------------------------------------------------------


def count_bytes(column: pa.Array) -> int:
    """Bytes of a column's values, each stored by itself."""
    kind = column.type
    if types.is_map(kind):
        return count_bytes(column.keys) + count_bytes(column.items)
    if types.is_struct(kind):
        return sum(map(count_bytes, column.flatten()))
    if _is_dictionary(kind):
        lengths = _measure_texts(column.dictionary).take(column.indices)
    elif is_text(kind):
        lengths = _measure_texts(column)
    elif types.is_nested(kind):
        return count_bytes(column.flatten())
    else:
        return column.nbytes
    return compute.sum(lengths).as_py() or 0


def _measure_texts(texts: pa.Array) -> pa.Array:
    """Bytes of each text; for views, which may share bytes, the size that each states."""
    if not types.is_string_view(texts.type):
        return compute.binary_length(texts)
    views = np.frombuffer(texts.buffers()[1], np.int32).reshape(-1, 4)
    return pa.array(views[texts.offset : texts.offset + len(texts), 0].astype(np.int64))


def _is_dictionary(kind: pa.DataType) -> bool:
    return types.is_dictionary(kind) and is_text(kind.value_type)


def is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _read_values(column: pa.Array) -> list[Any]:
    """The values of a column; floats without excess digits, equal texts as one object."""
    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    if _is_dictionary(column.type):
        used = compute.unique(column.indices).drop_null().to_pylist()
        texts = {code: column.dictionary[code].as_py() for code in used}
        return [texts.get(code) for code in column.indices.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _describe_unwanted(kind: pa.DataType) -> str:
    """What a column contains instead of labels; empty if it may be one."""
    if types.is_run_end_encoded(kind) or types.is_union(kind) or any(t(kind) for t in _VIEWS):
        return "values of a rare type"
    if any(is_binary(kind) for is_binary in _BINARY):
        return "binary data"
    if any(is_list(kind) for is_list in _LISTS) and types.is_floating(kind.value_type):
        return "lists of numbers"
    inner = [_describe_unwanted(kind.field(place).type) for place in range(kind.num_fields)]
    if types.is_struct(kind):  # an image or a sound with its path
        return "binary data" if any(inner) else ""
    return next(filter(None, inner), "")
