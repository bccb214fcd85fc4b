"""Runs over a corpus that are stopped, killed, or two at once come to what one alone gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from tests.support.embedders import HashEmbedder

ROOT = Path(__file__).parents[2]
TEXTS = ReadTexts(tuple(f"text {i} " + "word " * (i % 17) for i in range(400)))

RUN = """
import sys
from pathlib import Path
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from tests.support.embedders import HashEmbedder

store = CorpusStore(Path(sys.argv[1]))
embedder = HashEmbedder(seconds=0.004)
for progress in embed_corpus(store, store.corpora()[0], embedder, keep_every=0.0):
    print(progress.done, flush=True)
print("finished", flush=True)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def kill_when(run: subprocess.Popen[str], n_done: int) -> None:
    """Kill a run when so many texts are done."""
    for line in run.stdout:
        if line.strip() == "finished" or int(line) >= n_done:
            break
    run.kill()
    run.wait()


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
    for n_done in (64, 200, 320):
        kill_when(start(store.folder), n_done)
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
def test_two_processes_embed_one_corpus_at_once(store: CorpusStore):
    corpus = store.add("c", TEXTS)
    runs = [start(store.folder) for _ in range(2)]
    assert [run.communicate(timeout=120)[0].split()[-1] for run in runs] == ["finished"] * 2
    np.testing.assert_array_equal(vectors_of(store), HashEmbedder().encode(list(TEXTS.texts)))
    (kept,) = store.vectors.embedders()
    assert store.vectors._database.open(f"vectors-{kept.id}").count_rows() == corpus.n_distinct
