"""Where similarity models lie, and what they are called; loads no torch."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuralviz.errors import ModelError, SettingsError
from neuralviz.models.trained import is_at_hand
from neuralviz.paths import similarity_models_folder
from neuralviz.training.similarity.settings import SimilaritySettings

if TYPE_CHECKING:
    from pathlib import Path

    from neuralviz.training.similarity.settings import Rung

FORMAT = 1  # of a file
SUFFIX = ".safetensors"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_MOST_HEADER = 1 << 20  # bytes


@dataclass(frozen=True)
class KeptSimilarityModel:
    """A saved similarity model by its file's header; ``model`` is the frozen one's id."""

    name: str
    model: str
    rung: Rung


def model_path(name: str) -> Path:
    """The file of a name, whether it is there or not; ModelError for what is no name."""
    if not _NAME.fullmatch(name):
        raise ModelError(f"No similarity model is called “{name[:80]}”.")
    return similarity_models_folder() / f"{name}{SUFFIX}"


def is_similarity_model(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and model_path(name).is_file()


def similarity_models() -> list[KeptSimilarityModel]:
    """All saved similarity models, by name; unreadable files are left out."""
    models = []
    for path in sorted(similarity_models_folder().glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        with suppress(OSError, ValueError, LookupError, TypeError, SettingsError):
            header = _read_header(path)
            if _NAME.fullmatch(name):
                settings = SimilaritySettings(**header["settings"])
                models.append(KeptSimilarityModel(name, str(header["model"]), settings.rung))
    return models


def check_free_name(name: str) -> str:
    """A free name for a new similarity model, without spaces around it.

    Raises:
        SettingsError: it is no name for a file, or there is a model of that name.
    """
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "Name the similarity model with letters, digits, dots, hyphens and underscores, 64 at "
            "most; the first must be a letter or a digit."
        )
    if model_path(name).exists() or is_at_hand(name):
        raise SettingsError(f"There is already a model called “{name}”. Choose another name.")
    return name


def delete_similarity_model(name: str) -> None:
    """Delete a saved similarity model.

    Raises:
        ModelError: there is none of that name, or it cannot be deleted.
    """
    path = model_path(name)
    try:
        path.unlink()
    except FileNotFoundError as error:
        raise ModelError(f"No similarity model is called “{name[:80]}”.") from error
    except OSError as error:
        raise ModelError(f"Could not delete “{name}”: {error.strerror or error}.") from error


def _read_header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: its length in eight bytes, then JSON."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST_HEADER:
            raise ValueError("no header")
        header = json.loads(file.read(length))
    content = json.loads(header["__metadata__"]["neuralviz"])
    if not isinstance(content, dict):
        raise TypeError("no settings")
    return content
