"""Correlation of products with scores, on values whose coefficients are known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.evaluation import bootstrap as bootstrapping
from neuralviz.evaluation.broken import count_pairs
from neuralviz.evaluation.correlation import COEFFICIENTS, correlate

pytestmark = pytest.mark.filterwarnings("error")


def test_ties_weigh_as_the_definitions_say():
    # Two scores of two values: all four pairs that differ are in order, two are ties.
    found = correlate([1, 2, 3, 4], [0, 0, 5, 5])
    assert found.kendall_b == pytest.approx(4 / np.sqrt(6 * 4))
    assert found.kendall_c == pytest.approx(2 * 4 / (4**2 * (2 - 1) / 2))
    assert found.spearman == pytest.approx(2 / np.sqrt(5))


@pytest.mark.parametrize(
    ("products", "scores"),
    [
        ([1, 1, 1], [1, 2, 3]),
        ([1, 1 + 1e-15, 1 - 1e-15], [1, 2, 3]),
        ([1, 2, 3], [4, 4, 4]),
        ([1, 2, 3], [1, np.nan, 3]),
        ([], []),
    ],
)
def test_no_coefficient_where_there_is_none(products, scores):
    found = correlate(products, scores)
    assert all(np.isnan(getattr(found, name)) for name in COEFFICIENTS)
    assert found.n == len(products)
    with pytest.raises(NeuralvizError, match="1 of 3 cosine similarities are infinite or NaN"):
        correlate([0.5, np.inf, 0.1], [1, 2, 3])


@pytest.mark.parametrize("largest_matrix", [2048, 0], ids=["matrix", "one by one"])
@pytest.mark.parametrize("n", [2, 3, 12, 60])
def test_resamples_have_the_coefficients_of_the_pairs_drawn(n, largest_matrix, monkeypatch) -> None:
    monkeypatch.setattr(bootstrapping, "LARGEST_MATRIX", largest_matrix)
    draw = np.random.default_rng(n)
    for _ in range(5):
        x, y = draw.normal(size=n).round(1), draw.integers(0, 4, size=n).astype(float)
        at = [draw.integers(n, size=n) for _ in range(30)]
        counts = np.array([np.bincount(rows, minlength=n) for rows in at], dtype=float)
        found = bootstrapping.correlate_resamples(x, y, counts)
        drawn = [correlate(x[rows], y[rows]) for rows in at]
        expected = [[getattr(one, name) for name in COEFFICIENTS] for one in drawn]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_intervals_are_percentiles_of_correlations_of_resamples() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=40)
    y = (x + draw.normal(size=40)).round()
    found = bootstrapping.bootstrap(x, y, resamples=250, seed=3)
    again = np.random.default_rng(3)
    drawn = [correlate(x[at], y[at]) for at in (again.integers(40, size=40) for _ in range(250))]
    for name in COEFFICIENTS:
        expected = np.percentile([getattr(one, name) for one in drawn], [2.5, 97.5])
        np.testing.assert_allclose(bootstrapping.interval(found[name]), expected, atol=1e-12)


def test_repeated_pairs_are_drawn_together() -> None:
    """As of scipy on the rows of clusters that are drawn; one that is there four times is one."""
    draw = np.random.default_rng(6)
    numbers = np.array([*range(15), 3, 3, 3, 9])
    x = draw.normal(size=15)[numbers]
    y = (x + draw.normal(size=19)).round()
    drawing = {"resamples": 220, "seed": 2, "cluster": numbers}
    found = bootstrapping.bootstrap(x, y, **drawing)
    (alone,) = bootstrapping.bootstrap(x, y, ["spearman"], **drawing).values()
    broken = bootstrapping.bootstrap_pairs(x, y >= 1, y <= -1, **drawing)
    again = np.random.default_rng(2)
    for n in range(220):
        rows = [np.flatnonzero(numbers == one) for one in again.integers(15, size=15)]
        at = np.concatenate(rows)
        a, b = x[at], y[at]
        expected = {
            "spearman": scipy.stats.spearmanr(a, b).statistic,
            "kendall_b": scipy.stats.kendalltau(a, b).statistic,
            "kendall_c": scipy.stats.kendalltau(a, b, variant="c").statistic,
            "pearson": scipy.stats.pearsonr(a, b).statistic,
        }
        assert {name: values[n] for name, values in found.items()} == pytest.approx(expected)
        assert alone[n] == pytest.approx(expected["spearman"])
        if (b >= 1).any() and (b <= -1).any():
            assert broken[n] == pytest.approx(count_pairs(a[b >= 1], a[b <= -1]).error)


def test_shares_are_those_of_the_things_drawn() -> None:
    wrong, total = np.array([0, 3, 1, 9, 2, 2, 0, 5, 4]), np.arange(10, 19)
    found = bootstrapping.bootstrap_share(wrong, total, resamples=210, seed=4)
    again = np.random.default_rng(4)
    expected = [
        wrong[at].sum() / total[at].sum() for at in (again.integers(9, size=9) for _ in found)
    ]
    np.testing.assert_allclose(found, expected)
    assert len(found) == 210
    few = slice(bootstrapping.FEWEST_DRAWN - 1)
    assert not len(bootstrapping.bootstrap_share(wrong[few], total[few]))
    assert bootstrapping.bootstrap(wrong[few], total[few]) == {}
    assert bootstrapping.bootstrap(np.ones(9), np.arange(9)) == {}
    assert bootstrapping.bootstrap([1.0], [1.0]) == {}


def test_drawing_can_be_stopped() -> None:
    asked = iter([False] * 3 + [True])
    with pytest.raises(Stopped):
        bootstrapping.bootstrap(
            np.arange(20.0), np.arange(20.0) ** 2, should_stop=lambda: next(asked)
        )
