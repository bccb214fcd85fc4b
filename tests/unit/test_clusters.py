"""Clusters of points, and the words they are named by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from neuralviz.maps.clusters import UNNAMED, Clusters, cluster_names, find_clusters, name_clusters
from neuralviz.maps.example import RECORDED
from neuralviz.paths import sample_data

TOPICS = {
    "garden": "tomatoes seeds soil compost watering roses spade greenhouse".split(),
    "kitchen": "oven dough butter recipe saucepan simmer flour baking".split(),
    "harbour": "ship anchor crane captain cargo docks tide vessel".split(),
}
ENGLISH = "the of and a to in is that it was for on with as at by from they have this".split()
GERMAN = "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als".split()


def blobs(*sizes: int, noise: int = 0, dimensions: int = 2, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    groups = [
        rng.normal(size=(size, dimensions)) * 0.3 + 8 * number for number, size in enumerate(sizes)
    ]
    return np.concatenate([*groups, rng.uniform(-60, -20, size=(noise, dimensions))])


def texts_of(topics: list[str], common: list[str], seed: int = 0) -> list[str]:
    """For each topic a text: two thirds common words, a third its own."""
    rng = np.random.default_rng(seed)
    frequent = rng.dirichlet(np.full(len(common), 2.0))
    return [
        " ".join([*rng.choice(common, 12, p=frequent), *rng.choice(TOPICS[topic], 6)])
        for topic in topics
    ]


def in_topics(sizes: dict[str, int]) -> tuple[list[str], Clusters]:
    topics = [topic for topic, size in sizes.items() for _ in range(size)]
    labels = np.repeat(np.arange(len(sizes)), list(sizes.values())).astype(np.int32)
    return topics, Clusters(labels, len(sizes))


@pytest.mark.parametrize("dimensions", [2, 3])
def test_clusters_are_numbered_by_size_and_points_far_off_are_in_none(dimensions):
    coordinates = blobs(40, 90, 60, noise=4, dimensions=dimensions)
    before = coordinates.copy()
    clusters = find_clusters(coordinates.astype(np.float32))
    assert clusters.labels.dtype == np.int32
    expected = np.repeat([2, 0, 1, -1], [40, 90, 60, 4])
    assert (clusters.labels == expected).mean() > 0.95
    assert clusters.n == 3
    sizes = [(clusters.labels == cluster).sum() for cluster in range(3)]
    assert sizes == sorted(sizes, reverse=True)
    assert (clusters.labels[-4:] == -1).all()
    np.testing.assert_array_equal(coordinates, before)
    np.testing.assert_array_equal(find_clusters(coordinates.astype(np.float32)).labels,
                                  clusters.labels)  # fmt: skip


def test_one_large_cloud_is_looked_into():
    beside = np.array([1.2, 0])
    near = np.concatenate([blobs(200, seed=1), blobs(200, seed=2) + beside, blobs(50) + 80])
    assert find_clusters(near).n == 3


def test_points_at_one_place_are_a_cluster_and_never_torn() -> None:
    cloud = np.random.default_rng(0).normal(size=(40, 2))
    pile = np.zeros((30, 2))
    clusters = find_clusters(np.concatenate([cloud + 9, pile, cloud - 9]))
    assert set(clusters.labels[40:70]) == {int(clusters.labels[40])} != {-1}
    assert clusters.n == 3
    assert np.bincount(clusters.labels[clusters.labels >= 0]).min() >= 30
    few = np.concatenate([cloud, cloud[:10], cloud[:10], cloud + 20])
    labels = find_clusters(few).labels
    np.testing.assert_array_equal(labels[:10], labels[40:50])
    np.testing.assert_array_equal(labels[:10], labels[50:60])
    only = find_clusters(np.concatenate([np.ones((54, 3)), cloud[:6, [0, 1, 0]]]))
    assert (only.n, (only.labels == 0).sum()) == (1, 54)


def test_of_very_many_points_the_clusters_are_those_of_a_sample():
    clusters = find_clusters(blobs(500, 900, 600, noise=4), most_points=400)
    expected = np.repeat([2, 0, 1, -1], [500, 900, 600, 4])
    assert clusters.n == 3
    assert (clusters.labels == expected)[:2000].mean() > 0.97


@pytest.mark.parametrize("common", [ENGLISH, GERMAN], ids=["English", "German"])
@pytest.mark.parametrize("sizes", [(60, 60, 60), (150, 20, 10), (10, 8, 7)])
def test_clusters_are_named_by_their_own_words_not_by_those_of_the_language(common, sizes):
    topics, clusters = in_topics(dict(zip(TOPICS, sizes, strict=True)))
    names = name_clusters(texts_of(topics, common), clusters)
    assert [len(words) for words in names] == [4, 4, 4]
    own = [len(set(words) & set(TOPICS[topic])) for topic, words in zip(TOPICS, names, strict=True)]
    assert sum(own) >= 11 if min(sizes) < 10 else own == [4, 4, 4]


def test_the_order_is_that_of_class_tf_idf():
    """Shares 9/18, 8/18 and 1/18; ``rare`` stands in one text alone.

    *delta* and *gamma* are equally frequent: they are in the order of the texts.
    """
    texts = [*["alpha beta"] * 8, "alpha rare", *["gamma delta"] * 9]
    clusters = Clusters(np.repeat(np.arange(2), 9).astype(np.int32), 2)
    assert name_clusters(texts, clusters) == (("alpha", "beta"), ("gamma", "delta"))
    assert name_clusters(texts, clusters, n_words=1) == (("alpha",), ("delta",))


def test_scores_without_a_preference_are_those_of_scikit_learn_and_numpy():
    """Class TF-IDF of a count matrix (Grootendorst 2022), in a language without the preference."""
    topics, clusters = in_topics({"garden": 40, "kitchen": 30, "harbour": 20})
    texts = texts_of(topics, GERMAN)
    counter = CountVectorizer(token_pattern=r"\w\w+")
    counts = counter.fit_transform(texts).toarray()
    by_cluster = np.stack([counts[clusters.labels == c].sum(axis=0) for c in range(3)])
    frequency = by_cluster / by_cluster.sum(axis=1, keepdims=True)
    scores = frequency * np.log1p(by_cluster.sum() / 3 / by_cluster.sum(axis=0))
    words = counter.get_feature_names_out()
    for row, name in zip(scores, name_clusters(texts, clusters), strict=True):
        best = [word for word in words[np.argsort(-row)] if word not in GERMAN]
        assert set(name[:2]) == set(best[:2])
        assert list(name[2:]) == best[2:4]


def test_nouns_name_a_cluster_before_verbs_and_adjectives_and_no_word_twice():
    groups = (
        "My mail gets hot with a bounce error again. The bounce error comes from the server.",
        "Two files come back from the scanner. It comes with a file for the scanner, not hot.",
        "I want a refund for my invoice. We want the refunds of this invoice now.",
    )
    clusters = Clusters(np.repeat(np.arange(3), 4).astype(np.int32), 3)
    texts = [f"{text} It was the {i}th of them." for text in groups for i in range(4)]
    names = cluster_names(name_clusters(texts, clusters))
    assert names == ("bounce error", "scanner file", "invoice refund")


def test_texts_in_clusters_by_accident_give_these_no_name():
    draw = np.random.default_rng(0)
    own_words = ["printer", "invoice", "folder", "mailbox", "account", "phone"]
    near_duplicates = [
        f"The message to customer {i} about the {draw.choice(own_words)} was not delivered."
        for i in range(300)
    ]
    for _ in range(5):
        by_accident = Clusters(draw.permutation(np.arange(300) % 12).astype(np.int32), 12)
        assert sum(map(bool, name_clusters(near_duplicates, by_accident))) <= 1
    topics = pd.read_csv(sample_data() / "topics.csv")["text"].tolist()
    labels = np.load(sample_data() / RECORDED)["clusters-0"]
    given = Clusters(labels, int(labels.max()) + 1)
    assert sum(map(bool, name_clusters(topics, given))) >= 9
    n_named = 0
    for _ in range(20):
        permuted = Clusters(draw.permutation(given.labels), given.n)
        n_named += sum(map(bool, name_clusters(topics, permuted)))
    assert n_named <= 10  # of 220


def test_names_of_two_words_are_told_apart_by_a_third():
    words = [("mail", "error", "bounce"), ("mail", "error", "login"), (), ("mail",), ("mail",)]
    assert cluster_names(words) == ("mail error", "mail error login", UNNAMED, "mail", "mail")
    words = [("wi-fi", "device"), ("battery", "device"), ("device", "case"), ("app", "wi-fi")]
    assert cluster_names(words) == ("wi-fi", "battery", "device case", "app")


def test_words_of_any_script_name_a_cluster_and_texts_without_words_none():
    groups = [
        ["Тихий океан", "океан шумит", *["океан"] * 6],
        ["我喜欢猫咪", "猫咪睡觉", *["猫咪"] * 6],
        ["🎉🎉🎉", "🎉 2024 !!", *["🎉"] * 6],
        ["हिन्दी भाषा", "सरल हिन्दी", *["हिन्दी"] * 6],
        ["L’eau claire", "l'eau froide", *["l'eau"] * 6],
        ["Wi-Fi 2024-05-06", "wi-fi - off", *["Wi-Fi 2024-05-06"] * 6],
    ]
    clusters = Clusters(np.repeat(np.arange(6), 8).astype(np.int32), 6)
    names = name_clusters([text for group in groups for text in group], clusters)
    assert names == (("океан",), ("猫咪",), (), ("हिन्दी",), ("eau",), ("wi-fi",))
