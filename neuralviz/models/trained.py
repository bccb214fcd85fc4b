"""Encoders trained here: named folders of sentence-transformers."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralviz.errors import ModelError, SettingsError
from neuralviz.models.language_model import BUNDLED, MINILM
from neuralviz.paths import home, similarity_models_folder

RECORD_FILE = "neuralviz.json"  # in the folder: how it was trained
MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class TrainedEncoder:
    name: str  # usable as a model id
    folder: Path
    record: dict[str, Any]  # how it was trained, as `neuralviz.training.saving` wrote it

    @property
    def is_table(self) -> bool:
        """Whether it is only a table of token embeddings, without layers."""
        settings = self.record.get("settings")
        return isinstance(settings, dict) and settings.get("part") == "table"

    def find_last_change(self) -> float:
        """Seconds since 1970 when one of its files last changed; 0 once deleted."""
        try:
            files = [path.stat() for path in (self.folder, *self.folder.rglob("*"))]
        except OSError:
            return 0.0
        return max(max(file.st_mtime, file.st_ctime) for file in files)


def encoders_folder() -> Path:
    return home() / "encoders"


def trained_encoders() -> list[TrainedEncoder]:
    names = sorted(path.name for path in encoders_folder().glob("*"))
    return [encoder for encoder in map(trained_encoder, names) if encoder is not None]


def trained_encoder(name: str) -> TrainedEncoder | None:
    if not MODEL_NAME.fullmatch(name):
        return None
    folder = encoders_folder() / name
    try:
        record = json.loads((folder / RECORD_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return TrainedEncoder(name, folder, record) if isinstance(record, dict) else None


def is_at_hand(model_id: str) -> bool:
    """Whether a model comes with neuralviz or was trained here, so that no network is needed."""
    return model_id in (BUNDLED, MINILM) or trained_encoder(model_id) is not None


def check_free_name(name: str, kind: str = "encoder") -> str:
    """Strip a name for a new model; `SettingsError` if it is invalid or any model has it."""
    name = name.strip()
    if not MODEL_NAME.fullmatch(name):
        raise SettingsError(
            f"Name the {kind} with letters, digits, dots, hyphens and underscores, 64 at most; "
            "the first must be a letter or a digit."
        )
    similarity_file = similarity_models_folder() / f"{name}.safetensors"
    if is_at_hand(name) or (encoders_folder() / name).exists() or similarity_file.exists():
        raise SettingsError(f"There is already a model called “{name}”. Choose another name.")
    return name


def delete_encoder(name: str) -> None:
    """Delete a trained encoder; `ModelError` if there is none, or it cannot be deleted."""
    encoder = trained_encoder(name)
    if encoder is None:
        raise ModelError(f"No trained encoder is called “{name[:80]}”.")
    try:
        if encoder.folder.is_symlink():  # the encoder itself lies elsewhere and stays
            encoder.folder.unlink()
        else:
            shutil.rmtree(encoder.folder)
    except OSError as error:
        raise ModelError(f"Could not delete “{name}”: {error.strerror or error}.") from error
