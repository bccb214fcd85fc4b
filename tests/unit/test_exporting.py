"""A corpus as one table."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from neuralviz.cli import corpus as commands
from neuralviz.cli.commands import app
from neuralviz.embedders import embedder_spec
from neuralviz.maps.kept import OWN_COLUMNS, KeptMaps, corpus_pieces, corpus_table
from neuralviz.maps.mapping import make_map
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import KeptEmbedder, LocatedVectors, text_keys
from neuralviz.store.writing import table_bytes
from tests.support.embedders import HashEmbedder

TEXTS = ("one", "two 🙂", "three", "one", "four", "five", "six")
LABELS = {
    name: tuple(f"{name} {number}" for number in range(7))
    for name in (*OWN_COLUMNS, "x (label)", "row", "key", "label_0")
}
NUMBERS = ("1", "", "2.5", "3", "4", "5", "-6")


def test_columns_called_like_ours_keep_their_values_under_another_name(store: CorpusStore):
    labels = {"x (label)": LABELS["x (label)"]} | LABELS | {"year": NUMBERS}
    corpus = store.add("c", ReadTexts(TEXTS, ids=tuple("abcdefg"), labels=labels))
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    kept = make_map(store, corpus, last.embedder, ProjectionSettings("pca", 3))
    table = corpus_table(store, corpus, last.embedder, kept)
    assert table["id"].to_pylist() == list("abcdefg")
    assert table["text"].to_pylist() == list(TEXTS)
    for name in OWN_COLUMNS:
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


def learnt(store: CorpusStore) -> tuple[Corpus, KeptEmbedder]:
    """A corpus of which only the last text was learnt; the first is there twice."""
    labels = {
        "year": NUMBERS,
        "n": ("1", "2", "3", "4", "5", "6", "7.5"),
        "topic": tuple("xyzxyzx"),
    }
    corpus = store.add("c", ReadTexts(TEXTS, labels=labels))
    kept = store.vectors.restore("made-up", "", 8)
    keys = np.unique(store.keys(corpus))
    loss = np.where((keys == text_keys(["six"]))[:, None], [[3.0, 1.0]], np.nan)
    store.vectors.put(kept, keys, np.random.default_rng(0).normal(size=(6, 8)), loss)
    return corpus, kept


def check_same(one: pa.Table, other: pa.Table) -> None:
    """What is not a number equals itself."""
    assert one.schema == other.schema
    assert table_bytes(".jsonl", one) == table_bytes(".jsonl", other)


@pytest.mark.parametrize("rows", [None, np.array([6, 0, 3, 3, 2])])
def test_pieces_make_the_whole_table_with_vectors(store, monkeypatch, rows):
    corpus, kept = learnt(store)
    read, at_once = LocatedVectors.read, []
    monkeypatch.setattr(
        LocatedVectors, "read", lambda self, texts: at_once.append(len(texts)) or read(self, texts)
    )
    pieces = list(corpus_pieces(store, corpus, kept, rows=rows, size=2))
    assert max(at_once) == 2
    whole = corpus_table(store, corpus, kept, rows=rows)
    check_same(pa.concat_tables(pieces), whole)
    keys = store.keys(corpus, rows)
    vectors = np.array(whole["vector"].to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, store.vectors.get(kept, keys))
    losses = np.stack([whole["first_loss"], whole["last_loss"]], axis=1)
    np.testing.assert_array_equal(losses, store.vectors.losses(kept, keys))


def test_vectors_are_read_as_they_were_when_others_write_meanwhile(store: CorpusStore):
    corpus, kept = learnt(store)
    expected = corpus_table(store, corpus, kept)
    pieces = corpus_pieces(store, corpus, kept, size=3)
    first = next(pieces)
    store.vectors.put(kept, text_keys(["new"]), np.ones((1, 8)), np.full((1, 2), np.nan))
    store.vectors.forget(text_keys(["six", "new"]))
    check_same(pa.concat_tables([first, *pieces]), expected)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_the_command_writes_piece_by_piece_what_the_whole_table_is(tmp_path, monkeypatch, ending):
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    store, out = CorpusStore(), tmp_path / f"out{ending}"
    corpus, kept = learnt(store)
    monkeypatch.setattr(commands, "find_spec", lambda *_: embedder_spec("mean"))
    monkeypatch.setattr(commands, "find_embedder", lambda *_: kept)
    monkeypatch.setattr(commands, "corpus_pieces", partial(corpus_pieces, size=3))
    command = ["corpus", "export", "c", "-o", str(out), "--method", "mean"]
    assert "Wrote 7 texts to" in CliRunner().invoke(app, command).stderr
    whole = corpus_table(store, corpus, kept)
    if ending == ".parquet":
        expected = io.BytesIO(table_bytes(ending, whole))
        check_same(parquet.read_table(out), parquet.read_table(expected))
    else:
        assert out.read_bytes() == table_bytes(ending, whole)
    before = out.read_bytes()

    def interrupted(*given: Any) -> Iterator[pa.Table]:
        yield next(corpus_pieces(*given, size=3))
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "corpus_pieces", interrupted)
    assert CliRunner().invoke(app, command).exit_code == 130
    assert out.read_bytes() == before
    assert not list(tmp_path.glob(".out*"))


def test_a_table_is_read_again_as_the_corpus_it_was(store: CorpusStore):
    labels = {"topic": tuple("xyzxyzx"), "year": NUMBERS}
    corpus = store.add("c", ReadTexts(TEXTS, ids=tuple("abcdefg"), labels=labels))
    table = corpus_table(store, corpus)
    for ending in (".csv", ".jsonl", ".parquet"):
        read = read_texts(Source(f"out{ending}", table_bytes(ending, table)))
        assert store.find("c", read) == corpus
