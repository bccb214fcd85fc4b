"""Write vectors and tables to files. Cells that look like formulas get an apostrophe in CSV."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from neuralviz.errors import NeuralvizError
from neuralviz.files import write_beside
from neuralviz.reading.arrow_tables import is_text
from neuralviz.reading.table import escape_formula as escape_formula

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_A_TIME = 10_000
BYTE_ORDER_MARK = "\ufeff"


def check_destination(path: Path, *other_endings: str) -> None:
    """Raises NeuralvizError if no table can be written to ``path``."""
    endings = (*other_endings, *_WRITERS)
    if path.suffix.lower() not in endings:
        raise NeuralvizError(
            f"The output file must end in {', '.join(endings[:-1])} or "
            f"{endings[-1]}, not {path.name}."
        )
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise NeuralvizError(
            f"Cannot write {path}. Enter the name of a file in a folder that you can write to."
        )


def write_vectors(
    path: Path, ids: Sequence[str], texts: Sequence[str], vectors: np.ndarray
) -> None:
    """Write columns ``id``, ``text`` and ``vector``; the ending sets the format."""
    columns = {"id": pa.array(ids, pa.string()), "text": pa.array(texts, pa.string())}
    write_table(path, pa.table(columns | {"vector": vector_lists(vectors)}))


def write_table(path: Path, table: pa.Table) -> None:
    """Write ``.parquet``, ``.csv`` or ``.jsonl``. Raises NeuralvizError, keeping an old file."""
    write_pieces(path, [table])


def write_pieces(path: Path, pieces: Iterable[pa.Table]) -> None:
    """Like `write_table`, from one or more pieces, written as they come."""
    with explain_write_errors(path), write_beside(path) as file:
        _WRITERS[path.suffix.lower()](file, iter(pieces))


def table_bytes(ending: str, table: pa.Table) -> bytes:
    file = io.BytesIO()
    _WRITERS[ending](file, iter([table]))
    return file.getvalue()


def frame_csv(frame: pd.DataFrame) -> str:
    """A data frame as CSV with a byte order mark for Excel, formulas escaped, vectors as JSON."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return BYTE_ORDER_MARK + table_bytes(".csv", table).decode()


def frame_parquet(frame: pd.DataFrame, metadata: Mapping[str, str] | None = None) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **(metadata or {})})
    return table_bytes(".parquet", table)


def vector_lists(vectors: np.ndarray) -> pa.Array:
    """[row, value] as a column of float32 lists."""
    n_rows, dim = vectors.shape
    ends = pa.array(np.arange(n_rows + 1, dtype=np.int32) * dim)
    values = pa.array(vectors.astype(np.float32, copy=False).ravel())
    return pa.ListArray.from_arrays(ends, values)


def check_folder(path: Path) -> None:
    """Raises NeuralvizError if files cannot be written to the folder."""
    folder = path.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise NeuralvizError(f"{folder} is not a folder that you can write to. Enter another one.")


def write_text(path: Path, text: str) -> None:
    with explain_write_errors(path), write_beside(path) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Convert OSError to NeuralvizError."""
    try:
        yield
    except OSError as error:
        raise NeuralvizError(f"Could not write {path}: {error.strerror or error}.") from error


def _write_all(
    make_writer: Callable[..., Any], file: IO[bytes], pieces: Iterator[pa.Table]
) -> None:
    first = next(pieces)
    with make_writer(file, first.schema) as writer:
        for table in chain([first], pieces):
            writer.write_table(table)


def _split(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Tables of fewer rows, to bound memory."""
    for table in pieces:
        for start in range(0, max(len(table), 1), ROWS_AT_A_TIME):
            yield table.slice(start, ROWS_AT_A_TIME).combine_chunks()


def _csv_table(table: pa.Table) -> pa.Table:
    names = list(map(escape_formula, table.column_names))
    return pa.table(list(map(_csv_column, table.columns)), names=names)


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Escape texts, write lists as JSON, drop non-finite numbers."""
    if is_text(column.type):
        return pa.chunked_array([list(map(escape_formula, column.to_pylist()))], column.type)
    return _write_plainly(column)


def _write_jsonl(file: IO[bytes], pieces: Iterator[pa.Table]) -> None:
    for table in _split(pieces):
        names = list(map(_quote, table.column_names))
        for cells in zip(*map(_json_cells, table.columns), strict=True):
            pairs = zip(names, cells, strict=True)
            file.write(f"{{{', '.join(f'{name}: {cell}' for name, cell in pairs)}}}\n".encode())


def _quote(text: str | None) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json_cells(column: pa.ChunkedArray) -> list[str]:
    if is_text(column.type):
        return list(map(_quote, column.to_pylist()))
    return _write_plainly(column).cast(pa.string()).fill_null("null").to_pylist()


def _write_plainly(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of numbers as JSON, in the fewest digits; null for NaN; 1 and 0 for booleans."""
    if pa.types.is_list(column.type):
        joined = pc.binary_join(column.cast(pa.list_(pa.string())), ", ")
        return pc.binary_join_element_wise("[", joined, "]", "")
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    return column


_WRITERS: dict[str, Callable[[IO[bytes], Iterator[pa.Table]], None]] = {
    ".parquet": partial(_write_all, parquet.ParquetWriter),
    ".csv": lambda file, pieces: _write_all(csv.CSVWriter, file, map(_csv_table, _split(pieces))),
    ".jsonl": _write_jsonl,
}
