"""Near-duplicates: pairs at a threshold, the threshold, and which texts are kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from neuralviz.arrays import unit_vectors
from neuralviz.errors import SettingsError, Stopped, StoreError, TextError
from neuralviz.maps import duplicates
from neuralviz.maps.duplicates import (
    ROUNDING,
    SimilarPairs,
    find_pairs,
    group_duplicates,
    group_texts,
    name_difference,
    removed_table,
    share_wording,
    span_texts,
    suggest_threshold,
)
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.importing import import_vectors
from neuralviz.store.vectors import KeptEmbedder

RIVER = "The river rose overnight and the lower meadows were under water in the morning."
BREAD = "Bread needs flour, water, salt and a little patience while the dough is rising."


def clouds(n: int, seed: int = 0, spread: float = 0.5) -> np.ndarray:
    """[n, 6] vectors around a fifth as many centres, and copies of the first seven."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(n // 5, 6))
    vectors = centres[draw.integers(n // 5, size=n)] + spread * draw.normal(size=(n, 6))
    vectors[-7:] = vectors[:7]
    return vectors


def all_cosines(vectors: np.ndarray) -> np.ndarray:
    units = unit_vectors(vectors)
    return units @ units.T


def pairs_of(vectors: np.ndarray) -> SimilarPairs:
    no_copies = np.zeros(len(vectors), dtype=bool)
    return SimilarPairs(len(vectors), *span_texts(vectors), no_copies, None)


def keep(vectors: np.ndarray, threshold: float, texts: list[str], *more) -> duplicates.KeptTexts:
    def read_texts(rows: np.ndarray) -> list[str]:
        return [texts[row] for row in rows]

    return group_texts(pairs_of(vectors), threshold, lambda rows: vectors[rows], read_texts, *more)


@pytest.mark.parametrize(("held", "rows"), [(duplicates.HELD, 1024), (500, 64), (1, 70)])
@pytest.mark.parametrize("spread", [0.5, 0.01, 5.0])
def test_a_few_pairs_connect_what_all_pairs_do_at_any_threshold(held, rows, spread, monkeypatch):
    """Also where pairs are thinned out on the way, and of blocks smaller than the texts."""
    monkeypatch.setattr(duplicates, "HELD", held)
    monkeypatch.setattr(duplicates, "ROWS", rows)
    monkeypatch.setattr(duplicates, "COLUMNS", 50)
    vectors = clouds(200, spread=spread)
    pairs, cosines = pairs_of(vectors), all_cosines(vectors)
    others = np.where(np.eye(200, dtype=bool), -2, cosines)
    assert (np.diff(pairs.cosines) <= 0).all()
    for threshold in (-1, 0.3, 0.8, 0.95, 0.999, 1):
        limit = threshold - ROUNDING
        n_pairs = pairs.count(threshold)
        ends = pairs.first[:n_pairs], pairs.second[:n_pairs]
        graph = csr_array((np.ones(n_pairs), ends), shape=(200, 200))
        number, groups = connected_components(graph, directed=False)
        expected_number, expected = connected_components(csr_array(cosines >= limit))
        assert number == expected_number == len(set(zip(groups, expected, strict=True)))
        has_duplicate = pairs.has_duplicate(threshold)
        np.testing.assert_array_equal(has_duplicate, others.max(axis=1) >= limit)
        around = pairs.cosines[pairs.places_around(threshold, 2)]
        assert sorted(around >= limit, reverse=True) == list(around >= limit)


@pytest.mark.parametrize("rule", duplicates.RULES)
@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
def test_no_kept_texts_are_duplicates_and_each_removed_one_is_of_the_text_kept_for_it(
    rule: str, threshold: float, monkeypatch
):
    monkeypatch.setattr(duplicates, "ROWS", 32)
    vectors, cosines = clouds(150, 1), all_cosines(clouds(150, 1))
    texts = ["x" * n for n in np.random.default_rng(2).integers(1, 30, 150).tolist()]
    kept = keep(vectors, threshold, texts, rule, (40, 9))
    sign = {"longest": -1, "shortest": 1, "first": 0}[rule]
    order = sorted(range(150), key=lambda i: (i not in (40, 9), sign * len(texts[i]), i))
    heads: list[int] = []  # of a plain loop
    for i in order:
        if all(cosines[i, j] < threshold - ROUNDING for j in heads):
            heads.append(i)
    assert kept.remaining.tolist() == sorted(heads)
    assert 9 in heads
    for i in kept.removed:
        assert kept.kept[i] == max(heads, key=lambda j: cosines[i, j])
        assert kept.cosines[i] == pytest.approx(cosines[i, kept.kept[i]], abs=1e-6)
    assert (
        sorted(np.concatenate(kept.groups))
        == np.flatnonzero(np.bincount(kept.kept, minlength=150)[kept.kept] > 1).tolist()
    )
    sizes = list(map(len, kept.groups))
    assert sizes == sorted(sizes, reverse=True)


def test_a_chain_is_cut_where_its_ends_are_apart():
    """Of 41 texts, each 3° from the next, those within 10° of a kept one are removed."""
    angles = np.radians(3 * np.arange(41))
    chain = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    kept = keep(chain, float(np.cos(np.radians(10))), ["x"] * 41)
    assert kept.remaining.tolist() == list(range(0, 41, 4))
    assert keep(chain, 1.0, ["x"] * 41).groups == []


def test_all_texts_may_be_duplicates_and_a_zero_vector_is_none():
    vectors = np.ones((3000, 4)) + 0.001 * np.random.default_rng(0).normal(size=(3000, 4))
    vectors[7] = 0
    kept = keep(vectors, 0.99, ["x"] * 3000)
    assert kept.remaining.tolist() == [0, 7]
    assert list(map(len, kept.groups)) == [2999]


def test_a_large_corpus_of_forms_and_edits_has_as_many_duplicates_as_its_pairs_say():
    """Forms of twenty equals at 0.999, and pairs at 0.97 that no text's tenth neighbour reaches."""
    draw = np.random.default_rng(0)
    forms = np.repeat(draw.normal(size=(60, 128)), 20, axis=0)
    vectors = np.concatenate([forms, np.repeat(draw.normal(size=(600, 128)), 2, axis=0)])
    vectors += np.repeat([0.02, 0.12], 1200)[:, None] * draw.normal(size=vectors.shape)
    pairs, cosines = pairs_of(vectors), all_cosines(vectors) - 2 * np.eye(2400)
    for threshold in (0.999, 0.96, 0.5):
        expected = cosines.max(axis=1) >= threshold - ROUNDING
        np.testing.assert_array_equal(pairs.has_duplicate(threshold), expected)
    assert pairs.has_duplicate(0.96).mean() > 0.99


def test_a_stop_ends_the_comparison_and_the_grouping():
    vectors = clouds(100)
    with pytest.raises(Stopped):
        span_texts(vectors, should_stop=lambda: True)
    with pytest.raises(Stopped):
        group_texts(
            pairs_of(vectors), 0.5, lambda rows: vectors[rows], lambda rows: ["x"] * len(rows),
            should_stop=lambda: True,
        )  # fmt: skip


# --- the threshold -------------------------------------------------------------------------------


def edited(n: int) -> list[str]:
    """Texts of random letters, of which every third is the one before with one word changed."""
    draw = np.random.default_rng(0)
    texts: list[str] = []
    for i in range(n):
        words = ["".join(draw.choice(list("abcdefghij"), 5)) for _ in range(12)]
        texts.append(texts[-1].replace(texts[-1][6:11], "other") if i % 3 == 2 else " ".join(words))
    return texts


@pytest.mark.parametrize("n_twins", [20, 80, 90, 100])
def test_near_duplicates_are_found_however_many_texts_have_one(n_twins):
    draw, drawn = np.random.default_rng(0), edited(300)
    twins = [text for i, text in enumerate(drawn) if i % 3]
    texts = twins[:n_twins] + drawn[: 3 * (100 - n_twins) : 3]
    vectors = draw.normal(size=(100, 64))
    vectors[1:n_twins:2] = vectors[:n_twins:2] + 0.2 * draw.normal(size=(n_twins // 2, 64))
    first, second, cosines = span_texts(vectors)
    threshold = suggest_threshold(first, second, cosines, lambda rows: [texts[i] for i in rows])
    assert threshold is not None
    assert (cosines >= threshold).sum() == n_twins // 2


def test_a_threshold_has_few_digits_and_equal_cosines_on_one_side():
    cosines = np.array([0.99649, 0.9961, *np.linspace(0.6, 0.5, 30)])
    first, second = np.zeros(32, int), np.arange(1, 33)
    texts = [RIVER, RIVER + ".", BREAD, *edited(90)[::3]]
    read = lambda rows: [texts[i] for i in rows]  # noqa: E731
    assert suggest_threshold(first, second, cosines, read) == 0.9964
    cosines[1] = 0.9959
    assert suggest_threshold(first, second, cosines, read) == 0.996
    cosines[1] = 0.99641
    assert suggest_threshold(first, second, cosines, read) is None


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (0.3, 0.7), (0.05, 0.95)])
def test_the_threshold_is_where_wording_differs_however_a_method_spreads_its_cosines(scale, shift):
    texts = edited(90)
    draw = np.random.default_rng(1)
    raw = np.array([0.9 if i % 3 == 2 else 0.5 for i in range(1, 90)])
    cosines = shift + scale * (raw + draw.uniform(-0.05, 0.05, 89))
    order = np.argsort(-cosines)
    first, second = np.arange(89)[order], np.arange(1, 90)[order]
    threshold = suggest_threshold(
        first, second, cosines[order], lambda rows: [texts[i] for i in rows]
    )
    assert threshold is not None
    assert cosines[raw == 0.5].max() < threshold <= cosines[raw == 0.9].min()
    assert len(f"{threshold:g}") <= 5
    shuffled = draw.permutation(texts).tolist()  # of texts that the vectors know nothing of
    found = suggest_threshold(first, second, cosines[order], lambda r: [shuffled[i] for i in r])
    assert found is None


def test_the_threshold_is_an_outlier_above_all_other_nearest_texts_and_high():
    """Without a gap, equal wordings are how a regular corpus is, as of a form that is filled in."""
    texts = [f"Please send us the parts of order {n} by the end of the week." for n in range(60)]
    first, second = np.arange(59), np.arange(1, 60)
    for cosines, n_found in (
        (np.linspace(0.95, 0.69, 59), 0),
        (np.linspace(0.99, 0.8, 59), 3),
        (np.full(59, 0.7), 0),
        (np.linspace(0.9, 0.8, 59), 59),  # all are alike
        (np.append(np.linspace(0.9, 0.8, 57), [0.5, 0.4]), 57),  # nearly all
        (np.append(np.linspace(0.9, 0.8, 50), np.linspace(0.7, 0.4, 9)), 0),
    ):
        found = suggest_threshold(first, second, cosines, lambda r: [texts[i] for i in r])
        assert (cosines >= (found or 1)).sum() == n_found
    cosines = np.where(np.arange(59) < 10, 0.95, np.linspace(0.85, 0.75, 59))
    found = suggest_threshold(first, second, cosines, lambda rows: [texts[i] for i in rows])
    assert found is not None
    assert 0.85 < found <= 0.95


def test_random_vectors_have_no_duplicates():
    texts = edited(120)
    for seed in range(20):
        vectors = np.random.default_rng(seed).normal(size=(120, 16))
        pairs = span_texts(vectors)
        threshold = suggest_threshold(*pairs, lambda rows: [texts[i] for i in rows])
        assert threshold is None


def test_wording_is_shared_in_any_order_and_case():
    moved = "Bread needs flour. The river rose."
    assert share_wording(moved, "the river rose.  BREAD needs flour.") > 0.9
    assert share_wording(RIVER, RIVER.replace("lower", "loewr")) > 0.9
    assert share_wording(RIVER, BREAD) < 0.5
    assert share_wording("", "") == share_wording("a", "A ") == 1
    assert name_difference("The red bus, late.", "The blue bus, late again.") == (
        "red → blue; – → again"
    )
    assert name_difference("A  b", "A b") == ""


# --- a corpus ------------------------------------------------------------------------------------


@pytest.fixture
def imported(store: CorpusStore) -> tuple[Corpus, KeptEmbedder]:
    """Eight texts: a copy and two edits of the first, an edit of the second, and two others."""
    texts = (
        RIVER,
        BREAD,
        RIVER,
        RIVER + " Again.",
        RIVER[:-1],
        BREAD + " No.",
        "Snow fell.",
        "Ice.",
    )
    corpus = store.add("=few", ReadTexts(texts, labels={"kept_id": tuple("abcdefgh")}))
    angles = np.radians([0, 90, 0, 5, 8, 95, 200, 300])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return corpus, import_vectors(store, corpus, ReadVectors("v.npy", vectors)).kept


def test_a_corpus_is_kept_without_its_duplicates(store: CorpusStore, imported):
    corpus, embedder = imported
    shares: list[float] = []
    pairs = find_pairs(store, corpus, embedder, on_progress=shares.append)
    assert shares == [0.0]
    assert pairs.is_copy.tolist() == [True, False, True] + [False] * 5
    assert pairs.suggested == pytest.approx(0.99, abs=0.01)
    assert np.flatnonzero(pairs.findings).tolist() == [0, 1, 2, 3, 4, 5]
    kept = group_duplicates(store, corpus, embedder, pairs)
    assert [rows.tolist() for rows in kept.groups] == [[3, 0, 2, 4], [5, 1]]
    table = removed_table(store, corpus, kept)
    assert table.column_names == ["id", "text", "kept_id", "kept_id (2)", "cosine"]
    assert table["id"].to_pylist() == ["1", "2", "3", "5"]
    assert table["kept_id (2)"].to_pylist() == ["4", "6", "4", "4"]
    chosen = group_duplicates(store, corpus, embedder, pairs, 0.99, chosen=(4,))
    assert chosen.groups[0].tolist() == [4, 0, 2, 3]
    copies = group_duplicates(store, corpus, embedder, pairs, 1.0)
    assert [rows.tolist() for rows in copies.groups] == [[0, 2]]


def test_what_cannot_be_compared_is_refused(store: CorpusStore, imported, monkeypatch):
    corpus, embedder = imported
    pairs = find_pairs(store, corpus, embedder)
    for wrong in ({"threshold": 1.5}, {"threshold": np.nan}, {"rule": "best"}):
        with pytest.raises(SettingsError):
            group_duplicates(store, corpus, embedder, pairs, **wrong)
    other = store.add("others", ReadTexts(("Rain.", "Hail.")))
    with pytest.raises(StoreError, match="2 of 2 texts are not embedded"):
        find_pairs(store, other, embedder)
    monkeypatch.setattr(duplicates, "MOST_TEXTS", 5)
    with pytest.raises(TextError, match="up to 5 different texts; “=few” has 7"):
        find_pairs(store, corpus, embedder)
