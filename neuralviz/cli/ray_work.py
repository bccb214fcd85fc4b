"""The corpus commands with ``--ray``. Imports Ray."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.cli.console import print_message, print_notes, progress_bars, status
from neuralviz.cluster.adding import add_on_cluster, find_layout, source_digest
from neuralviz.cluster.addresses import LOCAL
from neuralviz.cluster.connecting import Cluster, connected, n_machines
from neuralviz.cluster.embedding import KILLED, LeftOut, embed_on_cluster, place_on_cluster
from neuralviz.cluster.files import find_parts
from neuralviz.store.index import build_index, index_texts
from neuralviz.store.vectors import KEY_BYTES
from neuralviz.words import many, percent

if TYPE_CHECKING:
    from neuralviz.cluster.adding import Layout
    from neuralviz.cluster.files import Parts
    from neuralviz.embedders import Embedder
    from neuralviz.errors import ShouldStop
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.embedding import EmbeddingEvent
    from neuralviz.store.vectors import KeptEmbedder

__all__ = [
    "RayEmbedding",
    "add_with_ray",
    "find_saved_corpus",
    "index_corpus",
    "inspect_files",
    "open_cluster",
    "place_on_cluster",
]

MAX_NAMED = 5  # skipped texts named in a message


@contextmanager
def open_cluster(address: str) -> Iterator[Cluster]:
    with connected(address) as cluster:
        if address != LOCAL:
            gpus = f" and {many(cluster.n_gpus, 'GPU')}" if cluster.n_gpus else ""
            size = f"{many(cluster.n_nodes, 'machine')}, {many(cluster.n_cpus, 'core')}{gpus}"
            cluster_name = "a cluster" if address == "auto" else f"the cluster at {address}"
            print_message(f"Connected to {cluster_name}: {size}.")
        yield cluster
        n_answering = n_machines()
        if n_answering < cluster.n_nodes:
            print_message(
                f"{many(cluster.n_nodes - n_answering, 'machine')} of {cluster.n_nodes:,} did not "
                "answer any more. The others did the work again."
            )


def inspect_files(
    paths: Sequence[str], column: str | None, id_column: str | None, header: int | None = None
) -> tuple[Parts, Layout]:
    """Find files, and print which column is read, before Ray starts."""
    with status("Looking at the files …"):
        parts = find_parts(paths, header)
        layout = find_layout(parts, column, id_column)
    if column is None:
        print_message(
            f"Reading texts from the column “{layout.text}”. Use --column to choose another."
        )
    return parts, layout


def find_saved_corpus(
    store: CorpusStore, name: str, parts: Parts, layout: Layout, limit: int | None
) -> Corpus | None:
    return store.find_source(name, source_digest(parts, layout, limit))


def add_with_ray(
    store: CorpusStore, name: str, parts: Parts, layout: Layout, limit: int | None
) -> tuple[Corpus, bool]:
    """Save texts as a corpus and print what was left out; return it and whether it is new."""
    with progress_bars() as bars:
        bar = bars.add_task("Reading texts", total=None)

        def show_progress(n_texts: int) -> None:
            bars.update(bar, description=f"Reading texts: {n_texts:,}")

        added = add_on_cluster(store, name, parts, layout, limit, report=show_progress)
    print_notes(added.notes)
    if added.corpus.n_texts == limit:
        print_message(f"Limited to the first {many(limit, 'text')}.")
    return added.corpus, added.is_new


class RayEmbedding:
    """Embeds corpora on a cluster, and remembers what was left out."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._left_out: LeftOut = {}

    def __call__(
        self, store: CorpusStore, corpus: Corpus, embedder: Embedder, *, should_stop: ShouldStop
    ) -> Generator[EmbeddingEvent, None, None]:
        corpus = store.recount(corpus)
        left_out = yield from embed_on_cluster(
            store, corpus, embedder, self._cluster, should_stop=should_stop
        )
        self._left_out.update(left_out)

    def leave_out(self, store: CorpusStore, corpus: Corpus, label: str) -> tuple[Corpus, int]:
        """Remove and name unfit texts; return the corpus and how many texts lack vectors."""
        corpus = store.recount(store.corpus(corpus.id))
        skipped, self._left_out = self._left_out, {}
        killed = {row: entry for row, entry in skipped.items() if entry[1] == KILLED}
        unfit = {row: entry for row, entry in skipped.items() if row not in killed}
        n_missing = len(killed)
        if killed:
            print_message(
                f"Skipped {many(len(killed), 'text')}: {_describe_skipped(killed)}. Perhaps there "
                "was too little memory; run the same command again to try them again."
            )
        if unfit:
            skipped_texts = f"{many(len(unfit), 'text')} that {label} cannot embed"
            message = f"Skipped {skipped_texts}: {_describe_skipped(unfit)}."
            keys = np.frombuffer(b"".join(key for key, _ in unfit.values()), f"S{KEY_BYTES}")
            remaining = store.leave_out(corpus, keys)
            if remaining is None:
                message += (
                    " The corpus has maps that show them, so no map can be made by this method."
                )
                n_missing += len(unfit)
            print_message(message)
            corpus = remaining or corpus
        return corpus, n_missing


def _describe_skipped(left_out: LeftOut) -> str:
    first = sorted(left_out.items())[:MAX_NAMED]
    reasons = "; ".join(f"text {row + 1:,} {reason.rstrip('.')}" for row, (_, reason) in first)
    rest = f", and {len(left_out) - MAX_NAMED:,} more" if len(left_out) > MAX_NAMED else ""
    return f"{reasons}{rest}"


def index_corpus(store: CorpusStore, corpus: Corpus, embedder: KeptEmbedder) -> None:
    """Build the index of a corpus's vectors, and print its recall."""
    with status("Building the index …"):
        built = build_index(store.database, embedder)
        index_texts(store, corpus)
    if built is not None:
        print_message(
            f"Indexed: a search by meaning finds {percent(built.recall)} of the 10 nearest texts."
        )
