"""Embed a corpus once: what is there already is not computed again, what is finished is kept."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.corpus.vectors import text_keys
from neuralviz.embedders.concatenated import join
from neuralviz.errors import TextError

if TYPE_CHECKING:
    from neuralviz.corpus.store import Corpus, CorpusStore
    from neuralviz.corpus.vectors import KeptEmbedder
    from neuralviz.embedders import ConcatenatedEmbedder, EmbeddedBatch, Embedder, EmbedderSpec
    from neuralviz.embedders.base import ShouldStop

BATCH_SIZE = 32
KEPT_EVERY = 2.0  # seconds: what is lost at most, beside the batch under way, by a power cut
JOINED_AT_ONCE = 10_000
MANY_PIECES = 8  # written one by one, they are put together at the end


@dataclass(frozen=True)
class EmbeddingProgress:
    """How far a corpus is embedded.

    Attributes:
        embedder: under which the vectors are kept.
        done, total: different texts; of a concatenation, those of every part, and the joining.
        found: of those done, how many had been kept before.
        n_rose: texts whose loss rose in this run, or ceased to be a number.
    """

    embedder: KeptEmbedder
    done: int
    total: int
    found: int
    n_rose: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every text has its vector."""
        return self.done == self.total


def embed_corpus(
    store: CorpusStore,
    corpus: Corpus,
    embedder: Embedder,
    spec: EmbedderSpec | None = None,
    *,
    should_stop: ShouldStop = lambda: False,
) -> Generator[EmbeddingProgress]:
    """Embed the texts of a corpus that have no vector yet, and keep the vectors as they come.

    The longest texts go first, in batches that depend on the corpus alone: a run that was ended in
    any way goes on where it was, and comes to the same vectors, bit by bit, as one that was not.

    Args:
        store: where the corpus is kept.
        corpus: one of its corpora.
        embedder: of any method.
        spec: how to make the embedder again.
        should_stop: asked again and again, also within a batch.

    Yields:
        The progress at the start, after every batch, and when all is kept.

    Raises:
        StoreError: the vectors cannot be written, and those written before are kept; or the corpus
            was deleted meanwhile.
        ModelError: as of `Embedder.embed_in_batches`.
    """
    from neuralviz.embedders import ConcatenatedEmbedder

    kept = store.vectors.register(embedder, spec.to_json() if spec else "")
    if isinstance(embedder, ConcatenatedEmbedder):
        yield from _join_parts(store, corpus, embedder, kept, spec, should_stop)
        return
    texts, keys = distinct_texts(store, corpus)
    has = store.vectors.has(kept, keys)
    done = found = int(has.sum())
    n_rose, n_pieces = 0, 0
    pending: list[tuple[np.ndarray, EmbeddedBatch]] = []
    last_kept = time.monotonic()

    def keep() -> int:
        if pending:
            store.check_kept(corpus)
            store.vectors.put(
                kept,
                np.concatenate([part for part, _ in pending]),
                np.concatenate([batch.vectors for _, batch in pending]),
                np.concatenate([batch.loss for _, batch in pending]),
            )
        n = len(pending)
        pending.clear()
        return n

    yield EmbeddingProgress(kept, done, len(texts), found)
    try:
        for start in range(0, len(texts), BATCH_SIZE):
            missing = [
                at for at in range(start, min(start + BATCH_SIZE, len(texts))) if not has[at]
            ]
            if not missing:
                continue
            given = [texts[at] for at in missing]
            batches = embedder.embed_in_batches(given, BATCH_SIZE, should_stop=should_stop)
            try:
                batch = next(batches, None)
            except TextError as error:
                raise _named(store, corpus, embedder, given) or error from error
            if batch is None:  # stopped
                break
            pending.append((keys[missing][batch.at], batch))
            done += len(missing)
            n_rose += int(batch.loss_rose.sum())
            if time.monotonic() - last_kept > KEPT_EVERY:
                n_pieces += keep() > 0
                last_kept = time.monotonic()
            yield EmbeddingProgress(kept, done, len(texts), found, n_rose)
            if should_stop():
                break
    finally:
        n_pieces += keep() > 0
    if n_pieces > MANY_PIECES:
        store.vectors.compact(kept)
    yield EmbeddingProgress(kept, done, len(texts), found, n_rose)


def _join_parts(
    store: CorpusStore,
    corpus: Corpus,
    embedder: ConcatenatedEmbedder,
    kept: KeptEmbedder,
    spec: EmbedderSpec | None,
    should_stop: ShouldStop,
) -> Iterator[EmbeddingProgress]:
    """Embed by every part on its own, so that none is computed twice, and keep them joined."""
    n_parts, n_texts = len(embedder.parts), corpus.n_distinct
    total, done, found, n_rose = n_parts * n_texts, 0, 0, 0
    parts = []
    for place, part in enumerate(embedder.parts):
        progress = EmbeddingProgress(kept, 0, 0, 0)
        for progress in embed_corpus(
            store, corpus, part, spec.parts[place] if spec else None, should_stop=should_stop
        ):
            so_far = (done + progress.done, total + 1, found + progress.found)
            yield EmbeddingProgress(kept, *so_far, n_rose + progress.n_rose)
        if not progress.is_complete:
            return
        parts.append(progress.embedder)
        done, found = done + progress.done, found + progress.found
        n_rose += progress.n_rose
    keys = np.unique(store.keys(corpus))
    keys = keys[~store.vectors.has(kept, keys)]
    for start in range(0, len(keys), JOINED_AT_ONCE):
        some = keys[start : start + JOINED_AT_ONCE]
        loss = np.full((len(some), 2), np.nan)
        for one in parts:
            loss = np.where(np.isnan(loss[:, :1]), store.vectors.losses(one, some), loss)
        vectors = join([store.vectors.get(one, some) for one in parts])
        store.vectors.put(kept, some, vectors, loss)
    yield EmbeddingProgress(kept, total + 1, total + 1, found, n_rose)


def _named(
    store: CorpusStore, corpus: Corpus, embedder: Embedder, texts: Sequence[str]
) -> TextError | None:
    """The error of the text that an embedder cannot read, with the place it has in the corpus."""
    for text in texts:
        try:
            next(embedder.embed_in_batches([text]))
        except TextError as error:
            row = store.texts(corpus).index(text)
            (its_id,) = store.ids(corpus, [row])
            return TextError(
                f"Text {row + 1:,} of “{corpus.name}” (id {its_id}) cannot be embedded by "
                f"{embedder.name}: {error} Leave it out and add the corpus again; what is "
                "embedded already is found again."
            )
    return None


def distinct_texts(store: CorpusStore, corpus: Corpus) -> tuple[list[str], np.ndarray]:
    """The different texts of a corpus, the longest first, and their keys."""
    texts = list(dict.fromkeys(store.texts(corpus)))
    keys = text_keys(texts)
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), keys[i]))
    return [texts[i] for i in order], keys[order]
