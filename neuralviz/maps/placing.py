"""The other texts of a large corpus on a map that was fitted to a sample, block by block.

What a block needs lies in a folder, which each process opens once. A block is placed by itself, so
that it does not matter which process does it, or when.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from neuralviz.errors import ShouldStop, Stopped, never
from neuralviz.maps.components import on_components
from neuralviz.maps.distances import check_vectors
from neuralviz.maps.grouped import Grouped, group, nearest_of_groups, open_grouped
from neuralviz.maps.projecting import place_near
from neuralviz.maps.projection import Projection, ProjectionEvent
from neuralviz.maps.settings import SEED, ProjectionSettings
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.vectors import KeptEmbedder

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.synchronize import Event

BLOCK = 20_000  # texts that are placed together
FEW_BLOCKS = 3  # up to which no processes are started
MOST_PROCESSES = 8

_MAP, _SETTINGS = "map.npz", "settings.json"

Mapper = Callable[[Callable[[np.ndarray], np.ndarray], Sequence[np.ndarray]], Iterable[np.ndarray]]
"""Calls a `PlaceBlock` with each of the blocks, wherever, and gives the results in their order."""


def distinct_texts(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different texts of a corpus.

    Args:
        keys: [text] of `neuralviz.store.vectors.text_keys`.

    Returns:
        [distinct] the row in which each comes first, rising; and [text] int32 which it is.
    """
    _, firsts, of = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    place = np.empty(len(firsts), dtype=np.int32)
    place[order] = np.arange(len(firsts), dtype=np.int32)
    return firsts[order], place[of]


def drawn_texts(n_distinct: int, n: int) -> np.ndarray:
    """Which different texts a map is fitted to, rising: the same for all maps of a corpus."""
    drawn = np.random.default_rng(SEED).choice(n_distinct, min(n, n_distinct), replace=False)
    return np.sort(drawn)


@dataclass(frozen=True)
class PlaceBlock:
    """Where the texts of a block lie, for any process that sees the folders; it can be pickled.

    Attributes:
        folder: of the store, which keeps the vectors.
        embedder: whose they are.
        prepared: folder of `prepared_map`.
    """

    folder: Path
    embedder: KeptEmbedder
    prepared: Path

    def __call__(self, keys: np.ndarray) -> np.ndarray:
        """[text, dimensions] float32 where texts with some keys, no two alike, lie.

        Raises:
            StoreError: a text is not embedded, or the vectors cannot be read.
        """
        vectors = CorpusStore(self.folder).vectors.get(self.embedder, keys)
        return _opened(self.prepared).place(check_vectors(vectors))


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A map of a sample; without groups where a product places new texts."""

    projection: Projection
    grouped: Grouped | None

    def place(self, vectors: np.ndarray) -> np.ndarray:
        if self.grouped is None:
            return on_components(vectors, self.projection.fitted)
        n = len(self.projection.coordinates)
        k = self.projection.settings.placing_neighbours(n)
        return place_near(self.projection, nearest_of_groups(self.grouped, vectors, k))


@contextmanager
def prepared_map(folder: Path, vectors: np.ndarray, projection: Projection) -> Iterator[Path]:
    """A folder with all that places new texts on a map, for as long as it is needed.

    Args:
        folder: that it is made in; all processes that place blocks must see it.
        vectors: [text, dim] of the texts on the map.
        projection: the map.
    """
    settings = projection.settings
    with tempfile.TemporaryDirectory(prefix="placing-", dir=folder) as made:
        path = Path(made)
        (path / _SETTINGS).write_text(json.dumps(settings.relevant()), "utf-8")
        np.savez(path / _MAP, coordinates=projection.coordinates, **projection.fitted)  # type: ignore[arg-type]
        if settings.reducer != "pca":
            group(vectors, settings.metric).save(path)
        yield path
        _opened.cache_clear()  # opened files cannot be deleted everywhere


@lru_cache(maxsize=1)
def _opened(prepared: Path) -> _Fitted:
    settings = ProjectionSettings.from_dict(json.loads((prepared / _SETTINGS).read_text("utf-8")))
    with np.load(prepared / _MAP, allow_pickle=False) as file:
        fitted = dict(file)
    coordinates = fitted.pop("coordinates")
    projection = Projection(coordinates, settings, None, (), MappingProxyType(fitted))
    return _Fitted(projection, None if settings.reducer == "pca" else open_grouped(prepared))


def place_texts(
    place: PlaceBlock,
    keys: np.ndarray,
    mapper: Mapper | None = None,
    *,
    block: int = BLOCK,
    on_progress: Callable[[ProjectionEvent], None] = lambda event: None,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """Where the other texts of a corpus lie.

    Args:
        place: for a block.
        keys: [text] of the texts, no two alike.
        mapper: that runs the blocks; by default `in_processes`. What it returns is closed, if it
            can be, when no more is wanted.
        block: texts that are placed together; UMAP's points depend on it a little.
        on_progress: told of every block, in the stage ``placing``.
        should_stop: asked between blocks.

    Returns:
        [text, dimensions] float32.

    Raises:
        StoreError: a text is not embedded, or the vectors cannot be read.
        Stopped: ``should_stop`` said so.
    """
    blocks = [keys[at : at + block] for at in range(0, len(keys), block)]
    on_progress(ProjectionEvent("placing", 0, len(keys)))
    placed: list[np.ndarray] = []
    done = 0
    with closing(_each((mapper or in_processes)(place, blocks))) as results:
        while len(placed) < len(blocks):
            if should_stop():
                raise Stopped
            placed.append(next(results))
            done += len(placed[-1])
            on_progress(ProjectionEvent("placing", done, len(keys)))
    return np.concatenate(placed)


def _each(results: Iterable[np.ndarray]) -> Generator[np.ndarray, None, None]:
    try:
        yield from results
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()


def in_processes(
    place: Callable[[np.ndarray], np.ndarray],
    blocks: Sequence[np.ndarray],
    processes: int | None = None,
) -> Iterator[np.ndarray]:
    """Place blocks in processes of one thread each; a few of them in this one.

    Args:
        place: for a block; it can be pickled.
        blocks: in their order.
        processes: by default one a core, and 8 at most; up to 3 blocks are placed in this one.
    """
    if processes is None:
        processes = 1 if len(blocks) <= FEW_BLOCKS else min(_n_cores(), MOST_PROCESSES)
    processes = min(processes, len(blocks))
    if processes < 2:
        yield from map(place, blocks)
        return
    context = multiprocessing.get_context("spawn")
    is_over = context.Event()
    pool = ProcessPoolExecutor(processes, context, _begin, (is_over,))
    try:
        left = iter(blocks)
        running: deque[Future[np.ndarray]] = deque(
            pool.submit(place, one) for one in islice(left, 2 * processes)
        )
        while running:
            result = running.popleft().result()
            running.extend(pool.submit(place, one) for one in islice(left, 1))
            yield result
    except BaseException:  # nobody wants the blocks that are under way
        is_over.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(is_over: Event) -> None:
    """What a process does first: it works on one thread, and ends when its work is not wanted."""
    os.environ["NUMBA_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    parent = multiprocessing.parent_process()
    for wait in (is_over.wait, *([parent.join] if parent is not None else [])):
        name = "neuralviz-end"
        threading.Thread(target=_end_after, args=(wait,), name=name, daemon=True).start()


def _end_after(wait: Callable[[], object]) -> None:
    wait()
    os._exit(1)


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
