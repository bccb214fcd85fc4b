"""Embed a corpus on a cluster, committing every few minutes.

Batches, and so vectors, equal those of `embed_corpus` bit for bit. Missing texts are found in
rounds, to bound the keys in memory.
"""

from __future__ import annotations

import hashlib
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import ray.data
from ray.data import ActorPoolStrategy
from ray.exceptions import RayError

from neuralviz.cluster.connecting import (
    RESUMES,
    TRIES,
    AvoidedMachines,
    describe_loss,
    iterate_rows,
    open_store,
    this_machine,
)
from neuralviz.embedders.base import MOST_TEXTS, describe_unread, has_risen
from neuralviz.embedders.specs import make_embedder
from neuralviz.errors import (
    ModelError,
    NeuralvizError,
    Stopped,
    StoreError,
    never,
    shorten_reason,
)
from neuralviz.store.embedding import (
    BATCH_SIZE,
    PORTION,
    DifferentTexts,
    EmbeddingEvent,
    EmbeddingWork,
    UniqueTexts,
)
from neuralviz.store.pieces import Piece, PieceVectors, commit_pieces, shared_folder
from neuralviz.store.vectors import embedder_id

if TYPE_CHECKING:
    from neuralviz.cluster.connecting import Cluster
    from neuralviz.embedders import Embedder
    from neuralviz.errors import ShouldStop
    from neuralviz.maps.mapping import Block, PlaceBlock, PlacedBlock
    from neuralviz.store.corpora import Corpus, CorpusStore

COMMIT_EVERY = 120.0  # seconds: what is lost at most when the driver is killed
ROUND = 64 * PORTION  # texts of which it is known at once which are missing
UNIT, LEARNT_UNIT = 2048, 64  # texts that one embedder has at once, at most
UNITS_EACH = 8  # of each embedder, at least, where there are texts enough
KILLED = "killed every process that embedded it."
TWICE = 2  # processes over one part, until the part is to blame, and not its machine
_ANY_TEXT = "A sentence like any other."
# by row at the time, texts left out: key and reason
LeftOut = dict[int, tuple[bytes, str]]


@dataclass(frozen=True)
class UnitResult:
    pieces: tuple[Piece, ...] = ()  # with their vectors, not yet committed
    n_texts: int = 0  # that have a vector now
    n_rose: int = 0  # of those, texts whose loss rose or became NaN
    left_out: LeftOut = field(default_factory=dict)  # texts that cannot be embedded
    failed: str = ""  # why the unit failed, in a sentence
    machine: str = ""  # Ray's id of the one that may be the cause of the failure


# --- from here -----------------------------------------------------------------------------------


def embed_on_cluster(
    store: CorpusStore,
    corpus: Corpus,
    embedder: Embedder,
    cluster: Cluster,
    *,
    n_embedders: int | None = None,
    commit_every: float = COMMIT_EVERY,
    round_size: int = ROUND,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent, None, LeftOut]:
    """`embed_corpus` on a cluster; all machines must see the store's folder.

    ``n_embedders``, by default one per device, are made from the spec. Commits every
    ``commit_every`` seconds; ``round_size`` is a multiple of `PORTION`. Yields what was there
    before, then an event per unit, without vectors; returns the texts left out. Raises as
    `embed_corpus`, and NeuralvizError if the cluster fails or is full.
    """
    kept = store.vectors.register(embedder)
    parts = [store.vectors.register(part) for part in embedder.parts if len(embedder.parts) > 1]
    unread = _describe_unread(store, corpus, embedder)
    n_found = n_embedded = n_rose = 0
    left_out: LeftOut = {}
    avoided = AvoidedMachines()
    n_embedders = n_embedders or cluster.n_embedders

    def make_event(n_done: int) -> EmbeddingEvent:
        n_before = min(n_found, corpus.n_distinct - n_embedded)  # a text may be in two rounds
        counts = min(n_done, corpus.n_distinct), corpus.n_distinct, n_before, n_rose
        return EmbeddingEvent(kept, np.zeros(0, np.int64), None, np.zeros((0, 2)), *counts, unread)

    def commit(pieces: Sequence[Piece]) -> None:
        store.check_kept(corpus)
        commit_pieces(store.database, store.vectors, [kept, *parts], pieces)

    with shared_folder(store.database) as run_folder:
        spec = embedder.spec
        make = partial(make_embedder, spec) if spec else lambda: embedder
        folders = str(store.folder.absolute()), str(run_folder)
        arguments = (*folders, corpus, make, embedder_id(embedder))
        largest = LEARNT_UNIT if spec and spec.learns else UNIT
        for start, keys in _split_rounds(store, corpus, round_size):
            is_first = np.zeros(len(keys), dtype=bool)
            is_first[np.unique(keys, return_index=True)[1]] = True
            for attempt in range(TRIES + 1):
                is_missing = is_first & ~store.vectors.has_vectors(kept, keys)
                skipped = [row - start for row in left_out if 0 <= row - start < len(keys)]
                is_missing[skipped] = False
                if attempt == 0:
                    n_found += int(is_first.sum() - is_missing.sum())
                    yield make_event(n_found + n_embedded)
                if not is_missing.any():
                    break
                if attempt == TRIES:
                    raise StoreError(f"Some embeddings were lost on their way. {RESUMES}")
                batches = _plan_missing(store, corpus, start, is_missing, should_stop)
                n = min(-(-len(batches) // (n_embedders * UNITS_EACH)), largest // BATCH_SIZE)
                groups = [batches[i : i + n] for i in range(0, len(batches), n)]
                units = [_make_unit(group, keys, start) for group in groups]
                embedded = _hand_out(units, arguments, n_embedders, cluster.n_gpus > 0, avoided)
                failures: list[UnitResult] = []
                with closing(_commit_in_time(embedded, commit, commit_every)) as results:
                    for result in results:
                        n_embedded += result.n_texts
                        n_rose += result.n_rose
                        left_out |= result.left_out
                        failures += [result] if result.failed else []
                        yield make_event(n_found + n_embedded)
                        if should_stop():
                            raise Stopped
                avoided.add(failure.machine for failure in failures if failure.machine)
                lasting = [failure for failure in failures if not failure.machine]
                if lasting or (failures and attempt == TRIES - 1):
                    raise StoreError((lasting or failures)[0].failed)
    for part in [kept, *parts]:
        store.vectors.compact(part)
    yield make_event(corpus.n_distinct)
    return left_out


def _describe_unread(store: CorpusStore, corpus: Corpus, embedder: Embedder) -> str:
    rows = np.arange(min(corpus.n_texts, MOST_TEXTS))
    try:
        return describe_unread(embedder, store.texts(corpus, rows), corpus.n_texts)
    except ModelError:  # a text that the tokenizer cannot read is left out, and named then
        return ""


def _split_rounds(
    store: CorpusStore, corpus: Corpus, size: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Keys of a corpus in rounds of ``size``, each with its first row."""
    keys, start = np.zeros(0, "S16"), 0
    for batch in store.key_batches(corpus):
        keys = np.concatenate([keys, batch])
        while len(keys) >= size:
            yield start, keys[:size]
            keys, start = keys[size:], start + size
    if len(keys):
        yield start, keys


def _plan_missing(
    store: CorpusStore, corpus: Corpus, start: int, is_missing: np.ndarray, should_stop: ShouldStop
) -> list[np.ndarray]:
    batches: list[np.ndarray] = []
    for offset in range(0, len(is_missing), PORTION):
        if should_stop():
            raise Stopped
        mask = is_missing[offset : offset + PORTION]
        if mask.any():
            batches += plan_batches(store, corpus, start + offset, mask)
    return batches


def plan_batches(
    store: CorpusStore, corpus: Corpus, start: int, is_missing: np.ndarray
) -> list[np.ndarray]:
    """Batches, as rows, of the missing texts of a portion from row ``start`` on."""
    different = DifferentTexts(store.texts(corpus, np.arange(start, start + len(is_missing))))
    first = different.first_places(np.arange(len(different)))
    return [start + first[batch] for batch in different.batches(is_missing[first], BATCH_SIZE)]


def _make_unit(
    batches: Sequence[np.ndarray], keys: np.ndarray, start: int
) -> tuple[np.ndarray, list[int], bytes]:
    """Arguments of `EmbedUnits.embed`; ``keys`` are a round's, from row ``start`` on."""
    rows = np.concatenate(batches)
    return rows, list(map(len, batches)), keys[rows - start].tobytes()


def _hand_out(
    units: Sequence[Any],
    arguments: Sequence[Any],
    n_embedders: int,
    on_gpus: bool,
    avoided: AvoidedMachines,
) -> ray.data.Dataset:
    return ray.data.from_items(list(units), override_num_blocks=len(units)).map(
        EmbedUnits,  # type: ignore[arg-type]  # a class, of which Ray makes actors
        fn_constructor_args=arguments,
        compute=ActorPoolStrategy(size=min(n_embedders, len(units))),
        num_cpus=1,
        num_gpus=1 if on_gpus else None,
        **avoided.options,
    )


def _commit_in_time(
    embedded: ray.data.Dataset, commit: Callable[[Sequence[Piece]], None], interval: float
) -> Generator[UnitResult]:
    """Yield results, and commit their pieces at intervals and at the end, even on errors."""
    waiting: list[Piece] = []
    last = time.monotonic()
    try:
        with closing(iterate_rows(embedded)) as rows:
            for row in rows:
                waiting += row["result"].pieces
                if waiting and time.monotonic() - last > interval:
                    commit(waiting)
                    waiting.clear()  # not before: what interrupts a commit is followed by another
                    last = time.monotonic()
                yield row["result"]
    except RayError as error:
        raise NeuralvizError(describe_loss(error)) from error
    finally:
        if waiting:
            commit(waiting)


def place_on_cluster(
    place: PlaceBlock, blocks: Sequence[Block], should_stop: ShouldStop
) -> Iterator[PlacedBlock]:
    """`Spread` over the cluster, one block per core; raises Stopped and NeuralvizError."""
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


# --- on the machines -----------------------------------------------------------------------------


class Attempt:
    """An attempt at a unit, recorded in a file in case the process is killed."""

    # Ray retries the unit in another process: batch by batch, then text by text where two more are
    # killed; a text that killed two is left out

    def __init__(self, folder: Path, unit: bytes, batches: Sequence[np.ndarray]) -> None:
        self._path = folder / hashlib.blake2b(unit, digest_size=16).hexdigest()
        self._batches = batches
        self._earlier_parts: list[str] = []
        with suppress(OSError):  # there is none for the first one
            self._earlier_parts = self._path.read_text().splitlines()
        self._killed = {name for name, n in Counter(self._earlier_parts).items() if n >= TWICE}

    @property
    def deadly(self) -> list[int]:
        """Places of texts to leave out."""
        places = np.concatenate(self._batches).tolist()
        return [place for place in places if f"text {place}" in self._killed]

    def parts(self) -> Iterator[list[np.ndarray]]:
        """Batches to embed before asking for the next ones."""
        if not self._earlier_parts:
            self._record("all")
            yield list(self._batches)
            return
        for number, batch in enumerate(self._batches):
            pieces = {f"batch {number}": batch}
            if f"batch {number}" in self._killed:
                pieces = {f"text {place}": np.array([place]) for place in batch.tolist()}
            for name, piece in pieces.items():
                if name not in self._killed:
                    self._record(name)
                    yield [piece]

    def close(self) -> None:
        """Forget the attempt: no process was killed."""
        with suppress(OSError):
            self._path.unlink()

    def _record(self, part: str) -> None:
        with suppress(OSError):  # the run is over
            self._path.write_text("\n".join([*self._earlier_parts, part]))


class EmbedUnits:
    """Ray actor that embeds units and writes pieces; results report errors, so others go on."""

    def __init__(
        self,
        folder: str,  # of the store
        run_folder: str,  # of this run alone; all machines see both
        corpus: Corpus,
        make: Callable[[], Embedder],
        kept_id: str,  # of the embedder that the driver has
    ) -> None:
        self._corpus = corpus
        self._run_folder = Path(run_folder)
        self._failed = ""
        try:
            self._store = open_store(folder, corpus)
            self._embedder = make()
            if "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(1)
            if kept_id != embedder_id(self._embedder):
                raise StoreError(
                    f"The model of {self._embedder.name} on {socket.gethostname()} is not the one "
                    "of this machine. Install the same neuralviz and the same model files on all."
                )
            self._pieces = PieceVectors(self._store.database)
            self._kept = self._pieces.register(self._embedder)
        except NeuralvizError as error:
            self._failed = str(error)
        except Exception as error:  # a device that is lost, say
            failure = f"The machine {socket.gethostname()} cannot load the model"
            self._failed = f"{failure}: {shorten_reason(error)}."

    def __call__(self, row: Mapping[str, Any]) -> dict[str, UnitResult]:
        return {"result": self.embed(*row["item"])}

    def embed(self, rows: np.ndarray, sizes: Sequence[int], keys: bytes) -> UnitResult:
        """Embed texts by rows and keys, in batches of ``sizes``."""
        if self._failed:
            return UnitResult(failed=self._failed, machine=this_machine())
        n = n_rose = 0
        self._pieces.pieces.clear()
        try:
            texts = UniqueTexts(self._store.texts(self._corpus, rows), rows, self._corpus.n_texts)
            if texts.keys.tobytes() != keys:
                raise StoreError(
                    f"Texts were removed from “{self._corpus.name}” in the meantime. Run the same "
                    "command again."
                )
            batches = np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1])
            work = EmbeddingWork(self._embedder, self._kept, self._pieces)
            attempt = Attempt(self._run_folder, keys, batches)
            left_out = dict.fromkeys(attempt.deadly, KILLED)  # by place
            with closing(attempt), work.keep_finished():
                for group in attempt.parts():
                    for places, _, loss in self._results(texts, group, work, left_out):
                        n += len(places)
                        n_rose += int(has_risen(loss).sum())
        except (StoreError, _MachineError) as error:
            return UnitResult(failed=str(error), machine=this_machine())
        except NeuralvizError as error:
            return UnitResult(failed=str(error))
        named = {
            int(rows[place]): (texts.keys[place : place + 1].tobytes(), reason)
            for place, reason in left_out.items()
        }
        return UnitResult(tuple(self._pieces.pieces), n, n_rose, named)

    def _results(
        self,
        texts: UniqueTexts,
        batches: Sequence[np.ndarray],
        work: EmbeddingWork,
        left_out: dict[int, str],
        *,
        is_retry: bool = False,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As `EmbeddingWork.embed`; failures are retried by batch, then by text."""
        embedded: set[int] = set()
        try:
            for result in work.embed(texts, batches, never, left_out):
                embedded.update(result[0].tolist())
                yield result
            return
        except StoreError:
            raise
        except Exception as error:
            self._check_works(error)
            places = np.concatenate(batches).tolist()
            if is_retry and len(places) == 1:
                left_out[places[0]] = f"failed: {shorten_reason(error)}"
        smaller = [np.array([place]) for place in places] if is_retry else batches
        for batch in smaller:
            if not embedded.union(left_out).issuperset(batch.tolist()):
                yield from self._results(texts, [batch], work, left_out, is_retry=True)

    def _check_works(self, failure: Exception) -> None:
        """Raise _MachineError if not even an ordinary text can be embedded."""
        try:
            self._embedder.encode([_ANY_TEXT])
        except Exception as error:
            sentence = f"On the machine {socket.gethostname()} no text could be embedded"
            raise _MachineError(f"{sentence}: {shorten_reason(failure)}.") from error


class _MachineError(NeuralvizError):
    """No text at all can be embedded on this machine."""
