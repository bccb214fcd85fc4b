"""The contrastive training loop as a stream of events (crops paper, 3.1), and its checkpoints."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch.nn import functional

from neuralviz.errors import NeuralvizError, ShouldStop, Stopped, TextError, never
from neuralviz.files import folder_error
from neuralviz.models.passes import seeded
from neuralviz.training.learner import make_learner
from neuralviz.training.record import (
    STEP,
    Trained,
    TrainingEnded,
    TrainingStarted,
    TrainingStep,
    hold_training,
    list_checkpoints,
)
from neuralviz.training.settings import Pair, PairSource, TrainingSettings, steps_of_epoch

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neuralviz.models import TextModel
    from neuralviz.training.record import Snapshot, TrainingEvent, Watch

WARM_UP = 0.1  # of an epoch's steps

STEPS_BETWEEN = 10  # steps; also the window of the averaged loss
MARGIN = 0.25  # nats, and share of the first loss; more than batches vary
CHECKPOINT_SECONDS = 5.0  # minimum between two checkpoints
CHECKPOINT_SHARE = 0.05  # maximum share of time spent on checkpoints
UNFINISHED = ".unfinished"  # the checkpoint being written
_FORMAT = 4  # checkpoint version; others are not read


def train(
    model: TextModel,
    texts: Sequence[str],
    settings: TrainingSettings | None = None,
    *,
    watch: Watch | None = None,
    watch_every: int | None = 10,
    watch_before: bool = True,
    folder: Path | None = None,
    should_stop: ShouldStop = never,
    **options: Any,
) -> Generator[TrainingEvent]:
    """Train a copy of an encoder on pairs of the texts' chunks.

    Settings are the paper's by default; ``options`` such as ``pairs="dropout"`` override values.
    ``watch`` takes snapshots at the end, every ``watch_every`` steps and, with ``watch_before``, at
    the start. Checkpoints go to ``folder``, from which the same training resumes, bit for bit on a
    CPU with the same number of threads. A stop takes effect after a step or raises `Stopped` in a
    snapshot. Yields an event at the start, per step, and at the end with the result. Raises
    `NeuralvizError` if too few texts give pairs or the folder is in use, another training's or
    unwritable; `SettingsError` or `ModelError` if the model cannot be trained so.
    """
    settings = replace(settings or TrainingSettings(), **options)
    with hold_training(folder) if folder else nullcontext():
        source = PairSource(texts, settings)
        state = TrainingState(model, texts, settings, folder)
        before = watch.look(state.learner, 0, should_stop) if watch and watch_before else None
        state.restore()
        schedule = Schedule.from_settings(settings, len(source))
        yield TrainingStarted(
            step=len(state.loss),
            steps=schedule.steps,
            loss=np.array(state.loss),
            n_pairs=len(source),
            skipped=source.skipped_in_words(),
            measured=watch.measured if watch else "",
            snapshot=before,
        )
        try:
            for step, pairs in _list_steps(source, schedule, state.loss):
                alignment, uniformity = _take_step(state, pairs, step, schedule.factor(step))
                loss, n_steps = state.loss[-1], step + 1
                is_last = n_steps == schedule.steps or not np.isfinite(loss) or should_stop()
                if is_last:
                    state.keep()
                else:
                    state.keep_when_due()
                is_watched = watch_every and not is_last and n_steps % watch_every == 0
                yield TrainingStep(
                    step=n_steps,
                    steps=schedule.steps,
                    epoch=step // schedule.per_epoch + 1,
                    epochs=-(-schedule.steps // schedule.per_epoch),
                    loss=loss,
                    learning_rate=state.adam.param_groups[0]["lr"],
                    alignment=alignment,
                    uniformity=uniformity,
                    snapshot=_look(watch if is_watched else None, state, should_stop),
                )
                if is_last:
                    break
        except (GeneratorExit, Stopped):  # the consumer has left; a later call resumes here
            state.keep()
            raise
        result = state.make_result(schedule.steps)
        is_whole = result.step == result.steps  # if stopped, still take the last snapshot
        at_end = _look(watch, state, should_stop if is_whole else never)
        yield TrainingEnded(result, at_end)


def restore_training(
    model: TextModel, texts: Sequence[str], settings: TrainingSettings, folder: Path
) -> Trained | None:
    """What a training left in its folder; None if nothing. Raises `NeuralvizError` as `train`."""
    state = TrainingState(model, texts, settings, folder)
    state.restore()
    if not state.loss:
        return None
    return state.make_result(
        Schedule.from_settings(settings, len(PairSource(texts, settings))).steps
    )


def _look(watch: Watch | None, state: TrainingState, should_stop: ShouldStop) -> Snapshot | None:
    try:
        return watch.look(state.learner, len(state.loss), should_stop) if watch else None
    except TextError:  # the next step's loss will show it too
        return None


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up over a tenth of *one* epoch (as the authors' program), then decay to 0."""

    batch_size: int  # smaller than the setting if there are fewer pairs
    per_epoch: int
    steps: int

    @classmethod
    def from_settings(cls, settings: TrainingSettings, n_pairs: int) -> Schedule:
        batch_size = min(settings.batch_size, n_pairs)
        per_epoch = steps_of_epoch(n_pairs, batch_size)
        steps = per_epoch * settings.n_epochs
        return cls(batch_size, per_epoch, min(steps, settings.max_steps or steps))

    def factor(self, step: int) -> float:
        """The learning rate's factor, 0 … 1, at a step, from 0."""
        warm_up = round(WARM_UP * min(self.per_epoch, self.steps))
        if step < warm_up:
            return step / warm_up
        return (self.steps - step) / (self.steps - warm_up)


def contrastive_loss(anchors: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """InfoNCE in nats (crops paper, Eq. 1): each [pair, dim] anchor must pick its own positive."""
    a = functional.normalize(anchors, dim=1)
    p = functional.normalize(positives, dim=1)
    scores = a @ p.T / temperature  # [anchor, positive]
    return functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def _list_steps(
    source: PairSource, schedule: Schedule, loss: Sequence[float]
) -> Iterator[tuple[int, list[Pair]]]:
    """The remaining steps with their pairs; none once the loss is not finite."""
    first = len(loss)
    if first and not np.isfinite(loss[-1]):
        return
    epoch, place = divmod(first, schedule.per_epoch)
    batches = source.batches(epoch, schedule.batch_size, place)
    for step in range(first, schedule.steps):
        if step == (epoch + 1) * schedule.per_epoch:
            epoch += 1
            batches = source.batches(epoch, schedule.batch_size)
        yield step, next(batches)


def _take_step(
    state: TrainingState, pairs: Sequence[Pair], step: int, factor: float
) -> tuple[float, float]:
    """Take a step and return its batch's alignment and uniformity before it (Wang & Isola 2020)."""
    settings = state.settings
    for group in state.adam.param_groups:
        group["lr"] = settings.peak_rate * factor
    anchors = _embed(state, [pair.anchor for pair in pairs], step, side=0)
    positives = _embed(state, [pair.positive for pair in pairs], step, side=1)
    loss = contrastive_loss(anchors, positives, settings.temperature)
    state.adam.zero_grad()
    loss.backward()
    state.adam.step()
    state.add_loss(loss.item())
    a, p = (functional.normalize(side.detach(), dim=1) for side in (anchors, positives))
    uniformity = torch.pdist(a).square().mul(-2).exp().mean().log()
    return float((a - p).square().sum(dim=1).mean()), float(uniformity)


def _embed(state: TrainingState, texts: Sequence[str], step: int, side: int) -> Tensor:
    """[text, dim] with masks and dropout seeded by step and side of the pair."""
    settings = state.settings
    masked = settings.masked if settings.pairs == "masking" else 0.0
    draw = np.random.default_rng([settings.seed, step, side])
    with seeded(settings.seed, step, side):
        return state.learner.vectors(texts, masked=masked, draw=draw)


# --- the state of a training and its checkpoints, safetensors files ------------------------------


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
        older = {*list_checkpoints(self.folder).values()} - {target}
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
