"""Searching a corpus by meaning: by the index as well as it says, and else exactly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import SettingsError, Stopped, StoreError
from neuralviz.maps import mapping
from neuralviz.maps.mapping import nearest_in_corpus
from neuralviz.maps.neighbours import Neighbours, nearest
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import index as indexing
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.database import has_index
from neuralviz.store.index import build_index, index_texts, read_index, rows_of_keys
from neuralviz.store.vectors import KeptEmbedder, text_keys, vectors_table

ROOT = Path(__file__).parents[2]
DIM, FEW = 16, 500
N, SMALL = 3000, 60  # texts of the two corpora


@pytest.fixture(autouse=True)
def few_vectors_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "INDEXED_FROM", FEW)


def in_groups(n: int, seed: int = 0, dim: int = DIM) -> np.ndarray:
    """[n, dim] vectors in clouds, no two equally far from a third."""
    rng = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(99).normal(size=(20, dim))
    return (centres[rng.integers(20, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


def add(
    store: CorpusStore, name: str, texts: list[str], vectors: np.ndarray
) -> tuple[Corpus, KeptEmbedder]:
    """A corpus whose different texts have these vectors, by first appearance."""
    embedder = store.vectors.restore("made-up", "", vectors.shape[1])
    keys = text_keys(list(dict.fromkeys(texts)))
    store.vectors.put(embedder, keys, vectors, np.full((len(keys), 2), np.nan))
    return store.add(name, ReadTexts(tuple(texts))), embedder


def recall(found: Neighbours, exact: Neighbours) -> float:
    pairs = zip(found.indices.tolist(), exact.indices.tolist(), strict=True)
    return sum(len(set(a) & set(b)) for a, b in pairs) / exact.indices.size


def names(start: str, n: int) -> list[str]:
    return [f"{start} {row}" for row in range(n)]


@pytest.mark.parametrize("dim", [DIM, 128, 130])  # whole, in codes, and not in whole bytes
def test_the_index_finds_what_is_near_and_says_how_much_of_it(store, dim, monkeypatch):
    monkeypatch.setattr(indexing, "QUERIES", 50)
    vectors = in_groups(1000, dim=dim)
    corpus, embedder = add(store, "a", names("text", 1000), vectors)
    index = build_index(store.database, embedder)
    assert index is not None and index == read_index(store.database, embedder)
    assert index.n_rows == 1000 and index.recall >= indexing.GOOD_RECALL
    queries = in_groups(100, seed=1, dim=dim)
    found = nearest_in_corpus(store, corpus, embedder, queries, 10)
    exact = nearest(vectors, queries, 10)
    assert recall(found, exact) > 0.95
    same = found.indices == exact.indices
    np.testing.assert_allclose(found.distances[same], exact.distances[same], atol=1e-6)
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_without_an_index_or_with_another_distance_search_is_exact(store: CorpusStore):
    vectors = in_groups(1200)
    corpus, embedder = add(store, "a", names("a", 1200), vectors)
    queries = in_groups(5, seed=1)
    for metric in ("cosine", "euclidean"):
        found = nearest_in_corpus(store, corpus, embedder, queries, 7, metric)
        exact = nearest(vectors, queries, 7, metric)
        np.testing.assert_array_equal(found.indices, exact.indices)
        np.testing.assert_array_equal(found.distances, exact.distances)
        build_index(store.database, embedder)


def test_too_few_texts_with_a_vector_are_said(store: CorpusStore):
    corpus = store.add("half", ReadTexts(tuple(names("text", 20))))
    embedder = store.vectors.restore("made-up", "", DIM)
    queries, vectors = in_groups(2, seed=1), in_groups(5)
    for n in (0, 5):
        store.vectors.put(embedder, store.keys(corpus)[:n], vectors[:n], np.full((n, 2), np.nan))
        with pytest.raises(StoreError, match=f"{20 - n} of 20 texts are not embedded yet"):
            nearest_in_corpus(store, corpus, embedder, queries, 10)
    found = nearest_in_corpus(store, corpus, embedder, queries, 5)
    np.testing.assert_array_equal(found.indices, nearest(vectors, queries, 5).indices)


def test_few_keys_are_looked_up_and_many_are_read(store: CorpusStore):
    vectors = in_groups(1200)
    corpus, embedder = add(store, "a", names("a", 1200), vectors)
    keys = store.keys(corpus)
    build_index(store.database, embedder)
    assert has_index(store.database.open(vectors_table(embedder)), "key")
    rows = np.array([7, 3, 7, 1100])
    for wanted in (rows, np.tile(np.arange(1200), 2)):
        np.testing.assert_array_equal(store.vectors.get(embedder, keys[wanted]), vectors[wanted])
    unknown = text_keys(["unknown"])
    both = np.concatenate([keys[:2], unknown])
    assert store.vectors.has_vectors(embedder, both).tolist() == [True, True, False]
    assert store.vectors.find(embedder, both).mask.tolist() == [True, True, False]
    with pytest.raises(StoreError, match="1 of 3 texts are not embedded yet"):
        store.vectors.get(embedder, both)
    store.vectors.put(embedder, unknown, vectors[:1], np.zeros((1, 2)))
    store.vectors.put(embedder, both, vectors[[5, 6, 7]], np.zeros((3, 2)))  # nothing changes
    np.testing.assert_array_equal(store.vectors.get(embedder, both), vectors[[0, 1, 0]])
    store.vectors.forget(unknown)
    assert not store.vectors.has_vectors(embedder, unknown).any()


def test_a_small_corpus_among_others_is_searched_wider(store, monkeypatch):
    """Equal texts all count, and a look at all vectors comes when the index is too narrow."""
    large, embedder = add(store, "large", names("text", N), in_groups(N))
    texts = [f"small {row // 2}" for row in range(2 * SMALL)]
    small, _ = add(store, "small", texts, in_groups(SMALL, 1))
    assert build_index(store.database, embedder) is not None
    index_texts(store, large)
    own = np.repeat(in_groups(SMALL, 1), 2, axis=0)
    queries = in_groups(20, 4)
    exact = nearest(own, queries, 6)
    asked = []
    whole = mapping.nearest_keys

    def count(table, index, query, n):
        asked.append(n)
        return whole(table, index, query, n)

    monkeypatch.setattr(mapping, "nearest_keys", count)
    monkeypatch.setattr(mapping, "MARGIN", 0.1)
    found = nearest_in_corpus(store, small, embedder, queries, 6)
    assert len(set(asked)) > 1
    assert found.indices.shape == (20, 6)
    assert recall(found, exact) >= 0.95
    monkeypatch.setattr(mapping, "MOST_FETCHED", 1)
    found = nearest_in_corpus(store, small, embedder, queries, 6)
    np.testing.assert_array_equal(found.indices, exact.indices)
    # more than there are, and what is no query
    found = nearest_in_corpus(store, small, embedder, queries, 10_000)
    assert found.k == 2 * SMALL
    assert (np.sort(found.indices, axis=1) == np.arange(2 * SMALL)).all()
    zeros = nearest_in_corpus(store, small, embedder, np.zeros((1, DIM)), 3)
    np.testing.assert_array_equal(zeros.distances, np.ones((1, 3), np.float32))
    with pytest.raises(SettingsError, match="same method"):
        nearest_in_corpus(store, small, embedder, queries[:, 1:], 3)
    with pytest.raises(Stopped):
        nearest_in_corpus(store, small, embedder, queries, 3, should_stop=lambda: True)


def test_rows_keep_their_places_when_others_are_left_out_or_moved(store: CorpusStore):
    texts = names("text", 600)
    corpus = store.add("some", ReadTexts(tuple(texts)))
    index_texts(store, corpus)
    keys = text_keys(texts)

    def check(corpus: Corpus) -> None:
        places, rows = rows_of_keys(store, corpus, keys[::50])
        np.testing.assert_array_equal(store.keys(corpus, rows), keys[::50][places])

    check(corpus)
    assert [len(found) for found in rows_of_keys(store, corpus, keys[:0])] == [0, 0]
    corpus = store.leave_out(corpus, store.keys(corpus, [3, 100, 101, 402, *range(500, 599)]))
    check(corpus)
    assert len(rows_of_keys(store, corpus, keys)[1]) == 497
    table = store.database.open(f"texts-{corpus.id}")
    before = table.search().select(["key"]).with_row_id(True).to_arrow()["_rowid"]
    with store.database.lock():
        table.optimize()
    after = table.search().select(["key"]).with_row_id(True).to_arrow()["_rowid"]
    assert before != after
    check(corpus)


def test_vectors_that_come_later_are_found_and_the_index_takes_them_in(store, monkeypatch):
    monkeypatch.setattr(indexing, "QUERIES", 50)
    _, embedder = add(store, "first", names("a", 1000), in_groups(1000))
    first = build_index(store.database, embedder)
    built = []
    whole = indexing._build
    monkeypatch.setattr(indexing, "_build", lambda *given: built.append(0) or whole(*given))
    assert build_index(store.database, embedder) == first
    vectors, queries = in_groups(300, 6), in_groups(30, 7)
    later, _ = add(store, "later", names("b", 300), vectors)
    exact = nearest(vectors, queries, 5)
    assert recall(nearest_in_corpus(store, later, embedder, queries, 5), exact) >= 0.95
    second = build_index(store.database, embedder)
    assert (built, second and second.n_rows) == ([], 1000)
    assert indexing._count_unindexed(store.database.open(vectors_table(embedder))) == 0
    assert recall(nearest_in_corpus(store, later, embedder, queries, 5), exact) >= 0.95
    add(store, "more", names("c", 900), in_groups(900, 8))
    third = build_index(store.database, embedder)
    assert (built, third and third.n_rows) == ([0], 2200)
    assert recall(nearest_in_corpus(store, later, embedder, queries, 5), exact) >= 0.95


@pytest.mark.slow
def test_what_was_killed_while_building_is_finished_by_the_next(store: CorpusStore):
    vectors = in_groups(1000)
    corpus, embedder = add(store, "killed", names("k", 1000), vectors)
    build = (
        "import sys, time\nfrom pathlib import Path\nfrom lancedb.table import LanceTable\n"
        "import neuralviz.store.index as index\n"
        "from neuralviz.store.corpora import CorpusStore\n"
        "whole = LanceTable.create_index\n"
        "def stay(*_):\n    print('here', flush=True)\n    time.sleep(600)\n"
        "def key_alone(table, column, **kind):\n"
        "    return whole(table, column, **kind) if column == 'key' else stay()\n"
        "if sys.argv[2] == 'keys':\n    LanceTable.create_index = key_alone\n"
        "else:\n    index._measure = stay\n"
        "store = CorpusStore(Path(sys.argv[1]))\n"
        "index.INDEXED_FROM = 500\n"
        "index.build_index(store.database, store.vectors.embedders()[0])\n"
    )
    for at in ("keys", "measuring"):  # with the lock, or with an index that nobody knows yet
        command = [sys.executable, "-c", build, str(store.folder), at]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert other.stdout.readline() == "here\n"
        other.kill()
        other.wait()
        assert read_index(store.database, embedder) is None
        np.testing.assert_array_equal(store.vectors.get(embedder, store.keys(corpus)), vectors)
    index = build_index(store.database, embedder)
    assert index is not None and index == read_index(store.database, embedder)
    queries = in_groups(20, 9)
    found = nearest_in_corpus(store, corpus, embedder, queries, 5)
    assert recall(found, nearest(vectors, queries, 5)) >= 0.95
