"""The contrastive loop: a step a batch, told as a stream of events (crops paper, section 3.1)."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np
import torch
from torch.nn import functional

from neuralviz.errors import Stopped, TextError, never
from neuralviz.models.passes import seeded
from neuralviz.training.checkpoints import BestWeights, Checkpoints, has_diverged, identity
from neuralviz.training.kept import hold_training
from neuralviz.training.learner import Learner, make_learner
from neuralviz.training.pairs import PairSource, steps_of_epoch
from neuralviz.training.record import Trained, TrainingEnded, TrainingStarted, TrainingStep
from neuralviz.training.settings import TrainingSettings, with_options

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from neuralviz.errors import ShouldStop
    from neuralviz.models import TextModel
    from neuralviz.training.pairs import Pair
    from neuralviz.training.record import TrainingEvent
    from neuralviz.training.settings import TrainingOptions
    from neuralviz.training.snapshots import Snapshot, Watch

WARM_UP = 0.1  # of an epoch's steps
CHECKPOINT_SECONDS = 5.0  # between two checkpoints, at least
CHECKPOINT_SHARE = 0.05  # of the time that goes into checkpoints, at most


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
    **options: Unpack[TrainingOptions],
) -> Generator[TrainingEvent]:
    """Train an encoder on pairs of the texts' chunks.

    Args:
        model: to begin with; it is copied, never changed.
        texts: the corpus.
        settings: by default the paper's: crops of two sentences, one epoch.
        watch: takes snapshots of the encoder before the first step and at the end, and
        watch_every: after so many steps; None for no others.
        watch_before: False for no snapshot before the first step, which then comes the sooner.
        folder: of checkpoints, every few seconds and at the end. Where it has one of
            the same model, texts and settings, the training goes on there, and ends with the same
            weights, bit for bit on a CPU with the same number of threads.
        should_stop: asked after every step, which is then the last, and during snapshots.
        options: what is to differ from the settings, such as ``pairs="dropout"``.

    Yields:
        An event at the start, one a step, and one at the end, which has the result.

    Raises:
        NeuralvizError: too few texts make pairs, the folder is of another training or of one that
            is under way elsewhere, or there is no room for a checkpoint.
        SettingsError: as of `make_learner`.
        Stopped: ``should_stop`` said so during a snapshot; the folder has all steps made.
    """
    settings = with_options(settings or TrainingSettings(), **options)
    with hold_training(folder) if folder else nullcontext():
        yield from _train(
            model, texts, settings, watch, watch_every, watch_before, folder, should_stop
        )


def _train(
    model: TextModel,
    texts: Sequence[str],
    settings: TrainingSettings,
    watch: Watch | None,
    watch_every: int | None,
    watch_before: bool,
    folder: Path | None,
    should_stop: ShouldStop,
) -> Generator[TrainingEvent]:
    source = PairSource(texts, settings.pairs, settings.seed)
    learner = make_learner(model, settings)
    trained = [weight for weight in learner.parameters() if weight.requires_grad]
    adam = torch.optim.Adam(trained, lr=settings.peak_rate)
    best = BestWeights(learner)
    before = watch.look(learner, 0, should_stop) if watch and watch_before else None
    checkpoints = Checkpoints(folder, identity(model, texts, settings)) if folder else None
    loss = checkpoints.restore(learner, adam, best) if checkpoints else []  # of every step
    schedule = Schedule.from_settings(settings, len(source))
    yield TrainingStarted(
        step=len(loss),
        steps=schedule.steps,
        loss=np.array(loss),
        n_pairs=len(source),
        skipped=source.skipped_in_words(),
        measured=watch.measured if watch else "",
        snapshot=before,
    )

    kept, keep_at = len(loss), time.monotonic() + CHECKPOINT_SECONDS
    try:
        is_broken = bool(loss) and not np.isfinite(loss[-1])  # no step would mend it
        remaining = () if is_broken else _steps(source, schedule, first=len(loss))
        for step, pairs in remaining:
            for group in adam.param_groups:
                group["lr"] = settings.peak_rate * schedule.factor(step)
            anchors = _vectors(learner, [pair.anchor for pair in pairs], settings, step, side=0)
            positives = _vectors(learner, [pair.positive for pair in pairs], settings, step, side=1)
            of_batch = contrastive_loss(anchors, positives, settings.temperature)
            adam.zero_grad()
            of_batch.backward()
            adam.step()

            loss.append(of_batch.item())
            best.look(learner, loss)
            is_last = step + 1 == schedule.steps or not np.isfinite(loss[-1]) or should_stop()
            if checkpoints and (is_last or time.monotonic() > keep_at):
                began = time.monotonic()
                checkpoints.keep(learner, adam, best, loss)
                kept, finished = len(loss), time.monotonic()
                keep_at = finished + max(CHECKPOINT_SECONDS, (finished - began) / CHECKPOINT_SHARE)
            is_watched = watch_every is not None and not is_last and (step + 1) % watch_every == 0
            looks = watch if is_watched else None
            yield TrainingStep(
                step=step + 1,
                steps=schedule.steps,
                epoch=step // schedule.per_epoch + 1,
                epochs=-(-schedule.steps // schedule.per_epoch),
                loss=loss[-1],
                learning_rate=adam.param_groups[0]["lr"],
                **_alignment_and_uniformity(anchors.detach(), positives.detach()),
                snapshot=_look(looks, learner, step + 1, should_stop),
            )
            if is_last:
                break
    except (GeneratorExit, Stopped):  # whoever listened has gone: the next one goes on from here
        if checkpoints and len(loss) > kept:
            checkpoints.keep(learner, adam, best, loss)
        raise

    result = _left_behind(learner, settings, schedule, loss, best)
    is_whole = len(loss) == schedule.steps  # else it was stopped, which must not cost its end
    at_end = _look(watch, learner, len(loss), should_stop if is_whole else never)
    yield TrainingEnded(result, at_end)


def restore_training(
    model: TextModel, texts: Sequence[str], settings: TrainingSettings, folder: Path
) -> Trained | None:
    """What a training has left in its folder, as far as it came; None where there is nothing.

    Raises:
        NeuralvizError: as of `train`.
    """
    learner = make_learner(model, settings)
    adam = torch.optim.Adam([weight for weight in learner.parameters() if weight.requires_grad])
    best = BestWeights(learner)
    loss = Checkpoints(folder, identity(model, texts, settings)).restore(learner, adam, best)
    if not loss:
        return None
    n_pairs = len(PairSource(texts, settings.pairs, settings.seed))
    return _left_behind(learner, settings, Schedule.from_settings(settings, n_pairs), loss, best)


def _look(
    watch: Watch | None, learner: Learner, step: int, should_stop: ShouldStop
) -> Snapshot | None:
    """A snapshot; None where nobody watches, or the weights give no numbers any more."""
    try:
        return watch.look(learner, step, should_stop) if watch else None
    except TextError:  # the loss of the next step says so, too
        return None


def _left_behind(
    learner: Learner,
    settings: TrainingSettings,
    schedule: Schedule,
    loss: list[float],
    best: BestWeights,
) -> Trained:
    if diverged := has_diverged(loss):
        learner.load_state_dict(best.weights, strict=False)
    return Trained(learner.eval(), settings, len(loss), schedule.steps, np.array(loss), diverged)


@dataclass(frozen=True)
class Schedule:
    """How many steps there are, and how the learning rate goes: up to its peak, then down to 0.

    The warm-up takes a tenth of *one* epoch, as in the authors' program. ``batch_size`` is less
    than asked for where there are not so many pairs.
    """

    batch_size: int
    per_epoch: int
    steps: int

    @classmethod
    def from_settings(cls, settings: TrainingSettings, n_pairs: int) -> Schedule:
        """The schedule for a number of pairs an epoch."""
        batch_size = min(settings.batch_size, n_pairs)
        per_epoch = steps_of_epoch(n_pairs, batch_size)
        steps = per_epoch * settings.n_epochs
        return cls(batch_size, per_epoch, min(steps, settings.max_steps or steps))

    def factor(self, step: int) -> float:
        """0 … 1, of the learning rate at a step, counted from 0."""
        warm_up = round(WARM_UP * min(self.per_epoch, self.steps))
        if step < warm_up:
            return step / warm_up
        return (self.steps - step) / (self.steps - warm_up)


def contrastive_loss(anchors: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """InfoNCE in nats, the mean over the pairs (crops paper, Eq. 1).

    Each anchor of [pair, dim] has to tell its positive from the others'.
    """
    a = functional.normalize(anchors, dim=1)
    p = functional.normalize(positives, dim=1)
    scores = a @ p.T / temperature  # [anchor, positive]
    return functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def _steps(source: PairSource, schedule: Schedule, first: int) -> Iterator[tuple[int, list[Pair]]]:
    """The steps from ``first`` on, each with its pairs."""
    epoch, place = divmod(first, schedule.per_epoch)
    batches = source.batches(epoch, schedule.batch_size, place)
    for step in range(first, schedule.steps):
        if step == (epoch + 1) * schedule.per_epoch:
            epoch += 1
            batches = source.batches(epoch, schedule.batch_size)
        yield step, next(batches)


def _vectors(
    learner: Learner, texts: Sequence[str], settings: TrainingSettings, step: int, side: int
) -> Tensor:
    """[text, dim] with masks and dropout that belong to a step and a side of its pairs."""
    masked = settings.pairs.masked if settings.pairs.kind == "masking" else 0.0
    draw = np.random.default_rng([settings.seed, step, side])
    with seeded(settings.seed, step, side):
        return learner.vectors(texts, masked=masked, draw=draw)


def _alignment_and_uniformity(anchors: Tensor, positives: Tensor) -> dict[str, float]:
    """Alignment and uniformity of a batch, [pair, dim] each (Wang & Isola 2020)."""
    a, p = functional.normalize(anchors, dim=1), functional.normalize(positives, dim=1)
    uniformity = torch.pdist(a).square().mul(-2).exp().mean().log()
    return {
        "alignment": float((a - p).square().sum(dim=1).mean()), "uniformity": float(uniformity)
    }  # fmt: skip
