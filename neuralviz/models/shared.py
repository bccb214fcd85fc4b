"""Models that everybody in a process shares, each loaded once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from neuralviz.models.language_model import LanguageModel, TextModel
from neuralviz.models.loading import load_model, load_text_model

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT = 3  # models; the one that was used longest ago goes first

_models: dict[tuple[str, object], TextModel] = {}
_lock = threading.Lock()  # for looking and putting
_loading: dict[tuple[str, object], threading.Lock] = {}  # each model is loaded once


def shared_model(model_id: str) -> LanguageModel:
    """The model, loaded at the first call; a folder is read again when its files have changed.

    Safe to call from any thread.

    Raises:
        ModelError: it cannot be had; the message says why and what to do.
    """
    model = _shared(model_id, load_model)
    return model if isinstance(model, LanguageModel) else load_model(model_id)  # which refuses it


def shared_text_model(model_id: str) -> TextModel:
    """Like `shared_model`, for any model that `load_text_model` loads."""
    return _shared(model_id, load_text_model)


def _shared(model_id: str, load: Callable[[str], TextModel]) -> TextModel:
    key = (model_id, _stamp(model_id))
    with _lock:
        if key in _models:
            return _used(key)
        loading = _loading.setdefault(key, threading.Lock())
    with loading:
        with _lock:
            if key in _models:
                return _used(key)
        try:
            model = load(model_id)
        finally:
            with _lock:
                _loading.pop(key, None)
        with _lock:
            _models[key] = model
            while len(_models) > KEPT:
                del _models[next(iter(_models))]
        return model


def _used(key: tuple[str, object]) -> TextModel:
    """A kept model, noted as the one used last."""
    model = _models[key] = _models.pop(key)
    return model


def is_loaded(model_id: str) -> bool:
    """Whether `shared_model` would answer at once."""
    return (model_id, _stamp(model_id)) in _models


def _stamp(model_id: str) -> object:
    """What changes when the files of a folder change; None for what is no folder."""
    try:
        files = [path.stat() for path in sorted(Path(model_id).expanduser().iterdir())]
    except (OSError, ValueError, RuntimeError):
        return None
    return tuple((file.st_mtime_ns, file.st_size) for file in files)
