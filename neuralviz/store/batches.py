"""The work of embedding, batch by batch: which texts differ, what is kept of them, what is missing.

`neuralviz.store.embedding` makes events of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import Stopped, StoreError, UnreadableTextError
from neuralviz.store.vectors import text_keys

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder
    from neuralviz.errors import ShouldStop
    from neuralviz.store.vectors import KeptEmbedder, VectorStore

BLOCK = 8192  # texts, about, whose tokens and kept vectors are in memory at once
READ_AT_ONCE = 512  # texts that are tokenised between two looks at Stop
MANY_PIECES = 8  # written one by one, they are put together at the end


_PIECE = re.compile(r"\w+|[^\w\s]")


def _length(text: str) -> float:
    """About how many tokens a text has: of texts that go together, few are padded then."""
    return len(_PIECE.findall(text)) + len(text) / 20


class DifferentTexts:
    """The different ones of some texts, the longest first.

    Attributes:
        texts, keys: [text] of the different ones.
        n_texts: of all, equal ones included.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.n_texts = len(texts)
        number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        different = list(number)
        keys = text_keys(different)
        order = sorted(
            range(len(different)),
            key=lambda i: (-_length(different[i]), keys[i]),
        )
        self.texts = [different[i] for i in order]
        self.keys = keys[order]
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        of_text = rank[np.array([number[text] for text in texts], dtype=np.int64)]
        self._by_text = np.argsort(of_text, kind="stable")  # places of the first, the second, …
        self._starts = np.searchsorted(of_text[self._by_text], np.arange(len(order) + 1))

    def __len__(self) -> int:
        return len(self.texts)

    def places(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of some different texts among all, and which of ``at`` each is."""
        counts = (self._starts[1:] - self._starts[:-1])[at]
        of = np.repeat(np.arange(len(at)), counts)
        within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._by_text[self._starts[:-1][at][of] + within], of

    def first_places(self, at: np.ndarray) -> np.ndarray:
        """Where some different texts come first among all."""
        return self._by_text[self._starts[at]]


class Keeper:
    """Keeps the vectors of one embedder, not every batch on its own.

    Args:
        store, kept: where, and under what.
        before: called before vectors are kept.
        every: seconds.
    """

    def __init__(
        self, store: VectorStore, kept: KeptEmbedder, before: Callable[[], None], every: float
    ) -> None:
        self.kept = kept
        self._store = store
        self._before = before
        self._every = every
        self._waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._last = time.monotonic()
        self._pieces = 0

    def add(self, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray) -> None:
        """Vectors to be kept soon."""
        self._waiting.append((keys, vectors, loss))

    def keep_in_time(self) -> None:
        """Keep what waits when the last time is long ago."""
        if time.monotonic() - self._last > self._every:
            self.keep()

    def keep(self) -> None:
        """Keep what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._before()
            keys, vectors, loss = (np.concatenate(arrays) for arrays in zip(*waiting, strict=True))
            self._store.put(self.kept, keys, vectors, loss)
            self._pieces += 1
        self._last = time.monotonic()

    def compact(self) -> None:
        """Tidy up at the end of a long run."""
        if self._pieces > MANY_PIECES:
            self._store.compact(self.kept)


@contextmanager
def keeping(keepers: Sequence[Keeper]) -> Iterator[None]:
    """Whatever ends the work, what is finished is kept, by each keeper that can.

    Raises:
        StoreError: one cannot, and the work did not fail itself: why it did comes first.
    """
    failed = False
    try:
        yield
    except Exception as error:
        failed = not isinstance(error, Stopped)
        raise
    finally:
        with suppress(StoreError) if failed else nullcontext(), ExitStack() as stack:
            for keeper in keepers:
                stack.callback(keeper.keep)


class Part:
    """An embedder at work on a block of texts: what is kept of them, and what is read of the rest.

    Args:
        embedder: a single one.
        keeper: of its vectors.
        store: where it may have vectors of texts that have none by the whole; None where it is the
            whole.
    """

    def __init__(
        self, embedder: Embedder, keeper: Keeper, store: VectorStore | None = None
    ) -> None:
        self.keeper = keeper
        self._embedder = embedder
        self._store = store
        self._vectors: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._read: dict[int, Any] = {}

    def open(self, different: DifferentTexts, at: np.ndarray, should_stop: ShouldStop) -> None:
        """Look for the vectors of some texts, and read the texts that have none."""
        self._vectors, self._read = {}, {}
        if self._store is not None:
            found = self._store.find(self.keeper.kept, different.keys[at])
            assert found.vectors is not None
            rows = zip(found.vectors, found.loss, strict=True)
            self._vectors = dict(zip(at[found.mask].tolist(), rows, strict=True))
            at = at[~found.mask]
        for start in range(0, len(at), READ_AT_ONCE):
            if should_stop():
                raise Stopped
            some = at[start : start + READ_AT_ONCE]
            try:
                read = self._embedder.read([different.texts[i] for i in some])
            except UnreadableTextError as error:
                place = int(different.first_places(some)[error.place])
                raise UnreadableTextError(error.reason, place, different.n_texts) from error
            self._read.update(zip(some.tolist(), read, strict=True))

    def embed(
        self, different: DifferentTexts, at: np.ndarray, should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors and [text, 2] losses of a batch of the block."""
        lacking = np.array([i for i in at.tolist() if i in self._read], dtype=np.int64)
        if len(lacking):
            read = [self._read.pop(i) for i in lacking.tolist()]
            places = different.first_places(lacking)
            batch = self._embedder.embed_read(read, places, should_stop=should_stop)
            self.keeper.add(different.keys[lacking], batch.vectors, batch.loss)
            if len(lacking) == len(at):
                return batch.vectors, batch.loss
            rows = zip(batch.vectors, batch.loss, strict=True)
            self._vectors.update(zip(lacking.tolist(), rows, strict=True))
        vectors, losses = zip(*(self._vectors.pop(i) for i in at.tolist()), strict=True)
        return np.stack(vectors), np.stack(losses)


def batches(
    different: DifferentTexts,
    missing: np.ndarray,
    parts: Sequence[Part],
    batch_size: int,
    should_stop: ShouldStop,
) -> Iterator[tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]]:
    """Batch by batch: which of the different texts, and the vectors and losses by each part."""
    block = max(1, BLOCK // batch_size) * batch_size
    for start in range(0, len(different), block):
        at = start + np.flatnonzero(missing[start : start + block])
        if not len(at):
            continue
        for part in parts:
            part.open(different, at, should_stop)
        for batch in np.split(at, np.flatnonzero(np.diff(at // batch_size)) + 1):
            if should_stop():
                raise Stopped
            results = [part.embed(different, batch, should_stop) for part in parts]
            yield batch, [vectors for vectors, _ in results], [loss for _, loss in results]
