"""Kept maps: the same picture whoever opens them, and new texts on them."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import StoreError
from neuralviz.maps import kept as maps
from neuralviz.maps import mapping
from neuralviz.maps.kept import KeptMap, KeptMaps, corpus_table
from neuralviz.maps.mapping import Placer, make_map
from neuralviz.maps.opened import OpenCorpus, OpenMap
from neuralviz.maps.projection import Projection, ProjectionSettings, project
from neuralviz.plots.corpus_map import CLUSTERS, PageMap, colour_points, draw_searchable
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import KeptEmbedder
from tests.support.embedders import HashEmbedder

PCA = ProjectionSettings("pca", 3)
TEXTS = tuple(f"{'river boat' if number % 2 else 'bread oven'} {number}" for number in range(40))


def embedded(store: CorpusStore, name: str = "c") -> tuple[Corpus, KeptEmbedder]:
    corpus = store.add(name, ReadTexts((*TEXTS, TEXTS[0])))
    *_, last = embed_corpus(store, corpus, HashEmbedder())
    return corpus, last.embedder


def assert_same(one: Projection, other: Projection) -> None:
    assert one.coordinates.dtype == other.coordinates.dtype == np.float32
    np.testing.assert_equal(
        *(asdict(replace(made, fitted=dict(made.fitted))) for made in (one, other))
    )


def test_a_map_comes_back_bit_by_bit_also_from_a_copy(store: CorpusStore, tmp_path: Path):
    corpus, embedder = embedded(store)
    kept = make_map(store, corpus, embedder, PCA)
    made = project(store.vectors.get(embedder, store.keys(corpus)), PCA)
    assert set(made.fitted) == {"mean", "components", "explained_variance_ratio"}
    shutil.copytree(store.folder, tmp_path / "copy")
    for other in (CorpusStore(store.folder), CorpusStore(tmp_path / "copy")):
        assert KeptMaps(other).list_maps(corpus) == (kept,)
        assert_same(KeptMaps(other).projection(kept), made)
        coordinates, clusters = KeptMaps(other).points(kept)
        np.testing.assert_array_equal(coordinates[0], coordinates[-1])
        assert clusters.labels.shape == (41,)
        assert clusters.n == len(kept.cluster_words)


def test_clusters_keep_the_names_that_people_give_them(store: CorpusStore):
    corpus, embedder = embedded(store)
    kept = make_map(store, corpus, embedder, PCA)
    kept_maps, by_words = KeptMaps(store), kept.cluster_names
    kept_maps.rename_cluster(corpus, kept, 1, "  Loaves\n& <b>rolls\x00 " + 100 * "x")
    (renamed,) = kept_maps.list_maps(corpus)
    name = f"Loaves & <b>rolls {100 * 'x'}"[:60]
    assert renamed.cluster_names == (by_words[0], name, *by_words[2:])
    assert make_map(store, corpus, embedder, PCA) == renamed  # as it is opened again
    open_map = OpenMap(OpenCorpus(store, corpus), renamed)
    assert [text for text, _ in open_map.named_clusters] == list(renamed.cluster_names)
    assert open_map.numbered_clusters[1] == f"2 {name}"
    table = corpus_table(store, corpus, None, renamed)
    numbers = np.array(table["cluster"].to_pylist())
    assert set(np.array(table["cluster_name"].to_pylist())[numbers == 2]) == {name}
    colours = {"Clusters": colour_points(open_map, CLUSTERS)}
    shown = PageMap("map", open_map.coordinates, colours, open_map.named_clusters)
    page = draw_searchable([shown], store.texts(corpus))
    assert "2 Loaves & <b>rolls" not in page
    assert "2 Loaves" in page
    kept_maps.rename_cluster(corpus, renamed, 1, " ")
    assert kept_maps.by_id(corpus, kept.id).cluster_names == by_words
    kept_maps.delete(kept)
    with pytest.raises(StoreError, match="deleted in the meantime"):
        kept_maps.rename_cluster(corpus, kept, 0, "gone")


def test_maps_that_differ_in_a_setting_have_different_titles(store: CorpusStore):
    corpus, embedder = embedded(store)
    kept = make_map(store, corpus, embedder, PCA)
    titles = [
        OpenMap(OpenCorpus(store, corpus), replace(kept, settings=settings), "mean").title
        for settings in (PCA, replace(PCA, metric="euclidean"), ProjectionSettings(n_neighbors=9))
    ]
    assert titles == [
        "mean · PCA 3-D",
        "mean · PCA 3-D, distance euclidean",
        "mean · UMAP, neighbours 9",
    ]


def test_the_same_request_finds_the_map_and_computes_nothing(store, monkeypatch):
    corpus, embedder = embedded(store)
    kept = make_map(store, corpus, embedder, PCA)
    other_seed = ProjectionSettings("pca", 3, seed=7, n_neighbors=30, perplexity=9)
    assert KeptMaps(store).find(corpus, embedder, other_seed) == kept  # PCA has none of these
    assert KeptMaps(store).find(corpus, embedder, ProjectionSettings("pca", 2)) is None

    with monkeypatch.context() as patch:
        patch.setattr(mapping, "project", lambda *_, **__: pytest.fail("it is computed again"))
        assert make_map(CorpusStore(store.folder), corpus, embedder, other_seed) == kept
    monkeypatch.setattr(maps, "VERSION", maps.VERSION + 1)
    assert KeptMaps(store).find(corpus, embedder, PCA) is None


def test_a_map_whose_making_was_cut_off_is_not_seen_and_is_made_anew(store, monkeypatch):
    corpus, embedder = embedded(store)

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptMaps, "_drop", power_cut)
        patch.setattr(maps, "_entry", power_cut)  # the points are written, their entry is not
        with pytest.raises(KeyboardInterrupt):
            make_map(store, corpus, embedder, PCA)
    assert list((store.folder / "tables").glob("map-*.lance"))
    assert KeptMaps(CorpusStore(store.folder)).list_maps(corpus) == ()
    finds = iter([None])  # once it has an entry it stays, whatever fails
    with monkeypatch.context() as patch, pytest.raises(StopIteration):
        patch.setattr(KeptMaps, "find", lambda *_: next(finds))
        make_map(store, corpus, embedder, PCA)
    kept = make_map(store, corpus, embedder, PCA)
    assert KeptMaps(store).list_maps(corpus) == (kept,)
    assert len(KeptMaps(store).points(kept)[0]) == 41


def test_maps_go_with_their_corpus_and_not_with_another(store: CorpusStore):
    corpus, embedder = embedded(store)
    second, _ = embedded(store, "second")
    kept = make_map(store, corpus, embedder, PCA)
    flat = make_map(store, corpus, embedder, ProjectionSettings("pca"))
    stays = make_map(store, second, embedder, PCA)
    assert KeptMaps(store).list_maps(corpus) == (flat, kept)
    assert KeptMaps(store).by_id(corpus, flat.id) == flat
    KeptMaps(store).delete(flat)
    with pytest.raises(StoreError, match="This map was deleted in the meantime"):
        KeptMaps(store).by_id(corpus, flat.id)
    assert KeptMaps(store).list_maps(corpus) == (kept,)
    store.delete(corpus)
    assert KeptMaps(store).list_maps(corpus) == ()
    assert KeptMaps(store).list_maps(second) == (stays,)
    assert {path.stem for path in (store.folder / "tables").glob("map-*")} == {
        stays.table, f"{stays.table}-fit"
    }  # fmt: skip
    with pytest.raises(StoreError, match="This map was deleted in the meantime"):
        KeptMaps(store).points(kept)


def test_new_texts_land_where_they_landed_before_it_was_closed(store: CorpusStore):
    corpus, embedder = embedded(store)
    kept = make_map(store, corpus, embedder, PCA)
    new = HashEmbedder().encode(["a new text", TEXTS[3]])
    first = Placer(store, corpus, kept)
    landed = first.land(new)
    again = Placer(CorpusStore(store.folder), corpus, kept)
    np.testing.assert_array_equal(again.land(new), landed)
    np.testing.assert_allclose(landed[1], KeptMaps(store).points(kept)[0][3], atol=1e-5)
    near = again.near(new, 4)
    assert near.indices.shape == (2, 4)
    assert near.indices[1, 0] == 3
    assert near.distances[1, 0] == pytest.approx(0, abs=1e-6)
    assert again.embedder == embedder


def test_two_threads_keep_one_map_at_once(store: CorpusStore):
    corpus, embedder = embedded(store)

    def make(_: int) -> KeptMap:
        return make_map(CorpusStore(store.folder), corpus, embedder, PCA)

    with ThreadPoolExecutor(4) as pool:
        (kept,) = set(pool.map(make, range(4)))
    assert KeptMaps(store).list_maps(corpus) == (kept,)
    assert len(KeptMaps(store).points(kept)[0]) == corpus.n_texts
