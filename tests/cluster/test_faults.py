"""Nodes that are lost, drivers that are killed: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from ray.cluster_utils import Cluster

from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import vectors_table
from tests.support.cluster import OrderEmbedder, PlacedEmbedder, wait_for

ROOT = Path(__file__).parents[2]
SECONDS = 0.1  # that a batch takes
TEXTS = tuple(f"text {i} " + "word " * (i % 17) for i in range(3000))

DRIVER = """
import sys
from pathlib import Path
from neuralviz.cluster.connecting import connected
from neuralviz.cluster.embedding import embed_on_cluster
from neuralviz.store.corpora import CorpusStore
from tests.support import cluster as embedders

folder, kind, marks, address, every = sys.argv[1:]
store = CorpusStore(Path(folder))
with connected(address) as cluster:
    embedder = getattr(embedders, kind)(marks, seconds=0.1)
    run = embed_on_cluster(
        store, store.corpora()[0], embedder, cluster, commit_every=float(every)
    )
    for event in run:
        print(event.done, event.found, flush=True)
print("finished", flush=True)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Cluster, list[Any]]]:
    """A cluster of three machines of one core, all of them here."""
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 10**8},
    )
    others = [cluster.add_node(num_cpus=1, object_store_memory=10**8) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster, others
    cluster.shutdown()


class Driver:
    """The command of somebody at the cluster, in a process of its own.

    Args:
        store: with the corpus.
        marks: where its embedders leave theirs.
        address: of the cluster.
        every: seconds between commits.
        kind: of embedder.
    """

    def __init__(
        self, store: CorpusStore, marks: Path, address: str, every: float = 0.5,
        kind: str = "PlacedEmbedder",
    ) -> None:  # fmt: skip
        arguments = [str(store.folder), kind, str(marks), address, str(every)]
        command = [sys.executable, "-c", DRIVER, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def told(self, n_done: int) -> list[str]:
        """What it told until so many texts were done."""
        found: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found.append(line.strip())
            if line[0].isdigit() and int(line.split()[0]) >= n_done:
                break
        return found

    def finish(self) -> list[str]:
        """What it tells to its end."""
        assert self.process.stdout is not None
        found = self.process.stdout.read().split("\n")
        assert self.process.wait() == 0
        return found

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def test_a_machine_that_cannot_write_gets_no_more_work(
    tmp_path: Path, nodes: tuple[Cluster, list[Any]]
):
    cluster, _ = nodes
    store = CorpusStore(tmp_path / "store")
    corpus = store.add("texts", ReadTexts(TEXTS[:600]))
    Driver(store, tmp_path, cluster.address, kind="SickMachineEmbedder").finish()
    (kept,) = store.vectors.embedders()
    assert store.vectors.has_vectors(kept, store.keys(corpus)).all()
    assert (tmp_path / "sick").read_text()


def test_two_drivers_on_one_corpus(tmp_path: Path, nodes: tuple[Cluster, list[Any]]):
    cluster, _ = nodes
    store = CorpusStore(tmp_path / "cluster")
    corpus = store.add("texts", ReadTexts(TEXTS[:900]))
    marks = tmp_path / "marks"
    marks.mkdir()
    drivers = [Driver(store, marks, cluster.address) for _ in range(2)]
    for driver in drivers:
        assert driver.finish()[-2] == "finished"
    (kept,) = store.vectors.embedders()
    assert store.vectors.has_vectors(kept, store.keys(corpus)).all()
    assert store.database.open(vectors_table(kept)).count_rows() == 900


def test_a_lost_node_and_a_driver_that_is_killed_twice(
    tmp_path: Path, nodes: tuple[Cluster, list[Any]]
):
    cluster, (_, third) = nodes
    alone, store = CorpusStore(tmp_path / "alone"), CorpusStore(tmp_path / "cluster")
    corpora = [one.add("texts", ReadTexts(TEXTS)) for one in (alone, store)]
    marks = tmp_path / "marks"
    marks.mkdir()
    embedder = PlacedEmbedder(str(marks), seconds=SECONDS)
    kept = store.vectors.register(embedder)
    table = vectors_table(kept)

    def n_rows() -> int:
        return store.database.open(table).count_rows()

    # killed between fragments and their commit
    first = Driver(store, marks, cluster.address, every=600)
    first.told(600)
    first.kill()
    assert n_rows() == 0
    data = store.database.place(table) / "data"
    assert list(data.glob("*.lance"))

    # killed between two commits
    again = Driver(store, marks, cluster.address)
    again.told(1200)
    again.kill()
    before = n_rows()
    assert 0 < before < len(TEXTS)

    # a machine is lost under way
    last = Driver(store, marks, cluster.address)
    found = int(last.told(0)[0].split()[1])
    assert found == before
    last.told(before + 300)
    cluster.remove_node(third, allow_graceful=False)
    told = last.finish()
    assert told[-2] == "finished"

    *_, _ = embed_corpus(alone, corpora[0], _elsewhere(embedder))
    np.testing.assert_array_equal(
        store.vectors.get(kept, store.keys(corpora[1])),
        alone.vectors.get(kept, alone.keys(corpora[0])),
    )
    assert n_rows() == len(TEXTS)
    rows = store.database.open(table).search().select(["key"]).to_arrow().num_rows
    assert rows == len(TEXTS)
    machines = {mark.name.split()[0] for mark in marks.iterdir()}
    assert len(machines) == 3
    assert not list((store.folder / "writers").iterdir())
    assert {file.name for file in data.glob("*.lance")} <= _files(store, table)


def _elsewhere(embedder: PlacedEmbedder) -> PlacedEmbedder:
    """The same, for a process that is on no cluster."""
    embedder._embed = lambda read, stop: OrderEmbedder._embed(embedder, read, stop)  # type: ignore[method-assign]
    embedder.seconds = 0
    return embedder


def _files(store: CorpusStore, table: str) -> set[str]:
    """The files of all versions of a table that are still there: readers may go on with them."""
    import lance

    path = store.database.place(table)
    versions = [one["version"] for one in lance.dataset(path).versions()]
    fragments = [one for v in versions for one in lance.dataset(path, version=v).get_fragments()]
    return {Path(file.path).name for one in fragments for file in one.data_files()}


def test_files_that_are_larger_than_the_object_store(tmp_path: Path):
    files = tmp_path / "files"
    files.mkdir()
    n = 35_000
    for number in range(3):
        texts = [f"{number} {i} " + "many words " * 100 for i in range(n)]
        parquet.write_table(
            pa.table({"text": texts}), files / f"{number}.parquet", row_group_size=10_000
        )
    store = CorpusStore(tmp_path / "store")
    add = (
        "import sys\nfrom pathlib import Path\n"
        "from neuralviz.cluster.adding import add_on_cluster\n"
        "from neuralviz.cluster.adding import find_layout\n"
        "from neuralviz.cluster.connecting import connected\n"
        "from neuralviz.cluster.files import find_parts\n"
        "from neuralviz.store.corpora import CorpusStore\n"
        "parts = find_parts([sys.argv[2]])\n"
        "with connected(sys.argv[3]):\n"
        "    layout = find_layout(parts, None, None)\n"
        "    add_on_cluster(CorpusStore(Path(sys.argv[1])), 'large', parts, layout)\n"
    )
    small = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=small)
    try:
        command = [sys.executable, "-c", add, str(store.folder), str(files), cluster.address]
        subprocess.run(command, check=True, cwd=ROOT, timeout=300)
    finally:
        cluster.shutdown()
    (corpus,) = store.corpora()
    assert (corpus.n_texts, corpus.n_distinct) == (3 * n, 3 * n)
    assert store.texts(corpus, [n + 7])[0].startswith("1 7 many words")


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path):
    store = CorpusStore(tmp_path / "store" / "corpora")
    texts = tmp_path / "texts.csv"
    texts.write_text("text\n" + "\n".join(f"line {i} of many words" for i in range(6000)))
    command = [sys.executable, "-m", "neuralviz", "corpus", "add", str(texts), "--ray",
               "--method", "neural"]  # fmt: skip
    env = {**os.environ, "NEURALVIZ_HOME": str(tmp_path / "store")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env)

    def written() -> bool:
        files = (store.folder / "tables").glob("vectors-*.lance/data/*.lance")
        return len(list(files)) > 2  # so the first one has been told of

    wait_for(written, 240)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.splitlines()[-1].startswith("Stopped. Finished work is saved"), said
    (kept,) = store.vectors.embedders()
    (corpus,) = store.corpora()
    assert store.vectors.has_vectors(kept, store.keys(corpus)).any()
