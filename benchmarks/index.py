"""Measure how much of the nearest an index of vectors finds, and how long that takes.

    python benchmarks/index.py [--rows 1000000] [--dim 384] [--folder DIR]

Vectors are made up like embeddings of texts: 200 topics of very different sizes, each of 20 smaller
ones, in 24 dimensions that are bent into ``--dim``, with noise on every value. They go to the store
block by block, and the index is built and searched as neuralviz does it. Queries are vectors of the
same kind that are not in the store; what is nearest to them comes from a look at all vectors.
Prints a table in markdown.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.store.corpora import CorpusStore
from neuralviz.store.index import (
    INDEXED_FROM,
    VectorIndex,
    build_index,
    nearest_keys,
    vectors_of_keys,
)
from neuralviz.store.vectors import KeptEmbedder, text_keys, vector_rows, vectors_table

BLOCK = 100_000  # vectors
TOPICS, SMALLER, LATENT = 200, 20, 24
NOISE = 0.25  # on each value of a vector
QUERIES, NEIGHBOURS = 300, 10
KEYS = 1000  # that are looked up
SEED = 0
GOALS = {"recall": 0.95, "query": 20.0}  # share, milliseconds


class MadeUp:
    """Vectors by topic.

    Args:
        dim: values of a vector.
    """

    def __init__(self, dim: int) -> None:
        rng = np.random.default_rng(SEED)
        self._topics = rng.normal(size=(TOPICS, LATENT))
        self._smaller = 0.5 * rng.normal(size=(TOPICS, SMALLER, LATENT))
        shares = np.arange(1, TOPICS + 1) ** -0.7
        self._shares = shares / shares.sum()
        self._bend = rng.normal(size=(LATENT, dim)).astype(np.float32) / LATENT**0.5
        self._mix = rng.normal(size=(dim, dim)).astype(np.float32) / dim**0.5
        self._dim = dim

    def draw(self, n: int, seed: int) -> np.ndarray:
        """[n, dim] float32 of length 1."""
        rng = np.random.default_rng([SEED, seed])
        topic = rng.choice(TOPICS, n, p=self._shares)
        latent = self._topics[topic] + self._smaller[topic, rng.integers(SMALLER, size=n)]
        latent += 0.35 * rng.normal(size=latent.shape)
        vectors = np.tanh(latent.astype(np.float32) @ self._bend) @ self._mix
        vectors += NOISE * rng.standard_normal(vectors.shape, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def keep_vectors(store: CorpusStore, n: int, dim: int) -> KeptEmbedder:
    """Put vectors into the store, block by block."""
    embedder = store.vectors.restore("made-up", "", dim)
    made_up = MadeUp(dim)
    for number, start in enumerate(range(0, n, BLOCK), 1):
        size = min(BLOCK, n - start)
        keys = text_keys(str(row) for row in range(start, start + size))
        rows = vector_rows(keys, made_up.draw(size, number), np.full((size, 2), np.nan))
        with store.database.lock():
            store.database.open(vectors_table(embedder)).add(rows)
    return embedder


def exact_products(store: CorpusStore, embedder: KeptEmbedder, queries: np.ndarray) -> np.ndarray:
    """[query, neighbour] products of queries with the vectors nearest to them, the least first."""
    best = np.full((len(queries), 0), -np.inf, dtype=np.float32)
    for _, vectors in vectors_of_keys(store.database, embedder):
        best = np.concatenate([best, queries @ vectors.T], axis=1)
        best = np.partition(best, -NEIGHBOURS, axis=1)[:, -NEIGHBOURS:]
    return np.sort(best, axis=1)


def searches(
    store: CorpusStore, embedder: KeptEmbedder, index: VectorIndex, queries: np.ndarray
) -> Iterator[tuple[np.ndarray, float]]:
    """[found, dim] vectors that are found near each query, and the milliseconds it took."""
    table = store.database.open(vectors_table(embedder))
    for query in queries:
        start = time.perf_counter()
        _, found = nearest_keys(table, index, query, NEIGHBOURS)
        yield found, 1000 * (time.perf_counter() - start)


def megabytes(folder: Path) -> float:
    """What the files in a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def measure(folder: Path, n: int, dim: int) -> None:
    """Keep vectors, build their index, search it, and print what came of it."""
    store = CorpusStore(folder)
    start = time.perf_counter()
    embedder = keep_vectors(store, n, dim)
    kept = time.perf_counter() - start
    start = time.perf_counter()
    index = build_index(store.database, embedder)
    built = time.perf_counter() - start
    if index is None:
        raise SystemExit(f"No index below {INDEXED_FROM:,} vectors.")

    queries = MadeUp(dim).draw(QUERIES, 0)
    start = time.perf_counter()
    exact = exact_products(store, embedder, queries)
    looked = time.perf_counter() - start
    found, times = zip(*searches(store, embedder, index, queries), strict=True)
    products = [vectors @ query for vectors, query in zip(found, queries, strict=True)]
    hits = [(one >= least - 1e-6).sum() for one, least in zip(products, exact[:, 0], strict=True)]
    recall = sum(hits) / (QUERIES * NEIGHBOURS)

    keys = text_keys(str(row) for row in np.random.default_rng(SEED).choice(n, KEYS, False))
    start = time.perf_counter()
    store.vectors.get(embedder, keys)
    looked_up = 1000 * (time.perf_counter() - start)

    size = megabytes(store.database.place(vectors_table(embedder)) / "_indices")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows = [
        ("vectors", f"{n:,} × {dim}"),
        ("saving them", f"{kept:,.0f} s"),
        ("building and measuring the index", f"{built:,.0f} s"),
        ("size of the index", f"{size:,.0f} MB"),
        ("groups; a query looks through", f"{index.n_groups:,}; {index.probes}"),
        ("vectors compared by their values", f"{index.refine * NEIGHBOURS:,}"),
        ("recall at 10, as neuralviz measured it", f"{index.recall:.1%}"),
        (f"recall at 10 of {QUERIES} new queries", f"{recall:.1%}"),
        ("a query, median", f"{np.median(times):.1f} ms"),
        ("a query, 95% below", f"{np.quantile(times, 0.95):.1f} ms"),
        ("the first query", f"{times[0]:.1f} ms"),
        (f"a look at all vectors, for {QUERIES} queries", f"{looked:.1f} s"),
        (f"vectors of {KEYS:,} texts, looked up", f"{looked_up:.0f} ms"),
        ("memory at most", f"{peak:.1f} GB"),
    ]
    print("| | |")
    print("| --- | --- |")
    for name, value in rows:
        print(f"| {name} | {value} |")
    is_good = recall >= GOALS["recall"] and np.median(times) < GOALS["query"]
    print(f"\nGoals (95% found, 20 ms a query): {'met' if is_good else 'not met'}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--folder", type=Path, help="where the store is made; it is deleted")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure(Path(folder), given.rows, given.dim)


if __name__ == "__main__":
    main()
