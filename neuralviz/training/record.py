"""A training as it is watched: what is known so far of one or two ways to make pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.errors import SettingsError
from neuralviz.training.events import TrainingEnded, TrainingEvent, TrainingStarted
from neuralviz.training.settings import PairSettings, TrainingSettings
from neuralviz.training.snapshots import Snapshot

FORMAT = 1  # raise it where the same settings give another result
_CURVES = ("loss", "learning_rate", "alignment", "uniformity")
_PLAIN = ("n_pairs", "skipped", "first", "steps", "diverged", "is_over")


def _none() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is known so far of one encoder that is trained.

    Attributes:
        settings: how.
        n_pairs: texts that a pair is made of; 0 before the start is known.
        skipped: what to know of all others, in words.
        first: steps that were made before, of which only the loss is known.
        steps: in all.
        loss, learning_rate, alignment, uniformity: [step] made so far; the last three are NaN for
            those before ``first``.
        snapshots: in the order of their steps.
        diverged: whether the loss did.
        is_over: whether the last step was made, or the training stopped.
        maps: [snapshot, text, 2] in one frame; None before the end.
    """

    settings: TrainingSettings
    n_pairs: int = 0
    skipped: str = ""
    first: int = 0
    steps: int = 0
    loss: np.ndarray = field(default_factory=_none)
    learning_rate: np.ndarray = field(default_factory=_none)
    alignment: np.ndarray = field(default_factory=_none)
    uniformity: np.ndarray = field(default_factory=_none)
    snapshots: tuple[Snapshot, ...] = ()
    diverged: bool = False
    is_over: bool = False
    maps: np.ndarray | None = None

    @property
    def step(self) -> int:
        """Steps made."""
        return len(self.loss)

    @property
    def accuracy(self) -> np.ndarray:
        """[snapshot, layer] 0 … 1; no rows without labels."""
        known = [one.accuracy for one in self.snapshots if one.accuracy is not None]
        return np.stack(known) if known else np.zeros((0, 0))

    def having(self, events: Sequence[TrainingEvent]) -> Lesson:
        """The same with some more events."""
        grown = self
        made = [event for event in events if not isinstance(event, TrainingStarted | TrainingEnded)]
        for event in events:
            if isinstance(event, TrainingStarted):
                unknown = np.full(event.step, np.nan)
                grown = replace(
                    grown,
                    n_pairs=event.n_pairs,
                    skipped=event.skipped,
                    first=event.step,
                    steps=event.steps,
                    loss=event.loss,
                    learning_rate=unknown,
                    alignment=unknown,
                    uniformity=unknown,
                )
            elif isinstance(event, TrainingEnded):
                grown = replace(grown, diverged=event.result.diverged, is_over=True)
        curves: dict[str, Any] = {
            name: np.append(getattr(grown, name), [getattr(event, name) for event in made])
            for name in _CURVES
        }
        seen = tuple(event.snapshot for event in events if event.snapshot is not None)
        return replace(grown, snapshots=grown.snapshots + seen, **curves)


def lessons_bytes(lessons: Sequence[Lesson]) -> bytes:
    """Lessons as a file of plain arrays; vectors of snapshots are rounded to float16."""
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
            arrays[f"{place}_{number}_vectors"] = snapshot.vectors.astype(np.float16)
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
        Snapshot(
            int(step),
            arrays.get(f"{place}_{number}_accuracy"),
            arrays.get(f"{place}_{number}_right"),
            arrays[f"{place}_{number}_vectors"].astype(np.float32),
        )
        for number, step in enumerate(about["snapshots"])
    )
    values: dict[str, Any] = {name: about[name] for name in _PLAIN}
    values |= {name: arrays[f"{place}_{name}"] for name in _CURVES}
    maps = arrays.get(f"{place}_maps")
    return Lesson(
        TrainingSettings(pairs=pairs, **settings), snapshots=snapshots, maps=maps, **values
    )
