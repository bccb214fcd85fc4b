"""The recorded example: it is what today's program would make, and is added once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders import EmbedderSpec, make_embedder
from neuralviz.maps.example import NAME, RECORDED, TEXTS, add_example, add_example_once
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import knn_right
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.vectors import embedder_id


def recorded() -> list[dict]:
    with np.load(sample_data() / RECORDED, allow_pickle=False) as file:
        return json.loads(str(file["about"]))


@pytest.mark.parametrize("place", range(len(recorded())))
def test_the_recording_is_what_is_computed_today(store: CorpusStore, place: int):
    one = recorded()[place]
    corpus = add_example(store)
    spec = EmbedderSpec.from_json(one["spec"])
    embedder = make_embedder(spec)
    assert one["embedder"] == embedder_id(embedder), "run scripts/record_maps.py"
    kept = next(kept for kept in store.vectors.embedders() if kept.id == one["embedder"])
    rows = [0, 479]
    texts = store.texts(corpus, rows)
    vectors = store.vectors.get(kept, store.keys(corpus)[rows])
    np.testing.assert_allclose(embedder.encode(texts), vectors, atol=1e-4)
    learns = "neural" in spec.method
    assert np.isnan(store.vectors.losses(kept, store.keys(corpus))).all() != learns
    found = KeptMaps(store).find(corpus, kept, ProjectionSettings())
    assert found is not None, "run scripts/record_maps.py"
    coordinates, clusters = KeptMaps(store).points(found)
    assert coordinates.shape == (480, 2)
    assert np.isfinite(coordinates).all()
    assert clusters.n == len(found.cluster_words) > 1
    # The neighbours are those of the vectors, from nearest on.
    neighbours = KeptMaps(store).neighbours(found)
    everything = store.vectors.get(kept, store.keys(corpus))
    products = everything @ everything[0]
    products[0] = -1
    assert neighbours.indices[0, 0] == products.argmax()
    assert neighbours.distances[0, 0] == pytest.approx(1 - products.max(), abs=1e-4)
    assert not (everything.view(np.uint32) & 0xFF).any()  # 16 bits, for the package to stay small


def test_the_example_is_the_sample_texts_by_two_methods(store: CorpusStore):
    corpus = add_example(store)
    read = read_texts(Source(TEXTS, (sample_data() / TEXTS).read_bytes()))
    assert tuple(store.texts(corpus)) == read.texts
    kinds = {column.name: column.kind for column in corpus.columns}
    assert kinds == {"topic": "text", "form": "text", "words": "number"}
    assert [EmbedderSpec.from_json(one["spec"]).method for one in recorded()] == ["neural", "mean"]
    newest, *_ = KeptMaps(store).list_maps(corpus)
    assert newest.embedder == recorded()[-1]["embedder"]  # the page opens with it


def test_it_is_added_once_by_all_sessions_and_stays_away_when_deleted(store: CorpusStore):
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add_example_once, [CorpusStore(store.folder) for _ in range(3)]))
    (corpus,) = store.corpora()
    assert corpus.name == NAME
    store.delete(corpus)
    assert add_example_once(CorpusStore(store.folder)) is None
    assert store.corpora() == ()
    assert len(KeptMaps(store).list_maps(add_example(store))) == 2  # unless it is asked for


def test_the_tour_says_what_the_maps_show(store: CorpusStore):
    corpus = add_example(store)
    methods = {one["embedder"]: EmbedderSpec.from_json(one["spec"]).method for one in recorded()}
    shares = {}
    for kept in KeptMaps(store).list_maps(corpus):
        near = KeptMaps(store).neighbours(kept).first(10)
        shares[methods[kept.embedder]] = [
            f"{knn_right(near, list(store.labels(corpus, name))).mean():.0%}"
            for name in ("topic", "form")
        ]
    (topic, form), (neural_topic, neural_form) = shares["mean"], shares["neural"]
    said = (Path(__file__).parents[2] / "docs" / "tour.md").read_text("utf-8")
    assert f"{topic} of texts by mean pooling and for {neural_topic} by neural embedding" in said
    assert f"its form for {form} and {neural_form}." in said
    assert neural_topic in ("69%", "70%", "71%"), "the tour says seven in ten"
