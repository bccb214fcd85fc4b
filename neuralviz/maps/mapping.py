"""Maps of stored vectors, texts placed on them, and nearest texts in the store."""

from __future__ import annotations

import math
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
from functools import lru_cache, partial
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from neuralviz.errors import (
    NeuralvizError,
    ShouldStop,
    Stopped,
    StoreError,
    TextError,
    check_stop,
    never,
)
from neuralviz.files import prune
from neuralviz.maps.clusters import Clusters, find_clusters, name_clusters
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.neighbours import (
    NearGroups,
    Neighbours,
    all_distances,
    check_queries,
    check_search,
    check_vectors,
    digest_vectors,
    nearest,
    sort_keys,
    split_keys,
)
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
from neuralviz.native_libraries import count_cores
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.index import (
    build_index,
    index_texts,
    nearest_keys,
    read_index,
    rows_of_keys,
    vectors_of_keys,
)
from neuralviz.store.vectors import KEY_BYTES, match_keys, not_embedded_error, vectors_table
from neuralviz.words import many

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.maps.projection import ProjectionSettings
    from neuralviz.store.vectors import KeptEmbedder

MOST_PROCESSES = 16  # each takes a few hundred MB
LEFT_OVER = 2.0  # days until the folder of a killed process is deleted
_FOLDER = "placing"
_GROUPS = ("vectors", "texts", "centres", "starts")  # arrays of `NearGroups`
_LOOKED = 0.1  # seconds between checks of Stop
FITTED = 200_000  # texts; larger corpora are sampled
BLOCK = 20_000  # texts per block
FIT_ENDS = 0.3  # share of the counted work, roughly


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    rows: np.ndarray  # [text] int32
    coordinates: np.ndarray  # [text, dimensions] float32
    digests: np.ndarray  # [text] `digest_vectors`


PlaceBlock = Callable[[np.ndarray], PlacedBlock]  # gets the rows of a block
# Places blocks by a function, and yields them in any order; may raise `Stopped`.
Spread = Callable[[PlaceBlock, Sequence[np.ndarray], ShouldStop], Iterator[PlacedBlock]]


def place_block(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    fit: Path,  # the folder of `written_fit`
    rows: np.ndarray,  # [text] int32
) -> PlacedBlock:
    """Place a block on one thread, so that rounding is the same everywhere."""
    with threadpool_limits(1):
        vectors = check_vectors(store.vectors.get(embedder, store.keys(corpus, rows)))
        projection, groups = _read_fit(fit, settings)
        if groups is None:
            placed = project_on_components(vectors, projection.fitted)
        else:
            n_near = settings.placing_neighbours(len(projection.coordinates))
            placed = place_by_neighbours(projection, vectors, groups.nearest(vectors, n_near))
    return PlacedBlock(rows, placed.astype(np.float32), digest_vectors(vectors))


@contextmanager
def written_fit(
    store: CorpusStore, projection: Projection, vectors: np.ndarray, should_stop: ShouldStop
) -> Iterator[Path]:
    """A temporary folder with the fit, for `place_block`; NeuralvizError if writing fails."""
    folder = store.folder / _FOLDER / secrets.token_hex(8)
    settings, near = projection.settings, projection.neighbours
    arrays = {"coordinates": projection.coordinates, **projection.fitted}
    arrays |= {"indices": near.indices, "distances": near.distances}
    try:
        if settings.reducer != "pca":
            groups = NearGroups.build(
                vectors, settings.metric, settings.seed, should_stop=should_stop
            )
            arrays |= {name: getattr(groups, name) for name in _GROUPS}
        try:
            folder.mkdir(parents=True)
            prune(folder.parent, days=LEFT_OVER)
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", array)
        except OSError as error:
            raise NeuralvizError(store.database.refusal(str(error))) from error
        yield folder
    finally:
        _read_fit.cache_clear()
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _read_fit(folder: Path, settings: ProjectionSettings) -> tuple[Projection, NearGroups | None]:
    """Map what `written_fit` wrote; groups only for reducers that place by neighbours."""
    if not folder.is_dir():
        raise NeuralvizError(f"The folder {folder} is gone. Make the map again.")
    paths = folder.glob("*.npy")
    arrays = {path.stem: np.asarray(np.load(path, mmap_mode="r")) for path in paths}
    near = Neighbours(arrays["indices"], arrays["distances"])
    projection = Projection(arrays["coordinates"], settings, near, fitted=arrays)
    if settings.reducer == "pca":
        return projection, None
    groups = {name: arrays[name] for name in _GROUPS}
    return projection, NearGroups(**groups, metric=settings.metric)


def place_on_processes(
    place: PlaceBlock,
    blocks: Sequence[np.ndarray],
    should_stop: ShouldStop,
    *,
    n_processes: int | None = None,
) -> Iterator[PlacedBlock]:
    """Place blocks on up to 16 cores; scripts need a ``__main__`` guard. Raises NeuralvizError."""
    n_processes = min(n_processes or min(count_cores(), MOST_PROCESSES), len(blocks))
    if n_processes <= 1:
        for block in blocks:
            check_stop(should_stop)
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
                check_stop(should_stop)
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
    spread: Spread = place_on_processes,
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
        check_stop(should_stop)

    sample = coordinates = recall = None
    if corpus.n_texts <= FITTED:
        vectors = store.vectors.get(embedder, store.keys(corpus))
        projection = project(vectors, settings, on_progress=on_progress, should_stop=should_stop)
    else:
        report(ProjectionEvent("index"))
        store.vectors.locate(embedder, store.keys(corpus))  # raises where one is missing
        index_texts(store, corpus)
        index = build_index(store.database, embedder)
        recall = index.recall if index is not None and settings.metric == "cosine" else None
        projection, sample, coordinates = _fit_and_place(
            store, corpus, embedder, settings, spread, on_progress, should_stop
        )
    report(ProjectionEvent("clusters", span=(0.0, 1.0) if sample is None else (1.0, 1.0)))
    clusters = find_clusters(projection.coordinates if coordinates is None else coordinates)
    named = clusters if sample is None else Clusters(clusters.labels[sample], clusters.n)
    words = name_clusters(store.texts(corpus, sample), named)
    store.check_kept(corpus)
    check_stop(should_stop)
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
    spread: Spread,
    on_progress: Callable[[ProjectionEvent], None],
    should_stop: ShouldStop,
) -> tuple[Projection, np.ndarray, np.ndarray]:
    """A sample's map, its [fitted] rows, and the [text, dimensions] coordinates of all texts."""
    seed = settings.seed if "seed" in settings.relevant() else SEED
    first = _first_rows(store, corpus)
    different = np.flatnonzero(first == np.arange(len(first), dtype=np.int32)).astype(np.int32)
    n_fitted = min(FITTED, len(different))
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
        blocks = np.array_split(rest, -(-len(rest) // BLOCK)) if len(rest) else []
        place_rows = partial(place_block, store, corpus, embedder, settings, fit)
        n_placed = 0
        on_progress(ProjectionEvent("placing", 0, len(rest), (FIT_ENDS, 1.0)))
        for placed in spread(place_rows, blocks, should_stop):
            coordinates[placed.rows], digests[placed.rows] = placed.coordinates, placed.digests
            n_placed += len(placed.rows)
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


INDEXED = "cosine"  # the metric of the index
MOST_FETCHED = 4000  # candidates per query before a full scan
MARGIN = 1.3  # safety factor on the expected number of candidates
WIDER = 4  # growth factor after too few results
SAMPLED = 1000  # sampled texts for scoring a large corpus

KeyDistances = tuple[np.ndarray, np.ndarray]  # [found] text keys and float64 distances


def nearest_in_corpus(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    queries: ArrayLike,
    k: int,
    metric: str = "cosine",
    *,
    leaving_out: np.ndarray | None = None,
    by_index_alone: bool = False,
    should_stop: ShouldStop = never,
) -> Neighbours:
    """The ``k`` nearest embedded texts of each [query, dim] vector; equal texts all count.

    ``leaving_out`` is [query] one row to exclude. Raises SettingsError for an unknown metric, ``k``
    below 1 or a wrong dimension, TextError for invalid values, StoreError if the corpus is gone or
    has fewer than ``k`` texts embedded; Stopped, also where ``by_index_alone`` finds too few.
    """
    check_search(metric, k)
    checked = check_queries(queries, embedder.dim)
    n, k = len(checked), min(int(k), corpus.n_texts - (leaving_out is not None))
    itself = np.full(n, -1) if leaving_out is None else leaving_out
    keys = np.zeros((n, k), dtype=np.int64)
    search = _Search(store, corpus, embedder, checked, metric, itself, keys)
    pending = search.by_index(should_stop)
    if len(pending):
        if by_index_alone:
            raise Stopped
        search.exactly(pending, should_stop)
    return Neighbours(*split_keys(keys))


def neighbours_of_rows(
    store: CorpusStore,
    corpus: Corpus,
    kept: KeptMap,
    rows: np.ndarray,
    k: int,
    *,
    by_index_alone: bool = False,
    should_stop: ShouldStop = never,
) -> Neighbours:
    """The ``k`` nearest other texts by vector: as saved, or searched for a sampled map."""
    check_search(kept.settings.metric, k)
    if kept.n_fitted is None:
        return KeptMaps(store).neighbours(kept, rows).first(k)
    embedder = find_embedder(store, kept)
    return nearest_in_corpus(
        store,
        corpus,
        embedder,
        store.vectors.get(embedder, store.keys(corpus, rows)),
        k,
        kept.settings.metric,
        leaving_out=rows,
        by_index_alone=by_index_alone,
        should_stop=should_stop,
    )


def neighbours_at_once(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, row: int, k: int
) -> Neighbours | None:
    """`neighbours_of_rows` for one text; None if it needs a full scan."""
    try:
        return neighbours_of_rows(store, corpus, kept, np.array([row]), k, by_index_alone=True)
    except Stopped:
        return None


def find_embedder(store: CorpusStore, kept: KeptMap) -> KeptEmbedder:
    """The embedder of a map. Raises StoreError if its vectors were deleted."""
    for embedder in store.vectors.embedders():
        if embedder.id == kept.embedder:
            return embedder
    raise StoreError("The embeddings of this map were deleted. Embed the corpus again.")


def sampled_rows(corpus: Corpus, max_rows: int = SAMPLED) -> np.ndarray:
    """[row] fixed random sample of a corpus's rows, ascending."""
    drawn = np.random.default_rng(SEED).choice(corpus.n_texts, min(max_rows, corpus.n_texts), False)
    return np.sort(drawn)


@dataclass(frozen=True, eq=False)
class SampledNeighbours:
    """Some texts of a large corpus, always the same, and what is near them."""

    rows: np.ndarray  # [text] row numbers
    near: Neighbours  # by the vectors, among all texts; an index may miss a few


@dataclass(frozen=True, eq=False)
class _Search:
    store: CorpusStore
    corpus: Corpus
    embedder: KeptEmbedder
    queries: np.ndarray  # [query, dim] float32
    metric: str
    itself: np.ndarray  # [query] the row to leave out; -1 for none
    keys: np.ndarray  # [query, k] as of `sort_keys`, filled in

    @property
    def k(self) -> int:
        return self.keys.shape[1]

    def by_index(self, should_stop: ShouldStop) -> np.ndarray:
        """Search the index; returns the queries that need an exact search."""
        store = self.store
        index = read_index(store.database, self.embedder) if self.metric == INDEXED else None
        if index is None:
            return np.arange(len(self.queries))
        has_direction = np.abs(self.queries).max(axis=1, initial=0) > 0
        pending = np.flatnonzero(has_direction)
        with store.database.reading():
            table = store.database.open(vectors_table(self.embedder))
            n_vectors = table.count_rows()
        share = min(self.corpus.n_distinct / max(n_vectors, 1), 1.0)
        n = self.k + 1 if share == 1 else math.ceil(MARGIN * (self.k + 1) / share)
        while len(pending) and n <= MOST_FETCHED:
            candidates = []
            for query in pending.tolist():
                check_stop(should_stop)
                with store.database.reading():
                    keys, vectors = nearest_keys(table, index, self.queries[query], n)
                vector = self.queries[query : query + 1].astype(np.float64)
                distances = all_distances(vector, vectors.astype(np.float64), INDEXED)
                candidates.append((keys, distances[0]))
            pending = pending[~np.array(self._fill_in(pending, candidates))]
            n *= WIDER
        return np.concatenate([np.flatnonzero(~has_direction), pending])

    def exactly(self, pending: np.ndarray, should_stop: ShouldStop) -> None:
        queries, n = self.queries[pending].astype(np.float64), self.k + 1
        corpus_keys = np.unique(self.store.keys(self.corpus))
        best = np.full((len(queries), 0), np.inf)
        keys = np.zeros((len(queries), 0), dtype=f"S{KEY_BYTES}")
        for piece_keys, piece in vectors_of_keys(self.store.database, self.embedder, corpus_keys):
            check_stop(should_stop)
            _, is_mine = match_keys(corpus_keys, piece_keys)
            distances = all_distances(queries, piece[is_mine].astype(np.float64), self.metric)
            best = np.concatenate([best, distances], axis=1)
            some_keys = np.broadcast_to(piece_keys[is_mine], distances.shape)
            keys = np.concatenate([keys, some_keys], axis=1)
            if best.shape[1] > n:
                first = np.argpartition(best, n - 1, axis=1)[:, :n]
                best = np.take_along_axis(best, first, axis=1)
                keys = np.take_along_axis(keys, first, axis=1)
        if not all(self._fill_in(pending, list(zip(keys, best, strict=True)))):
            _, rows = rows_of_keys(self.store, self.corpus, np.unique(keys))
            n_texts = self.corpus.n_texts  # too few texts have a vector
            raise not_embedded_error(n_texts - len(rows), n_texts)

    def _fill_in(self, queries: np.ndarray, candidates: list[KeyDistances]) -> list[bool]:
        """Fill in results; returns whether each query has enough."""
        different = np.unique(np.concatenate([keys for keys, _ in candidates]))
        places, rows = rows_of_keys(self.store, self.corpus, different)
        ends = np.searchsorted(places, np.arange(len(different) + 1))
        are_enough = []
        for query, (keys, distances) in zip(queries.tolist(), candidates, strict=True):
            positions = np.searchsorted(different, keys)
            counts = ends[positions + 1] - ends[positions]
            steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            numbers = rows[np.repeat(ends[positions], counts) + steps]
            near = np.sort(sort_keys(np.repeat(distances, counts)[None], numbers)[0])
            near = near[split_keys(near)[0] != self.itself[query]][: self.k]
            are_enough.append(len(near) == self.k)
            if are_enough[-1]:
                self.keys[query] = near
        return are_enough
