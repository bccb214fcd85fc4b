"""Groups that one method holds together and the other does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2
from scipy.stats import hypergeom, mannwhitneyu

from neuralviz.arrays import unit_vectors
from neuralviz.errors import Stopped
from neuralviz.maps.groups import LEVEL, HeldGroup, Traits, find_held_groups, find_traits
from neuralviz.maps.shares import compute_chance

BOILERPLATE = "Please do not reply to this e-mail; quote the number below."
WORDS = [f"w{n}" for n in range(60)]


def draw_texts(draw: np.random.Generator, n: int) -> list[str]:
    return [" ".join(draw.choice(WORDS, draw.integers(4, 14))) for _ in range(n)]


def tickets(seed: int) -> tuple[list[np.ndarray], list[np.ndarray], list[str]]:
    """By one method 160 texts are of ten topics; the other has the first 20, one text, apart."""
    draw = np.random.default_rng(seed)
    topics = draw.integers(10, size=160)
    is_long = np.arange(160) < 20
    by_topic = draw.normal(size=(10, 32))[topics] + 0.3 * draw.normal(size=(160, 32))
    by_form = by_topic.copy()
    by_form[is_long] = draw.normal(size=32) + 0.2 * by_form[is_long]
    texts = draw_texts(draw, 160)
    texts[:20] = [f"{BOILERPLATE} {text} {text}" for text in texts[:20]]
    return [by_topic, by_form], [topics, np.where(is_long, 10, topics)], texts


def test_what_one_method_alone_holds_together_is_found_with_what_it_shares():
    vectors, clusters, texts = tickets(0)
    (group,) = find_held_groups(vectors, clusters, texts)
    assert (group.place, group.cluster) == (1, 10)
    assert group.traits.phrase == BOILERPLATE[:-1]
    assert group.traits.words
    assert all(word in BOILERPLATE.lower() for word in group.traits.words)
    assert group.traits.lengths is not None
    assert group.traits.lengths[0] > 2 * group.traits.lengths[1]
    for place, within in zip((1, 0), group.within, strict=True):
        cosines = unit_vectors(vectors[place]) @ unit_vectors(vectors[place]).T
        pairs = cosines[np.triu_indices(160, k=1)]
        mean = cosines[:20, :20][np.triu_indices(20, k=1)].mean()
        assert within == pytest.approx((mean - pairs.mean()) / pairs.std(), abs=1e-3)
    (turned,) = find_held_groups(vectors[::-1], clusters[::-1], texts)
    assert (turned.place, turned.cluster, turned.traits) == (0, 10, group.traits)
    with pytest.raises(Stopped):
        find_held_groups(vectors, clusters, texts, lambda: True)


def test_a_cosine_that_is_stretched_is_no_difference():
    """A method whose cosines lie in a narrow band holds the same clusters together."""
    vectors, clusters, texts = tickets(1)
    narrow = np.hstack([unit_vectors(vectors[1]), np.full((160, 1), 3.0)])
    cosines = unit_vectors(narrow) @ unit_vectors(narrow).T
    assert cosines.min() > 0.7
    assert find_held_groups([vectors[1], narrow], [clusters[1]] * 2, texts) == ()


def check_none(groups: tuple[HeldGroup, ...]) -> None:
    assert groups == ()


@pytest.mark.parametrize("seed", range(5))
def test_permuted_texts_and_random_vectors_decide_nothing(seed: int):
    """Clusters of one method's own noise are tight by it alone, but have no words of their own."""
    draw = np.random.default_rng(seed)
    vectors, clusters, texts = tickets(seed)
    check_none(find_held_groups(vectors, clusters, draw.permutation(texts).tolist()))
    check_none(find_held_groups(vectors, list(map(draw.permutation, clusters)), texts))
    for dim in (2, 8, 64):
        noise = [unit_vectors(draw.normal(size=(120, dim))) for _ in range(2)]
        tight = [kmeans2(values, 8, minit="++", seed=seed)[1] for values in noise]
        check_none(find_held_groups(noise, tight, draw_texts(draw, 120)))


def test_no_clusters_and_equal_texts_decide_nothing():
    vectors, clusters, texts = tickets(0)
    none = np.full(160, -1)
    check_none(find_held_groups(vectors, [none, none], texts))
    check_none(find_held_groups([np.ones((160, 3))] * 2, clusters, texts))
    check_none(find_held_groups(vectors, clusters, ["the same text"] * 160))


def test_chances_are_those_of_the_hypergeometric_distribution():
    small = [(5, 5, 5, 60), (3, 20, 30, 300), (2, 20, 30, 300), (1, 20, 30, 300), (0, 4, 9, 10)]
    millions = [(165_000, 300_000, 600_000, 10**6), (5150, 10_000, 500_000, 10**6)]
    for n_common, n_drawn, n_marked, n in small + millions:
        exact = hypergeom.sf(n_common - 1, n, n_marked, n_drawn)
        assert compute_chance(n_common, n_drawn, n_marked, n) == pytest.approx(
            exact, rel=1e-6 if n > 300 else 1e-9
        )


def test_traits_hold_where_chance_does_not_explain_them():
    draw = np.random.default_rng(0)
    inside = np.arange(100) < 15
    plain = draw_texts(draw, 100)
    assert find_traits(plain, inside) == Traits()
    marked = [f"{text} alpha" if i < 14 else text for i, text in enumerate(plain)]
    assert find_traits(marked, inside).words == ("alpha",)
    assert find_traits([f"{text} alpha" for text in plain], inside) == Traits()
    phrased = [f"One, TWO three! {text}" if i < 12 else text for i, text in enumerate(plain)]
    assert find_traits(phrased, inside).phrase == "One, TWO three"
    assert find_traits([*phrased[:11], *plain[11:]], inside).phrase == ""  # 11 of 15 are too few
    alike = [
        f"{text} has been sent in {'May' if i < 15 else 'June'}" for i, text in enumerate(plain)
    ]
    assert find_traits(alike, inside) == Traits(words=("may",))  # not what all texts have
    two = [f"{text} zulu yoke xray" if i < 12 else text for i, text in enumerate(phrased)]
    more = [f"one two three . {text}" if 12 <= i < 15 else text for i, text in enumerate(two)]
    assert find_traits(more, inside).phrase == "One, TWO three"  # of two, the more frequent
    halves = [f"{text} beta" if i < 8 else text for i, text in enumerate(plain)]
    assert find_traits(halves, inside).words == ()  # half of the texts do not share a word
    for text, expected in (("列車", ("列車",)), ("ট্রেন দেরি", ("ট্রেন", "দেরি"))):
        foreign = [f"{text} {other}" if i < 15 else other for i, other in enumerate(plain)]
        assert set(expected) <= set(find_traits(foreign, inside).words)
    lengths = np.array([len(text.split()) for text in plain])
    doubled = [f"{text} {text}" if i < 15 else text for i, text in enumerate(plain)]
    lengths[inside] *= 2
    assert mannwhitneyu(lengths[inside], lengths[~inside]).pvalue < LEVEL
    assert find_traits(doubled, inside).lengths == (
        int(np.median(lengths[inside])),
        int(np.median(lengths[~inside])),
    )
