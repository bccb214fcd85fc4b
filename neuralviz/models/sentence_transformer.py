"""Models of the library sentence-transformers, from the hub or from a folder."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import TYPE_CHECKING

from neuralviz.errors import ModelError
from neuralviz.models import bundled
from neuralviz.models.folder_check import check_folder, transformer_folders
from neuralviz.models.loading import resolve
from neuralviz.models.names import MINILM
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.weight_files import check_unused, missing_weights

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


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
            missing = [] if model_id == MINILM else _missing_weights(encoder, folder, model_id)
    except ModelError:
        raise
    except Exception as error:  # whatever a broken folder provokes inside the library
        reason = re.sub(r"\s+", " ", str(error))[:200]
        raise ModelError(f"Could not load {model_id}: {reason}") from error
    if missing:
        raise ModelError(f"{model_id} is missing weights, for example {missing[0]}.")
    _check_vector(encoder, model_id)
    return encoder.eval().requires_grad_(False), fingerprint


def _check(folder: Path, model_id: str) -> None:
    """Refuse what is no model of the library, what is no dense encoder, and what would run code."""
    check_folder(folder, model_id)
    if not (folder / "modules.json").is_file():
        raise ModelError(
            f"{model_id} is not a sentence-transformers model: modules.json is missing. The "
            "methods mean, cls, sep, last and sbert-wk work with any encoder."
        )
    if transformer_folders(folder, model_id) and not any(folder.rglob("*.safetensors")):
        raise missing_weights(model_id, [path.name for path in folder.rglob("*")])


def _check_vector(encoder: SentenceTransformer, model_id: str) -> None:
    """Refuse a model that gives no vector of a text: without pooling, or for pictures alone."""
    try:
        shape = encoder.encode(["a"], show_progress_bar=False).shape
    except KeyError as error:  # as modules look for what those before them gave
        raise ModelError(
            f"{model_id} gives no vector of a text: none of its modules pools the tokens' vectors. "
            "The methods mean, cls, sep, last and sbert-wk use its transformer alone."
        ) from error
    except Exception as error:  # whatever a module that expects something else provokes
        reason = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:200]
        raise ModelError(f"{model_id} gives no vector of a text: {reason}") from error
    if len(shape) != 2:
        raise ModelError(
            f"{model_id} gives no vector of a text, but an array of {len(shape)} axes."
        )


def _missing_weights(encoder: SentenceTransformer, folder: Path, model_id: str) -> list[str]:
    """Names of the weights that the transformers' files lack: the library makes them up."""
    networks = [module.auto_model for module in encoder.modules() if hasattr(module, "auto_model")]
    missing: list[str] = []
    for network, files in zip(networks, transformer_folders(folder, model_id), strict=False):
        _, about = type(network).from_pretrained(
            files,
            config=copy.deepcopy(network.config),
            device_map="meta",
            output_loading_info=True,
            use_safetensors=True,
            local_files_only=True,
        )
        check_unused(about["unexpected_keys"], model_id)
        missing += [name for name in sorted(about["missing_keys"]) if "pooler." not in name]
    return missing
