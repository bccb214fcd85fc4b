"""The products of all pairs of texts to files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from neuralviz.evaluation.similarity import pair_indices
from neuralviz.store.writing import escape_formula, write_beside

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.evaluation.similarity import Similarity

PAIRS_AT_A_TIME = 100_000


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
    names = ("method", "id1", "id2", "text1", "text2")
    columns = [(name, pa.string()) for name in names]
    schema = pa.schema([*columns, ("product", pa.float32()), ("rank", pa.int64())])
    writers = {".parquet": parquet.ParquetWriter, ".csv": arrow_csv.CSVWriter}
    safe = escape_formula if path.suffix.lower() == ".csv" else str
    id_column = pa.array(map(safe, ids), pa.string())
    with write_beside(path) as file, writers[path.suffix.lower()](file, schema) as writer:
        for similarity in similarities:
            text_column = pa.array(map(safe, similarity.texts), pa.string())
            for rows in _product_rows(similarity, id_column, text_column, schema):
                writer.write_table(rows)


def _product_rows(
    similarity: Similarity, id_column: pa.Array, text_column: pa.Array, schema: pa.Schema
) -> Iterator[pa.Table]:
    first, second = pair_indices(len(similarity.texts))
    for start in range(0, len(first), PAIRS_AT_A_TIME):
        i, j = (indices[start : start + PAIRS_AT_A_TIME] for indices in (first, second))
        columns = [
            pa.repeat(pa.scalar(similarity.method), len(i)),
            id_column.take(pa.array(i)),
            id_column.take(pa.array(j)),
            text_column.take(pa.array(i)),
            text_column.take(pa.array(j)),
            pa.array(similarity.products[i, j], pa.float32()),
            pa.array(similarity.ranks[i, j].astype(np.int64)),
        ]
        yield pa.table(columns, schema=schema)
