"""A corpus of made-up texts, vectors and points on a map, however many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders import FOR_CORPORA, embedder_spec
from neuralviz.maps.clusters import Clusters
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.opened import group_rows
from neuralviz.maps.projection import Projection, ProjectionSettings
from neuralviz.reading.texts import ReadTexts

if TYPE_CHECKING:
    from neuralviz.store.corpora import Corpus, CorpusStore

TOPICS, NEIGHBOURS = 12, 15
BLOCK = 100_000  # rows
SEED = 0


def topics_of(n: int) -> np.ndarray:
    """[text] the topic of each text."""
    return np.random.default_rng(SEED).integers(TOPICS, size=n).astype(np.int32)


def points_of(n: int) -> np.ndarray:
    """[text, 2] float32 points in clouds, by topic."""
    draw = np.random.default_rng(SEED + 1)
    centres = draw.uniform(-12, 12, size=(TOPICS, 2)).astype(np.float32)
    points = draw.standard_normal(size=(n, 2), dtype=np.float32)
    points += centres[topics_of(n)]
    return points


def keep_large(
    store: CorpusStore,
    n: int,
    *,
    dim: int = 8,
    text: Callable[[int], str] = lambda row: f"Made-up text about topic <b>& ({row})",
) -> tuple[Corpus, KeptMap]:
    """A corpus of texts, each of its own, with a topic or none and a score, on a made-up map."""
    topics = topics_of(n)
    names = np.array([*(f"topic {i}" for i in range(TOPICS)), ""], dtype=object)
    score = np.random.default_rng(SEED + 2).normal(size=n).round(3)

    label = np.where(np.arange(n) % 50 == 7, TOPICS, topics)
    labels = {"topic": tuple(names[label]), "score": tuple(map(str, score.tolist()))}
    corpus = store.add("large", ReadTexts(tuple(map(text, range(n))), labels=labels))
    draw = np.random.default_rng(SEED + 3)
    centres = draw.normal(size=(TOPICS, dim)).astype(np.float32)
    spec = embedder_spec("mean", defaults=FOR_CORPORA)
    embedder = store.vectors.restore("made-up-mean", spec.to_json(), dim)
    keys = store.keys(corpus)
    for start in range(0, n, BLOCK):
        at = slice(start, start + BLOCK)
        vectors = centres[topics[at]]
        vectors = vectors + draw.standard_normal(size=vectors.shape, dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        store.vectors.put(embedder, keys[at], vectors, np.full((len(vectors), 2), np.nan))
    by_topic, starts = group_rows(topics, TOPICS)
    sizes = np.diff(starts)
    of_topic = draw.random(size=(n, NEIGHBOURS), dtype=np.float32) * 0.999 * sizes[topics, None]
    near = by_topic[starts[topics, None] + of_topic.astype(np.int64)]
    far = np.broadcast_to(np.linspace(0, 1, NEIGHBOURS, dtype=np.float32), near.shape)
    kept = KeptMaps(store).put(
        corpus,
        embedder,
        Projection(points_of(n), ProjectionSettings(), Neighbours(near, far)),
        Clusters(topics, TOPICS),
        [(f"word{i}", f"other{i}") for i in range(TOPICS)],
    )
    return corpus, kept
