"""Vectors that were computed before, kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from neuralviz.embedders.base import Embedder


class VectorCache:
    """Vectors by embedder and text; those used longest ago go first. Safe to share by threads.

    A key is the embedder's `cache_key` with the text itself.

    Args:
        max_bytes: of the vectors.
    """

    def __init__(self, max_bytes: int = 1 << 28) -> None:
        self.max_bytes = max_bytes
        self._vectors: OrderedDict[tuple[Any, str], np.ndarray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, embedder: Embedder, texts: Sequence[str]) -> list[np.ndarray | None]:
        """[text] each text's vector, None where it is not kept."""
        of = embedder.cache_key()
        keys = [(of, text) for text in texts]
        with self._lock:
            for key in keys:
                if key in self._vectors:
                    self._vectors.move_to_end(key)
            return [self._vectors.get(key) for key in keys]

    def put(self, embedder: Embedder, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Keep the [text, dim] vectors of some texts."""
        of = embedder.cache_key()
        with self._lock:
            for text, vector in zip(texts, vectors, strict=True):
                key = (of, text)
                if key not in self._vectors:
                    self._bytes += vector.nbytes
                self._vectors[key] = vector.copy()
            while self._bytes > self.max_bytes:
                _, dropped = self._vectors.popitem(last=False)
                self._bytes -= dropped.nbytes
