"""Embedders: checks of texts and arguments, batches, conversion of vectors, concatenation."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import sys
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from itertools import islice
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from tqdm.auto import tqdm

from neuralviz.arrays import unit_vectors
from neuralviz.embedders.splits import SplitVector, join_splits
from neuralviz.errors import (
    LONG_TEXT,
    LongTextWarning,
    LossWarning,
    ModelError,
    SettingsError,
    ShouldStop,
    TextError,
    UnreadTextWarning,
    never,
)
from neuralviz.models import TextModel, TokenizedText, tokenize
from neuralviz.models.language_model import check_model
from neuralviz.models.tokens import check_several, check_texts, encode_texts, to_utf8
from neuralviz.words import ShortRepr, name_texts

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta
    from sklearn.utils import Tags
    from torch import Tensor

    from neuralviz.embedders.specs import EmbedderSpec

BATCH_SIZE = 32
# Of `Embedder.cache_key` and the computation; a new version computes all vectors anew.
KEY_VERSION = 2
CHOICES: dict[str, tuple[str | None, ...]] = {
    "precision": ("float32", "int8", "uint8", "binary", "ubinary", None),  # of vectors
    "task": ("query", "document", None),  # what texts are for
    "output_value": ("sentence_embedding",),
}
Embedded = tuple[np.ndarray, np.ndarray]  # [text, dim] vectors, [text, 2] losses
_Encode = TypeVar("_Encode", bound=Callable[..., Any])
MOST_TEXTS = 1000  # that are checked
MOST_CHARACTERS = 2000  # of each
_VOICING = "\u3099\u309a"  # marks that make another Japanese syllable


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddedBatch(ShortRepr):
    """Vectors of some of the texts, with their losses of micro-tuning."""

    positions: np.ndarray  # [text] places among all texts, from 0
    vectors: np.ndarray  # [text, dim] float32
    loss: np.ndarray  # [text, 2] first and last in nats; NaN: not tuned, or diverged (last only)

    @property
    def loss_rose(self) -> np.ndarray:
        """[text] true where the loss rose or ceased to be a number."""
        return has_risen(self.loss)


def accept_sentences(encode: _Encode) -> _Encode:
    """Let a method also take ``inputs`` as ``sentences``, as sentence-transformers does."""

    @wraps(encode)
    def encode_either(*arguments: Any, **options: Any) -> Any:
        if "sentences" in options and "inputs" not in options:
            options["inputs"] = options.pop("sentences")
        return encode(*arguments, **options)

    return cast("_Encode", encode_either)


class Embedder(ABC):
    """Texts in, vectors out; for MTEB, BERTopic and scikit-learn, and pickled by its model's id."""

    name: str  # of the method, for labels
    spec: EmbedderSpec | None = None  # how to make it again; None if it was made by hand
    zeros_mean = "their cosine similarity to every text is 0."  # said of zero vectors
    _kept: tuple[str, ...] = ("spec",)  # other attributes in pickles and clones
    _prompt = ""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        self = super().__new__(cls)
        self._arguments = arguments, options
        return self

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _sklearn_output_config: Mapping[str, str] = MappingProxyType({})  # its name in scikit-learn

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

    def combine(self, vectors: Sequence[np.ndarray], losses: Sequence[np.ndarray]) -> Embedded:
        """Vectors and losses from those of the `parts`."""
        return vectors[0], losses[0]

    def token_ids(self, texts: Sequence[str]) -> list[tuple[int | None, ...]]:
        """Ids of each text's tokens, None where unknown; empty without a tokenizer."""
        return []

    @abstractmethod
    def _read(self, texts: Sequence[str]) -> Sequence[Any]:
        """What `_embed` takes for each text; none is blank."""

    @abstractmethod
    def _embed(self, read: Sequence[Any], should_stop: ShouldStop) -> Embedded:
        """Vectors and losses; polls ``should_stop`` every second."""

    def _split(self, read: Sequence[Any], should_stop: ShouldStop) -> list[SplitVector] | None:
        """The parts of each text's vector; None if it is no sum of parts of its tokens."""
        return None

    def split(
        self, texts: Sequence[str], *, should_stop: ShouldStop = never
    ) -> list[SplitVector] | None:
        """For each text, the parts that add up to its unit vector, one a token, in float64.

        None where the method or the length of a text allows no such split. Raises as `read`, and
        warns with `LossWarning`.
        """
        splits = self._split(self.read(texts), should_stop)
        return None if splits is None else [split.normalize() for split in splits]

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
        if unread := find_unread(self, texts).message:
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

    # --- as the transformers of scikit-learn, made again from its arguments

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments by name, defaults included; ``deep`` has no effect."""
        arguments, options = self._arguments
        signature = inspect.signature(type(self))
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        values = dict(bound.arguments)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                values |= values.pop(name)
        return values

    def set_params(self, **params: Any) -> Self:
        """Make the object anew with changed arguments; `SettingsError` if they are invalid."""
        values = self.get_params()
        new = [name for name in params if name not in values]
        try:
            changed = type(self)(**{**values, **params})
        except TypeError as error:
            if not new:
                raise
            raise SettingsError(
                f"{type(self).__name__} has no parameter “{new[0]}”. It has: {', '.join(values)}."
            ) from error
        if params:
            output = self._sklearn_output_config
            vars(self).clear()
            vars(self).update(vars(changed), _sklearn_output_config=output)
        return self

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Do nothing: an embedder learns nothing from the texts."""
        return self

    def transform(self, texts: Any) -> Any:
        """[text, dim] vectors as from `encode`, or the table that `set_output` asks for."""
        vectors = np.asarray(self.encode(texts))
        container = self._sklearn_output_config.get("transform")
        if container is None and "sklearn" in sys.modules:
            container = sys.modules["sklearn"].get_config()["transform_output"]
        if container in (None, "default"):
            return vectors
        names, make_table = self.get_feature_names_out(), import_module(container).DataFrame
        if container == "polars":
            return make_table(vectors, schema=list(names))
        index = getattr(texts, "index", None)  # a list has a method of this name
        return make_table(vectors, None if callable(index) else index, names)

    def fit_transform(self, texts: Any, y: Any = None) -> Any:
        return self.transform(texts)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """[dim] names of a vector's values: ``pooledembedder0``, ``pooledembedder1``, …"""
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self.dim)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `transform` return an array (``default``), or a table of ``pandas`` or ``polars``."""
        if transform not in (None, "default", "pandas", "polars"):
            raise SettingsError("transform must be 'default', 'pandas' or 'polars'.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_clone__(self) -> Self:
        """An equal object that shares the model."""
        return _make_again(type(self), self.get_params(), self._other_state())

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        utils = sys.modules["sklearn.utils"]  # loaded, as it asks for the tags
        return utils.Tags(
            estimator_type="transformer",
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(),
            input_tags=utils.InputTags(one_d_array=True, two_d_array=False, string=True),
            requires_fit=False,
        )

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_again, (type(self), self.get_params(), self._other_state())

    def _other_state(self) -> dict[str, Any]:
        kept = (*self._kept, "_sklearn_output_config")
        return {name: vars(self)[name] for name in kept if name in vars(self)}

    def __repr__(self) -> str:
        values = {name: v for name, v in self.get_params().items() if name != "name"}
        model = values.pop("model", None)
        named = {"method": getattr(self, "name", "")} | ({"model": model.id} if model else {})
        values_shown = [f"{name}={v!r}" for name, v in (named | values).items() if v is not None]
        return f"{type(self).__name__}({', '.join(values_shown)})"


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


def _make_again(kind: type[Any], params: dict[str, Any], kept: dict[str, Any]) -> Any:
    copied = kind(**params)
    vars(copied).update(kept)
    return copied


# --- arguments and inputs of encode ---------------------------------------------------------------


def check_arguments(
    encoding: Mapping[str, object], prompts: Mapping[str, object], truncate_dim: object
) -> None:
    """Raise `SettingsError` for what `encode` does not do."""
    for name, value in prompts.items():
        if value is not None and not isinstance(value, str):
            raise SettingsError(
                f"{name} must be a string, not {value!r:.40}. Name the other arguments, as in "
                "batch_size=64."
            )
    for name, value in encoding.items():
        if value not in CHOICES[name]:
            names = ", ".join(choice for choice in CHOICES[name] if choice)
            raise SettingsError(f"{name} must be one of: {names}, not {value!r:.40}.")
    if truncate_dim is not None:
        check_count(truncate_dim, "truncate_dim")


def quantise(vectors: np.ndarray, precision: str) -> np.ndarray:
    """[text, …] vectors in smaller numbers; `SettingsError` if that needs several texts."""
    from sentence_transformers.util import quantize_embeddings

    if precision in ("int8", "uint8") and len(vectors) == 1:
        raise SettingsError(
            f"{precision} lays its steps over the values of all texts, so it needs several. Use "
            "float32, binary or ubinary for one."
        )
    return np.asarray(quantize_embeddings(vectors, precision=precision))  # type: ignore[arg-type]


def check_count(n: object, name: str) -> None:
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise SettingsError(f"{name} must be a whole number of at least 1.")


def list_texts(sentences: Iterable[Any]) -> list[Any]:
    """The texts as a list; `TextError` also for an exhausted iterator."""
    texts = list(iterate_texts(sentences))
    if not texts and isinstance(sentences, Iterator):
        raise TextError("This iterator has no texts, or was used up before. Use a list.")
    return texts


def iterate_texts(sentences: Iterable[Any]) -> Iterator[Any]:
    """The texts one by one, for a table those of its only column; else `TextError`."""
    check_several(sentences)
    columns = getattr(sentences, "columns", None)
    if columns is not None:
        if len(columns) != 1:
            raise TextError("This is a table of several columns. Choose the one with the texts.")
        sentences = sentences[columns[0]]  # type: ignore[index]
    elif isinstance(sentences, Mapping):
        sentences = [sentences]
    elif isinstance(sentences, np.ndarray):
        if sentences.ndim == 2 and sentences.shape[1] == 1:
            sentences = sentences[:, 0]
        if sentences.ndim != 1:
            raise TextError(f"Texts must be an array of one axis, not of {sentences.ndim}.")
    for entry in sentences:
        if isinstance(entry, Mapping):
            if "text" not in entry:
                raise TextError("A mapping must have its texts under the key 'text'; it has none.")
            texts = entry["text"]
            yield from [texts] if isinstance(texts, str) else iterate_texts(texts)
        else:
            yield entry


# --- texts that a tokenizer does not know ---------------------------------------------------------


class Unread(NamedTuple):
    """Texts that tokenizers lose."""

    message: str  # empty if there are none
    unknown: set[int]  # places of those of whose words at least half are unknown


def find_unread(embedder: Embedder, texts: Sequence[str], n_texts: int = 0) -> Unread:
    """The texts that the embedder's tokenizers lose.

    The message names texts at least half of whose words are unknown, stray symbols aside, and
    different texts with equal tokens. Only the first 1,000 of ``n_texts`` texts are checked.
    """
    n_texts = n_texts or len(texts)
    checked = dict(enumerate(islice(texts, MOST_TEXTS)))
    beginnings = [text[:MOST_CHARACTERS] for text in checked.values()]
    sentences, places = dict[str, None](), set[int]()
    for part in embedder.parts:
        tokens = part.token_ids(beginnings)
        unknown = [
            place
            for place, (text, ids) in enumerate(zip(beginnings, tokens, strict=False))
            if _is_mostly_unknown(text, ids)
        ]
        places.update(unknown)
        if unknown:
            sentences[
                f"At least half of the words of {name_texts(unknown)} are unknown to the model, "
                "so similarities to such texts mean nothing. Use a model that knows their words."
            ] = None
        groups = _find_equal(checked, tokens)
        alike = {place: checked[place] for group in groups for place in group}
        if any(len(text) > MOST_CHARACTERS for text in alike.values()):
            groups = _find_equal(alike, part.token_ids(list(alike.values())))
        if groups:
            sentences[
                f"The model reads the same tokens in {name_texts(groups[0])}, although they "
                "differ, so their vectors are equal."
            ] = None
    if sentences and n_texts > MOST_TEXTS:
        sentences[f"(Only the first {MOST_TEXTS:,} of {n_texts:,} texts were looked at.)"] = None
    return Unread(" ".join(sentences), places)


def _is_mostly_unknown(text: str, ids: Sequence[int | None]) -> bool:
    n_unknown = sum(token is None for token in ids)
    n_symbols = sum(not any(map(str.isalnum, word)) for word in text.split())
    n_words = len(ids) - n_symbols
    return n_unknown > 0 and (n_unknown == len(ids) or 2 * (n_unknown - n_symbols) >= n_words > 0)


def _find_equal(
    texts: Mapping[int, str], tokens: Sequence[tuple[int | None, ...]]
) -> list[list[int]]:
    """Places of the first of the texts that differ although their tokens are equal, by tokens."""
    groups: dict[tuple[int | None, ...], dict[str, int]] = defaultdict(dict)
    for (place, text), ids in zip(texts.items(), tokens, strict=False):  # or no tokens
        groups[ids].setdefault(text, place)
    equal = []
    for group in groups.values():
        if len(group) > 1:
            first_of = {_strip_content(text): place for text, place in reversed(group.items())}
            equal += [sorted(first_of.values())] * (len(first_of) > 1)
    return equal


def _strip_content(text: str) -> str:
    return "".join(
        char
        for char in unicodedata.normalize("NFKD", text.casefold())
        if char in _VOICING
        or ((kind := unicodedata.category(char)) != "Mn" and kind[0] not in "CZ")
    )


class ConcatenatedEmbedder(Embedder):
    """Joins the unit vectors of several embedders, and normalises the whole."""

    def __init__(self, parts: Sequence[Embedder]) -> None:
        if not isinstance(parts, Sequence) or len(parts) < 2:
            raise SettingsError("Concatenate at least two methods.")
        for part in parts:
            if not isinstance(part, Embedder):
                raise SettingsError(f"Each part must be an embedder, not {part!r:.60}.")
        self._parts = tuple(parts)
        self.name = "+".join(part.name for part in parts)

    @property
    def parts(self) -> tuple[Embedder, ...]:
        return self._parts

    @property
    def device(self) -> str | None:
        devices = {part.device for part in self.parts}
        return devices.pop() if len(devices) == 1 else None

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "concatenated", "parts": [part.depends_on for part in self.parts]}

    def combine(self, vectors: Sequence[np.ndarray], losses: Sequence[np.ndarray]) -> Embedded:
        """[text, dim] vectors, and [text, 2] losses, of a part whose loss rose if any did."""
        worst = missing_losses(len(vectors[0]))
        for loss in losses:
            worse = has_risen(loss) & ~has_risen(worst)
            worst = np.where((np.isnan(worst[:, 0]) | worse)[:, None], loss, worst)
        joined = np.concatenate([unit_vectors(part) for part in vectors], axis=1)
        return unit_vectors(joined), worst

    def _read(self, texts: Sequence[str]) -> Sequence[tuple[Any, ...]]:
        return list(zip(*(part._read_prompted(texts) for part in self.parts), strict=True))

    def _with_prompt(self, prompt: str | None, name: str | None, task: str | None) -> Self:
        prompted = copy.copy(self)
        prompted._parts = tuple(part._with_prompt(prompt, name, task) for part in self.parts)
        return prompted

    def _length(self, read: tuple[Any, ...]) -> int:
        return max(part._length(text) for part, text in zip(self.parts, read, strict=True))

    def _embed(self, read: Sequence[tuple[Any, ...]], should_stop: ShouldStop) -> Embedded:
        pairs = zip(self.parts, zip(*read, strict=True), strict=True)
        embedded = [part._embed(texts, should_stop) for part, texts in pairs]
        return self.combine(*zip(*embedded, strict=True))

    def _split(
        self, read: Sequence[tuple[Any, ...]], should_stop: ShouldStop
    ) -> list[SplitVector] | None:
        pairs = zip(self.parts, zip(*read, strict=True), strict=True)
        by_part = [part._split(texts, should_stop) for part, texts in pairs]
        exact = [
            [split.name_layers(f"{part.name} {number}") for split in splits]
            for number, (part, splits) in enumerate(zip(self.parts, by_part, strict=True), 1)
            if splits is not None
        ]
        return [*map(join_splits, zip(*exact, strict=True))] if len(exact) == len(by_part) else None
