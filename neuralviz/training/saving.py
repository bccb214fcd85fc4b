"""A trained encoder as a folder that sentence-transformers can load."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.trained import ABOUT
from neuralviz.training.learner import TransformerLearner
from neuralviz.training.settings import SAVED_POOLINGS, check_can_be_saved

if TYPE_CHECKING:
    from neuralviz.models import TextModel
    from neuralviz.training.events import Trained


UNFINISHED = ".unfinished-encoder"
ABANDONED = 86400.0  # seconds, after which nobody is still writing


def save_encoder(trained: Trained, model: TextModel, folder: str | Path) -> None:
    """Write a SentenceTransformer folder, beside and moved into place.

    Args:
        trained: the training.
        model: that it began with; its tokenizer goes with the encoder.
        folder: that is made.

    Raises:
        NeuralvizError: there is such a folder, or as of `check_can_be_saved`.
        StoreError: there is no room, or no right to write.
    """
    folder = Path(folder)
    check_can_be_saved(trained.settings.pooling)
    if folder.exists():
        raise NeuralvizError(f"{folder} is there already. Choose another name.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _delete_unfinished(folder.parent)
        beside = Path(
            tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=UNFINISHED)
        )
    except OSError as error:
        raise StoreError(f"Could not save the encoder: {error.strerror}.") from error
    try:
        with quiet_transformers():
            _as_sentence_transformer(trained, model, beside / "parts").save(
                str(beside / "whole"), create_model_card=False
            )
        about = {
            "model": model.id,
            "fingerprint": model.fingerprint,
            "settings": asdict(trained.settings),
            "step": trained.step,
            "steps": trained.steps,
        }
        (beside / "whole" / ABOUT).write_text(json.dumps(about, indent=2), "utf-8")
        (beside / "whole").rename(folder)
    except Exception as error:  # the tokenizers library raises no kind of its own, a full disk too
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"Could not save the encoder: {reason}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _delete_unfinished(folder: Path) -> None:
    """Delete what somebody who was killed has left behind."""
    for path in folder.glob(f".*{UNFINISHED}"):
        with suppress(OSError):  # somebody else has done so
            if path.stat().st_mtime < time.time() - ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


def _as_sentence_transformer(
    trained: Trained, model: TextModel, parts: Path
) -> SentenceTransformer:
    learner = trained.learner
    if not isinstance(learner, TransformerLearner):
        weights = learner.table.weight.detach().cpu()
        table = modules.StaticEmbedding(model.encoder, embedding_weights=weights)
        return SentenceTransformer(modules=[table], device="cpu")
    learner.network.save_pretrained(parts)
    model.tokenizer.save_pretrained(parts)
    transformer = modules.Transformer(str(parts), max_seq_length=learner.window)
    pooling = modules.Pooling(model.d_model, SAVED_POOLINGS[learner.pooling])
    return SentenceTransformer(modules=[transformer, pooling], device="cpu")
