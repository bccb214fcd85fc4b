"""Correlation of products with scores, on values whose coefficients are known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation import bootstrap as bootstrapping
from neuralviz.evaluation.correlation import COEFFICIENTS, correlate


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_known_coefficients():
    # Of the six pairs of pairs, five are in order and one is not.
    found = correlate([0.1, 0.2, 0.4, 0.3], [0, 1, 2, 3])
    assert found.spearman == pytest.approx(0.8)
    assert found.kendall_b == pytest.approx(4 / 6)
    assert found.kendall_c == pytest.approx(4 / 6)
    assert found.pearson == pytest.approx(0.8)
    assert found.n == 4


def test_ties_weigh_as_the_definitions_say():
    # Two scores of two values: all four pairs that differ are in order, two are ties.
    found = correlate([1, 2, 3, 4], [0, 0, 5, 5])
    assert found.kendall_b == pytest.approx(4 / np.sqrt(6 * 4))
    assert found.kendall_c == pytest.approx(2 * 4 / (4**2 * (2 - 1) / 2))
    assert found.spearman == pytest.approx(2 / np.sqrt(5))


def test_orders_only_and_straight_lines():
    x = np.linspace(0.1, 1, 20)
    found = correlate(x**9, x)
    assert found.spearman == found.kendall_b == pytest.approx(1)
    assert found.pearson < 0.9
    assert correlate(-x, x).pearson == pytest.approx(-1)


@pytest.mark.parametrize(
    ("products", "scores"),
    [
        ([1, 1, 1], [1, 2, 3]),
        ([1, 1 + 1e-15, 1 - 1e-15], [1, 2, 3]),
        ([0, 0, 0], [1, 2, 3]),
        ([1, 2, 3], [4, 4, 4]),
        ([1, 2, 3], [1, np.nan, 3]),
        ([1, 2, 3], [1, np.inf, 3]),
        ([1], [1]),
        ([], []),
    ],
)
def test_no_coefficient_where_there_is_none(products, scores):
    found = correlate(products, scores)
    assert all(np.isnan(getattr(found, name)) for name in COEFFICIENTS)
    assert found.n == len(products)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_products_that_are_not_finite_are_refused(bad):
    with pytest.raises(NeuralvizError, match="1 of 3 cosine similarities are infinite or NaN"):
        correlate([0.5, bad, 0.1], [1, 2, 3])


def test_lengths_have_to_agree():
    with pytest.raises(ValueError, match="shape"):
        correlate([1, 2, 3], [1, 2])


@pytest.mark.parametrize("largest_matrix", [2048, 0], ids=["matrix", "one by one"])
@pytest.mark.parametrize("n", [2, 3, 12, 60])
def test_resamples_have_the_coefficients_of_the_pairs_drawn(
    n: int, largest_matrix: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    intervals = bootstrapping.bootstrap(x, y, resamples=250, seed=3)
    again = np.random.default_rng(3)
    drawn = [correlate(x[at], y[at]) for at in (again.integers(40, size=40) for _ in range(250))]
    for name in COEFFICIENTS:
        expected = np.percentile([getattr(one, name) for one in drawn], [2.5, 97.5])
        np.testing.assert_allclose(getattr(intervals, name), expected, atol=1e-12)
