"""Any model of the library sentence-transformers as one more embedder."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neuralviz.embedders.base import Embedder, nothing_learnt
from neuralviz.errors import ModelError, SettingsError, ShouldStop, Stopped
from neuralviz.models.shared import check_unchanged, shared_sentence_transformer

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from neuralviz.embedders.specs import EmbedderSpec


class SentenceTransformerEmbedder(Embedder):
    """Embeds with a ``SentenceTransformer``, by its own pooling and with its default prompt.

    Args:
        encoder: the user's own, or from `neuralviz.models.load_sentence_transformer`. It cuts off
            what is longer than its window.
        fingerprint: of its weights, for caches; without one an embedder is told from every other.
    """

    name = "sentence-transformer"
    _kept = ("spec", "_fingerprint")

    def __init__(self, encoder: SentenceTransformer, fingerprint: str = "") -> None:
        self.encoder = encoder
        self._fingerprint = fingerprint or uuid.uuid4().hex
        self._asked: dict[str, str | None] = {}
        self._task: str | None = None

    def __repr__(self) -> str:
        modules = ", ".join(type(module).__name__ for module in self.encoder)
        model = f"model={self.spec.model_id!r}, " if self.spec else ""
        return f"{type(self).__name__}(method={self.name!r}, {model}modules=[{modules}])"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.spec is None:  # the user's own encoder, which no id stands for
            return super().__reduce__()
        return _load_again, (self.spec, self._fingerprint)

    @property
    def device(self) -> str:
        return str(self.encoder.device)

    @property
    def dim(self) -> int:
        """Values of one vector."""
        dim = self.encoder.get_embedding_dimension()
        return int(dim) if dim else int(self.encoder.encode(["a"]).shape[1])

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "sentence-transformer", "fingerprint": self._fingerprint}

    def _with_prompt(self, prompt: str | None, name: str | None, task: str | None) -> Self:
        if prompt is None and name is not None and name not in self.encoder.prompts:
            names = ", ".join(map(repr, self.encoder.prompts)) or "none"
            raise SettingsError(f"The model has no prompt named {name!r:.40}. It has: {names}.")
        prompted = copy.copy(self)
        prompted._asked = {"prompt": prompt} if prompt is not None else {"prompt_name": name}
        prompted._task = task
        return prompted

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        if should_stop():
            raise Stopped
        try:
            ways = {"query": "encode_query", "document": "encode_document"}
            encode = getattr(self.encoder, ways.get(self._task or "", "encode"))
            vectors = encode(
                list(read),
                batch_size=len(read),
                show_progress_bar=False,
                convert_to_numpy=True,
                **self._asked,
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(f"The sentence encoder could not encode the texts: {error}") from error
        return np.asarray(vectors, dtype=np.float32), nothing_learnt(len(read))


def _load_again(spec: EmbedderSpec, fingerprint: str) -> SentenceTransformerEmbedder:
    """The embedder that a pickle names.

    Raises:
        ModelError: its model cannot be had, or its files have changed.
    """
    encoder, now = shared_sentence_transformer(spec.model_id)
    check_unchanged(spec.model_id, now, fingerprint)
    embedder = SentenceTransformerEmbedder(encoder, now)
    embedder.spec = spec
    return embedder
