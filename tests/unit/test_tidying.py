"""The files that compaction replaced are deleted later, and nothing else is."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from typer.testing import CliRunner

from neuralviz.cli.commands import app
from neuralviz.store import database
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.database import tidy, tidy_soon
from neuralviz.store.vectors import KeptEmbedder, text_keys, vectors_table

KEYS = text_keys(f"text {number}" for number in range(60))
VECTORS = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusStore:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    database._start_thread.cache_clear()
    return CorpusStore()


@pytest.fixture
def kept(store: CorpusStore) -> KeptEmbedder:
    """An embedder whose vectors came in three pieces, which were put together."""
    kept = store.vectors.restore("made-up", "", 8)
    put(store, kept, 0, 20)
    put(store, kept, 20, 40)
    put(store, kept, 40, 60)
    store.vectors.compact(kept)
    return kept


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, kept: KeptEmbedder) -> None:
    """An hour has gone by since."""
    monkeypatch.setattr(database, "SUPERSEDED_FOR", timedelta(milliseconds=1))
    time.sleep(0.01)


def put(store: CorpusStore, kept: KeptEmbedder, start: int, stop: int) -> None:
    at = slice(start, stop)
    store.vectors.put(kept, KEYS[at], VECTORS[at], np.full((stop - start, 2), np.nan))


def n_files(store: CorpusStore, kept: KeptEmbedder) -> int:
    return len(list((store.database.place(vectors_table(kept)) / "data").glob("*.lance")))


@pytest.mark.usefixtures("later")
def test_what_was_replaced_is_deleted(store: CorpusStore, kept: KeptEmbedder):
    assert n_files(store, kept) == 4
    tidy(store.folder)
    assert n_files(store, kept) == 1
    np.testing.assert_array_equal(store.vectors.get(kept, KEYS), VECTORS)
    version = store.database.open(vectors_table(kept)).version
    tidy(store.folder)
    assert store.database.open(vectors_table(kept)).version == version


def test_what_somebody_may_still_read_stays(store: CorpusStore, kept: KeptEmbedder):
    tidy(store.folder)
    assert n_files(store, kept) == 4


@pytest.mark.usefixtures("later")
def test_what_is_to_be_compacted_or_written_to_is_left_alone(
    store: CorpusStore, kept: KeptEmbedder
):
    with FileLock(store.folder / "writing.lock"):
        tidy(store.folder)
    assert n_files(store, kept) == 4
    store.vectors.forget(KEYS[:10])
    for start in range(0, 10, 5):
        put(store, kept, start, start + 5)
    before = n_files(store, kept)
    time.sleep(0.01)
    tidy(store.folder)
    assert n_files(store, kept) == before


@pytest.mark.usefixtures("later")
def test_commands_do_it_in_the_background(store: CorpusStore, kept: KeptEmbedder):
    assert CliRunner().invoke(app, ["corpus", "list"]).exit_code == 0
    tidy_soon(store.folder).join()
    assert n_files(store, kept) == 1
