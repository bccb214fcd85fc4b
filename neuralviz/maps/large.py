"""Maps of corpora too large to be fitted whole: a sample is, and the rest is placed on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError, ShouldStop, Stopped
from neuralviz.maps.clusters import CLUSTER_WORDS, Clusters, find_clusters, name_clusters
from neuralviz.maps.distances import check_vectors, digest_vectors
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.placing import Block, Spread, place_block, place_on_processes, written_fit
from neuralviz.maps.projecting import project
from neuralviz.maps.projection import ProjectionEvent
from neuralviz.maps.settings import SEED
from neuralviz.store.index import INDEXED_FROM, build_index, index_texts
from neuralviz.store.vectors import not_embedded
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.placing import PlacedBlock
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


def make_large_map(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    fitting: Fitting,
    *,
    on_progress: Callable[[ProjectionEvent], None],
    should_stop: ShouldStop,
) -> KeptMap:
    """`neuralviz.maps.mapping.make_map` for a corpus of more texts than are fitted.

    Equal texts count once. Those of the sample are where they were fitted; each other is where the
    reducer's own placing puts it, or where a text of just its vector is already.
    """
    on_progress(ProjectionEvent("index"))
    _raise_if(should_stop)
    _check_embedded(store, corpus, embedder)
    index_texts(store, corpus, smallest=fitting.indexed_from)
    index = build_index(store.database, embedder, smallest=fitting.indexed_from)
    _raise_if(should_stop)
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

    def take(placed: PlacedBlock, rows: np.ndarray) -> None:
        coordinates[rows], digests[rows] = placed.coordinates, placed.digests

    def on_placed(n_placed: int) -> None:
        on_progress(ProjectionEvent("placing", n_placed, len(rest), (FIT_ENDS, 1.0)))

    on_placed(0)
    with written_fit(store, projection, vectors, should_stop) as fit:
        del vectors
        parts = np.array_split(rest, -(-len(rest) // fitting.block)) if len(rest) else []
        blocks = [
            Block(number, store.folder, fit, corpus, embedder, settings, rows)
            for number, rows in enumerate(parts)
        ]
        n_placed = 0
        for placed in fitting.spread(place_block, blocks, should_stop):
            take(placed, parts[placed.number])
            n_placed += len(parts[placed.number])
            on_placed(n_placed)
    if n_placed < len(rest):
        raise NeuralvizError("Some texts were not placed on the map. Make it again.")
    _lay_together(coordinates, digests, sample, rest)
    coordinates = coordinates[first]

    on_progress(ProjectionEvent("clusters", span=(1.0, 1.0)))
    _raise_if(should_stop)
    clusters = find_clusters(coordinates)
    _raise_if(should_stop)
    sample_clusters = Clusters(clusters.labels[sample], clusters.n, clusters.min_cluster_size)
    words = name_clusters(store.texts(corpus, sample), sample_clusters, CLUSTER_WORDS)
    store.check_kept(corpus)
    _raise_if(should_stop)
    recall = index.recall if index is not None and settings.metric == "cosine" else None
    annotated = replace(projection, notes=(*projection.notes, _note(corpus, sample)))
    return KeptMaps(store).put_placed(
        corpus, embedder, sample, annotated, coordinates, clusters, words, recall
    )


def _note(corpus: Corpus, sample: np.ndarray) -> str:
    rest = corpus.n_texts - len(sample)
    return (
        f"The map was fitted to a random sample of {many(len(sample), 'text')}; the other "
        f"{rest:,} were placed on it."
    )


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
    missing = keys[~store.vectors.has(embedder, keys)]
    if len(missing):
        raise not_embedded(len(missing), len(keys))


def _lay_together(
    coordinates: np.ndarray, digests: np.ndarray, sample: np.ndarray, rest: np.ndarray
) -> None:
    """Move texts that were placed onto the first of the same vector, in place."""
    order = np.concatenate([sample, rest])
    _, firsts, group = np.unique(digests[order], return_index=True, return_inverse=True)
    if len(firsts) < len(order):
        follows = order[firsts[group]][len(sample) :]
        coordinates[rest] = coordinates[follows]


def _raise_if(should_stop: ShouldStop) -> None:
    if should_stop():
        raise Stopped
