"""Models that everybody in a process shares, each loaded once."""

from __future__ import annotations

import threading
from pathlib import Path

from neuralviz.models.language_model import LanguageModel
from neuralviz.models.loading import load_model

KEPT = 2  # models; the one that was used longest ago goes first

_lock = threading.Lock()  # held while loading: two loads at once would take twice the memory
_models: dict[tuple[str, object], LanguageModel] = {}


def shared_model(model_id: str) -> LanguageModel:
    """The model, loaded at the first call; a folder is read again when its files have changed.

    Safe to call from any thread.

    Raises:
        ModelError: it cannot be had; the message says why and what to do.
    """
    with _lock:
        key = (model_id, _stamp(model_id))
        model = _models.pop(key, None) or load_model(model_id)
        _models[key] = model
        while len(_models) > KEPT:
            del _models[next(iter(_models))]
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
