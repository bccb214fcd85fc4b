"""What every embedder does in the same way: reads texts, goes through them in batches, converts."""

from __future__ import annotations

import hashlib
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from neuralviz.errors import (
    LONG_TEXT,
    LongTextWarning,
    LossWarning,
    ModelError,
    SettingsError,
    ShouldStop,
    TextError,
    UnreadableTextError,
    never,
)
from neuralviz.models import tokenize

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta
    from torch import Tensor

    from neuralviz.embedders.specs import EmbedderSpec
    from neuralviz.models import TextModel, TokenizedText

BATCH_SIZE = 32
KEY_VERSION = 2
"""Of `Embedder.cache_key`, and of how vectors are computed: a new version computes all anew."""


@dataclass(frozen=True, eq=False)
class EmbeddedBatch:
    """Some texts that are done.

    Attributes:
        at: [text] their places among all texts.
        vectors: [text, dim] float32.
        loss: [text, 2] of micro-tuning, in nats: the first and the last. NaN where nothing was
            learnt; a last one that is NaN alone ceased to be a number.
    """

    at: np.ndarray
    vectors: np.ndarray
    loss: np.ndarray

    @property
    def loss_rose(self) -> np.ndarray:
        """[text] true where micro-tuning was no learning: the loss rose, or ceased to be one."""
        return rose(self.loss)


class Embedder(ABC):
    """Texts in, vectors out, in the shape of ``SentenceTransformer.encode``.

    MTEB and BERTopic take any embedder for one of their encoders.

    Attributes:
        name: of the method, for labels.
        spec: how to make the embedder again; None for one that was made by hand.
    """

    name: str
    spec: EmbedderSpec | None = None
    zeros_mean = "their cosine similarity to every text is 0."
    """What is to be said of vectors of zeros."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Values of one vector."""

    @property
    @abstractmethod
    def depends_on(self) -> Mapping[str, Any]:
        """All that the vectors depend on besides the text: method, model, settings.

        Mappings, sequences, sets, strings, numbers, truth values and None.
        """

    def cache_key(self) -> str:
        """The key under which vectors are kept, equal for equal vectors of equal texts.

        ``neuralviz-vectors/2:`` and `depends_on` as canonical JSON: names sorted, no blanks, sets
        sorted, numbers of numpy as those of Python. The ``2`` is `KEY_VERSION`. What each method
        writes:

        - ``neural``, ``tuned``: ``model`` (its id), ``fingerprint`` (revision or hash of its
          weights), and ``tuning``: every field of `TuningSettings`, the tolerance only where it is
          fast; and ``revision``, of how texts are learnt. ``tuned`` has ``pooling`` and
          ``difference``, too.
        - ``gradient``: ``model``, ``fingerprint``, ``layers``, ``blueprints``,
          ``predict_unmasked``, ``revision``.
        - ``pooled``: ``model``, ``fingerprint``, ``pooling``, ``layers``, ``special_tokens``.
        - ``sbert-wk``: ``model``, ``fingerprint``, ``part``, and every field of `SbertWkSettings`.
        - ``sentence-transformer``: ``fingerprint``.
        - all but ``concatenated``: ``passes``, as of `Habits.cache_key`.
        - ``concatenated``: ``parts``, a mapping like these for each.
        """
        document = json.dumps(
            _plain(self.depends_on), sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return f"neuralviz-vectors/{KEY_VERSION}:{document}"

    @property
    def parts(self) -> tuple[Embedder, ...]:
        """The embedders that are concatenated; itself where it is a single one."""
        return (self,)

    def combine(
        self, vectors: Sequence[np.ndarray], losses: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors, and [text, 2] losses, from those of the `parts`."""
        return vectors[0], losses[0]

    def masked_positions(self, texts: Sequence[str]) -> int:
        """Masked positions that have to be predicted while these texts are learnt; 0 without."""
        return 0

    @abstractmethod
    def _read(self, texts: Sequence[str]) -> Sequence[Any]:
        """What `_embed` takes for each text, none of which is blank."""

    @abstractmethod
    def _embed(self, read: Sequence[Any], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors, and [text, 2] the first and the last loss, as of `EmbeddedBatch`.

        Raises:
            Stopped: ``should_stop``, asked every second or more often, said so.
        """

    def _length(self, read: Any) -> int:
        """How long a text is for the model; texts of like length go together."""
        return len(read)

    def read(self, texts: Sequence[str]) -> Sequence[Any]:
        """What `embed_read` takes for each text.

        Raises:
            UnreadableTextError: a text is empty, is no string, or has no token.
        """
        check_strings(texts)
        for place, text in enumerate(texts):
            if not text.strip():
                raise UnreadableTextError(
                    "is empty. It must contain at least one word.", place, len(texts)
                )
        return self._read(texts)

    def embed_read(
        self,
        read: Sequence[Any],
        places: np.ndarray,
        *,
        normalize: bool = True,
        should_stop: ShouldStop = never,
    ) -> EmbeddedBatch:
        """Embed one batch of texts, in the order given.

        Args:
            read: from `read`, one a text.
            places: [text] of these texts among all, from 0.
            normalize, should_stop: as of `embed_in_batches`.

        Raises:
            ModelError: a vector holds something that is no finite number.
            Stopped: ``should_stop`` said so.
        """
        order = np.argsort([-self._length(entry) for entry in read], kind="stable")
        back = np.argsort(order)
        vectors, loss = (
            values[back] for values in self._embed([read[i] for i in order], should_stop)
        )
        broken = ~np.isfinite(vectors).all(axis=1)
        if broken.any():
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
        """Embed texts batch by batch, the longest first: memory and time show early.

        The vectors do not depend on the batches.

        Args:
            texts: to embed.
            batch_size: texts that go together.
            normalize: vectors of length 1; those of zeros stay so.
            should_stop: asked again and again, also within a batch; true ends the work.

        Raises:
            TextError, SettingsError: as of `encode`, with the first batch.
            ModelError: a vector holds something that is no finite number.
            Stopped: ``should_stop`` said so.
        """
        check_batch_size(batch_size)
        read = self.read(texts)
        order = np.argsort([-self._length(entry) for entry in read], kind="stable")
        for start in range(0, len(order), int(batch_size)):
            at = order[start : start + int(batch_size)]
            some = [read[i] for i in at]
            yield self.embed_read(some, at, normalize=normalize, should_stop=should_stop)

    def encode(
        self,
        sentences: str | Iterable[Any],
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = True,
        *,
        task_metadata: object = None,
        task_name: object = None,
        hf_split: object = None,
        hf_subset: object = None,
        prompt_type: object = None,
    ) -> np.ndarray | Tensor:
        """Embed texts.

        Args:
            sentences: a text, or several: a list, an array, a column of a table, or the batches
                with a ``text`` each that MTEB hands to an encoder.
            batch_size: texts that go together; it does not change the vectors.
            show_progress_bar: a bar on standard error.
            convert_to_numpy: a numpy array; ``False`` gives a torch tensor, on the CPU.
            convert_to_tensor: a torch tensor, whatever ``convert_to_numpy`` says.
            normalize_embeddings: vectors of length 1; those of zeros stay so. A neural embedding
                has length 1 by definition.
            task_metadata, task_name, hf_split, hf_subset, prompt_type: said by MTEB; no method
                here treats tasks or prompts differently.

        Returns:
            [text, dim] float32 in the order given, or [dim] for a single string.

        Raises:
            TextError: a text is empty or no string; the message says which one.
            SettingsError: the batch size is not a whole number of at least 1.
            ModelError: a vector holds something that is no finite number.

        Warns:
            LongTextWarning: at once, where a text has more than 100,000 characters.
            LossWarning: the loss of a text rose, or ceased to be a number, in place of falling.
        """
        single = isinstance(sentences, str)
        texts = [sentences] if isinstance(sentences, str) else list(_each_text(sentences))
        check_strings(texts)
        long = [len(text) for text in texts if len(text) > LONG_TEXT]
        if long:
            warnings.warn(LongTextWarning(len(long), len(texts), max(long)), stacklevel=2)
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        n_rose = 0
        with tqdm(total=len(texts), unit="text", disable=not show_progress_bar) as bar:
            for batch in self.embed_in_batches(texts, batch_size, normalize=normalize_embeddings):
                out[batch.at] = batch.vectors
                n_rose += int(batch.loss_rose.sum())
                bar.update(len(batch.at))
        if n_rose:
            warnings.warn(LossWarning(n_rose, len(texts)), stacklevel=2)
        vectors = out[0] if single else out
        if convert_to_numpy and not convert_to_tensor:
            return vectors
        import torch

        return torch.from_numpy(vectors)

    def get_sentence_embedding_dimension(self) -> int:
        """Values of one vector, by the name that sentence encoders use."""
        return self.dim

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """[a, b] cosines of [a, dim] and [b, dim] vectors; 0 for a vector of zeros."""
        a, b = _unit_tensors(embeddings1, embeddings2)
        return a @ b.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """[a] cosines of the rows of two [a, dim] arrays; 0 for a vector of zeros."""
        a, b = _unit_tensors(embeddings1, embeddings2)
        return (a * b).sum(dim=1)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """What MTEB files results under; needs the package ``mteb``."""
        from mteb.models.model_meta import ModelMeta

        revision = hashlib.sha256(self.cache_key().encode()).hexdigest()[:16]
        named = {"name": f"neuralviz/{self.name}", "revision": revision, "embed_dim": self.dim}
        return ModelMeta.create_empty(overwrites=named)


class ModelEmbedder(Embedder):
    """An embedder that reads texts with a model's tokenizer."""

    def __init__(self, model: TextModel, name: str) -> None:
        self.model = model
        self.name = name

    @property
    def depends_on_model(self) -> dict[str, str | int]:
        """The model as a part of `depends_on`."""
        model = self.model
        return {"model": model.id, "fingerprint": model.fingerprint, **model.behaviour.cache_key}

    def _read(self, texts: Sequence[str]) -> Sequence[TokenizedText]:
        return tokenize(self.model, texts)


def check_batch_size(batch_size: int) -> None:
    """Check a batch size.

    Raises:
        SettingsError: it is no whole number of at least 1.
    """
    if not isinstance(batch_size, Integral) or isinstance(batch_size, bool) or batch_size < 1:
        raise SettingsError("The batch size must be a whole number of at least 1.")


def check_strings(texts: Sequence[str]) -> None:
    """Check that texts are strings.

    Raises:
        UnreadableTextError: one is not.
    """
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            reason = f"is not a string but {type(text).__name__}."
            raise UnreadableTextError(reason, place, len(texts))


def _plain(value: Any) -> Any:
    """A value with the types that JSON has."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value))
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def nothing_learnt(n_texts: int) -> np.ndarray:
    """[text, 2] the losses of texts that no model was tuned on: NaN."""
    return np.full((n_texts, 2), np.nan)


def rose(loss: np.ndarray) -> np.ndarray:
    """[text] where the last of two losses [text, 2] is above the first, or no number any more."""
    first, last = loss[:, 0], loss[:, 1]
    return ~np.isnan(first) & ~(last <= first)


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """[text, dim] vectors of length 1; those of zeros stay so."""
    peak = np.abs(vectors).max(axis=1, keepdims=True, initial=0)  # keeps the squares in range
    scaled = vectors / np.where(peak > 0, peak, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(length > 0, length, 1)


def _each_text(sentences: Iterable[Any]) -> Iterator[Any]:
    for entry in sentences:
        if isinstance(entry, Mapping):
            if "text" not in entry:
                raise TextError("Cannot embed an empty batch.")
            texts = entry["text"]
            yield from [texts] if isinstance(texts, str) else texts
        else:
            yield entry


def _unit_tensors(*several: Any) -> Iterator[Tensor]:
    import torch

    for vectors in several:
        tensors = torch.atleast_2d(torch.as_tensor(vectors)).cpu()
        yield torch.nn.functional.normalize(tensors.float(), dim=1)
