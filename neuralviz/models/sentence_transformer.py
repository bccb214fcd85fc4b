"""Models of the library sentence-transformers, from the hub or from a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from neuralviz.errors import ModelError
from neuralviz.models import bundled
from neuralviz.models.loading import resolve
from neuralviz.models.names import MINILM
from neuralviz.models.quiet import quiet_transformers

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_MODULES = "sentence_transformers."  # other modules would be code from the model's repository


def load_sentence_transformer(
    model_id: str | Path = MINILM, device: str | None = None
) -> tuple[SentenceTransformer, str]:
    """A ``SentenceTransformer`` and its fingerprint.

    Args:
        model_id: ``all-MiniLM-L6-v2``, which needs no network, a hub id, or a local folder.
        device: ``cpu`` or ``cuda``; by default what the library chooses.

    Only safetensors are read, and no code from the model's repository is ever run.

    Raises:
        ModelError: it cannot be had, is not a model of that library, or asks for code of its own.
    """
    model_id = str(model_id).strip()
    if model_id == MINILM:
        folder, fingerprint = bundled.minilm_folder(), bundled.MINILM_SHA256[:16]
    else:
        folder, fingerprint = resolve(model_id)
    _check(folder, model_id)
    try:
        with quiet_transformers():
            from sentence_transformers import SentenceTransformer

            encoder = SentenceTransformer(
                str(folder),
                device=device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:  # whatever a broken folder provokes inside the library
        reason = re.sub(r"\s+", " ", str(error))[:200]
        raise ModelError(f"Could not load {model_id}: {reason}") from error
    return encoder.eval().requires_grad_(False), fingerprint


def _check(folder: Path, model_id: str) -> None:
    """Refuse what is no model of the library, and what would run code."""
    try:
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        types = [str(module["type"]) for module in modules]
    except FileNotFoundError as error:
        raise ModelError(
            f"{model_id} is not a sentence-transformers model: modules.json is missing. The "
            "methods mean, cls, sep, last and sbert-wk work with any encoder."
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"Could not read the modules.json of {model_id}.") from error
    foreign = [name for name in types if not name.startswith(_MODULES)]
    if foreign:
        raise ModelError(
            f"{model_id} needs custom code ({foreign[0][:60]}), which neuralviz never runs."
        )
    if not any(folder.rglob("*.safetensors")) or any(
        not path.with_name("model.safetensors").exists() for path in folder.rglob("*_model.bin")
    ):
        raise ModelError(
            f"{model_id} has weights that are not in safetensors format. Other formats can "
            "run code and are not loaded."
        )
