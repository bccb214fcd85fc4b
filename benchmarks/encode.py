"""How much faster `NeuralEmbedder.encode` is than the plain loop over the whole model.

    NEURALVIZ_DATA=… python benchmarks/encode.py

Sentences are those of STS-B dev where ``NEURALVIZ_DATA`` points at the data, else made from the
example texts. The plain loop, the one that the tests compare with, tunes a copy of the whole model
on one text at a time; it is run on an even sample of the same sentences, in turns with `encode`.
Prints a table in markdown: what counts is the ratio, measured in one run.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz
from neuralviz.micro_tuning import TuningSettings
from neuralviz.models import LanguageModel
from tests.support.plain_loop import plain_embedding, plain_micro_tune

ROUNDS = 3


def sentences(n: int) -> list[str]:
    """The first ``n`` sentences to embed."""
    folder = os.environ.get("NEURALVIZ_DATA")
    if folder:
        return pd.read_csv(Path(folder) / "stsb" / "dev.csv")["sentence1"].tolist()[:n]
    subjects = ["A man", "Two dogs", "The committee", "A young woman", "Some children"]
    verbs = ["is watching", "crossed", "talked about", "left", "is painting"]
    objects = ["the old bridge.", "a field of snow.", "the price of oil.", "a small red boat."]
    made = [f"{s} {v} {o}" for s in subjects for v in verbs for o in objects]
    return (made * (n // len(made) + 1))[:n]


def plain(model: LanguageModel, text: str, settings: TuningSettings) -> np.ndarray:
    """[dim] embedding by the plain loop: the whole model, one text, a fresh copy of the weights."""
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    deltas, _ = plain_micro_tune(
        model.network, model.tokenizer, [ids], settings.layers, epochs=settings.epochs
    )
    return plain_embedding(deltas)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--plain-texts", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    model = neuralviz.load_model("bundled")
    embedder = neuralviz.NeuralEmbedder(model, epochs=args.epochs)
    texts = sentences(args.texts)
    sample = texts[:: max(1, len(texts) // args.plain_texts)][: args.plain_texts]
    embedder.encode(sample[:4])

    fast_seconds = plain_seconds = 0.0
    fast, slow = [], []
    for turn in range(ROUNDS):
        part = texts[turn::ROUNDS]
        start = time.perf_counter()
        fast.append(embedder.encode(part))
        fast_seconds += time.perf_counter() - start
        start = time.perf_counter()
        slow += [plain(model, text, embedder.settings) for text in sample[turn::ROUNDS]]
        plain_seconds += time.perf_counter() - start
    by_text = dict(
        zip([t for i in range(ROUNDS) for t in texts[i::ROUNDS]], np.concatenate(fast), strict=True)
    )
    order = [text for i in range(ROUNDS) for text in sample[i::ROUNDS]]
    cosine = min(float(by_text[text] @ vector) for text, vector in zip(order, slow, strict=True))

    plain_ms, fast_ms = 1e3 * plain_seconds / len(sample), 1e3 * fast_seconds / len(texts)
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, "
          f"{args.epochs} epochs, {model.device.type}\n")  # fmt: skip
    print("| | texts | ms a text | throughput |\n| --- | --- | --- | --- |")
    print(f"| plain loop over the whole model | {len(sample)} | {plain_ms:.0f} | 1 |")
    print(f"| `encode`, exact | {len(texts)} | {fast_ms:.0f} | {plain_ms / fast_ms:.1f} × |")
    print(f"\nlowest cosine between the two: {cosine:.6f}")


if __name__ == "__main__":
    main()
