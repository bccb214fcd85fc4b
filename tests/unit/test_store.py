"""What is kept of corpora: complete or not at all, by whoever it was written."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from typer.testing import CliRunner

from neuralviz.cli.commands import app
from neuralviz.errors import StoreError
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import database
from neuralviz.store.corpora import MAX_NAME, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import text_keys, vectors_table
from tests.support.embedders import HashEmbedder
from tests.support.waiting import run_python

ROOT = Path(__file__).parents[2]
READ = ReadTexts(
    ("one", "two 🙂", "three", "one"),
    ids=("a", "b", "c", "d"),
    labels={
        "id": ("a", "b", "c", "d"),
        "topic": ("x", "", "y", "x"),
        "year": ("1999", "", "2001.5", "-3e2"),
        "zip": ("00123", "04", "1", "2"),
        "row": ("r", "s", "t", "u"),
        "a.b `c'": ("1", "nan", "inf", ""),
    },
)


def embedded(store: CorpusStore, corpus, embedder=None):
    *_, last = embed_corpus(store, corpus, embedder or HashEmbedder())
    return last.embedder


def test_a_corpus_comes_back_as_it_was_put_in(store: CorpusStore):
    corpus = store.add(" My\ncorpus ", READ)
    assert store.corpora() == (corpus,) == (store.corpus("My corpus"),)
    assert (corpus.n_texts, corpus.n_distinct) == (4, 3)
    again = CorpusStore(store.folder)
    assert tuple(again.texts(corpus)) == READ.texts
    assert tuple(again.ids(corpus)) == READ.ids
    kinds = {column.name: column.kind for column in corpus.columns}
    assert kinds == {
        "topic": "text", "year": "number", "zip": "text", "row": "text", "a.b `c'": "text"
    }  # fmt: skip
    np.testing.assert_array_equal(again.labels(corpus, "year"), [1999, np.nan, 2001.5, -300])
    for name in ("topic", "zip", "row", "a.b `c'"):
        assert tuple(again.labels(corpus, name)) == READ.labels[name]
    assert again.texts(corpus, [3, 1, 1]) == ["one", "two 🙂", "two 🙂"]
    assert again.texts(corpus, []) == []
    np.testing.assert_array_equal(again.keys(corpus), text_keys(READ.texts))


def test_labels_have_codes_and_names(store: CorpusStore):
    topics = ("x", " y ", "") * 10
    years = [f"{number}.0" * (number % 4 > 0) for number in range(30)]
    texts = tuple(f"Text {number}" for number in range(30))
    corpus = store.add("c", ReadTexts(texts, labels={"topic": topics, "year": tuple(years)}))
    assert store.texts(corpus, [17, 3, 17]) == ["Text 17", "Text 3", "Text 17"]
    assert store.ids(corpus, [29, 8]) == ["30", "9"]
    np.testing.assert_array_equal(store.keys(corpus, [9, 2]), text_keys(texts)[[9, 2]])
    codes, names = store.label_codes(corpus, "topic")
    assert names == ("x", "y")
    np.testing.assert_array_equal(codes, [0, 1, -1] * 10)
    written = [f"{row}" * (row % 4 > 0) for row in range(30)]
    assert store.label_names(corpus, "year") == written
    assert store.label_names(corpus, "topic") == ["x", "y", ""] * 10
    np.testing.assert_array_equal(store.labels(corpus, "year", [2, 4]), [2, np.nan])


def test_texts_are_taken_out_by_their_keys_and_counted_again(store: CorpusStore):
    corpus = store.add("five", ReadTexts(("a", "b", "bad", "good", "bad")))
    bad = text_keys(["bad"])
    left = store.leave_out(corpus, bad)
    assert (left.n_texts, left.n_distinct) == (3, 3)
    assert store.leave_out(corpus, bad) == left == store.corpus("five")
    assert store.texts(left) == ["a", "b", "good"]
    assert store.recount(corpus) == left  # one that was cut off in between


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("cats", [0, 1]), ("CATS dogs", [1]), ("it's", [0]), ("%", [2]), ("_", [3]), ("at", [0, 1]),
        ('"and dogs"', [1]), ("“so to speak” äpfel", [4]), ("none", []), (" ", []), ("' OR", []),
        ('"', []), ("(.*", []),
    ],
)  # fmt: skip
def test_words_are_found(store: CorpusStore, query: str, rows: list[int]):
    texts = ("It's RAINING cats", "cats and dogs", "100% wool", "a_b", "Äpfel, “so to speak”")
    corpus = store.add("words", ReadTexts(texts))
    assert store.rows_with_words(corpus, query).tolist() == rows


def test_names_are_free_tidy_and_changed(store: CorpusStore):
    first, second = store.add("same", READ), store.add("same", READ)
    assert (first.name, second.name) == ("same", "same (2)")
    assert store.rename(second, "it's \u202e other").name == "it's other"
    for name in ("same", " \n", ""):
        with pytest.raises(StoreError):
            store.rename(second, name)
    with pytest.raises(StoreError, match=r"“same”, .*|.*“it's other”"):
        store.corpus("nothing such")
    assert len(store.add("x" * 500, READ).name) <= MAX_NAME


def test_vectors_are_computed_once_for_all_corpora_and_go_with_the_last(store: CorpusStore):
    embedder = HashEmbedder()
    first = store.add("first", READ)
    kept = embedded(store, first, embedder)
    second = store.add("second", ReadTexts(("three", "four", "one")))
    progress = list(embed_corpus(store, second, embedder))
    counts = [(event.done, event.total, event.found) for event in (progress[0], progress[-1])]
    assert counts == [(2, 3, 2), (3, 3, 2)]
    vectors = store.vectors.get(kept, store.keys(first))
    np.testing.assert_array_equal(vectors, HashEmbedder().encode(list(READ.texts)))
    assert np.isnan(store.vectors.losses(kept, store.keys(first))).all()
    other = embedded(store, first, HashEmbedder(name="another"))
    assert [kept.id, other.id] == [entry.id for entry in store.vectors.embedders()]
    store.delete(first)
    assert store.corpora() == (second,)
    keys = text_keys(["one", "two 🙂", "three"])
    assert store.vectors.has_vectors(kept, keys).tolist() == [True, False, True]
    with pytest.raises(StoreError, match="was deleted in the meantime"):
        store.texts(first)
    store.delete(second)
    assert store.corpora() == ()


def test_a_key_that_ends_in_zeros_is_found_and_forgotten(store: CorpusStore):
    kept = store.vectors.register(HashEmbedder())
    keys = np.frombuffer(bytes(range(1, 15)) + b"\0\0" + b"\0" * 16, dtype="S16")
    store.vectors.put(kept, keys, np.eye(8)[:2], np.full((2, 2), np.nan))
    np.testing.assert_array_equal(store.vectors.get(kept, keys), np.eye(8)[:2])
    store.vectors.forget(keys[:1])
    assert store.vectors.has_vectors(kept, keys).tolist() == [False, True]


@pytest.mark.parametrize("content", ['{"format": 1}', "{", "[]"])
def test_a_store_of_a_newer_version_is_left_alone(store: CorpusStore, content: str):
    store.add("c", READ)
    (store.folder / "format.json").write_text(content)
    before = sorted(str(path) for path in store.folder.rglob("*"))
    with pytest.raises(StoreError, match="This version of neuralviz cannot read the corpora"):
        CorpusStore(store.folder)
    assert sorted(str(path) for path in store.folder.rglob("*")) == before


FULL_DISK = """
import resource, sys
from pathlib import Path
from neuralviz.store.embedding import embed_corpus
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.errors import StoreError
from tests.support.embedders import HashEmbedder

store = CorpusStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.add("big", ReadTexts(tuple(str(number) * 50 for number in range(20_000))))
except StoreError as error:
    print(error)
try:
    list(embed_corpus(store, store.corpus("small"), HashEmbedder(dim=20_000)))
except StoreError as error:
    print(error)
"""


def test_a_full_disk_is_said_and_loses_nothing(store: CorpusStore):
    corpus = store.add("small", READ)
    kept = embedded(store, corpus)
    run = run_python(FULL_DISK, store.folder)
    of_texts, of_vectors = run.stdout.splitlines()
    for said in (of_texts, of_vectors):
        assert said.startswith("Could not save to "), run.stdout + run.stderr
        assert "free space" in said
    assert store.corpora() == (corpus,)
    assert store.vectors.get(kept, store.keys(corpus)).shape == (4, 8)
    assert len(list(embed_corpus(store, corpus, HashEmbedder(dim=20_000)))) > 1
    store.add("big", READ)


def test_what_a_killed_first_write_leaves_is_written_over(store: CorpusStore):
    (store.folder / "tables" / "corpora.lance" / "_transactions").mkdir(parents=True)
    (store.folder / "tables" / "embedders.lance" / "data").mkdir(parents=True)
    assert CorpusStore(store.folder).corpora() == ()
    corpus = store.add("c", READ)
    embedded(store, corpus)
    assert store.corpora() == (corpus,)


def test_an_embedder_whose_corpus_is_deleted_stops(store: CorpusStore):
    corpus = store.add("c", READ)
    run = embed_corpus(store, corpus, HashEmbedder())
    next(run)
    store.delete(corpus)
    with pytest.raises(StoreError, match="was deleted in the meantime"):
        list(run)
    (kept,) = store.vectors.embedders()
    assert not store.vectors.has_vectors(kept, text_keys(READ.texts)).any()


@pytest.mark.parametrize(
    "values", [("9" * 5000,), ("9007199254740993", "9007199254740992"), ("1٣", "2")]
)
def test_numbers_that_no_double_holds_are_names(store: CorpusStore, values: tuple[str, ...]):
    corpus = store.add("c", ReadTexts(tuple("ab"[: len(values)]), labels={"user": values}))
    assert tuple(store.labels(corpus, "user")) == values


def test_what_was_replaced_is_deleted_after_an_hour(store, monkeypatch):
    monkeypatch.setenv("NEURALVIZ_HOME", str(store.folder.parent))
    kept = store.vectors.restore("made-up", "", 8)
    keys = text_keys(f"text {number}" for number in range(60))
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    data = store.database.place(vectors_table(kept)) / "data"

    def put(start: int, stop: int) -> None:
        losses = np.full((stop - start, 2), np.nan)
        store.vectors.put(kept, keys[start:stop], vectors[start:stop], losses)

    def n_files_after_tidying() -> int:
        database.tidy(store.folder)
        return len(list(data.glob("*.lance")))

    for start in (0, 20, 40):
        put(start, start + 20)
    store.vectors.compact(kept)
    assert n_files_after_tidying() == 4
    monkeypatch.setattr(database, "SUPERSEDED_FOR", timedelta(milliseconds=1))
    time.sleep(0.01)
    with FileLock(store.folder / "writing.lock"):
        assert n_files_after_tidying() == 4
    database._start_thread.cache_clear()
    assert CliRunner().invoke(app, ["corpus", "list"]).exit_code == 0  # in the background
    database.tidy_soon(store.folder).join()
    assert len(list(data.glob("*.lance"))) == 1
    np.testing.assert_array_equal(store.vectors.get(kept, keys), vectors)
    left = store.database.place("texts-abandoned")
    (left / "data").mkdir(parents=True)
    assert n_files_after_tidying() == 1
    assert left.exists()
    monkeypatch.setattr(database, "LEFT_OVER_FOR", timedelta(milliseconds=1))
    time.sleep(0.01)
    assert n_files_after_tidying() == 1
    assert not left.exists()


TEXTS = ReadTexts(tuple(f"text {i} " + "word " * (i % 17) for i in range(400)))

RUN = """
import sys
from functools import partial
from pathlib import Path
from neuralviz.store import embedding
from neuralviz.store.corpora import CorpusStore
from tests.support.embedders import HashEmbedder

store = CorpusStore(Path(sys.argv[1]))
embedding.embed = partial(embedding.embed, keep_every=0.0)
for progress in embedding.embed_corpus(store, store.corpora()[0], HashEmbedder(seconds=0.004)):
    print(progress.done, flush=True)
print("finished", flush=True)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def vectors_of(store: CorpusStore) -> np.ndarray:
    (kept,), (corpus,) = store.vectors.embedders(), store.corpora()
    return store.vectors.get(kept, store.keys(corpus))


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(store: CorpusStore):
    corpus = store.add("c", TEXTS)
    undisturbed = HashEmbedder().encode(list(TEXTS.texts))
    seen = []
    for n_done in (64, 280):
        run = start(store.folder)
        for line in run.stdout:
            if line == "finished\n" or int(line) >= n_done:
                break
        run.kill()
        run.wait()
        here = CorpusStore(store.folder)
        for kept in here.vectors.embedders():
            has = here.vectors.has_vectors(kept, here.keys(corpus))
            seen.append(int(has.sum()))
            whole = here.vectors.get(kept, here.keys(corpus)[has])
            np.testing.assert_array_equal(whole, undisturbed[has])
            assert here.vectors._database.open(f"vectors-{kept.id}").count_rows() == has.sum()
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 400
    assert len(set(seen)) == 2, "the kills came before anything was kept"
    embedder = HashEmbedder()
    *_, last = embed_corpus(store, corpus, embedder)
    assert last.done == last.total
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
