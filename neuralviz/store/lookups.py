"""Rows of a table by their keys: looked up where that is faster than reading them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.store.database import ROWS_AT_ONCE

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

LOOKED_UP = 5000  # keys in one condition
AS_LONG_AS = 4  # rows that are read in the time in which one is looked up


def rows_with_keys(
    table: Table, keys: np.ndarray, columns: Sequence[str], *, with_places: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows that have some keys, and others where it is faster to read them all.

    Args:
        table: with a column ``key``.
        keys: [key] of `neuralviz.store.vectors.text_keys`, no two alike.
        columns: wanted, beside the key.
        with_places: whether each row comes with its ``_rowid``.

    Yields:
        Batches of the rows as they are in the table now.
    """
    queries = [table.search()]
    if len(keys) * AS_LONG_AS <= table.count_rows() and has_index(table, "key"):
        parts = range(0, len(keys), LOOKED_UP)
        queries = [table.search().where(key_in(keys[start : start + LOOKED_UP])) for start in parts]
    for query in queries:
        yield from query.select(["key", *columns]).with_row_id(with_places).to_batches(ROWS_AT_ONCE)


def has_index(table: Table, column: str) -> bool:
    """Whether a column of a table has an index."""
    return any(index.columns == [column] for index in table.list_indices())


def key_in(keys: np.ndarray) -> str:
    """The condition that a row has one of some keys; numpy leaves out zeros at their ends."""
    n_bytes = keys.dtype.itemsize
    literals = [f"X'{key.ljust(n_bytes, bytes(1)).hex()}'" for key in keys.tolist()]
    return f"key IN ({', '.join(literals)})"
