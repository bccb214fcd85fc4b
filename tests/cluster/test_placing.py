"""A map of a large corpus is the same, whoever places its texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuralviz.cluster.connecting import Cluster
from neuralviz.cluster.placing import place_on_cluster
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import Fitting, make_map
from neuralviz.maps.settings import ProjectionSettings
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from tests.support.embedders import HashEmbedder

TEXTS = tuple(f"Text {number % 380}." for number in range(400))


def test_a_cluster_places_texts_as_this_process_does(tmp_path: Path, cluster: Cluster):
    found = []
    for name, spread in (("here", None), ("cluster", place_on_cluster)):
        store = CorpusStore(tmp_path / name)
        corpus = store.add("texts", ReadTexts(TEXTS))
        *_, last = embed_corpus(store, corpus, HashEmbedder())
        fitting = Fitting(n_fitted=150, block=60)
        if spread is not None:
            fitting = Fitting(n_fitted=150, block=60, spread=spread)
        kept = make_map(store, corpus, last.embedder, ProjectionSettings("pca"), fitting=fitting)
        assert kept.n_fitted == 150
        found.append(KeptMaps(store).points(kept)[0])
    np.testing.assert_array_equal(*found)
    assert len({tuple(point) for point in found[0]}) == 380
