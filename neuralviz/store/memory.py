"""Vectors that were computed before, kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.store.vectors import KeptEmbedder, StoredVectors, embedder_id

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder

MAX_BYTES = 1 << 28


class MemoryVectors:
    """A `VectorStore` that forgets the vectors used longest ago. Safe to share by threads.

    Args:
        max_bytes: of the vectors; 0 keeps none.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._vectors: OrderedDict[tuple[str, bytes], tuple[np.ndarray, np.ndarray]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def register(self, embedder: Embedder) -> KeptEmbedder:
        """What an embedder's vectors are kept under."""
        spec = embedder.spec.to_json() if embedder.spec else ""
        return KeptEmbedder(embedder_id(embedder), spec, embedder.dim)

    def has_vectors(self, embedder: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
        """[text] whether there is a vector."""
        with self._lock:
            return np.array([(embedder.id, key) in self._vectors for key in keys.tolist()], bool)

    def find(
        self, embedder: KeptEmbedder, keys: np.ndarray, *, with_vectors: bool = True
    ) -> StoredVectors:
        """What is kept of some texts; it is the last to be forgotten now."""
        rows = []
        with self._lock:
            for key in keys.tolist():
                row = self._vectors.get((embedder.id, key))
                if row is not None:
                    self._vectors.move_to_end((embedder.id, key))
                rows.append(row)
        kept = [row for row in rows if row is not None]
        vectors = np.array([vector for vector, _ in kept], np.float32).reshape(-1, embedder.dim)
        loss = np.array([loss for _, loss in kept], float).reshape(-1, 2)
        mask = np.array([row is not None for row in rows], bool)
        return StoredVectors(mask, vectors if with_vectors else None, loss)

    def put(
        self, embedder: KeptEmbedder, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray
    ) -> None:
        """Keep vectors; those that are there already stay as they are."""
        with self._lock:
            for key, vector, its_loss in zip(keys.tolist(), vectors, loss, strict=True):
                place = (embedder.id, key)
                if place not in self._vectors:
                    self._vectors[place] = (vector.astype(np.float32), its_loss.copy())
                    self._bytes += self._vectors[place][0].nbytes
            while self._bytes > self.max_bytes:
                _, (dropped, _loss) = self._vectors.popitem(last=False)
                self._bytes -= dropped.nbytes

    def compact(self, embedder: KeptEmbedder) -> None:
        """Nothing is in pieces here."""
