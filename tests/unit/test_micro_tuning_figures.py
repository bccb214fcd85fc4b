"""The figures of a run: axes that can be read, and no more cells than a browser takes."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.plots.micro_tuning import (
    MAX_CELLS,
    delta_heatmap,
    delta_norm_figure,
    loss_figure,
    shares_figure,
)

LAYER = "cls.predictions.transform.dense.bias"


def test_few_epochs_are_counted_one_by_one() -> None:
    few = loss_figure(np.ones((1, 3)), ["A text."])
    assert few.layout.xaxis.dtick == 1
    assert loss_figure(np.ones((1, 101)), ["A text."]).layout.xaxis.dtick is None


def test_a_step_within_an_epoch_is_drawn_within_it() -> None:
    norms = np.array([[1.0], [1.5], [np.nan]])
    (line,) = delta_norm_figure(norms, [LAYER], learnt=1.25).data
    assert list(line.x) == [0, 1, 1.25, 3]
    np.testing.assert_array_equal(line.y, [0, 1, 1.5, np.nan])


@pytest.mark.parametrize(("n_epochs", "dim"), [(1000, 384), (100, 30522), (10, 384), (1, 30522)])
def test_a_heatmap_has_a_bounded_number_of_cells(n_epochs: int, dim: int) -> None:
    deltas = np.arange(n_epochs)[:, None] * np.ones((1, dim))
    drawn = delta_heatmap(deltas, LAYER, [], np.array([])).data[0]
    assert np.size(drawn.z) <= max(MAX_CELLS, 2 * dim)
    assert drawn.y[-1] == n_epochs  # the last one is always there
    np.testing.assert_allclose(drawn.z[:, 0], np.array(drawn.y) - 1)


@pytest.mark.parametrize(
    ("n_epochs", "named"),
    [
        (1, [1]),
        (3, [1, 3]),
        (10, [1, 5, 10]),
        (12, [1, 5, 12]),
        (1000, [1, 200, 400, 600, 800, 1000]),
    ],
)
def test_epochs_beside_a_heatmap_stay_apart(n_epochs: int, named: list[int]) -> None:
    figure = delta_heatmap(np.ones((n_epochs, 8)), LAYER, [], np.array([]))
    assert list(figure.layout.yaxis.tickvals) == named


@pytest.mark.parametrize(
    ("text", "angle"),
    [
        ("She sat on the bank.", 0),
        ("My grandmother baked plum cake every Sunday.", -45),
        ("a b c d e f g h i j k l m n o", -90),
    ],
)
def test_words_below_their_shares_do_not_run_into_each_other(text: str, angle: int) -> None:
    words = text.split()
    figure = shares_figure(words, np.full(len(words), 1 / len(words)), "Shares")
    assert figure.layout.xaxis.tickangle == angle
