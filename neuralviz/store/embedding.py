"""One way to embed: what is kept already is not computed again, what is finished is kept."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.base import has_risen
from neuralviz.embedders.encoding import check_batch_size
from neuralviz.embedders.making import make_embedder
from neuralviz.embedders.specs import EmbedderSpec
from neuralviz.embedders.unread import describe_unread
from neuralviz.errors import TextError, UnreadableTextError, never
from neuralviz.models.shared import LOADERS
from neuralviz.models.tokens import check_texts
from neuralviz.store.batches import (
    BLOCK,
    DifferentTexts,
    EmbeddingWork,
    Keeper,
    Part,
    embed_batches,
    keep_finished,
)
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder
    from neuralviz.embedders.neural import NeuralEmbedder
    from neuralviz.errors import ShouldStop
    from neuralviz.models.shared import Loaders
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder, VectorStore

BATCH_SIZE = 32
LEARNT_AT_ONCE = 8  # texts: a batch where a model is tuned on every text
KEPT_EVERY = 2.0  # seconds: what is lost at most, beside the batch under way, by a power cut


@dataclass(frozen=True, eq=False)
class EmbeddingEvent:
    """Vectors that are there now, and how far the texts are embedded.

    Attributes:
        embedder: under which the vectors are kept.
        at: [new] places of the texts that this event brings, among all; equal texts come together.
        vectors: [new, dim] float32; None where they were not asked for.
        loss: [new, 2] as of `EmbeddedBatch`.
        done, total: different texts.
        found: of those done, how many had been kept before.
        n_rose: of those done, how many have a loss that rose, or ceased to be a number.
        unread: what is to be said of the texts, as of `describe_unread`.
    """

    __repr__ = short_repr

    embedder: KeptEmbedder
    at: np.ndarray
    vectors: np.ndarray | None
    loss: np.ndarray
    done: int
    total: int
    found: int
    n_rose: int
    unread: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every text has its vector."""
        return self.done == self.total

    @property
    def loss_rose(self) -> np.ndarray:
        """[new] true where micro-tuning was no learning: the loss rose, or ceased to be one."""
        return has_risen(self.loss)


@dataclass(frozen=True)
class SharedEvent:
    """How far several embedders that share one run are.

    Attributes:
        embedders: places of those that share it, among all.
        done, total: different texts, of all of them together.
    """

    embedders: tuple[int, ...]
    done: int
    total: int


def embed(
    texts: Sequence[str],
    method: EmbedderSpec | Embedder,
    store: VectorStore,
    *,
    loaders: Loaders = LOADERS,
    batch_size: int | None = None,
    with_vectors: bool = True,
    before_keeping: Callable[[], None] = lambda: None,
    keep_every: float = KEPT_EVERY,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent]:
    """Embed texts by one method. What the store has comes at once; the rest as it is computed.

    Portion by portion, the longest texts go first, in batches that depend on the texts alone: a run
    that was ended in any way goes on where it was, and comes to the same vectors, bit by bit, as
    one that was not. The parts of a concatenation are kept on their own, too.

    Args:
        texts: in any order; the same one twice is computed once.
        method: an embedder, or what to make one of.
        store: where vectors are looked for and kept.
        loaders: where models come from, by kind.
        batch_size: texts of a batch; by default 32, and 8 where a model is tuned on every text.
        with_vectors: whether events bring the vectors; without them, only progress is told.
        before_keeping: called each time before vectors are kept; may raise `StoreError`.
        keep_every: seconds after which finished vectors are kept; also at the end, however it
            comes.
        should_stop: asked again and again, also within a batch.

    Yields:
        Events that bring what was kept, one at least; then one a batch. The last is complete.

    Raises:
        Stopped: ``should_stop`` said so; what is finished is kept.
        UnreadableTextError: the embedder cannot read a text; with the first batches, in most cases.
        StoreError: the vectors cannot be kept, and those kept before are.
        ModelError: a model cannot be had, or a vector holds what is no finite number.
        SettingsError: the settings make no sense for the model, or the batch size is none.
    """
    embedder = make_embedder(method, loaders) if isinstance(method, EmbedderSpec) else method
    if batch_size is None:
        batch_size = LEARNT_AT_ONCE if embedder.spec and embedder.spec.learns else BATCH_SIZE
    check_batch_size(batch_size)
    check_texts(texts)
    different = DifferentTexts(texts)
    kept = store.register(embedder)
    missing = ~store.has_vectors(kept, different.keys)
    done = n_found = n_rose = 0
    unread = describe_unread(embedder, texts)

    def make_event(
        indices: np.ndarray, vectors: np.ndarray | None, loss: np.ndarray
    ) -> EmbeddingEvent:
        nonlocal done, n_rose
        done += len(indices)
        n_rose += int(has_risen(loss).sum())
        places, origins = different.places(indices)
        return EmbeddingEvent(
            kept,
            places,
            vectors[origins] if vectors is not None and with_vectors else None,
            loss[origins],
            done,
            len(different),
            n_found,
            n_rose,
            unread,
        )

    has_vector = np.flatnonzero(~missing)
    for start in range(0, max(len(has_vector), 1), BLOCK):
        indices = has_vector[start : start + BLOCK]
        match = store.find(kept, different.keys[indices], with_vectors=with_vectors)
        missing[indices[~match.mask]] = True  # forgotten meanwhile
        n_found += int(match.mask.sum())
        yield make_event(indices[match.mask], match.vectors, match.loss)

    at_work = EmbeddingWork(embedder, kept, store, before_keeping, keep_every)
    with keep_finished(at_work.keepers):
        for new_indices, vectors, losses in embed_batches(
            different, different.batches(missing, batch_size), at_work.parts, should_stop
        ):
            combined, loss = at_work.combine(different.keys[new_indices], vectors, losses)
            yield make_event(new_indices, combined, loss)


def embed_at_once(
    texts: Sequence[str],
    embedders: Sequence[NeuralEmbedder],
    store: VectorStore,
    *,
    batch_size: int = LEARNT_AT_ONCE,
    keep_every: float = KEPT_EVERY,
    should_stop: ShouldStop = never,
) -> Generator[SharedEvent]:
    """Embed by embedders that differ by their epochs alone, in one run for all (`share_epochs`).

    Those that lack the vectors of the same texts go together. One that lacks others than every
    other does is left to `embed`, which finds what came of this. Arguments and errors are those of
    `embed`; none of the embedders may be fast. There is an event after every batch.
    """
    from neuralviz.embedders.neural import share_epochs  # loads torch

    different = DifferentTexts(texts)
    kept = [store.register(embedder) for embedder in embedders]
    masks = [store.has_vectors(kept_embedder, different.keys) for kept_embedder in kept]
    lacking: dict[bytes, list[int]] = {}
    for place, mask in enumerate(masks):
        if not mask.all():
            lacking.setdefault(mask.tobytes(), []).append(place)
    for together in (tuple(group) for group in lacking.values() if len(group) > 1):
        share_epochs([embedders[place] for place in together])
        parts = [
            Part(embedders[place], Keeper(store, kept[place], lambda: None, keep_every))
            for place in together
        ]
        missing = ~masks[together[0]]
        n_finished = len(together) * int((~missing).sum())
        with keep_finished([part.keeper for part in parts]):
            for indices, _, _ in embed_batches(
                different, different.batches(missing, batch_size), parts, should_stop
            ):
                n_finished += len(together) * len(indices)
                yield SharedEvent(together, n_finished, len(together) * len(different))


def embed_corpus(
    store: CorpusStore,
    corpus: Corpus,
    method: EmbedderSpec | Embedder,
    *,
    loaders: Loaders = LOADERS,
    keep_every: float = KEPT_EVERY,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent]:
    """`embed` for the texts of a corpus, without the vectors in the events.

    Raises:
        As `embed`; StoreError also when the corpus was deleted meanwhile, and TextError with the
        row and the id of a text that cannot be read.
    """
    embedder = make_embedder(method, loaders) if isinstance(method, EmbedderSpec) else method
    texts = store.texts(corpus)
    try:
        yield from embed(
            texts,
            embedder,
            store.vectors,
            batch_size=BATCH_SIZE,
            with_vectors=False,
            before_keeping=lambda: store.check_kept(corpus),
            keep_every=keep_every,
            should_stop=should_stop,
        )
    except UnreadableTextError as error:
        (its_id,) = store.ids(corpus, [error.place])
        raise TextError(
            f"Cannot embed text {error.place + 1:,} of “{corpus.name}” (ID {its_id}) by "
            f"{embedder.name}: the text {error.reason} Remove it and add the corpus again. "
            "Finished embeddings are reused."
        ) from error
