"""UMAP maps (McInnes, Healy, Melville 2018), and new texts on them."""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from umap import UMAP, layouts

if TYPE_CHECKING:
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.projection import Projection, ProjectionSettings

LARGE = 10_000  # texts; UMAP uses fewer epochs for more


def lay_out(
    vectors: np.ndarray,  # of unit length for cosine distances
    settings: ProjectionSettings,
    neighbours: Neighbours,
    after_epoch: Callable[[int, int], None],  # gets epochs done and total; may raise
    start: np.ndarray | None = None,
) -> np.ndarray:
    """[text, dimensions] float32 coordinates; the caller holds `numba_turn`."""
    _silence()
    n = len(vectors)
    n_neighbors = settings.possible_neighbors(n)
    n_epochs = 500 if n <= LARGE else 200  # UMAP's default
    after_epoch(0, n_epochs)
    reducer = UMAP(
        n_neighbors=n_neighbors,
        n_components=settings.dimensions,
        min_dist=settings.min_dist,
        metric=settings.metric,
        n_epochs=n_epochs,
        init="spectral" if start is None else start,
        random_state=settings.seed,
        n_jobs=1,  # required by a seed
        disconnection_distance=math.inf,  # keeps opposite vectors on the map
        precomputed_knn=_knn(neighbours, n_neighbors),
    )
    with _epochs_followed(lambda n_done: after_epoch(n_done, n_epochs)):
        return reducer.fit_transform(vectors.astype(np.float32, copy=False))


@contextmanager
def _epochs_followed(after_epoch: Callable[[int], None]) -> Iterator[None]:
    """Replace UMAP's tqdm loop; a bar interrupted while drawing would keep its lock."""

    def follow(epochs: Iterable[int], **_: object) -> Iterator[int]:
        for n_done, epoch in enumerate(epochs, 1):
            yield epoch
            after_epoch(n_done)

    bar, layouts.tqdm = layouts.tqdm, follow
    try:
        yield
    finally:
        layouts.tqdm = bar


def _silence() -> None:
    """Ignore warnings about missing indexes and disconnected groups."""
    for module in (r"umap\.", r"sklearn\.manifold\._spectral"):
        warnings.filterwarnings("ignore", category=UserWarning, module=module)


def _knn(neighbours: Neighbours, n_neighbors: int) -> tuple[np.ndarray, np.ndarray, None]:
    """UMAP's format, in which each text is its own first neighbour."""
    nearest = neighbours.first(n_neighbors - 1)
    itself = np.arange(len(neighbours), dtype=np.int32)[:, None]
    zeros = np.zeros(itself.shape, dtype=np.float32)
    indices = np.concatenate([itself, nearest.indices], axis=1)
    return indices, np.concatenate([zeros, nearest.distances], axis=1), None


_prepared: weakref.WeakKeyDictionary[Projection, Any] = weakref.WeakKeyDictionary()


def place(projection: Projection, near: Neighbours) -> np.ndarray:
    """[new, dimensions] by UMAP with metric ``precomputed``; the caller holds `numba_turn`."""
    _silence()
    n = len(projection.coordinates)
    reducer = _prepared.get(projection)
    if reducer is None:
        settings = projection.settings
        n_neighbors = settings.possible_neighbors(n)
        reducer = UMAP(
            n_neighbors=n_neighbors,
            n_components=settings.dimensions,
            min_dist=settings.min_dist,
            metric="precomputed",
            n_epochs=0,
            init=projection.coordinates,
            random_state=settings.seed,
            transform_seed=settings.seed,
            n_jobs=1,
            precomputed_knn=_knn(projection.neighbours, n_neighbors),
        )
        reducer.fit(csr_matrix((n, n), dtype=np.float32))
        reducer.embedding_ = np.array(projection.coordinates)
        reducer.n_epochs = None  # lets `transform` choose
        _prepared[projection] = reducer
    rows = np.arange(0, near.indices.size + 1, near.k)
    shape = (len(near), n)
    distances = csr_matrix((near.distances.ravel(), near.indices.ravel(), rows), shape=shape)
    return reducer.transform(distances)
