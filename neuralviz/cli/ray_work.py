"""The corpus commands with ``--ray``. Imports Ray."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from neuralviz.cli.console import print_message, print_notes, progress_bars, status
from neuralviz.cluster import LOCAL
from neuralviz.cluster.adding import Layout, Parts, add_on_cluster, find_layout, find_parts
from neuralviz.cluster.connecting import Cluster, connected
from neuralviz.cluster.embedding import KILLED, LeftOut, embed_on_cluster, place_on_cluster
from neuralviz.embedders import Embedder
from neuralviz.errors import ShouldStop
from neuralviz.reading.texts import shorten_list
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import EmbeddingEvent
from neuralviz.store.index import build_index, index_texts
from neuralviz.store.vectors import KEY_BYTES, KeptEmbedder
from neuralviz.words import many, percent

MAX_NAMED = 5  # skipped texts named in a message


@contextmanager
def open_cluster(address: str) -> Iterator[RayEmbedding]:
    with connected(address) as cluster:
        if address != LOCAL:
            gpus = f" and {many(cluster.n_gpus, 'GPU')}" if cluster.n_gpus else ""
            size = f"{many(cluster.n_nodes, 'machine')}, {many(cluster.n_cpus, 'core')}{gpus}"
            print_message(f"Connected to the cluster: {size}.")
        yield RayEmbedding(cluster)


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

    place = staticmethod(place_on_cluster)

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
        skipped, self._left_out = sorted(self._left_out.items()), {}
        if not skipped:
            return corpus, 0
        unfit = [key for _, (key, reason) in skipped if reason != KILLED]
        n_missing, advice = len(skipped) - len(unfit), ""
        if n_missing:
            advice = " Perhaps there was too little memory; run the same command again."
        if unfit:
            keys = np.frombuffer(b"".join(unfit), f"S{KEY_BYTES}")
            remaining = store.leave_out(corpus, keys)
            if remaining is None:
                n_missing = len(skipped)
                advice += " The corpus has maps that show them, so this method can make no map."
            corpus = remaining or corpus
        reasons = [f"text {row + 1:,} {reason.rstrip('.')}" for row, (_, reason) in skipped]
        named = "; ".join(shorten_list(reasons, MAX_NAMED)).rstrip(".")
        texts = f"{many(len(skipped), 'text')} that {label} cannot embed"
        print_message(f"Skipped {texts}: {named}.{advice}")
        return corpus, n_missing


def index_corpus(store: CorpusStore, corpus: Corpus, embedder: KeptEmbedder) -> None:
    """Build the index of a corpus's vectors, and print its recall."""
    with status("Building the index …"):
        built = build_index(store.database, embedder)
        index_texts(store, corpus)
    if built is not None:
        print_message(
            f"Indexed: a search by meaning finds {percent(built.recall)} of the 10 nearest texts."
        )
