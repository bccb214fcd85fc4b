"""Embed texts once: what is there already is not computed again, what is finished is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.concatenated import join
from neuralviz.errors import TextError
from neuralviz.store.vectors import text_keys

if TYPE_CHECKING:
    from neuralviz.embedders import EmbeddedBatch, Embedder, EmbedderSpec
    from neuralviz.errors import ShouldStop
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder, KeptVectors

BATCH_SIZE = 32
KEPT_EVERY = 2.0  # seconds: what is lost at most, beside the batch under way, by a power cut
JOINED_AT_ONCE = 10_000
MANY_PIECES = 8  # written one by one, they are put together at the end


@dataclass(frozen=True)
class EmbeddingProgress:
    """How far texts are embedded.

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
    """`embed_texts` for the texts of a corpus.

    Args:
        store: where the corpus is kept.
        corpus: one of its corpora.
        embedder, spec, should_stop: as of `embed_texts`.

    Yields:
        As `embed_texts`.

    Raises:
        StoreError: as of `embed_texts`; or the corpus was deleted meanwhile.
        TextError: a text cannot be read by the embedder; the message names its row.
        ModelError: as of `Embedder.embed_in_batches`.
    """
    return embed_texts(
        store.vectors,
        store.texts(corpus),
        embedder,
        spec,
        before_keeping=partial(store.check_kept, corpus),
        explain=partial(_of_corpus, store, corpus),
        should_stop=should_stop,
    )


def embed_texts(
    vectors: KeptVectors,
    texts: Sequence[str],
    embedder: Embedder,
    spec: EmbedderSpec | None = None,
    *,
    before_keeping: Callable[[], None] = lambda: None,
    explain: Callable[[str, Embedder, TextError], TextError] = lambda _text, _embedder, error: (
        error
    ),
    batch_size: int = BATCH_SIZE,
    should_stop: ShouldStop = lambda: False,
) -> Generator[EmbeddingProgress]:
    """Embed the texts that have no vector yet, and keep the vectors as they come.

    The longest texts go first, in batches that depend on the texts alone: a run that was ended in
    any way goes on where it was, and comes to the same vectors, bit by bit, as one that was not.

    Args:
        vectors: where they are kept.
        texts: in any order; the same one twice counts once.
        embedder: of any method.
        spec: how to make the embedder again.
        before_keeping: called each time before vectors are written; may raise `StoreError`.
        explain: makes a better error of one that a text causes.
        batch_size: texts that go together, and after which there is progress.
        should_stop: asked again and again, also within a batch.

    Yields:
        The progress at the start, after every batch, and when all is kept.

    Raises:
        StoreError: the vectors cannot be written, and those written before are kept.
        TextError: a text cannot be read by the embedder.
        ModelError: as of `Embedder.embed_in_batches`.
    """
    from neuralviz.embedders import ConcatenatedEmbedder

    kept = vectors.register(embedder, spec.to_json() if spec else "")
    different, keys = _longest_first(texts)
    if isinstance(embedder, ConcatenatedEmbedder):
        parts = [
            embed_texts(
                vectors,
                different,
                part,
                spec.parts[place] if spec else None,
                before_keeping=before_keeping,
                explain=explain,
                batch_size=batch_size,
                should_stop=should_stop,
            )
            for place, part in enumerate(embedder.parts)
        ]
        yield from _join_parts(vectors, parts, keys, kept)
        return
    has = vectors.has(kept, keys)
    done = found = int(has.sum())
    n_rose, n_pieces = 0, 0
    pending: list[tuple[np.ndarray, EmbeddedBatch]] = []
    last_kept = time.monotonic()

    def keep() -> int:
        if pending:
            before_keeping()
            vectors.put(
                kept,
                np.concatenate([part for part, _ in pending]),
                np.concatenate([batch.vectors for _, batch in pending]),
                np.concatenate([batch.loss for _, batch in pending]),
            )
        n = len(pending)
        pending.clear()
        return n

    yield EmbeddingProgress(kept, done, len(different), found)
    try:
        for start in range(0, len(different), batch_size):
            end = min(start + batch_size, len(different))
            missing = [at for at in range(start, end) if not has[at]]
            if not missing:
                continue
            given = [different[at] for at in missing]
            batches = embedder.embed_in_batches(given, batch_size, should_stop=should_stop)
            try:
                batch = next(batches, None)
            except TextError as error:
                raise _of_one(embedder, given, explain) or error from error
            if batch is None:  # stopped
                break
            pending.append((keys[missing][batch.at], batch))
            done += len(missing)
            n_rose += int(batch.loss_rose.sum())
            if time.monotonic() - last_kept > KEPT_EVERY:
                n_pieces += keep() > 0
                last_kept = time.monotonic()
            yield EmbeddingProgress(kept, done, len(different), found, n_rose)
            if should_stop():
                break
    finally:
        n_pieces += keep() > 0
    if n_pieces > MANY_PIECES:
        vectors.compact(kept)
    yield EmbeddingProgress(kept, done, len(different), found, n_rose)


def _join_parts(
    vectors: KeptVectors,
    parts: Sequence[Iterator[EmbeddingProgress]],
    keys: np.ndarray,
    kept: KeptEmbedder,
) -> Iterator[EmbeddingProgress]:
    """Embed by every part on its own, so that none is computed twice, and keep them joined."""
    total, done, found, n_rose = len(parts) * len(keys), 0, 0, 0
    finished = []
    for part in parts:
        progress = EmbeddingProgress(kept, 0, 0, 0)
        for progress in part:
            so_far = (done + progress.done, total + 1, found + progress.found)
            yield EmbeddingProgress(kept, *so_far, n_rose + progress.n_rose)
        if not progress.is_complete:
            return
        finished.append(progress.embedder)
        done, found = done + progress.done, found + progress.found
        n_rose += progress.n_rose
    keys = np.unique(keys)
    keys = keys[~vectors.has(kept, keys)]
    for start in range(0, len(keys), JOINED_AT_ONCE):
        some = keys[start : start + JOINED_AT_ONCE]
        loss = np.full((len(some), 2), np.nan)
        for one in finished:
            loss = np.where(np.isnan(loss[:, :1]), vectors.losses(one, some), loss)
        joined = join([vectors.get(one, some) for one in finished])
        vectors.put(kept, some, joined, loss)
    yield EmbeddingProgress(kept, total + 1, total + 1, found, n_rose)


def _of_one(
    embedder: Embedder,
    texts: Sequence[str],
    explain: Callable[[str, Embedder, TextError], TextError],
) -> TextError | None:
    """The error of the text that an embedder cannot read."""
    for text in texts:
        try:
            next(embedder.embed_in_batches([text]))
        except TextError as error:
            return explain(text, embedder, error)
    return None


def _of_corpus(
    store: CorpusStore, corpus: Corpus, text: str, embedder: Embedder, error: TextError
) -> TextError:
    """The error of a text with the place that it has in the corpus."""
    row = store.texts(corpus).index(text)
    (its_id,) = store.ids(corpus, [row])
    return TextError(
        f"Text {row + 1:,} of “{corpus.name}” (id {its_id}) cannot be embedded by "
        f"{embedder.name}: {error} Leave it out and add the corpus again; what is "
        "embedded already is found again."
    )


def _longest_first(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The different texts and their keys."""
    different = list(dict.fromkeys(texts))
    keys = text_keys(different)
    order = sorted(range(len(different)), key=lambda i: (-len(different[i]), keys[i]))
    return [different[i] for i in order], keys[order]
