"""`embed`: what its events bring, by stores on disk and in memory, by single and joined methods."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders import ConcatenatedEmbedder
from neuralviz.embedders.base import missing_losses
from neuralviz.errors import ModelError, Stopped, UnreadableTextError
from neuralviz.store import embedding
from neuralviz.store.database import Database
from neuralviz.store.embedding import EmbeddingEvent, embed
from neuralviz.store.vectors import KeptVectors, MemoryVectors, VectorStore, text_keys
from tests.support.embedders import HashEmbedder

TEXTS = [f"text {i % 50} " + "word " * (i % 7) for i in range(120)]  # some are there twice


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    on_disk = request.param == "disk"
    return KeptVectors(Database(tmp_path / "kept")) if on_disk else MemoryVectors()


def fold(events: list[EmbeddingEvent], n_texts: int) -> np.ndarray:
    """[text, dim] the vectors of all events, each text brought once."""
    out = np.full((n_texts, events[0].embedder.dim), np.nan, dtype=np.float32)
    for event in events:
        assert np.isnan(out[event.at]).all(), "a text was brought twice"
        assert len(event.vectors) == len(event.loss) == len(event.at)
        out[event.at] = event.vectors
    return out


def same(vectors: np.ndarray, expected: np.ndarray) -> None:
    """But for the last bit: parts are kept in float32 before they are joined."""
    np.testing.assert_allclose(vectors, expected, atol=2e-7)


class Pair(ConcatenatedEmbedder):
    """Two methods of known vectors, joined."""

    def __init__(self) -> None:
        super().__init__([HashEmbedder(), HashEmbedder(dim=3, name="other")])


@pytest.mark.parametrize("kind", [HashEmbedder, Pair])
def test_events_bring_every_text_once_and_what_is_kept_at_once(kind, store):
    events = list(embed(TEXTS[:60], kind(), store, batch_size=16))
    n = len(set(TEXTS[:60]))
    assert [event.done for event in events] == [0, *range(16, n, 16), n]
    assert {(event.total, event.found, event.n_rose) for event in events} == {(n, 0, 0)}
    assert [event.done == event.total for event in events] == [False] * (len(events) - 1) + [True]
    same(fold(events, 60), kind().encode(TEXTS[:60]))
    embedder = kind()
    first, *rest = embed(TEXTS, embedder, store, batch_size=16)
    assert first.found == first.done == len(set(TEXTS[:60]))
    assert {event.found for event in rest} == {first.found}
    same(fold([first, *rest], len(TEXTS)), kind().encode(TEXTS))
    for part in embedder.parts:
        computed = [text for call in part.calls for text in call]
        assert sorted(computed) == sorted(set(TEXTS) - set(TEXTS[:60]))


def test_parts_and_their_concatenation_share_vectors(store: VectorStore) -> None:
    pair = Pair()
    first, second = pair.parts
    list(embed(TEXTS, HashEmbedder(), store))
    list(embed(TEXTS, pair, store))
    assert first.calls == [] != second.calls
    alone = HashEmbedder(dim=3, name="other")
    (event,) = embed(TEXTS, alone, store)
    assert event.done == event.total and alone.calls == []


@pytest.mark.parametrize("kind", [HashEmbedder, Pair])
def test_stop_is_raised_and_loses_nothing(kind: type, store: VectorStore) -> None:
    done = []
    run = embed(
        TEXTS, kind(), store, batch_size=8, keep_every=60.0, should_stop=lambda: done[-1:] == [16]
    )
    with pytest.raises(Stopped):
        for event in run:
            done.append(event.done)
    assert done == [0, 8, 16]
    first, *_ = embed(TEXTS, kind(), store, batch_size=8)
    assert first.found == 16


class Readable(HashEmbedder):
    """Reads no text with a question mark."""

    def _read(self, texts):
        for place, text in enumerate(texts):
            if "?" in text:
                raise UnreadableTextError("is a question.", place, len(texts))
        return texts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Why?", "Text 4 is a question."),
        (" ", "Text 4 is empty. It must contain at least one word."),
    ],
)
def test_a_text_that_cannot_be_read_is_named_before_any_is_embedded(text, said, store):
    embedder = Readable()
    with pytest.raises(UnreadableTextError) as raised:
        list(embed(["One.", "One.", "Two words.", text, text], embedder, store))
    assert str(raised.value) == said
    assert raised.value.place == 3
    assert embedder.calls == []


def test_a_vector_that_is_no_number_names_its_text(store: VectorStore) -> None:
    class Broken(HashEmbedder):
        def _embed(self, read, should_stop):
            vectors, loss = super()._embed(read, should_stop)
            vectors[[text == "bad" for text in read]] = np.nan
            return vectors, loss

    with pytest.raises(ModelError, match="The embedding of text 3"):
        list(embed(["the longest text", "short text", "bad", "x"], Broken(), store))


class Learning(HashEmbedder):
    """The loss of texts with an exclamation mark rises."""

    def _embed(self, read, should_stop):
        vectors, _ = super()._embed(read, should_stop)
        return vectors, np.array([[2.0, 3.0 if "!" in text else 1.0] for text in read])


def test_losses_come_with_kept_vectors_too(store: VectorStore) -> None:
    texts = ["Rain!", "Snow.", "Rain!", "Wind."]
    for _ in range(2):
        events = list(embed(texts, Learning(), store))
        assert events[-1].n_rose == 1
        rose = np.zeros(4, dtype=bool)
        for event in events:
            rose[event.at] = event.loss_rose
        assert rose.tolist() == [True, False, True, False]
    joined = ConcatenatedEmbedder([HashEmbedder(), Learning()])
    *_, last = embed(texts, joined, store)
    assert last.n_rose == 1


def test_more_texts_than_are_in_memory_at_once(store, monkeypatch):
    monkeypatch.setattr(embedding, "BLOCK", 20)
    monkeypatch.setattr(embedding, "READ_AT_ONCE", 7)
    whole, resumed = HashEmbedder(), HashEmbedder()
    list(embed(TEXTS, whole, MemoryVectors(), batch_size=8))
    lengths = [len(text) for call in whole.calls for text in call]
    assert lengths == sorted(lengths, reverse=True)
    run = embed(TEXTS, resumed, store, batch_size=8)
    for event in run:
        if event.done >= 24:
            run.close()
    list(embed(TEXTS, resumed, store, batch_size=8))
    assert resumed.calls == whole.calls
    events = list(embed(TEXTS, Pair(), store, batch_size=8))
    same(fold(events, len(TEXTS)), Pair().encode(TEXTS))


def test_vectors_used_longest_ago_are_forgotten() -> None:
    store = MemoryVectors(max_bytes=4 * 8 * 3)  # three vectors
    kept = store.register(HashEmbedder())
    keys = text_keys("abcde")
    rows = np.eye(5, 8, dtype=np.float32)
    store.put(kept, keys[:3], rows[:3], missing_losses(3))
    store.find(kept, keys[:1])
    store.put(kept, keys[3:], rows[3:], missing_losses(2))
    assert store.has_vectors(kept, keys).tolist() == [True, False, False, True, True]
    np.testing.assert_array_equal(store.find(kept, keys).vectors, rows[[0, 3, 4]])


def test_threads_share_a_small_store() -> None:
    store = MemoryVectors(max_bytes=4 * 8 * 40)
    expected, failed = Pair().encode(TEXTS), []

    def run(shift: int) -> None:
        for _ in range(5):
            texts = TEXTS[shift:] + TEXTS[:shift]
            events = list(embed(texts, Pair(), store, batch_size=8, keep_every=0.0))
            if not np.allclose(np.roll(fold(events, len(texts)), shift, axis=0), expected):
                failed.append(shift)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, (0, 17, 40, 80)))
    assert failed == []
    assert 0 < store._bytes <= store.max_bytes
    assert store._bytes == sum(vector.nbytes for vector, _ in store._vectors.values())
