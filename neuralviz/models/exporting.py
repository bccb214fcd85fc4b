"""Write a model as a folder that other programs load."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError

from neuralviz.errors import ModelError
from neuralviz.models.bundled import PAPERS, write_papers
from neuralviz.models.language_model import LanguageModel
from neuralviz.models.loading import load_folder
from neuralviz.models.names import BUNDLED
from neuralviz.models.passes import copy_network, seeded
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.trial import differ


def export_model(model: LanguageModel, folder: str | Path) -> Path:
    """Write a model as a plain folder that ``transformers`` loads, float32, config included.

    The bundled model's has its card (``README.md``), licence and list of training texts, too; of a
    model that was loaded from a folder they are copied as far as they are there.

    Raises:
        ModelError: the folder is not empty or cannot be written, or what was written gives other
            numbers than the model.
    """
    try:
        folder = Path(folder).expanduser().resolve()
        if folder == Path.cwd():
            raise ModelError("Choose a folder other than the current one.")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ModelError(f"{folder} exists and is not an empty folder. Choose another.")
        part = folder.with_name(f".{folder.name}.part-{os.getpid()}")
        part.mkdir(parents=True)
        try:
            state = model.network.state_dict()
            if not getattr(model.network.config, "tie_word_embeddings", True):
                # of tensors that share their memory one would be written, and not tied again
                state = {name: tensor.clone() for name, tensor in state.items()}
            with quiet_transformers():
                model.network.save_pretrained(part, state_dict=state)
            model.tokenizer.save_pretrained(part)
            _check_written(model, part)
            if model.id == BUNDLED:
                write_papers(part)
            else:
                _copy_papers(Path(model.id).expanduser(), part)
            for path in part.iterdir():  # safetensors lets nobody else read its file
                path.chmod((part / "config.json").stat().st_mode)
            if folder.exists():
                folder.rmdir()
            part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except (OSError, RuntimeError, SafetensorError) as error:  # RuntimeError: no such home
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"Could not write to {folder}: {reason}.") from error
    return folder


def _copy_papers(source: Path, target: Path) -> None:
    for name in PAPERS:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)


@torch.no_grad()
def _check_written(model: LanguageModel, folder: Path) -> None:
    """Load what was written and compare its logits with the model's."""
    written, _ = load_folder(folder, model.id, "AutoModelForMaskedLM")
    written = written.to(model.device).eval()
    word = model.encoder.encode("a", add_special_tokens=False).ids
    ids = [*model.prefix_ids, *word, model.mask_id, *word, *model.suffix_ids]
    logits = []
    for network in (model.network, written):
        with seeded(0):
            logits.append(copy_network(network)(torch.tensor([ids], device=model.device)).logits)
    if differ(logits[0], logits[1]):
        raise ModelError(f"{model.id} cannot be exported: what is written gives other numbers.")
