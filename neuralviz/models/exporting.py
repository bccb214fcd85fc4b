"""Export models as folders that other programs load."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import psutil
import torch

from neuralviz.errors import ModelError, NeuralvizError
from neuralviz.models.bundled import PAPERS, minilm_folder, write_papers
from neuralviz.models.folder_check import ModelFiles
from neuralviz.models.language_model import BUNDLED, MINILM, LanguageModel, TextModel
from neuralviz.models.loading import AutoClass, load_network, load_text_model, resolve
from neuralviz.models.passes import copy_network, differ, seeded
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.sentence_transformer import encode_together, load_sentence_transformer
from neuralviz.models.shared import trained_encoder


def export(model_id: str, folder: str | Path) -> Path:
    """Write any model as a new float32 folder, and return its path.

    Sentence encoders become folders for ``sentence-transformers``, pooling included; other models
    become folders for ``transformers``. Errors are those of `export_model`.
    """
    if model_id != MINILM and trained_encoder(model_id) is None:
        model = load_text_model(model_id)
        is_encoder = model_id != BUNDLED and (resolve(model_id)[0] / "modules.json").is_file()
        if isinstance(model, LanguageModel) or not is_encoder:
            return export_model(model, folder)
    encoder, _ = load_sentence_transformer(model_id, device="cpu")
    with new_folder(folder) as part:
        with quiet_transformers():
            encoder.float().save(str(part), create_model_card=False)
        written, _ = load_sentence_transformer(part, device="cpu")
        vectors = [
            torch.stack(encode_together(source, ["a", "b c"])) for source in (encoder, written)
        ]
        _check_equal(model_id, vectors)
        source = minilm_folder() if model_id == MINILM else resolve(model_id)[0]
        _copy_papers(source, part)
    return Path(folder).expanduser().resolve()


def export_model(model: TextModel, folder: str | Path) -> Path:
    """Write a model, licence and card included, as a float32 folder that ``transformers`` loads.

    `ModelError` if the folder is not empty, cannot be written, or does not reproduce the model.
    """
    with new_folder(folder) as part:
        state = model.network.state_dict()
        if not getattr(model.network.config, "tie_word_embeddings", True):
            # of tensors that share memory only one would be written, and loading would not tie them
            state = {name: tensor.clone() for name, tensor in state.items()}
        with quiet_transformers():
            model.network.save_pretrained(part, state_dict=state)
        model.tokenizer.save_pretrained(part)
        _check_written(model, part)
        if model.id == BUNDLED:
            write_papers(part)
        else:
            _copy_papers(Path(model.id).expanduser(), part)
    return Path(folder).expanduser().resolve()


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A folder beside ``folder``, moved into its place at the end; `ModelError` if that fails."""
    try:
        folder = Path(folder).expanduser().resolve()
        if folder == Path.cwd():
            raise ModelError("Choose a folder other than the current one.")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ModelError(f"{folder} exists and is not an empty folder. Choose another.")
        prefix = f".{folder.name}.part-"
        for leftover in folder.parent.glob(f"{escape(prefix)}*"):
            if leftover.stat().st_mtime < psutil.Process().create_time():  # its process was killed
                shutil.rmtree(leftover, ignore_errors=True)
        part = folder.with_name(f"{prefix}{os.getpid()}")
        part.mkdir(parents=True)
        try:
            yield part
            for path in part.rglob("*.safetensors"):  # safetensors makes files private
                path.chmod(next(part.glob("*.json")).stat().st_mode)
            if folder.exists():
                folder.rmdir()
            part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except NeuralvizError:
        raise
    except Exception as error:  # tokenizers raises plain Exception, even for a full disk
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"Could not write to {folder}: {reason}.") from error


def _copy_papers(source: Path, target: Path) -> None:
    for name in PAPERS:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)


@torch.no_grad()
def _check_written(model: TextModel, folder: Path) -> None:
    is_masked, name = isinstance(model, LanguageModel), type(model.network).__name__
    kind: AutoClass = "AutoModelForMaskedLM" if is_masked else "AutoModel"
    if name.endswith("EncoderModel"):  # of T5, the encoder
        kind = "AutoModelForTextEncoding"
    written, _ = load_network(ModelFiles(folder, model.id), kind)
    written = written.to(model.device).eval()
    word = model.encoder.encode("a", add_special_tokens=False).ids
    blank = [model.mask_id] if isinstance(model, LanguageModel) else []
    ids = [*model.prefix_ids, *word, *blank, *word, *model.suffix_ids]
    outputs = []
    for network in (model.network, written):
        with seeded(0):
            outputs.append(copy_network(network)(torch.tensor([ids], device=model.device))[0])
    _check_equal(model.id, outputs)


def _check_equal(model_id: str, outputs: list[torch.Tensor]) -> None:
    if differ(*outputs):
        raise ModelError(f"{model_id} cannot be exported: what is written gives other numbers.")
