"""What all embedders share: checks, batches, and conversion of vectors."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from tqdm.auto import tqdm

from neuralviz.arrays import unit_vectors
from neuralviz.embedders.encoding import (
    accept_sentences,
    check_arguments,
    check_count,
    list_texts,
    quantise,
)
from neuralviz.embedders.parameters import Parametrised
from neuralviz.embedders.unread import describe_unread
from neuralviz.errors import (
    LONG_TEXT,
    LongTextWarning,
    LossWarning,
    ModelError,
    SettingsError,
    ShouldStop,
    UnreadTextWarning,
    never,
)
from neuralviz.models import TextModel, tokenize
from neuralviz.models.language_model import check_model
from neuralviz.models.tokens import check_texts, encode_texts, to_utf8
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta
    from torch import Tensor

    from neuralviz.embedders.specs import EmbedderSpec
    from neuralviz.models import TokenizedText

BATCH_SIZE = 32
# Of `Embedder.cache_key` and the computation; a new version computes all vectors anew.
KEY_VERSION = 2


@dataclass(frozen=True, eq=False)
class EmbeddedBatch:
    """Vectors of some of the texts, with their losses of micro-tuning."""

    __repr__ = short_repr

    positions: np.ndarray  # [text] places among all texts, from 0
    vectors: np.ndarray  # [text, dim] float32
    loss: np.ndarray  # [text, 2] first and last in nats; NaN: not tuned, or diverged (last only)

    @property
    def loss_rose(self) -> np.ndarray:
        """[text] true where the loss rose or ceased to be a number."""
        return has_risen(self.loss)


class Embedder(Parametrised, ABC):
    """Texts in, vectors out; for MTEB, BERTopic and scikit-learn, and pickled by its model's id."""

    name: str  # of the method, for labels
    spec: EmbedderSpec | None = None  # how to make it again; None if it was made by hand
    zeros_mean = "their cosine similarity to every text is 0."  # said of zero vectors
    _kept: tuple[str, ...] = ("spec",)
    _prompt = ""

    @property
    def device(self) -> str | None:
        """Where it computes, such as ``cuda:0``; None without a single device."""
        return None

    @property
    @abstractmethod
    def dim(self) -> int:
        """Values of one vector."""

    @property
    @abstractmethod
    def depends_on(self) -> Mapping[str, Any]:
        """Everything besides the text that affects the vectors, as JSON types and sets."""

    def cache_key(self) -> str:
        """Key of stored vectors; equal keys mean equal vectors of equal texts.

        It is ``neuralviz-vectors/``, `KEY_VERSION`, a colon, and `depends_on` as canonical JSON:
        without spaces, with names and sets sorted.
        """
        document = json.dumps(
            _to_json_types(self.depends_on), sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return f"neuralviz-vectors/{KEY_VERSION}:{document}"

    @property
    def parts(self) -> tuple[Embedder, ...]:
        """The concatenated embedders; for a single embedder, itself."""
        return (self,)

    def combine(
        self, vectors: Sequence[np.ndarray], losses: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors, and [text, 2] losses, from those of the `parts`."""
        return vectors[0], losses[0]

    def token_ids(self, texts: Sequence[str]) -> list[tuple[int | None, ...]]:
        """Ids of each text's tokens, None where unknown; empty without a tokenizer."""
        return []

    @abstractmethod
    def _read(self, texts: Sequence[str]) -> Sequence[Any]:
        """What `_embed` takes for each text; none is blank."""

    @abstractmethod
    def _embed(self, read: Sequence[Any], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors and [text, 2] losses; polls ``should_stop`` every second."""

    def _length(self, read: Any) -> int:
        return len(read)

    def read(self, texts: Sequence[str]) -> Sequence[Any]:
        """Prepare texts for `embed_read`; `UnreadableTextError` if one has no token."""
        check_texts(texts)
        return self._read_prompted(texts)

    def _read_prompted(self, texts: Sequence[str]) -> Sequence[Any]:
        return self._read([f"{self._prompt}{text}" for text in texts] if self._prompt else texts)

    def _with_prompt(self, prompt: str | None, name: str | None, task: str | None) -> Self:
        """The same embedder with ``prompt``, or the model's own of a name or task, before texts."""
        if prompt is None and name is not None:
            raise SettingsError(
                f"The model of {self.name} has no prompt named {name!r:.40}. Give the words "
                "themselves, as in prompt='query: '."
            )
        if not prompt:
            return self
        prompted = copy.copy(self)
        prompted._prompt = prompt
        return prompted

    def _with_all_values(self) -> Self:
        return self

    def embed_read(
        self,
        read: Sequence[Any],
        places: np.ndarray,
        *,
        normalize: bool = True,
        should_stop: ShouldStop = never,
    ) -> EmbeddedBatch:
        """Embed a batch that `read` prepared; ``places``, [text], are indices among all texts."""
        order = np.argsort([-self._length(entry) for entry in read], kind="stable")
        back = np.argsort(order)
        vectors, loss = (
            values[back] for values in self._embed([read[i] for i in order], should_stop)
        )
        if (broken := ~np.isfinite(vectors).all(axis=1)).any():
            raise ModelError(
                f"The embedding of text {places[broken].min() + 1} ({self.name}) contains "
                "infinite or NaN values. The model's weights are damaged, or the learning "
                "rate is far too high."
            )
        if normalize:
            vectors = unit_vectors(vectors)
        return EmbeddedBatch(places, vectors.astype(np.float32, copy=False), loss)

    def embed_in_batches(
        self,
        texts: Sequence[str],
        batch_size: int = BATCH_SIZE,
        *,
        normalize: bool = True,
        should_stop: ShouldStop = never,
    ) -> Iterator[EmbeddedBatch]:
        """Embed texts batch by batch, the longest first, so that memory and time show early.

        Vectors do not depend on the batches. Errors as for `encode`, and `Stopped`, at any time.
        """
        check_count(batch_size, "The batch size")
        read = self.read(texts)
        order = np.argsort([-self._length(entry) for entry in read], kind="stable")
        for start in range(0, len(order), int(batch_size)):
            positions = order[start : start + int(batch_size)]
            batch = [read[i] for i in positions]
            yield self.embed_read(batch, positions, normalize=normalize, should_stop=should_stop)

    @accept_sentences
    def encode(
        self,
        inputs: str | Iterable[Any],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str | None = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: object = None,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        pool: object = None,
        chunk_size: int | None = None,
        *,
        task: str | None = None,
        task_metadata: object = None,
        task_name: object = None,
        hf_split: object = None,
        hf_subset: object = None,
        prompt_type: object = None,
    ) -> np.ndarray | Tensor:
        """Embed texts as ``SentenceTransformer`` does: [text, dim] float32, or [dim] for one text.

        Args:
            inputs: a text, a list, an array, a table's column or MTEB's batches; or ``sentences``.
            batch_size: does not change the vectors.
            precision: ``float32``, or one of ``sentence_transformers.quantize_embeddings``.
            normalize_embeddings: scale to length 1; zero vectors stay zero.
            task: ``query`` or ``document``, as in `encode_query` and `encode_document`.
            task_metadata, task_name, hf_split, hf_subset, prompt_type: of MTEB, without effect.

        `TextError` names an empty text or one that is no string; `SettingsError` is raised for
        unsupported arguments, such as another device, `ModelError` for infinite or NaN values.
        Warns with `LongTextWarning`, `UnreadTextWarning`, and `LossWarning` where a loss rose.
        """
        encoding = {"precision": precision, "task": task, "output_value": output_value}
        prompts = {"prompt_name": prompt_name, "prompt": prompt}
        check_arguments(encoding, prompts, truncate_dim)
        self._check_place(device, pool, chunk_size)
        embedder = self._with_prompt(prompt, prompt_name, task)
        if truncate_dim is not None:
            embedder = embedder._with_all_values()
        single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else list_texts(inputs)
        check_texts(texts)
        if long := [len(text) for text in texts if len(text) > LONG_TEXT]:
            warnings.warn(LongTextWarning(len(long), len(texts), max(long)), stacklevel=3)
        if unread := describe_unread(self, texts):
            warnings.warn(UnreadTextWarning(unread), stacklevel=3)
        out = np.zeros((len(texts), embedder.dim), dtype=np.float32)
        normalize = normalize_embeddings and truncate_dim is None
        n_rose = 0
        with tqdm(total=len(texts), unit="text", disable=not show_progress_bar) as bar:
            for batch in embedder.embed_in_batches(texts, batch_size, normalize=normalize):
                out[batch.positions] = batch.vectors
                n_rose += int(batch.loss_rose.sum())
                bar.update(len(batch.positions))
        if n_rose:
            warnings.warn(LossWarning(n_rose, len(texts)), stacklevel=3)
        if truncate_dim is not None:
            out = np.ascontiguousarray(out[:, :truncate_dim])
            out = unit_vectors(out) if normalize_embeddings else out
        if precision not in (None, "float32"):
            out = quantise(out, str(precision))
        vectors = out[0] if single else out
        if convert_to_numpy and not convert_to_tensor:
            return vectors
        return _as_tensor(vectors)

    @accept_sentences
    def encode_query(
        self, inputs: str | Iterable[Any], *arguments: Any, **options: Any
    ) -> np.ndarray | Tensor:
        """Like `encode`, with the model's prompt for queries, if it has one."""
        return self.encode(inputs, *arguments, task="query", **options)

    @accept_sentences
    def encode_document(
        self, inputs: str | Iterable[Any], *arguments: Any, **options: Any
    ) -> np.ndarray | Tensor:
        """Like `encode`, with the model's prompt for documents, if it has one."""
        return self.encode(inputs, *arguments, task="document", **options)

    def _check_place(self, device: object, pool: object, chunk_size: object) -> None:
        if pool is not None or chunk_size is not None:
            raise SettingsError(
                "An embedder uses no other processes. Leave out pool and chunk_size."
            )
        place = self.device or "no single device"
        if device is not None and str(device) not in (place, place.partition(":")[0]):
            raise SettingsError(
                f"This embedder computes on {place}, not on “{str(device)[:40]}”. Load the model "
                "with device=… to have it elsewhere."
            )

    def get_embedding_dimension(self) -> int:
        """`dim`, by the name that sentence encoders use."""
        return self.dim

    get_sentence_embedding_dimension = get_embedding_dimension  # their older name

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """[a, b] cosines of [a, dim] and [b, dim] vectors; 0 for zero vectors."""
        a, b = _unit_tensors(embeddings1, embeddings2)
        return a @ b.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """[a] cosines of the rows of two [a, dim] arrays; 0 for zero vectors."""
        a, b = _unit_tensors(embeddings1, embeddings2)
        return (a * b).sum(dim=1)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """MTEB's description of the model, under which it files results; needs ``mteb``."""
        from mteb.models.model_meta import ModelMeta

        revision = hashlib.sha256(self.cache_key().encode()).hexdigest()[:16]
        named = {"name": f"neuralviz/{self.name}", "revision": revision, "embed_dim": self.dim}
        return ModelMeta.create_empty(overwrites=named)


class ModelEmbedder(Embedder):
    """An embedder that reads texts with a model's tokenizer."""

    model_kind: type[TextModel] = TextModel  # that the model must have

    def __init__(self, model: TextModel, name: str) -> None:
        check_model(model, self.model_kind, type(self).__name__)
        self.model = model
        self.name = name

    @property
    def device(self) -> str:
        return str(self.model.device)

    @property
    def depends_on_model(self) -> dict[str, Any]:
        return {"model": self.model.id, "fingerprint": self.model.fingerprint}

    def _with_prompt(self, prompt: str | None, name: str | None, task: str | None) -> Self:
        """Also knows the model's own prompts; the default one applies only if asked for."""
        prompts = self.model.prompts
        if prompt is None and name is None and task in prompts:
            name = task
        if prompt is None and name is not None:
            prompt = prompts.get(name)
        return super()._with_prompt(prompt, name, task)

    def token_ids(self, texts: Sequence[str]) -> list[tuple[int | None, ...]]:
        unknown = self.model.unknown_id
        read = encode_texts(self.model.encoder, list(map(to_utf8, texts)))
        return [tuple(None if id_ == unknown else id_ for id_ in encoding.ids) for encoding in read]

    def _read(self, texts: Sequence[str]) -> Sequence[TokenizedText]:
        return tokenize(self.model, texts)


def _to_json_types(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _to_json_types(entry) for name, entry in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_to_json_types, value))
    return [_to_json_types(entry) for entry in value] if isinstance(value, list | tuple) else value


def missing_losses(n_texts: int) -> np.ndarray:
    return np.full((n_texts, 2), np.nan)


def has_risen(loss: np.ndarray) -> np.ndarray:
    """[text] whether the last of two losses, [text, 2], exceeds the first or is no number."""
    first, last = loss[:, 0], loss[:, 1]
    return ~np.isnan(first) & ~(last <= first)


def _unit_tensors(*several: Any) -> Iterator[Tensor]:
    for vectors in several:
        rows = _as_tensor(vectors).cpu().float()
        rows = rows if rows.ndim > 1 else rows[None]
        yield rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-12)


def _as_tensor(vectors: Any) -> Tensor:
    import torch

    return torch.as_tensor(vectors)
