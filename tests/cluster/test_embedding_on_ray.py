"""Vectors from Ray are those of one process, bit by bit, whatever happens on the way."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from neuralviz.cluster import embedding as module
from neuralviz.cluster.connecting import Cluster
from neuralviz.cluster.embedding import embed_on_cluster, place_on_cluster
from neuralviz.cluster.worker import EmbedUnits, LeftOut, UnitResult, plan_batches
from neuralviz.embedders import FOR_CORPORA, Embedder, embedder_spec, make_embedder
from neuralviz.errors import Stopped, StoreError
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import Fitting, make_map
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import BATCH_SIZE, EmbeddingEvent, embed_corpus
from neuralviz.store.vectors import text_keys, vectors_table
from tests.support.cluster import (
    FORBIDDEN,
    KILLS,
    BrokenEmbedder,
    FragileEmbedder,
    FullDiskEmbedder,
    OrderEmbedder,
)
from tests.support.embedders import HashEmbedder

TEXTS = tuple(f"text {i % 650} " + "word " * (i % 17) for i in range(900))


def stores(tmp_path: Path, texts: tuple[str, ...] = TEXTS) -> tuple[CorpusStore, CorpusStore]:
    """Two stores with the same corpus."""
    found = CorpusStore(tmp_path / "alone"), CorpusStore(tmp_path / "cluster")
    for store in found:
        store.add("texts", ReadTexts(texts))
    return found


def corpus_of(store: CorpusStore) -> Corpus:
    return store.corpora()[0]


def vectors_of(store: CorpusStore, embedder: Embedder) -> np.ndarray:
    kept = store.vectors.find_embedder(embedder)
    assert kept is not None
    return store.vectors.get(kept, store.keys(corpus_of(store)))


def alone(store: CorpusStore, embedder: Embedder) -> EmbeddingEvent:
    *_, last = embed_corpus(store, corpus_of(store), embedder)
    return last


def n_rows(store: CorpusStore, embedder: Embedder) -> int:
    kept = store.vectors.find_embedder(embedder)
    assert kept is not None
    return store.database.open(vectors_table(kept)).count_rows()


def test_the_vectors_are_those_of_one_process(tmp_path: Path, cluster: Cluster):
    one, many = stores(tmp_path)
    embedder = OrderEmbedder()
    last = alone(one, embedder)
    events = list(embed_on_cluster(many, corpus_of(many), embedder, cluster, n_embedders=2))
    assert events[-1].is_complete
    assert [event.done for event in events] == sorted(event.done for event in events)
    assert (events[-1].total, events[-1].found, events[-1].n_rose) == (last.total, 0, 0)
    np.testing.assert_array_equal(vectors_of(many, embedder), vectors_of(one, embedder))
    assert n_rows(many, embedder) == corpus_of(many).n_distinct  # none twice
    again = list(embed_on_cluster(many, corpus_of(many), embedder, cluster))
    assert again[-1].found == again[-1].total


@pytest.mark.slow
def test_portions_and_rounds_come_to_the_same(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """With portions of 100 texts, texts of one come again in others."""
    from neuralviz.store import embedding

    one, many = stores(tmp_path, tuple(f"text {i % 170}" for i in range(240)))
    embedder = OrderEmbedder()
    monkeypatch.setattr(embedding, "PORTION", 100)
    alone(one, embedder)
    monkeypatch.undo()
    monkeypatch.setattr(module, "PORTION", 100)
    list(embed_on_cluster(many, corpus_of(many), embedder, cluster, round_size=200))
    np.testing.assert_array_equal(vectors_of(many, embedder), vectors_of(one, embedder))
    assert n_rows(many, embedder) == corpus_of(many).n_distinct


def left_out_of(run: Generator[EmbeddingEvent, None, LeftOut]) -> LeftOut:
    """What a run leaves out, at its end."""
    while True:
        try:
            next(run)
        except StopIteration as end:
            return end.value


@pytest.mark.slow
def test_a_text_that_kills_every_process_is_named_and_costs_no_other(
    tmp_path: Path, cluster: Cluster
):
    texts = (*TEXTS[:40], f"{KILLS} always", *TEXTS[40:80])
    _, many = stores(tmp_path, texts)
    embedder = FragileEmbedder(str(tmp_path), always=True)
    left_out = left_out_of(embed_on_cluster(many, corpus_of(many), embedder, cluster))
    bad = text_keys([texts[40]])
    assert left_out == {40: (bad.tobytes(), "killed every process that embedded it.")}
    assert n_rows(many, embedder) == corpus_of(many).n_distinct - 1
    assert not list(many.database.folder.glob("*/*.lock"))  # the run left nothing behind


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_and_unreadable_texts_are_named(
    tmp_path: Path, cluster: Cluster
):
    texts = (*TEXTS[:400], f"this one {FORBIDDEN}", *TEXTS[400:], f"{KILLS} now")
    one, many = stores(tmp_path, texts)
    marks = tmp_path / "marks"
    marks.mkdir()
    embedder = FragileEmbedder(str(marks))
    left_out = left_out_of(embed_on_cluster(many, corpus_of(many), embedder, cluster))
    bad = text_keys([texts[400]])
    assert left_out == {400: (bad.tobytes(), "has no token.")}
    assert len(list(marks.iterdir())) == 1  # a process was killed
    left = many.leave_out(corpus_of(many), bad)
    assert left is not None
    assert many.leave_out(left, bad) == left  # another driver does the same
    assert (left.n_texts, left.n_distinct) == (len(texts) - 1, len(set(texts)) - 1)
    readable = [text for text in texts if FORBIDDEN not in text]
    assert many.texts(left) == readable
    assert n_rows(many, embedder) == left.n_distinct
    # the batches are those of all texts, without the one that cannot be read
    mask = np.array([FORBIDDEN not in text for text in texts])
    batches = plan_batches(one, corpus_of(one), 0, mask & first_places(texts), BATCH_SIZE)
    expected = {}
    for batch in batches:
        some = [texts[row] for row in batch]
        vectors = OrderEmbedder().embed_read(some, np.arange(len(some))).vectors
        expected.update(zip(some, vectors, strict=True))
    np.testing.assert_array_equal(
        vectors_of(many, embedder), np.stack([expected[text] for text in readable])
    )


def first_places(texts: tuple[str, ...]) -> np.ndarray:
    """[text] whether it stands there for the first time."""
    seen: set[str] = set()
    return np.array([not (text in seen or seen.add(text)) for text in texts])


@pytest.mark.slow
def test_a_full_disk_on_one_machine(tmp_path: Path, cluster: Cluster):
    """What one cannot write another does; where none can, a sentence says so."""
    one, many = stores(tmp_path, TEXTS[:200])
    embedder = FullDiskEmbedder(str(tmp_path))
    many.vectors.register(embedder)
    list(embed_on_cluster(many, corpus_of(many), embedder, cluster))
    assert (tmp_path / "full").exists()
    plain = OrderEmbedder()
    alone(one, plain)
    np.testing.assert_array_equal(vectors_of(many, embedder), vectors_of(one, plain))
    everywhere = FullDiskEmbedder(str(tmp_path), always=True, name="everywhere")
    with pytest.raises(StoreError, match=r"The disk with .* is full"):
        list(embed_on_cluster(many, corpus_of(many), everywhere, cluster))
    assert n_rows(many, everywhere) == 0


@pytest.mark.slow
def test_stop_keeps_what_is_finished_and_the_rest_follows(tmp_path: Path, cluster: Cluster):
    one, many = stores(tmp_path)
    embedder = OrderEmbedder(seconds=0.02)
    alone(one, embedder)
    asked = threading.Event()
    with pytest.raises(Stopped):
        for event in embed_on_cluster(
            many, corpus_of(many), embedder, cluster, should_stop=asked.is_set
        ):
            if event.done > 100:
                asked.set()
    stopped = n_rows(many, embedder)
    assert 100 < stopped < corpus_of(many).n_distinct
    events = list(embed_on_cluster(many, corpus_of(many), embedder, cluster))
    assert events[0].found == stopped
    np.testing.assert_array_equal(vectors_of(many, embedder), vectors_of(one, embedder))
    assert n_rows(many, embedder) == corpus_of(many).n_distinct


def test_a_corpus_that_is_deleted_meanwhile_ends_the_work(tmp_path: Path, cluster: Cluster):
    _, many = stores(tmp_path)
    corpus = corpus_of(many)
    run = embed_on_cluster(many, corpus, OrderEmbedder(), cluster, commit_every=0)
    next(run)
    many.delete(corpus)
    with pytest.raises(StoreError, match="deleted"):
        list(run)
    assert many.corpora() == ()


def test_a_cluster_places_texts_as_this_process_does(tmp_path: Path, cluster: Cluster):
    found = []
    for name, spread in (("here", None), ("cluster", place_on_cluster)):
        store = CorpusStore(tmp_path / name)
        corpus = store.add("texts", ReadTexts(TEXTS[:400]))
        *_, last = embed_corpus(store, corpus, HashEmbedder())
        fitting = Fitting(n_fitted=150, block=60)
        if spread is not None:
            fitting = Fitting(n_fitted=150, block=60, spread=spread)
        kept = make_map(store, corpus, last.embedder, ProjectionSettings("pca"), fitting=fitting)
        assert kept.n_fitted == 150
        found.append(KeptMaps(store).points(kept)[0])
    np.testing.assert_array_equal(*found)
    assert len({tuple(point) for point in found[0]}) == len(set(TEXTS[:400]))


def embed_alone(tmp_path: Path, embedder: Embedder) -> tuple[UnitResult, CorpusStore]:
    """What one worker makes of all texts."""
    _, many = stores(tmp_path)
    corpus = corpus_of(many)
    kept = many.vectors.register(embedder)
    batches = plan_batches(many, corpus, 0, first_places(TEXTS), BATCH_SIZE)
    rows = np.concatenate(batches)
    worker = EmbedUnits(str(many.folder), corpus, lambda: embedder, kept.id, 1, str(tmp_path))
    keys = many.keys(corpus)[rows].tobytes()
    return worker._embed(rows.tolist(), [len(batch) for batch in batches], keys), many


def test_texts_that_fail_are_named_and_stop_no_others(tmp_path: Path):
    done, _ = embed_alone(tmp_path, BrokenEmbedder("text 77 ", "text 305 "))
    reasons = {row: reason for row, (_, reason) in done.left_out.items()}
    assert sorted(reasons) == [77, 305, 77 + 650]
    assert reasons[305] == "failed: CUDA error: out of memory"
    assert "NaN" in reasons[77]
    assert not done.failed
    n_texts = len(set(TEXTS)) - 3
    keys = np.frombuffer(b"".join(piece.keys for piece in done.pieces), "S16")
    assert done.n_texts == len(keys) == len(set(keys)) == n_texts


@pytest.mark.slow
def test_real_methods_come_to_the_same_bits(tmp_path: Path, cluster: Cluster):
    read = read_texts(Source.from_path(sample_data() / "topics.csv"))
    one, many = CorpusStore(tmp_path / "alone"), CorpusStore(tmp_path / "cluster")
    for store in (one, many):
        store.add("texts", read.first(20))
    embedder = make_embedder(embedder_spec("neural+mean", defaults=FOR_CORPORA))
    alone(one, embedder)
    list(embed_on_cluster(many, corpus_of(many), embedder, cluster, n_embedders=2))
    np.testing.assert_array_equal(vectors_of(many, embedder), vectors_of(one, embedder))
