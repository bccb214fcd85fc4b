"""Maps of large corpora: fitted to a sample, with the other texts placed on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import ShouldStop, Stopped, StoreError
from neuralviz.maps import mapping
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import (
    Block,
    Fitting,
    PlaceBlock,
    PlacedBlock,
    Placer,
    make_map,
    place_on_processes,
)
from neuralviz.maps.near_groups import NearGroups
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.projecting import project
from neuralviz.maps.projection import ProjectionEvent, ProjectionSettings
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import KeptEmbedder
from tests.support.embedders import HashEmbedder

Embedded = tuple[Corpus, KeptEmbedder]

PCA = ProjectionSettings("pca")
N_FITTED = 150
DIFFERENT = tuple(f"{'river boat' if n % 2 else 'bread oven'} {n}" for n in range(380))
TEXTS = DIFFERENT + DIFFERENT[:20]
NOTE = "The map was fitted to a random sample of 150 texts; the other 250 were placed on it."


def here(
    place: PlaceBlock, blocks: Sequence[Block], should_stop: ShouldStop
) -> Iterator[PlacedBlock]:
    """Blocks placed in this process, the last first."""
    for block in reversed(blocks):
        if should_stop():
            raise Stopped
        yield place(block)


HERE = Fitting(N_FITTED, 100, here)


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "kept")


@pytest.fixture
def embedded(store: CorpusStore) -> Embedded:
    corpus = store.add("c", ReadTexts(TEXTS))
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    return corpus, last.embedder


def check_sample(store: CorpusStore, embedded: Embedded, kept: KeptMap) -> None:
    """That a map is a map of the sample, on which equal texts lie together."""
    corpus, embedder = embedded
    rows = KeptMaps(store).sample(kept)
    assert len(rows) == len(set(store.keys(corpus, rows).tolist())) == kept.n_fitted == N_FITTED
    plain = project(store.vectors.get(embedder, store.keys(corpus, rows)), kept.settings)
    coordinates, clusters = KeptMaps(store).points(kept)
    np.testing.assert_array_equal(coordinates[rows], plain.coordinates)
    np.testing.assert_array_equal(KeptMaps(store).projection(kept).coordinates, plain.coordinates)
    np.testing.assert_array_equal(coordinates[380:], coordinates[:20])
    assert np.isfinite(coordinates).all() and len(clusters.labels) == 400
    assert kept.notes == (*plain.notes, NOTE)


def test_pca_of_a_sample_is_exact_for_all_texts(store: CorpusStore, embedded: Embedded):
    corpus, embedder = embedded
    events: list[ProjectionEvent] = []
    kept = make_map(store, corpus, embedder, PCA, on_progress=events.append, fitting=HERE)
    check_sample(store, embedded, kept)
    vectors = store.vectors.get(embedder, store.keys(corpus))
    placer = Placer(CorpusStore(store.folder), corpus, kept)
    assert len(placer.vectors) == N_FITTED
    np.testing.assert_array_equal(KeptMaps(store).points(kept)[0], placer.land(vectors))
    assert [event.stage for event in events][:3] == ["index", "neighbours", "layout"]
    placing = [(event.n_done, event.total) for event in events if event.stage == "placing"]
    assert placing[0] == (0, 230) and placing[-1] == (230, 230) and len(placing) == 4
    assert events[-1].stage == "clusters"
    assert list((store.folder / "placing").iterdir()) == []
    assert kept.recall is None  # so few vectors have no index
    assert KeptMaps(store).list_maps(corpus) == (kept,)
    with pytest.raises(StoreError, match="not saved with a map this large"):
        KeptMaps(store).neighbours(kept)


@pytest.mark.compiles
@pytest.mark.parametrize("reducer", ["umap", "tsne"])
def test_points_of_the_sample_are_those_of_a_plain_map(
    store: CorpusStore, embedded: Embedded, reducer: str
):
    corpus, embedder = embedded
    kept = make_map(store, corpus, embedder, ProjectionSettings(reducer), fitting=HERE)
    check_sample(store, embedded, kept)
    placer = Placer(CorpusStore(store.folder), corpus, kept)
    rows = KeptMaps(store).sample(kept)
    landed = placer.land(placer.vectors[:3])
    np.testing.assert_array_equal(landed, KeptMaps(store).points(kept)[0][rows[:3]])


@pytest.mark.parametrize("reducer", ["pca", pytest.param("umap", marks=pytest.mark.slow)])
def test_the_map_is_the_same_whatever_the_number_of_processes(
    store: CorpusStore, embedded: Embedded, reducer: str
):
    corpus, embedder = embedded
    points = []
    for spread in (here, partial(place_on_processes, n_processes=2)):
        fitting = Fitting(N_FITTED, 100, spread)
        kept = make_map(store, corpus, embedder, ProjectionSettings(reducer), fitting=fitting)
        points.append(KeptMaps(store).points(kept)[0])
        KeptMaps(store).delete(kept)
    np.testing.assert_array_equal(*points)


def test_a_text_without_a_vector_is_said_before_the_work(
    store: CorpusStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mapping, "index_texts", None)
    monkeypatch.setattr(mapping, "build_index", None)
    corpus = store.add("c", ReadTexts(TEXTS))
    kept = store.vectors.register(HashEmbedder())
    with pytest.raises(StoreError, match="380 of 380 texts are not embedded yet"):
        make_map(store, corpus, kept, PCA, fitting=HERE)


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_groups_find_nearly_all_that_is_near(metric: str):
    random = np.random.default_rng(0)
    centres = random.normal(size=(12, 16)) * 3
    vectors = (centres[random.integers(0, 12, 1200)] + random.normal(size=(1200, 16))).astype("f4")
    vectors += np.float32(0 if metric == "cosine" else 50)  # far from the origin
    vectors, queries = vectors[:1000], vectors[1000:].copy()
    queries[:5] = vectors[:5]
    exact = nearest(vectors, queries, 10, metric)
    found = NearGroups.build(vectors, metric, 0).nearest(queries, 10)
    assert found.indices[:5, 0].tolist() == [0, 1, 2, 3, 4]
    shared = [len(set(a) & set(b)) for a, b in zip(found.indices, exact.indices, strict=True)]
    assert np.mean(shared) > 9
