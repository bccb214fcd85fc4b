"""Maps of a corpus: its vectors in two or three dimensions, and where a new text lands on one.

Everything is decided by the vectors, the settings and the seed; on one machine the same three give
the same map bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csgraph, csr_array

from neuralviz.errors import SettingsError, ShouldStop, Stopped, TextError, never
from neuralviz.maps.distances import (
    check_same_length,
    check_vectors,
    count_distinct,
    equal_within,
)
from neuralviz.maps.neighbours import Neighbours, descend, find_neighbours, nearest
from neuralviz.maps.numba_turn import numba_turn
from neuralviz.maps.projection import Projection, ProjectionEvent
from neuralviz.maps.settings import FEWEST_TEXTS, SCORED_NEIGHBOURS, SEED, ProjectionSettings
from neuralviz.words import many

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import ArrayLike


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
    check_enough(vectors, settings.metric)
    if vectors.shape[1] < settings.dimensions:
        raise SettingsError(
            f"Vectors with {vectors.shape[1]} values cannot be projected to "
            f"{settings.dimensions} dimensions."
        )

    def on_wait() -> None:
        on_progress(ProjectionEvent("waiting"))

    def after_epoch(n_done: int, total: int) -> None:
        on_progress(ProjectionEvent("layout", n_done, total))
        if n_done and should_stop():
            raise Stopped

    if should_stop():
        raise Stopped
    needed = settings.needed_neighbours(n)
    if not (
        neighbours is not None
        and neighbours.metric == settings.metric
        and len(neighbours) == n
        and neighbours.k >= needed
    ):
        on_progress(ProjectionEvent("neighbours"))
        neighbours = _find_neighbours(vectors, settings, should_stop, on_wait)
    distinct = find_distinct(vectors, settings, neighbours, should_stop, on_wait)
    fitted: dict[str, np.ndarray] = {}
    with _turn_of(settings.reducer, should_stop, on_wait):
        layout = _layout_of(settings.reducer)
        if settings.reducer == "pca":
            on_progress(ProjectionEvent("layout"))
            fitted = layout.principal_components(vectors, settings.dimensions)
            coordinates = layout.project_on_components(vectors[distinct.rows], fitted)
        else:
            coordinates = layout.lay_out(
                vectors[distinct.rows], settings, distinct.neighbours, after_epoch
            )
    return Projection(
        np.ascontiguousarray(coordinates[distinct.group], dtype=np.float32),
        settings,
        neighbours,
        _notes(settings, len(distinct.rows)),
        MappingProxyType(fitted),
    )


def _find_neighbours(
    vectors: np.ndarray,
    settings: ProjectionSettings,
    should_stop: ShouldStop,
    on_wait: Callable[[], None],
) -> Neighbours:
    """As many neighbours of each text as a map with some settings needs."""
    needed = settings.needed_neighbours(len(vectors))
    seed = settings.seed if "seed" in settings.relevant() else SEED
    return find_neighbours(
        vectors, needed, settings.metric, seed, should_stop=should_stop, on_wait=on_wait
    )


@dataclass(frozen=True, eq=False)
class Distinct:
    """Texts of which no two have the same vector; each stands for those of its own on a map.

    Attributes:
        rows: [distinct] numbers of the texts.
        group: [text] which of them stands for it.
        neighbours: of the distinct texts among themselves.
    """

    rows: np.ndarray
    group: np.ndarray
    neighbours: Neighbours


def find_distinct(
    vectors: np.ndarray,
    settings: ProjectionSettings,
    neighbours: Neighbours,
    should_stop: ShouldStop = never,
    on_wait: Callable[[], None] = lambda: None,
) -> Distinct:
    """The texts that are laid out; many of one vector would be torn into several clouds.

    Args:
        vectors: [text, dim].
        settings: of the map.
        neighbours: of all texts.
        should_stop, on_wait: as of `project`.

    Raises:
        TextError: fewer than 5 vectors differ.
        Stopped: ``should_stop`` said so.
    """
    group = rows = np.arange(len(vectors))
    while True:
        is_equal = neighbours.distances <= equal_within(vectors[rows], settings.metric)[:, None]
        if not is_equal.any():
            return Distinct(rows, group, neighbours)
        text, column = np.nonzero(is_equal)
        edges = (np.ones(len(text)), (text, neighbours.indices[text, column]))
        graph = csr_array(edges, shape=(len(rows), len(rows)))
        labels = csgraph.connected_components(graph)[1]
        _, first, part = np.unique(labels, return_index=True, return_inverse=True)
        rows, group = rows[first], part[group]
        if len(rows) < FEWEST_TEXTS:
            raise _too_few_error(len(rows), len(vectors))
        neighbours = _find_neighbours(vectors[rows], settings, should_stop, on_wait)


def check_enough(vectors: np.ndarray, metric: str) -> None:
    """Refuse vectors that make no map.

    Raises:
        TextError: fewer than 5 of them differ.
    """
    differ = count_distinct(vectors, metric, FEWEST_TEXTS)
    if differ < FEWEST_TEXTS:
        raise _too_few_error(differ, len(vectors))


def _too_few_error(differ: int, n: int) -> TextError:
    return TextError(
        f"A map needs at least {FEWEST_TEXTS} different embeddings; those of "
        f"{many(n, 'text')} here are only {differ} different. Equal texts have equal embeddings; "
        "if the texts differ, the embeddings do not tell them apart."
    )


def _turn_of(
    reducer: str, should_stop: ShouldStop, on_wait: Callable[[], None] = lambda: None
) -> AbstractContextManager[None]:
    """The turn at numba for UMAP; the others need none."""
    return numba_turn(should_stop, on_wait) if reducer == "umap" else nullcontext()


def _layout_of(reducer: str) -> ModuleType:
    """The module of a reducer, whose library takes a second or two to load."""
    if reducer == "umap":
        from neuralviz.maps import umap_layout

        return umap_layout
    if reducer == "tsne":
        from neuralviz.maps import tsne_layout

        return tsne_layout
    from neuralviz.maps import components

    return components


def _notes(settings: ProjectionSettings, n: int) -> tuple[str, ...]:
    """Sentences on settings that were changed for ``n`` different texts."""
    n_neighbors, perplexity = settings.possible_neighbors(n), settings.possible_perplexity(n)
    if settings.reducer == "umap" and n_neighbors < settings.n_neighbors:
        return (
            (
                f"The number of neighbours was reduced from {settings.n_neighbors} to "
                f"{n_neighbors}: there are only {n:,} different texts."
            ),
        )
    if settings.reducer == "tsne" and perplexity < settings.perplexity:
        return (
            (
                f"The perplexity was reduced from {settings.perplexity:g} to {perplexity:.3g}: "
                f"there are only {n:,} different texts."
            ),
        )
    return ()


def place(
    vectors: np.ndarray,
    projection: Projection,
    new: ArrayLike,
    *,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """Coordinates of new texts on a map; the texts that are on it do not move.

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
        return _layout_of("pca").project_on_components(new, projection.fitted)
    n_neighbors = settings.placing_neighbours(len(vectors))
    near = nearest(vectors, new, n_neighbors, settings.metric)
    return place_by_neighbours(projection, new, near, should_stop=should_stop)


def place_by_neighbours(
    projection: Projection, new: np.ndarray, near: Neighbours, *, should_stop: ShouldStop = never
) -> np.ndarray:
    """`place` for new texts whose neighbours on the map are known.

    Args:
        projection: the map.
        new: [new, dim] float32.
        near: of each, as many texts of the map as `ProjectionSettings.placing_neighbours` says;
            PCA needs none.
        should_stop: asked every tenth of a second while waiting.

    Raises:
        Stopped: ``should_stop`` said so.
    """
    settings = projection.settings
    if settings.reducer == "pca":
        return _layout_of("pca").project_on_components(new, projection.fitted)
    placed = projection.coordinates[near.indices[:, 0]].astype(np.float32)
    unknown = near.distances[:, 0] > equal_within(new, settings.metric)
    if unknown.any():
        near = Neighbours(near.indices[unknown], near.distances[unknown], near.metric)
        with _turn_of(settings.reducer, should_stop):
            placed[unknown] = _layout_of(settings.reducer).place(projection, near)
    return placed


def warm_up(*, large: bool = False) -> None:
    """Import UMAP and compile what maps need, for the first map of a process to start at once.

    For a thread in the background, which lets maps that are asked for meanwhile have their turn in
    between.

    Args:
        large: also what only corpora of many thousand texts need: some 30 s of one core.
    """
    n = 64
    vectors = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    small_map = project(vectors)
    place(vectors, small_map, vectors[:2] + 0.5)
    if large:
        descend(vectors, SCORED_NEIGHBOURS, "cosine", SEED)
