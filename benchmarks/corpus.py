"""What keeping a corpus costs: mean-pooled vectors into the store against the encoder alone.

    NEURALVIZ_DATA=… python benchmarks/corpus.py

Texts are those of AG News where ``NEURALVIZ_DATA`` points at the data, else made from the sample
data. `embed_corpus` reads them from the store, embeds, and keeps the vectors; beside it runs
`SentenceTransformer.encode`, called directly on the same texts, in turns. Then a corpus of 100,000
points is opened. Prints tables in markdown: what counts is the ratio, measured in one run.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.corpus.embedding import BATCH_SIZE, embed_corpus
from neuralviz.corpus.reading import ReadTexts
from neuralviz.corpus.store import CorpusStore
from neuralviz.embedders import make_embedder
from neuralviz.models import MINILM, load_sentence_transformer
from neuralviz.paths import sample_data


def texts_of(n: int) -> list[str]:
    """``n`` different texts."""
    folder = os.environ.get("NEURALVIZ_DATA")
    path = Path(folder) / "ag_news" / "test.csv" if folder else sample_data() / "topics.csv"
    with path.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    copies = -(-n // len(texts))
    return [f"{text} {copy}" if copy else text for copy in range(copies) for text in texts][:n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=1500, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of torch")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)

    encoder, _ = load_sentence_transformer(MINILM)
    embedder = make_embedder("mean")
    ours, direct = [], []
    texts = texts_of(args.texts * args.rounds)
    encoder.encode(texts[:64])
    embedder.encode(texts[:64])
    for turn in range(args.rounds):
        part = texts[turn :: args.rounds]
        with tempfile.TemporaryDirectory() as folder:
            store = CorpusStore(Path(folder))
            corpus = store.add("benchmark", ReadTexts(tuple(part)))
            start = time.perf_counter()
            for _ in embed_corpus(store, corpus, embedder):
                pass
            ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        encoder.encode(part, batch_size=BATCH_SIZE, show_progress_bar=False)
        direct.append(time.perf_counter() - start)
    n = len(texts) / args.rounds
    print(f"{n:,.0f} texts a round, {torch.get_num_threads()} threads of torch, medians\n")
    print("| | texts a second |")
    print("| --- | --- |")
    print(f"| `SentenceTransformer.encode` | {n / median(direct):,.0f} |")
    print(f"| `embed_corpus`, store included | {n / median(ours):,.0f} |")
    ratio = median(d / o for d, o in zip(direct, ours, strict=True))
    print(f"\nThroughput with the store: {100 * ratio:.0f} % of the encoder's own.")


if __name__ == "__main__":
    main()
