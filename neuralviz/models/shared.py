"""Models that everybody in a process shares, each loaded once.

What loads them, and torch with it, is imported with the first model.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from neuralviz import models
from neuralviz.models.language_model import LanguageModel, TextModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from sentence_transformers import SentenceTransformer

T = TypeVar("T")

KEPT = 3  # models; the one that was used longest ago goes first

_models: dict[tuple[str, object], TextModel] = {}
_sentence_transformers: dict[tuple[str, object], tuple[SentenceTransformer, str]] = {}
_lock = threading.Lock()  # for looking and putting
_loading: dict[tuple[object, ...], threading.Lock] = {}  # each model is loaded once


def shared_model(model_id: str) -> LanguageModel:
    """The model, loaded at the first call; a folder is read again when its files have changed.

    Safe to call from any thread.

    Raises:
        ModelError: it cannot be had; the message says why and what to do.
    """
    model = _shared(model_id, models.load_model, _models)
    if isinstance(model, LanguageModel):
        return model
    tunable = models.load_model(model_id)  # which refuses most that were loaded as text models
    with _lock:
        _models[model_id, _stamp(model_id)] = tunable
    return tunable


def shared_text_model(model_id: str) -> TextModel:
    """Like `shared_model`, for any model that `load_text_model` loads."""
    return _shared(model_id, models.load_text_model, _models)


def shared_sentence_transformer(model_id: str) -> tuple[SentenceTransformer, str]:
    """Like `shared_model`, for `load_sentence_transformer`."""
    return _shared(model_id, models.load_sentence_transformer, _sentence_transformers)


def _shared(model_id: str, load: Callable[[str], T], kept: dict[tuple[str, object], T]) -> T:
    key = (model_id, _stamp(model_id))
    with _lock:
        if key in kept:
            return _used(key, kept)
        loading = _loading.setdefault((id(kept), *key), threading.Lock())
    with loading:
        with _lock:
            if key in kept:
                return _used(key, kept)
        try:
            model = load(model_id)
        except BaseException:
            with _lock:
                _loading.pop((id(kept), *key), None)
            raise
        with _lock:
            _loading.pop((id(kept), *key), None)
            kept[key] = model
            while len(kept) > KEPT:
                del kept[next(iter(kept))]
        return model


def _used(key: tuple[str, object], kept: dict[tuple[str, object], T]) -> T:
    """A kept model, noted as the one used last."""
    model = kept[key] = kept.pop(key)
    return model


def is_loaded(model_id: str) -> bool:
    """Whether a model is kept, in whatever form."""
    key = (model_id, _stamp(model_id))
    return key in _models or key in _sentence_transformers


def _stamp(model_id: str) -> object:
    """What changes when the files of a folder change; None for what is no folder."""
    try:
        folder = Path(model_id).expanduser()
        files = [path.stat() for path in sorted([*folder.iterdir(), *folder.glob("[0-9]*_*/*")])]
    except (OSError, ValueError, RuntimeError):
        return None
    return tuple((file.st_mtime_ns, file.st_size) for file in files)
