"""Snapshots of a sentence-transformers training, for the training page."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer import modules
from transformers import TrainerCallback

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.files import write_bytes_beside
from neuralviz.store.writing import explain_write_errors
from neuralviz.training.learner import TOGETHER
from neuralviz.training.record import (
    MOST_TEXTS,
    RECORDING_FILE,
    RECORDING_FORMAT,
    Lesson,
    RecordedTraining,
    Watch,
    read_folder,
)
from neuralviz.training.settings import PairKind, TrainingSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor
    from transformers import TrainerState

MOST_SNAPSHOTS = 40  # beyond this, every second one is dropped
DEFAULT_SNAPSHOTS = 10  # unless every_steps is set
_NO_NUMBERS = "No snapshot was taken: the encoder outputs infinite or NaN values."


class SnapshotCallback(TrainerCallback):
    """Records loss, 10-NN accuracy at every layer and some texts' neighbours during training.

    Pass it to sentence-transformers' Trainer and open ``folder``, new or of a resumed training, on
    the page *Training*, even while it runs. Training is not affected; failures only warn. Labels
    are one per text, ``""`` for unlabelled; without ``every_steps``, ten snapshots are taken.
    `NeuralvizError` if fewer than two texts are watched, or labels and texts differ in number.
    """

    def __init__(
        self,
        folder: str | Path,
        texts: Sequence[str],
        labels: Sequence[str | int] | None = None,
        *,
        every_steps: int | None = None,
        n_texts: int = MOST_TEXTS,
        pairs: PairKind = "crops",
    ) -> None:
        self.folder = Path(folder)
        names = None
        if labels is not None:  # 0 is a valid label
            names = ["" if label is None else str(label) for label in labels]
        self._watch = Watch(texts, names, n_texts=n_texts)
        if len(rows := self._watch.watched) < 2:
            raise NeuralvizError("Snapshots need at least two texts, which are compared.")
        shown = [(texts[i], names and names[i]) for i in rows]
        watched = hashlib.sha256(json.dumps(shown).encode()).hexdigest()
        self._recorded = RecordedTraining(Lesson(TrainingSettings(pairs=pairs)), "", watched)
        self._asked, self._every = every_steps, 1

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **context: Any) -> None:
        """Take the first snapshot; `NeuralvizError` if the folder holds another training."""
        if not state.is_world_process_zero:
            return
        encoder, step = _plain(context["model"]), state.global_step
        self._every = self._asked or max(1, round(state.max_steps / DEFAULT_SNAPSHOTS))
        lesson = Lesson(self._recorded.lesson.settings, steps=state.max_steps)
        if (self.folder / RECORDING_FILE).exists():
            lesson = self._go_on(lesson, step)
        card = getattr(encoder, "model_card_data", None)
        name = str(getattr(card, "base_model", None) or "")
        self._recorded = replace(self._recorded, lesson=lesson, model=name)
        self._add_loss(step)  # earlier losses are unknown, or the folder lacks the last ones
        self._look(encoder, step)

    def on_log(self, args: Any, state: TrainerState, control: Any, **context: Any) -> None:
        logs = context.get("logs")
        if state.is_world_process_zero and logs and "loss" in logs:
            self._add_loss(state.global_step, logs["loss"], logs.get("learning_rate", np.nan))

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **context: Any) -> None:
        if state.is_world_process_zero and state.global_step % self._every == 0:
            self._look(_plain(context["model"]), state.global_step)

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **context: Any) -> None:
        if state.is_world_process_zero:
            self._change(is_over=True)
            self._look(_plain(context["model"]), state.global_step)

    def _go_on(self, lesson: Lesson, step: int) -> Lesson:
        """What the folder holds of this training, up to the checkpoint's step."""
        recorded = read_folder(self.folder)
        if not step or recorded.watched != self._recorded.watched:
            raise NeuralvizError(
                f"{self.folder} holds the snapshots of another training. Choose another folder."
            )
        snapshots = tuple(shot for shot in recorded.lesson.snapshots if shot.step <= step)
        return replace(lesson, curves=recorded.lesson.curves[:step], snapshots=snapshots)

    def _change(self, **values: Any) -> None:
        self._recorded = replace(self._recorded, lesson=replace(self._recorded.lesson, **values))

    def _add_loss(self, step: int, loss: float = np.nan, rate: float = np.nan) -> None:
        """Record a loss for all steps since the last known one; the other curves are unknown."""
        curves = self._recorded.lesson.curves
        rows = np.full((max(0, step - len(curves)), 4), (loss, rate, np.nan, np.nan))
        self._change(curves=np.concatenate([curves, rows]))

    def _look(self, encoder: SentenceTransformer, step: int) -> None:
        snapshots = self._recorded.lesson.snapshots
        if not snapshots or snapshots[-1].step < step:
            try:
                snapshot = self._watch.look(_Layers(encoder), step)
                snapshots = (*snapshots, replace(snapshot, vectors=None))
            except TextError:
                warnings.warn(f"{_NO_NUMBERS} The training goes on.", stacklevel=2)
        if len(snapshots) > MOST_SNAPSHOTS:
            snapshots, self._every = (*snapshots[:-1:2], snapshots[-1]), 2 * self._every
        self._change(snapshots=snapshots)
        path = self.folder / RECORDING_FILE
        try:
            with explain_write_errors(path):
                write_bytes_beside(path, RECORDING_FORMAT.pack(self._recorded))
        except NeuralvizError as error:
            warnings.warn(f"{error} The training goes on.", stacklevel=2)


class _Layers:
    def __init__(self, encoder: SentenceTransformer) -> None:
        self.encoder = encoder

    @torch.no_grad()
    def of_layers(self, texts: Sequence[str], *_: Any, **__: Any) -> list[np.ndarray]:
        """[text, dim] float32 vectors per layer, without dropout."""
        order = np.argsort([-len(text) for text in texts], kind="stable")
        was_training = self.encoder.training
        self.encoder.eval()
        try:
            parts = [
                self._embed_batch([texts[i] for i in order[start : start + TOGETHER]])
                for start in range(0, len(order), TOGETHER)
            ]
        finally:
            self.encoder.train(was_training)
        back = np.argsort(order)
        return [np.concatenate(layer)[back] for layer in zip(*parts, strict=True)]

    def _embed_batch(self, texts: list[str]) -> list[np.ndarray]:
        device = self.encoder.device
        features: dict[str, Any] = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in self.encoder.preprocess(texts).items()
        }
        first, *further = self.encoder
        lower: Sequence[Tensor] = ()
        if isinstance(first, modules.Transformer):
            config = first.auto_model.config
            before, config.output_hidden_states = config.output_hidden_states, True
            try:
                features = first(features)
            finally:
                config.output_hidden_states = before
            *lower, _ = features.pop("all_layer_embeddings")
        else:
            features = first(features)
        pooling = next((tensor for tensor in further if isinstance(tensor, modules.Pooling)), None)
        layers = []
        if pooling is not None:
            layers = [pooling({**features, "token_embeddings": tensor}) for tensor in lower]
        for module in further:
            features = module(features)
        return [
            tensor["sentence_embedding"].float().cpu().numpy() for tensor in (*layers, features)
        ]


def _plain(model: Any) -> SentenceTransformer:
    return getattr(model, "module", model)
