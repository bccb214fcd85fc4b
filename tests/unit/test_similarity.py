"""Products of texts: their ranks, where methods disagree, and orders in which to show them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics.pairwise import cosine_similarity

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.similarity import (
    disagreements,
    most_similar,
    order_by_cluster,
    pair_indices,
    rank_correlations,
    similarity,
)

NAN = np.nan


def of(*vectors: list[float], method: str = "a"):
    return similarity(method, [f"text {i}" for i in range(len(vectors))], np.array(vectors))


def at_angles(*degrees: float, method: str = "a"):
    radians = np.deg2rad(degrees)
    return of(*np.stack([np.cos(radians), np.sin(radians)], axis=1).tolist(), method=method)


def test_products_are_cosines() -> None:
    vectors = np.random.default_rng(0).normal(size=(7, 5)) * 10.0 ** np.arange(-3, 4)[:, None]
    found = similarity("a", list("abcdefg"), vectors)
    np.testing.assert_allclose(found.products, cosine_similarity(vectors), atol=1e-6)
    assert found.products.dtype == np.float32
    assert not found.zeros.any()
    assert found.has_vector.all()
    i, j = pair_indices(7)
    assert (i < j).all() and len(i) == 21
    np.testing.assert_array_equal(found.of_pairs, found.products[i, j])
    for length in (1e-300, 1e300):  # at the edge of the numbers
        np.testing.assert_allclose(of([length, 0], [length, length]).of_pairs, [0.5**0.5])
    with pytest.raises(NeuralvizError, match="infinite or NaN"):
        of([1, 0], [NAN, 1.0])


def test_equal_products_share_the_best_rank() -> None:
    ranks = of([1, 0], [1, 0], [0, 1], [0, 1]).ranks
    pairs = ranks[pair_indices(4)]
    np.testing.assert_array_equal(pairs, [1, 3, 3, 3, 3, 1])
    same = of([1, 1], [1, 1], [1, 1])
    np.testing.assert_array_equal(same.ranks[pair_indices(3)], [1, 1, 1])
    np.testing.assert_allclose(same.products, 1)


def test_texts_with_zeros_and_without_a_vector_yet() -> None:
    found = of([1, 0], [NAN, NAN], [1, 1], [0, 0])
    np.testing.assert_array_equal(found.has_vector, [True, False, True, True])
    np.testing.assert_array_equal(found.zeros, [False, False, False, True])
    assert np.isnan(found.products[1]).all() and np.isnan(found.products[:, 1]).all()
    np.testing.assert_allclose(found.products[0, [0, 2, 3]], [1, 0.5**0.5, 0], atol=1e-7)
    np.testing.assert_array_equal(found.products[3, [0, 2, 3]], [0, 0, 0])
    np.testing.assert_array_equal(found.ranks[0], [NAN, NAN, 1, 2])


def test_the_most_similar_pairs_are_equal_as_they_are_written() -> None:
    found = at_angles(0, 11.19, 21.45)  # 0.981, 0.931, 0.984: 0.98, 0.93, 0.98
    np.testing.assert_array_equal(most_similar(found), [[0, 1], [1, 2]])


def test_disagreements_come_in_their_order() -> None:
    first = at_angles(0, 10, 40)  # pairs 01, 02, 12 have places 1, 3, 2
    second = at_angles(0, 40, 10, method="b")  # places 3, 1, 2
    found = disagreements([first, second])
    assert [(int(i), int(j)) for i, j in zip(found.first, found.second, strict=True)] == [
        (0, 1), (0, 2), (1, 2),
    ]  # fmt: skip
    np.testing.assert_array_equal(found.ranks, [[1, 3], [3, 1], [2, 2]])
    np.testing.assert_allclose(found.spread, [2 / 3, 2 / 3, 0])
    np.testing.assert_allclose(found.products[0], np.cos(np.deg2rad([10, 40])), atol=1e-6)


def test_rank_correlation_is_spearmans() -> None:
    random = np.random.default_rng(1)
    several = [similarity(name, range(9), random.normal(size=(9, 4))) for name in "abc"]
    expected = stats.spearmanr([one.of_pairs for one in several], axis=1).statistic
    np.testing.assert_allclose(rank_correlations(several), expected, atol=1e-12)


def test_clusters_stand_together() -> None:
    found = at_angles(0, 91, 2, 89, 181, 90, 1, 179)
    order = order_by_cluster(found)
    assert sorted(order.tolist()) == list(range(8))
    groups = ["ABABCBAC"[i] for i in order]
    assert sum(a != b for a, b in itertools.pairwise(groups)) == 2
