"""Saves a trained encoder as a folder that sentence-transformers can load."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoProcessor, PreTrainedTokenizerFast

from neuralviz.errors import SettingsError, StoreError, shorten_reason
from neuralviz.models.exporting import new_folder
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.shared import RECORD_FILE
from neuralviz.training.learner import Learner, TransformerLearner
from neuralviz.training.settings import SAVED_POOLINGS, TrainingSettings, check_can_be_saved

if TYPE_CHECKING:
    from neuralviz.models import TextModel
    from neuralviz.training.record import Trained

TOLERANCE = 1e-3  # relative to the largest value; allows for GPU and CPU differences
_PROBES = (
    "a",
    "The gulls are awake, and 2 children count the boats.",
    "In the afternoon a heavy rain begins; nobody reads the [MASK] twice. " * 20,
)


def save_encoder(trained: Trained, model: TextModel, folder: str | Path) -> None:
    """Write a SentenceTransformer folder, with the tokenizer of the original ``model``.

    Raises `NeuralvizError` if the folder is not empty or cannot be written, or the pooling or
    family is not supported there.
    """
    check_can_be_saved(trained.settings.pooling)
    with new_folder(folder) as part, quiet_transformers():
        encoder = _as_sentence_transformer(trained, model, part / "parts")
        encoder.save(str(part), create_model_card=False)
        shutil.rmtree(part / "parts", ignore_errors=True)  # a table has none
        _check_saved(trained.learner, part)
        header = {
            "model": model.id,
            "fingerprint": model.fingerprint,
            "settings": asdict(trained.settings),
            "step": trained.step,
            "steps": trained.steps,
        }
        (part / RECORD_FILE).write_text(json.dumps(header, indent=2), "utf-8")


def check_family_can_be_saved(model: TextModel, settings: TrainingSettings) -> None:
    """Raise `SettingsError` if sentence-transformers could not load the model's family."""
    if settings.part == "table":
        return
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        model.network.config.save_pretrained(folder)
        _as_it_reads(model).save_pretrained(folder)
        try:
            AutoProcessor.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # each family's processor raises its own
            raise SettingsError(
                "The encoder could not be saved so that sentence-transformers reads it: its family "
                f"needs a processor that is missing ({shorten_reason(error)}). Choose a model of "
                "another family, or train the embedding table alone."
            ) from error


def _as_sentence_transformer(
    trained: Trained, model: TextModel, parts: Path
) -> SentenceTransformer:
    learner = trained.learner
    if not isinstance(learner, TransformerLearner):
        weights = learner.table.weight.detach().cpu()
        table = modules.StaticEmbedding(_words_alone(model.encoder), embedding_weights=weights)
        return SentenceTransformer(modules=[table], device="cpu")
    learner.network.save_pretrained(parts)
    _as_it_reads(model).save_pretrained(parts)
    transformer = modules.Transformer(str(parts), max_seq_length=learner.window)
    pooling = modules.Pooling(model.d_model, SAVED_POOLINGS[learner.pooling])
    return SentenceTransformer(modules=[transformer, pooling], device="cpu")


def _as_it_reads(model: TextModel) -> PreTrainedTokenizerFast:
    """A tokenizer that reads texts as the learner does, whatever the model's own would add."""
    backend = Tokenizer.from_str(model.encoder.to_str())
    tokens = {f"[special {token}]": token for token in (*model.prefix_ids, *model.suffix_ids)}
    before, after = (
        [f"[special {token}]" for token in side] for side in (model.prefix_ids, model.suffix_ids)
    )
    backend.post_processor = TemplateProcessing(
        single=[*before, "$A", *after], special_tokens=list(tokens.items())
    )
    named = model.tokenizer.special_tokens_map.items()
    special = {name: str(token) for name, token in named if not isinstance(token, list)}
    anything = next(iter(special.values()), "") or str(backend.id_to_token(model.pad_id))
    special.setdefault("pad_token", anything)  # padding is never read, so any token will do
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=model.window,
        padding_side="right",
        truncation_side="right",
        split_special_tokens=True,
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )


def _words_alone(encoder: Tokenizer) -> Tokenizer:
    """A tokenizer that reads special tokens in a text as plain characters, even after reloading."""
    content = json.loads(encoder.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    content["post_processor"] = None
    return Tokenizer.from_str(json.dumps(content))


def _check_saved(learner: Learner, folder: Path) -> None:
    """Raise `StoreError` unless the saved encoder gives the learner's vectors."""
    encoder = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    saved = encoder.encode(list(_PROBES), show_progress_bar=False)
    was_training = learner.training
    with torch.no_grad():
        expected = learner.eval().vectors(_PROBES).float().cpu().numpy()
    learner.train(was_training)
    if not np.allclose(saved, expected, rtol=0, atol=TOLERANCE * float(np.abs(expected).max())):
        raise StoreError(
            "From the folder, sentence-transformers gets other vectors than those that were "
            "trained. Begin with a model of another family."
        )
