"""Maps of large corpora: fitted to a sample, with the other texts placed on it."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders.specs import EmbedderSpec
from neuralviz.errors import Stopped, StoreError
from neuralviz.jobs.mapping import MakeMaps, MapChoice, Mapped
from neuralviz.maps import kept as maps
from neuralviz.maps import mapping
from neuralviz.maps.grouped import Grouped, group, nearest_of_groups, open_grouped
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import Placer, make_map
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.placing import (
    PlaceBlock,
    distinct_texts,
    drawn_texts,
    in_processes,
    place_texts,
    prepared_map,
)
from neuralviz.maps.projecting import place, project
from neuralviz.maps.projection import ProjectionEvent
from neuralviz.maps.settings import ProjectionSettings
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.index import VectorIndex
from neuralviz.store.vectors import KeptEmbedder
from tests.support.embedders import HashEmbedder

PCA = ProjectionSettings("pca")
N_FITTED = 150
DIFFERENT = tuple(f"{'river boat' if n % 2 else 'bread oven'} {n}" for n in range(380))
TEXTS = DIFFERENT + DIFFERENT[:20]
FITTED = "The map was fitted on 150 of 400 texts; the others were placed on it."

large_map = partial(make_map, most_fitted=N_FITTED, block=100)


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "kept")


@pytest.fixture
def embedded(store: CorpusStore) -> tuple[Corpus, KeptEmbedder]:
    corpus = store.add("c", ReadTexts(TEXTS))
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    return corpus, last.embedder


def check_sample(store: CorpusStore, corpus: Corpus, kept: KeptMap) -> None:
    """That a map is a map of the sample, on which equal texts lie together."""
    embedder = next(one for one in store.vectors.embedders() if one.id == kept.embedder)
    rows, sample = KeptMaps(store).sample(kept)
    assert len(rows) == len(set(store.keys(corpus, rows).tolist())) == kept.n_fitted == N_FITTED
    firsts, _ = distinct_texts(store.keys(corpus))
    np.testing.assert_array_equal(rows, firsts[drawn_texts(len(firsts), N_FITTED)])
    plain = project(store.vectors.get(embedder, store.keys(corpus, rows)), kept.settings)
    coordinates, clusters = KeptMaps(store).points(kept)
    np.testing.assert_array_equal(coordinates[rows], plain.coordinates)
    np.testing.assert_array_equal(sample.coordinates, plain.coordinates)
    np.testing.assert_array_equal(coordinates[380:], coordinates[:20])
    assert np.isfinite(coordinates).all() and len(clusters.labels) == 400
    assert kept.notes == (*plain.notes, FITTED)


def test_pca_of_a_sample_is_exact_for_all_texts(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    events: list[ProjectionEvent] = []
    kept = large_map(store, corpus, embedder, PCA, on_progress=events.append)
    check_sample(store, corpus, kept)
    rows, sample = KeptMaps(store).sample(kept)
    vectors = store.vectors.get(embedder, store.keys(corpus))
    coordinates, _ = KeptMaps(store).points(kept)
    np.testing.assert_array_equal(coordinates, place(vectors[rows], sample, vectors))
    assert [event.stage for event in events][:3] == ["index", "neighbours", "layout"]
    placing = [(event.done, event.total) for event in events if event.stage == "placing"]
    assert placing == [(0, 230), (100, 230), (200, 230), (230, 230)]
    assert events[-1].stage == "clusters"
    assert not list(store.folder.glob("placing-*"))
    assert kept.recall is None  # so few vectors have no index
    assert KeptMaps(store).of(corpus) == (kept,)
    assert KeptMaps(store).projection(kept).neighbours is None
    for ask in (KeptMaps(store).neighbours, lambda kept: KeptMaps(store).neighbours_of(kept, [1])):
        with pytest.raises(StoreError, match="are not kept"):
            ask(kept)


@pytest.mark.compiles
@pytest.mark.parametrize("reducer", ["umap", "tsne"])
def test_points_of_the_sample_are_those_of_a_plain_map(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder], reducer: str
):
    corpus, embedder = embedded
    kept = large_map(store, corpus, embedder, ProjectionSettings(reducer))
    check_sample(store, corpus, kept)
    placer = Placer(CorpusStore(store.folder), corpus, kept)
    rows, _ = KeptMaps(store).sample(kept)
    assert len(placer.vectors) == N_FITTED
    again = placer.land(placer.vectors[:3])
    np.testing.assert_array_equal(again, KeptMaps(store).points(kept)[0][rows[:3]])
    assert placer.near(placer.vectors[:2], 4).indices[:, 0].tolist() == rows[:2].tolist()


@pytest.mark.compiles
def test_umap_places_by_its_points_and_not_by_their_neighbours(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    vectors = store.vectors.get(embedder, store.keys(corpus))[:380]
    made = project(vectors[:N_FITTED])
    kept = large_map(store, corpus, embedder, made.settings)
    without = KeptMaps(store).sample(kept)[1]
    rows = KeptMaps(store).sample(kept)[0]
    with_neighbours = project(vectors[rows], made.settings)
    new = np.delete(vectors, rows, axis=0)[:20]
    np.testing.assert_array_equal(
        place(vectors[rows], without, new), place(vectors[rows], with_neighbours, new)
    )


@pytest.mark.parametrize("reducer", ["pca", pytest.param("umap", marks=pytest.mark.slow)])
def test_the_map_is_the_same_whatever_the_number_of_processes(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder], reducer: str
):
    corpus, embedder = embedded
    settings = ProjectionSettings(reducer)
    points = []
    for processes in (1, 2):
        kept = large_map(
            store, corpus, embedder, settings, mapper=partial(in_processes, processes=processes)
        )
        points.append(KeptMaps(store).points(kept)[0])
        KeptMaps(store).delete(kept)
    np.testing.assert_array_equal(*points)


def test_blocks_may_be_placed_in_any_order(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    keys = store.keys(corpus)
    vectors = store.vectors.get(embedder, keys)
    with prepared_map(store.folder, vectors[:150], project(vectors[:150], PCA)) as folder:
        place_block = PlaceBlock(store.folder, embedder, folder)

        def elsewhere(
            given: Callable[[np.ndarray], np.ndarray], blocks: Sequence[np.ndarray]
        ) -> list[np.ndarray]:
            return [given(one) for one in reversed(blocks)][::-1]

        plain = place_texts(place_block, keys[150:380], block=70)
        np.testing.assert_array_equal(
            place_texts(place_block, keys[150:380], elsewhere, block=70), plain
        )


def test_stop_between_blocks_keeps_nothing(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    events: list[ProjectionEvent] = []
    closed: list[bool] = []

    def one_by_one(
        given: Callable[[np.ndarray], np.ndarray], blocks: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        try:
            yield from map(given, blocks)
        finally:
            closed.append(True)

    with pytest.raises(Stopped):
        large_map(
            store, corpus, embedder, PCA, mapper=one_by_one, on_progress=events.append,
            should_stop=lambda: bool(events) and events[-1].done == 100,
        )  # fmt: skip
    assert events[-1] == ProjectionEvent("placing", 100, 230)
    assert closed == [True]
    assert KeptMaps(store).of(corpus) == ()
    assert not list(store.folder.glob("placing-*"))


@pytest.mark.slow
def test_processes_end_when_nobody_wants_their_blocks(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    before = set(multiprocessing.active_children())
    events: list[ProjectionEvent] = []
    with pytest.raises(Stopped):
        make_map(
            store, corpus, embedder, PCA, most_fitted=N_FITTED, block=1,
            mapper=partial(in_processes, processes=2), on_progress=events.append,
            should_stop=lambda: bool(events) and events[-1].done == 2,
        )  # fmt: skip
    assert set(multiprocessing.active_children()) == before
    assert not list(store.folder.glob("placing-*"))


def test_a_map_below_the_threshold_is_made_of_all_texts(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder], monkeypatch: pytest.MonkeyPatch
):
    corpus, embedder = embedded
    monkeypatch.setattr(mapping, "build_index", None)
    kept = make_map(store, corpus, embedder, PCA, most_fitted=400)
    assert (kept.n_fitted, kept.recall, kept.notes) == (None, None, ())
    plain = project(store.vectors.get(embedder, store.keys(corpus)), PCA)
    np.testing.assert_array_equal(KeptMaps(store).points(kept)[0], plain.coordinates)
    assert len(KeptMaps(store).neighbours(kept)) == 400


def test_a_sample_of_all_different_texts_leaves_none_to_be_placed(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    kept = make_map(store, corpus, embedder, PCA, most_fitted=390)
    assert kept.n_fitted == 380
    points, _ = KeptMaps(store).points(kept)
    np.testing.assert_array_equal(points[380:], points[:20])


def test_the_recall_of_the_index_is_kept_and_old_maps_have_none(
    store: CorpusStore,
    embedded: tuple[Corpus, KeptEmbedder],
    monkeypatch: pytest.MonkeyPatch,
):
    corpus, embedder = embedded
    index = VectorIndex(400, 20, 20, 10, 0.98)
    monkeypatch.setattr(mapping, "build_index", lambda *_: index)
    kept = large_map(store, corpus, embedder, PCA)
    assert kept.recall == 0.98
    assert KeptMaps(CorpusStore(store.folder)).of(corpus) == (kept,)
    row = maps._entry(kept, "cosine")
    about = json.loads(row["about"])
    del about["n_fitted"], about["recall"]
    old = maps._map(row | {"about": json.dumps(about)})
    assert (old.n_fitted, old.recall) == (None, None)


def test_points_come_in_the_order_of_the_rows(
    store: CorpusStore, embedded: tuple[Corpus, KeptEmbedder]
):
    corpus, embedder = embedded
    kept = large_map(store, corpus, embedder, PCA)
    points, _ = KeptMaps(store).points(kept)
    table = store.database.open(kept.table)
    rows = table.to_arrow()
    store.database.drop(kept.table)
    store.database.create(kept.table, rows.take(np.random.default_rng(0).permutation(400)))
    np.testing.assert_array_equal(KeptMaps(store).points(kept)[0], points)


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_groups_find_the_nearest(tmp_path: Path, metric: str):
    random = np.random.default_rng(0)
    centres = random.normal(size=(12, 16)) * 3
    vectors = (centres[random.integers(0, 12, 1200)] + random.normal(size=(1200, 16))).astype("f4")
    vectors[700:] += 50.0 * (metric != "cosine")  # far from the origin
    queries = vectors[1000:] + 0
    vectors = vectors[:1000]
    queries[:5] = vectors[:5]
    group(vectors, metric).save(tmp_path)
    grouped = open_grouped(tmp_path)
    exact = nearest(vectors, queries, 10, metric)
    everywhere = nearest_of_groups(grouped, queries, 10, probes=len(grouped.centres))
    same = np.mean(everywhere.indices == exact.indices)
    assert same > 0.99 if metric == "manhattan" else same == 1  # groups go by straight distance
    assert everywhere.indices[:5, 0].tolist() == [0, 1, 2, 3, 4]
    assert (everywhere.distances[:5, 0] == 0).all()
    some = nearest_of_groups(grouped, queries, 10, probes=8)
    found = [len(set(a) & set(b)) for a, b in zip(some.indices, exact.indices, strict=True)]
    assert np.mean(found) > 9


def test_groups_smaller_than_what_is_wanted_are_joined():
    vectors = np.repeat(np.eye(4, dtype=np.float32), 3, axis=0)
    grouped = group(vectors, "cosine")
    assert isinstance(grouped, Grouped)
    near = nearest_of_groups(grouped, vectors, 11, probes=1)
    np.testing.assert_array_equal(near.indices, nearest(vectors, vectors, 11).indices)


def test_the_page_is_told_how_many_texts_are_placed():
    task = MakeMaps("id", (MapChoice(EmbedderSpec("mean", "model"), PCA),), ())
    told = task.progress(Mapped(projecting=ProjectionEvent("placing", 20_000, 230_000)))
    assert told.doing.endswith("Placing the other texts, 20,000 of 230,000")
    told = task.progress(Mapped(projecting=ProjectionEvent("layout", 3, 200)))
    assert told.doing.endswith("Making the map, epoch 3 of 200")
