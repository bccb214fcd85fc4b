"""The state of a training and its checkpoints, safetensors files."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from neuralviz.errors import NeuralvizError
from neuralviz.store.files import folder_error
from neuralviz.training.kept import STEP, list_checkpoints
from neuralviz.training.learner import make_learner
from neuralviz.training.record import Trained

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neuralviz.models import TextModel
    from neuralviz.training.settings import TrainingSettings

STEPS_BETWEEN = 10  # steps; also the window of the averaged loss
MARGIN = 0.25  # nats, and share of the first loss; more than batches vary
CHECKPOINT_SECONDS = 5.0  # minimum between two checkpoints
CHECKPOINT_SHARE = 0.05  # maximum share of time spent on checkpoints
UNFINISHED = ".unfinished"  # the checkpoint being written
_FORMAT = 4  # checkpoint version; others are not read


def identity(model: TextModel, texts: Sequence[str], settings: TrainingSettings) -> str:
    digest = hashlib.sha256()
    digest.update(json.dumps([_FORMAT, model.fingerprint, asdict(settings)]).encode())
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def has_diverged(loss: Sequence[float]) -> bool:
    """Whether the loss ended clearly above its start or became infinite or NaN."""
    if not np.isfinite(loss).all():
        return True
    return bool(np.mean(loss[-STEPS_BETWEEN:]) > MARGIN + loss[0] * (1 + MARGIN))


class TrainingState:
    """Trained weights, optimiser, and the weights at the lowest loss; raises as `make_learner`."""

    # ``folder``, if given, holds a complete checkpoint whenever the process is killed

    def __init__(
        self,
        model: TextModel,
        texts: Sequence[str],
        settings: TrainingSettings,
        folder: Path | None,
    ) -> None:
        self.settings, self.folder = settings, folder
        self.learner = make_learner(model, settings)
        trained = [weight for weight in self.learner.parameters() if weight.requires_grad]
        self.adam = torch.optim.Adam(trained, lr=settings.peak_rate)
        self.loss: list[float] = []  # of every step so far
        self._best, self._best_loss = _copy_trained(self.learner), np.inf
        self._training = identity(model, texts, settings) if folder else ""
        self._n_kept, self._keep_at = 0, 0.0

    def add_loss(self, loss: float) -> None:
        """Record a step's loss; every few steps, keep the weights if it is the lowest."""
        self.loss.append(loss)
        if len(self.loss) == 1:  # the loss of the initial weights
            self._best_loss = loss
        elif len(self.loss) % STEPS_BETWEEN == 0:
            mean = float(np.mean(self.loss[-STEPS_BETWEEN:]))
            if mean < self._best_loss:
                self._best, self._best_loss = _copy_trained(self.learner), mean

    def make_result(self, steps: int) -> Trained:
        if diverged := has_diverged(self.loss):
            self.learner.load_state_dict(self._best, strict=False)
        loss = np.array(self.loss)
        learner = self.learner.eval()
        return Trained(learner, self.settings, len(loss), steps, loss, diverged)

    def keep_when_due(self) -> None:
        """Write a checkpoint if the last one is old enough; raises as `keep`."""
        if (began := time.monotonic()) > self._keep_at:
            self.keep()
            finished = time.monotonic()
            pause = max(CHECKPOINT_SECONDS, (finished - began) / CHECKPOINT_SHARE)
            self._keep_at = finished + pause

    def keep(self) -> None:
        """Write a checkpoint and delete the previous one; `StoreError` if it cannot be written."""
        if self.folder is None or len(self.loss) == self._n_kept:
            return
        target = self.folder / f"{STEP}{len(self.loss)}"
        older = list_checkpoints(self.folder).values()
        moments = {
            f"{place}.{name}": value  # ``3.exp_avg``, ``3.step``, …
            for place, state in self.adam.state_dict()["state"].items()
            for name, value in state.items()
        }
        parts = {"weights": self.learner.state_dict(), "adam": moments, "best": self._best}
        arrays = {
            f"{part}.{name}": tensor.detach().cpu().contiguous().numpy()
            for part, tensors in parts.items()
            for name, tensor in tensors.items()
        }
        header = {"training": self._training, "loss": self.loss, "best": self._best_loss}
        try:
            unfinished = self.folder / UNFINISHED
            save_file(arrays, unfinished, {"about": json.dumps(header)})
            unfinished.replace(target)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            sentence = f"Could not save the training to {self.folder}: {reason}."
            raise folder_error(sentence) from error
        for path in older:
            if path != target:
                with suppress(OSError):  # the new one is safe
                    path.unlink()
        self._n_kept = len(self.loss)

    def restore(self) -> None:
        """Resume, if possible; `NeuralvizError` if another training's, `StoreError` if unread."""
        self._keep_at = time.monotonic() + CHECKPOINT_SECONDS
        paths = {} if self.folder is None else list_checkpoints(self.folder)
        if not paths:
            return
        try:
            with safe_open(paths[max(paths)], "pt") as file:
                header = json.loads(file.metadata()["about"])
                if header["training"] != self._training:
                    raise NeuralvizError(
                        f"{self.folder} holds a training of another model, other texts or other "
                        "settings. Choose another folder, or delete this one."
                    )
                parts: dict[str, dict[str, Tensor]] = {"weights": {}, "adam": {}, "best": {}}
                for key in file.keys():  # noqa: SIM118
                    part, _, name = key.partition(".")
                    parts[part][name] = file.get_tensor(key)
            loss = [float(value) for value in header["loss"]]
            self._best_loss = float(header["best"])
            self.learner.load_state_dict(parts["weights"])
            state: dict[int, dict[str, Tensor]] = {}
            for key, value in parts["adam"].items():
                place, _, name = key.partition(".")
                state.setdefault(int(place), {})[name] = value
            self.adam.load_state_dict({**self.adam.state_dict(), "state": state})
            best = parts["best"]
            self._best = {key: best[key].to(old.device) for key, old in self._best.items()}
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            sentence = f"Could not read the training in {self.folder}. Delete it to start again."
            raise folder_error(sentence, "read") from error
        self.loss, self._n_kept = loss, len(loss)


def _copy_trained(network: nn.Module) -> dict[str, Tensor]:
    return {
        name: parameter.detach().clone()
        for name, parameter in network.named_parameters()
        if parameter.requires_grad
    }
