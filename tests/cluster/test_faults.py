"""Nodes that are lost, work that is interrupted: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

from neuralviz.cluster.connecting import connected
from neuralviz.cluster.embedding import embed_on_cluster
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import vectors_table
from tests.support.cluster import OrderEmbedder, PlacedEmbedder, SickMachineEmbedder

TEXTS = tuple(f"text {i} " + "word " * (i % 17) for i in range(1600))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Cluster, Any]]:
    """A cluster of two machines of one core, both of them here."""
    ray.shutdown()
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    other = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    cluster.wait_for_nodes()
    yield cluster, other
    cluster.shutdown()


def test_a_machine_that_cannot_write_gets_no_more_work(tmp_path, nodes):
    store = CorpusStore(tmp_path / "store")
    corpus = store.add("texts", ReadTexts(TEXTS[:200]))
    embedder = SickMachineEmbedder(str(tmp_path))
    with connected(nodes[0].address) as cluster:
        list(embed_on_cluster(store, corpus, embedder, cluster))
    kept = store.vectors.register(embedder)
    assert store.vectors.has_vectors(kept, store.keys(corpus)).all()
    assert (tmp_path / "sick").read_text()


def test_an_interrupt_keeps_what_is_finished_and_a_lost_node_costs_nothing(tmp_path, nodes):
    cluster, other = nodes
    alone, store = CorpusStore(tmp_path / "alone"), CorpusStore(tmp_path / "cluster")
    corpora = [each.add("texts", ReadTexts(TEXTS)) for each in (alone, store)]
    embedder = PlacedEmbedder(str(tmp_path), seconds=0.2)
    kept = store.vectors.register(embedder)
    with connected(cluster.address) as found:
        with (
            pytest.raises(KeyboardInterrupt),
            closing(embed_on_cluster(store, corpora[1], embedder, found)) as run,
        ):
            for event in run:
                if event.done >= 200:
                    signal.raise_signal(signal.SIGINT)
        n_kept = store.vectors.has_vectors(kept, store.keys(corpora[1])).sum()
        assert 200 <= n_kept < len(TEXTS)
        for event in embed_on_cluster(store, corpora[1], embedder, found, commit_every=0.5):
            assert event.found == n_kept
            if other is not None and event.done >= n_kept + 400:
                cluster.remove_node(other, allow_graceful=False)
                other = None
    assert other is None
    kept_alone = alone.vectors.register(OrderEmbedder())
    *_, _ = embed_corpus(alone, corpora[0], OrderEmbedder())
    np.testing.assert_array_equal(
        store.vectors.get(kept, store.keys(corpora[1])),
        alone.vectors.get(kept_alone, alone.keys(corpora[0])),
    )
    assert store.database.open(vectors_table(kept)).count_rows() == len(TEXTS)
    machines = {mark.name.split()[0] for mark in tmp_path.glob("* *")}
    assert len(machines) == 2
