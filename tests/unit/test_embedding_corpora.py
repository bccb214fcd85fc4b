"""Runs over a corpus that are stopped, killed, or two at once come to what one alone gives."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from neuralviz.embedders import make_embedder
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import BATCH_SIZE, embed_corpus
from tests.support.embedders import HashEmbedder

ROOT = Path(__file__).parents[2]
THREADS = 2  # of torch: another number adds up in another order
TEXTS = ReadTexts(tuple(f"text {i} " + "word " * (i % 17) for i in range(400)))

RUN = """
import sys
from pathlib import Path
from neuralviz.embedders import make_embedder
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from tests.support.embedders import HashEmbedder

store = CorpusStore(Path(sys.argv[1]))
embedder = HashEmbedder(seconds=0.004) if sys.argv[2] == "hash" else make_embedder(sys.argv[2])
for progress in embed_corpus(store, store.corpora()[0], embedder, keep_every=float(sys.argv[3])):
    print(progress.done, flush=True)
print("finished", flush=True)
"""


def start(
    folder: Path, method: str, kept_every: float = 0.0, threads: int = 0
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(folder), method, str(kept_every)]
    env = {**os.environ, "OMP_NUM_THREADS": str(threads)} if threads else None
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env)


def kill_when(run: subprocess.Popen[str], n_done: int, wait: float) -> int:
    """Kill a run ``wait`` seconds after so many texts were done; gives what it had told."""
    told = 0
    for line in run.stdout:
        if line.strip() == "finished":
            break
        told = int(line)
        if told >= n_done:
            time.sleep(wait)
            break
    run.send_signal(signal.SIGKILL)
    run.wait()
    return told


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "kept")


def vectors_of(store: CorpusStore) -> np.ndarray:
    (kept,), (corpus,) = store.vectors.embedders(), store.corpora()
    return store.vectors.get(kept, store.keys(corpus))


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(store: CorpusStore):
    corpus = store.add("c", TEXTS)
    undisturbed = HashEmbedder().encode(list(TEXTS.texts))
    seen = []
    chance = random.Random(4)
    for n_done in (0, 64, 200, 320):
        kill_when(start(store.folder, "hash"), n_done, chance.uniform(0, 0.03))
        here = CorpusStore(store.folder)
        for kept in here.vectors.embedders():
            has = here.vectors.has_vectors(kept, here.keys(corpus))
            seen.append(int(has.sum()))
            whole = here.vectors.get(kept, here.keys(corpus)[has])
            np.testing.assert_array_equal(whole, undisturbed[has])
            assert here.vectors._database.open(f"vectors-{kept.id}").count_rows() == has.sum()
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 400
    assert len(set(seen)) > 2, "the kills came before anything was kept"
    embedder = HashEmbedder()
    *_, last = embed_corpus(store, corpus, embedder)
    assert last.is_complete
    assert sum(map(len, embedder.calls)) == 400 - seen[-1], "what was kept was computed again"
    np.testing.assert_array_equal(vectors_of(store), undisturbed)


@pytest.mark.slow
def test_a_killed_run_of_a_model_comes_to_the_same_bits(store: CorpusStore, tmp_path: Path):
    read = read_texts(Source.from_path(sample_data() / "scored_pairs.csv")).first(72)
    undisturbed = CorpusStore(tmp_path / "undisturbed")
    for one in (store, undisturbed):
        one.add("c", read)
    assert kill_when(start(store.folder, "mean", threads=THREADS), BATCH_SIZE, 0.0) < 72
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        embedder = make_embedder("mean")
        first, *_ = embed_corpus(store, store.corpora()[0], embedder)
        assert 0 < first.found < 72
        *_, last = embed_corpus(undisturbed, undisturbed.corpora()[0], embedder)
    finally:
        torch.set_num_threads(before)
    assert last.is_complete
    np.testing.assert_array_equal(vectors_of(store), vectors_of(undisturbed))
    np.testing.assert_allclose(vectors_of(store)[:8], embedder.encode(read.texts[:8]), atol=1e-6)


@pytest.mark.slow
def test_two_processes_embed_one_corpus_at_once(store: CorpusStore):
    corpus = store.add("c", TEXTS)
    runs = [start(store.folder, "hash") for _ in range(2)]
    assert [run.communicate(timeout=120)[0].split()[-1] for run in runs] == ["finished"] * 2
    np.testing.assert_array_equal(vectors_of(store), HashEmbedder().encode(list(TEXTS.texts)))
    (kept,) = store.vectors.embedders()
    assert store.vectors._database.open(f"vectors-{kept.id}").count_rows() == corpus.n_distinct
