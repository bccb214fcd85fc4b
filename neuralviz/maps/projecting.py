"""Maps of a corpus: its vectors in two or three dimensions, and where a new text lands on one.

UMAP (McInnes, Healy, Melville 2018), t-SNE (van der Maaten, Hinton 2008; openTSNE) and principal
components. Everything is decided by the vectors, the settings and the seed; on one machine the same
three give the same map bit for bit.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.embedders.base import unit_vectors
from neuralviz.errors import SettingsError, ShouldStop, Stopped, TextError, never
from neuralviz.maps.neighbours import (
    METRICS,
    Neighbours,
    check_same_length,
    check_vectors,
    descend,
    find_neighbours,
    n_distinct,
    nearest,
    numba_turn,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

REDUCERS = ("umap", "pca", "tsne")
FEWEST_TEXTS = 5  # that differ
SCORED_NEIGHBOURS = 15  # that every map has at least, for scores and lists
MOST_NEIGHBORS = 200
LARGEST_PERPLEXITY = 100.0
SEED = 42
SEEDS = 2**32

EARLY_ITERATIONS, ITERATIONS = 250, 500  # of t-SNE
PLACING_PERPLEXITY = 5.0  # openTSNE's for new points

_RELEVANT = {
    "umap": ("reducer", "dimensions", "n_neighbors", "min_dist", "metric", "seed"),
    "tsne": ("reducer", "dimensions", "perplexity", "metric", "seed"),
    "pca": ("reducer", "dimensions", "metric"),
}


@dataclass(frozen=True)
class ProjectionSettings:
    """What a map depends on besides the vectors.

    Attributes:
        reducer: ``umap``, ``pca`` or ``tsne``.
        dimensions: 2 or 3; t-SNE has 2.
        n_neighbors: of UMAP, each text itself counted, 2 … 200: few show detail, many the whole.
        min_dist: of UMAP, how close points may lie together, 0 … 0.99.
        metric: ``cosine``, ``euclidean`` or ``manhattan``; for PCA it decides the neighbours alone.
        perplexity: of t-SNE, about how many neighbours count, 1 … 100.
        seed: 0 … 2³² − 1.

    Raises:
        SettingsError: on making it, one of them is out of its range.
    """

    reducer: str = "umap"
    dimensions: int = 2
    n_neighbors: int = 15
    min_dist: float = 0.1
    metric: str = "cosine"
    perplexity: float = 30.0
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.reducer not in REDUCERS:
            raise SettingsError(
                f"There is no reducer “{self.reducer}”; there are {', '.join(REDUCERS)}."
            )
        if not _is_whole(self.dimensions) or self.dimensions not in (2, 3):
            raise SettingsError("A map has 2 or 3 dimensions.")
        if self.reducer == "tsne" and self.dimensions != 2:
            raise SettingsError("t-SNE makes maps in 2 dimensions; take UMAP or PCA for 3.")
        if not _is_whole(self.n_neighbors) or not 2 <= self.n_neighbors <= MOST_NEIGHBORS:
            raise SettingsError(f"n_neighbors has to be a whole number, 2 to {MOST_NEIGHBORS}.")
        if not _is_real(self.min_dist) or not 0 <= self.min_dist <= 0.99:
            raise SettingsError("min_dist has to be a number from 0 to 0.99.")
        if self.metric not in METRICS:
            raise SettingsError(
                f"There is no metric “{self.metric}”; there are {', '.join(METRICS)}."
            )
        if not _is_real(self.perplexity) or not 1 <= self.perplexity <= LARGEST_PERPLEXITY:
            raise SettingsError(
                f"The perplexity has to be a number from 1 to {LARGEST_PERPLEXITY:g}."
            )
        if not _is_whole(self.seed) or not 0 <= self.seed < SEEDS:
            raise SettingsError(f"The seed has to be a whole number from 0 to {SEEDS - 1:,}.")
        for name, kind in (("dimensions", int), ("n_neighbors", int), ("seed", int),
                           ("min_dist", float), ("perplexity", float)):  # fmt: skip
            object.__setattr__(self, name, kind(getattr(self, name)))  # numpy's become plain

    def relevant(self) -> dict[str, str | int | float]:
        """What matters for this reducer, plain: the part of a key. `from_dict` takes it back."""
        return {name: getattr(self, name) for name in _RELEVANT[self.reducer]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ProjectionSettings:
        """The settings with these values; those left out have their defaults.

        Raises:
            SettingsError: there is no such setting, or a value is out of its range.
        """
        unknown = values.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise SettingsError(f"A map has no setting “{min(unknown)}”.")
        return cls(**values)


@dataclass(frozen=True)
class ProjectionEvent:
    """How far a map is.

    Attributes:
        stage: ``waiting`` for another map to be done, ``neighbours`` or ``layout``.
        done, total: epochs of the layout; 0 of 0 where nothing is counted.
    """

    stage: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, eq=False)
class Projection:
    """A map.

    Arrays and plain values alone: it can be kept in files and opened by another process.

    Attributes:
        coordinates: [text, dimensions] float32, finite.
        settings: as asked for.
        neighbours: of the texts by their vectors, at least 15 of each where there are as many.
        notes: sentences on what was done otherwise than asked for.
        fitted: for PCA the ``mean`` [dim], ``components`` [dimensions, dim] and
            ``explained_variance_ratio`` [dimensions]; else empty.
    """

    coordinates: np.ndarray
    settings: ProjectionSettings
    neighbours: Neighbours
    notes: tuple[str, ...] = ()
    fitted: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))


def project(
    vectors: ArrayLike,
    settings: ProjectionSettings | None = None,
    neighbours: Neighbours | None = None,
    *,
    on_progress: Callable[[ProjectionEvent], None] = lambda event: None,
    should_stop: ShouldStop = never,
) -> Projection:
    """Make a map.

    Maps by UMAP are made one after the other, whatever the number of threads that ask for one.

    Args:
        vectors: [text, dim].
        settings: by default UMAP's own, with the cosine distance.
        neighbours: of the same vectors, to be used in place of finding them; passed over when their
            metric is another or they are too few.
        on_progress: called on this thread with every stage and epoch.
        should_stop: asked after every epoch (t-SNE: every few), and every tenth of a second while
            waiting. The search for neighbours among many texts, the start of a layout, and their
            compilation in a fresh process cannot be interrupted.

    Raises:
        TextError: fewer than 5 vectors that differ, or something in them that is no usable number.
        SettingsError: more dimensions than the vectors have values.
        Stopped: ``should_stop`` said so.
    """
    settings = settings or ProjectionSettings()
    vectors = check_vectors(vectors)
    n = len(vectors)
    differ = n_distinct(vectors, settings.metric, FEWEST_TEXTS)
    if differ < FEWEST_TEXTS:
        raise TextError(
            f"A map needs at least {FEWEST_TEXTS} texts that differ; this corpus has {differ}."
        )
    if vectors.shape[1] < settings.dimensions:
        raise SettingsError(
            f"Vectors of {vectors.shape[1]} values give no map in {settings.dimensions} dimensions."
        )

    def on_wait() -> None:
        on_progress(ProjectionEvent("waiting"))

    if should_stop():
        raise Stopped
    needed = min(_needed_neighbours(settings, n), n - 1)
    if not (
        neighbours is not None
        and neighbours.metric == settings.metric
        and len(neighbours) == n
        and neighbours.k >= needed
    ):
        on_progress(ProjectionEvent("neighbours"))
        seed = settings.seed if "seed" in settings.relevant() else SEED
        neighbours = find_neighbours(
            vectors, needed, settings.metric, seed, should_stop=should_stop, on_wait=on_wait
        )
    notes: list[str] = []
    fitted: dict[str, np.ndarray] = {}
    if settings.reducer == "pca":
        on_progress(ProjectionEvent("layout"))
        fitted = _principal_components(vectors, settings.dimensions)
        coordinates = _on_components(vectors, fitted)
    elif settings.reducer == "tsne":
        coordinates = _tsne(vectors, settings, neighbours, notes, on_progress, should_stop)
    else:
        with numba_turn(should_stop, on_wait):
            coordinates = _umap(vectors, settings, neighbours, notes, on_progress, should_stop)
    return Projection(
        np.ascontiguousarray(coordinates, dtype=np.float32),
        settings,
        neighbours,
        tuple(notes),
        MappingProxyType(fitted),
    )


def place(
    vectors: np.ndarray,
    projection: Projection,
    new: ArrayLike,
    *,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """Where new texts land on a map; nothing that is on it moves.

    A new vector that is on the map already lands on its own point. The others land where the
    reducer's own placing puts them, after an exact search for their nearest texts: UMAP's
    ``transform``, openTSNE's ``transform``, or the product with the components. New texts are
    placed each by itself, but UMAP's steps depend a little on which are placed together.

    The first call for a map prepares it; a call waits while a map is being made by UMAP.

    Args:
        vectors: [text, dim] of the texts on the map.
        projection: the map, just made or opened again.
        new: [new, dim].
        should_stop: asked every tenth of a second while waiting.

    Returns:
        [new, dimensions] float32.

    Raises:
        TextError: a new vector holds something that is no usable number.
        SettingsError: the new vectors have another length than those on the map.
        Stopped: ``should_stop`` said so.
    """
    new = check_vectors(new, "query")
    check_same_length(vectors, new)
    settings = projection.settings
    if settings.reducer == "pca":
        return _on_components(new, projection.fitted)
    n = len(vectors)
    n_neighbors = _possible_neighbors(settings, n)
    if settings.reducer == "tsne":
        n_neighbors = max(1, int(3 * min(PLACING_PERPLEXITY, _possible_perplexity(settings, n))))
    near = nearest(vectors, new, n_neighbors, settings.metric)
    placed = projection.coordinates[near.indices[:, 0]].astype(np.float32)
    unknown = near.distances[:, 0] > 0
    if unknown.any():
        near = Neighbours(near.indices[unknown], near.distances[unknown], near.metric)
        if settings.reducer == "tsne":
            placed[unknown] = _place_by_tsne(projection, near)
        else:
            with numba_turn(should_stop):
                placed[unknown] = _place_by_umap(projection, near)
    return placed


def warm_up() -> None:
    """Import UMAP and compile what maps need, for the first map of a process to start at once.

    Some 30 s of one core in a fresh process, next to nothing later; for a thread in the
    background, which lets maps that are asked for meanwhile have their turn in between.
    """
    n = 64
    vectors = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    few = project(vectors)
    place(vectors, few, vectors[:2] + 0.5)
    descend(vectors, SCORED_NEIGHBOURS, "cosine", SEED)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _needed_neighbours(settings: ProjectionSettings, n: int) -> int:
    wanted = {
        "umap": settings.n_neighbors - 1,
        "tsne": int(3 * _possible_perplexity(settings, n)),
        "pca": 0,
    }
    return max(SCORED_NEIGHBOURS, wanted[settings.reducer])


def _possible_neighbors(settings: ProjectionSettings, n: int) -> int:
    return min(settings.n_neighbors, n - 1)


def _possible_perplexity(settings: ProjectionSettings, n: int) -> float:
    return min(settings.perplexity, (n - 1) / 3)


# UMAP


@contextmanager
def _umap_bar(bar: Callable[..., Iterator[int]]) -> Iterator[None]:
    """Put a generator of epochs in the place of UMAP's progress bar, which it runs through.

    UMAP offers no other way to follow or to stop it: what is raised while a bar of tqdm draws
    leaves its lock taken for good.
    """
    from umap import layouts

    original, layouts.tqdm = layouts.tqdm, bar
    try:
        yield
    finally:
        layouts.tqdm = original


def _umap(
    vectors: np.ndarray,
    settings: ProjectionSettings,
    neighbours: Neighbours,
    notes: list[str],
    on_progress: Callable[[ProjectionEvent], None],
    should_stop: ShouldStop,
) -> np.ndarray:
    """[text, dimensions]; by the thread that has numba's turn."""
    n = len(vectors)
    n_neighbors = _possible_neighbors(settings, n)
    if n_neighbors < settings.n_neighbors:
        notes.append(
            f"n_neighbors is {n_neighbors} in place of {settings.n_neighbors}: there are only "
            f"{n:,} texts."
        )
    n_epochs = 500 if n <= 10_000 else 200  # UMAP's own choice
    on_progress(ProjectionEvent("layout", 0, n_epochs))

    def epochs(numbers: Iterable[int], **_: Any) -> Iterator[int]:
        for done, number in enumerate(numbers, 1):
            yield number
            on_progress(ProjectionEvent("layout", done, n_epochs))
            if should_stop():
                raise Stopped

    reducer = _umap_class()(
        n_neighbors=n_neighbors,
        n_components=settings.dimensions,
        min_dist=settings.min_dist,
        metric=settings.metric,
        n_epochs=n_epochs,
        random_state=settings.seed,
        n_jobs=1,  # what a seed asks for
        disconnection_distance=math.inf,  # opposite vectors too have a place on the map
        precomputed_knn=_knn(neighbours, n_neighbors),
    )
    data = unit_vectors(vectors) if settings.metric == "cosine" else vectors
    with _umap_bar(epochs):
        return reducer.fit_transform(data.astype(np.float32, copy=False))


def _umap_class() -> type:
    import umap

    # On the missing index for new texts, which are found by exact search; on texts in several
    # groups far apart, which UMAP lays out group by group.
    for module in (r"umap\.", r"sklearn\.manifold\._spectral"):
        warnings.filterwarnings("ignore", category=UserWarning, module=module)
    return umap.UMAP


def _knn(neighbours: Neighbours, n_neighbors: int) -> tuple[np.ndarray, np.ndarray, None]:
    """Indices and distances as UMAP wants them: the text itself first, and counted."""
    others = neighbours.first(n_neighbors - 1)
    itself = np.arange(len(neighbours), dtype=np.int32)[:, None]
    zeros = np.zeros(itself.shape, dtype=np.float32)
    indices = np.concatenate([itself, others.indices], axis=1)
    return indices, np.concatenate([zeros, others.distances], axis=1), None


_prepared: weakref.WeakKeyDictionary[Projection, Any] = weakref.WeakKeyDictionary()


def _place_by_umap(projection: Projection, near: Neighbours) -> np.ndarray:
    """[new, dimensions]; by the thread that has numba's turn.

    UMAP takes distances of new points to old ones for a map with the metric ``precomputed``. Such
    a map is made with the kept coordinates, no epochs, and no distances but the neighbours'.
    """
    from scipy.sparse import csr_matrix

    n = len(projection.coordinates)
    reducer = _prepared.get(projection)
    if reducer is None:
        settings = projection.settings
        n_neighbors = _possible_neighbors(settings, n)
        reducer = _umap_class()(
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
        reducer.n_epochs = None  # `transform` then makes its own number of steps
        _prepared[projection] = reducer
    rows = np.arange(0, near.indices.size + 1, near.k)
    shape = (len(near), n)
    distances = csr_matrix((near.distances.ravel(), near.indices.ravel(), rows), shape=shape)
    return reducer.transform(distances)


# t-SNE


def _tsne(
    vectors: np.ndarray,
    settings: ProjectionSettings,
    neighbours: Neighbours,
    notes: list[str],
    on_progress: Callable[[ProjectionEvent], None],
    should_stop: ShouldStop,
) -> np.ndarray:
    """[text, 2]."""
    from openTSNE import TSNE

    n = len(vectors)
    perplexity = _possible_perplexity(settings, n)
    if perplexity < settings.perplexity:
        notes.append(
            f"The perplexity is {perplexity:.3g} in place of {settings.perplexity:g}: there are "
            f"only {n:,} texts."
        )
    total = EARLY_ITERATIONS + ITERATIONS
    on_progress(ProjectionEvent("layout", 0, total))
    every = 5 if n <= 20_000 else 1
    done = 0

    def after_some(iteration: int, error: float, embedding: np.ndarray) -> bool:
        nonlocal done
        done += every
        on_progress(ProjectionEvent("layout", done, total))
        if should_stop():
            raise Stopped
        return False

    data = unit_vectors(vectors) if settings.metric == "cosine" else vectors
    start = _on_components(data, _principal_components(data, 2)).astype(np.float64)
    start *= 1e-4 / start[:, 0].std()
    start += np.random.default_rng(settings.seed).normal(0, 1e-6, start.shape)
    made = TSNE(
        early_exaggeration_iter=EARLY_ITERATIONS,
        n_iter=ITERATIONS,
        random_state=settings.seed,
        n_jobs=1,
        callbacks=after_some,
        callbacks_every_iters=every,
    ).fit(affinities=_affinities(neighbours, perplexity), initialization=start)
    return np.asarray(made)


def _affinities(neighbours: Neighbours, perplexity: float) -> Any:
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    some = neighbours.first(max(1, int(3 * perplexity)))
    distances = some.distances.astype(np.float64)
    return PerplexityBasedNN(
        knn_index=PrecomputedNeighbors(some.indices, distances), perplexity=perplexity, n_jobs=1
    )


def _place_by_tsne(projection: Projection, near: Neighbours) -> np.ndarray:
    """[new, 2], as openTSNE's ``transform`` does it with neighbours found elsewhere."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import Affinities, joint_probabilities_nn

    n = len(projection.coordinates)
    perplexity = min(PLACING_PERPLEXITY, _possible_perplexity(projection.settings, n))

    class Found(Affinities):
        """Affinities of the new texts alone."""

        def __init__(self) -> None:
            super().__init__()
            from scipy.sparse import csr_matrix

            self.P = csr_matrix((n, n))

        def to_new(
            self, data: Any, perplexity: float = perplexity, return_distances: bool = False
        ) -> Any:
            distances = near.distances.astype(np.float64)
            affinities = joint_probabilities_nn(
                near.indices,
                distances,
                [perplexity],
                symmetrize=False,
                normalization="point-wise",
                n_reference_samples=n,
            )
            return (affinities, near.indices, distances) if return_distances else affinities

    kept = projection.coordinates.astype(np.float64)
    middle = (kept.max(axis=0) + kept.min(axis=0)) / 2  # `transform` moves it to 0
    made = TSNEEmbedding(
        kept,
        Found(),
        negative_gradient_method="fft",
        random_state=projection.settings.seed,
        n_jobs=1,
    )
    placed = made.transform(np.zeros((len(near), 1)), perplexity=perplexity)
    return np.asarray(placed) + middle


# Principal components


def _principal_components(vectors: np.ndarray, dimensions: int) -> dict[str, np.ndarray]:
    """Mean, components and their shares of the variance; the largest weight of each is positive."""
    data = vectors.astype(np.float64)
    mean = data.mean(axis=0)
    data -= mean
    n, dim = data.shape
    if n > dim:
        variances, axes = np.linalg.eigh(data.T @ data)
        variances, axes = variances[::-1], axes.T[::-1]
    else:
        _, singular, axes = np.linalg.svd(data, full_matrices=False)
        variances = singular**2
    components = axes[:dimensions]
    largest = np.abs(components).argmax(axis=1)
    components = components * np.sign(components[np.arange(dimensions), largest])[:, None]
    variances = np.maximum(variances, 0)
    return {
        "mean": mean.astype(np.float32),
        "components": components.astype(np.float32),
        "explained_variance_ratio": (variances[:dimensions] / variances.sum()).astype(np.float32),
    }


def _on_components(vectors: np.ndarray, fitted: Mapping[str, np.ndarray]) -> np.ndarray:
    """[text, dimensions]."""
    mean = fitted["mean"].astype(np.float64)
    components = fitted["components"].astype(np.float64)
    return ((vectors - mean) @ components.T).astype(np.float32)
