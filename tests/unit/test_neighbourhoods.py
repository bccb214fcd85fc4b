"""Votes of the nearest texts, and neighbourhoods of two embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.evaluation.maps_in_words import (
    accuracy_point,
    agreement_point,
    clusters_point,
    landing_point,
    neighbours_point,
)
from neuralviz.maps.neighbourhoods import (
    common_neighbours,
    find_outvoted,
    is_apart,
    knn_accuracy,
    label_agreement,
    suggest_k,
)
from neuralviz.maps.neighbours import Neighbours, find_neighbours


def with_labels(n: int = 120, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=n)
    vectors = rng.normal(size=(4, 8))[group] + rng.normal(size=(n, 8))
    return vectors, [f"label {number}" for number in group]


def neighbours_of(indices: list[list[int]]) -> Neighbours:
    return Neighbours(
        np.array(indices, dtype=np.int32), np.zeros(np.shape(indices), dtype=np.float32), "cosine"
    )


@pytest.mark.parametrize("k", [1, 5, 10])
def test_the_accuracy_is_that_of_scikit_learn_leaving_one_out(k):
    """With the votes of equal labels broken alike: theirs has none where k is 1 or votes differ."""
    vectors, labels = with_labels()
    found = knn_accuracy(find_neighbours(vectors, 20, "euclidean"), labels, k)
    right = ties = 0
    for i in range(len(vectors)):
        others = np.delete(np.arange(len(vectors)), i)
        classifier = KNeighborsClassifier(k).fit(vectors[others], np.array(labels)[others])
        shares = np.sort(classifier.predict_proba(vectors[i : i + 1])[0])
        ties += shares[-1] == shares[-2]
        right += classifier.predict(vectors[i : i + 1])[0] == labels[i]
    assert abs(found.accuracy * 120 - right) <= ties
    assert (ties == 0) == (k == 1)
    assert (found.k, found.n) == (k, 120)
    assert found.baseline == max(labels.count(label) for label in set(labels)) / 120
    assert found.interval[0] < found.accuracy < found.interval[1]


def test_equal_votes_go_to_the_label_of_the_nearest_voter():
    neighbours = neighbours_of([[1, 2, 3, 4], [0, 2, 3, 4], [3, 0, 1, 4], [2, 0, 1, 4],
                                [2, 0, 1, 3]])  # fmt: skip
    labels = ["a", "a", "b", "b", ""]
    # voters of 0: a b b → b; of 1: a b b → b; of 2: b a a → a; of 3: b a a → a
    assert knn_accuracy(neighbours, labels, 4).accuracy == 0
    # two voters: 0: a b → a; 1: a b → a; 2: b a → b; 3: b a → b
    assert knn_accuracy(neighbours, labels, 2).accuracy == 1


def test_the_outvoted_are_those_that_are_missed_the_loneliest_first():
    vectors, labels = with_labels()
    labels[3] = labels[40] = ""
    neighbours = find_neighbours(vectors, 20)
    found = find_outvoted(neighbours, labels, 7, 999)
    assert find_outvoted(neighbours, labels, 7, 2) == found[:2]
    accuracy = knn_accuracy(neighbours, labels, 7)
    assert len(found) == round((1 - accuracy.accuracy) * accuracy.n) > 0
    agree = label_agreement(neighbours, labels, 7)
    assert [one.agree for one in found] == sorted(agree[[one.text for one in found]].tolist())
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
    expected = knn_accuracy(among, rest, 7)
    assert knn_accuracy(everything, some, 7) == expected
    assert expected.n == 80
    shares = label_agreement(everything, some, 7)
    assert np.isnan(shares[hidden]).all()
    np.testing.assert_array_equal(shares[~hidden], label_agreement(among, rest, 7))


def test_a_text_that_nobody_votes_on_counts_as_missed():
    neighbours = neighbours_of([[1], [0], [3], [2]])
    found = knn_accuracy(neighbours, ["a", "a", "a", ""], 1)
    assert (found.accuracy, found.n) == (2 / 3, 3)
    assert find_outvoted(neighbours, ["a", "a", "a", ""], 1, 9) == ()  # nobody votes against it
    shares = label_agreement(neighbours, ["a", "a", "a", ""], 1)
    np.testing.assert_array_equal(shares, [1, 1, np.nan, np.nan])


def test_agreement_is_the_share_of_neighbours_with_the_same_label():
    vectors, labels = with_labels()
    neighbours = find_neighbours(vectors, 10)
    expected = [
        np.mean([labels[j] == labels[i] for j in neighbours.indices[i]]) for i in range(120)
    ]
    np.testing.assert_allclose(label_agreement(neighbours, labels, 99), expected)


def test_common_neighbours_are_counted_in_any_order():
    first = find_neighbours(with_labels()[0], 12)
    second = find_neighbours(with_labels(seed=1)[0], 15)
    expected = [
        len(set(first.indices[i, :10]) & set(second.indices[i, :10])) / 10 for i in range(120)
    ]
    np.testing.assert_allclose(common_neighbours(first, second), expected)
    assert 0 < np.mean(expected) < 1
    backwards = Neighbours(first.indices[:, ::-1], first.distances[:, ::-1], "cosine")
    assert (common_neighbours(first, backwards, 12) == 1).all()
    assert len(set(common_neighbours(first, second, 99) * 12 % 1)) == 1  # cut to 12


def test_what_cannot_be_scored_is_said():
    neighbours = find_neighbours(with_labels(6)[0], 3)
    with pytest.raises(NeuralvizError, match="5 labels for 6 texts"):
        knn_accuracy(neighbours, ["a"] * 5)
    with pytest.raises(NeuralvizError, match="at least 2 texts with a label; only 1 of 6 has one"):
        knn_accuracy(neighbours, ["a", *[""] * 5])
    with pytest.raises(NeuralvizError, match="6 texts with those of 5"):
        common_neighbours(neighbours, find_neighbours(with_labels(5)[0], 3))
    for score in (knn_accuracy, label_agreement):
        with pytest.raises(SettingsError, match="at least 1"):
            score(neighbours, ["a"] * 6, 0)


def right(*shares: float, n: int = 100) -> list[np.ndarray]:
    """Whether each of ``n`` texts was right, for a method a share."""
    return [np.arange(n) < share * n for share in shares]


@pytest.mark.parametrize(
    ("methods", "hits", "sentence"),
    [
        (
            ["mean", "neural"],
            {"topic": right(0.93, 0.42), "form": right(0.57, 0.80)},
            "**mean** sorts texts better by topic, **neural** by form: guessed from its ten "
            "nearest texts, a text's topic is right for **93%** of texts by mean (neural: 42%) "
            "and its form for **80%** by neural (mean: 57%).",
        ),
        (
            ["mean", "neural"],
            {"topic": right(0.4, 0.9), "form": right(0.5, 0.8)},
            "**neural** sorts texts better by topic and form: guessed from its ten nearest texts, "
            "a text's topic is right for **90%** of texts (mean: 40%) and its form for **80%** "
            "(mean: 50%).",
        ),
        (
            ["mean", "neural"],
            {"topic": right(0.9, 0.4), "form": right(0.5, 0.52)},
            "**mean** sorts texts better by topic: guessed from its ten nearest texts, a text's "
            "topic is right for **90%** of texts (neural: 40%). This corpus does not decide on "
            "form (mean: 50%, neural: 52%): the 95% interval of the difference includes 0.",
        ),
        (
            ["mean", "neural"],
            {"topic": right(0.5, 0.5)},
            "This corpus does not decide between **mean** and **neural**: guessed from its ten "
            "nearest texts, a text's topic is right for 50% of texts by mean (neural: 50%), but "
            "the 95% interval of the difference includes 0.",
        ),
        (
            ["mean", "neural"],
            {"topic": right(0.5, 0.52), "form": right(0.7, 0.71)},
            "This corpus does not decide between **mean** and **neural**: guessed from its ten "
            "nearest texts, a text's topic is right for 50% of texts by mean (neural: 52%) and its "
            "form for 70% by mean (neural: 71%), but the 95% intervals of the differences include "
            "0.",
        ),
        (
            ["mean"],
            {"topic": right(0.93), "form": right(0.57)},
            "Guessed from its ten nearest texts by **mean**, a text's topic is right for **93%** "
            "of texts and its form for **57%**. Always guessing the most frequent topic would be "
            "right for 20% and the most frequent form for 20%.",
        ),
        (["mean", "neural"], {}, ""),
    ],
)
def test_the_point_of_two_maps_is_made_from_their_numbers(methods, hits, sentence: str) -> None:
    assert neighbours_point(methods, hits, dict.fromkeys(hits, 0.2), 10) == sentence


def test_the_point_says_how_many_neighbours_there_are_and_of_which_texts() -> None:
    of_all = neighbours_point(["mean"], {"topic": right(0.5)}, {"topic": 0.2}, 1, "all 480 texts")
    assert of_all == (
        "Guessed from its nearest text by **mean**, a text's topic is right for **50%** of all 480 "
        "texts. Always guessing the most frequent topic would be right for 20%."
    )
    two = neighbours_point(["a", "b"], {"x": right(0.1, 0.9)}, {"x": 0.2}, 3, "all 480 texts")
    assert two.startswith("**b** sorts all 480 texts better by x: guessed from its three nearest")
    assert agreement_point(["a", "b"], 0.2, 12, "all 480 texts").startswith(
        "**a** and **b** group all 480 texts differently: they share **20%** of a text's 12 nearest"
    )


def test_the_best_of_several_methods_is_named_with_those_it_is_not_clearly_better_than() -> None:
    hits = {"topic": right(0.9, 0.5, 0.4), "form": right(0.5, 0.8, 0.79)}
    methods, baselines = ["mean", "neural", "sbert-wk"], {"topic": 0.1, "form": 0.25}
    assert accuracy_point(methods, hits, baselines, 10) == (
        "Guessed from its ten nearest texts, a text's topic is right most often by **mean** (90% "
        "of texts) and its form by **neural** (80%; not clearly more than sbert-wk, 79%). Always "
        "guessing the most frequent topic would be right for 10% and the most frequent form for "
        "25%."
    )
    one = {"topic": right(0.9)}
    assert accuracy_point(["mean"], one, baselines, 10) == neighbours_point(
        ["mean"], one, baselines, 10
    )
    assert accuracy_point(methods, {}, {}, 10) == ""


def test_methods_that_are_right_equally_often_are_not_ranked() -> None:
    methods, baselines = ["mean", "neural", "sbert-wk"], {"topic": 0.1, "form": 0.25}
    level = {"topic": right(0.9, 0.9, 0.4), "form": right(0.5, 0.5, 0.5)}
    assert accuracy_point(methods, level, baselines, 10).startswith(
        "Guessed from its ten nearest texts, a text's topic is right most often by **mean** and "
        "**neural** (90% of texts) and its form is right equally often by all methods (50%). "
    )
    level["topic"] = level["form"]
    assert (
        "right equally often by all methods (50% of texts) and its form by all methods (50%)"
        in (accuracy_point(methods, level, baselines, 10))
    )


def test_methods_that_agree_and_themes_are_said() -> None:
    assert agreement_point(["mean", "neural"], 0.17, 10) == (
        "**mean** and **neural** group these texts differently: they share **17%** of a text's "
        "ten nearest texts."
    )
    assert "in much the same way" in agreement_point(["mean", "cls"], 0.8, 10)
    names = ["1 rain, snow", "2 bread", "3", "4 a", "5 b"]
    assert clusters_point("mean", names[:2], [20, 5], 30) == (
        "By **mean**, 25 of 30 texts form 2 clusters: **1 rain, snow** (20) and **2 bread** (5)."
    )
    assert clusters_point("mean", names, [9, 5, 4, 3, 2], 30) == (
        "By **mean**, 23 of 30 texts form 5 clusters: the largest are **1 rain, snow** (9), "
        "**2 bread** (5), **3** (4) and **4 a** (3)."
    )
    assert clusters_point("mean", [], [], 30) == (
        "By **mean**, these 30 texts form no clusters: no group is dense enough."
    )


def test_a_point_lies_apart_where_its_nearest_texts_are_elsewhere_on_the_map() -> None:
    points = np.stack([np.arange(100.0), np.zeros(100)], axis=1)
    near = np.arange(10)
    assert not is_apart(np.array([4.5, 0]), points, near)
    assert not is_apart(np.array([12.0, 0]), points, near)  # beside them
    assert is_apart(np.array([80.0, 0]), points, near)
    assert is_apart(np.array([80.0, 0]), points, np.array([*range(7), 79, 80, 81]))
    assert not is_apart(np.array([80.0, 0]), points, np.array([*range(3), *range(77, 84)]))
    assert not is_apart(np.array([9.0, 0]), points[:10], near)  # few texts: all are near


def test_where_a_sentence_lands_is_said_by_the_labels_near_it() -> None:
    near = [["moon", "moon", "sea"], ["", "sea", "moon", "sea"]]
    assert landing_point("Tonight …", ["mean", "neural"], near, "topic") == (
        "“Tonight …” lands near topic **moon** by mean (2 of its three nearest texts) and **sea** "
        "by neural (2 of its four nearest texts)."
    )
    same = [["sea", "sea", "sea"], ["sea", "sea", "moon"]]
    assert landing_point("Tonight …", ["mean", "neural"], same, "topic") == (
        "“Tonight …” lands near topic **sea** by mean (all of its three nearest texts) and neural "
        "(2 of its three nearest texts)."
    )
    assert landing_point("Tonight …", ["mean"], [["", ""]], "topic") == ""
    assert landing_point("Tonight …", [], [], "topic") == ""


def test_a_sentence_among_texts_of_many_labels_lands_near_none() -> None:
    """The most frequent label of ten texts may be that of one."""
    mixed = ["moon", "moon", *"abcdefgh"]
    assert landing_point("Tonight …", ["mean"], [mixed], "topic") == (
        "By mean, “Tonight …” lands near no single topic: its ten nearest texts have 9 different "
        "ones."
    )
    assert landing_point(
        "Tonight …", ["mean", "neural"], [mixed, ["moon"] * 5 + ["a"] * 4 + [""]], "topic"
    ) == (
        "“Tonight …” lands near topic **moon** by neural (5 of its ten nearest texts). By mean, it "
        "lands near no single topic: its ten nearest texts have 9 different ones."
    )
    level = ["moon"] * 5 + ["sea"] * 5
    assert landing_point("Tonight …", ["mean"], [level], "topic") == (
        "By mean, “Tonight …” lands near no single topic: its ten nearest texts have 2 different "
        "ones."
    )
    few = ["moon", *[""] * 9]
    assert landing_point("Tonight …", ["mean"], [few], "topic") == (
        "By mean, “Tonight …” lands near no single topic: only 1 of its ten nearest texts has one."
    )


@pytest.mark.parametrize(
    ("sizes", "k"),
    [
        ([[48, 40]], 10),
        ([[4, 4, 4]], 3),  # ten of eleven would always outvote three
        ([[4, 4], [20, 20]], 3),
        ([[2] * 50, [50, 50]], 1),
        ([[100, 100, 2]], 10),  # one rare label has no say for all
        ([[1, 1, 1, 1]], 1),
        ([[]], 10),
        ([], 10),
    ],
)
def test_no_more_neighbours_vote_than_a_label_has_texts(sizes: list[list[int]], k: int) -> None:
    assert suggest_k(sizes) == k
