"""Axes of a training's figures, and texts with other neighbours than before."""

from __future__ import annotations

import numpy as np

from neuralviz.training.record import Lesson, Snapshot, kept_neighbours, new_neighbours
from neuralviz.training.settings import TrainingSettings

NEAR = np.zeros((4, 3), int)


def test_texts_with_new_neighbours_are_named_with_the_nearest_before_and_now() -> None:
    near = (np.arange(200)[:, None] + np.arange(1, 11)) % 200  # the ten that follow
    far, moved = (near + 100) % 200, near.copy()
    moved[7] = far[7]

    def after(nearest: np.ndarray) -> Lesson:
        seen = (Snapshot(0, None, None, near), Snapshot(12, None, None, nearest))
        return Lesson(TrainingSettings(), snapshots=seen)

    (one,) = new_neighbours(after(moved), 5)
    assert (one.text, one.kept, one.before, one.after) == (7, 0, 8, 108)
    assert not kept_neighbours(after(far)).any()
    assert len(new_neighbours(after(far), 5)) == 5
    assert new_neighbours(after(near), 5) == []
