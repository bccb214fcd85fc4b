"""A corpus as one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import StoreError
from neuralviz.maps.clusters import Clusters
from neuralviz.maps.exporting import OURS, corpus_table
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import make_map
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projection import Projection
from neuralviz.maps.settings import ProjectionSettings
from neuralviz.plots.point_colours import cluster_names
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import text_keys
from neuralviz.store.writing import table_bytes
from tests.support.embedders import HashEmbedder

TEXTS = ("one", "two 🙂", "three", "one", "four", "five", "six")
LABELS = {
    name: tuple(f"{name} {number}" for number in range(7))
    for name in (*OURS, "x (label)", "row", "key", "label_0")
}
NUMBERS = ("1", "", "2.5", "3", "4", "5", "-6")


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path)


def test_columns_called_like_ours_keep_their_values_under_another_name(store: CorpusStore):
    labels = {"x (label)": LABELS["x (label)"]} | LABELS | {"year": NUMBERS}
    corpus = store.add("c", ReadTexts(TEXTS, ids=tuple("abcdefg"), labels=labels))
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    kept = make_map(store, corpus, last.embedder, ProjectionSettings("pca", 3))
    table = corpus_table(store, corpus, last.embedder, kept)
    assert table["id"].to_pylist() == list("abcdefg")
    assert table["text"].to_pylist() == list(TEXTS)
    for name in OURS:
        other = "x (label 2)" if name == "x" else f"{name} (label)"
        assert table[other].to_pylist() == list(LABELS[name])
    for name in ("x (label)", "row", "key", "label_0"):
        assert table[name].to_pylist() == list(LABELS[name])
    assert table["year"].to_pylist() == [1, None, 2.5, 3, 4, 5, -6]
    coordinates, clusters = KeptMaps(store).points(kept)
    np.testing.assert_array_equal(np.stack([table[axis] for axis in "xyz"], axis=1), coordinates)
    assert table["cluster"].to_pylist() == [-1] * 7 == clusters.labels.tolist()
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, HashEmbedder().encode(list(TEXTS)))
    assert "first_loss" not in table.column_names  # nothing was learnt


def test_losses_are_there_where_texts_were_learnt(store: CorpusStore):
    corpus = store.add("c", ReadTexts(("one", "two")))
    kept = store.vectors.register(HashEmbedder())
    loss = np.array([[3.0, 1.0], [np.nan, np.nan]])
    store.vectors.put(kept, text_keys(["one", "two"]), np.eye(8)[:2], loss)
    table = corpus_table(store, corpus, kept)
    assert table.column_names == ["id", "text", "first_loss", "last_loss", "vector"]
    content = table_bytes(".csv", table).decode()
    assert content.splitlines()[1].startswith("1,one,3,1,")
    assert content.splitlines()[2].startswith("2,two,,,")


def test_a_table_is_read_again_as_the_corpus_it_was(store: CorpusStore):
    labels = {"topic": tuple("xyzxyzx"), "year": NUMBERS}
    corpus = store.add("c", ReadTexts(TEXTS, ids=tuple("abcdefg"), labels=labels))
    table = corpus_table(store, corpus)
    for ending in (".csv", ".jsonl", ".parquet"):
        read = read_texts(Source(f"out{ending}", table_bytes(ending, table)))
        assert store.find("c", read) == corpus


def test_vectors_that_are_missing_are_said(store: CorpusStore):
    corpus = store.add("c", ReadTexts(("one", "two")))
    kept = store.vectors.register(HashEmbedder())
    with pytest.raises(StoreError, match="2 of 2 texts are not embedded yet"):
        corpus_table(store, corpus, kept)


def test_clusters_are_numbered_from_1_in_files_as_on_the_page(store: CorpusStore):
    texts = tuple(f"text {i}" for i in range(40))
    corpus = store.add("c", ReadTexts(texts))
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    coordinates = np.zeros((40, 2), np.float32)
    near = Neighbours(np.zeros((40, 1), np.int32), np.zeros((40, 1), np.float32), "cosine")
    labels = np.repeat(np.array([0, 1, -1], np.int32), [20, 15, 5])
    settings = ProjectionSettings("pca")
    kept = KeptMaps(store).put(
        corpus,
        last.embedder,
        Projection(coordinates, settings, near),
        Clusters(labels, 2, 5),
        [["rain", "snow"], ["bread"]],
    )
    table = corpus_table(store, corpus, kept=kept)
    assert table["cluster"].to_pylist() == [1] * 20 + [2] * 15 + [-1] * 5
    assert cluster_names(kept.cluster_words) == ("1 rain, snow", "2 bread")
