"""A corpus as one table: ids, texts, labels, and what was found out about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neuralviz.maps.kept import KeptMaps
from neuralviz.store.writing import lists_of
from neuralviz.words import free_name

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

NO_CLUSTER = -1
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
    columns: dict[str, pa.Array] = {
        "id": pa.array(store.ids(corpus, rows), pa.string()),
        "text": pa.array(store.texts(corpus, rows), pa.large_string()),
    }
    for column in corpus.columns:
        values = store.labels(corpus, column.name, rows)
        kind = pa.string()
        if column.kind == "number":
            finite = values[np.isfinite(values)]
            kind = pa.int64() if (finite % 1 == 0).all() else pa.float64()
        columns[free_name(column.name, (*OURS, *columns), "label")] = pa.array(
            values, kind, from_pandas=True
        )
    if kept is not None:
        coordinates, clusters = KeptMaps(store).points(kept)
        some = slice(None) if rows is None else rows
        columns |= dict(zip(AXES, map(pa.array, coordinates[some].T), strict=False))
        labels = clusters.labels[some]
        columns["cluster"] = pa.array(np.where(labels >= 0, labels + 1, NO_CLUSTER), pa.int32())
    if embedder is not None:
        keys = store.keys(corpus, rows)
        loss = store.vectors.losses(embedder, keys)
        if not np.isnan(loss).all():
            columns["first_loss"], columns["last_loss"] = map(pa.array, loss.T)
        columns["vector"] = lists_of(store.vectors.get(embedder, keys))
    return pa.table(columns)
