"""Snapshots of a sentence-transformers training, for the training page."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer import modules
from transformers import TrainerCallback

from neuralviz.errors import NeuralvizError, TextError, never
from neuralviz.store.files import write_bytes_beside
from neuralviz.store.writing import explain_write_errors
from neuralviz.training.learner import TOGETHER
from neuralviz.training.record import (
    RECORDING_FILE,
    RECORDING_FORMAT,
    Lesson,
    RecordedTraining,
    has_snapshots,
    read_folder,
)
from neuralviz.training.settings import LARGEST_BATCH, MAX_EPOCHS, TrainingSettings
from neuralviz.training.snapshots import MOST_TEXTS, Watch

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from neuralviz.errors import ShouldStop
    from neuralviz.training.settings import PairKind

MOST_SNAPSHOTS = 40  # beyond this, every second one is dropped
SHOWN_CHARACTERS = 1000  # of each watched text
DEFAULT_SNAPSHOTS = 10  # unless every_steps is set


class SnapshotCallback(TrainerCallback):
    """Records loss, 10-NN accuracy at every layer and some texts' neighbours during training.

    Pass it to sentence-transformers' Trainer, then open ``folder`` on the page *Training*, even
    while it runs. It does not affect training; failed writes and unusable vectors only warn.

    Args:
        folder: new or empty, or that of the same training, resumed from a checkpoint.
        texts: to watch; a sample of them if there are more than ``n_texts``.
        labels: one per text, ``""`` for unlabelled.
        every_steps: steps between snapshots; None for ten snapshots in all.
        pairs: the kind of pairs that the page names.

    Raises:
        NeuralvizError: fewer than two texts are watched, or labels and texts differ in number.
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
        self._texts, self._labels = texts, names
        self._watch = Watch(texts, names, n_texts=n_texts)
        if len(self._watch.watched) < 2:
            raise NeuralvizError("Snapshots need at least two texts, which are compared.")
        self._asked, self._every = every_steps, 1
        self._lesson = Lesson(TrainingSettings(pairs=pairs))
        self._model_name = ""
        self._is_warned = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **context: Any
    ) -> None:
        """Take the first snapshot; `NeuralvizError` if the folder holds another training."""
        if not state.is_world_process_zero:
            return
        encoder = _plain(context["model"])
        self._every = self._asked or max(1, round(state.max_steps / DEFAULT_SNAPSHOTS))
        settings = _settings(self._lesson.settings, args)
        self._lesson = replace(Lesson(settings), steps=state.max_steps, first=state.global_step)
        card = getattr(encoder, "model_card_data", None)
        self._model_name = str(getattr(card, "base_model", None) or "")
        if has_snapshots(self.folder):
            self._go_on(state.global_step)
        elif state.global_step:  # earlier losses are unknown
            self._add_loss(state.global_step)
        self._look(encoder, state.global_step)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **context: Any
    ) -> None:
        """Record the loss, averaged over the steps since the last log."""
        logs = context.get("logs")
        if state.is_world_process_zero and logs and "loss" in logs:
            self._add_loss(state.global_step, logs["loss"], logs.get("learning_rate", np.nan))

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **context: Any
    ) -> None:
        if state.is_world_process_zero and state.global_step % self._every == 0:
            self._look(_plain(context["model"]), state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **context: Any
    ) -> None:
        if state.is_world_process_zero:
            self._lesson = replace(self._lesson, is_over=True)
            self._look(_plain(context["model"]), state.global_step)

    def _make_recording(self) -> RecordedTraining:
        rows = self._watch.watched
        texts = tuple(self._texts[i][:SHOWN_CHARACTERS] for i in rows)
        labels = None if self._labels is None else tuple(self._labels[i] for i in rows)
        return RecordedTraining(self._lesson, texts, labels, self._model_name)

    def _go_on(self, step: int) -> None:
        """Resume the recording in the folder, up to the checkpoint's step."""
        recorded, new = read_folder(self.folder), self._make_recording()
        before = recorded.lesson
        if not step or (recorded.texts, recorded.labels) != (new.texts, new.labels):
            raise NeuralvizError(
                f"{self.folder} holds the snapshots of another training. Choose another folder."
            )
        self._lesson = replace(
            before,
            settings=self._lesson.settings,
            steps=self._lesson.steps,
            is_over=False,
            loss=before.loss[:step],
            learning_rate=before.learning_rate[:step],
            alignment=before.alignment[:step],
            uniformity=before.uniformity[:step],
            snapshots=tuple(snapshot for snapshot in before.snapshots if snapshot.step <= step),
        )
        self._add_loss(step)  # the folder lacks what was logged after its last snapshot

    def _add_loss(self, step: int, loss: float = np.nan, rate: float = np.nan) -> None:
        """Record a loss for all steps since the last known one."""
        lesson, new = self._lesson, max(0, step - self._lesson.step)
        values = {"loss": loss, "learning_rate": rate, "alignment": np.nan, "uniformity": np.nan}
        curves: dict[str, Any] = {
            name: np.append(getattr(lesson, name), np.full(new, value))
            for name, value in values.items()
        }
        self._lesson = replace(lesson, **curves)

    def _look(self, encoder: SentenceTransformer, step: int) -> None:
        snapshots = self._lesson.snapshots
        if not snapshots or snapshots[-1].step < step:
            try:
                snapshot = self._watch.look(_Layers(encoder), step)
                snapshots = (*snapshots, replace(snapshot, vectors=None))
            except TextError:
                self._warn(f"No snapshot of step {step:,}: the encoder gives no numbers any more.")
        if len(snapshots) > MOST_SNAPSHOTS:
            snapshots, self._every = (*snapshots[:-1:2], snapshots[-1]), 2 * self._every
        self._lesson = replace(self._lesson, snapshots=snapshots)
        path = self.folder / RECORDING_FILE
        try:
            with explain_write_errors(path):
                write_bytes_beside(path, RECORDING_FORMAT.pack(self._make_recording()))
        except NeuralvizError as error:
            self._warn(str(error))

    def _warn(self, sentence: str) -> None:
        """Warn once: later snapshots fail for the same reason."""
        if not self._is_warned:
            warnings.warn(f"{sentence} The training goes on.", stacklevel=2)
        self._is_warned = True


class _Layers:
    """A SentenceTransformer's layers, each pooled as the encoder pools its last."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        self.encoder = encoder

    @torch.no_grad()
    def of_layers(
        self, texts: Sequence[str], should_stop: ShouldStop = never, *, is_whole: bool = True
    ) -> list[np.ndarray]:
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
    """Unwrap an encoder that was wrapped for parallel training."""
    return getattr(model, "module", model)


def _settings(settings: TrainingSettings, args: TrainingArguments) -> TrainingSettings:
    return replace(
        settings,
        batch_size=min(max(2, args.per_device_train_batch_size), LARGEST_BATCH),
        epochs=min(max(1, round(args.num_train_epochs)), MAX_EPOCHS),
        learning_rate=args.learning_rate or None,
        seed=args.seed,
    )
