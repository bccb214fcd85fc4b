"""Vectors of many texts, read piece by piece in any order, from places that are looked up once."""

from __future__ import annotations

import numpy as np

from neuralviz.store.database import Database, rows_of
from neuralviz.store.lookups import rows_with_keys
from neuralviz.store.vectors import (
    LOSSES,
    KeptEmbedder,
    keys_of,
    losses_of,
    match_keys,
    not_embedded_error,
    vectors_table,
)


class LocatedVectors:
    """The vectors of some texts as of one moment; in memory are only their places.

    Attributes:
        were_learnt: whether a loss is kept of one of the texts.

    Args:
        database: that keeps the vectors.
        embedder: whose they are.
        keys: of the texts.

    Raises:
        StoreError: one is missing.
    """

    def __init__(self, database: Database, embedder: KeptEmbedder, keys: np.ndarray) -> None:
        self.were_learnt = False
        self._database, self._embedder = database, embedder
        self._keys = np.unique(keys)
        self._places = np.zeros(len(self._keys), dtype=np.uint64)
        is_located = np.zeros(len(self._keys), dtype=bool)
        with database.reading():
            self._table = database.open(vectors_table(embedder))
            self._table.checkout(self._table.version)  # places are others after the next write
            for batch in rows_with_keys(self._table, self._keys, LOSSES, with_places=True):
                positions, matched = match_keys(self._keys, keys_of(batch["key"]))
                self._places[positions] = batch["_rowid"].to_numpy()[matched]
                is_located[positions] = True
                self.were_learnt |= not np.isnan(losses_of(batch)[matched]).all()
        if not is_located.all():
            raise not_embedded_error(int((~is_located).sum()), len(is_located))

    def read(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] float32 vectors, and [text, 2] losses as of `KeptVectors.losses`.

        Args:
            keys: some of those that were looked up.

        Raises:
            StoreError: they cannot be read.
        """
        distinct, order = np.unique(keys, return_inverse=True)
        vectors = np.empty((len(distinct), self._embedder.dim), dtype=np.float32)
        loss = np.empty((len(distinct), 2))
        places = self._places[np.searchsorted(self._keys, distinct)].tolist()
        with self._database.reading():
            query = self._table.take_row_ids(places).select(["key", *LOSSES, "vector"])
            for batch in query.to_arrow().to_batches():
                positions, matched = match_keys(distinct, keys_of(batch["key"]))
                vectors[positions] = rows_of(batch["vector"])[matched]
                loss[positions] = losses_of(batch)[matched]
        return vectors[order], loss[order]
