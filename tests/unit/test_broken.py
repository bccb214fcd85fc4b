"""Counts of broken relations against enumeration, one triplet after the other."""

from __future__ import annotations

import itertools
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.evaluation import broken, triplets
from neuralviz.evaluation.broken import TIE, count_pairs, shared_pairs, unit_rows
from neuralviz.evaluation.triplets import Grouping, count_triplets, shared_triplets, worst_triplets


def triplets_of(grouping: Grouping) -> list[tuple[int, int, int]]:
    """All of them, as section 3.2 says it."""
    group, anchor = grouping.group, grouping.anchor
    found = []
    for a, b, c in itertools.product(range(len(group)), repeat=3):
        has_roles = anchor is None or (anchor[a] and not anchor[b] and not anchor[c])
        if has_roles and b != a and group[b] == group[a] and group[c] != group[a]:
            found.append((a, b, c))
    return found


def enumerated(vectors: np.ndarray, grouping: Grouping):
    units = unit_rows(vectors)
    wrong, strict, same, diff = set(), set(), [], []
    for a, b, c in triplets_of(grouping):
        alike, unlike = float(units[a] @ units[b]), float(units[a] @ units[c])
        same.append(alike)
        diff.append(unlike)
        if alike - unlike < TIE:
            wrong.add((a, b, c))
        if unlike - alike >= TIE:
            strict.add((a, b, c))
    return wrong, strict, same, diff


@st.composite
def grouped(draw) -> tuple[np.ndarray, np.ndarray, Grouping]:
    """Two methods' vectors, with many ties, and groups of any size."""
    n = draw(st.integers(3, 14))
    group = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    anchor = None
    if draw(st.booleans()):
        anchor = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    values = st.lists(st.integers(-2, 2), min_size=3 * n, max_size=3 * n)
    one, other = (np.array(draw(values), dtype=float).reshape(n, 3) for _ in range(2))
    return one, other, Grouping(group, anchor)


@settings(max_examples=120, deadline=None)
@given(case=grouped(), block=st.sampled_from([1, 7, 1 << 22]))
def test_triplets_are_those_of_enumeration(case, block: int) -> None:
    one, other, grouping = case
    first, second = enumerated(one, grouping), enumerated(other, grouping)
    assert grouping.n_triplets == len(first[2])
    if not first[2]:
        with pytest.raises(NeuralvizError):
            count_triplets(one, grouping)
        with pytest.raises(NeuralvizError):
            shared_triplets([one, other], grouping)
        return
    with patch.object(broken, "BLOCK", block), patch.object(triplets, "BLOCK", block):
        counted = count_triplets(one, grouping).together
        overlap = shared_triplets([one, other], grouping)
    assert (counted.wrong, counted.wrong_strict) == (len(first[0]), len(first[1]))
    assert counted.total == len(first[2])
    assert counted.same == pytest.approx(np.mean(first[2]), abs=1e-12)
    assert counted.diff == pytest.approx(np.mean(first[3]), abs=1e-12)
    both = len(first[0] & second[0])
    assert overlap.shared.tolist() == [[len(first[0]), both], [both, len(second[0])]]
    fewer = min(len(first[0]), len(second[0]))
    share = overlap.share[0, 1]
    assert share == pytest.approx(both / fewer) if fewer else np.isnan(share)


@settings(max_examples=80, deadline=None)
@given(case=grouped(), block=st.sampled_from([1, 7, 1 << 22]))
def test_the_worst_triplet_of_each_anchor_is_that_of_enumeration(case, block: int) -> None:
    vectors, _, grouping = case
    units = unit_rows(vectors)
    known = set(triplets_of(grouping))
    if not known:
        return
    gaps: dict[int, float] = {}
    for a in {a for a, _, _ in known}:
        far = min(units[a] @ units[b] for first, b, _ in known if first == a)
        near = max(units[a] @ units[c] for first, _, c in known if first == a)
        gaps[a] = float(far - near)
    with patch.object(triplets, "BLOCK", block):
        found = worst_triplets(vectors, grouping, np.arange(len(vectors)), 5)
    expected = sorted(gap for gap in gaps.values() if gap < TIE)[:5]
    assert (found.alike - found.unlike).tolist() == pytest.approx(expected, abs=1e-12)
    assert len(set(found.anchor.tolist())) == len(found)
    for a, b, c, alike, unlike in zip(
        found.anchor, found.positive, found.negative, found.alike, found.unlike, strict=True
    ):
        assert (a, b, c) in known
        assert alike == pytest.approx(units[a] @ units[b], abs=1e-12)
        assert unlike == pytest.approx(units[a] @ units[c], abs=1e-12)


def test_a_text_that_is_in_two_groups_is_not_the_worst_of_itself() -> None:
    #              a a' | b c | a d: the first text once more, in another group
    vectors = np.array([[1, 0], [1, 0.5], [0.9, 0.3], [0, 1], [1, 0], [0.2, 1]])
    grouping = Grouping(np.array([0, 0, 1, 1, 2, 2]))
    texts = np.array([0, 1, 2, 3, 0, 4])
    assert count_triplets(vectors, grouping).together.wrong > 0
    found = worst_triplets(vectors, grouping, texts, 9)
    words = np.stack([found.anchor, found.positive, found.negative], axis=1)
    assert all(len(set(triplet)) == 3 for triplet in words.tolist())
    assert len(set(words[:, 0].tolist())) == len(found) == 5  # the text that is there twice once


@settings(max_examples=80, deadline=None)
@given(data=st.data(), n_similar=st.integers(1, 9), n_dissimilar=st.integers(1, 9))
def test_pairs_are_those_of_enumeration(data, n_similar: int, n_dissimilar: int) -> None:
    def draw(n: int) -> np.ndarray:
        return np.array(data.draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))) / 4

    methods = [(draw(n_similar), draw(n_dissimilar)) for _ in range(2)]
    sets = []
    for alike, unlike in methods:
        pairs = list(itertools.product(range(n_similar), range(n_dissimilar)))
        wrong = {(i, j) for i, j in pairs if alike[i] - unlike[j] < TIE}
        strict = {(i, j) for i, j in pairs if unlike[j] - alike[i] >= TIE}
        counted = count_pairs(alike, unlike)
        assert (counted.wrong, counted.wrong_strict) == (len(wrong), len(strict))
        assert counted.total == len(pairs)
        assert counted.same == pytest.approx(alike.mean())
        assert counted.diff == pytest.approx(unlike.mean())
        sets.append(wrong)
    overlap = shared_pairs([a for a, _ in methods], [u for _, u in methods])
    both = len(sets[0] & sets[1])
    assert overlap.shared.tolist() == [[len(sets[0]), both], [both, len(sets[1])]]


def test_rounding_is_a_tie_and_a_tie_is_broken() -> None:
    alike, unlike = np.array([0.5]), np.array([0.5 + 5e-8])
    for one, other in ((alike, unlike), (unlike, alike)):
        counted = count_pairs(one, other)
        assert (counted.wrong, counted.wrong_strict) == (1, 0)
    assert count_pairs([0.5], [0.5 + 2e-7]).wrong_strict == 1
    assert count_pairs([0.5 + 2e-7], [0.5]).wrong == 0


@pytest.mark.parametrize(
    ("group", "anchor", "said"),
    [
        ([0, 0, 0], None, "All texts are in one group"),
        ([0, 1, 2], None, "has only one text"),
        ([0, 0, 1, 1], [True] * 4, "No anchor has both a positive and a negative"),
    ],
)
def test_data_without_triplets(group, anchor, said: str) -> None:
    anchors = None if anchor is None else np.array(anchor)
    with pytest.raises(NeuralvizError, match=said):
        count_triplets(np.eye(len(group)), Grouping(np.array(group), anchors))


def test_broken_vectors_are_refused() -> None:
    vectors = np.eye(4)
    vectors[1, 1] = np.nan
    with pytest.raises(NeuralvizError, match="1 of 4 embeddings"):
        count_triplets(vectors, Grouping(np.array([0, 0, 1, 1])))


def test_too_many_are_refused_in_words() -> None:
    grouping = Grouping(np.arange(40) // 2)
    vectors = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(NeuralvizError, match="too many to find shared errors"):
        shared_triplets([vectors, vectors], grouping, max_compared=100)
    with pytest.raises(NeuralvizError, match="too many to find shared errors"):
        shared_pairs([vectors[:, 0]] * 2, [vectors[:, 1]] * 2, max_compared=100)
    with pytest.raises(NeuralvizError, match="40 texts make too many triplets"):
        grouping.check(max_products=100)


def test_counting_can_be_stopped(monkeypatch) -> None:
    for module in (broken, triplets):
        monkeypatch.setattr(module, "BLOCK", 100)
    vectors, grouping = np.random.default_rng(0).normal(size=(40, 3)), Grouping(np.arange(40) // 2)
    pairs = [vectors[:, 0]] * 2, [vectors[:, 1]] * 2
    asked = []
    for work in (
        lambda stop: count_triplets(vectors, grouping, should_stop=stop),
        lambda stop: shared_triplets([vectors] * 2, grouping, should_stop=stop),
        lambda stop: shared_pairs(*pairs, should_stop=stop),
    ):
        asked.clear()
        with pytest.raises(Stopped):
            work(lambda: asked.append(1) or len(asked) > 2)
        assert len(asked) == 3


def test_all_triplets_of_3949_texts_are_counted() -> None:
    """The number that the paper has for ASSET; memory stays below that of all products."""
    group = np.repeat(np.arange(359), 11)
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(359, 16))[group] + 0.8 * draw.normal(size=(3949, 16))
    tracemalloc.start()
    counted = count_triplets(vectors.astype(np.float32), Grouping(group)).together
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counted.total == 155_511_620
    assert 0 < counted.wrong_strict <= counted.wrong < counted.total
    assert peak < 3949**2 * 8
