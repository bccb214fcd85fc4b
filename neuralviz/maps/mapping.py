"""From the kept vectors of a corpus to a kept map, and new vectors on it.

Of corpora too large to be fitted whole, a sample is fitted, and the rest is placed on its map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError, Stopped, TextError, never
from neuralviz.maps.clusters import CLUSTER_WORDS, Clusters, find_clusters, name_clusters
from neuralviz.maps.distances import check_vectors, digest_vectors
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.placing import Block, Spread, place_block, place_on_processes, written_fit
from neuralviz.maps.projecting import place, project
from neuralviz.maps.projection import ProjectionEvent
from neuralviz.maps.searching import find_embedder, nearest_in_corpus
from neuralviz.maps.settings import FEWEST_TEXTS, SEED
from neuralviz.store.index import INDEXED_FROM, build_index, index_texts
from neuralviz.store.vectors import not_embedded_error
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.projection import Projection
    from neuralviz.maps.settings import ProjectionSettings
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

FITTED = 200_000  # texts: of more, a map is fitted to so many
BLOCK = 20_000  # texts that are placed together
FIT_ENDS = 0.3  # of the work that is counted, roughly


@dataclass(frozen=True)
class Fitting:
    """How maps of large corpora are made; the map of a corpus is the same wherever it is placed.

    Attributes:
        n_fitted: texts that a map is fitted to, where there are more.
        block: texts that are placed together.
        spread: has the blocks placed; by default on all cores of this machine.
        indexed_from: texts or vectors, from which on there is an index.
    """

    n_fitted: int = FITTED
    block: int = BLOCK
    spread: Spread = place_on_processes
    indexed_from: int = INDEXED_FROM


DEFAULT = Fitting()


def check_enough_texts(corpus: Corpus) -> None:
    """Raises TextError before a corpus is embedded of which there can be no map."""
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
    """The kept map of a corpus by an embedder with some settings; made when there is none.

    Of more than 200,000 texts, the map is fitted to a random sample of so many, which the seed
    decides, and the others are placed on it, block by block. Only the vectors of the sample are in
    memory then.

    Args:
        store: that keeps the corpus, its vectors and the map.
        corpus: all of it embedded.
        embedder: whose vectors are projected.
        settings: of the map.
        on_progress, should_stop: as of `project`; the stage ``clusters`` comes last, and before it
            ``placing`` where texts are placed. An index that is being made cannot be interrupted.
        fitting: how the map of a large corpus is made.

    Raises:
        TextError, SettingsError, Stopped: as of `project`.
        StoreError: a text is not embedded yet, or the map cannot be kept.
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
        named = Clusters(clusters.labels[sample], clusters.n, clusters.min_cluster_size)
    if should_stop():
        raise Stopped
    words = name_clusters(store.texts(corpus, sample), named, CLUSTER_WORDS)
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
    """The map of a sample, [fitted] its rows, and [text, dimensions] the coordinates of all texts.

    Equal texts count once. Those of the sample are where they were fitted; each other is where the
    reducer's own placing puts it, or where a text of just its vector is already.
    """
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
    """[text] int32 the row of the first text that equals it; half of a key tells texts apart."""
    rows = np.arange(corpus.n_texts, dtype=np.int32)
    if corpus.n_distinct == corpus.n_texts:
        return rows
    halves = np.ascontiguousarray(store.keys(corpus)).view(np.uint64)[::2]
    _, first, group = np.unique(halves, return_index=True, return_inverse=True)
    return first.astype(np.int32)[group]


def _check_embedded(store: CorpusStore, corpus: Corpus, embedder: KeptEmbedder) -> None:
    """Find out before hours of work whether a text has no vector."""
    keys = np.unique(store.keys(corpus))
    missing = keys[~store.vectors.has_vectors(embedder, keys)]
    if len(missing):
        raise not_embedded_error(len(missing), len(keys))


def _lay_together(
    coordinates: np.ndarray, digests: np.ndarray, sample: np.ndarray, rest: np.ndarray
) -> None:
    """Move texts that were placed onto the first of the same vector, in place."""
    order = np.concatenate([sample, rest])
    _, firsts, group = np.unique(digests[order], return_index=True, return_inverse=True)
    if len(firsts) < len(order):
        follows = order[firsts[group]][len(sample) :]
        coordinates[rest] = coordinates[follows]


class Placer:
    """A kept map with its vectors in memory, for placing new ones and finding their neighbours.

    Of a map that was fitted to a sample, only the vectors of the sample are; neighbours come from
    the store.
    """

    def __init__(self, store: CorpusStore, corpus: Corpus, kept: KeptMap) -> None:
        self.kept = kept
        self.embedder = find_embedder(store, kept)
        self._store, self._corpus = store, corpus
        rows = None if kept.n_fitted is None else KeptMaps(store).sample(kept)
        self.vectors: np.ndarray = store.vectors.get(self.embedder, store.keys(corpus, rows))
        self.projection: Projection = KeptMaps(store).projection(kept)

    def near(self, vectors: np.ndarray, k: int) -> Neighbours:
        """The ``k`` texts of the corpus nearest to each of some [new, dim] vectors."""
        metric = self.projection.settings.metric
        if self.kept.n_fitted is None:
            return nearest(self.vectors, vectors, k, metric)
        return nearest_in_corpus(self._store, self._corpus, self.embedder, vectors, k, metric)

    def land(self, vectors: np.ndarray, *, should_stop: ShouldStop = never) -> np.ndarray:
        """[new, dimensions] where new vectors land; as of `neuralviz.maps.projecting.place`."""
        placed = place(self.vectors, self.projection, vectors, should_stop=should_stop)
        if self.kept.n_fitted is not None and self.projection.settings.reducer != "pca":
            near = self.near(vectors, 1)
            is_there = near.distances[:, 0] == 0
            if is_there.any():
                rows = near.indices[is_there, 0]
                placed[is_there] = KeptMaps(self._store).points_of(self.kept, rows)
        return placed
