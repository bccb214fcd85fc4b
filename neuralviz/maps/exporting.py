"""A corpus as one table: ids, texts, labels, and what was found out about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neuralviz.maps.kept import KeptMaps
from neuralviz.store.corpora import are_whole
from neuralviz.store.vectors import LOSSES, LocatedVectors
from neuralviz.store.writing import vector_lists
from neuralviz.words import free_name

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.maps.clusters import Clusters
    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

NO_CLUSTER = -1
PIECE = 20_000  # texts: some 100 MB with long vectors
AXES = ("x", "y", "z")
OWN_COLUMNS = ("id", "text", *AXES, "cluster", *LOSSES, "vector")


def corpus_table(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder | None = None,
    kept: KeptMap | None = None,
    rows: np.ndarray | None = None,
) -> pa.Table:
    """A row a text, in the order of the corpus or of ``rows``: ``id``, ``text`` and the labels.

    A label that is named like a column of ours gets ``label`` behind it. With a map there are
    ``x``, ``y`` (``z``) and ``cluster`` (from 1, the largest first; -1 is none), with an embedder
    ``vector``, and ``first_loss`` and ``last_loss`` where texts were learnt. A StoreError where a
    vector, the map or the corpus is not there.
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
    """`corpus_table` in pieces of ``size`` texts, one at least, where memory holds not all."""
    points = None if kept is None else KeptMaps(store).points(kept)
    vectors = None
    if embedder is not None:
        vectors = LocatedVectors(store.database, embedder, store.keys(corpus, rows))
    wholes = {
        column.name: column.kind == "number" and are_whole(store.labels(corpus, column.name, rows))
        for column in corpus.columns
    }
    text_rows = np.arange(corpus.n_texts) if rows is None else np.asarray(rows, dtype=np.int64)
    for start in range(0, max(len(text_rows), 1), size):
        block_rows = text_rows[start : start + size]
        columns = _corpus_columns(store, corpus, block_rows, wholes)
        if points is not None:
            columns |= _map_columns(points, block_rows)
        if vectors is not None:
            columns |= _vector_columns(vectors, store.keys(corpus, block_rows))
        yield pa.table(columns)


def _corpus_columns(
    store: CorpusStore,
    corpus: Corpus,
    rows: np.ndarray,
    wholes: Mapping[str, bool],
) -> dict[str, pa.Array]:
    """Columns of the corpus; ``wholes`` tells whether a column of numbers is of whole numbers."""
    columns: dict[str, pa.Array] = {
        "id": pa.array(store.ids(corpus, rows), pa.string()),
        "text": pa.array(store.texts(corpus, rows), pa.large_string()),
    }
    for column in corpus.columns:
        values = store.labels(corpus, column.name, rows)
        kind = pa.string()
        if column.kind == "number":
            kind = pa.int64() if wholes[column.name] else pa.float64()
        columns[free_name(column.name, (*OWN_COLUMNS, *columns), "label")] = pa.array(
            values, kind, from_pandas=True
        )
    return columns


def _vector_columns(vectors: LocatedVectors, keys: np.ndarray) -> dict[str, pa.Array]:
    """The vectors of texts, and their losses where some were learnt."""
    block, loss = vectors.read(keys)
    columns = dict(zip(LOSSES, map(pa.array, loss.T), strict=True)) if vectors.were_learnt else {}
    return columns | {"vector": vector_lists(block)}


def _map_columns(points: tuple[np.ndarray, Clusters], rows: np.ndarray) -> dict[str, pa.Array]:
    """Where texts are on a map, and in which cluster."""
    coordinates, clusters = points
    labels = clusters.labels[rows]
    columns = dict(zip(AXES, map(pa.array, coordinates[rows].T), strict=False))
    return columns | {
        "cluster": pa.array(np.where(labels >= 0, labels + 1, NO_CLUSTER), pa.int32())
    }
