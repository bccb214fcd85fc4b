"""Checks of the arguments of ``encode``, and the texts in its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from neuralviz.errors import SettingsError, TextError
from neuralviz.models.tokens import check_several

NUMBERS = ("float32", "int8", "uint8", "binary", "ubinary")  # precisions of vectors
TASKS = ("query", "document")  # what texts are for
_Encode = TypeVar("_Encode", bound=Callable[..., Any])


def accept_sentences(encode: _Encode) -> _Encode:
    """Let a method also take ``inputs`` as ``sentences``, as sentence-transformers does."""

    @wraps(encode)
    def encode_either(*arguments: Any, **options: Any) -> Any:
        if "sentences" in options and "inputs" not in options:
            options["inputs"] = options.pop("sentences")
        return encode(*arguments, **options)

    return cast("_Encode", encode_either)


def check_encoding(
    prompt_name: object,
    prompt: object,
    output_value: object,
    precision: object,
    truncate_dim: object,
    task: object,
) -> None:
    for name, value in (("prompt_name", prompt_name), ("prompt", prompt)):
        if value is not None and not isinstance(value, str):
            raise SettingsError(
                f"{name} must be a string, not {value!r:.40}. Name the other arguments, as in "
                "batch_size=64."
            )
    if task is not None and task not in TASKS:
        raise SettingsError(f"Unknown task {task!r:.40}. Choose from: {', '.join(TASKS)}.")
    if output_value != "sentence_embedding":
        raise SettingsError(
            f"output_value must be 'sentence_embedding', not {output_value!r:.40}. An embedder "
            "gives vectors of texts, none of tokens."
        )
    if precision is not None and precision not in NUMBERS:
        raise SettingsError(
            f"The precision of vectors must be one of: {', '.join(NUMBERS)}. How exactly a text is "
            "learnt is set where the embedder is made."
        )
    is_whole = isinstance(truncate_dim, Integral) and not isinstance(truncate_dim, bool)
    if truncate_dim is not None and not (is_whole and truncate_dim >= 1):  # type: ignore[operator]
        raise SettingsError("truncate_dim must be a whole number of at least 1.")


def quantise(vectors: np.ndarray, precision: str) -> np.ndarray:
    """[text, …] vectors in smaller numbers; `SettingsError` if that needs several texts."""
    from sentence_transformers.util import quantize_embeddings

    if precision in ("int8", "uint8") and len(vectors) == 1:
        raise SettingsError(
            f"{precision} lays its steps over the values of all texts, so it needs several. Use "
            "float32, binary or ubinary for one."
        )
    return np.asarray(quantize_embeddings(vectors, precision=precision))  # type: ignore[arg-type]


def check_batch_size(batch_size: int) -> None:
    if not isinstance(batch_size, Integral) or isinstance(batch_size, bool) or batch_size < 1:
        raise SettingsError("The batch size must be a whole number of at least 1.")


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
