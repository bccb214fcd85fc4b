"""Any model of the library sentence-transformers as one more embedder."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.embedders.base import Embedder, nothing_learnt
from neuralviz.errors import ModelError, ShouldStop, Stopped
from neuralviz.models.passes import Habits, copy_network, is_out_of_memory, seeded
from neuralviz.models.trial import ProbeInputs, check_context, probe_habits

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

_LONG = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
_PROBES = ProbeInputs("a b", _LONG, _LONG[::-1])


class SentenceTransformerEmbedder(Embedder):
    """Embeds with a ``SentenceTransformer``, by its own pooling and with its default prompt.

    Args:
        encoder: the user's own, or from `neuralviz.models.load_sentence_transformer`. It cuts off
            what is longer than its window.
        fingerprint: of its weights, for caches; without one an embedder is told from every other.

    Raises:
        ModelError: the encoder cannot read a text, or its tokens do not know of each other.
    """

    name = "sentence-transformer"

    def __init__(self, encoder: SentenceTransformer, fingerprint: str = "") -> None:
        self.encoder = encoder
        self._habits = _probe(encoder)
        self._fingerprint = fingerprint or uuid.uuid4().hex

    @property
    def dim(self) -> int:
        """Values of one vector."""
        dim = self.encoder.get_embedding_dimension()
        return int(dim) if dim else int(self.encoder.encode(["a"]).shape[1])

    @property
    def depends_on(self) -> Mapping[str, Any]:
        key = {"method": "sentence-transformer", "fingerprint": self._fingerprint}
        return {**key, **self._habits.cache_key}

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        if should_stop():
            raise Stopped
        try:
            if self._habits.batching == "padded":
                vectors = self._encode(read)
            else:
                vectors = np.concatenate([self._encode([text]) for text in read])
        except Exception as error:  # whatever an architecture makes of a text
            if is_out_of_memory(error):
                raise
            raise ModelError(f"The sentence encoder could not encode the texts: {error}") from error
        return vectors, nothing_learnt(len(read))

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        """[text, dim] vectors of texts that share a pass."""
        habits = self._habits
        encoder = copy_network(self.encoder) if habits.keeps_state else self.encoder
        with seeded(0) if habits.draws else nullcontext():
            return np.stack([vector.numpy() for vector in _encode_together(encoder, texts)])


def _encode_together(encoder: Any, texts: Sequence[str], **options: Any) -> list[Tensor]:
    """A vector of each text, or with ``output_value="token_embeddings"``, one of each token."""
    vectors = encoder.encode(
        list(texts),
        batch_size=len(texts),
        show_progress_bar=False,
        convert_to_numpy=False,
        **options,
    )
    return [vector.float().cpu() for vector in vectors]


def _probe(encoder: SentenceTransformer) -> Habits:
    """What its vectors depend on besides the text."""
    name = "The sentence encoder"
    try:
        habits = probe_habits(encoder, _encode_together, _PROBES, name)
        if hasattr(encoder[0], "auto_model"):  # tables of token vectors know of no neighbours
            network, tokens = copy_network(encoder), []
            for text in (_LONG, _LONG.replace("m", "z")):
                with seeded(0):
                    tokens += _encode_together(network, [text], output_value="token_embeddings")
            if tokens[0].shape == tokens[1].shape:
                check_context(tokens[0], tokens[1], name)
    except ModelError:
        raise
    except Exception as error:  # whatever an architecture makes of a text
        if is_out_of_memory(error):
            raise
        raise ModelError(f"{name} does not read a plain text: {error}") from error
    return habits
