"""Nodes that are lost, commands that are stopped: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
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
from tests.support.waiting import heed_interrupts, wait_until

ROOT = Path(__file__).parents[2]
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


def test_a_lost_node_costs_nothing(tmp_path, nodes):
    cluster, other = nodes
    alone, store = CorpusStore(tmp_path / "alone"), CorpusStore(tmp_path / "cluster")
    corpora = [each.add("texts", ReadTexts(TEXTS)) for each in (alone, store)]
    marks = tmp_path / "marks"
    marks.mkdir()
    embedder = PlacedEmbedder(str(marks), seconds=0.2)
    with connected(cluster.address) as found:
        for event in embed_on_cluster(store, corpora[1], embedder, found, commit_every=0.5):
            if other is not None and event.done >= 400:
                cluster.remove_node(other, allow_graceful=False)
                other = None
    assert other is None
    kept = store.vectors.register(embedder)
    kept_alone = alone.vectors.register(OrderEmbedder())
    *_, _ = embed_corpus(alone, corpora[0], OrderEmbedder())
    np.testing.assert_array_equal(
        store.vectors.get(kept, store.keys(corpora[1])),
        alone.vectors.get(kept_alone, alone.keys(corpora[0])),
    )
    assert store.database.open(vectors_table(kept)).count_rows() == len(TEXTS)
    machines = {mark.name.split()[0] for mark in marks.iterdir()}
    assert len(machines) == 2


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, nodes):
    store = CorpusStore(tmp_path / "store" / "corpora")
    texts = tmp_path / "texts.csv"
    texts.write_text("text\n" + "\n".join(f"line {i} of many words" for i in range(1500)))
    command = [sys.executable, "-m", "neuralviz", "corpus", "add", str(texts),
               "--ray", nodes[0].address, "--method", "neural", "--option", "epochs=1"]  # fmt: skip
    env = {**os.environ, "NEURALVIZ_HOME": str(tmp_path / "store")}
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env, preexec_fn=heed_interrupts
    )

    def is_written() -> bool:
        assert process.poll() is None, process.stderr.read()
        files = (store.folder / "tables").glob("vectors-*.lance/data/*.lance")
        return len(list(files)) > 2  # so the first one has been told of

    wait_until(is_written, 240)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    assert printed.splitlines()[-1].startswith("Stopped. Finished work is saved"), printed
    (kept,) = store.vectors.embedders()
    (corpus,) = store.corpora()
    assert store.vectors.has_vectors(kept, store.keys(corpus)).any()
