"""Clusters of points, and the words they are named by."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.maps.clusters import Clusters, find_clusters, name_clusters

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
@pytest.mark.parametrize("sizes", [(60, 60, 60), (150, 20, 10), (8, 6, 5)])
def test_clusters_are_named_by_their_own_words_not_by_those_of_the_language(common, sizes):
    topics, clusters = in_topics(dict(zip(TOPICS, sizes, strict=True)))
    names = name_clusters(texts_of(topics, common), clusters)
    assert [len(words) for words in names] == [4, 4, 4]
    own = [len(set(words) & set(TOPICS[topic])) for topic, words in zip(TOPICS, names, strict=True)]
    assert sum(own) >= 11 if min(sizes) < 10 else own == [4, 4, 4]


def test_the_order_is_that_of_class_tf_idf():
    """Shares 3/6, 2/6 and 1/6 … of 4-word clusters; ``rare`` stands in one text alone."""
    texts = ["alpha beta", "alpha beta", "alpha rare", "gamma delta", "gamma delta", "gamma delta"]
    clusters = Clusters(np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), 2)
    assert name_clusters(texts, clusters) == (("alpha", "beta"), ("delta", "gamma"))
    assert name_clusters(texts, clusters, n_words=1) == (("alpha",), ("delta",))


def test_words_of_any_script_name_a_cluster_and_texts_without_words_none():
    groups = [
        ["Тихий океан", "океан шумит"],
        ["我喜欢猫咪", "猫咪睡觉"],
        ["🎉🎉🎉", "🎉 2024 !!"],
        ["हिन्दी भाषा", "सरल हिन्दी"],
        ["L’eau claire", "l'eau froide"],
    ]
    clusters = Clusters(np.repeat(np.arange(5), 2).astype(np.int32), 5)
    names = name_clusters([text for group in groups for text in group], clusters)
    assert names == (("океан",), ("猫咪",), (), ("हिन्दी",), ("eau",))
