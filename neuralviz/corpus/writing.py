"""Vectors to files: parquet, CSV or JSON lines, written beside and moved into place."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from neuralviz.errors import NeuralvizError


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
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        with part.open("wb") as file:
            _WRITERS[path.suffix.lower()](file, ids, texts, vectors)
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
