"""Shares of texts that are right, of one method and of two: one way to judge them everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.data import labelled_data
from neuralviz.evaluation.events import Cell
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings, method_rows
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.similarity import similarity
from neuralviz.headlines.corpus import describe_labels
from neuralviz.headlines.evaluation import describe_verdict
from neuralviz.headlines.similar_texts import describe_similar_texts
from neuralviz.maps.shares import paired_share_interval, wilson_interval


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (1, 2), (447, 480), (99_999, 100_000)])
def test_intervals_are_those_of_scipy(right: int, n: int) -> None:
    expected = scipy.stats.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson_interval(right, n) == pytest.approx((expected.low, expected.high), abs=1e-14)


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


@pytest.mark.parametrize(("n_moved", "is_decided"), [(0, False), (5, False), (6, True)])
def test_compare_map_and_evaluation_decide_alike(n_moved: int, is_decided: bool) -> None:
    """Two texts of either label are right by both methods; some more move to the other label."""
    labels = ["a", "a", "b", "b", *["a"] * n_moved]
    texts = [f"text {i}" for i in range(len(labels))]
    good, bad = (np.eye(2 + n_moved)[[0, 0, 1, 1, *[beside] * n_moved]] for beside in (0, 1))
    for vectors in (good, bad):
        vectors[4:, 2:] = 0.1 * np.eye(n_moved)
    data = labelled_data("labels.csv", texts, labels)
    settings = MeasureSettings(measures=("neighbours",), k=1)
    measured = [measure(data, vectors, settings) for vectors in (good, bad)]
    first, second = (one.hits for one in measured)
    assert (first & ~second).sum() == n_moved
    assert not (second & ~first).any()

    in_compare = describe_similar_texts(
        [similarity("mean", texts, good), similarity("cls", texts, bad)], {"topic": labels}
    )
    on_map = describe_labels(["mean", "cls"], {"topic": [first, second]}, {"topic": 0.5}, 1)
    results = Results(EvaluationPlan((data,), method_rows(["mean", "cls"], {}), settings))
    for at, one in enumerate(measured):
        results = results.having(Cell(0, at, one))
    in_evaluation = describe_verdict(results, 0)
    for sentence in (in_compare, on_map, in_evaluation):
        assert ("mean** is ahead of" in sentence or "mean is ahead of" in sentence) == is_decided
