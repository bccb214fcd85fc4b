"""Vectors that many processes write: all of them, nothing twice, nothing left lying about."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore, corpus_rows, texts_table
from neuralviz.store.vectors import KeptEmbedder, text_keys, vectors_table
from tests.support.embedders import HashEmbedder

pytest.importorskip("lance", reason="needs neuralviz[ray]")

from neuralviz.store.pieces import (
    Piece,
    PieceVectors,
    commit_pieces,
    make_table,
    sweep,
    write_piece,
    writing,
)

ROOT = Path(__file__).parents[2]
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


def files(store: CorpusStore, kept: KeptEmbedder) -> int:
    return len(list((store.database.place(vectors_table(kept)) / "data").glob("*.lance")))


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


def test_what_nobody_commits_is_swept_away(store: CorpusStore, kept: KeptEmbedder):
    corpus = store.add("stays", ReadTexts(("one", "two")))
    left = store.database.place("texts-abandoned")
    with writing(store.database):
        pieces = write(store, kept, (0, 10), (10, 20))
        commit(store, kept, pieces[:1])
        left.mkdir()
        assert files(store, kept) == 2
    assert files(store, kept) == 1
    assert not left.exists()
    assert store.texts(corpus) == ["one", "two"]
    np.testing.assert_array_equal(store.vectors.get(kept, KEYS[:10]), VECTORS[:10])


def test_what_was_written_twice_of_the_texts_of_a_corpus_is_swept_away(store: CorpusStore):
    """A worker that was killed before it told what it had written, and one that did it again."""
    rows = corpus_rows(["one", "two"], [])
    corpus = replace(store.new("some", ()), n_texts=2, n_distinct=2)
    table = texts_table(corpus)
    data = store.database.place(table) / "data"
    with writing(store.database):
        write_piece(store.database, table, rows, "create")
        told = write_piece(store.database, table, rows, "create")
        make_table(store.database, table, rows.schema, told)
        store.announce(corpus)
        assert len(list(data.glob("*.lance"))) == 2
    assert len(list(data.glob("*.lance"))) == 1
    assert store.texts(corpus) == ["one", "two"]


def test_what_a_killed_writer_left_is_swept_and_what_a_living_one_writes_is_not(store, kept):
    hold = (
        "import sys, time\nfrom pathlib import Path\n"
        "from neuralviz.store.corpora import CorpusStore\n"
        "from neuralviz.store.pieces import writing\n"
        "with writing(CorpusStore(Path(sys.argv[1])).database):\n"
        "    print('writing', flush=True)\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", hold, str(store.folder)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert other.stdout.readline() == "writing\n"
        write(store, kept, (0, 10))
        sweep(store.database)
        assert files(store, kept) == 1
    finally:
        other.kill()
        other.wait()
    sweep(store.database)
    assert files(store, kept) == 0
    assert not list((store.folder / "writers").iterdir())
