"""The events of a training, its state so far, and its files of numbers and strings."""

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

RECORDING_FILE = "training.npz"  # within the folder of snapshots
MOST_BYTES = 1 << 29  # of that file, unpacked
_CURVES = ("loss", "learning_rate", "alignment", "uniformity")


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a training."""

    __repr__ = short_repr

    learner: Learner
    settings: TrainingSettings
    step: int  # steps made
    steps: int  # steps planned
    loss: np.ndarray  # [step]
    diverged: bool  # the loss ended above its start, infinite or NaN; weights are the best seen

    @property
    def is_stopped(self) -> bool:
        """Whether it can resume: steps are left and the loss is finite."""
        return self.step < self.steps and bool(np.isfinite(self.loss[-1]))


@dataclass(frozen=True, eq=False)
class TrainingStarted:
    """The first event of a training, new or resumed."""

    __repr__ = short_repr

    step: int  # steps made before
    steps: int  # steps in all
    loss: np.ndarray  # [step] of the steps made before
    n_pairs: int  # pairs per epoch
    skipped: str  # sentence about the texts left out; may be empty
    measured: str  # sentence about what snapshots measure; may be empty
    snapshot: Snapshot | None  # before any step, if requested


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """One step of a training."""

    __repr__ = short_repr

    step: int  # from 1
    steps: int
    epoch: int
    epochs: int
    loss: float  # of the batch before the step, in nats; log(batch size) is chance
    learning_rate: float
    alignment: float  # mean squared distance of the pairs, 0 … 4 (Wang & Isola 2020)
    uniformity: float  # of the anchors, -8 … 0; lower is more uniform
    snapshot: Snapshot | None  # after the step, if one was due and the vectors are finite


@dataclass(frozen=True, eq=False)
class TrainingEnded:
    """The last event of a training, also of one that was stopped or had ended before."""

    __repr__ = short_repr

    result: Trained
    snapshot: Snapshot | None


TrainingEvent = TrainingStarted | TrainingStep | TrainingEnded
# a step, a snapshot, or new values of a lesson's fields
LessonChange = TrainingStep | Snapshot | dict[str, Any]


def list_changes(event: TrainingEvent) -> list[LessonChange]:
    """What an event adds to a lesson."""
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
    """The training of one encoder so far."""

    settings: TrainingSettings
    n_pairs: int = 0  # per epoch; 0 before the training has started
    skipped: str = ""  # as `TrainingStarted`
    measured: str = ""  # as `TrainingStarted`
    first: int = 0  # steps made before; only their loss is known
    steps: int = 0
    loss: np.ndarray = field(default_factory=_no_steps)  # [step]
    learning_rate: np.ndarray = field(default_factory=_no_steps)  # NaN before step ``first``
    alignment: np.ndarray = field(default_factory=_no_steps)  # NaN before step ``first``
    uniformity: np.ndarray = field(default_factory=_no_steps)  # NaN before step ``first``
    snapshots: tuple[Snapshot, ...] = ()  # in order of step, without vectors
    diverged: bool = False
    is_over: bool = False  # ended or stopped
    # accuracy of the whole model untrained, 0 … 1; see `measure_untrained`
    untrained: float | None = None
    maps: np.ndarray | None = None  # [snapshot, text, 2] in one frame; None before the end

    @property
    def step(self) -> int:
        return len(self.loss)

    @property
    def accuracy(self) -> np.ndarray:
        """[snapshot, layer] 0 … 1; empty without labels or before the first snapshot."""
        measured = [
            snapshot.accuracy for snapshot in self.snapshots if snapshot.accuracy is not None
        ]
        if self.snapshots and self.snapshots[0].step:
            return np.zeros((0, 0))
        return np.stack(measured) if measured else np.zeros((0, 0))

    def having(self, changes: Sequence[LessonChange]) -> Lesson:
        """A copy with changes; snapshots lose their vectors."""
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
    """A training recorded by `SnapshotCallback`, with the beginnings of the watched texts."""

    lesson: Lesson
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None  # one per text, "" for unlabelled; None without labels
    model: str  # name of the base model; may be empty


LESSONS_FORMAT = RecordFormat("a training", version=6, classes=(Lesson, Snapshot, TrainingSettings))
RECORDING_FORMAT = RecordFormat(
    "a recorded training", version=1, classes=(*LESSONS_FORMAT.classes, RecordedTraining)
)


def read_lessons(content: bytes) -> tuple[Lesson, ...]:
    """Unpack what `LESSONS_FORMAT` packed; ValueError for anything else."""
    lessons = LESSONS_FORMAT.unpack(content)
    try:
        if all(map(_is_valid, lessons)):
            return tuple(lessons)
    except (AttributeError, LookupError, TypeError, SettingsError) as error:
        raise ValueError("This is no file of a training.") from error
    raise ValueError("This is no file of a training.")


def _is_valid(lesson: Lesson) -> bool:
    """Whether a lesson from an untrusted file is well formed."""
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
        and len(shapes) <= 1  # same texts and layers throughout
        and (maps is None or maps.shape == (len(snapshots), len(snapshots[0].nearest), 2))
        and (maps is None or maps.dtype.kind == "f")
    )


def _shape(array: np.ndarray | None) -> tuple[int, ...]:
    return () if array is None else array.shape


def _is_snapshot(snapshot: Snapshot) -> bool:
    """Whether a snapshot's arrays have valid shapes and values."""
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
    """What a `SnapshotCallback` has recorded so far; `NeuralvizError` if missing or damaged."""
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
    except (OSError, RuntimeError) as error:  # name too long, unknown home folder, not readable
        reason = getattr(error, "strerror", None) or error
        raise NeuralvizError(f"Could not read {str(folder)[:80]}: {reason}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise NeuralvizError(
            f"The snapshots in {folder} are damaged, or of another version of neuralviz."
        ) from error


def _is_recording(recorded: RecordedTraining) -> bool:
    """Whether a recording from an untrusted file is well formed."""
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
    """How a watched text's ten nearest neighbours changed."""

    text: int
    kept: int  # neighbours kept
    before: int  # the nearest before
    after: int  # the nearest after


def kept_neighbours(lesson: Lesson) -> np.ndarray:
    """[watched text] how many of its final ten nearest were already so before."""
    first, last = lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest
    was_near = (first[:, :, None] == last[:, None, :]).any(axis=2)
    return was_near.sum(axis=1)


def new_neighbours(lesson: Lesson, n: int) -> list[NewNeighbours]:
    """The ``n`` texts whose ten nearest changed most between the first and last snapshot."""
    if len(lesson.snapshots) < 2 or len(lesson.snapshots[0].nearest) < 3:
        return []
    first, last = lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest
    kept = kept_neighbours(lesson)
    return [
        NewNeighbours(int(i), int(kept[i]), int(first[i, 0]), int(last[i, 0]))
        for i in np.argsort(kept, kind="stable")
        if kept[i] < first.shape[1] and first[i, 0] != last[i, 0]
    ][:n]
