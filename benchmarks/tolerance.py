"""Measure how well *fast* and *fast+bf16* keep the tolerance.

    NEURALVIZ_DATA=… python benchmarks/tolerance.py [--models 1500] [--texts 500]

Two tables in markdown. The first is of models with random weights, whose words are drawn at random,
too, where the estimate is at its worst: how many texts lose more than the tolerance, and how many
times as much. The second is of the bundled model on sentences of the STS benchmark's training set
and on titles of AG News (made-up sentences if ``NEURALVIZ_DATA`` is not set): how far the cosine
similarity to *exact* falls below 1, by number of epochs, at the default tolerance.

With 1,500 models, which is the default, it takes about 8 minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz
from neuralviz.micro_tuning import MicroTuning, micro_tune
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE
from neuralviz.models import LanguageModel
from neuralviz.paths import sample_data
from tests.support.random_cases import case_for_fast

EPOCHS = (5, 10)
PRECISIONS = ("fast", "fast+bf16")


def tuned(model: LanguageModel, texts: list[str], **options: Any) -> MicroTuning:
    *_, last = micro_tune(model, texts, **options)
    return last.result


def random_models(n: int) -> None:
    """Print how often texts on ``n`` random models lose more than the tolerance."""
    lost = []
    for seed in range(n):
        case, tolerance = case_for_fast(seed)
        if not case.has_frozen_tail(tolerance):
            continue
        model = case.model()
        options = case.options(model)
        exact = tuned(model, case.texts, **options)
        fast = tuned(model, case.texts, **options, precision="fast", tolerance=tolerance)
        lost.extend((1 - np.sum(exact.embeddings * fast.embeddings, axis=1)) / tolerance)
    print("| texts on random models | beyond the tolerance | times the tolerance, largest |")
    print("| --- | --- | --- |")
    print(f"| {len(lost):,} | {np.sum(np.array(lost) > 1)} | {max(lost):.2g} |\n", flush=True)


def samples(n: int) -> dict[str, list[str]]:
    """``n`` sentences and half as many titles, the same in every run."""
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        made_up = pd.read_csv(sample_data() / "scored_pairs.csv")["sentence1"]
        return {"made-up sentences": made_up[:n].tolist()}
    sentences = pd.read_csv(Path(folder) / "stsb" / "train.csv")["sentence1"].drop_duplicates()
    titles = pd.read_csv(Path(folder) / "ag_news" / "test.csv")["title"].drop_duplicates()
    return {
        "sentences": sentences.sample(n, random_state=1).tolist(),
        "titles": titles.sample(n // 2, random_state=1).tolist(),
    }


def bundled(n: int) -> None:
    """Print the lowest cosine similarity to exact of the bundled model's embeddings."""
    print("| bundled model | epochs | precision | lowest cosine to exact | beyond the tolerance |")
    print("| --- | --- | --- | --- | --- |")
    model = neuralviz.load_model("bundled")
    for name, texts in samples(n).items():
        for epochs in EPOCHS:
            exact = neuralviz.NeuralEmbedder(model, epochs=epochs).encode(texts)
            for precision in PRECISIONS:
                embedder = neuralviz.NeuralEmbedder(model, epochs=epochs, precision=precision)
                cosines = np.sum(exact * embedder.encode(texts), axis=1)
                beyond = np.sum(1 - cosines > DEFAULT_TOLERANCE)
                print(
                    f"| {len(texts)} {name} | {epochs} | {precision} | {cosines.min():.4f} "
                    f"| {beyond} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=int, default=1500, help="number of random models drawn")
    parser.add_argument("--texts", type=int, default=500, help="number of sentences")
    args = parser.parse_args()
    random_models(args.models)
    bundled(args.texts)


if __name__ == "__main__":
    main()
