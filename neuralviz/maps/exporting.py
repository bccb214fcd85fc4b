"""A corpus as one table: ids, texts, labels, and what was found out about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neuralviz.maps.kept import KeptMaps
from neuralviz.store.writing import lists_of
from neuralviz.words import free_name

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.maps.clusters import Clusters
    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

NO_CLUSTER = -1
PIECE = 100_000  # texts
AXES = ("x", "y", "z")
OURS = ("id", "text", *AXES, "cluster", "first_loss", "last_loss", "vector")


def corpus_table(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder | None = None,
    kept: KeptMap | None = None,
    rows: np.ndarray | None = None,
) -> pa.Table:
    """A row a text, in the order of the corpus, or of the rows asked for.

    The columns are ``id``, ``text``, the labels by their names (one that is named like a column of
    ours gets ``label`` behind it), with a map ``x``, ``y`` (``z``) and ``cluster`` (from 1, the
    largest first, as on the page; -1 is none), with an embedder ``vector``, and ``first_loss`` and
    ``last_loss`` where texts were learnt.

    Args:
        store: that keeps the corpus.
        corpus: to be written.
        embedder: whose vectors are wanted.
        kept: a map whose points are wanted.
        rows: row numbers of the texts; all by default.

    Raises:
        StoreError: a vector, the map or the corpus is not there.
    """
    columns = _columns(store, corpus, rows, {})
    if kept is not None:
        columns |= _place(KeptMaps(store).points(kept), slice(None) if rows is None else rows)
    if embedder is not None:
        keys = store.keys(corpus, rows)
        loss = store.vectors.losses(embedder, keys)
        if not np.isnan(loss).all():
            columns["first_loss"], columns["last_loss"] = map(pa.array, loss.T)
        columns["vector"] = lists_of(store.vectors.get(embedder, keys))
    return pa.table(columns)


def corpus_pieces(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, size: int = PIECE
) -> Iterator[pa.Table]:
    """`corpus_table` with a map in pieces, for more texts than memory holds.

    Args:
        store, corpus, kept: as of `corpus_table`.
        size: texts of a piece.

    Yields:
        Tables with the same columns, one at least.

    Raises:
        As `corpus_table`.
    """
    points = KeptMaps(store).points(kept)
    wholes = {
        one.name: one.kind == "number" and _are_whole(store.labels(corpus, one.name))
        for one in corpus.columns
    }
    for start in range(0, corpus.n_texts, size):
        rows = np.arange(start, min(start + size, corpus.n_texts))
        some = slice(start, start + size)
        yield pa.table(_columns(store, corpus, rows, wholes) | _place(points, some))


def _columns(
    store: CorpusStore,
    corpus: Corpus,
    rows: np.ndarray | None,
    wholes: Mapping[str, bool],
) -> dict[str, pa.Array]:
    """What is in the corpus; ``wholes`` says of columns of numbers whether all are whole."""
    columns: dict[str, pa.Array] = {
        "id": pa.array(store.ids(corpus, rows), pa.string()),
        "text": pa.array(store.texts(corpus, rows), pa.large_string()),
    }
    for column in corpus.columns:
        values = store.labels(corpus, column.name, rows)
        kind = pa.string()
        if column.kind == "number":
            whole = wholes.get(column.name)
            kind = pa.int64() if (_are_whole(values) if whole is None else whole) else pa.float64()
        columns[free_name(column.name, (*OURS, *columns), "label")] = pa.array(
            values, kind, from_pandas=True
        )
    return columns


def _are_whole(values: np.ndarray) -> bool:
    return bool((values[np.isfinite(values)] % 1 == 0).all())


def _place(points: tuple[np.ndarray, Clusters], rows: slice | np.ndarray) -> dict[str, pa.Array]:
    """Where texts are on a map, and in which cluster."""
    coordinates, clusters = points
    labels = clusters.labels[rows]
    columns = dict(zip(AXES, map(pa.array, coordinates[rows].T), strict=False))
    return columns | {
        "cluster": pa.array(np.where(labels >= 0, labels + 1, NO_CLUSTER), pa.int32())
    }
