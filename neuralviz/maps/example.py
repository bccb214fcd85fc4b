"""The example corpus of the map page, with recorded vectors and maps."""

from __future__ import annotations

import json

import numpy as np

from neuralviz.maps.clusters import Clusters
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projection import Projection, ProjectionSettings
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from neuralviz.store.corpora import Corpus, CorpusStore, add_once
from neuralviz.store.vectors import text_keys

TEXTS = "topics.csv"
RECORDED = "topics_maps.npz"
NAME = "Example: topics and forms"


def add_example_once(store: CorpusStore) -> Corpus | None:
    """Add the example with its maps; None if it was added before."""
    return add_once(store, "example", lambda: add_example(store))


def add_example(store: CorpusStore) -> Corpus:
    read = read_texts(Source(TEXTS, (sample_data() / TEXTS).read_bytes()))
    keys = text_keys(read.texts)
    with np.load(sample_data() / RECORDED, allow_pickle=False) as recorded:
        corpus = store.find(NAME, read) or store.add(NAME, read)
        for place, entry in enumerate(json.loads(str(recorded["about"]))):
            vectors = recorded[f"vectors-{place}"]
            kept = store.vectors.restore(entry["embedder"], entry["spec"], vectors.shape[1])
            store.vectors.put(kept, keys, vectors, recorded[f"loss-{place}"])
            settings = ProjectionSettings.from_dict(entry["settings"])
            if KeptMaps(store).find(corpus, kept, settings) is not None:
                continue
            near = Neighbours(recorded[f"neighbours-{place}"], recorded[f"distances-{place}"])
            projection = Projection(recorded[f"points-{place}"], settings, near)
            clusters = Clusters(recorded[f"clusters-{place}"], len(entry["words"]))
            KeptMaps(store).put(corpus, kept, projection, clusters, entry["words"])
    return corpus
