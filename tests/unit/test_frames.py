"""Maps in one frame: laid upon each other, and stable where the vectors are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.errors import NeuralvizError, Stopped, TextError
from neuralviz.maps.projecting import align_points, lay_out_snapshots


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(0.1, 20), st.booleans(),
    st.integers(3, 30),
)  # fmt: skip
def test_what_was_turned_reflected_shifted_and_scaled_is_laid_upon_itself(
    seed: int, angle: float, scale: float, reflected: bool, n: int
) -> None:
    target = np.random.default_rng(seed).normal(size=(n, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = scale * target @ turn * [1, -1 if reflected else 1] + [4, -7]
    np.testing.assert_allclose(align_points(moved, target), target, atol=1e-4)


def test_points_that_have_changed_their_places_do_not_shrink_together() -> None:
    draw = np.random.default_rng(0)
    target, others = draw.normal(size=(2, 200, 2))
    laid = align_points(3 * others, target)
    spread = np.linalg.norm(target - target.mean(axis=0))
    assert np.linalg.norm(laid - laid.mean(axis=0)) == pytest.approx(spread, rel=1e-5)


def test_the_same_vectors_hardly_move_and_those_that_changed_move_most() -> None:
    draw = np.random.default_rng(0)
    groups = np.repeat(np.eye(3) * 4, 20, axis=0)
    before = groups + draw.normal(scale=0.3, size=groups.shape)
    after = before.copy()
    after[:4] = before[20:24]  # four texts change sides
    maps = lay_out_snapshots([before, before, after])
    assert maps.shape == (3, 60, 2)
    spread = np.linalg.norm(maps[0] - maps[0].mean(0), axis=1).mean()
    assert np.linalg.norm(maps[1] - maps[0], axis=1).mean() < 0.25 * spread
    moved = np.linalg.norm(maps[2] - maps[1], axis=1)
    assert set(np.argsort(-moved)[:4]) == {0, 1, 2, 3}


def test_embeddings_of_other_texts_are_refused_and_work_can_be_stopped() -> None:
    with pytest.raises(NeuralvizError, match="same texts"):
        lay_out_snapshots([np.eye(6), np.eye(7)])
    with pytest.raises(NeuralvizError, match="same texts"):
        lay_out_snapshots([])
    with pytest.raises(TextError, match="at least 5 different embeddings"):
        lay_out_snapshots([np.ones((9, 3))])
    with pytest.raises(Stopped):
        lay_out_snapshots([np.eye(6)], should_stop=lambda: True)
