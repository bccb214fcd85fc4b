"""Embed a corpus on a cluster, committing every few minutes.

Batches, and so vectors, equal those of `embed_corpus` bit for bit. Missing texts are found in
rounds, to bound the keys in memory.
"""

from __future__ import annotations

import hashlib
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import ObjectLostError, OutOfMemoryError, RayActorError

from neuralviz.cluster import RESUMES
from neuralviz.cluster.connecting import Cluster, open_store, receive, this_machine
from neuralviz.embedders.base import MOST_TEXTS, Embedder, find_unread, has_risen
from neuralviz.embedders.specs import make_embedder
from neuralviz.errors import (
    ModelError,
    NeuralvizError,
    ShouldStop,
    StoreError,
    check_stop,
    never,
    shorten_reason,
)
from neuralviz.maps.mapping import PlaceBlock, PlacedBlock
from neuralviz.store.corpora import Corpus, CorpusStore
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

COMMIT_EVERY = 120.0  # seconds: what is lost at most when the driver is killed
ROUND = 64 * PORTION  # texts of which it is known at once which are missing
UNIT, LEARNT_UNIT = 2048, 64  # texts that one embedder has at once, at most
UNITS_EACH = 8  # of each embedder, at least, where there are texts enough
TRIES = 3  # at what was lost with a machine
KILLED = "killed every process that embedded it."
PLACED_AHEAD = 2  # blocks of points under way, per core
TWICE = 2  # processes over one part, until the part is to blame, and not its machine
_ANY_TEXT = "A sentence like any other."
Unit = tuple[np.ndarray, list[int], bytes]  # rows, sizes of batches, keys
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
    commit_every: float = COMMIT_EVERY,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent, None, LeftOut]:
    """`embed_corpus` on a cluster; all machines must see the store's folder.

    Commits every ``commit_every`` seconds. Yields what was there before, then an event per unit,
    without vectors; returns the texts left out. Raises as `embed_corpus`, and NeuralvizError if the
    cluster fails or is full.
    """
    kept = store.vectors.register(embedder)
    parts = [store.vectors.register(part) for part in embedder.parts if len(embedder.parts) > 1]
    unread = _describe_unread(store, corpus, embedder)
    n_found = n_embedded = n_rose = 0
    left_out: LeftOut = {}
    failed_machines: set[str] = set()

    def make_event(n_done: int) -> EmbeddingEvent:
        n_before = min(n_found, corpus.n_distinct - n_embedded)  # a text may be in two rounds
        counts = min(n_done, corpus.n_distinct), corpus.n_distinct, n_before, n_rose
        return EmbeddingEvent(kept, np.zeros(0, np.int64), None, np.zeros((0, 2)), *counts, unread)

    def commit(pieces: Sequence[Piece]) -> None:
        store.check_kept(corpus)
        commit_pieces(store.database, store.vectors, [kept, *parts], pieces)

    with shared_folder(store.database) as run_folder:
        spec, gpus = embedder.spec, 1 if cluster.n_gpus else None
        make = partial(make_embedder, spec) if spec else lambda: embedder
        arguments = (str(store.folder.absolute()), run_folder, corpus, make, embedder_id(embedder))
        largest = LEARNT_UNIT if spec and spec.learns else UNIT
        for start, keys in _split_rounds(store, corpus):
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
                n = -(-len(batches) // (cluster.n_embedders * UNITS_EACH))
                units = _make_units(batches, min(n, largest // BATCH_SIZE), keys, start)
                n_processes = min(cluster.n_embedders, len(units))
                options = {"num_cpus": 1, "num_gpus": gpus, **_avoid_machines(failed_machines)}
                embedded = embed_units(arguments, units, n_processes, options)
                failures: list[UnitResult] = []
                results = _commit_in_time(embedded, commit, commit_every, should_stop)
                with closing(results):
                    for result in results:
                        n_embedded += result.n_texts
                        n_rose += result.n_rose
                        left_out |= result.left_out
                        failures += [result] if result.failed else []
                        yield make_event(n_found + n_embedded)
                        check_stop(should_stop)
                failed_machines |= {failure.machine for failure in failures if failure.machine}
                lasting = [failure for failure in failures if not failure.machine]
                if lasting or (failures and attempt == TRIES - 1):
                    raise StoreError((lasting or failures)[0].failed)
    for part in [kept, *parts]:
        store.vectors.compact(part)
    yield make_event(corpus.n_distinct)
    return left_out


def _avoid_machines(machines: set[str]) -> dict[str, Any]:
    """Ray's options for work on other machines, if there are any."""
    if not machines or {node["NodeID"] for node in ray.nodes() if node["Alive"]} <= machines:
        return {}
    return {"label_selector": {"ray.io/node-id": f"!in({','.join(sorted(machines))})"}}


def _describe_unread(store: CorpusStore, corpus: Corpus, embedder: Embedder) -> str:
    rows = np.arange(min(corpus.n_texts, MOST_TEXTS))
    try:
        return find_unread(embedder, store.texts(corpus, rows), corpus.n_texts).message
    except ModelError:  # a text that the tokenizer cannot read is left out, and named then
        return ""


def _split_rounds(store: CorpusStore, corpus: Corpus) -> Iterator[tuple[int, np.ndarray]]:
    """Keys of a corpus in rounds, each with its first row."""
    keys, start = np.zeros(0, "S16"), 0
    for batch in store.key_batches(corpus):
        keys = np.concatenate([keys, batch])
        while len(keys) >= ROUND:
            yield start, keys[:ROUND]
            keys, start = keys[ROUND:], start + ROUND
    if len(keys):
        yield start, keys


def _plan_missing(
    store: CorpusStore, corpus: Corpus, start: int, is_missing: np.ndarray, should_stop: ShouldStop
) -> list[np.ndarray]:
    """Batches, as rows, of the missing texts of a round from row ``start`` on."""
    batches: list[np.ndarray] = []
    for offset in range(0, len(is_missing), PORTION):
        check_stop(should_stop)
        mask = is_missing[offset : offset + PORTION]
        if mask.any():
            rows = start + offset + np.arange(len(mask))
            different = DifferentTexts(store.texts(corpus, rows))
            first = different.first_rows
            batches += [rows[first[b]] for b in different.batches(mask[first], BATCH_SIZE)]
    return batches


def _make_units(batches: Sequence[np.ndarray], n: int, keys: np.ndarray, start: int) -> list[Unit]:
    """Units of ``n`` batches each; ``keys`` are a round's."""
    units: list[Unit] = []
    for first in range(0, len(batches), n):
        group = batches[first : first + n]
        rows = np.concatenate(group)
        units.append((rows, list(map(len, group)), keys[rows - start].tobytes()))
    return units


def embed_units(
    arguments: tuple[Any, ...], units: Sequence[Unit], n_processes: int, options: dict[str, Any]
) -> Generator[UnitResult]:
    """Results as they are made. A unit whose process is lost goes to the next one that is free.

    ``arguments`` are those of `UnitEmbedder`, ``options`` those of a Ray actor.
    """
    make = ray.remote(UnitEmbedder).options(scheduling_strategy="SPREAD", **options)
    waiting = deque(units)
    running: dict[ray.ObjectRef, tuple[Any, Unit | None]] = {}  # process, and what it embeds
    free: list[Any] = []  # processes for which nothing waits
    n_failed = 0  # starts in sequence

    def start() -> None:
        process: Any = make.remote(*arguments)
        running[process.prepare.remote()] = process, None

    def assign(process: Any) -> None:
        if waiting:
            unit = waiting.popleft()
            running[process.embed.remote(*unit)] = process, unit
        else:
            free.append(process)

    try:
        for _ in range(n_processes):
            start()
        while running and (waiting or any(unit is not None for _, unit in running.values())):
            [call], _ = ray.wait(list(running))
            process, unit = running.pop(call)
            try:
                result = ray.get(call)
            except (RayActorError, OutOfMemoryError, ObjectLostError):
                ray.kill(process)
                if unit is not None:
                    waiting.appendleft(unit)
                n_failed += unit is None
                if waiting and free:
                    assign(free.pop())
                elif n_failed < TRIES * n_processes:
                    start()
                elif not running:
                    raise
                continue
            n_failed = 0
            if unit is None and result is not None:  # why it cannot embed anything
                ray.kill(process)
            else:
                assign(process)
            if result is not None:
                yield result
    finally:
        for process in [*free, *(process for process, _ in running.values())]:
            ray.kill(process)


def _commit_in_time(
    embedded: Generator[UnitResult],
    commit: Callable[[Sequence[Piece]], None],
    interval: float,
    should_stop: ShouldStop,
) -> Generator[UnitResult]:
    """Yield results, and commit their pieces at intervals and at the end, even on errors."""
    waiting: list[Piece] = []
    last = time.monotonic()
    try:
        with closing(receive(embedded, should_stop=should_stop)) as results:
            for result in results:
                waiting += result.pieces
                if waiting and time.monotonic() - last > interval:
                    commit(waiting)
                    waiting.clear()  # not before: what interrupts a commit is followed by another
                    last = time.monotonic()
                yield result
    finally:
        if waiting:
            commit(waiting)


def place_on_cluster(
    place: PlaceBlock, blocks: Sequence[np.ndarray], should_stop: ShouldStop
) -> Iterator[PlacedBlock]:
    """`Spread` over the cluster, one block per core; raises Stopped and NeuralvizError."""
    placed = _place_blocks(place, blocks)
    with closing(receive(placed, "Make the map again.", should_stop)) as results:
        for result in results:
            yield result
            check_stop(should_stop)


def _place_blocks(place: PlaceBlock, blocks: Sequence[np.ndarray]) -> Generator[PlacedBlock]:
    run = ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(_place_block)
    shared = ray.put(place)
    waiting = deque(blocks)
    running: deque[ray.ObjectRef] = deque()
    n_ahead = PLACED_AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    while waiting or running:
        while waiting and len(running) < n_ahead:
            running.append(run.remote(shared, waiting.popleft()))
        yield ray.get(running.popleft())


# --- on the machines -----------------------------------------------------------------------------


def _place_block(place: PlaceBlock, rows: np.ndarray) -> PlacedBlock:
    return place(rows)


class Attempt:
    """The parts of a unit to embed at once: smaller ones where a larger one fails.

    A file records what is tried: Ray repeats a unit whose process was killed in another one, batch
    by batch, then text by text where a batch killed two. A text that killed two is left out.
    """

    def __init__(self, folder: Path, unit: bytes, batches: Sequence[np.ndarray]) -> None:
        self.left_out: dict[int, str] = {}  # reasons by place
        self._waiting = [list(batches)]
        self._path = folder / hashlib.blake2b(unit, digest_size=16).hexdigest()
        self._tried: list[str] = []
        with suppress(OSError):  # there is none for the first attempt
            self._tried = self._path.read_text().splitlines()

    def parts(self) -> Iterator[list[np.ndarray]]:
        """Batches to embed before asking for the next ones."""
        while self._waiting:
            part = self._waiting.pop(0)
            name = f"{part[0][0]} {sum(map(len, part))}"  # first place, number of texts
            if self._tried.count(name) >= (1 if len(part) > 1 else TWICE):
                self.divide(part, KILLED)
                continue
            with suppress(OSError):  # the run is over
                self._path.write_text("\n".join([*self._tried, name]))
            yield part

    def divide(self, part: Sequence[np.ndarray], reason: str) -> None:
        """Try a part that failed in smaller ones; leave out a single text."""
        places = np.concatenate(part)
        if len(places) == 1:
            self.left_out[int(places[0])] = reason
        else:
            smaller = part if len(part) > 1 else np.split(places, len(places))
            self._waiting = [[batch] for batch in smaller] + self._waiting

    def close(self) -> None:
        """Forget the attempt: no process was killed."""
        with suppress(OSError):
            self._path.unlink()


@dataclass(eq=False)
class UnitEmbedder:
    """Ray actor that embeds units and writes pieces; results report errors, so others go on."""

    folder: str  # of the store
    run_folder: Path  # of this run alone; all machines see both
    corpus: Corpus
    make: Callable[[], Embedder]
    kept_id: str  # of the embedder that the driver has

    def prepare(self) -> UnitResult | None:
        """Load the model, before `embed`; a result that says why it cannot be used, or None."""
        try:
            self._prepare()
        except NeuralvizError as error:
            return self._fail(error)
        return None

    def embed(self, rows: np.ndarray, sizes: Sequence[int], keys: bytes) -> UnitResult:
        """Embed texts by rows and keys, in batches of ``sizes``."""
        try:
            return self._embed(rows, sizes, keys)
        except NeuralvizError as error:
            return self._fail(error)

    @staticmethod
    def _fail(error: NeuralvizError) -> UnitResult:
        is_of_machine = isinstance(error, StoreError | _MachineError)
        return UnitResult(failed=str(error), machine=this_machine() if is_of_machine else "")

    def _prepare(self) -> None:
        self._store = open_store(self.folder, self.corpus)
        try:
            self._embedder = self.make()
        except Exception as error:  # a device that is lost, say
            failure = f"The machine {socket.gethostname()} cannot load the model"
            raise _MachineError(f"{failure}: {shorten_reason(error)}.") from error
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        if self.kept_id != embedder_id(self._embedder):
            raise StoreError(
                f"The model of {self._embedder.name} on {socket.gethostname()} is not the one of "
                "this machine. Install the same neuralviz and the same model files on all."
            )
        self._pieces = PieceVectors(self._store.database)
        self._kept = self._pieces.register(self._embedder)

    def _embed(self, rows: np.ndarray, sizes: Sequence[int], keys: bytes) -> UnitResult:
        self._pieces.pieces.clear()
        texts = UniqueTexts(self._store.texts(self.corpus, rows), rows, self.corpus.n_texts)
        if texts.keys.tobytes() != keys:
            raise StoreError(
                f"Texts were removed from “{self.corpus.name}” in the meantime. Run the same "
                "command again."
            )
        work = EmbeddingWork(self._embedder, self._kept, self._pieces)
        batches = np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1])
        attempt = Attempt(self.run_folder, keys, batches)
        embedded: set[int] = set()
        n_rose = 0
        with closing(attempt), work.keep_finished():
            for part in attempt.parts():
                finished = embedded.union(attempt.left_out)
                batches = [batch for batch in part if not finished.issuperset(batch.tolist())]
                try:
                    for places, _, loss in work.embed(texts, batches, never, attempt.left_out):
                        embedded.update(places.tolist())
                        n_rose += int(has_risen(loss).sum())
                except StoreError:
                    raise
                except Exception as error:
                    self._check_works(error)
                    attempt.divide(part, f"failed: {shorten_reason(error)}")
        left_out = {
            int(rows[place]): (texts.keys[place : place + 1].tobytes(), reason)
            for place, reason in attempt.left_out.items()
        }
        return UnitResult(tuple(self._pieces.pieces), len(embedded), n_rose, left_out)

    def _check_works(self, failure: Exception) -> None:
        """Raise _MachineError if not even an ordinary text can be embedded."""
        try:
            self._embedder.encode([_ANY_TEXT])
        except Exception as error:
            sentence = f"On the machine {socket.gethostname()} no text could be embedded"
            raise _MachineError(f"{sentence}: {shorten_reason(failure)}.") from error


class _MachineError(NeuralvizError):
    """No text at all can be embedded on this machine."""
