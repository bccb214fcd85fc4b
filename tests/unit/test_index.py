"""Vectors and texts found by an index, against a look at all of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import SettingsError, Stopped, StoreError
from neuralviz.maps import searching
from neuralviz.maps.neighbours import Neighbours, nearest
from neuralviz.maps.searching import nearest_in_corpus
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import index as indexes
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.index import build_index, index_texts, read_index, rows_of_keys
from neuralviz.store.vectors import KeptEmbedder, text_keys, vectors_table

ROOT = Path(__file__).parents[2]
DIM, SMALLEST = 128, 500
N, SMALL = 3000, 60  # texts of the two corpora


def in_groups(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(40, DIM))
    return (centres[rng.integers(40, size=n)] + 0.6 * rng.normal(size=(n, DIM))).astype(np.float32)


def add(
    store: CorpusStore, embedder: KeptEmbedder, name: str, texts: list[str], vectors: np.ndarray
) -> Corpus:
    """A corpus whose different texts have these vectors, by first appearance."""
    keys = text_keys(list(dict.fromkeys(texts)))
    store.vectors.put(embedder, keys, vectors, np.full((len(keys), 2), np.nan))
    return store.add(name, ReadTexts(tuple(texts)))


def embedder_in(store: CorpusStore) -> KeptEmbedder:
    return store.vectors.restore("made-up", "", DIM)


def recall(found: Neighbours, exact: Neighbours) -> float:
    pairs = zip(found.indices.tolist(), exact.indices.tolist(), strict=True)
    return sum(len(set(a) & set(b)) for a, b in pairs) / exact.indices.size


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return in_groups(N)


@pytest.fixture(scope="module")
def full(
    tmp_path_factory: pytest.TempPathFactory, vectors: np.ndarray
) -> tuple[CorpusStore, KeptEmbedder, Corpus, Corpus]:
    """A store with an index, a large corpus and a small one, in which every text comes twice."""
    store = CorpusStore(tmp_path_factory.mktemp("index") / "corpora")
    embedder = embedder_in(store)
    large = add(store, embedder, "large", [f"text {row}" for row in range(N)], vectors)
    texts = [f"small {row // 2}" for row in range(2 * SMALL)]
    small = add(store, embedder, "small", texts, in_groups(SMALL, 1))
    assert build_index(store.database, embedder, smallest=SMALLEST) is not None
    index_texts(store, large, smallest=SMALLEST)
    return store, embedder, large, small


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "corpora")


def test_a_small_corpus_among_others_is_searched_wider(
    full: tuple, monkeypatch: pytest.MonkeyPatch
):
    """Equal texts all count, and a look at all vectors comes when the index is too narrow."""
    store, embedder, _, small = full
    own = np.repeat(in_groups(SMALL, 1), 2, axis=0)
    queries = in_groups(20, 4)
    exact = nearest(own, queries, 6)
    asked = []
    whole = searching.nearest_keys

    def count(table, index, query, n):  # type: ignore[no-untyped-def]
        asked.append(n)
        return whole(table, index, query, n)

    monkeypatch.setattr(searching, "nearest_keys", count)
    monkeypatch.setattr(searching, "MARGIN", 0.1)
    found = nearest_in_corpus(store, small, embedder, queries, 6)
    assert len(set(asked)) > 1
    assert found.indices.shape == (20, 6)
    assert recall(found, exact) >= 0.95
    monkeypatch.setattr(searching, "MOST_FETCHED", 1)
    found = nearest_in_corpus(store, small, embedder, queries, 6)
    np.testing.assert_array_equal(found.indices, exact.indices)


def test_more_than_there_are_and_what_is_no_query(full: tuple):
    store, embedder, _, small = full
    queries = in_groups(2, 5)
    found = nearest_in_corpus(store, small, embedder, queries, 10_000)
    assert found.k == 2 * SMALL
    assert (np.sort(found.indices, axis=1) == np.arange(2 * SMALL)).all()
    zeros = nearest_in_corpus(store, small, embedder, np.zeros((1, DIM)), 3)
    np.testing.assert_array_equal(zeros.distances, np.ones((1, 3), np.float32))
    with pytest.raises(SettingsError, match="at least 1"):
        nearest_in_corpus(store, small, embedder, queries, 0)
    with pytest.raises(SettingsError, match="same method"):
        nearest_in_corpus(store, small, embedder, queries[:, 1:], 3)
    with pytest.raises(Stopped):
        nearest_in_corpus(store, small, embedder, queries, 3, should_stop=lambda: True)


@pytest.mark.parametrize("n", [1, 20, 3000])
def test_rows_are_found_by_keys_as_by_a_scan(full: tuple, n: int):
    store, _, large, small = full
    texts = [f"text {row}" for row in np.random.default_rng(n).permutation(N)[:n]]
    keys = text_keys([*texts, "small 7", "nowhere"])
    for corpus in (large, small):
        stored = store.keys(corpus)
        expected = [
            (at, row) for at, key in enumerate(keys) for row in np.flatnonzero(stored == key)
        ]
        places, rows = rows_of_keys(store, corpus, keys)
        assert list(zip(places.tolist(), rows.tolist(), strict=True)) == expected
    assert [len(found) for found in rows_of_keys(store, large, keys[:0])] == [0, 0]


def test_rows_keep_their_places_when_others_are_left_out_or_moved(store: CorpusStore):
    texts = [f"text {row}" for row in range(600)]
    corpus = store.add("some", ReadTexts(tuple(texts)))
    index_texts(store, corpus, smallest=SMALLEST)
    keys = text_keys(texts)

    def check(corpus: Corpus) -> None:
        places, rows = rows_of_keys(store, corpus, keys[::50])
        np.testing.assert_array_equal(store.keys(corpus, rows), keys[::50][places])

    check(corpus)
    corpus = store.leave_out(corpus, store.keys(corpus, [3, 100, 101, 402, *range(500, 599)]))
    check(corpus)
    assert len(rows_of_keys(store, corpus, keys)[1]) == 497
    table = store.database.open(f"texts-{corpus.id}")
    before = table.search().select(["key"]).with_row_id(True).to_arrow()["_rowid"]
    store.database.write(table.optimize)
    after = table.search().select(["key"]).with_row_id(True).to_arrow()["_rowid"]
    assert before != after
    check(corpus)


def test_vectors_that_come_later_are_found_and_the_index_takes_them_in(
    store: CorpusStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(indexes, "QUERIES", 50)
    embedder = embedder_in(store)
    add(store, embedder, "first", [f"a{row}" for row in range(1000)], in_groups(1000))
    first = build_index(store.database, embedder, smallest=SMALLEST)
    built = []
    whole = indexes._build
    monkeypatch.setattr(indexes, "_build", lambda *given: built.append(0) or whole(*given))
    assert build_index(store.database, embedder, smallest=SMALLEST) == first
    vectors, queries = in_groups(300, 6), in_groups(30, 7)
    later = add(store, embedder, "later", [f"b{row}" for row in range(300)], vectors)
    exact = nearest(vectors, queries, 5)
    assert recall(nearest_in_corpus(store, later, embedder, queries, 5), exact) >= 0.95
    second = build_index(store.database, embedder, smallest=SMALLEST)
    assert (built, second and second.n_rows) == ([], 1000)
    assert indexes._count_unindexed(store.database.open(vectors_table(embedder))) == 0
    assert recall(nearest_in_corpus(store, later, embedder, queries, 5), exact) >= 0.95
    add(store, embedder, "more", [f"c{row}" for row in range(900)], in_groups(900, 8))
    third = build_index(store.database, embedder, smallest=SMALLEST)
    assert (built, third and third.n_rows) == ([0], 2200)
    assert recall(nearest_in_corpus(store, later, embedder, queries, 5), exact) >= 0.95


@pytest.mark.slow
def test_what_was_killed_while_building_is_finished_by_the_next(store: CorpusStore):
    vectors, embedder = in_groups(1000), embedder_in(store)
    texts = [str(row) for row in range(1000)]
    corpus = add(store, embedder, "killed", texts, vectors)
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
        "index.build_index(store.database, store.vectors.embedders()[0], smallest=500)\n"
    )
    for at in ("keys", "measuring"):  # with the lock, or with an index that nobody knows yet
        command = [sys.executable, "-c", build, str(store.folder), at]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert other.stdout is not None
        assert other.stdout.readline() == "here\n"
        other.kill()
        other.wait()
        assert read_index(store.database, embedder) is None
        np.testing.assert_array_equal(store.vectors.get(embedder, store.keys(corpus)), vectors)
    began = time.monotonic()
    index = build_index(store.database, embedder, smallest=SMALLEST)
    assert index is not None
    assert (index == read_index(store.database, embedder), time.monotonic() - began < 20) == (1, 1)
    queries = in_groups(20, 9)
    found = nearest_in_corpus(store, corpus, embedder, queries, 5)
    assert recall(found, nearest(vectors, queries, 5)) >= 0.95


def test_a_deleted_corpus_is_a_sentence(store: CorpusStore):
    embedder = embedder_in(store)
    corpus = add(store, embedder, "gone", [str(row) for row in range(600)], in_groups(600))
    add(store, embedder, "stays", [f"s{row}" for row in range(600)], in_groups(600, 1))
    build_index(store.database, embedder, smallest=SMALLEST)
    store.delete(corpus)
    for ask in (
        lambda: nearest_in_corpus(store, corpus, embedder, in_groups(1), 3),
        lambda: rows_of_keys(store, corpus, text_keys(["1"])),
        lambda: index_texts(store, corpus, smallest=SMALLEST),
    ):
        with pytest.raises(StoreError, match="“gone” was deleted in the meantime"):
            ask()
