"""Models of the library sentence-transformers as embedders."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from tokenizers import Tokenizer

from neuralviz.arrays import unit_vectors
from neuralviz.embedders.base import Embedded, Embedder, missing_losses
from neuralviz.embedders.splits import SPECIAL_TOKENS, Part, SplitVector
from neuralviz.errors import SettingsError, ShouldStop, check_stop
from neuralviz.models.passes import copy_network, explain_failure, seeded
from neuralviz.models.sentence_transformer import encode_together, encoder_habits, token_parts
from neuralviz.models.shared import check_unchanged, shared_sentence_transformer
from neuralviz.models.tokens import find_unknown_id, to_utf8

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from neuralviz.embedders.specs import EmbedderSpec

SAME_VECTOR = 1e-6  # of 1 − cosine
PREPARED_TEXTS = 256  # at once, since all are padded to the longest


class SentenceTransformerEmbedder(Embedder):
    """Embeds with a ``SentenceTransformer``, its pooling and its default prompt; cuts long texts.

    Without a ``fingerprint`` of its weights, its cache key is like no other. `ModelError` if the
    encoder cannot read a text, or its tokens do not affect each other.
    """

    name = "sentence-transformer"
    _kept = ("spec", "_fingerprint")

    def __init__(self, encoder: SentenceTransformer, fingerprint: str = "") -> None:
        if not hasattr(encoder, "encode_query"):
            raise SettingsError(
                "The encoder must be a SentenceTransformer, such as SentenceTransformer(…) gives, "
                f"not {encoder!r:.60}."
            )
        self.encoder = encoder
        self._habits = encoder_habits(encoder)
        self._fingerprint = fingerprint or uuid.uuid4().hex
        self._prompt_options: dict[str, str | None] = {}
        self._task: str | None = None

    def __repr__(self) -> str:
        modules = ", ".join(type(module).__name__ for module in self.encoder)
        model = f"model={self.spec.model_id!r}, " if self.spec else ""
        return f"{type(self).__name__}(method={self.name!r}, {model}modules=[{modules}])"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.spec is None:  # the user's own encoder has no id
            return super().__reduce__()
        return _load_again, (self.spec, self._fingerprint)

    @property
    def device(self) -> str:
        return str(self.encoder.device)

    @property
    def dim(self) -> int:
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
        prompted._prompt_options = (
            {"prompt": prompt} if prompt is not None else {"prompt_name": name}
        )
        prompted._task = task
        return prompted

    def _with_all_values(self) -> Self:
        whole = copy.copy(self)
        whole.encoder = copy.copy(self.encoder)  # shares its modules
        whole.encoder.truncate_dim = None
        return whole

    def token_ids(self, texts: Sequence[str]) -> list[tuple[int | None, ...]]:
        tokenizer = getattr(self.encoder[0], "tokenizer", None)
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not isinstance(backend, Tokenizer):  # a router has several
            return []
        unknown = find_unknown_id(backend, getattr(tokenizer, "unk_token", None))
        special = set(getattr(tokenizer, "all_special_ids", ())) - {unknown}
        read: list[list[int]] = []
        for start in range(0, len(texts), PREPARED_TEXTS):
            batch = list(map(to_utf8, texts[start : start + PREPARED_TEXTS]))
            features = self.encoder.preprocess(batch)
            ids, offsets = features["input_ids"], features.get("offsets")
            rows = ids if offsets is None else ids.tensor_split(offsets[1:])
            read += [row.tolist() for row in rows]
        return [
            tuple(None if id_ == unknown else id_ for id_ in ids if id_ not in special)
            for ids in read
        ]

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> Embedded:
        check_stop(should_stop)
        groups = [read] if self._habits.batching == "padded" else [[text] for text in read]
        with explain_failure("The sentence encoder could not encode the texts"):
            vectors = np.concatenate([self._encode(texts) for texts in groups])
        return vectors, missing_losses(len(read))

    def _split(self, read: Sequence[str], should_stop: ShouldStop) -> list[SplitVector] | None:
        vectors, _ = self._embed(read, should_stop)
        if self._habits.draws or self._habits.keeps_state:
            return None
        splits = [split for text in read if (split := self._split_text(text)) is not None]
        pairs = zip(splits, unit_vectors(vectors), strict=False)
        is_exact = all(
            split.normalize().vector @ vector > 1 - SAME_VECTOR for split, vector in pairs
        )
        return splits if is_exact and len(splits) == len(read) else None

    def _split_text(self, text: str) -> SplitVector | None:
        name = self._prompt_options.get("prompt_name") or self.encoder.default_prompt_name
        prompt = self._prompt_options.get("prompt")
        prefix = prompt if prompt is not None else self.encoder.prompts.get(name or "") or ""
        parts = token_parts(self.encoder, text, prefix)
        if parts is None:
            return None
        is_own = parts.text.spans[:, 0] >= len(prefix)
        rows = np.vstack([parts.vectors[is_own], parts.rest + parts.vectors[~is_own].sum(axis=0)])
        word_spans = np.array(parts.text.word_spans)[parts.text.words]
        spans, word_spans = (  # a word may begin in the prompt
            np.maximum(pairs[is_own] - len(prefix), 0) for pairs in (parts.text.spans, word_spans)
        )
        return SplitVector(text, spans, word_spans, (Part("last layer", 0, rows),), SPECIAL_TOKENS)

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        habits = self._habits
        encoder = copy_network(self.encoder) if habits.keeps_state else self.encoder
        with seeded(0) if habits.draws else nullcontext():
            vectors = encode_together(encoder, texts, self._task, **self._prompt_options)
        return np.stack([vector.numpy() for vector in vectors])


def _load_again(spec: EmbedderSpec, fingerprint: str) -> SentenceTransformerEmbedder:
    encoder, current_fingerprint = shared_sentence_transformer(spec.model_id)
    check_unchanged(spec.model_id, current_fingerprint, fingerprint)
    embedder = SentenceTransformerEmbedder(encoder, current_fingerprint)
    embedder.spec = spec
    return embedder
