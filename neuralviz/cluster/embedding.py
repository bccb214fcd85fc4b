"""A corpus is embedded on a cluster, and what is finished is committed every few minutes.

The store is asked which texts are missing, round by round, so that no process ever holds more than
a few million keys. The batches are those of `neuralviz.store.embedding.embed_corpus`, and so are
the vectors, bit by bit, whatever the number of machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import ray.data
from ray.data import ActorPoolStrategy
from ray.exceptions import RayError

from neuralviz.cluster.connecting import RESUMES, AvoidedMachines, describe_loss, iterate_rows
from neuralviz.cluster.worker import TRIES, EmbedUnits, LeftOut, UnitResult, plan_batches
from neuralviz.embedders.specs import make_embedder
from neuralviz.embedders.unread import MOST_TEXTS, describe_unread
from neuralviz.errors import ModelError, NeuralvizError, Stopped, StoreError, never
from neuralviz.store.embedding import BATCH_SIZE, PORTION, EmbeddingEvent
from neuralviz.store.pieces import Piece, commit_pieces, writing
from neuralviz.store.vectors import embedder_id

if TYPE_CHECKING:
    from neuralviz.cluster.connecting import Cluster
    from neuralviz.embedders import Embedder
    from neuralviz.errors import ShouldStop
    from neuralviz.maps.mapping import Block, PlaceBlock, PlacedBlock
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

COMMIT_EVERY = 120.0  # seconds: what is lost at most when the driver is killed
ROUND = 64 * PORTION  # texts of which it is known at once which are missing
UNIT, LEARNT_UNIT = 2048, 64  # texts that one embedder has at once, at most
UNITS_EACH = 8  # of each embedder, at least, where there are texts enough


def embed_on_cluster(
    store: CorpusStore,
    corpus: Corpus,
    embedder: Embedder,
    cluster: Cluster,
    *,
    n_embedders: int | None = None,
    threads: int = 1,
    commit_every: float = COMMIT_EVERY,
    round_size: int = ROUND,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent, None, LeftOut]:
    """`embed_corpus` on a cluster: the same events, the same vectors, the same store.

    Each of the ``n_embedders``, by default one a device, makes the embedder anew by its spec, in
    processes that see the folder of the store. Finished texts are committed every so many seconds,
    and a round has a multiple of `PORTION` of texts.

    Yields:
        An event with what was there before, then one a unit. They bring no places and no vectors.

    Returns:
        The texts that cannot be embedded, which were left out.

    Raises:
        Stopped: ``should_stop`` said so; what is finished is kept.
        StoreError, ModelError: as of `embed`; or a machine does not see the store.
        NeuralvizError: the cluster is gone, or has no room.
    """
    kept = store.vectors.register(embedder)
    parts = [store.vectors.register(part) for part in embedder.parts if len(embedder.parts) > 1]
    progress = _Progress(kept, corpus.n_distinct, _describe_unread(store, corpus, embedder))
    left_out: LeftOut = {}
    with writing(store.database) as run_folder:
        spec = embedder.spec
        make = partial(make_embedder, spec) if spec else lambda: embedder
        folders = str(store.folder.absolute()), str(run_folder.absolute())
        work = _Work(
            store,
            corpus,
            (folders[0], corpus, make, embedder_id(embedder), threads, folders[1]),
            n_embedders or cluster.n_embedders,
            1 if cluster.n_gpus else None,
            LEARNT_UNIT if spec and spec.learns else UNIT,
            should_stop,
        )

        def commit(pieces: Sequence[Piece]) -> None:
            store.check_kept(corpus)
            commit_pieces(store.database, store.vectors, [kept, *parts], pieces)

        for start, keys in _split_rounds(store, corpus, round_size):
            for attempt in range(TRIES + 1):
                is_missing = _find_missing(store, kept, keys)
                skipped = [row - start for row in left_out if 0 <= row - start < len(keys)]
                is_missing[skipped] = False
                if attempt == 0:
                    progress.n_found += len(_first_rows(keys)) - int(is_missing.sum())
                    yield progress.event()
                if not is_missing.any():
                    break
                if attempt == TRIES:
                    raise StoreError(f"Some embeddings were lost on their way. {RESUMES}")
                failures: list[UnitResult] = []
                results = work.embed(start, is_missing, keys)
                with closing(_commit_in_time(results, commit, commit_every)) as committed:
                    for result in committed:
                        progress.n_embedded += result.n_texts
                        progress.n_rose += result.n_rose
                        left_out |= result.left_out
                        failures += [result] if result.failed else []
                        yield progress.event()
                        if should_stop():
                            raise Stopped
                work.avoided.add(failure.machine for failure in failures if failure.machine)
                lasting = [failure for failure in failures if not failure.machine]
                if lasting or (failures and attempt == TRIES - 1):
                    raise StoreError((lasting or failures)[0].failed)
    for part in [kept, *parts]:
        store.vectors.compact(part)
    yield progress.event(is_last=True)
    return left_out


def _describe_unread(store: CorpusStore, corpus: Corpus, embedder: Embedder) -> str:
    """As `describe_unread`, without more of the texts in memory than it looks at."""
    rows = np.arange(min(corpus.n_texts, MOST_TEXTS))
    try:
        return describe_unread(embedder, store.texts(corpus, rows), corpus.n_texts)
    except ModelError:  # a text that the tokenizer cannot read is left out, and named then
        return ""


@dataclass
class _Progress:
    """Counts the finished texts, and makes events of the counts."""

    kept: KeptEmbedder
    total: int
    unread: str  # a sentence on texts that are not read to their end
    n_found: int = 0
    n_embedded: int = 0
    n_rose: int = 0

    def event(self, *, is_last: bool = False) -> EmbeddingEvent:
        """How far the texts are; a text of two rounds is counted in each until the end."""
        n_found = min(self.n_found, self.total - self.n_embedded)
        n_done = self.total if is_last else min(self.total, n_found + self.n_embedded)
        places, loss = np.zeros(0, dtype=np.int64), np.zeros((0, 2))
        counts = n_done, self.total, n_found, self.n_rose
        return EmbeddingEvent(self.kept, places, None, loss, *counts, self.unread)


@dataclass
class _Work:
    """Hands units of texts to the embedders of the cluster."""

    store: CorpusStore
    corpus: Corpus
    arguments: tuple[Any, ...]  # of `EmbedUnits`
    n_embedders: int
    n_gpus: int | None  # of each embedder
    unit: int  # texts, at most
    should_stop: ShouldStop
    avoided: AvoidedMachines = field(default_factory=AvoidedMachines)

    def embed(self, start: int, is_missing: np.ndarray, keys: np.ndarray) -> Generator[UnitResult]:
        """The results of the units of a round, as they arrive.

        The round begins with the row ``start``; ``is_missing`` and the keys are of its rows.
        """
        batches: list[np.ndarray] = []
        for offset in range(0, len(is_missing), PORTION):
            if self.should_stop():
                raise Stopped
            mask = is_missing[offset : offset + PORTION]
            if mask.any():
                first = start + offset
                batches += plan_batches(self.store, self.corpus, first, mask, BATCH_SIZE)
        units = [
            (rows, sizes, keys[rows - start].tobytes()) for rows, sizes in self._units(batches)
        ]
        embedded = ray.data.from_items(units, override_num_blocks=len(units)).map(
            EmbedUnits,  # type: ignore[arg-type]  # a class, of which Ray makes actors
            fn_constructor_args=self.arguments,
            compute=ActorPoolStrategy(size=min(self.n_embedders, len(units))),
            num_cpus=1,
            num_gpus=self.n_gpus,
            **self.avoided.options,
        )
        for row in iterate_rows(embedded):
            yield row["result"]

    def _units(self, batches: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, list[int]]]:
        """Batches that go to one embedder: their rows, and the size of each."""
        share = -(-len(batches) // (self.n_embedders * UNITS_EACH))
        n = max(1, min(share, self.unit // BATCH_SIZE))
        for first in range(0, len(batches), n):
            group = batches[first : first + n]
            yield np.concatenate(group), [len(batch) for batch in group]


def _commit_in_time(
    results: Generator[UnitResult], commit: Callable[[Sequence[Piece]], None], interval: float
) -> Generator[UnitResult]:
    """Yield results and commit their pieces, every so many seconds and however the work ends."""
    waiting: list[Piece] = []
    last = time.monotonic()
    try:
        with closing(results):
            for result in results:
                waiting += result.pieces
                if waiting and time.monotonic() - last > interval:
                    commit(waiting)
                    waiting.clear()  # not before: what interrupts a commit is followed by another
                    last = time.monotonic()
                yield result
    except RayError as error:
        raise NeuralvizError(describe_loss(error)) from error
    finally:
        if waiting:
            commit(waiting)


def _split_rounds(
    store: CorpusStore, corpus: Corpus, size: int
) -> Iterator[tuple[int, np.ndarray]]:
    """The keys of a corpus, so many at once, with the row of the first."""
    waiting: list[np.ndarray] = []
    n = start = 0
    for keys in store.key_batches(corpus):
        waiting.append(keys)
        n += len(keys)
        while n >= size:
            all_keys = np.concatenate(waiting)
            yield start, all_keys[:size]
            waiting, n, start = [all_keys[size:]], n - size, start + size
    if n:
        yield start, np.concatenate(waiting)


def _find_missing(store: CorpusStore, kept: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
    """[row] whether a text has no vector and stands there for the first time."""
    first = np.zeros(len(keys), dtype=bool)
    first[_first_rows(keys)] = True
    return first & ~store.vectors.find(kept, keys, with_vectors=False).mask


def _first_rows(keys: np.ndarray) -> np.ndarray:
    """Rows at which each different key comes first."""
    return np.unique(keys, return_index=True)[1]


# --- places on maps ------------------------------------------------------------------------------


def place_on_cluster(
    place: PlaceBlock, blocks: Sequence[Block], should_stop: ShouldStop
) -> Iterator[PlacedBlock]:
    """A `Spread` over the cluster that is connected: each block on one core of some machine.

    Raises:
        Stopped: ``should_stop`` said so.
        NeuralvizError: the cluster is gone, or as of ``place``.
    """
    if not blocks:
        return
    placed = ray.data.from_items(list(blocks), override_num_blocks=len(blocks)).map(
        lambda row: {"placed": place(row["item"])}, num_cpus=1
    )
    try:
        with closing(iterate_rows(placed)) as rows:
            for row in rows:
                yield row["placed"]
                if should_stop():
                    raise Stopped
    except RayError as error:
        raise NeuralvizError(describe_loss(error, "Make the map again.")) from error
