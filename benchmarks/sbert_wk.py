"""Compare the time of SBERT-WK with that of the forward pass it needs.

    python benchmarks/sbert_wk.py

Embeds 1,000 sentences: those of STS-B dev if ``NEURALVIZ_DATA`` is set, otherwise concatenated
pairs of sentences from the sample data. In every round, the forward pass alone, mean pooling and
both variants of SBERT-WK take turns on the same sentences. Prints a table in markdown. What counts
is the ratio, the median over the rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.layers.sbert_wk import sbert_wk_pooling
from neuralviz.layers.settings import VARIANTS, check_sbert_wk
from neuralviz.layers.states import Pooling, layer_states, make_pooling, pool_texts
from neuralviz.models import load_text_model, tokenize
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source

ROUNDS = 7
REQUIRED = 1.3


def sentences(n: int) -> list[str]:
    """``n`` different sentences."""
    folder = os.environ.get("NEURALVIZ_DATA")
    samples = Path(__file__).parents[1] / "sample_data" / "scored_pairs.csv"
    path = Path(folder) / "stsb" / "dev.csv" if folder else samples
    pairs = read_pairs(Source(path.name, path.read_bytes()))
    texts = list(dict.fromkeys([*pairs.sentences1, *pairs.sentences2]))
    step = 1
    while len(texts) < n:
        joined = zip(pairs.sentences1, pairs.sentences2[step:], strict=False)
        texts += [f"{first} {second}" for first, second in joined]
        step += 1
    return texts[:n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=1000, help="number of texts")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="Hub ID or folder")
    args = parser.parse_args()

    model = load_text_model(args.model)
    texts = tokenize(model, sentences(args.texts))

    def forward() -> None:
        for _ in layer_states(model, texts):
            pass

    def pooled(pooling: Pooling) -> Callable[[], object]:
        return lambda: pool_texts(model, texts, [pooling])

    runs = {
        "forward pass alone": forward,
        "mean": pooled(make_pooling(model, "mean", (model.n_blocks,))),
    }
    for variant in VARIANTS:
        settings = check_sbert_wk(model, variant=variant)
        runs[f"sbert-wk, {variant}"] = pooled(sbert_wk_pooling(settings))
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(args.rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)

    plain = np.array(seconds["forward pass alone"])
    machine = f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    of = f"{model.id}, {len(texts):,} texts, {args.rounds} rounds"
    print(f"{machine}, {model.device.type}, {of}\n")
    print("| | ms per text | ratio |\n| --- | --- | --- |")
    for name, values in seconds.items():
        ratio = float(np.median(np.array(values) / plain))
        said = f"{ratio:.2f}" + (f" (required: {REQUIRED})" if name.startswith("sbert") else "")
        print(f"| {name} | {1e3 * np.median(values) / len(texts):.2f} | {said} |")


if __name__ == "__main__":
    main()
