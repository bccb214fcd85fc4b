"""What a training tells, what is known of it so far, and the files that keep this.

The files hold numbers and words alone. A folder of snapshots is somebody's own training, recorded
by `neuralviz.training.SnapshotCallback` so that it can be looked at here, also while it goes on.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.arrays import RecordFormat
from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.training.settings import TrainingSettings
from neuralviz.training.snapshots import Snapshot
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.training.learner import Learner

RECORDING_FILE = "training.npz"  # in a folder of snapshots
MOST_BYTES = 1 << 29  # of it, unpacked
_CURVES = ("loss", "learning_rate", "alignment", "uniformity")


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training leaves behind.

    Attributes:
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
        step, steps, epoch, epochs: this one, counted from 1, and how many there are in all.
        loss: of the batch before the step, in nats; the logarithm of the batch size is guessing.
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
    """After the last step, also where the training was stopped or had ended before."""

    __repr__ = short_repr

    result: Trained
    snapshot: Snapshot | None


TrainingEvent = TrainingStarted | TrainingStep | TrainingEnded
LessonChange = TrainingStep | Snapshot | dict[str, Any]
"""What is added to a lesson: a step, a snapshot, or new values of some of its fields."""


def list_changes(event: TrainingEvent) -> list[LessonChange]:
    """What an event of a training adds to its lesson, without weights."""
    snapshot = [] if event.snapshot is None else [event.snapshot]
    if isinstance(event, TrainingStep):
        return [replace(event, snapshot=None), *snapshot]
    if isinstance(event, TrainingEnded):
        return [{"diverged": event.result.diverged, "is_over": True}, *snapshot]
    names = ("n_pairs", "skipped", "measured", "steps")
    values = {name: getattr(event, name) for name in names} | {"first": event.step}
    curves = dict.fromkeys(_CURVES, np.full(event.step, np.nan)) | {"loss": event.loss}
    return [values | curves, *snapshot]


def _no_steps() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Lesson:
    """The training of one encoder so far.

    Attributes:
        n_pairs: texts that a pair is made of; 0 before the start is known.
        skipped, measured: as of `TrainingStarted`.
        first: steps that were made before, of which only the loss is known.
        loss, learning_rate, alignment, uniformity: [step] made so far; the last three are NaN for
            those before ``first``.
        snapshots: in the order of their steps, without their vectors.
        is_over: whether the last step was made, or the training stopped.
        untrained: 0 … 1 accuracy of the whole model as it is; None without labels, and where the
            training begins with it.
        maps: [snapshot, text, 2] in one frame; None before the end.
    """

    settings: TrainingSettings
    n_pairs: int = 0
    skipped: str = ""
    measured: str = ""
    first: int = 0
    steps: int = 0
    loss: np.ndarray = field(default_factory=_no_steps)
    learning_rate: np.ndarray = field(default_factory=_no_steps)
    alignment: np.ndarray = field(default_factory=_no_steps)
    uniformity: np.ndarray = field(default_factory=_no_steps)
    snapshots: tuple[Snapshot, ...] = ()
    diverged: bool = False
    is_over: bool = False
    untrained: float | None = None
    maps: np.ndarray | None = None

    @property
    def step(self) -> int:
        """Steps made."""
        return len(self.loss)

    @property
    def accuracy(self) -> np.ndarray:
        """[snapshot, layer] 0 … 1; no rows without labels, and before the first is known."""
        measured = [
            snapshot.accuracy for snapshot in self.snapshots if snapshot.accuracy is not None
        ]
        if self.snapshots and self.snapshots[0].step:
            return np.zeros((0, 0))
        return np.stack(measured) if measured else np.zeros((0, 0))

    def having(self, changes: Sequence[LessonChange]) -> Lesson:
        """A copy with some changes; of snapshots all but their vectors."""
        grown = self
        for change in changes:
            if isinstance(change, dict):
                grown = replace(grown, **change)
        steps = [change for change in changes if isinstance(change, TrainingStep)]
        curves: dict[str, Any] = {
            name: np.append(getattr(grown, name), [getattr(step, name) for step in steps])
            for name in _CURVES
        }
        taken = [
            replace(change, vectors=None) for change in changes if isinstance(change, Snapshot)
        ]
        snapshots = sorted([*grown.snapshots, *taken], key=lambda snapshot: snapshot.step)
        return replace(grown, snapshots=tuple(snapshots), **curves)


@dataclass(frozen=True, eq=False)
class RecordedTraining:
    """A training in a folder of snapshots, and the beginnings of the texts that are watched.

    Attributes:
        labels: of each text, ``""`` for none; None where there are none at all.
        model: what was trained, in its owner's words; may be empty.
    """

    lesson: Lesson
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    model: str


LESSONS_FORMAT = RecordFormat("a training", version=6, classes=(Lesson, Snapshot, TrainingSettings))
RECORDING_FORMAT = RecordFormat(
    "a recorded training", version=1, classes=(*LESSONS_FORMAT.classes, RecordedTraining)
)


def read_lessons(content: bytes) -> tuple[Lesson, ...]:
    """The lessons that `LESSONS_FORMAT` packed.

    Raises:
        ValueError: the content is something else.
    """
    lessons = LESSONS_FORMAT.unpack(content)
    try:
        if all(map(_is_valid, lessons)):
            return tuple(lessons)
    except (AttributeError, LookupError, TypeError, SettingsError) as error:
        raise ValueError("This is no file of a training.") from error
    raise ValueError("This is no file of a training.")


def _is_valid(lesson: Lesson) -> bool:
    """Whether a lesson from a file, which may be somebody else's, can be shown."""
    snapshots, maps = lesson.snapshots, lesson.maps
    curves = [getattr(lesson, name) for name in _CURVES]
    counts = [lesson.n_pairs, lesson.first, lesson.steps, *(each.step for each in snapshots)]
    steps = [snapshot.step for snapshot in snapshots]
    shapes = {(each.nearest.shape, _shape(each.accuracy)) for each in snapshots}
    return (
        isinstance(lesson.settings, TrainingSettings)
        and all(type(count) is int and count >= 0 for count in counts)
        and all(isinstance(text, str) for text in (lesson.skipped, lesson.measured))
        and (lesson.untrained is None or 0 <= lesson.untrained <= 1)
        and all(type(flag) is bool for flag in (lesson.diverged, lesson.is_over))
        and all(curve.shape == (lesson.step,) and curve.dtype.kind == "f" for curve in curves)
        and all(map(_is_snapshot, snapshots))
        and steps == sorted(set(steps))
        and len(shapes) <= 1  # of the same texts and layers
        and (maps is None or maps.shape == (len(snapshots), len(snapshots[0].nearest), 2))
        and (maps is None or maps.dtype.kind == "f")
    )


def _shape(array: np.ndarray | None) -> tuple[int, ...]:
    return () if array is None else array.shape


def _is_snapshot(snapshot: Snapshot) -> bool:
    """Whether arrays have the shapes and the numbers that a snapshot has."""
    accuracy, right = snapshot.accuracy, snapshot.right
    if (
        snapshot.nearest.ndim != 2
        or (accuracy is None) != (right is None)
        or (snapshot.vectors is not None)
    ):
        return False
    if accuracy is None or right is None:
        return True
    is_share = accuracy.dtype.kind == "f" and ((accuracy >= 0) & (accuracy <= 1)).all()
    return bool(is_share) and accuracy.ndim == right.ndim == 1 and right.dtype == bool


def has_snapshots(folder: Path) -> bool:
    return (folder / RECORDING_FILE).exists()


def read_folder(folder: str | Path) -> RecordedTraining:
    """What `neuralviz.training.SnapshotCallback` has recorded so far.

    Raises:
        NeuralvizError: there is no such folder, it holds no snapshots, or they are damaged.
    """
    try:
        folder = Path(folder).expanduser()
        if not folder.is_dir():
            raise NeuralvizError(f"No such folder: {folder}. Check the path.")
        if not has_snapshots(folder):
            raise NeuralvizError(
                f"{folder} holds no snapshots yet. neuralviz.training.SnapshotCallback writes the "
                "first before the first step."
            )
        with zipfile.ZipFile(folder / RECORDING_FILE) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > MOST_BYTES:
            raise NeuralvizError(f"The snapshots in {folder} are too large to be read.")
        recorded = RECORDING_FORMAT.unpack((folder / RECORDING_FILE).read_bytes())
        if not _is_recording(recorded):
            raise ValueError("This is no recorded training.")
        return recorded
    except (OSError, RuntimeError) as error:  # a name too long, no such home, no right to read
        reason = getattr(error, "strerror", None) or error
        raise NeuralvizError(f"Could not read {str(folder)[:80]}: {reason}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise NeuralvizError(
            f"The snapshots in {folder} are damaged, or of another version of neuralviz."
        ) from error


def _is_recording(recorded: RecordedTraining) -> bool:
    """Whether a recording from a file can be shown: its lesson, and texts that belong to it."""
    labels, n_texts = recorded.labels, len(recorded.texts)
    return (
        _is_valid(recorded.lesson)
        and all(isinstance(text, str) for text in (*recorded.texts, *(labels or ())))
        and isinstance(recorded.model, str)
        and (labels is None or len(labels) == n_texts)
        and all(len(snapshot.nearest) == n_texts for snapshot in recorded.lesson.snapshots)
    )


@dataclass(frozen=True)
class NewNeighbours:
    """A watched text: how many of its ten nearest it kept, and its nearest before and after."""

    text: int
    kept: int
    before: int
    after: int


def kept_neighbours(lesson: Lesson) -> np.ndarray:
    """[watched text] how many of a text's ten nearest at the end were so before, too."""
    first, last = lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest
    was_near = (first[:, :, None] == last[:, None, :]).any(axis=2)
    return was_near.sum(axis=1)


def new_neighbours(lesson: Lesson, n: int) -> list[NewNeighbours]:
    """The texts whose ten nearest changed most from the first snapshot to the last."""
    if len(lesson.snapshots) < 2 or len(lesson.snapshots[0].nearest) < 3:
        return []
    first, last = lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest
    kept = kept_neighbours(lesson)
    return [
        NewNeighbours(int(i), int(kept[i]), int(first[i, 0]), int(last[i, 0]))
        for i in np.argsort(kept, kind="stable")
        if kept[i] < first.shape[1] and first[i, 0] != last[i, 0]
    ][:n]
