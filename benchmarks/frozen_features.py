"""The ladder of similarity models on STS-B, and what its features cost.

    NEURALVIZ_DATA=… python benchmarks/frozen_features.py --model all-MiniLM-L6-v2
    NEURALVIZ_DATA=… python benchmarks/frozen_features.py --cost

Learns from the train pairs, chooses epochs by the dev pairs, and looks at the test pairs once.
Features are kept in ``--folder``, so that a second run begins with the rungs. Prints tables in
markdown: means over the seeds and their range. ``--cost`` compares the features of all train pairs,
kept on disk, with the forward passes alone, one after the other in turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.embedders.pooled import LayerwiseEmbedder
from neuralviz.evaluation.ladder import own_embeddings, train_ladder
from neuralviz.evaluation.ladder_results import Ladder, LadderSettings, RungEvent, RungResult
from neuralviz.layers.states import layer_states
from neuralviz.models import MINILM, load_text_model, tokenize
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.store.database import Database
from neuralviz.store.vectors import KeptVectors
from neuralviz.training.similarity.data import different_texts, look_up, make_room, split_pairs
from neuralviz.training.similarity.settings import PUBLISHED, RUNG_NAMES, RUNGS

SEEDS = (1, 2, 3)
REPEATS = 5  # of both, in turns


def main() -> None:
    """Fill the table of a model, or measure the cost of features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MINILM, help="frozen model")
    parser.add_argument("--pooling", default="mean")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--folder", type=Path, default=Path("runs/frozen-features"))
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--cost", action="store_true", help="time features in place of a table")
    options = parser.parse_args()
    data = os.environ.get("NEURALVIZ_DATA")
    if not data:
        sys.exit("Set NEURALVIZ_DATA to the folder of the real data.")
    if options.threads:
        torch.set_num_threads(options.threads)
    train, dev, test = (
        read_pairs(Source.from_path(Path(data) / "stsb" / f"{name}.csv"))
        for name in ("train", "dev", "test")
    )
    if options.cost:
        print_cost(options.model, train)
        return
    split = split_pairs(train, dev, test)
    model = load_text_model(options.model)
    settings = LadderSettings(pooling=options.pooling, seeds=tuple(options.seeds))
    store = KeptVectors(Database(options.folder))
    ladder = Ladder()
    for event in train_ladder(
        model, split, settings, store, own_embedders=own_embeddings(model, split)
    ):
        ladder = ladder.having([event])
        if isinstance(event, RungEvent | RungResult):
            print(list(ladder.curves)[-1], file=sys.stderr, flush=True)
    print(f"\n### {options.model}, {options.pooling} pooling\n")
    print(" ".join(split.notes) + f" {torch.get_num_threads()} thread(s).\n")
    print_table(ladder)


def print_table(ladder: Ladder) -> None:
    """All rungs and what they are compared with."""
    print("| | dev Spearman | test Spearman | test Pearson | gpt2-medium | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for one in ladder.baselines.values():
        test = one.measured.correlation
        print(f"| {one.name} | {one.dev:.3f} | {test.spearman:.3f} | {test.pearson:.3f} | | |")
    for rung in RUNGS:
        found = ladder.of_rung(rung)
        columns = [
            with_range([one.trained.dev for one in found]),
            with_range([one.measured.correlation.spearman for one in found]),
            with_range([one.measured.correlation.pearson for one in found]),
            f"{PUBLISHED[rung][1]:.3f}",
            f"{np.mean([one.seconds for one in found]):.0f}",
        ]
        print(f"| {RUNG_NAMES[rung]} | {' | '.join(columns)} |")
    for rung in RUNGS:
        heard = np.mean([one.trained.layer_shares for one in ladder.of_rung(rung)], axis=0)
        print(
            f"\nHeard by {RUNG_NAMES[rung]}: {', '.join(f'{share:.0%}' for share in heard)}", end=""
        )
    lost = [one.trained.losses for one in ladder.of_rung("autoencoder")]
    losses = np.mean([one for one in lost if one is not None], axis=0)
    print(f"\nLost by the autoencoders: {', '.join(f'{share:.0%}' for share in losses)}")


def with_range(values: Sequence[float]) -> str:
    """The mean, and lowest and highest value where there are several."""
    mean = f"{np.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.3f} … {max(values):.3f})"


def print_cost(model_id: str, pairs: ScoredPairs) -> None:
    """Features at all layers against the forward passes alone."""
    model = load_text_model(model_id)
    embedder, texts = LayerwiseEmbedder(model), different_texts([pairs])
    with TemporaryDirectory() as folder:  # what is loaded when first used
        vectors = make_room(64, embedder)
        for _ in look_up(vectors, embedder, texts[:64], KeptVectors(Database(Path(folder)))):
            pass
    ratios = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in layer_states(model, tokenize(model, texts)):
            pass
        alone = time.perf_counter() - began
        with TemporaryDirectory() as folder:
            began, vectors = time.perf_counter(), make_room(len(texts), embedder)
            for _ in look_up(vectors, embedder, texts, KeptVectors(Database(Path(folder)))):
                pass
            kept = time.perf_counter() - began
        ratios.append(kept / alone)
        print(f"forward passes {alone:.1f} s, features {kept:.1f} s", file=sys.stderr, flush=True)
    print(
        f"{len(pairs):,} pairs, {len(texts):,} texts, {model_id}, {torch.get_num_threads()} "
        f"thread(s): features, kept on disk, take {statistics.median(ratios):.2f} times the "
        f"forward passes (median of {REPEATS}; {min(ratios):.2f} … {max(ratios):.2f})."
    )


if __name__ == "__main__":
    main()
