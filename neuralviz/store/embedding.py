"""Embed texts, reusing stored vectors and storing new ones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.embedders.base import Embedder, check_count, find_unread, has_risen
from neuralviz.embedders.specs import EmbedderSpec, make_embedder
from neuralviz.errors import ShouldStop, TextError, UnreadableTextError, check_stop, never
from neuralviz.models.tokens import check_texts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.vectors import KeptEmbedder, VectorStore, text_keys
from neuralviz.words import ShortRepr

if TYPE_CHECKING:
    from neuralviz.embedders.neural import NeuralEmbedder

PORTION = 1 << 16  # texts sorted by length together; the same on every machine
BLOCK = 8192  # texts, roughly, whose tokens and vectors are in memory
READ_AT_ONCE = 512  # texts tokenised between two checks of Stop
MANY_PIECES = 8  # fragments; more are compacted at the end

_PIECE = re.compile(r"\w+|[^\w\s]")
BATCH_SIZE = 32
LEARNT_AT_ONCE = 8  # texts in a batch if a model is tuned on each
KEPT_EVERY = 2.0  # seconds between writes: the most a power cut loses, plus a batch


def _sort_key(text: str) -> tuple[float, bytes]:
    """Sorts by the estimated number of tokens, most first, to batch texts of similar length."""
    return -len(_PIECE.findall(text)) - len(text) / 20, text_keys([text])[0]


class UniqueTexts:
    """Distinct texts, each with its first row among ``n_texts``."""

    def __init__(self, texts: Sequence[str], rows: np.ndarray, n_texts: int) -> None:
        self.texts, self.n_texts = texts, n_texts
        self.keys = text_keys(texts)
        self.first_rows = rows


class DifferentTexts(UniqueTexts):
    """The distinct texts of a list, in portions sorted by length, longest first."""

    def __init__(self, texts: Sequence[str]) -> None:
        number: dict[str, int] = {}
        place_of: list[tuple[int, int]] = []  # portion, and position among its distinct texts
        for start in range(0, len(texts), PORTION):
            portion = sorted(set(texts[start : start + PORTION]), key=_sort_key)
            for place, text in enumerate(portion):
                if text not in number:
                    number[text] = len(number)
                    place_of.append((start // PORTION, place))
        self._place = np.array(place_of, dtype=np.int64).reshape(-1, 2)
        of_text = np.array([number[text] for text in texts], dtype=np.int64)
        self._by_text = np.argsort(of_text, kind="stable")  # rows, by distinct text
        self._starts = np.searchsorted(of_text[self._by_text], np.arange(len(number) + 1))
        super().__init__(list(number), self._by_text[self._starts[:-1]], len(texts))

    def batches(self, mask: np.ndarray, batch_size: int) -> list[np.ndarray]:
        """Batches of the texts in ``mask``; independent of which texts are done."""
        indices = np.flatnonzero(mask)
        portion, place = self._place[indices].T
        batch = place // batch_size
        ends = np.flatnonzero((np.diff(portion) != 0) | (np.diff(batch) != 0)) + 1
        return np.split(indices, ends) if len(indices) else []

    def places(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows that hold these distinct texts, and for each its position in ``indices``."""
        counts = (self._starts[1:] - self._starts[:-1])[indices]
        origins = np.repeat(np.arange(len(indices)), counts)
        within = np.arange(len(origins)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._by_text[self._starts[:-1][indices][origins] + within], origins


@dataclass(eq=False)
class _Part:
    """One embedder at work: stores its vectors every ``interval`` seconds, ``before`` that called.

    The parts of a concatenation also look up which vectors of a block of texts are stored.
    """

    embedder: Embedder
    kept: KeptEmbedder
    store: VectorStore
    before: Callable[[], None]
    interval: float
    looks_up: bool
    _waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    _last: float = field(default_factory=time.monotonic)
    _pieces: int = 0
    _vectors: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    _read: dict[int, Any] = field(default_factory=dict)

    def add(self, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray) -> None:
        """Queue vectors; store them if the interval has passed."""
        self._waiting.append((keys, vectors, loss))
        if time.monotonic() - self._last > self.interval:
            self.keep()

    def keep(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.before()
            keys, vectors, loss = (np.concatenate(arrays) for arrays in zip(*waiting, strict=True))
            first = np.sort(np.unique(keys, return_index=True)[1])  # batches may repeat
            self.store.put(self.kept, keys[first], vectors[first], loss[first])
            self._pieces += 1
        self._last = time.monotonic()

    def compact(self) -> None:
        if self._pieces > MANY_PIECES:
            self.store.compact(self.kept)

    def open(
        self,
        different: UniqueTexts,
        indices: np.ndarray,
        should_stop: ShouldStop,
        left_out: dict[int, str] | None = None,  # gets the reasons
    ) -> None:
        """Look up or tokenise texts; unreadable ones go to ``left_out`` or are raised."""
        self._vectors, self._read = {}, {}
        if self.looks_up:
            match = self.store.find(self.kept, different.keys[indices])
            assert match.vectors is not None
            rows = zip(match.vectors, match.loss, strict=True)
            self._vectors = dict(zip(indices[match.mask].tolist(), rows, strict=True))
            indices = indices[~match.mask]
        for start in range(0, len(indices), READ_AT_ONCE):
            check_stop(should_stop)
            self._read_some(different, indices[start : start + READ_AT_ONCE], left_out)

    def _read_some(
        self, different: UniqueTexts, indices: np.ndarray, left_out: dict[int, str] | None
    ) -> None:
        while len(indices):
            try:
                read = self.embedder.read([different.texts[i] for i in indices])
            except UnreadableTextError as error:
                wrong = indices[error.place]
                if left_out is None:
                    place = int(different.first_rows[wrong])
                    raise UnreadableTextError(error.reason, place, different.n_texts) from error
                left_out[int(wrong)] = error.reason
                indices = indices[indices != wrong]
            else:
                self._read.update(zip(indices.tolist(), read, strict=True))
                return

    def embed(
        self, different: UniqueTexts, indices: np.ndarray, should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors and [text, 2] losses of a batch of the block."""
        lacking = np.array([i for i in indices.tolist() if i in self._read], dtype=np.int64)
        if len(lacking):
            read = [self._read.pop(i) for i in lacking.tolist()]
            batch = self.embedder.embed_read(
                read, different.first_rows[lacking], should_stop=should_stop
            )
            self.add(different.keys[lacking], batch.vectors, batch.loss)
            if len(lacking) == len(indices):
                return batch.vectors, batch.loss
            rows = zip(batch.vectors, batch.loss, strict=True)
            self._vectors.update(zip(lacking.tolist(), rows, strict=True))
        vectors, losses = zip(*(self._vectors.pop(i) for i in indices.tolist()), strict=True)
        return np.stack(vectors), np.stack(losses)


class EmbeddingWork:
    """An embedder at work; the parts of a concatenation are also stored separately."""

    def __init__(
        self,
        embedder: Embedder,
        kept: KeptEmbedder,
        store: VectorStore,
        before: Callable[[], None] = lambda: None,
        interval: float = float("inf"),
    ) -> None:
        self._embedder = embedder
        self._whole = _Part(embedder, kept, store, before, interval, looks_up=False)
        self._parts = [self._whole]
        if len(embedder.parts) > 1:
            self._parts = [
                _Part(part, store.register(part), store, before, interval, looks_up=True)
                for part in embedder.parts
            ]

    @contextmanager
    def keep_finished(self) -> Iterator[None]:
        """Store finished vectors on exit."""
        keepers = list(dict.fromkeys([self._whole, *self._parts]))
        with ExitStack() as stack:
            for keeper in keepers:
                stack.callback(keeper.keep)
            yield
        for keeper in keepers:
            keeper.compact()

    def embed(
        self,
        different: UniqueTexts,
        batches: Sequence[np.ndarray],
        should_stop: ShouldStop,
        left_out: dict[int, str] | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Store and yield indices, [text, dim] vectors and [text, 2] losses of each batch."""
        n = max(1, BLOCK // max(map(len, batches), default=1))  # batches of a block
        for block in (batches[start : start + n] for start in range(0, len(batches), n)):
            for part in self._parts:
                part.open(different, np.concatenate(block), should_stop, left_out)
            for batch in block:
                check_stop(should_stop)
                indices = np.array(
                    [i for i in batch.tolist() if i not in (left_out or ())], dtype=np.int64
                )
                if not len(indices):
                    continue
                results = [part.embed(different, indices, should_stop) for part in self._parts]
                combined, loss = self._embedder.combine(
                    [vectors for vectors, _ in results], [loss for _, loss in results]
                )
                if len(self._parts) > 1:
                    self._whole.add(different.keys[indices], combined, loss)
                yield indices, combined, loss


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingEvent(ShortRepr):
    embedder: KeptEmbedder  # entry in the store
    at: np.ndarray  # [new] rows of the texts in this event; equal texts come together
    vectors: np.ndarray | None  # [new, dim] float32; None if not requested
    loss: np.ndarray  # [new, 2] as of `EmbeddedBatch`
    done: int  # different texts
    total: int  # different texts
    found: int  # of ``done``, already stored before
    n_rose: int  # of ``done``, loss rose or became non-finite
    unread: str = ""  # message of `find_unread`

    @property
    def loss_rose(self) -> np.ndarray:
        """[new] whether the loss rose or became non-finite."""
        return has_risen(self.loss)


@dataclass(frozen=True)
class SharedEvent:
    embedders: tuple[int, ...]  # indices of those in the run
    done: int  # different texts, of all of them together
    total: int  # different texts, of all of them together


def embed(
    texts: Sequence[str],
    method: EmbedderSpec | Embedder,
    store: VectorStore,
    *,
    batch_size: int | None = None,
    with_vectors: bool = True,
    before_keeping: Callable[[], None] = lambda: None,
    keep_every: float = KEPT_EVERY,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent]:
    """Embed texts, reusing what the store has.

    Yields events with stored vectors first (at least one), then one event per batch. An interrupted
    run resumes with bitwise the same vectors. Default batches have 32 texts, or 8 if the model is
    tuned on each. Finished vectors are stored every ``keep_every`` seconds, after
    ``before_keeping``, and on exit.

    Raises Stopped, UnreadableTextError, StoreError if vectors cannot be stored, ModelError if a
    model is unavailable or a vector not finite, SettingsError for invalid settings.
    """
    embedder = make_embedder(method) if isinstance(method, EmbedderSpec) else method
    if batch_size is None:
        batch_size = LEARNT_AT_ONCE if embedder.spec and embedder.spec.learns else BATCH_SIZE
    check_count(batch_size, "The batch size")
    check_texts(texts)
    different = DifferentTexts(texts)
    kept = store.register(embedder)
    missing = ~store.has_vectors(kept, different.keys)
    done = n_found = n_rose = 0
    unread = find_unread(embedder, texts).message

    def make_event(
        indices: np.ndarray, vectors: np.ndarray | None, loss: np.ndarray
    ) -> EmbeddingEvent:
        nonlocal done, n_rose
        done += len(indices)
        n_rose += int(has_risen(loss).sum())
        places, origins = different.places(indices)
        by_place = vectors[origins] if vectors is not None and with_vectors else None
        counts = done, len(different.texts), n_found, n_rose
        return EmbeddingEvent(kept, places, by_place, loss[origins], *counts, unread)

    has_vector = np.flatnonzero(~missing)
    for start in range(0, max(len(has_vector), 1), BLOCK):
        indices = has_vector[start : start + BLOCK]
        match = store.find(kept, different.keys[indices], with_vectors=with_vectors)
        missing[indices[~match.mask]] = True  # deleted meanwhile
        n_found += int(match.mask.sum())
        yield make_event(indices[match.mask], match.vectors, match.loss)

    work = EmbeddingWork(embedder, kept, store, before_keeping, keep_every)
    with work.keep_finished():
        for batch in work.embed(different, different.batches(missing, batch_size), should_stop):
            yield make_event(*batch)


def embed_at_once(
    texts: Sequence[str],
    embedders: Sequence[NeuralEmbedder],
    store: VectorStore,
    *,
    should_stop: ShouldStop = never,
) -> Generator[SharedEvent]:
    """Embed with embedders that differ only in epochs, in one run (`share_epochs`).

    Covers those that lack the same texts; `embed` then finds the vectors and computes the rest.
    Fast embedders are not supported. Yields an event per batch.
    """
    from neuralviz.embedders.neural import share_epochs  # loads torch

    keys = np.unique(text_keys(texts))
    lacking: dict[bytes, list[int]] = {}
    for place, embedder in enumerate(embedders):
        has_vector = store.has_vectors(store.register(embedder), keys)
        if not has_vector.all():
            lacking.setdefault(has_vector.tobytes(), []).append(place)
    for together in (tuple(group) for group in lacking.values() if len(group) > 1):
        share_epochs([embedders[place] for place in together])
        with ExitStack() as stack:
            runs = [
                embed(
                    texts,
                    embedders[place],
                    store,
                    batch_size=LEARNT_AT_ONCE,
                    with_vectors=False,
                    keep_every=0,  # in step: only those that lack the same texts share a run
                    should_stop=should_stop if place == together[0] else never,
                )
                for place in together
            ]
            for run in runs:
                stack.callback(run.close)
            for events in zip_longest(*runs):  # all lack the same batches
                last_events = [event for event in events if event is not None]
                n_done = sum(event.done for event in last_events)
                yield SharedEvent(together, n_done, sum(event.total for event in last_events))


def embed_corpus(
    store: CorpusStore,
    corpus: Corpus,
    method: EmbedderSpec | Embedder,
    *,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent]:
    """`embed` for a corpus, without vectors. StoreError if deleted, TextError if unreadable."""
    embedder = make_embedder(method) if isinstance(method, EmbedderSpec) else method
    texts = store.texts(corpus)
    try:
        yield from embed(
            texts,
            embedder,
            store.vectors,
            batch_size=BATCH_SIZE,
            with_vectors=False,
            before_keeping=lambda: store.check_kept(corpus),
            should_stop=should_stop,
        )
    except UnreadableTextError as error:
        (its_id,) = store.ids(corpus, [error.place])
        raise TextError(
            f"Cannot embed text {error.place + 1:,} of “{corpus.name}” (ID {its_id}) by "
            f"{embedder.name}: the text {error.reason} Remove it and add the corpus again. "
            "Finished embeddings are reused."
        ) from error
