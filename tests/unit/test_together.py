"""What is said of methods beside each other: exact sentences for clear, undecided and odd cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuralviz.embedders.labels import short_labels
from neuralviz.evaluation.similarity import Similarity, similarity
from neuralviz.evaluation.together import (
    describe_agreement,
    describe_similar_texts,
    describe_spread,
    furthest_apart,
    least_alike,
    nearest_shares,
    usable_labels,
)

RNG = np.random.default_rng(0)


def by_label(method: str, labels: list[str], noise: float = 0.1) -> Similarity:
    """A method that keeps the texts of a label together."""
    places = [sorted(set(labels)).index(label) for label in labels]
    vectors = np.eye(len(set(labels)))[places] + noise * RNG.random((len(labels), len(set(labels))))
    return similarity(method, [f"text {i}" for i in range(len(labels))], vectors)


def with_nearest(method: str, right: list[bool]) -> Similarity:
    """A method by which the nearest text of each of `PAIRS` has its label, or has not."""
    products = np.eye(len(right), dtype=np.float32)
    for text, is_right in enumerate(right):
        products[text, text ^ 1 if is_right else (text + 2) % len(right)] = 0.5
    return Similarity(method, tuple(map(str, range(len(right)))), products, np.zeros(len(right)))


PAIRS = [str(i // 2) for i in range(40)]
TOPIC = ["a"] * 10 + ["b"] * 10
FORM = ["x", "y"] * 10


def test_two_labels_and_a_clear_best_for_each() -> None:
    methods = [by_label("mean", TOPIC), by_label("neural, fast", FORM)]
    said = describe_similar_texts(methods, {"topic": TOPIC, "form": FORM})
    topic, form = nearest_shares(methods[1], TOPIC).mean(), nearest_shares(methods[0], FORM).mean()
    assert said == (
        f"mean puts every text next to one of the same topic (neural: {topic:.0%}); neural puts "
        f"every text next to one of the same form (mean: {form:.0%}).\n\n"
        "mean keeps the topic together best. neural keeps the form together best."
    )


def test_equal_methods_are_not_decided_between() -> None:
    same = [by_label("mean", TOPIC), by_label("cls", TOPIC)]
    assert describe_similar_texts(same, {"topic": TOPIC}) == (
        "mean puts every text next to one of the same topic (cls: 100%).\n\n"
        "On the topic, 20 texts do not decide between mean and cls."
    )


def test_few_texts_decide_little() -> None:
    """Four texts of difference are not enough: a coin falls so in one of eight cases."""
    labels = ["a", "a", "b", "b"]
    methods = [by_label("mean", ["a", "b", "a", "b"]), by_label("neural", labels)]
    assert describe_similar_texts(methods, {"group": labels}) == (
        "neural puts every text next to one of the same group (mean: 0%).\n\n"
        "On the group, 4 texts do not decide between neural and mean."
    )


def test_the_best_is_compared_with_every_other_method() -> None:
    """The third is no better than the second, but right on other texts than the best."""
    best, second, third = (
        with_nearest(name, right)
        for name, right in (
            ("mean", [True] * 30 + [False] * 10),
            ("cls", [True] * 24 + [False] * 16),
            ("sep", [False] * 16 + [True] * 24),
        )
    )
    assert describe_similar_texts([best, second], {"topic": PAIRS}).endswith(
        "mean keeps the topic together best."
    )
    assert describe_similar_texts([best, second, third], {"topic": PAIRS}).endswith(
        "On the topic, 40 texts do not decide between mean and sep."
    )


def test_texts_without_a_label_are_left_out() -> None:
    labels = [*TOPIC, "", "", ""]
    one = by_label("mean", [*TOPIC, "a", "b", "none"])
    assert nearest_shares(one, labels).tolist() == [True] * 20
    assert usable_labels({"id": ["a", "b", "", ""], "topic": labels}) == ["topic"]
    products = one.products.copy()
    products[:19] = products[:, :19] = np.nan  # the first with a label is under way
    under_way = Similarity("mean", one.texts, products, one.zeros)
    assert describe_similar_texts([under_way], {"topic": labels}).startswith(
        "By mean, texts 20 and "
    )


def test_one_method_decides_nothing() -> None:
    said = describe_similar_texts([by_label("mean", TOPIC)], {"topic": TOPIC})
    assert said == "mean puts every text next to one of the same topic."
    some = with_nearest("mean", [True] * 30 + [False] * 10)
    assert describe_similar_texts([some], {"topic": PAIRS}) == (
        "mean puts 75% of texts next to one of the same topic."
    )
    none = with_nearest("mean", [False] * 40)
    assert describe_similar_texts([none], {"topic": PAIRS}) == (
        "mean puts no text next to one of the same topic."
    )


def test_labels_that_tell_nothing_are_left_out() -> None:
    labels = {"same": ["a"] * 20, "id": [str(i) for i in range(20)]}
    assert describe_similar_texts([by_label("mean", TOPIC)], labels).startswith("By mean, texts ")


def test_the_order_of_the_texts_does_not_decide_between_equally_similar_ones() -> None:
    nothing = similarity("neural", "abcd", np.zeros((4, 2)))
    assert not nearest_shares(nothing, ["x", "x", "y", "y"]).any()
    twins = similarity("mean", "abcd", np.array([[1, 0], [1, 0], [1, 0], [0, 1]]))
    assert nearest_shares(twins, ["x", "x", "x", "y"]).tolist() == [True, True, True, False]


def test_without_labels_rankings_are_compared() -> None:
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.5, 0.5]])
    first = similarity("mean", "abcd", vectors)
    again, other = similarity("cls", "abcd", vectors * 3), similarity("sep", "abcd", vectors[::-1])
    assert describe_similar_texts([first, again]) == (
        "mean and cls agree: their rankings of 6 pairs have a correlation of 1.00."
    )
    assert "mean and sep see different things: " in describe_agreement(first, other)


def ranked(method: str, *products: float) -> Similarity:
    """Of four texts, the products of the pairs 1-2, 1-3, 1-4, 2-3, 2-4, 3-4."""
    matrix = np.eye(4, dtype=np.float32)
    matrix[np.triu_indices(4, k=1)] = products
    return Similarity(method, tuple("abcd"), np.maximum(matrix, matrix.T), np.zeros(4))


def test_of_several_methods_those_that_agree_most_and_least_are_named() -> None:
    mean = ranked("mean", 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    cls = ranked("cls", 0.9, 0.8, 0.7, 0.6, 0.4, 0.5)
    neural = ranked("neural, fast", 0.1, 0.2, 0.4, 0.3, 0.5, 0.6)
    said = describe_similar_texts([mean, neural, cls])
    assert said == (
        "mean and cls agree most (0.94) and mean and neural least (−0.94), by the correlation of "
        "their rankings of 6 pairs. mean and neural differ most on texts 1 and 2: rank 1 by mean, "
        "6 by neural."
    )
    assert least_alike([mean, neural, cls]) == (0, 1)
    assert least_alike([mean, cls, neural]) == (0, 2)
    assert furthest_apart(mean, neural) == (0, 1)
    alike = [ranked(name, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4) for name in ("mean", "cls", "max")]
    assert describe_similar_texts(alike) == (
        "Any two methods agree about equally: their rankings of 6 pairs have a correlation of 1.00."
    )
    level = ranked("sep", *[0.5] * 6)
    assert describe_similar_texts([level, mean, cls]).startswith(
        "mean and cls agree: their rankings"
    )
    assert least_alike([level, mean, cls]) == (1, 2)
    assert least_alike([level, level, level]) == (0, 1)
    nothing = ranked("sep", *[np.nan] * 6)
    assert furthest_apart(nothing, mean) is None


def test_one_pair_is_named_once() -> None:
    one = similarity("mean", "ab", np.eye(2))
    assert describe_similar_texts([one]) == "By mean, texts 1 and 2 are most similar (0.00)."
    assert describe_similar_texts([one, similarity("cls", "ab", np.eye(2))]) == (
        "mean and cls cannot be compared on so few different pairs."
    )
    equal = similarity("cls", "abc", np.ones((3, 2)))
    assert describe_similar_texts([equal]) == "By cls, all 3 pairs are equally similar (1.00)."
    assert "cannot be compared" in describe_agreement(equal, equal)


def test_nothing_is_said_of_nothing_and_of_what_is_under_way() -> None:
    assert describe_similar_texts([]) == ""
    vectors = np.full((20, 2), np.nan)
    none = similarity("mean", ["x"] * 20, vectors)
    assert describe_similar_texts([none], {"topic": TOPIC}) == ""
    half = by_label("cls", TOPIC)
    products = half.products.copy()
    products[10:] = products[:, 10:] = np.nan
    under_way = Similarity("mean", half.texts, products, half.zeros)
    assert describe_similar_texts([under_way, half], {"topic": TOPIC}) == (
        "mean puts every text next to one of the same topic (cls: 100%)."
    )


def test_the_widest_and_the_narrowest() -> None:
    wide, narrow = similarity("mean", "abc", np.eye(3)[[0, 0, 1]]), by_label("neural, fast", TOPIC)
    assert describe_spread([wide]) == "mean spreads the pairs with a standard deviation of 0.47."
    assert describe_spread([narrow, wide]).startswith(
        "mean spreads the pairs widest (standard deviation 0.47), neural least (0.4"
    )
    assert describe_spread([wide, replace(wide, method="cls")]) == (
        "Both methods spread the pairs about equally (standard deviation 0.47)."
    )


def test_methods_are_said_without_precision_where_that_is_clear() -> None:
    assert short_labels(["mean", "neural, fast"]) == ("mean", "neural")
    both = ("neural, fast, 1 epoch", "neural, fast")
    assert short_labels(both) == both
    assert short_labels(["neural, fast", "neural, exact"]) == ("neural, fast", "neural, exact")
