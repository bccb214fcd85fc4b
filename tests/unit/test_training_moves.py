"""Which texts have other neighbours after a training than before."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralviz.training.record import Lesson, kept_neighbours, new_neighbours
from neuralviz.training.settings import TrainingSettings
from neuralviz.training.snapshots import Snapshot

N = 200
NEAR = (np.arange(N)[:, None] + np.arange(1, 11)) % N  # the ten that follow
FAR = (np.arange(N)[:, None] + np.arange(101, 111)) % N


def lesson(*shares: float, nearest: np.ndarray = NEAR, **settings: Any) -> Lesson:
    """One that is over: a snapshot every 12 steps, at which so many texts are right."""
    seen = [
        Snapshot(12 * at, np.array([0.5, share]), np.arange(N) < share * N, nearest if at else NEAR)
        for at, share in enumerate(shares)
    ]
    n = 12 * max(len(shares) - 1, 1)
    loss = np.linspace(2.0, 0.2, n)
    return Lesson(
        TrainingSettings(**settings), steps=n, curves=np.tile(loss[:, None], 4),
        snapshots=tuple(seen), is_over=True,
    )  # fmt: skip


def test_texts_with_new_neighbours_are_named_with_the_nearest_before_and_now() -> None:
    nearest = NEAR.copy()
    nearest[7] = FAR[7]
    moved = lesson(0.5, 0.6, nearest=nearest)
    (one,) = new_neighbours(moved, 5)
    assert (one.text, one.kept, one.before, one.after) == (7, 0, 8, 108)

    everywhere = lesson(0.5, 0.6, nearest=FAR)
    assert not kept_neighbours(everywhere).any()
    assert len(new_neighbours(everywhere, 5)) == 5
    assert new_neighbours(lesson(0.5, 0.65), 5) == []
