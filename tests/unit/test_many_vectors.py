"""Vectors by the million: deleted in few steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuralviz.store import vectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.vectors import text_keys


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "corpora")


@pytest.mark.parametrize("at_once", [100_000, 1000])
def test_many_vectors_are_forgotten_in_few_steps(
    store: CorpusStore, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    monkeypatch.setattr(vectors, "_DELETED_AT_ONCE", at_once)
    monkeypatch.setattr(store.vectors, "compact", lambda _: None)
    kept = store.vectors.restore("made-up", "", 2)
    keys = text_keys(f"text {number}" for number in range(6000))
    made_up = np.random.default_rng(0).normal(size=(6000, 2)).astype(np.float32)
    for part in np.array_split(np.arange(6000), 3):
        store.vectors.put(kept, keys[part], made_up[part], np.full((len(part), 2), np.nan))
    order = np.random.default_rng(1).permutation(6000)
    before = store.vectors.version(kept)
    store.vectors.forget(np.concatenate([keys[order[:3500]], text_keys(["unknown"])]))
    assert store.vectors.version(kept) - before == -(-3500 // at_once)
    assert not store.vectors.has_vectors(kept, keys[order[:3500]]).any()
    left = order[3500:]
    np.testing.assert_array_equal(store.vectors.get(kept, keys[left]), made_up[left])
