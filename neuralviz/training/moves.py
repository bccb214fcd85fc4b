"""Which texts have other neighbours after a training than before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from neuralviz.training.record import Lesson


@dataclass(frozen=True)
class NewNeighbours:
    """A text that has other neighbours than before.

    Attributes:
        text: number among those that are watched.
        kept: of its ten nearest, how many it had before.
        before, after: its nearest text before and after.
    """

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
