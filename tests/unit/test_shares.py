"""Shares of texts that are right, of one method and of two: one way to judge them everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from neuralviz.errors import NeuralvizError
from neuralviz.maps.shares import paired_share_interval, wilson_interval


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (1, 2), (447, 480), (99_999, 100_000)])
def test_intervals_are_those_of_scipy(right: int, n: int) -> None:
    for n_intervals in (1, 4):
        level = 1 - 0.05 / n_intervals
        interval = scipy.stats.binomtest(right, n).proportion_ci(level, method="wilson")
        found = wilson_interval(right, n, n_intervals)
        assert found == pytest.approx((interval.low, interval.high), abs=1e-14)


def hits(both: int, by_first: int, by_second: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    """Two methods that are both right on so many texts, just one of them, and none."""
    counts = (both, by_first, by_second, neither)
    return np.repeat([True, True, False, False], counts), np.repeat([True, False] * 2, counts)


@pytest.mark.parametrize(("by_first", "by_second"), [(5, 0), (6, 0), (0, 7), (12, 3), (30, 25)])
def test_the_interval_of_a_difference_decides_nothing_that_the_sign_test_leaves_open(
    by_first: int, by_second: int
) -> None:
    first, second = hits(20, by_first, by_second, 8)
    n_differ = by_first + by_second
    test = scipy.stats.binomtest(by_first, n_differ)
    share = test.proportion_ci(method="exact")
    low, high = paired_share_interval(first, second)
    assert low <= (2 * share.low - 1) * n_differ / len(first) + 1e-12
    assert high >= (2 * share.high - 1) * n_differ / len(first) - 1e-12
    assert low < first.mean() - second.mean() < high
    assert low <= 0 <= high or test.pvalue < 0.05
    assert paired_share_interval(second, first) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("n", "shares"),
    [
        (12, (0.5, 5 / 12, 0, 1 / 12)),
        (12, (0.2, 0.75, 0, 0.05)),
        (480, (0.6, 0.23, 0.013, 0.157)),
        (480, (0.6, 0.292, 0.01, 0.098)),
        (480, (0.4, 0.3, 0.03, 0.27)),
        (480, (0.7, 0.02, 0.02, 0.26)),
    ],
)
def test_95_of_100_intervals_of_a_difference_contain_it(
    n: int, shares: tuple[float, float, float, float]
) -> None:
    difference = shares[1] - shares[2]
    drawn = np.random.default_rng(0).multinomial(n, shares, size=1000)
    intervals = [paired_share_interval(*hits(*counts)) for counts in drawn.tolist()]
    n_right = sum(low <= difference <= high for low, high in intervals)
    assert n_right >= 930


def test_methods_are_compared_on_the_same_texts() -> None:
    first, _ = hits(3, 0, 0, 2)
    low, high = paired_share_interval(first, first)
    assert low <= 0 <= high
    with pytest.raises(NeuralvizError, match="same texts"):
        paired_share_interval(first, first[1:])
    with pytest.raises(NeuralvizError, match="same texts"):
        paired_share_interval(first[:0], first[:0])
