"""Maps and new texts on them; reproducible bit for bit on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # loads submodules lazily

from neuralviz.arrays import unit_vectors
from neuralviz.errors import (
    NeuralvizError,
    SettingsError,
    ShouldStop,
    Stopped,
    TextError,
    check_choice,
    check_stop,
    never,
)
from neuralviz.maps.neighbours import (
    METRICS,
    Neighbours,
    check_queries,
    check_vectors,
    distinct_rows,
    equal_within,
    find_neighbours,
    nearest,
    numba_turn,
)
from neuralviz.words import ShortRepr, many

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

REDUCERS = {"umap": "UMAP", "pca": "PCA", "tsne": "t-SNE"}
SETTING_NAMES = {  # where the display name differs
    "reducer": "projection",
    "n_neighbors": "neighbours",
    "min_dist": "minimum distance",
    "metric": "distance",
}

FEWEST_TEXTS = 5  # distinct
SCORED_NEIGHBOURS = 15  # minimum per map, for scores and lists
MOST_NEIGHBORS = 200
MOST_WHOLE = 200_000  # texts; larger corpora use a sample and an index
LARGEST_PERPLEXITY = 100
PLACING_PERPLEXITY = 5.0  # openTSNE's default for new points
SEED = 42
SEEDS = 2**32

_RELEVANT = {
    "umap": ("reducer", "dimensions", "n_neighbors", "min_dist", "metric", "seed"),
    "tsne": ("reducer", "dimensions", "perplexity", "metric", "seed"),
    "pca": ("reducer", "dimensions", "metric"),
}
LIMITS: dict[str, tuple[type[int] | type[float], float, float]] = {  # type, minimum, maximum
    "dimensions": (int, 2, 3),
    "n_neighbors": (int, 2, MOST_NEIGHBORS),
    "min_dist": (float, 0, 0.99),
    "perplexity": (float, 1, LARGEST_PERPLEXITY),
    "seed": (int, 0, SEEDS - 1),
}
STAGES = {
    "index": "Indexing the embeddings",
    "neighbours": "Finding neighbours",
    "layout": "Making the map",
    "placing": "Placing the other texts",
    "clusters": "Finding clusters",
}


@dataclass(frozen=True)
class ProjectionSettings:
    """Settings of a map. Raises SettingsError for values out of range."""

    reducer: str = "umap"  # ``umap``, ``pca`` or ``tsne``
    dimensions: int = 2  # 2 or 3; t-SNE has 2
    n_neighbors: int = 15  # UMAP; includes the text itself; few show detail, many the whole
    min_dist: float = 0.1  # UMAP; minimum distance of points, 0 … 0.99
    metric: str = "cosine"  # one of `METRICS`; PCA uses it only for neighbours
    perplexity: float = 30.0  # t-SNE; effective number of neighbours, 1 … 100
    seed: int = SEED  # 0 … 2³² − 1

    def __post_init__(self) -> None:
        check_choice("projection", self.reducer, REDUCERS)
        check_choice("metric", self.metric, METRICS)
        for name, (kind, low, high) in LIMITS.items():
            value = getattr(self, name)
            is_kind = isinstance(value, Integral if kind is int else Real)
            if not is_kind or isinstance(value, bool) or not low <= value <= high:
                whole = "whole " if kind is int else ""
                raise SettingsError(
                    f"{name} must be a {whole}number from {low:,} to {high:,}, not {value}."
                )
            relevant = name in _RELEVANT[self.reducer]  # irrelevant settings keep their default
            object.__setattr__(self, name, kind(value) if relevant else getattr(type(self), name))
        if self.reducer == "tsne" and self.dimensions != 2:
            raise SettingsError("t-SNE supports 2 dimensions only. Use UMAP or PCA for 3.")

    def relevant(self) -> dict[str, str | int | float]:
        """The settings that affect this reducer, for `from_dict`."""
        return {name: getattr(self, name) for name in _RELEVANT[self.reducer]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ProjectionSettings:
        """Raises SettingsError for unknown settings."""
        unknown = values.keys() - {setting.name for setting in fields(cls)}
        if unknown:
            raise SettingsError(f"Unknown map setting “{min(unknown)}”.")
        return cls(**values)

    def possible_neighbors(self, n: int) -> int:
        return min(self.n_neighbors, n - 1)

    def possible_perplexity(self, n: int) -> float:
        return min(self.perplexity, (n - 1) / 3)

    def placing_perplexity(self, n: int) -> float:
        return min(PLACING_PERPLEXITY, self.possible_perplexity(n))

    def placing_neighbours(self, n: int) -> int:
        if self.reducer == "tsne":
            return max(1, int(3 * self.placing_perplexity(n)))
        return self.possible_neighbors(n)

    def needed_neighbours(self, n: int) -> int:
        needed = {
            "umap": self.n_neighbors - 1,
            "tsne": int(3 * self.possible_perplexity(n)),
            "pca": 0,
        }
        return min(max(SCORED_NEIGHBOURS, needed[self.reducer]), n - 1)


def is_large(n_texts: int) -> bool:
    return n_texts > MOST_WHOLE


@dataclass(frozen=True, repr=False)
class ProjectionEvent(ShortRepr):
    stage: str  # one of `STAGES`
    n_done: int = 0  # epochs or placed texts
    total: int = 0
    span: tuple[float, float] = (0.0, 1.0)  # start and end of the stage within the whole work

    @property
    def share(self) -> float:
        """Share of the counted work that is done, 0–1."""
        begins, ends = self.span
        return begins + (ends - begins) * self.n_done / self.total if self.total else begins


@dataclass(frozen=True, eq=False, repr=False)
class Projection(ShortRepr):
    coordinates: np.ndarray  # [text, dimensions] float32, finite
    settings: ProjectionSettings  # as requested
    neighbours: Neighbours  # at least 15 per text, if there are as many
    notes: tuple[str, ...] = ()  # sentences on deviations from the settings
    # PCA: mean [dim], components [dimensions, dim], explained_variance_ratio [dimensions]
    fitted: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))


def principal_components(vectors: np.ndarray, dimensions: int) -> dict[str, np.ndarray]:
    """PCA as in `Projection.fitted`; each component's largest weight is positive."""
    from sklearn.decomposition import PCA  # slow to import

    data = vectors.astype(np.float64)
    mean = data.mean(axis=0)
    data -= mean
    n, dim = data.shape
    pca = PCA(dimensions, svd_solver="covariance_eigh" if n > dim else "full").fit(data)
    return {
        "mean": mean.astype(np.float32),
        "components": pca.components_.astype(np.float32),
        "explained_variance_ratio": pca.explained_variance_ratio_.astype(np.float32),
    }


def project_on_components(vectors: np.ndarray, fitted: Mapping[str, np.ndarray]) -> np.ndarray:
    """[text, dimensions] coordinates on the principal components."""
    mean = fitted["mean"].astype(np.float64)
    components = fitted["components"].astype(np.float64)
    return ((vectors - mean) @ components.T).astype(np.float32)


def project(
    vectors: ArrayLike,
    settings: ProjectionSettings | None = None,
    start: np.ndarray | None = None,
    *,
    on_progress: Callable[[ProjectionEvent], None] = lambda event: None,
    should_stop: ShouldStop = never,
) -> Projection:
    """Make a map of [text, dim] vectors; UMAP with cosine distance by default.

    UMAP maps run one at a time. ``should_stop`` is checked every few epochs, but not during
    neighbour search, initialisation or compilation. ``start`` is [text, dimensions] initial
    coordinates. Raises TextError for fewer than 5 distinct vectors or invalid values, SettingsError
    for more dimensions than the vectors have, and Stopped.
    """
    settings = settings or ProjectionSettings()
    vectors = check_vectors(vectors)
    _check_enough(len(distinct_rows(vectors)[0]), len(vectors))
    if vectors.shape[1] < settings.dimensions:
        raise SettingsError(
            f"Vectors with {vectors.shape[1]} values cannot be projected to "
            f"{settings.dimensions} dimensions."
        )

    def find_near(rows: np.ndarray) -> Neighbours:
        return find_neighbours(
            vectors[rows],
            settings.needed_neighbours(len(rows)),
            settings.metric,
            settings.seed,
            should_stop=should_stop,
        )

    def after_epoch(n_done: int, total: int) -> None:
        on_progress(ProjectionEvent("layout", n_done, total))
        if n_done and should_stop():
            raise Stopped

    check_stop(should_stop)
    on_progress(ProjectionEvent("neighbours"))
    # equal vectors would split into several clouds: only the first is laid out
    rows = group = np.arange(len(vectors))
    neighbours = near = find_near(rows)
    while True:
        is_equal = near.distances <= equal_within(vectors[rows], settings.metric)[:, None]
        if not is_equal.any():
            break
        first, part = _join_equal(is_equal, near)
        rows, group = rows[first], part[group]
        _check_enough(len(rows), len(vectors))
        near = find_near(rows)
    fitted: dict[str, np.ndarray] = {}
    if settings.reducer == "pca":
        on_progress(ProjectionEvent("layout"))
        fitted = principal_components(vectors, settings.dimensions)
        coordinates = project_on_components(vectors[rows], fitted)
    else:
        with _hold_layout(settings.reducer, should_stop) as layout:
            data = unit_vectors(vectors[rows]) if settings.metric == "cosine" else vectors[rows]
            begin = None if start is None else start[rows]
            if begin is None and settings.reducer == "tsne":
                begin = project_on_components(data, principal_components(data, 2))
            coordinates = layout.lay_out(data, settings, near, after_epoch, begin)
    return Projection(
        np.ascontiguousarray(coordinates[group], dtype=np.float32),
        settings,
        neighbours,
        _describe_changes(settings, len(rows)),
        MappingProxyType(fitted),
    )


def _join_equal(is_equal: np.ndarray, near: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """First text of each group of equal neighbours, and [text] groups."""
    text, column = np.nonzero(is_equal)
    edges = (np.ones(len(text)), (text, near.indices[text, column]))
    graph = scipy.sparse.csr_array(edges, shape=(len(near), len(near)))
    labels = scipy.sparse.csgraph.connected_components(graph)[1]
    _, first, part = np.unique(labels, return_index=True, return_inverse=True)
    return first, part


def _check_enough(n_different: int, n: int) -> None:
    if n_different < FEWEST_TEXTS:
        raise TextError(
            f"A map needs at least {FEWEST_TEXTS} different embeddings; the "
            f"{many(n, 'text')} here give{'s' * (n == 1)} {n_different}. Equal texts have equal "
            "embeddings; if the texts differ, the embeddings do not tell them apart."
        )


@contextmanager
def _hold_layout(reducer: str, should_stop: ShouldStop) -> Iterator[ModuleType]:
    """Import the layout module; for UMAP, also hold numba's lock."""
    if reducer == "tsne":
        from neuralviz.maps import tsne_layout

        yield tsne_layout
    else:
        with numba_turn(should_stop):
            from neuralviz.maps import umap_layout

            yield umap_layout


def _describe_changes(settings: ProjectionSettings, n: int) -> tuple[str, ...]:
    """Sentences on settings that were adjusted to ``n`` distinct texts."""
    n_neighbors, perplexity = settings.possible_neighbors(n), settings.possible_perplexity(n)
    if settings.reducer == "umap" and n_neighbors < settings.n_neighbors:
        reduced = f"number of neighbours was reduced from {settings.n_neighbors} to {n_neighbors}"
    elif settings.reducer == "tsne" and perplexity < settings.perplexity:
        reduced = f"perplexity was reduced from {settings.perplexity:g} to {perplexity:.3g}"
    else:
        return ()
    return (f"The {reduced}: there are {many(n, 'different text')}.",)


def place(
    vectors: np.ndarray, projection: Projection, new: ArrayLike, *, should_stop: ShouldStop = never
) -> np.ndarray:
    """[new, dimensions] float32 coordinates of [new, dim] vectors on an existing map.

    A vector equal to one on the map gets its point; others are placed by UMAP's or openTSNE's
    ``transform`` with exact neighbours, or by PCA. UMAP waits for other maps, and results depend
    slightly on which texts are placed together.
    """
    new = check_queries(new, vectors.shape[1])
    settings = projection.settings
    if settings.reducer == "pca":
        return project_on_components(new, projection.fitted)
    near = nearest(vectors, new, settings.placing_neighbours(len(vectors)), settings.metric)
    return place_by_neighbours(projection, new, near, should_stop=should_stop)


def place_by_neighbours(
    projection: Projection, new: np.ndarray, near: Neighbours, *, should_stop: ShouldStop = never
) -> np.ndarray:
    """`place` by UMAP or t-SNE, from known `placing_neighbours`."""
    settings = projection.settings
    placed = projection.coordinates[near.indices[:, 0]].astype(np.float32)
    unknown = near.distances[:, 0] > equal_within(new, settings.metric)
    if unknown.any():
        near = Neighbours(near.indices[unknown], near.distances[unknown])
        with _hold_layout(settings.reducer, should_stop) as layout:
            placed[unknown] = layout.place(projection, near)
    return placed


def warm_up() -> None:
    """Compile what maps need, in a background thread; other maps can run in between."""
    vectors = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    place(vectors, project(vectors), vectors[:2] + 0.5)


def lay_out_snapshots(
    embeddings: Sequence[np.ndarray], *, should_stop: ShouldStop = never
) -> np.ndarray:
    """[snapshot, text, 2] t-SNE maps of successive embeddings, each aligned to the previous one.

    Raises NeuralvizError without embeddings or if text counts differ, and as `project`.
    """
    if not embeddings or len({len(embedding) for embedding in embeddings}) > 1:
        raise NeuralvizError("Maps in one frame need embeddings of the same texts.")
    settings = ProjectionSettings(reducer="tsne")
    maps: list[np.ndarray] = []
    for vectors in embeddings:
        start = maps[-1] if maps else None
        points = project(vectors, settings, start, should_stop=should_stop).coordinates
        maps.append(points if start is None else align_points(points, start))
    return np.stack(maps)


def align_points(points: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rotate, reflect, shift and scale to ``target`` (Schönemann 1966)."""
    middle, target_centre = points.mean(axis=0), target.mean(axis=0)
    centred, aim = (points - middle).astype(np.float64), (target - target_centre).astype(np.float64)
    turn, _ = scipy.linalg.orthogonal_procrustes(centred, aim)
    # the spread of the target: a fitted scale would shrink points that moved apart
    size = float(np.linalg.norm(centred))
    scale = float(np.linalg.norm(aim)) / size if size else 1.0
    return (scale * centred @ turn + target_centre).astype(np.float32)
