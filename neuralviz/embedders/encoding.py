"""Checks of the arguments of ``encode``, and the texts in its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from neuralviz.errors import SettingsError, TextError
from neuralviz.models.tokens import check_several

CHOICES: dict[str, tuple[str | None, ...]] = {
    "precision": ("float32", "int8", "uint8", "binary", "ubinary", None),  # of vectors
    "task": ("query", "document", None),  # what texts are for
    "output_value": ("sentence_embedding",),
}
_Encode = TypeVar("_Encode", bound=Callable[..., Any])


def accept_sentences(encode: _Encode) -> _Encode:
    """Let a method also take ``inputs`` as ``sentences``, as sentence-transformers does."""

    @wraps(encode)
    def encode_either(*arguments: Any, **options: Any) -> Any:
        if "sentences" in options and "inputs" not in options:
            options["inputs"] = options.pop("sentences")
        return encode(*arguments, **options)

    return cast("_Encode", encode_either)


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
