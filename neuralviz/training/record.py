"""A training as it is watched: what is known so far of one or two ways to make pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.errors import SettingsError
from neuralviz.maps.neighbourhoods import K
from neuralviz.maps.neighbours import find_neighbours
from neuralviz.training.events import TrainingEnded, TrainingEvent, TrainingStarted, TrainingStep
from neuralviz.training.settings import PairSettings, TrainingSettings
from neuralviz.training.snapshots import Snapshot

FORMAT = 4  # raise it where the same settings give another result
_CURVES = ("loss", "learning_rate", "alignment", "uniformity")
_PLAIN = (
    "n_pairs", "skipped", "first", "steps", "diverged", "is_over", "measured", "untrained"
)  # fmt: skip


def _none() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Seen:
    """What stays of a snapshot: no vectors.

    Attributes:
        step: how many were made; 0 is before.
        accuracy: [layer] 0 … 1; None without labels.
        right: [labelled text] whether its neighbours vote for its label at the last layer; None
            without labels.
        nearest: [watched text, 10] int32 numbers of the nearest others at the last layer, the
            nearest first; fewer where there are no more.
    """

    step: int
    accuracy: np.ndarray | None
    right: np.ndarray | None
    nearest: np.ndarray

    @classmethod
    def of(cls, snapshot: Snapshot) -> Seen:
        """What is worth keeping of a snapshot."""
        nearest = find_neighbours(snapshot.vectors, K).indices
        return cls(snapshot.step, snapshot.accuracy, snapshot.right, nearest)


@dataclass(frozen=True)
class Over:
    """What stays of the end of a training: no weights.

    Attributes:
        diverged: whether the loss did.
    """

    diverged: bool


@dataclass(frozen=True)
class Untrained:
    """The whole model as it is, on the same texts; told where less than that is trained.

    Attributes:
        accuracy: 0 … 1, at the last layer.
    """

    accuracy: float


Noted = TrainingStarted | TrainingStep | Seen | Over | Untrained
"""Plain values, without weights and vectors; what has a snapshot beside it has none in it."""


def noted(event: TrainingEvent | Snapshot | Noted) -> tuple[Noted, ...]:
    """What stays of an event."""
    if isinstance(event, Seen | Over | Untrained):
        return (event,)
    if isinstance(event, Snapshot):
        return (Seen.of(event),)
    beside = () if event.snapshot is None else (Seen.of(event.snapshot),)
    if isinstance(event, TrainingEnded):
        return (Over(event.result.diverged), *beside)
    return (replace(event, snapshot=None), *beside)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is known so far of one encoder that is trained.

    Attributes:
        settings: how.
        n_pairs: texts that a pair is made of; 0 before the start is known.
        skipped: what to know of all others, in words.
        measured: what snapshots are of, in words; empty where that is not known.
        first: steps that were made before, of which only the loss is known.
        steps: in all.
        loss, learning_rate, alignment, uniformity: [step] made so far; the last three are NaN for
            those before ``first``.
        snapshots: in the order of their steps.
        diverged: whether the loss did.
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
    loss: np.ndarray = field(default_factory=_none)
    learning_rate: np.ndarray = field(default_factory=_none)
    alignment: np.ndarray = field(default_factory=_none)
    uniformity: np.ndarray = field(default_factory=_none)
    snapshots: tuple[Seen, ...] = ()
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
        known = [one.accuracy for one in self.snapshots if one.accuracy is not None]
        if self.snapshots and self.snapshots[0].step:
            return np.zeros((0, 0))
        return np.stack(known) if known else np.zeros((0, 0))

    def having(self, events: Sequence[TrainingEvent | Snapshot | Noted]) -> Lesson:
        """The same with some more events, and with snapshots that were taken beside them."""
        grown = self
        all_noted = [one for event in events for one in noted(event)]
        made = [one for one in all_noted if isinstance(one, TrainingStep)]
        for one in all_noted:
            if isinstance(one, TrainingStarted):
                unknown = np.full(one.step, np.nan)
                grown = replace(
                    grown,
                    n_pairs=one.n_pairs,
                    skipped=one.skipped,
                    measured=one.measured,
                    first=one.step,
                    steps=one.steps,
                    loss=one.loss,
                    learning_rate=unknown,
                    alignment=unknown,
                    uniformity=unknown,
                )
            elif isinstance(one, Over):
                grown = replace(grown, diverged=one.diverged, is_over=True)
            elif isinstance(one, Untrained):
                grown = replace(grown, untrained=one.accuracy)
        curves: dict[str, Any] = {
            name: np.append(getattr(grown, name), [getattr(one, name) for one in made])
            for name in _CURVES
        }
        seen = [one for one in all_noted if isinstance(one, Seen)]
        ordered = sorted([*grown.snapshots, *seen], key=lambda one: one.step)
        return replace(grown, snapshots=tuple(ordered), **curves)


def lessons_bytes(lessons: Sequence[Lesson]) -> bytes:
    """Lessons as a file of plain arrays."""
    about: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for place, lesson in enumerate(lessons):
        about.append(
            {name: getattr(lesson, name) for name in _PLAIN}
            | {
                "settings": asdict(lesson.settings),
                "snapshots": [one.step for one in lesson.snapshots],
            }
        )
        arrays |= {f"{place}_{name}": getattr(lesson, name) for name in _CURVES}
        for number, snapshot in enumerate(lesson.snapshots):
            arrays[f"{place}_{number}_nearest"] = _small(snapshot.nearest)
            if snapshot.accuracy is not None and snapshot.right is not None:
                arrays[f"{place}_{number}_accuracy"] = snapshot.accuracy
                arrays[f"{place}_{number}_right"] = snapshot.right
        if lesson.maps is not None:
            arrays[f"{place}_maps"] = lesson.maps
    return npz_bytes({"format": FORMAT, "lessons": about}, arrays)


def read_lessons(content: bytes) -> tuple[Lesson, ...]:
    """What `lessons_bytes` made bytes of.

    Raises:
        ValueError: they are something else.
    """
    about, arrays = read_npz(content)
    try:
        if about["format"] != FORMAT:
            raise ValueError("This file is of another version.")
        return tuple(_lesson(one, place, arrays) for place, one in enumerate(about["lessons"]))
    except (LookupError, TypeError, AttributeError, SettingsError) as error:
        raise ValueError("This is no file of a training.") from error


def _lesson(about: Mapping[str, Any], place: int, arrays: Mapping[str, np.ndarray]) -> Lesson:
    settings = dict(about["settings"])
    pairs = PairSettings(**settings.pop("pairs"))
    snapshots = tuple(
        Seen(
            int(step),
            arrays.get(f"{place}_{number}_accuracy"),
            arrays.get(f"{place}_{number}_right"),
            arrays[f"{place}_{number}_nearest"].astype(np.int32),
        )
        for number, step in enumerate(about["snapshots"])
    )
    values: dict[str, Any] = {name: about[name] for name in _PLAIN}
    values |= {name: arrays[f"{place}_{name}"] for name in _CURVES}
    maps = arrays.get(f"{place}_maps")
    lesson = Lesson(
        TrainingSettings(pairs=pairs, **settings), snapshots=snapshots, maps=maps, **values
    )
    if not (_has_numbers(lesson) and all(map(_is_snapshot, snapshots)) and _fit(snapshots, maps)):
        raise ValueError("This is no file of a training.")
    return lesson


def _has_numbers(lesson: Lesson) -> bool:
    """Whether curves and counts are what they are called."""
    counts = (lesson.n_pairs, lesson.first, lesson.steps)
    return (
        all(type(one) is int and one >= 0 for one in counts)
        and isinstance(lesson.skipped, str)
        and isinstance(lesson.measured, str)
        and (lesson.untrained is None or 0 <= lesson.untrained <= 1)
        and all(type(one) is bool for one in (lesson.diverged, lesson.is_over))
        and all(getattr(lesson, name).shape == (lesson.step,) for name in _CURVES)
        and all(getattr(lesson, name).dtype.kind == "f" for name in _CURVES)
    )


def _is_snapshot(seen: Seen) -> bool:
    """Whether arrays have the shapes and the numbers that a snapshot has."""
    accuracy, right = seen.accuracy, seen.right
    if seen.step < 0 or seen.nearest.ndim != 2 or (accuracy is None) != (right is None):
        return False
    if accuracy is None or right is None:
        return True
    is_share = accuracy.dtype.kind == "f" and ((accuracy >= 0) & (accuracy <= 1)).all()
    return bool(is_share) and accuracy.ndim == right.ndim == 1 and right.dtype == bool


def _fit(snapshots: Sequence[Seen], maps: np.ndarray | None) -> bool:
    """Whether snapshots are of the same texts and layers, one after the other, and so are maps."""
    shapes = {
        (one.nearest.shape, None if one.accuracy is None else one.accuracy.shape)
        for one in snapshots
    }
    steps = [one.step for one in snapshots]
    if len(shapes) > 1 or steps != sorted(set(steps)):
        return False
    return maps is None or (
        maps.dtype.kind == "f"
        and bool(snapshots)
        and maps.shape == (len(snapshots), len(snapshots[0].nearest), 2)
    )


def _small(numbers: np.ndarray) -> np.ndarray:
    """Numbers from 0 on with half the bytes, where they fit."""
    return numbers.astype(np.uint16) if numbers.size and numbers.max() < 1 << 16 else numbers
