"""What a training tells while it goes on, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.training.learner import Learner
    from neuralviz.training.settings import TrainingSettings
    from neuralviz.training.snapshots import Snapshot


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training leaves behind.

    Attributes:
        learner: with the trained weights.
        settings: how.
        step, steps: steps that were made, and those that were asked for.
        loss: [step] of all steps made.
        diverged: whether the loss ended above where it began, or was infinite or NaN: the learning
            rate was too high. The weights are then the best that there were.
    """

    __repr__ = short_repr

    learner: Learner
    settings: TrainingSettings
    step: int
    steps: int
    loss: np.ndarray
    diverged: bool

    @property
    def is_stopped(self) -> bool:
        """Whether it can go on: there are steps left, and the loss is still a number."""
        return self.step < self.steps and bool(np.isfinite(self.loss[-1]))


@dataclass(frozen=True, eq=False)
class TrainingStarted:
    """Before the first step, or where a training goes on.

    Attributes:
        step, steps: steps made before, and how many there are in all.
        loss: [step] of those made before.
        n_pairs: texts that a pair is made of in every epoch.
        skipped: what to know of all others, in words; empty where there are none.
        measured: what snapshots are of, in words; empty where none are taken.
        snapshot: of the encoder before any step; None unless asked for.
    """

    __repr__ = short_repr

    step: int
    steps: int
    loss: np.ndarray
    n_pairs: int
    skipped: str
    measured: str
    snapshot: Snapshot | None


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """One step.

    Attributes:
        step, steps: this step and how many there are in all, counted from 1.
        epoch, epochs: likewise.
        loss: of the batch before the step, in nats; the logarithm of the batch size is guessing.
        learning_rate: of the step.
        alignment: mean squared distance of the batch's pairs, 0 … 4 (Wang & Isola 2020).
        uniformity: how evenly the batch's anchors are spread, -8 … 0, lower is more evenly.
        snapshot: of the encoder after the step; None but every so many steps, and where its weights
            give no numbers any more.
    """

    __repr__ = short_repr

    step: int
    steps: int
    epoch: int
    epochs: int
    loss: float
    learning_rate: float
    alignment: float
    uniformity: float
    snapshot: Snapshot | None


@dataclass(frozen=True, eq=False)
class TrainingEnded:
    """After the last step, also where the training was stopped or had ended before.

    Attributes:
        result: what is left behind.
        snapshot: of the encoder that is left behind; None unless asked for.
    """

    __repr__ = short_repr

    result: Trained
    snapshot: Snapshot | None


TrainingEvent = TrainingStarted | TrainingStep | TrainingEnded
