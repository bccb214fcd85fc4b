"""Whether near texts have similar numbers: as scipy counts it, and never for shuffled ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from neuralviz.maps.neighbours import Neighbours, neighbours_of_points
from neuralviz.maps.trends import MOST_TESTED, correlate_ranks, find_trend, mean_by_cluster

DRAW = np.random.default_rng(1)
POINTS = DRAW.normal(size=(300, 2))
NEAR, ROWS = neighbours_of_points(POINTS, 10), np.arange(300)
NOISE = DRAW.normal(size=300)
KINDS = {
    "measurements": POINTS[:, 0] + NOISE,
    "ratings": np.clip(np.round(3 + POINTS[:, 0] + NOISE), 1, 5),
    "two values": (POINTS[:, 0] + NOISE > 0).astype(float),
    "half of them missing": np.where(DRAW.random(300) < 0.5, np.nan, POINTS[:, 1]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_correlation_is_spearmans_of_scipy_and_shuffled_numbers_decide_nothing(kind: str):
    numbers = KINDS[kind]
    trend = find_trend(NEAR, ROWS, numbers)
    near = pd.DataFrame(numbers[NEAR.indices]).mean(axis=1)  # without those that are missing
    usable = np.isfinite(numbers) & near.notna()
    assert trend.correlation == pytest.approx(
        stats.spearmanr(numbers[usable], near[usable]).statistic
    )
    assert (trend.n_texts, trend.is_decided) == (usable.sum(), True)
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(numbers)
        assert not find_trend(NEAR, ROWS, shuffled).is_decided


def test_the_test_is_a_permutation_test_of_scipy():
    """A correlation that scipy finds to be an accident is undecided, a clear one is not."""
    few = slice(0, 60)
    near = neighbours_of_points(POINTS[few], 5)
    for noise in (0.2, 12):
        numbers = POINTS[few, 0] + noise * NOISE[few]

        def measure(values: np.ndarray) -> float:
            return stats.spearmanr(values, values[near.indices].mean(axis=1)).statistic

        p = stats.permutation_test(
            (numbers,), measure, permutation_type="pairings", alternative="greater",
            n_resamples=999, rng=0, vectorized=False,
        ).pvalue  # fmt: skip
        assert find_trend(near, ROWS[few], numbers).is_decided == (p <= 0.001)


def test_there_is_no_trend_of_few_texts_or_of_one_value_and_of_many_a_sample():
    few = Neighbours(NEAR.indices[:19], NEAR.distances[:19])
    assert find_trend(few, ROWS[:19], KINDS["ratings"]) is None
    assert find_trend(NEAR, ROWS, np.ones(300)) is None
    assert find_trend(NEAR, ROWS, np.full(300, np.nan)) is None
    points = DRAW.normal(size=(3000, 2))
    trend = find_trend(neighbours_of_points(points, 10), np.arange(3000), points[:, 0])
    assert trend.n_texts == MOST_TESTED
    assert trend.is_decided


def test_ties_get_their_mean_rank():
    x, y = DRAW.integers(4, size=(2, 50))
    assert correlate_ranks(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert correlate_ranks(x, np.ones(50)) == 0


def test_means_by_cluster_are_those_of_pandas():
    labels, numbers = DRAW.integers(-1, 4, size=300), KINDS["half of them missing"]
    groups = pd.Series(numbers[labels >= 0]).groupby(labels[labels >= 0])
    assert mean_by_cluster(numbers, labels, 5) == pytest.approx(groups.mean().to_dict())
    labels[:] = -1
    labels[:6] = 1  # the others are in no cluster
    assert set(mean_by_cluster(np.arange(300.0), labels, 5)) == {1}
    assert mean_by_cluster(np.arange(300.0), labels, 7) == {}
