"""Votes of the nearest texts, and neighbourhoods of two embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.maps.neighbours import (
    Neighbours,
    common_neighbours,
    find_neighbours,
    find_outvoted,
    knn_right,
    sampled_right,
    suggest_k,
)


def with_labels(n: int = 120, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=n)
    vectors = rng.normal(size=(4, 8))[group] + rng.normal(size=(n, 8))
    return vectors, [f"label {number}" for number in group]


def neighbours_of(indices: list[list[int]]) -> Neighbours:
    return Neighbours(np.array(indices, np.int32), np.zeros(np.shape(indices), np.float32))


@pytest.mark.parametrize("k", [1, 5, 10])
def test_the_accuracy_is_that_of_scikit_learn_leaving_one_out(k):
    """With the votes of equal labels broken alike: theirs has none where k is 1 or votes differ."""
    vectors, labels = with_labels()
    is_right = knn_right(find_neighbours(vectors, 20, "euclidean"), labels, k)
    right = ties = 0
    for i in range(len(vectors)):
        others = np.delete(np.arange(len(vectors)), i)
        classifier = KNeighborsClassifier(k).fit(vectors[others], np.array(labels)[others])
        shares = np.sort(classifier.predict_proba(vectors[i : i + 1])[0])
        ties += shares[-1] == shares[-2]
        right += classifier.predict(vectors[i : i + 1])[0] == labels[i]
    assert len(is_right) == 120 and abs(is_right.sum() - right) <= ties
    assert (ties == 0) == (k == 1)


def test_equal_votes_go_to_the_label_of_the_nearest_voter():
    neighbours = neighbours_of([[1, 2, 3, 4], [0, 2, 3, 4], [3, 0, 1, 4], [2, 0, 1, 4],
                                [2, 0, 1, 3]])  # fmt: skip
    labels = ["a", "a", "b", "b", ""]
    # voters of 0: a b b → b; of 1: a b b → b; of 2: b a a → a; of 3: b a a → a
    assert not knn_right(neighbours, labels, 4).any()
    # two voters: 0: a b → a; 1: a b → a; 2: b a → b; 3: b a → b
    assert knn_right(neighbours, labels, 2).all()


def test_the_outvoted_are_those_that_are_missed_the_loneliest_first():
    vectors, labels = with_labels()
    labels[3] = labels[40] = ""
    neighbours = find_neighbours(vectors, 20)
    found = find_outvoted(neighbours, labels, 7, 999)
    assert find_outvoted(neighbours, labels, 7, 2) == found[:2]
    assert len(found) == (~knn_right(neighbours, labels, 7)).sum() > 0
    assert [one.agree for one in found] == sorted(one.agree for one in found)
    for one in found:
        voters = [labels[j] for j in neighbours.indices[one.text] if labels[j]][:7]
        assert one.label == labels[one.text] != one.voted
        assert voters.count(one.voted) == max(map(voters.count, voters))
        assert one.agree == pytest.approx(voters.count(one.label) / 7)


def test_texts_without_a_label_neither_vote_nor_are_voted_on():
    vectors, labels = with_labels()
    hidden = np.arange(120) % 3 == 0
    some = ["" if hide else label for hide, label in zip(hidden, labels, strict=True)]
    everything = find_neighbours(vectors, 119)
    among = find_neighbours(vectors[~hidden], 15)
    rest = [label for label in some if label]
    expected = knn_right(among, rest, 7)
    np.testing.assert_array_equal(knn_right(everything, some, 7), expected)
    assert len(expected) == 80
    outvoted = [one.agree for one in find_outvoted(everything, some, 7, 999)]
    assert outvoted == [one.agree for one in find_outvoted(among, rest, 7, 999)]


def test_a_text_that_nobody_votes_on_counts_as_missed():
    neighbours = neighbours_of([[1], [0], [3], [2]])
    assert knn_right(neighbours, ["a", "a", "a", ""], 1).tolist() == [True, True, False]
    assert find_outvoted(neighbours, ["a", "a", "a", ""], 1, 9) == ()  # nobody votes against it


def test_common_neighbours_are_counted_in_any_order():
    first = find_neighbours(with_labels()[0], 12)
    second = find_neighbours(with_labels(seed=1)[0], 15)
    expected = [
        len(set(first.indices[i, :10]) & set(second.indices[i, :10])) / 10 for i in range(120)
    ]
    np.testing.assert_allclose(common_neighbours(first, second), expected)
    assert 0 < np.mean(expected) < 1
    backwards = Neighbours(first.indices[:, ::-1], first.distances[:, ::-1])
    assert (common_neighbours(first, backwards, 12) == 1).all()
    assert len(set(common_neighbours(first, second, 99) * 12 % 1)) == 1  # cut to 12


def test_what_cannot_be_scored_is_said():
    neighbours = find_neighbours(with_labels(6)[0], 3)
    with pytest.raises(NeuralvizError, match="5 labels for 6 texts"):
        knn_right(neighbours, ["a"] * 5)
    with pytest.raises(NeuralvizError, match="at least 2 texts with a label; only 1 of 6 has one"):
        knn_right(neighbours, ["a", *[""] * 5])
    with pytest.raises(NeuralvizError, match="6 texts with those of 5"):
        common_neighbours(neighbours, find_neighbours(with_labels(5)[0], 3))
    with pytest.raises(SettingsError, match="at least 1"):
        knn_right(neighbours, ["a"] * 6, 0)


@pytest.mark.parametrize(
    ("sizes", "k"),
    [
        ([48, 40], 10),
        ([4, 4, 4], 3),  # ten of eleven would always outvote three
        ([2] * 50, 1),
        ([100, 100, 2], 10),  # one rare label has no say for all
        ([], 10),
    ],
)
def test_no_more_neighbours_vote_than_a_label_has_texts(sizes: list[int], k: int) -> None:
    assert suggest_k(sizes) == k


@pytest.mark.parametrize("missing", [False, True])
def test_a_sample_votes_as_all_texts_do(missing: bool) -> None:
    draw = np.random.default_rng(0)
    near = find_neighbours(draw.normal(size=(200, 4)), 15)
    codes = draw.integers(-missing, 3, size=200).astype(np.int32)
    labels = ["abc"[code] if code >= 0 else "" for code in codes]
    everybody = np.zeros(200, dtype=bool)
    everybody[codes >= 0] = knn_right(near, labels, 5)
    rows = np.sort(draw.choice(200, 60, replace=False))
    some = type(near)(near.indices[rows], near.distances[rows])
    right = sampled_right(some, codes, rows, 5)
    np.testing.assert_array_equal(right, everybody[rows][codes[rows] >= 0])
