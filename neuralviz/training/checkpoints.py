"""A training as far as it has come, in files that hold numbers and words alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from neuralviz.errors import NeuralvizError
from neuralviz.store.files import folder_error
from neuralviz.training.kept import STEP

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neuralviz.models import TextModel
    from neuralviz.training.learner import Learner
    from neuralviz.training.settings import TrainingSettings


STEPS_BETWEEN = 10  # steps, over which the loss is averaged, too
MARGIN = 0.25  # in nats and as a share of the first loss: batches alone differ by less


class BestWeights:
    """A copy of the trained weights from where the loss was lowest, looked at every few steps.

    ``loss`` is the mean of the steps that led to ``weights``, or the first step's.
    """

    def __init__(self, network: nn.Module) -> None:
        self.weights = trained_weights(network)
        self.loss = np.inf

    def look(self, network: nn.Module, loss: Sequence[float]) -> None:
        """Take the weights as they are after the steps with this loss, if they are the best."""
        if len(loss) == 1:  # what the weights of the start gave
            self.loss = loss[0]
        elif (
            len(loss) % STEPS_BETWEEN == 0
            and (mean := float(np.mean(loss[-STEPS_BETWEEN:]))) < self.loss
        ):
            self.weights, self.loss = trained_weights(network), mean


def has_diverged(loss: Sequence[float]) -> bool:
    """Whether the loss ended clearly above where it began, or is no number."""
    if not np.isfinite(loss).all():
        return True
    return bool(np.mean(loss[-STEPS_BETWEEN:]) > MARGIN + loss[0] * (1 + MARGIN))


def trained_weights(network: nn.Module) -> dict[str, Tensor]:
    """Copies of the weights that are trained, by name."""
    return {
        name: parameter.detach().clone()
        for name, parameter in network.named_parameters()
        if parameter.requires_grad
    }


_FORMAT = 2  # of what is written; another one is not read


def identity(model: TextModel, texts: Sequence[str], settings: TrainingSettings) -> str:
    """Hash of all that decides how a training ends."""
    digest = hashlib.sha256()
    digest.update(json.dumps([_FORMAT, model.fingerprint, asdict(settings)]).encode())
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


class Checkpoints:
    """The newest checkpoint of one training (its `identity`), in a folder of its own.

    Written beside and moved into place: whenever the process is killed, there is a whole one.
    """

    def __init__(self, folder: Path, training: str) -> None:
        self.folder = folder
        self._training = training

    def keep(
        self, learner: Learner, adam: torch.optim.Adam, best: BestWeights, loss: Sequence[float]
    ) -> None:
        """Write where the training is, and delete the checkpoint before.

        Raises:
            StoreError: there is no room, or no right to write; what was there is kept.
        """
        target = self.folder / f"{STEP}{len(loss)}"
        unfinished_copy = self.folder / f".{target.name}.{os.getpid()}"
        older = self._list_paths()
        try:
            for unfinished in self.folder.glob(f".{STEP}*"):  # somebody was killed
                shutil.rmtree(unfinished, ignore_errors=True)
            unfinished_copy.mkdir(parents=True)
            save_file(_contiguous(learner.state_dict()), unfinished_copy / "weights.safetensors")
            save_file(_contiguous(_moments(adam)), unfinished_copy / "adam.safetensors")
            save_file(_contiguous(best.weights), unfinished_copy / "best.safetensors")
            header = {"training": self._training, "loss": list(loss), "best": best.loss}
            (unfinished_copy / "about.json").write_text(json.dumps(header), "utf-8")
            if not target.exists():
                unfinished_copy.rename(target)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            sentence = f"Could not save the training to {self.folder}: {reason}."
            raise folder_error(sentence) from error
        finally:
            shutil.rmtree(unfinished_copy, ignore_errors=True)
        for path in older:
            if path != target:
                shutil.rmtree(path, ignore_errors=True)

    def restore(self, learner: Learner, adam: torch.optim.Adam, best: BestWeights) -> list[float]:
        """Put weights and optimiser where the newest checkpoint has them, and the best weights.

        Returns:
            The loss of all steps so far; empty where there is no checkpoint.

        Raises:
            NeuralvizError: the folder is of another training.
            StoreError: the checkpoint cannot be read.
        """
        newest = max(self._list_paths(), key=_step, default=None)
        if newest is None:
            return []
        try:
            header = json.loads((newest / "about.json").read_text("utf-8"))
            if header["training"] != self._training:
                raise NeuralvizError(
                    f"{self.folder} holds a training of another model, other texts or other "
                    "settings. Choose another folder, or delete this one."
                )
            weights = load_file(newest / "weights.safetensors")
            moments = load_file(newest / "adam.safetensors")
            loss = [float(value) for value in header["loss"]]
            best_weights = load_file(newest / "best.safetensors")
            best.loss = float(header["best"])
            learner.load_state_dict(weights)
            _set_moments(adam, moments)
            best.weights = {
                name: best_weights[name].to(tensor.device) for name, tensor in best.weights.items()
            }
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            sentence = f"Could not read the training in {self.folder}. Delete it to start again."
            raise folder_error(sentence, "read") from error
        return loss

    def _list_paths(self) -> list[Path]:
        paths = self.folder.glob(f"{STEP}*") if self.folder.is_dir() else ()
        return [path for path in paths if path.name.removeprefix(STEP).isdecimal()]


def _step(path: Path) -> int:
    return int(path.name.removeprefix(STEP))


def _moments(adam: torch.optim.Adam) -> dict[str, torch.Tensor]:
    """What Adam remembers, by the place of a parameter: ``3.exp_avg``, ``3.step``, …"""
    state = adam.state_dict()["state"]
    return {
        f"{place}.{name}": moments[name] for place, moments in state.items() for name in moments
    }


def _set_moments(adam: torch.optim.Adam, moments: dict[str, torch.Tensor]) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in moments.items():
        place, _, moment = name.partition(".")
        state.setdefault(int(place), {})[moment] = value
    adam.load_state_dict({**adam.state_dict(), "state": state})


def _contiguous(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Each with memory of its own, as the file format wants it."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
