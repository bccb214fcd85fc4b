"""Vectors and products to files, written beside and moved into place."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.similarity import pair_indices

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.evaluation.similarity import Similarity

PAIRS_AT_A_TIME = 100_000


def check_destination(path: Path) -> None:
    """Find out before the work whether vectors can be written to ``path``.

    Raises:
        NeuralvizError: its ending is none of ours, or its folder does not exist or is not ours
            to write to.
    """
    if path.suffix.lower() not in _WRITERS:
        raise NeuralvizError(
            f"The output has to end in {', '.join(_WRITERS)}, and {path.name} does not."
        )
    if path.is_dir():
        raise NeuralvizError(f"{path} is a folder; give the name of a file in it.")
    if not path.parent.is_dir():
        raise NeuralvizError(f"There is no folder {path.parent}; create it first.")
    if not os.access(path.parent, os.W_OK):
        raise NeuralvizError(f"The folder {path.parent} cannot be written to.")


def write_vectors(
    path: Path, ids: Sequence[str], texts: Sequence[str], vectors: np.ndarray
) -> None:
    """Write columns ``id``, ``text`` and ``vector`` in the format of the ending of ``path``.

    Args:
        path: ``.parquet`` (vectors are lists of float32), ``.csv`` (JSON) or ``.jsonl``.
        ids, texts: one a text.
        vectors: [text, dim].

    Raises:
        NeuralvizError: the file cannot be written; what was at ``path`` is still there.
    """
    with _beside(path) as file:
        _WRITERS[path.suffix.lower()](file, ids, texts, vectors)


def check_folder(path: Path) -> None:
    """Find out before the work whether files can be written into the folder ``path``.

    Raises:
        NeuralvizError: it is a file, or it, or what it would be created in, is not ours to write
            to.
    """
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise NeuralvizError(f"{there} is a file; give the name of a folder.")
    if not os.access(there, os.W_OK):
        raise NeuralvizError(f"The folder {there} cannot be written to.")


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8.

    Raises:
        NeuralvizError: it cannot be written; what was at ``path`` is still there.
    """
    with _beside(path) as file:
        file.write(text.encode("utf-8"))


def write_products(path: Path, similarities: Sequence[Similarity], ids: Sequence[str]) -> None:
    """Write a row for every method and every pair of different texts, ``.parquet`` or ``.csv``.

    The columns are ``method``, ``id1``, ``id2``, ``text1``, ``text2``, ``product`` (float32) and
    ``rank``, 1 for the most similar pair of the method; equal products share the best of their
    ranks.

    Args:
        similarities: of the same texts, all of them done.
        ids: one a text.

    Raises:
        NeuralvizError: the file cannot be written; what was at ``path`` is still there.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    names = ("method", "id1", "id2", "text1", "text2")
    columns = [(name, pa.string()) for name in names]
    schema = pa.schema([*columns, ("product", pa.float32()), ("rank", pa.int64())])
    writers = {".parquet": parquet.ParquetWriter, ".csv": arrow_csv.CSVWriter}
    with _beside(path) as file, writers[path.suffix](file, schema) as writer:
        for one in similarities:
            for rows in _product_rows(one, ids, schema):
                writer.write_table(rows)


def _product_rows(one: Similarity, ids: Sequence[str], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow as pa

    id_column, text_column = pa.array(ids, pa.string()), pa.array(one.texts, pa.string())
    first, second = pair_indices(len(one.texts))
    for start in range(0, len(first), PAIRS_AT_A_TIME):
        i, j = (at[start : start + PAIRS_AT_A_TIME] for at in (first, second))
        columns = [
            pa.repeat(pa.scalar(one.method), len(i)),
            id_column.take(pa.array(i)),
            id_column.take(pa.array(j)),
            text_column.take(pa.array(i)),
            text_column.take(pa.array(j)),
            pa.array(one.products[i, j], pa.float32()),
            pa.array(one.ranks[i, j].astype(np.int64)),
        ]
        yield pa.table(columns, schema=schema)


@contextmanager
def _beside(path: Path) -> Iterator[IO[bytes]]:
    """A file beside ``path`` that takes its place when all is written."""
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise NeuralvizError(f"{path} could not be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _write_parquet(
    file: IO[bytes], ids: Sequence[str], texts: Sequence[str], vectors: np.ndarray
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    n_texts, dim = vectors.shape
    values = pa.array(vectors.astype(np.float32, copy=False).ravel())
    ends = pa.array(np.arange(n_texts + 1, dtype=np.int32) * dim)
    columns = {
        "id": pa.array(ids, pa.string()),
        "text": pa.array(texts, pa.string()),
        "vector": pa.ListArray.from_arrays(ends, values),
    }
    parquet.write_table(pa.table(columns), file)


def _write_csv(
    file: IO[bytes], ids: Sequence[str], texts: Sequence[str], vectors: np.ndarray
) -> None:
    lines = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(lines)
    writer.writerow(["id", "text", "vector"])
    writer.writerows(zip(ids, texts, map(_as_json, vectors), strict=True))
    lines.detach()


def _write_jsonl(
    file: IO[bytes], ids: Sequence[str], texts: Sequence[str], vectors: np.ndarray
) -> None:
    for row_id, text, vector in zip(ids, texts, vectors, strict=True):
        labels = json.dumps({"id": row_id, "text": text}, ensure_ascii=False)
        file.write(f'{labels[:-1]}, "vector": {_as_json(vector)}}}\n'.encode())


def _as_json(vector: np.ndarray) -> str:
    """A list of numbers with the nine digits that tell every float32 from the next."""
    return f"[{', '.join(f'{value:.9g}' for value in vector)}]"


_WRITERS: dict[str, Callable[[IO[bytes], Sequence[str], Sequence[str], np.ndarray], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}
