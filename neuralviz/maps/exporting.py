"""Export a corpus as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neuralviz.maps.kept import KeptMaps
from neuralviz.store.corpora import are_whole
from neuralviz.store.vectors import LOSSES, LocatedVectors
from neuralviz.store.writing import vector_lists
from neuralviz.words import free_name

if TYPE_CHECKING:
    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Column, Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

NO_CLUSTER = -1
PIECE = 20_000  # texts; about 100 MB with long vectors
AXES = ("x", "y", "z")
OWN_COLUMNS = ("id", "text", *AXES, "cluster", *LOSSES, "vector")


def corpus_table(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder | None = None,
    kept: KeptMap | None = None,
    rows: np.ndarray | None = None,
) -> pa.Table:
    """Table of ``id``, ``text`` and labels, in the order of the corpus or of ``rows``.

    A map adds ``x``, ``y`` (``z``) and ``cluster`` (1 is the largest, -1 none), an embedder
    ``vector``, and ``first_loss`` and ``last_loss`` if texts were learnt. Labels with such names
    get the suffix ``label``. Raises StoreError if the corpus, the map or a vector is missing.
    """
    return pa.concat_tables(corpus_pieces(store, corpus, embedder, kept, rows))


def corpus_pieces(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder | None = None,
    kept: KeptMap | None = None,
    rows: np.ndarray | None = None,
    size: int = PIECE,
) -> Iterator[pa.Table]:
    """`corpus_table` in pieces of ``size`` texts, to bound memory."""
    points = None if kept is None else KeptMaps(store).points(kept)
    vectors = None
    if embedder is not None:
        vectors = LocatedVectors(store.database, embedder, store.keys(corpus, rows))
    kinds = {column.name: _label_type(store, corpus, column, rows) for column in corpus.columns}
    text_rows = np.arange(corpus.n_texts) if rows is None else np.asarray(rows, dtype=np.int64)
    for start in range(0, max(len(text_rows), 1), size):
        block_rows = text_rows[start : start + size]
        columns: dict[str, pa.Array] = {
            "id": pa.array(store.ids(corpus, block_rows), pa.string()),
            "text": pa.array(store.texts(corpus, block_rows), pa.large_string()),
        }
        for name, kind in kinds.items():
            title = free_name(name, (*OWN_COLUMNS, *columns), "label")
            columns[title] = pa.array(
                store.labels(corpus, name, block_rows), kind, from_pandas=True
            )
        if points is not None:
            coordinates, clusters = points
            columns |= dict(zip(AXES, map(pa.array, coordinates[block_rows].T), strict=False))
            labels = clusters.labels[block_rows]
            columns["cluster"] = pa.array(np.where(labels >= 0, labels + 1, NO_CLUSTER), pa.int32())
        if vectors is not None:
            block, loss = vectors.read(store.keys(corpus, block_rows))
            if vectors.were_learnt:
                columns |= dict(zip(LOSSES, map(pa.array, loss.T), strict=True))
            columns["vector"] = vector_lists(block)
        yield pa.table(columns)


def _label_type(
    store: CorpusStore, corpus: Corpus, column: Column, rows: np.ndarray | None
) -> pa.DataType:
    if column.kind == "text":
        return pa.string()
    is_whole = are_whole(store.labels(corpus, column.name, rows))
    return pa.int64() if is_whole else pa.float64()
