"""What the commands for corpora do with ``--ray``. Loads Ray."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.cli.common import say, status
from neuralviz.cli.vectors import progress_bars
from neuralviz.cluster.adding import ReadingProgress, add_on_cluster, source_digest
from neuralviz.cluster.addresses import LOCAL
from neuralviz.cluster.attempts import KILLED
from neuralviz.cluster.connecting import Cluster, connected, n_machines
from neuralviz.cluster.embedding import LeftOut, embed_on_cluster
from neuralviz.cluster.placing import place_on_cluster
from neuralviz.cluster.text_blocks import find_layout
from neuralviz.reading.blocks import find_parts
from neuralviz.store.index import build_index, index_texts
from neuralviz.store.vectors import KEY_BYTES
from neuralviz.words import many, percent

if TYPE_CHECKING:
    from neuralviz.cluster.text_blocks import Layout
    from neuralviz.embedders import Embedder
    from neuralviz.reading.blocks import Parts
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.embedding import EmbeddingEvent
    from neuralviz.store.vectors import KeptEmbedder

__all__ = [
    "RayEmbedding",
    "add_with_ray",
    "cluster_at",
    "index_corpus",
    "look_at",
    "place_on_cluster",
    "saved_corpus",
]

NAMED = 5  # texts that were skipped and are named


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """The cluster at an address.

    Raises:
        NeuralvizError: there is no cluster.
    """
    with connected(address) as cluster:
        if address != LOCAL:
            gpus = f" and {many(cluster.n_gpus, 'GPU')}" if cluster.n_gpus else ""
            size = f"{many(cluster.n_nodes, 'machine')}, {many(cluster.n_cpus, 'core')}{gpus}"
            where = "a cluster" if address == "auto" else f"the cluster at {address}"
            say(f"Connected to {where}: {size}.")
        yield cluster
        left = n_machines()
        if left < cluster.n_nodes:
            say(
                f"{many(cluster.n_nodes - left, 'machine')} of {cluster.n_nodes:,} did not answer "
                "any more. The others did the work again."
            )


def look_at(
    paths: Sequence[str], column: str | None, id_column: str | None, header: int | None = None
) -> tuple[Parts, Layout]:
    """Files that paths name, and their columns: it is said which is read, before Ray starts.

    Raises:
        TextError: as of `find_parts` and `find_layout`.
    """
    with status("Looking at the files …"):
        parts = find_parts(paths, header)
        layout = find_layout(parts, column, id_column)
    if column is None:
        say(f"Reading texts from the column “{layout.text}”. Use --column to choose another.")
    return parts, layout


def saved_corpus(
    store: CorpusStore, name: str, parts: Parts, layout: Layout, limit: int | None
) -> Corpus | None:
    """The corpus that was made of just these files before."""
    return store.find_source(name, source_digest(parts, layout, limit))


def add_with_ray(
    store: CorpusStore, name: str, parts: Parts, layout: Layout, limit: int | None
) -> tuple[Corpus, bool]:
    """The corpus of some files, and whether it is new; what was left out is said.

    Raises:
        NeuralvizError: as of `add_on_cluster`.
    """
    with progress_bars(counted=False) as bars:
        task = bars.add_task("Reading texts", total=None)

        def tell(reading: ReadingProgress) -> None:
            bars.update(task, completed=reading.n_texts)

        added = add_on_cluster(store, name, parts, layout, limit, report=tell)
    for note in added.notes:
        say(note)
    if added.corpus.n_texts == limit:
        say(f"Limited to the first {many(limit, 'text')}.")
    return added.corpus, added.is_new


class RayEmbedding:
    """Embeds corpora on a cluster, as `embed_corpus` does here; remembers what was left out.

    Args:
        cluster: that is connected.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._left_out: LeftOut = {}

    def __call__(
        self, store: CorpusStore, corpus: Corpus, embedder: Embedder
    ) -> Generator[EmbeddingEvent, None, None]:
        """As `embed_on_cluster`."""
        corpus = store.recount(corpus)
        left_out = yield from embed_on_cluster(store, corpus, embedder, self._cluster)
        self._left_out.update(left_out)

    def leave_out(self, store: CorpusStore, corpus: Corpus, label: str) -> tuple[Corpus, int]:
        """Take the texts that cannot be embedded out of a corpus without maps, and name them.

        Texts that killed the processes that embedded them stay: there may have been too little
        memory.

        Returns:
            The corpus as it is now, and how many of its texts have no embedding.

        Raises:
            StoreError: it cannot be written.
        """
        corpus = store.recount(store.corpus(corpus.id))
        skipped, self._left_out = self._left_out, {}
        killed = {row: one for row, one in skipped.items() if one[1] == KILLED}
        unfit = {row: one for row, one in skipped.items() if row not in killed}
        without = len(killed)
        if killed:
            say(
                f"Skipped {many(len(killed), 'text')}: {_named(killed)}. Perhaps there was too "
                "little memory; run the same command again to try them again."
            )
        if unfit:
            what = f"{many(len(unfit), 'text')} that {label} cannot embed"
            said = f"Skipped {what}: {_named(unfit)}."
            keys = np.frombuffer(b"".join(key for key, _ in unfit.values()), f"S{KEY_BYTES}")
            left = store.leave_out(corpus, keys)
            if left is None:
                said += " The corpus has maps that show them, so no map can be made by this method."
                without += len(unfit)
            say(said)
            corpus = left or corpus
        return corpus, without


def _named(left_out: LeftOut) -> str:
    """The first texts of some that were skipped, and why each was."""
    first = sorted(left_out.items())[:NAMED]
    reasons = "; ".join(f"text {row + 1:,} {reason.rstrip('.')}" for row, (_, reason) in first)
    more = f", and {len(left_out) - NAMED:,} more" if len(left_out) > NAMED else ""
    return f"{reasons}{more}"


def index_corpus(store: CorpusStore, corpus: Corpus, embedder: KeptEmbedder) -> None:
    """Build the index of a large corpus's vectors, and say how well it finds.

    Raises:
        StoreError: it cannot be written.
    """
    with status("Building the index …"):
        built = build_index(store.database, embedder)
        index_texts(store, corpus)
    if built is not None:
        say(f"Indexed: a search by meaning finds {percent(built.recall)} of the 10 nearest texts.")
