"""Many texts on a map that was fitted to a sample of them, in blocks that depend on nothing else.

A block is small: it names its rows, and whoever places it reads their vectors from the store, and
what was fitted from a folder beside the store's tables. So blocks can go to any process, on any
machine that sees the store; where and in which order they are placed changes no bit on machines of
one kind.
"""

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
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from neuralviz.errors import NeuralvizError, ShouldStop, Stopped
from neuralviz.maps.distances import check_vectors, digest_vectors
from neuralviz.maps.near_groups import NearGroups
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projecting import place_by_neighbours
from neuralviz.maps.projection import Projection, project_on_components
from neuralviz.native_libraries import count_cores
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.results import prune

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from neuralviz.maps.settings import ProjectionSettings
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

MOST_PROCESSES = 16  # of this machine; each takes some hundred MB
LEFT_OVER = 2.0  # days after which the folder of a killed process is deleted
_FOLDER, _FIT = "placing", "fit.npz"
_LOOKED = 0.1  # seconds after which it is asked whether to stop
_ROOM = 1 << 62  # bytes: only age counts


@dataclass(frozen=True)
class Block:
    """Texts to be placed.

    Attributes:
        number: of the block.
        store: folder of the store.
        fit: name of the folder of what was fitted.
        corpus: whose texts they are.
        embedder: whose vectors they are placed by.
        settings: of the map.
        rows: [text] int32.
    """

    number: int
    store: Path
    fit: str
    corpus: Corpus
    embedder: KeptEmbedder
    settings: ProjectionSettings
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    """The coordinates of the texts of a block.

    Attributes:
        number: of the block.
        coordinates: [text, dimensions] float32.
        digests: [text] of `digest_vectors` their vectors.
    """

    number: int
    coordinates: np.ndarray
    digests: np.ndarray


PlaceBlock = Callable[[Block], PlacedBlock]
Spread = Callable[[PlaceBlock, Sequence[Block], ShouldStop], Iterator[PlacedBlock]]
"""Has blocks placed by a function, and yields them in any order; raises `Stopped` when asked to."""


def place_block(block: Block) -> PlacedBlock:
    """Read the vectors of a block, and place them.

    On one thread: sums by another number of threads differ in their last bits.
    """
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
    """A folder of what was fitted, for as long as blocks are placed; `Block` has its name.

    Args:
        store: beside whose tables it lies.
        projection: of the sample.
        vectors: [fitted, dim] of the sample.
        should_stop: asked now and then.

    Raises:
        Stopped: ``should_stop`` said so.
        NeuralvizError: it cannot be written.
    """
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
    """Read the files of `written_fit`; the groups are for reducers that place by neighbours."""
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
    """Place blocks on the cores of this machine, each on one; a single core needs no new process.

    A script that is run as a file must guard what it does by ``if __name__ == "__main__"``, as of
    `multiprocessing`. By default there is a process for every core, at most 16. Blocks under way
    are given up at Stop; a process that was killed is a NeuralvizError.
    """
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
    """End this process at once when the work is over, or when the process that wants it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that wants it says when
    parent = parent_process()

    def watch() -> None:
        while not is_over.wait(5 * _LOOKED):
            if parent is None or not parent.is_alive():
                break
        time.sleep(_LOOKED)  # what is done is handed over
        os._exit(0)

    threading.Thread(target=watch, name="neuralviz-placing", daemon=True).start()
