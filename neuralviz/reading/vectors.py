"""Read vectors from ``.npy`` and Parquet files, never unpickling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from tokenize import TokenError
from typing import IO

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet, types

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import check_damage
from neuralviz.reading.source import HEAD, Source, tidy
from neuralviz.reading.table import MAX_CHARACTERS, cell_text, list_columns, match_names
from neuralviz.reading.texts import MAX_TEXTS

ENDINGS = (".npy", ".parquet")
VECTOR_COLUMNS = ("vector", "vectors", "embedding", "embeddings", "emb")
MOST_VALUES = 1 << 30  # of all vectors together: 4 GB
LARGEST = 1e15  # of a value: its square fits in float32
_AT_ONCE = 8192  # rows
_UNEQUAL = "The vectors in {} have different lengths. All of them need the same."


@dataclass(frozen=True, eq=False)
class ReadVectors:
    """The vectors of a file in order, and the [row] columns beside them."""

    name: str  # of the file
    vectors: np.ndarray  # [row, dim] float32, finite
    columns: Mapping[str, pa.Array | pa.ChunkedArray] = field(default_factory=dict)

    def strings(self, column: str) -> list[str]:
        """[row] values of a column, as a corpus has them."""
        values = self.columns[column].to_pylist()
        written = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values)
        return [tidy(cell_text(value)[:MAX_CHARACTERS]) for value in written]


def read_vectors(source: Source, column: str = "") -> ReadVectors:
    """Read ``.npy`` [row, dim] or Parquet lists of one length; `TextError` for unusable values.

    Without a ``column``, a Parquet file has to have one of vectors, or one that is named so.
    """
    if source.ending not in ENDINGS:
        raise TextError(
            f"{source.name} is neither .npy nor .parquet. Save the vectors as float32 with "
            "np.save, or as a parquet file with a column “vector”."
        )
    with source.opened() as file:
        if source.ending == ".npy":
            vectors = _check_vectors(source.name, _read_npy(source.name, file))
            return ReadVectors(source.name, vectors)
        with check_damage(source.name, "a Parquet file"):
            return _read_parquet(source.name, file, column)


def list_vector_columns(source: Source) -> list[str]:
    """The columns of a Parquet file with lists of fractions, or of numbers if named like vectors.

    Those named like vectors come first.
    """
    if source.ending != ".parquet":
        return []
    try:
        with source.opened() as file:
            schema = parquet.ParquetFile(file, pre_buffer=False).schema_arrow
    except (pa.ArrowException, OSError, ValueError, TextError):
        return []
    lists = {field.name: _stored(field.type) for field in schema if _is_vector(field.type)}
    fractions = [name for name, kind in lists.items() if types.is_floating(kind.value_type)]
    return list(dict.fromkeys([*match_names(list(lists), VECTOR_COLUMNS), *fractions]))


def _read_npy(name: str, file: IO[bytes]) -> np.ndarray:
    if file.seek(0, 2) > 8 * MOST_VALUES + HEAD:
        raise TextError(f"{name} has more than {MOST_VALUES:,} values: split the file.")
    file.seek(0)
    try:  # memory for what its header promises is taken only as it is read
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, TypeError, TokenError, MemoryError, OverflowError) as error:
        raise TextError(
            f"{name} is damaged, or not a .npy file of numbers. Save the vectors with "
            "np.save(file, np.asarray(vectors, dtype=np.float32))."
        ) from error
    if array.ndim != 2:
        raise TextError(
            f"{name} has the shape {array.shape}. It must have one row per text: [texts, values]."
        )
    _check_size(name, *array.shape)
    return array


def _read_parquet(name: str, file: IO[bytes], column: str) -> ReadVectors:
    source = parquet.ParquetFile(file, pre_buffer=False)
    schema = source.schema_arrow
    title = _find_vector_column(name, schema, column)
    titles = list(_find_places(schema, title))
    n_rows = source.metadata.num_rows
    _check_size(name, n_rows, 1)
    parts: list[np.ndarray] = []
    columns: dict[str, list[pa.Array]] = {other: [] for other in titles if other != title}
    n_before = 0
    for batch in source.iter_batches(_AT_ONCE, columns=titles):
        places = _find_places(batch.schema, title)
        rows = batch.column(places[title])
        parts.append(_read_rows(name, getattr(rows, "storage", rows), n_before))
        n_before += len(batch)
        if parts[-1].shape[1] != parts[0].shape[1]:
            raise TextError(_UNEQUAL.format(name))
        _check_size(name, n_rows, parts[0].shape[1])
        for other, arrays in columns.items():
            array = batch.column(places[other])
            arrays.append(getattr(array, "storage", array))
    if not parts:
        raise TextError(f"{name} has no rows.")
    vectors = _check_vectors(name, np.concatenate(parts))
    return ReadVectors(
        name, vectors, {other: pa.chunked_array(arrays) for other, arrays in columns.items()}
    )


def _find_places(schema: pa.Schema, vectors: str) -> dict[str, int]:
    """Where the vectors and the simple columns are; of several with one name, the first counts."""
    places: dict[str, int] = {}
    for place, column in enumerate(schema):
        is_nested = types.is_nested(_stored(column.type))
        if _is_vector(column.type) if column.name == vectors else not is_nested:
            places.setdefault(column.name, place)
    return places


def _read_rows(name: str, column: pa.Array, before: int) -> np.ndarray:
    """[row, dim] of a column of lists; ``before`` rows precede it."""
    if column.null_count:
        row = before + column.is_null().to_numpy(zero_copy_only=False).argmax() + 1
        raise TextError(f"{name} has no vector in row {row:,}. Fill it, or leave the row out.")
    lengths = compute.unique(compute.list_value_length(column)).to_pylist()
    if len(lengths) > 1:
        raise TextError(_UNEQUAL.format(name))
    values = column.flatten().to_numpy(zero_copy_only=False)  # a missing value is NaN
    return values.reshape(len(column), lengths[0])


def _find_vector_column(name: str, schema: pa.Schema, column: str) -> str:
    """``column`` if one is given; else that of number lists named like vectors, or the only one."""
    lists = [field.name for field in schema if _is_vector(field.type)]
    if column:
        if column not in lists:
            raise TextError(
                f"{name} has no vectors in a column “{column[:40]}”. Its columns with lists of "
                f"numbers: {list_columns(lists) or 'none'}."
            )
        return column
    named = match_names(lists, VECTOR_COLUMNS)
    if not named and len(lists) != 1:
        raise TextError(
            f"{name} has {'no' if not lists else 'more than one'} column with lists of numbers. "
            "Call the column with the vectors “vector”."
        )
    return named[0] if named else lists[0]


def _is_vector(kind: pa.DataType) -> bool:
    kind = _stored(kind)
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def _stored(kind: pa.DataType) -> pa.DataType:
    """The storage type of an extension type, such as a fixed-shape tensor."""
    return getattr(kind, "storage_type", kind)


def _check_size(name: str, n_rows: int, dim: int) -> None:
    if not n_rows or not dim:
        raise TextError(f"{name} holds no vectors.")
    if n_rows > MAX_TEXTS or n_rows * dim > MOST_VALUES:
        raise TextError(
            f"{name} has {n_rows:,} × {dim:,} values. Up to {MAX_TEXTS:,} rows and "
            f"{MOST_VALUES:,} values can be read: split the file."
        )


def _check_vectors(name: str, vectors: np.ndarray) -> np.ndarray:
    if vectors.dtype.kind not in "fiu":
        raise TextError(
            f"{name} holds values of the type {vectors.dtype}, not numbers. Save the vectors as "
            "float32."
        )
    if vectors.shape[1] < 2:
        raise TextError(f"The vectors in {name} have one value. They need at least 2.")
    if vectors.dtype.itemsize < np.float32().itemsize:
        vectors = vectors.astype(np.float32)
    _refuse_rows(name, np.isfinite(vectors), "contains NaN or infinite values")
    _refuse_rows(name, np.abs(vectors) <= LARGEST, f"contains values above {LARGEST:g}")
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _refuse_rows(name: str, is_good: np.ndarray, problem: str) -> None:
    bad: Sequence[int] = np.flatnonzero(~is_good.all(axis=1)).tolist()
    if bad:
        others_note = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise TextError(
            f"The vector in row {bad[0] + 1:,}{others_note} of {name} {problem}. Compute it again, "
            "or leave its text out of both files."
        )
