"""Write vectors and tables to files. Cells that look like formulas get an apostrophe in CSV."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from neuralviz.errors import NeuralvizError
from neuralviz.reading.table import escape_formula as escape_formula
from neuralviz.store.files import write_beside

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
    if path.is_dir():
        raise NeuralvizError(f"{path} is a folder. Enter a file name.")
    if not path.parent.is_dir():
        raise NeuralvizError(f"No such folder: {path.parent}. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise NeuralvizError(f"Cannot write to the folder {path.parent}.")


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
    safe = frame.map(_frame_cell)
    return BYTE_ORDER_MARK + safe.rename(columns=lambda name: escape_formula(str(name))).to_csv(
        index=False
    )


def _frame_cell(value: object) -> object:
    if isinstance(value, str):
        return escape_formula(value)
    if isinstance(value, np.ndarray):
        return f"[{', '.join(map(_format_short, value))}]"  # pandas would abbreviate it
    return value


def frame_parquet(frame: pd.DataFrame, metadata: Mapping[str, str] | None = None) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **(metadata or {})})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


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
    if not folder.is_dir():
        raise NeuralvizError(f"{folder} is a file. Enter the name of a folder.")
    if not os.access(folder, os.W_OK):
        raise NeuralvizError(f"Cannot write to the folder {folder}.")


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


def _write_parquet(file: IO[bytes], pieces: Iterator[pa.Table]) -> None:
    first = next(pieces)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], pieces):
            writer.write_table(table)


def _write_csv(file: IO[bytes], pieces: Iterator[pa.Table]) -> None:
    tables = map(_csv_table, pieces)
    first = next(tables)
    with csv.CSVWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _csv_table(table: pa.Table) -> pa.Table:
    names = list(map(escape_formula, table.column_names))
    return pa.table(list(map(_csv_column, table.columns)), names=names)


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Escape texts, write lists as JSON, drop non-finite numbers."""
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8())  # 1 and 0, as in JSON Lines
    if pa.types.is_list(column.type):
        return pa.array([cell for chunk in column.chunks for cell in _number_values(chunk)])
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        encoded = column.combine_chunks().dictionary_encode()  # each text is escaped once
        texts = list(map(escape_formula, encoded.dictionary.to_pylist()))
        return pa.array(texts, column.type).take(encoded.indices)
    return column


def _write_jsonl(file: IO[bytes], pieces: Iterator[pa.Table]) -> None:
    for table in pieces:
        names = list(map(_quote, table.column_names))
        for rows in table.to_batches(max_chunksize=ROWS_AT_A_TIME):
            for cells in zip(*map(_json_values, rows.columns), strict=True):
                pairs = zip(names, cells, strict=True)
                file.write(f"{{{', '.join(f'{name}: {cell}' for name, cell in pairs)}}}\n".encode())


def _quote(text: str | None) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json_values(column: pa.Array) -> list[str]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return list(map(_quote, column.to_pylist()))
    return [value or "null" for value in _number_values(column)]


def _number_values(column: pa.Array) -> list[str]:
    """Numbers or lists as JSON; empty for missing or non-finite values."""
    if pa.types.is_list(column.type):
        return [f"[{', '.join(map(_format_short, values))}]" for values in column.to_numpy(False)]
    in_words = _format_short if pa.types.is_float32(column.type) else _format_whole
    return [
        "" if value is None or not np.isfinite(value) else in_words(value)
        for value in column.to_pylist()
    ]


def _format_short(value: float) -> str:
    """Nine digits, enough to distinguish all float32."""
    return f"{value:.9g}"


def _format_whole(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) <= 2**53 else repr(value)


_WRITERS: dict[str, Callable[[IO[bytes], Iterator[pa.Table]], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}
