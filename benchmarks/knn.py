"""Measure the k-NN accuracy of three methods on AG News.

    NEURALVIZ_DATA=… python benchmarks/knn.py

Embeds the corpus as `neuralviz corpus add` does; each text is given the label of its 10 nearest
other texts by cosine distance. Prints a table in markdown with the time that embedding took.
Micro-tuning takes long, so the neural embedding is measured on an even sample; the other methods
are measured on the same sample too.
Embeddings are saved in ``--store`` and reused; the time is then that of the missing ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.embedders import FOR_CORPORA, Embedder, embedder_spec, make_embedder
from neuralviz.maps.neighbours import find_neighbours, knn_right
from neuralviz.maps.shares import wilson_interval
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus

K = 10
METHODS = ("mean", "sbert-wk", "neural")
SLOW = ("neural",)


def ag_news() -> ReadTexts:
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        sys.exit("Needs AG News. Set NEURALVIZ_DATA to the folder that contains ag_news/.")
    return read_texts(Source("test.csv", Path(folder) / "ag_news" / "test.csv"), column="text")


def every(read: ReadTexts, n: int) -> ReadTexts:
    """An even sample of ``n`` texts with their labels."""
    rows = [len(read.texts) * i // n for i in range(n)]
    labels = {name: tuple(values[i] for i in rows) for name, values in read.labels.items()}
    return ReadTexts(tuple(read.texts[i] for i in rows), labels=labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--sample", type=int, default=1000, help="number of texts for the slow methods"
    )
    parser.add_argument("--limit", type=int, help="use only LIMIT texts, evenly spaced")
    parser.add_argument("--store", type=Path, help="folder to save the embeddings in")
    parser.add_argument("--threads", type=int, help="number of PyTorch threads")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    read = ag_news()
    if args.limit:
        read = every(read, args.limit)
    sample = every(read, min(args.sample, len(read.texts)))
    print(f"AG News, {K}-NN accuracy (95% interval), {torch.get_num_threads()} PyTorch threads\n")
    n_all, n_sample = len(read.texts), len(sample.texts)
    print(f"| method | {n_all:,} texts | time | sample of {n_sample:,} | time |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        store = CorpusStore(args.store or Path(folder))
        for method in METHODS:
            spec = embedder_spec(method, defaults=FOR_CORPORA)
            embedder = make_embedder(spec)
            embedder.encode(read.texts[:8])
            cells = ["–", "–"] if method in SLOW else measure(store, method, embedder, read)
            cells += measure(store, method, embedder, sample)
            print(f"| {method} ({spec.model_id}) | {' | '.join(cells)} |", flush=True)


def measure(store: CorpusStore, method: str, embedder: Embedder, texts: ReadTexts) -> list[str]:
    """Accuracy with its interval, and the time that embedding took."""
    corpus = store.add(f"{method} {len(texts.texts)}", texts)
    start = time.perf_counter()
    *_, progress = embed_corpus(store, corpus, embedder)
    seconds = time.perf_counter() - start
    vectors = store.vectors.get(progress.embedder, store.keys(corpus))
    near = find_neighbours(vectors, K)
    right = knn_right(near, list(store.labels(corpus, "label")), K)
    interval = wilson_interval(int(right.sum()), len(right))
    low, high = (f"{100 * bound:.1f}" for bound in interval)
    is_embedded = progress.found == progress.total
    return [
        f"{100 * right.mean():.1f}% ({low} to {high})",
        "included at left" if is_embedded else f"{seconds:,.0f} s",
    ]


if __name__ == "__main__":
    main()
