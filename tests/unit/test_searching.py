"""Searching a corpus by meaning: by the index as well as it says, and else exactly."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from neuralviz.errors import StoreError
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.searching import nearest_in_corpus
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import index as indexing
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.database import has_index
from neuralviz.store.index import build_index, read_index
from neuralviz.store.vectors import text_keys, vectors_table

if TYPE_CHECKING:
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

DIM, FEW = 16, 500
ROOT = Path(__file__).parents[2]
indexed = partial(build_index, smallest=FEW)


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "kept")


def clouds(n: int, seed: int = 0, dim: int = DIM) -> np.ndarray:
    """[n, dim] vectors in ten clouds, no two equally far from a third."""
    rng = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(99).normal(size=(10, dim))
    return (centres[rng.integers(10, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


def kept(
    store: CorpusStore, name: str, texts: tuple[str, ...], vectors: np.ndarray
) -> tuple[Corpus, KeptEmbedder]:
    """A corpus with these vectors, of which those of its different texts are kept."""
    corpus = store.add(name, ReadTexts(texts))
    embedder = store.vectors.restore("made-up", "", vectors.shape[1])
    keys, first = np.unique(text_keys(texts), return_index=True)
    store.vectors.put(embedder, keys, vectors[first], np.full((len(keys), 2), np.nan))
    return corpus, embedder


def a_corpus(store: CorpusStore, n: int = 1200, seed: int = 0, name: str = "a"):
    vectors = clouds(n, seed)
    return *kept(store, name, tuple(f"{name} {row}" for row in range(n)), vectors), vectors


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return float(np.mean([len(set(one) & set(other)) / len(other) for one, other in pairs]))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("dim", [DIM, 128, 130])  # whole, in codes, and not in whole bytes
def test_the_index_finds_what_is_near_and_says_how_much_of_it(store: CorpusStore, dim: int):
    vectors = clouds(1500, dim=dim)
    corpus, embedder = kept(store, "a", tuple(f"text {row}" for row in range(1500)), vectors)
    index = indexed(store.database, embedder)
    assert index is not None and index == read_index(store.database, embedder)
    assert index.n_rows == 1500 and index.recall >= indexing.GOOD_RECALL
    queries = clouds(100, seed=1, dim=dim)
    found = nearest_in_corpus(store, corpus, embedder, queries, 10)
    exact = nearest(vectors, queries, 10)
    assert recall(found.indices, exact.indices) > 0.95
    same = found.indices == exact.indices
    np.testing.assert_allclose(found.distances[same], exact.distances[same], atol=1e-6)
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_a_poor_index_says_so(store: CorpusStore, monkeypatch: pytest.MonkeyPatch):
    _, embedder, vectors = a_corpus(store)
    monkeypatch.setattr(indexing, "EFFORTS", ((1, 1),))
    index = indexed(store.database, embedder)
    assert index is not None and index.probes == 1
    table = store.database.open(vectors_table(embedder))
    keys = text_keys(f"a {row}" for row in range(len(vectors)))
    rows = {key: row for row, key in enumerate(keys.tolist())}
    some = vectors[:300]
    exact = nearest(vectors, some, 11).indices[:, 1:]
    found = [
        [rows[key] for key in indexing.nearest_keys(table, index, vector, 11)[0].tolist()]
        for vector in some
    ]
    others = [[row for row in one if row != at][:10] for at, one in enumerate(found)]
    shares = [len(set(one) & set(real)) / 10 for one, real in zip(others, exact, strict=True)]
    assert index.recall == pytest.approx(np.mean(shares), abs=0.05)


def test_without_an_index_or_with_another_distance_search_is_exact(store: CorpusStore):
    corpus, embedder, vectors = a_corpus(store)
    queries = clouds(5, seed=1)
    for _ in range(2):
        for metric in ("cosine", "euclidean", "manhattan"):
            if metric == "cosine" and read_index(store.database, embedder) is not None:
                continue
            found = nearest_in_corpus(store, corpus, embedder, queries, 7, metric)
            exact = nearest(vectors, queries, 7, metric)
            np.testing.assert_array_equal(found.indices, exact.indices)
            np.testing.assert_array_equal(found.distances, exact.distances)
            assert found.metric == metric
        indexed(store.database, embedder)


def test_too_few_texts_with_a_vector_are_said(store: CorpusStore):
    corpus = store.add("half", ReadTexts(tuple(f"text {row}" for row in range(20))))
    embedder = store.vectors.restore("made-up", "", DIM)
    queries, vectors = clouds(2, seed=1), clouds(5)
    for n in (0, 5):
        store.vectors.put(embedder, store.keys(corpus)[:n], vectors[:n], np.full((n, 2), np.nan))
        with pytest.raises(StoreError, match=f"{20 - n} of 20 texts are not embedded yet"):
            nearest_in_corpus(store, corpus, embedder, queries, 10)
    found = nearest_in_corpus(store, corpus, embedder, queries, 5)
    np.testing.assert_array_equal(found.indices, nearest(vectors, queries, 5).indices)


def test_few_keys_are_looked_up_and_many_are_read(store: CorpusStore):
    corpus, embedder, vectors = a_corpus(store)
    keys = store.keys(corpus)
    indexed(store.database, embedder)
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
