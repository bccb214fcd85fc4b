"""What is asked of maps that were fitted to a sample, and how the rest is placed on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from neuralviz.errors import NeuralvizError, Stopped, StoreError
from neuralviz.maps import mapping
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import (
    Placer,
    make_map,
    neighbours_at_once,
    neighbours_of_rows,
    place_on_processes,
)
from neuralviz.maps.neighbours import (
    NearGroups,
    find_neighbours,
    knn_right,
    nearest,
    neighbours_of_points,
)
from neuralviz.maps.projection import ProjectionEvent, ProjectionSettings, project
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import index
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.index import read_index
from neuralviz.store.vectors import KeptEmbedder, text_keys

N, N_EQUAL, FITTED, DIM, TOPICS = 1500, 60, 400, 12, 5
ROOT = Path(__file__).parents[2]
PCA, TSNE = ProjectionSettings("pca"), ProjectionSettings("tsne")
HERE = partial(place_on_processes, n_processes=1)
WORDS = ("river", "bread", "snow", "choir", "rates")


def texts_of() -> tuple[str, ...]:
    """The last 60 equal the first."""
    different = [f"{WORDS[row % TOPICS]} text {row}" for row in range(N - N_EQUAL)]
    return (*different, *different[:N_EQUAL])


def vectors_of() -> np.ndarray:
    """[text, dim] by topic; texts 700 and 7, and 703 and 705, have the same vectors."""
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(TOPICS, DIM))
    of_text = np.arange(N) % (N - N_EQUAL)
    vectors = (centres[of_text % TOPICS] + rng.normal(size=(N, DIM))[of_text]).astype(np.float32)
    vectors[700], vectors[705] = vectors[7], vectors[703]
    return vectors


@pytest.fixture(scope="module", autouse=True)
def few_texts_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "FITTED", FITTED)
        patch.setattr(mapping, "BLOCK", 300)
        patch.setattr(index, "INDEXED_FROM", 1000)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    """A store with one corpus; no test changes the corpus."""
    store = CorpusStore(tmp_path_factory.mktemp("large") / "kept")
    topics = tuple(WORDS[row % (N - N_EQUAL) % TOPICS] for row in range(N))
    store.add("large", ReadTexts(texts_of(), labels={"topic": topics}))
    embedder = store.vectors.restore("made-up", "", DIM)
    n = N - N_EQUAL
    keys, nothing = text_keys(texts_of()[:n]), np.full((n, 2), np.nan)
    store.vectors.put(embedder, keys, vectors_of()[:n], nothing)
    return store


@pytest.fixture(scope="module")
def corpus(store: CorpusStore) -> Corpus:
    return store.corpus("large")


@pytest.fixture(scope="module")
def embedder(store: CorpusStore) -> KeptEmbedder:
    return store.vectors.embedders()[0]


@pytest.fixture
def tsne(store: CorpusStore, corpus: Corpus, embedder: KeptEmbedder) -> KeptMap:
    """Made once, unless a test deletes it."""
    return make_map(store, corpus, embedder, TSNE, spread=HERE)


def test_the_sample_is_where_it_was_fitted_and_equal_vectors_share_a_point(store, corpus, tsne):
    assert (tsne.n_fitted, tsne.recall is not None and tsne.recall > 0.95) == (FITTED, True)
    assert tsne.notes == (
        "The map was fitted to a random sample of 400 texts; the other 1,100 were placed on it.",
    )
    assert KeptMaps(CorpusStore(store.folder)).list_maps(corpus)[-1] == tsne
    assert not list((store.folder / "placing").iterdir())
    coordinates, clusters = KeptMaps(store).points(tsne)
    sample = KeptMaps(store).sample(tsne)
    assert len(sample) == FITTED and (np.diff(sample) > 0).all()
    fitted = project(vectors_of()[sample], TSNE)
    np.testing.assert_array_equal(coordinates[sample], fitted.coordinates)
    np.testing.assert_array_equal(coordinates[:N_EQUAL], coordinates[-N_EQUAL:])
    assert not {703, 705} & set(sample.tolist())  # both were placed
    np.testing.assert_array_equal(coordinates[703], coordinates[705])
    assert coordinates.shape == (N, 2) and np.isfinite(coordinates).all()
    labels = list(store.labels(corpus, "topic"))
    assert knn_right(neighbours_of_points(coordinates, 10), labels).mean() > 0.95
    assert len(clusters.labels) == N and clusters.n == len(tsne.cluster_words)
    assert {words[0] for words in tsne.cluster_words if words} <= set(WORDS)


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_groups_find_nearly_all_that_is_near(metric: str):
    vectors = vectors_of()[: N - N_EQUAL] + np.float32(0 if metric == "cosine" else 50)
    vectors, queries = vectors[100:], vectors[:110]
    exact = nearest(vectors, queries, 10, metric)
    found = NearGroups.build(vectors, metric, 0).nearest(queries, 10)
    np.testing.assert_array_equal(found.indices[100:, 0], np.arange(10))
    shared = [len(set(a) & set(b)) for a, b in zip(found.indices, exact.indices, strict=True)]
    assert np.mean(shared) > 9


def test_neighbours_come_from_the_index(store, corpus, tsne, monkeypatch):
    rows = np.array([1200, 3, 3, 1490])
    found = neighbours_of_rows(store, corpus, tsne, rows, 6)
    exact = find_neighbours(vectors_of(), 6)
    assert (found.indices == exact.indices[rows]).mean() > 0.9
    assert found.indices[3, 0] == 1490 - (N - N_EQUAL)
    np.testing.assert_array_equal(found.indices[1], found.indices[2])
    with pytest.raises(Stopped):
        neighbours_of_rows(store, corpus, tsne, rows, 3, should_stop=lambda: True)
    with pytest.raises(StoreError, match="not saved with a map this large"):
        KeptMaps(store).neighbours(tsne)
    at_once = neighbours_at_once(store, corpus, tsne, 1200, 6)
    np.testing.assert_array_equal(at_once.indices, found.indices[:1])
    monkeypatch.setattr(mapping, "vectors_of_keys", lambda *_: pytest.fail("all are looked at"))
    manhattan = replace(tsne, settings=ProjectionSettings("tsne", metric="manhattan"))
    assert neighbours_at_once(store, corpus, manhattan, 1200, 6) is None
    monkeypatch.setattr(mapping, "MOST_FETCHED", 3)
    assert neighbours_at_once(store, corpus, tsne, 1200, 6) is None


def test_sentences_land_on_a_large_map(store: CorpusStore, corpus: Corpus, tsne: KeptMap):
    placer = Placer(CorpusStore(store.folder), corpus, tsne)
    assert len(placer.vectors) == FITTED
    points, _ = KeptMaps(store).points(tsne)
    sample = KeptMaps(store).sample(tsne)
    known = np.array([sample[0], np.setdiff1d(np.arange(N), sample)[5]])
    landed = placer.land(vectors_of()[known])
    np.testing.assert_allclose(landed, points[known], atol=1e-5)
    new = vectors_of()[[10]] + np.float32(0.01)
    near = placer.near(new, 5)
    exact = nearest(vectors_of(), new, 5)
    assert near.indices[0, 0] == exact.indices[0, 0] == 10
    (at,) = placer.land(new)
    close = neighbours_of_points(np.concatenate([points, [at]]), 20).indices[-1]
    assert np.mean(close % (N - N_EQUAL) % TOPICS == 10 % TOPICS) > 0.9


def test_progress_is_told_and_stop_is_heard(store, corpus, embedder):
    settings = ProjectionSettings("pca", 3)
    events: list[ProjectionEvent] = []
    make = partial(make_map, store, corpus, embedder, settings, on_progress=events.append)
    for stage in ("index", "placing", "clusters"):
        events.clear()
        with pytest.raises(Stopped):
            make(spread=HERE, should_stop=lambda stage=stage: events[-1].stage == stage)
        assert KeptMaps(store).find(corpus, embedder, settings) is None
        assert not list((store.folder / "placing").glob("*"))
    stages = list(dict.fromkeys(event.stage for event in events))
    assert stages == ["index", "neighbours", "layout", "placing", "clusters"]
    placing = [event for event in events if event.stage == "placing"]
    assert [event.n_done for event in placing] == [0, 260, 520, 780, 1040]
    shares = [event.share for event in events]
    assert shares == sorted(shares) and shares[-1] == 1


def test_vectors_that_were_deleted_later_are_missed(tmp_path: Path):
    store = CorpusStore(tmp_path / "kept")
    corpus = store.add("c", ReadTexts(texts_of()))
    embedder = store.vectors.restore("made-up", "", DIM)
    with pytest.raises(StoreError, match="1,440 of 1,440 texts are not embedded yet"):
        make_map(store, corpus, embedder, PCA, spread=HERE)
    n = N - N_EQUAL
    keys = text_keys(texts_of()[:n])
    store.vectors.put(embedder, keys, vectors_of()[:n], np.full((n, 2), np.nan))
    with pytest.raises(NeuralvizError, match="Some texts were not placed"):
        make_map(store, corpus, embedder, PCA, spread=lambda place, rows, _: map(place, rows[:1]))
    kept = make_map(store, corpus, embedder, PCA, spread=HERE)
    assert read_index(store.database, embedder) is not None
    store.vectors.forget(keys[:20])
    with pytest.raises(StoreError, match="1 of 1 texts are not embedded yet"):
        neighbours_of_rows(store, corpus, kept, np.array([3]), 5)
    near = neighbours_of_rows(store, corpus, kept, np.array([30]), 5)
    assert near.indices.min() >= 20
    store.delete(corpus)
    with pytest.raises(StoreError, match="deleted in the meantime"):
        neighbours_of_rows(store, corpus, kept, np.array([30]), 5)


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(store, corpus, embedder):
    script = textwrap.dedent(f"""
        import time
        from functools import partial
        from pathlib import Path
        from neuralviz.maps import mapping
        from neuralviz.maps.projection import ProjectionSettings
        from neuralviz.store.corpora import CorpusStore

        def tell(event):
            if event.n_done:
                print(event.stage, flush=True)
                time.sleep(30)

        if __name__ == "__main__":
            store = CorpusStore(Path({str(store.folder)!r}))
            (embedder,) = store.vectors.embedders()
            mapping.FITTED, mapping.BLOCK = {FITTED}, 10
            spread = partial(mapping.place_on_processes, n_processes=2)
            mapping.make_map(store, store.corpus("large"), embedder,
                             ProjectionSettings("pca", 3), spread=spread, on_progress=tell)
        """)
    path = store.folder / "make.py"
    path.write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None and run.stdout.readline() == "placing\n"
        children = psutil.Process(run.pid).children(recursive=True)
        assert children
        os.kill(run.pid, signal.SIGKILL)
    assert not psutil.wait_procs(children, timeout=10)[1]
    (left,) = (store.folder / "placing").iterdir()
    long_ago = time.time() - 3 * 86400
    for one in (left, *left.iterdir()):
        os.utime(one, (long_ago, long_ago))
    points = []
    for n_processes in (1, 2):
        spread = partial(place_on_processes, n_processes=n_processes)
        kept = make_map(store, corpus, embedder, ProjectionSettings("pca", 3), spread=spread)
        assert not list((store.folder / "placing").iterdir())
        points.append(KeptMaps(store).points(kept)[0])
        KeptMaps(store).delete(kept)
    np.testing.assert_array_equal(*points)
