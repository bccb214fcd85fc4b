"""Axes of a training's figures, and texts with other neighbours than before."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.plots.training import accuracy_by_step_figure
from neuralviz.training.record import Lesson, Snapshot, kept_neighbours, new_neighbours
from neuralviz.training.settings import TrainingSettings

NEAR = np.zeros((4, 3), int)


def lesson(*accuracies: list[float]) -> Lesson:
    """One with a snapshot every 10 steps, with an accuracy at each layer."""
    seen = [
        Snapshot(10 * at, np.array(values), np.ones(4, bool), NEAR)
        for at, values in enumerate(accuracies)
    ]
    return Lesson(TrainingSettings(), steps=100, curves=np.ones((10, 4)), snapshots=tuple(seen))


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.47], 0.42, 0.52),  # the first snapshot: ten points, not −50% to 150%
        ([0.47, 0.48], 0.42, 0.53),
        ([0.1, 0.9], 0.05, 0.95),
        ([0.0, 1.0], -0.02, 1.02),
    ],
)
def test_an_axis_of_accuracies_is_around_the_values(values, low, high) -> None:
    figure = accuracy_by_step_figure([lesson(*([0.01, value] for value in values))], "topic")
    assert figure.layout.yaxis.range == pytest.approx((low, high))


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
