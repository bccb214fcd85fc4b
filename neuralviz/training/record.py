"""The events of a training, its state so far, and its files: numbers and large checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from neuralviz.errors import NeuralvizError, ShouldStop, never
from neuralviz.files import RecordFormat, folder_error, prune
from neuralviz.maps.neighbours import K, check_vectors, find_neighbours, knn_right, why_no_votes
from neuralviz.paths import home
from neuralviz.training.settings import TrainingSettings
from neuralviz.words import ShortRepr, many

if TYPE_CHECKING:
    from neuralviz.training.learner import Learner

CURVES = ("loss", "learning_rate", "alignment", "uniformity")  # see `TrainingStep`

KEPT_BYTES = 16 << 30  # for all trainings; the longest unused are deleted first
KEPT_DAYS = 30  # since a training's last step
STEP = "step-"  # prefix of checkpoints, followed by the step
_LOCK = "training.lock"
TABLES = "tables"  # name of the folder of finished table rows, which are never deleted


# A snapshot of this size takes as long as seven steps of 64 crops, whatever the model.
MOST_TEXTS = 1000
MOST_CHARACTERS = 1_000_000  # of a snapshot's texts together
FEWEST_TEXTS = 100  # watched if available, however long they are


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot(ShortRepr):
    step: int
    # [layer] 0 … 1 10-NN accuracy, from the embedding output; None without labels
    accuracy: np.ndarray | None
    right: np.ndarray | None  # [labelled text] last-layer vote is right; None without labels
    # [watched text, 10] int32 last-layer neighbours, nearest first; maybe fewer
    nearest: np.ndarray
    # [watched text, dim] float32 of the last layer, if still needed
    vectors: np.ndarray | None = None


class Watch:
    """Takes snapshots of an encoder on a fixed sample of texts, labelled ones if any.

    Labels are one per text, ``""`` for unlabelled; duplicates would vote for each other, so are
    watched once. At most ``n_texts`` with ``characters`` in total (None: no limit) are watched, but
    `FEWEST_TEXTS` if shortened. Texts beyond the window are read in chunks, or cut off unless
    ``is_whole``; ``k`` neighbours vote. `NeuralvizError` if labels and texts differ in number, or
    no two texts share a label.
    """

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[str] | None = None,
        *,
        n_texts: int = MOST_TEXTS,
        characters: int | None = MOST_CHARACTERS,
        is_whole: bool = True,
        k: int = K,
        seed: int = 42,
    ) -> None:
        if labels is not None and len(labels) != len(texts):
            raise NeuralvizError(
                f"Got {len(labels):,} labels for {len(texts):,} texts; expected one per text."
            )
        candidates = np.arange(len(texts))
        if labels is not None and len({label for label in labels if label}) < 2:
            labels = None
        if labels is not None:
            if reason := why_no_votes(labels):
                raise NeuralvizError(reason)
            first = {text: row for row, text in reversed(list(enumerate(texts))) if labels[row]}
            candidates = np.sort(list(first.values()))
        drawn = np.random.default_rng(seed).permutation(candidates)[:n_texts]
        beginning = None  # number of characters read per text
        if characters is not None:
            lengths = np.cumsum([len(texts[i]) for i in drawn])
            n_whole = int(np.searchsorted(lengths, characters, side="right"))
            if n_whole < min(FEWEST_TEXTS, len(drawn)):
                drawn = drawn[:FEWEST_TEXTS]
                beginning = max(1, characters // len(drawn))
            else:
                drawn = drawn[:n_whole]
        self.watched = np.sort(drawn)  # ascending numbers of the watched texts
        # sentence for the page
        self.measured = _in_words(len(drawn), len(candidates), labels is not None, beginning)
        self._texts = [texts[i][:beginning] for i in self.watched]
        self._labels = None if labels is None else [labels[i] for i in self.watched]
        self._is_whole = is_whole
        self._k = k

    @property
    def has_labels(self) -> bool:
        return self._labels is not None and len(set(self._labels)) > 1

    def look(self, learner: Any, step: int, should_stop: ShouldStop = never) -> Snapshot:
        """Take a snapshot by `Learner.of_layers`; `Stopped`, `TextError` for unusable vectors."""
        layers = list(learner.of_layers(self._texts, should_stop, is_whole=self._is_whole))
        check_vectors(layers[-1])
        accuracy = right = None
        compared = layers if self.has_labels else layers[-1:]
        near = [find_neighbours(vectors, self._k, should_stop=should_stop) for vectors in compared]
        if self.has_labels:
            right_at = [knn_right(neighbours, self._labels or (), self._k) for neighbours in near]
            accuracy, right = np.array([hits.mean() for hits in right_at]), right_at[-1]
        return Snapshot(step, accuracy, right, near[-1].indices, layers[-1])


def _in_words(n: int, n_all: int, has_labels: bool, beginning: int | None) -> str:
    label = " with a label" if has_labels else ""
    share = f"all {many(n, 'text')}" if n == n_all else f"{n:,} of {many(n_all, 'text')}"
    read = "read whole" if beginning is None else f"the first {beginning:,} characters of each"
    return f"Measured on {share}{label}, {read}."


@dataclass(frozen=True, eq=False, repr=False)
class Trained(ShortRepr):
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


@dataclass(frozen=True, eq=False, repr=False)
class TrainingStarted(ShortRepr):
    step: int  # steps made before
    steps: int  # steps in all
    loss: np.ndarray  # [step] of the steps made before
    n_pairs: int  # pairs per epoch
    skipped: str  # sentence about the texts left out; may be empty
    measured: str  # sentence about what snapshots measure; may be empty
    snapshot: Snapshot | None  # before any step, if requested


@dataclass(frozen=True, eq=False, repr=False)
class TrainingStep(ShortRepr):
    step: int  # from 1
    steps: int
    epoch: int
    epochs: int
    loss: float  # of the batch before the step, in nats; log(batch size) is chance
    learning_rate: float
    alignment: float  # mean squared distance of the pairs, 0 … 4 (Wang & Isola 2020)
    uniformity: float  # of the anchors, -8 … 0; lower is more uniform
    snapshot: Snapshot | None  # after the step, if one was due and the vectors are finite


@dataclass(frozen=True, eq=False, repr=False)
class TrainingEnded(ShortRepr):
    result: Trained
    snapshot: Snapshot | None


TrainingEvent = TrainingStarted | TrainingStep | TrainingEnded
# new values of a lesson's fields; rows of curves and snapshots are added to those there
LessonChange = dict[str, Any]


def make_change(event: TrainingEvent) -> LessonChange:
    change: LessonChange = {"snapshots": [event.snapshot] if event.snapshot else []}
    if isinstance(event, TrainingStep):
        return change | {"curves": [[getattr(event, name) for name in CURVES]]}
    if isinstance(event, TrainingEnded):
        return change | {"diverged": event.result.diverged, "is_over": True}
    before = np.full((event.step, len(CURVES)), np.nan)
    before[:, 0] = event.loss
    values = {name: getattr(event, name) for name in ("skipped", "measured", "steps")}
    return change | values | {"curves": before}


@dataclass(frozen=True, eq=False)
class Lesson:
    settings: TrainingSettings
    skipped: str = ""  # as `TrainingStarted`
    measured: str = ""  # as `TrainingStarted`
    steps: int = 0
    # [step, curve]; NaN where unknown
    curves: np.ndarray = field(default_factory=lambda: np.zeros((0, len(CURVES))))
    snapshots: tuple[Snapshot, ...] = ()  # in order of step
    diverged: bool = False
    is_over: bool = False  # ended or stopped
    # accuracy of the whole model untrained, 0 … 1; see `measure_untrained`
    untrained: float | None = None
    maps: np.ndarray | None = None  # [snapshot, text, 2] in one frame; None before the end

    @property
    def step(self) -> int:
        return len(self.curves)

    @property
    def is_sampled(self) -> bool:
        """Whether snapshots are of some of the texts, or of their beginnings."""
        return not ("Measured on all" in self.measured and self.measured.endswith("read whole."))

    @property
    def loss(self) -> np.ndarray:
        """[step] nats."""
        return self.curves[:, 0]

    @property
    def accuracy(self) -> np.ndarray:
        """[snapshot, layer] 0 … 1; empty without labels or before the first snapshot."""
        measured = [shot.accuracy for shot in self.snapshots if shot.accuracy is not None]
        if not measured or self.snapshots[0].step:
            return np.zeros((0, 0))
        return np.stack(measured)

    def having(self, changes: Sequence[LessonChange]) -> Lesson:
        """A copy with changes."""
        values: LessonChange = {}
        curves, snapshots = [self.curves], list(self.snapshots)
        for change in changes:
            values |= change
            curves += [np.asarray(change["curves"])] if "curves" in change else []
            snapshots += change.get("snapshots", ())
        snapshots.sort(key=lambda snapshot: snapshot.step)
        values |= {"curves": np.concatenate(curves), "snapshots": tuple(snapshots)}
        return replace(self, **values)


LESSONS_FORMAT = RecordFormat("a training", version=7, classes=(Lesson, Snapshot, TrainingSettings))


# --- texts that moved ----------------------------------------------------------------------------


@dataclass(frozen=True)
class NewNeighbours:
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


# --- large checkpoints ---------------------------------------------------------------------------


def training_folder(name: str) -> Path:
    """A training's checkpoint folder; old trainings are deleted first."""
    folder = home() / "trainings"
    with suppress(OSError):  # none exist, or they belong to another user
        prune(folder, n_bytes=KEPT_BYTES, days=KEPT_DAYS, spare=_stays)
    return folder / name


def list_checkpoints(folder: Path) -> dict[int, Path]:
    names = {path: path.name.removeprefix(STEP) for path in folder.glob(f"{STEP}*")}
    return {int(step): path for path, step in names.items() if step.isdecimal()}


@contextmanager
def hold_training(folder: Path) -> Iterator[None]:
    """Make and lock a training's folder; `NeuralvizError` if in use, `StoreError` if unwritable."""
    lock = FileLock(folder / _LOCK, thread_local=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise NeuralvizError(
            "This training is already under way in another tab or program. Wait until it ends, or "
            "stop it there."
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise folder_error(f"Could not save the training to {folder}: {reason}.") from error
    try:
        yield
    finally:
        lock.release()


def _stays(folder: Path) -> bool:
    """Whether a folder has finished rows, or a training under way."""
    try:
        for lock in folder.rglob(_LOCK):
            with FileLock(lock, blocking=False):
                pass
    except (Timeout, OSError):
        return True
    return folder.name == TABLES
