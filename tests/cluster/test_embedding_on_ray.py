"""Vectors from Ray are those of one process, bit by bit, whatever happens on the way.

What Ray does not decide is tested with a worker in this process, and then once on Ray.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuralviz.cluster import embedding as module
from neuralviz.cluster.connecting import Cluster
from neuralviz.cluster.embedding import Attempt, LeftOut, embed_on_cluster, place_on_cluster
from neuralviz.embedders import FOR_CORPORA, Embedder, embedder_spec, make_embedder
from neuralviz.errors import Stopped, StoreError
from neuralviz.maps import mapping
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import embedding, pieces
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import EmbeddingEvent, embed_corpus
from neuralviz.store.vectors import vectors_table
from tests.support.cluster import FORBIDDEN, KILLS, BrokenEmbedder, FragileEmbedder, OrderEmbedder
from tests.support.embedders import HashEmbedder

TEXTS = tuple(f"text {i % 650} " + "word " * (i % 17) for i in range(900))
HERE = Cluster(n_cpus=2, n_gpus=0, n_nodes=1)


def embed_here(
    arguments: Sequence[Any], units: Sequence[module.Unit], *_: Any
) -> Generator[module.UnitResult, None, None]:
    """Ray's part, played by this process."""
    worker = module.UnitEmbedder(*arguments)
    if failure := worker.prepare():
        yield failure
        return
    for unit in units:
        yield worker.embed(*unit)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "embed_units", embed_here)
    monkeypatch.setattr(module, "_avoid_machines", lambda machines: {})


def add_texts(folder: Path, texts: tuple[str, ...] = TEXTS) -> tuple[CorpusStore, Corpus]:
    store = CorpusStore(folder)
    return store, store.add("texts", ReadTexts(texts))


def read_rows(store: CorpusStore, embedder: Embedder) -> np.ndarray:
    """[text, dim] vectors of the corpus; none is there twice."""
    kept, corpus = store.vectors.register(embedder), store.corpora()[0]
    assert store.database.open(vectors_table(kept)).count_rows() == corpus.n_distinct
    return store.vectors.get(kept, store.keys(corpus))


def embed_alone(
    folder: Path, embedder: Embedder, texts: tuple[str, ...] = TEXTS
) -> tuple[np.ndarray, EmbeddingEvent]:
    store, corpus = add_texts(folder, texts)
    *_, last = embed_corpus(store, corpus, embedder)
    return read_rows(store, embedder), last


def find_left_out(run: Generator[EmbeddingEvent, None, LeftOut]) -> LeftOut:
    """What a run leaves out, at its end."""
    while True:
        try:
            next(run)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("portion", [100, 1 << 16])
@pytest.mark.usefixtures("inline")
def test_portions_and_rounds_come_to_the_same(tmp_path, monkeypatch, portion):
    """With portions of 100 texts, texts of one come again in others."""
    embedder = OrderEmbedder()
    monkeypatch.setattr(embedding, "PORTION", portion)
    texts = tuple(f"text {i % 170}" for i in range(240))
    vectors, last = embed_alone(tmp_path / "alone", embedder, texts)
    monkeypatch.setattr(module, "PORTION", portion)
    monkeypatch.setattr(module, "ROUND", 2 * portion)
    store, corpus = add_texts(tmp_path / "cluster", texts)
    events = list(embed_on_cluster(store, corpus, embedder, HERE))
    assert events[-1].done == events[-1].total
    assert [event.done for event in events] == sorted(event.done for event in events)
    assert (events[-1].total, events[-1].n_rose) == (last.total, 0)
    np.testing.assert_array_equal(read_rows(store, embedder), vectors)


@pytest.mark.usefixtures("inline")
def test_stop_and_a_corpus_that_is_deleted_meanwhile(tmp_path: Path):
    store, corpus = add_texts(tmp_path)
    asked = threading.Event()
    with pytest.raises(Stopped):
        for event in embed_on_cluster(
            store, corpus, OrderEmbedder(), HERE, should_stop=asked.is_set
        ):
            if event.done > 100:
                asked.set()
    n_done = event.done
    assert 100 < n_done < corpus.n_distinct
    run = embed_on_cluster(store, corpus, OrderEmbedder(), HERE, commit_every=0)
    assert next(run).found == n_done
    store.delete(corpus)
    with pytest.raises(StoreError, match="deleted"):
        list(run)


@pytest.mark.usefixtures("inline")
def test_real_methods_come_to_the_same_bits(tmp_path: Path):
    """A concatenation keeps its parts, too."""
    texts = ("The sea is calm.", "A road.", "Bread is baked early in the morning.")
    embedder = make_embedder(embedder_spec("mean+sbert-wk", defaults=FOR_CORPORA))
    vectors, _ = embed_alone(tmp_path / "alone", embedder, texts)
    store, corpus = add_texts(tmp_path / "cluster", texts)
    list(embed_on_cluster(store, corpus, embedder, HERE))
    np.testing.assert_array_equal(read_rows(store, embedder), vectors)
    assert len(store.vectors.embedders()) == 3


@pytest.mark.usefixtures("inline")
def test_texts_that_fail_are_named_and_stop_no_others(tmp_path: Path):
    store, corpus = add_texts(tmp_path)
    embedder = BrokenEmbedder("text 77 ", "text 305 ")
    left_out = find_left_out(embed_on_cluster(store, corpus, embedder, HERE))
    reasons = {row: reason for row, (_, reason) in left_out.items()}
    assert sorted(reasons) == [77, 305, 77 + 650]
    assert reasons[305] == "failed: CUDA error: out of memory"
    assert "NaN" in reasons[77]
    keys = np.frombuffer(b"".join(key for key, _ in left_out.values()), "S16")
    rest = store.leave_out(corpus, keys)
    assert store.leave_out(rest, keys) == rest  # another driver does the same
    assert rest.n_texts == len(TEXTS) - 3
    read_rows(store, embedder)


@pytest.mark.usefixtures("inline")
def test_a_text_that_cannot_be_read_is_left_out(tmp_path: Path):
    store, corpus = add_texts(tmp_path, (*TEXTS[:8], FORBIDDEN))
    run = embed_on_cluster(store, corpus, FragileEmbedder(str(tmp_path)), HERE)
    assert [reason for _, reason in find_left_out(run).values()] == ["has no token."]


@pytest.mark.usefixtures("inline")
def test_a_full_disk_ends_the_work_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    store, corpus = add_texts(tmp_path)
    monkeypatch.setattr(pieces, "write_fragments", refuse)
    monkeypatch.setattr(module, "this_machine", lambda: "this one")
    with pytest.raises(StoreError, match=r"Could not save to .*No space left"):
        list(embed_on_cluster(store, corpus, OrderEmbedder(), HERE))


BATCHES = [np.arange(0, 3), np.arange(3, 6), np.arange(6, 8)]
KILLER = 4


def try_unit(folder: Path, unit: bytes = b"unit", killer: int | None = KILLER) -> list[int] | None:
    """One process; the places that it embeds, in their order, or None where it is killed."""
    embedded: list[int] = []
    attempt = Attempt(folder, unit, BATCHES)
    for some in attempt.parts():
        for place in np.concatenate(some).tolist():
            if place == killer:
                return None
            embedded.append(place)
    attempt.close()
    return embedded


def test_a_deadly_text_is_found_and_all_others_are_embedded(tmp_path: Path):
    assert [try_unit(tmp_path) for _ in range(5)] == [None] * 5
    assert try_unit(tmp_path, b"other", killer=None) == list(range(8))
    assert try_unit(tmp_path) == [0, 1, 2, 3, 5, 6, 7]
    assert not list(tmp_path.iterdir())
    assert try_unit(tmp_path / "gone", killer=None) == list(range(8))


@pytest.mark.parametrize("lost", [1, 2])
def test_processes_that_are_lost_with_their_machines_cost_no_text(tmp_path: Path, lost: int):
    for _ in range(lost):
        next(Attempt(tmp_path, b"unit", BATCHES).parts())
    assert try_unit(tmp_path, killer=None) == list(range(8))


def test_the_vectors_are_those_of_one_process(tmp_path: Path, cluster: Cluster):
    """Also where a worker is killed on the way."""
    texts = (*TEXTS[:200], f"{KILLS} now")
    vectors, _ = embed_alone(tmp_path / "alone", OrderEmbedder(), texts)
    store, corpus = add_texts(tmp_path / "cluster", texts)
    embedder = FragileEmbedder(str(tmp_path))
    assert find_left_out(embed_on_cluster(store, corpus, embedder, cluster)) == {}
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(read_rows(store, embedder), vectors)
    assert not list(store.folder.glob("run-*"))  # the run left nothing behind


def test_a_cluster_places_texts_as_this_process_does(tmp_path, cluster, monkeypatch):
    store, corpus = add_texts(tmp_path, TEXTS[:400])
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    points = []
    monkeypatch.setattr(mapping, "FITTED", 150)
    monkeypatch.setattr(mapping, "BLOCK", 130)
    for spread in (mapping.place_on_processes, place_on_cluster):
        kept = mapping.make_map(
            store, corpus, last.embedder, ProjectionSettings("pca"), spread=spread
        )
        assert kept.n_fitted == 150
        points.append(KeptMaps(store).points(kept)[0])
        KeptMaps(store).delete(kept)
    np.testing.assert_array_equal(*points)
    assert len({tuple(point) for point in points[0]}) == len(set(TEXTS[:400]))
