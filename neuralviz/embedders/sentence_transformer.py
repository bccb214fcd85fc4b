"""Any model of the library sentence-transformers as one more embedder."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.embedders.base import Embedder, nothing_learnt
from neuralviz.errors import ModelError, ShouldStop, Stopped

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceTransformerEmbedder(Embedder):
    """Embeds with a ``SentenceTransformer``, by its own pooling and with its default prompt.

    Args:
        encoder: the user's own, or from `neuralviz.models.load_sentence_transformer`. It cuts off
            what is longer than its window.
        fingerprint: of its weights, for caches; without one an embedder is told from every other.
    """

    name = "sentence-transformer"

    def __init__(self, encoder: SentenceTransformer, fingerprint: str = "") -> None:
        self.encoder = encoder
        self._fingerprint = fingerprint or uuid.uuid4().hex

    @property
    def dim(self) -> int:
        """Values of one vector."""
        dim = self.encoder.get_embedding_dimension()
        return int(dim) if dim else int(self.encoder.encode(["a"]).shape[1])

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "sentence-transformer", "fingerprint": self._fingerprint}

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        if should_stop():
            raise Stopped
        try:
            vectors = self.encoder.encode(
                list(read), batch_size=len(read), show_progress_bar=False, convert_to_numpy=True
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(f"The sentence encoder could not encode the texts: {error}") from error
        return np.asarray(vectors, dtype=np.float32), nothing_learnt(len(read))
