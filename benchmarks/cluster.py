"""Measure corpora on Ray: throughput beside one process, scaling, memory, and what the store takes.

    NEURALVIZ_DATA=… python benchmarks/cluster.py [throughput | scaling | store]

**throughput**: the same texts by `embed_corpus` in this process with all cores, and by Ray with one
embedder a core, in turns; what counts is the ratio within one run. The texts are of about one
length. Starting Ray and loading the models into its processes is told apart. **scaling**: one, two
and more embedders of one thread each, with mean pooling as far as there are cores, and with an
embedder that only waits, which shows what Ray and the store take. **store**: many rows of made-up
texts, read from Parquet files and embedded by an embedder that makes vectors up; measures the time,
the peak memory of this process and of each embedder, and the size of the store. Prints tables in
markdown.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.corpus import texts_of
from neuralviz.cluster.adding import add_on_cluster, find_layout, find_parts
from neuralviz.cluster.connecting import connected
from neuralviz.cluster.embedding import embed_on_cluster
from neuralviz.embedders import FOR_CORPORA, Embedder, embedder_spec, make_embedder
from neuralviz.embedders.base import missing_losses
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import vectors_table

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop

DIM = 384
ROWS_OF_FILE = 1_000_000
PEAK_EVERY = 0.5  # seconds
LIKE = 180, 220  # characters of the texts that throughput is measured with


class MadeUp(Embedder):
    """Vectors that cost next to nothing, or so much time.

    Args:
        seconds: that a batch waits.
        dim: values of a vector.
    """

    name = "made up"

    def __init__(self, seconds: float = 0.0, dim: int = DIM) -> None:
        self.seconds = seconds
        self._dim = dim

    @property
    def dim(self) -> int:
        """Values of a vector."""
        return self._dim

    @property
    def depends_on(self) -> dict[str, Any]:
        """The method."""
        return {"method": "made up", "dim": self._dim}

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        if self.seconds:
            time.sleep(self.seconds)
        rng = np.random.default_rng(len(read[0]))
        vectors = rng.standard_normal((len(read), self._dim), dtype=np.float32)
        return vectors, missing_losses(len(read))


def like_texts(n: int) -> list[str]:
    """``n`` different texts of about one length.

    The longest are embedded first, while no clock runs yet: of texts of all lengths, those that are
    counted would be the shorter ones.
    """
    every = dict.fromkeys(texts_of(20 * n))
    found = [text for text in every if LIKE[0] <= len(text) < LIKE[1]]
    if len(found) < n:
        sys.exit(f"There are only {len(found):,} texts of {LIKE[0]} to {LIKE[1]} characters.")
    return found[:n]


def timed(run: Iterator[Any], embedders: int = 1) -> tuple[float, float, int]:
    """Seconds until all embedders brought vectors, seconds from there to the last, and its texts.

    By then each is at its second unit: what several did at once is counted for none of them.
    """
    start = time.perf_counter()
    first, n_first, last = 0.0, 0, 0.0
    done = brought = 0
    for event in run:
        now = time.perf_counter()
        if event.done > done:
            last, done = now, event.done
            brought += 1
            if brought == embedders:
                first, n_first = now, done
    return first - start, last - first, done - n_first


def corpus_in(folder: str, texts: Sequence[str]) -> tuple[CorpusStore, Corpus]:
    """A store with one corpus."""
    store = CorpusStore(Path(folder))
    return store, store.add("benchmark", ReadTexts(tuple(texts)))


def measure_throughput(methods: Sequence[str], n_texts: int, n_learnt: int, rounds: int) -> None:
    """Texts a second in one process and by Ray."""
    print(
        "| method | one process, texts/s | Ray, texts/s | ratio | Ray ready after, s | "
        "texts an hour and core | core-hours for a billion texts |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for method in methods:
        n = n_learnt if embedder_spec(method, defaults=FOR_CORPORA).learns else n_texts
        embedder = make_embedder(embedder_spec(method, defaults=FOR_CORPORA))
        embedder.encode(texts_of(8))
        ratios, ours, theirs, ready = [], [], [], []
        texts = like_texts(n * rounds)
        for turn in range(rounds):
            part = texts[turn::rounds]
            with tempfile.TemporaryDirectory() as folder:
                store, corpus = corpus_in(folder, part)
                _, took, done = timed(embed_corpus(store, corpus, embedder))
                ours.append(done / took)
            with tempfile.TemporaryDirectory() as folder, connected() as cluster:
                store, corpus = corpus_in(folder, part)
                run = embed_on_cluster(store, corpus, embedder, cluster)
                before, took, done = timed(run, cluster.n_embedders)
                theirs.append(done / took)
                ready.append(before)
            ratios.append(theirs[-1] / ours[-1])
        hourly = 3600 * median(theirs) / (os.cpu_count() or 1)
        print(
            f"| {method} | {median(ours):,.1f} | {median(theirs):,.1f} | {median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {median(ready):.1f} | {hourly:,.0f} | "
            f"{1e9 / hourly:,.0f} |",
            flush=True,
        )


def measure_scaling(n_texts: int, most: int, rounds: int) -> None:
    """Throughput by the number of embedders, as a multiple of one's."""
    cores = os.cpu_count() or 1
    numbers = [n for n in (1, 2, 4, 8, 16) if n <= most]
    cases: list[tuple[str, Embedder, list[int]]] = [
        ("waits 0.25 s a batch", MadeUp(0.25), numbers),
        ("mean", make_embedder("mean"), [n for n in numbers if n <= cores]),
    ]
    print("| embedder | embedders of one thread | texts/s | of one |\n| --- | --- | --- | --- |")
    for name, embedder, some in cases:
        rates: dict[int, list[float]] = {n: [] for n in some}
        for _ in range(rounds):
            for n in some:
                with tempfile.TemporaryDirectory() as folder, connected(n_cpus=max(some)) as on:
                    store, corpus = corpus_in(folder, texts_of(n_texts))
                    run = embed_on_cluster(store, corpus, embedder, replace(on, n_cpus=n))
                    _, took, done = timed(run, n)
                    rates[n].append(done / took)
        for n in some:
            of_one = [many / one for many, one in zip(rates[n], rates[1], strict=True)]
            print(f"| {name} | {n} | {median(rates[n]):,.1f} | {median(of_one):.2f} |")


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The largest memory of this process's children, bytes, by what they are."""
    found: dict[str, int] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(PEAK_EVERY):
            for process in psutil.Process().children(recursive=True):
                try:
                    title = process.cmdline()[0] if process.cmdline() else ""
                    if title.startswith("ray::"):
                        memory = process.memory_info()
                        own = memory.rss - memory.shared
                        name = title.split("(")[0].removeprefix("ray::")
                        name = "embedder" if "UnitEmbedder" in title else name
                        found[name] = max(found.get(name, 0), own)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def write_files(folder: Path, rows: int) -> None:
    """Made-up texts as Parquet files."""
    folder.mkdir()
    for start in range(0, rows, ROWS_OF_FILE):
        numbers = range(start, min(rows, start + ROWS_OF_FILE))
        table = pa.table(
            {
                "text": [f"Text {i} of the made-up corpus, about topic {i % 97}" for i in numbers],
                "topic": [f"topic {i % 97}" for i in numbers],
            }
        )
        parquet.write_table(table, folder / f"{start:012d}.parquet", row_group_size=200_000)


def size_of(path: Path) -> int:
    """Bytes of a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def measure_store(rows: int, dim: int, where: str | None) -> None:
    """Time, memory and disk of many rows."""
    with tempfile.TemporaryDirectory(dir=where) as folder:
        files = Path(folder) / "files"
        with ProcessPoolExecutor(1, get_context("spawn")) as others:  # its memory does not count
            others.submit(write_files, files, rows).result()
        store = CorpusStore(Path(folder) / "corpora")
        embedder = MadeUp(dim=dim)
        with connected() as cluster, peaks() as found:
            start = time.perf_counter()
            parts = find_parts([str(files)])
            added = add_on_cluster(store, "made up", parts, find_layout(parts, None, None))
            read = time.perf_counter() - start
            driver_read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start = time.perf_counter()
            *_, last = embed_on_cluster(store, added.corpus, embedder, cluster)
            embedded = time.perf_counter() - start
        assert last.done == last.total
        table = store.database.place(vectors_table(last.embedder))
        lance.dataset(table).cleanup_old_versions(timedelta(0))  # as an hour later
        raw = rows * dim * 4
        driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print("| | |\n| --- | --- |")
        print(f"| rows | {rows:,} of {dim} values |")
        print(f"| read and saved | {read:,.0f} s, {rows / read:,.0f} texts/s |")
        rate = f"{embedded:,.0f} s, {rows / embedded:,.0f} texts/s"
        print(f"| embedded, committed and compacted | {rate} |")
        after = f"({driver_read / 1024:,.0f} after reading)"
        print(f"| peak of the driver | {driver / 1024:,.0f} MiB {after} |")
        for name, most in sorted(found.items(), key=lambda one: -one[1])[:4]:
            print(f"| peak of a process “{name}” | {most / 2**20:,.0f} MiB |")
        print(f"| vectors on disk | {size_of(table) / raw:.2f} × the raw vectors |")
        print(f"| whole store | {size_of(store.folder) / raw:.2f} × the raw vectors |\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ["throughput", "scaling", "store"]
    parser.add_argument("part", nargs="?", choices=parts, help="default: all")
    parser.add_argument("--texts", type=int, default=4000, help="texts per round, mean pooling")
    parser.add_argument("--learnt", type=int, default=256, help="texts per round, neural")
    parser.add_argument("--methods", nargs="+", default=["mean", "sbert-wk", "neural"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedders", type=int, default=4, help="most embedders of scaling")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of store")
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--folder", help="for the store that is measured; default: temporary")
    args = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores\n")
    if args.part in (None, "throughput"):
        measure_throughput(args.methods, args.texts, args.learnt, args.rounds)
        print()
    if args.part in (None, "scaling"):
        measure_scaling(args.texts, args.embedders, args.rounds)
        print()
    if args.part in (None, "store"):
        measure_store(args.rows, args.dim, args.folder)


if __name__ == "__main__":
    main()
