"""Make maps of stored vectors; texts beyond a fitted sample are placed in independent blocks."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from neuralviz.errors import NeuralvizError, ShouldStop, Stopped, TextError, never
from neuralviz.maps.clusters import Clusters, find_clusters, name_clusters
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import NearGroups, Neighbours, check_vectors, digest_vectors, nearest
from neuralviz.maps.projection import (
    FEWEST_TEXTS,
    SEED,
    Projection,
    ProjectionEvent,
    place,
    place_by_neighbours,
    project,
    project_on_components,
)
from neuralviz.maps.searching import find_embedder, nearest_in_corpus
from neuralviz.native_libraries import count_cores
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.files import prune
from neuralviz.store.index import INDEXED_FROM, build_index, index_texts
from neuralviz.store.vectors import not_embedded_error
from neuralviz.words import many

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.projection import ProjectionSettings
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

MOST_PROCESSES = 16  # each takes a few hundred MB
LEFT_OVER = 2.0  # days until the folder of a killed process is deleted
_FOLDER, _FIT = "placing", "fit.npz"
_LOOKED = 0.1  # seconds between checks of Stop
_ROOM = 1 << 62  # bytes: no limit, only age counts
FITTED = 200_000  # texts; larger corpora are sampled
BLOCK = 20_000  # texts per block
FIT_ENDS = 0.3  # share of the counted work, roughly


@dataclass(frozen=True)
class Block:
    number: int  # block number
    store: Path  # folder of the store
    fit: str  # folder name of the fit
    corpus: Corpus  # corpus of the texts
    embedder: KeptEmbedder  # embedder of the vectors
    settings: ProjectionSettings  # of the map
    rows: np.ndarray  # [text] int32


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    number: int  # block number
    coordinates: np.ndarray  # [text, dimensions] float32
    digests: np.ndarray  # [text] `digest_vectors`


PlaceBlock = Callable[[Block], PlacedBlock]
# Places blocks by a function, and yields them in any order; may raise `Stopped`.
Spread = Callable[[PlaceBlock, Sequence[Block], ShouldStop], Iterator[PlacedBlock]]


def place_block(block: Block) -> PlacedBlock:
    """Place a block on one thread, so that rounding is the same everywhere."""
    with threadpool_limits(1):
        store = CorpusStore(block.store)
        keys = store.keys(block.corpus, block.rows)
        vectors = check_vectors(store.vectors.get(block.embedder, keys))
        projection, groups = _read_fit(block.store / _FOLDER / block.fit, block.settings)
        if groups is None:
            placed = project_on_components(vectors, projection.fitted)
        else:
            n_near = block.settings.placing_neighbours(len(projection.coordinates))
            placed = place_by_neighbours(projection, vectors, groups.nearest(vectors, n_near))
    return PlacedBlock(block.number, placed.astype(np.float32), digest_vectors(vectors))


@contextmanager
def written_fit(
    store: CorpusStore, projection: Projection, vectors: np.ndarray, should_stop: ShouldStop
) -> Iterator[str]:
    """A temporary folder with the fit, for `Block`. Raises NeuralvizError if writing fails."""
    parent = store.folder / _FOLDER
    folder = parent / secrets.token_hex(8)
    settings = projection.settings
    try:
        try:
            folder.mkdir(parents=True)
            prune(parent, n_bytes=_ROOM, days=LEFT_OVER)
            if settings.reducer != "pca":
                groups = NearGroups.build(
                    vectors, settings.metric, settings.seed, should_stop=should_stop
                )
                groups.save(folder)
            np.savez(
                folder / _FIT,
                coordinates=projection.coordinates,
                indices=projection.neighbours.indices,
                distances=projection.neighbours.distances,
                **projection.fitted,  # type: ignore[arg-type]
            )
        except OSError as error:
            raise NeuralvizError(store.database.refusal(str(error))) from error
        yield folder.name
    finally:
        _read_fit.cache_clear()
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _read_fit(folder: Path, settings: ProjectionSettings) -> tuple[Projection, NearGroups | None]:
    """Read what `written_fit` wrote; groups only for reducers that place by neighbours."""
    if not folder.is_dir():
        raise NeuralvizError(f"The folder {folder} is gone. Make the map again.")
    with np.load(folder / _FIT, allow_pickle=False) as arrays:
        fitted = dict(arrays)
    near = Neighbours(fitted.pop("indices"), fitted.pop("distances"), settings.metric)
    projection = Projection(fitted.pop("coordinates"), settings, near, (), fitted)
    is_pca = settings.reducer == "pca"
    return projection, None if is_pca else NearGroups.open(folder, settings.metric)


def place_on_processes(
    place: PlaceBlock,
    blocks: Sequence[Block],
    should_stop: ShouldStop,
    *,
    n_processes: int | None = None,
) -> Iterator[PlacedBlock]:
    """Place blocks on up to 16 cores; scripts need a ``__main__`` guard. Raises NeuralvizError."""
    n_processes = min(n_processes or min(count_cores(), MOST_PROCESSES), len(blocks))
    if n_processes <= 1:
        for block in blocks:
            if should_stop():
                raise Stopped
            yield place(block)
        return
    context = get_context("spawn")
    is_over = context.Event()
    with ProcessPoolExecutor(
        n_processes, mp_context=context, initializer=_end_process_with, initargs=(is_over,)
    ) as pool:
        pending = {pool.submit(place, block) for block in blocks}
        try:
            while pending:
                finished, pending = wait(pending, _LOOKED, FIRST_COMPLETED)
                if should_stop():
                    raise Stopped
                for future in finished:
                    yield future.result()
        except BrokenProcessPool as error:
            raise NeuralvizError(
                "A process that placed texts on the map was ended by the system, perhaps for lack "
                "of memory. Close other programs and make the map again."
            ) from error
        finally:
            is_over.set()
            pool.shutdown(cancel_futures=True)


def _end_process_with(is_over: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    parent = parent_process()

    def watch() -> None:
        while not is_over.wait(5 * _LOOKED):
            if parent is None or not parent.is_alive():
                break
        time.sleep(_LOOKED)  # finished blocks are passed on
        os._exit(0)

    threading.Thread(target=watch, name="neuralviz-placing", daemon=True).start()


@dataclass(frozen=True)
class Fitting:
    n_fitted: int = FITTED  # texts to fit in a larger corpus
    block: int = BLOCK  # texts per block
    spread: Spread = place_on_processes  # places the blocks
    indexed_from: int = INDEXED_FROM  # texts or vectors


DEFAULT = Fitting()


def check_enough_texts(corpus: Corpus) -> None:
    if corpus.n_distinct < FEWEST_TEXTS:
        raise TextError(
            f"A map needs at least {FEWEST_TEXTS} different texts; “{corpus.name}” has "
            f"{corpus.n_distinct}."
        )


def make_map(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    *,
    on_progress: Callable[[ProjectionEvent], None] = lambda event: None,
    should_stop: ShouldStop = never,
    fitting: Fitting = DEFAULT,
) -> KeptMap:
    """Find or make the map of an embedded corpus.

    Over 200,000 texts, a seeded sample of that size is fitted and the others are placed in blocks.
    Raises as `project`, and StoreError if a text is not embedded or the map cannot be saved.
    """
    kept = KeptMaps(store).find(corpus, embedder, settings)
    if kept is not None:
        return kept

    def report(event: ProjectionEvent) -> None:
        on_progress(event)
        if should_stop():
            raise Stopped

    sample = coordinates = recall = None
    if corpus.n_texts <= fitting.n_fitted:
        vectors = store.vectors.get(embedder, store.keys(corpus))
        projection = project(vectors, settings, on_progress=on_progress, should_stop=should_stop)
    else:
        report(ProjectionEvent("index"))
        _check_embedded(store, corpus, embedder)
        index_texts(store, corpus, smallest=fitting.indexed_from)
        index = build_index(store.database, embedder, smallest=fitting.indexed_from)
        recall = index.recall if index is not None and settings.metric == "cosine" else None
        projection, sample, coordinates = _fit_and_place(
            store, corpus, embedder, settings, fitting, on_progress, should_stop
        )
    report(ProjectionEvent("clusters", span=(0.0, 1.0) if sample is None else (1.0, 1.0)))
    clusters = find_clusters(projection.coordinates if coordinates is None else coordinates)
    named = clusters
    if sample is not None:
        named = Clusters(clusters.labels[sample], clusters.n)
    if should_stop():
        raise Stopped
    words = name_clusters(store.texts(corpus, sample), named)
    store.check_kept(corpus)
    if should_stop():
        raise Stopped
    return KeptMaps(store).put(
        corpus,
        embedder,
        projection,
        clusters,
        words,
        sample=sample,
        coordinates=coordinates,
        recall=recall,
    )


def _fit_and_place(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    fitting: Fitting,
    on_progress: Callable[[ProjectionEvent], None],
    should_stop: ShouldStop,
) -> tuple[Projection, np.ndarray, np.ndarray]:
    """A sample's map, its [fitted] rows, and the [text, dimensions] coordinates of all texts."""
    if should_stop():
        raise Stopped
    seed = settings.seed if "seed" in settings.relevant() else SEED
    first = _first_rows(store, corpus)
    different = np.flatnonzero(first == np.arange(len(first), dtype=np.int32)).astype(np.int32)
    n_fitted = min(fitting.n_fitted, len(different))
    sample = np.sort(np.random.default_rng(seed).choice(different, n_fitted, replace=False))
    rest = np.setdiff1d(different, sample, assume_unique=True)
    vectors = check_vectors(store.vectors.get(embedder, store.keys(corpus, sample)))

    def on_fit(event: ProjectionEvent) -> None:
        on_progress(replace(event, span=(0.0, FIT_ENDS)))

    projection = project(vectors, settings, on_progress=on_fit, should_stop=should_stop)
    coordinates = np.zeros((corpus.n_texts, settings.dimensions), dtype=np.float32)
    digests = np.zeros(corpus.n_texts, dtype=np.uint64)
    coordinates[sample], digests[sample] = projection.coordinates, digest_vectors(vectors)
    with written_fit(store, projection, vectors, should_stop) as fit:
        del vectors
        parts = np.array_split(rest, -(-len(rest) // fitting.block)) if len(rest) else []
        blocks = [
            Block(number, store.folder, fit, corpus, embedder, settings, rows)
            for number, rows in enumerate(parts)
        ]
        n_placed = 0
        on_progress(ProjectionEvent("placing", 0, len(rest), (FIT_ENDS, 1.0)))
        for placed in fitting.spread(place_block, blocks, should_stop):
            rows = parts[placed.number]
            coordinates[rows], digests[rows] = placed.coordinates, placed.digests
            n_placed += len(rows)
            on_progress(ProjectionEvent("placing", n_placed, len(rest), (FIT_ENDS, 1.0)))
    if n_placed < len(rest):
        raise NeuralvizError("Some texts were not placed on the map. Make it again.")
    _lay_together(coordinates, digests, sample, rest)
    note = (
        f"The map was fitted to a random sample of {many(len(sample), 'text')}; the other "
        f"{corpus.n_texts - len(sample):,} were placed on it."
    )
    projection = replace(projection, notes=(*projection.notes, note))
    return projection, sample, coordinates[first]


def _first_rows(store: CorpusStore, corpus: Corpus) -> np.ndarray:
    """[text] int32 first row with an equal text, compared by half of the key."""
    rows = np.arange(corpus.n_texts, dtype=np.int32)
    if corpus.n_distinct == corpus.n_texts:
        return rows
    halves = np.ascontiguousarray(store.keys(corpus)).view(np.uint64)[::2]
    _, first, group = np.unique(halves, return_index=True, return_inverse=True)
    return first.astype(np.int32)[group]


def _check_embedded(store: CorpusStore, corpus: Corpus, embedder: KeptEmbedder) -> None:
    keys = np.unique(store.keys(corpus))
    missing = keys[~store.vectors.has_vectors(embedder, keys)]
    if len(missing):
        raise not_embedded_error(len(missing), len(keys))


def _lay_together(
    coordinates: np.ndarray, digests: np.ndarray, sample: np.ndarray, rest: np.ndarray
) -> None:
    """Move placed texts, in place, onto the first text with an equal vector."""
    order = np.concatenate([sample, rest])
    _, firsts, group = np.unique(digests[order], return_index=True, return_inverse=True)
    if len(firsts) < len(order):
        follows = order[firsts[group]][len(sample) :]
        coordinates[rest] = coordinates[follows]


class Placer:
    """Places new vectors on a saved map and finds their neighbours; holds the fitted vectors."""

    def __init__(self, store: CorpusStore, corpus: Corpus, kept: KeptMap) -> None:
        self.kept = kept
        self.embedder = find_embedder(store, kept)
        self._store, self._corpus = store, corpus
        rows = None if kept.n_fitted is None else KeptMaps(store).sample(kept)
        self.vectors: np.ndarray = store.vectors.get(self.embedder, store.keys(corpus, rows))
        self.projection: Projection = KeptMaps(store).projection(kept)

    def near(self, vectors: np.ndarray, k: int) -> Neighbours:
        """The ``k`` nearest corpus texts of [new, dim] vectors."""
        metric = self.projection.settings.metric
        if self.kept.n_fitted is None:
            return nearest(self.vectors, vectors, k, metric)
        return nearest_in_corpus(self._store, self._corpus, self.embedder, vectors, k, metric)

    def land(self, vectors: np.ndarray, *, should_stop: ShouldStop = never) -> np.ndarray:
        """[new, dimensions] coordinates, as by `neuralviz.maps.projection.place`."""
        placed = place(self.vectors, self.projection, vectors, should_stop=should_stop)
        if self.kept.n_fitted is not None and self.projection.settings.reducer != "pca":
            near = self.near(vectors, 1)
            is_there = near.distances[:, 0] == 0
            if is_there.any():
                rows = near.indices[is_there, 0]
                placed[is_there] = KeptMaps(self._store).points_of(self.kept, rows)
        return placed
