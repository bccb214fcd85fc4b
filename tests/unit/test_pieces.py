"""Vectors that many processes write: all of them, nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.store.corpora import CorpusStore, corpus_rows, texts_table
from neuralviz.store.vectors import KeptEmbedder, text_keys, vectors_table
from tests.support.embedders import HashEmbedder

pytest.importorskip("lance", reason="needs neuralviz[ray]")

from neuralviz.store.pieces import Piece, PieceVectors, commit_pieces, make_table, write_piece

KEYS = text_keys([f"text {number}" for number in range(60)])
VECTORS = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
LOSS = np.full((60, 2), np.nan)


@pytest.fixture
def kept(store: CorpusStore) -> KeptEmbedder:
    return store.vectors.register(HashEmbedder())


def write(store: CorpusStore, kept: KeptEmbedder, *spans: tuple[int, int]) -> list[Piece]:
    pieces = PieceVectors(store.database)
    for start, stop in spans:
        pieces.put(kept, KEYS[start:stop], VECTORS[start:stop], LOSS[start:stop])
    return list(pieces.pieces)


def n_kept(store: CorpusStore, kept: KeptEmbedder) -> int:
    return store.database.open(vectors_table(kept)).count_rows()


def commit(store: CorpusStore, kept: KeptEmbedder, pieces: Sequence[Piece]) -> None:
    commit_pieces(store.database, store.vectors, [kept], pieces)


def test_pieces_are_there_once_when_they_are_committed(store: CorpusStore, kept: KeptEmbedder):
    """Not what another process kept, nor what two pieces hold, nor a piece that comes again."""
    pieces = write(store, kept, (0, 10))
    assert not store.vectors.has_vectors(kept, KEYS).any()
    commit(store, kept, pieces)
    store.vectors.put(kept, KEYS[10:15], VECTORS[10:15], LOSS[10:15])
    pieces = write(store, kept, (5, 20), (18, 30), (30, 40))
    for _ in range(2):
        commit(store, kept, pieces)
        assert n_kept(store, kept) == 40
    np.testing.assert_array_equal(store.vectors.get(kept, KEYS[:40]), VECTORS[:40])


def test_a_piece_whose_file_is_gone_is_left_out(store: CorpusStore, kept: KeptEmbedder):
    pieces = write(store, kept, (0, 10), (10, 20))
    data = store.database.place(vectors_table(kept)) / "data"
    for file in data.glob("*.lance"):
        if file.name in pieces[0].fragment:
            file.unlink()
    commit(store, kept, pieces)
    assert n_kept(store, kept) == 10
    np.testing.assert_array_equal(store.vectors.get(kept, KEYS[10:20]), VECTORS[10:20])


def test_what_was_written_twice_of_the_texts_of_a_corpus_is_deleted(store: CorpusStore):
    """A worker that was killed before it told what it had written, and one that did it again."""
    rows = corpus_rows(["one", "two"], [])
    corpus = replace(store.new("some", ()), n_texts=2, n_distinct=2)
    table = texts_table(corpus)
    data = store.database.place(table) / "data"
    write_piece(store.database, table, rows, "create")
    told = write_piece(store.database, table, rows, "create")
    assert len(list(data.glob("*.lance"))) == 2
    make_table(store.database, table, rows.schema, told)
    store.announce(corpus)
    assert len(list(data.glob("*.lance"))) == 1
    assert store.texts(corpus) == ["one", "two"]
