"""Measure how well cosine similarities agree with human scores on STS-B, dev and test.

    NEURALVIZ_DATA=… python benchmarks/sts.py

Every sentence is embedded once, and the cosine similarity of each pair is correlated with its
score. Nothing is tuned on dev: all settings are the methods' defaults. Prints a table in markdown,
100 × the coefficients. Methods that micro-tune take minutes each.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.embedders import embedder_spec, make_embedder
from neuralviz.evaluation.correlation import Correlation, correlate
from neuralviz.models import BUNDLED, MINILM
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source

METHODS: list[tuple[str, str | None, dict[str, str]]] = [
    ("mean", MINILM, {}),
    ("cls", MINILM, {}),
    ("sep", MINILM, {}),
    ("last", MINILM, {}),
    ("sbert-wk", MINILM, {"variant": "authors"}),
    ("sbert-wk", MINILM, {"variant": "paper"}),
    ("avg", BUNDLED, {}),
    ("mean", BUNDLED, {}),
    ("cls", BUNDLED, {}),
    ("sbert-wk", BUNDLED, {"variant": "authors"}),
    ("sbert-wk", BUNDLED, {"variant": "paper"}),
    ("neural", BUNDLED, {"epochs": "10"}),
    ("neural", BUNDLED, {"epochs": "10", "precision": "fast"}),
    ("neural", BUNDLED, {"epochs": "10", "precision": "bf16"}),
    ("neural", BUNDLED, {"epochs": "10", "precision": "fast+bf16"}),
    ("neural", BUNDLED, {"epochs": "5"}),
    ("neural", BUNDLED, {"epochs": "1"}),
    ("neural-1", BUNDLED, {}),
    ("gradient", BUNDLED, {}),
    ("cls-tuned", BUNDLED, {}),
    ("avg-tuned", BUNDLED, {}),
    ("cls-diff", BUNDLED, {}),
    ("avg-diff", BUNDLED, {}),
    ("neural+mean", None, {}),
]
"""Method, model (none: each part's own) and typed options, in the order of the table."""


def pairs_of(split: str, limit: int | None) -> ScoredPairs:
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        sys.exit("Needs the STS benchmark. Set NEURALVIZ_DATA to the folder that contains stsb/.")
    path = Path(folder) / "stsb" / f"{split}.csv"
    pairs = read_pairs(Source(path.name, path.read_bytes()))
    return pairs if limit is None else pairs.first(limit)


def agreement(
    encode: Callable[[list[str]], np.ndarray], splits: list[ScoredPairs]
) -> list[Correlation]:
    """Products against scores, split by split; every sentence is embedded once."""
    texts = list(dict.fromkeys(t for p in splits for t in (*p.sentences1, *p.sentences2)))
    place = {text: number for number, text in enumerate(texts)}
    vectors = encode(texts)
    out = []
    for pairs in splits:
        first = vectors[[place[text] for text in pairs.sentences1]]
        second = vectors[[place[text] for text in pairs.sentences2]]
        out.append(correlate((first * second).sum(axis=1), pairs.scores))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int, help="use only the first LIMIT pairs of each split")
    parser.add_argument("--splits", nargs="+", default=["dev", "test"], choices=["dev", "test"])
    parser.add_argument("--only", nargs="+", help="names of methods; default: all")
    parser.add_argument("--threads", type=int, help="number of PyTorch threads")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)

    splits = [pairs_of(split, args.limit) for split in args.splits]
    named = ", ".join(f"{n} of {len(p):,} pairs" for n, p in zip(args.splits, splits, strict=True))
    print(f"STS-B, {named}; 100 × coefficient\n")
    heads = [f"{split} {name}" for split in args.splits for name in ("Spearman", "Pearson")]
    print(f"| method | model | {' | '.join(heads)} |")
    print(f"| --- | --- |{' --- |' * len(heads)}")

    def row(label: str, model: str, encode: Callable[[list[str]], np.ndarray]) -> None:
        found = agreement(encode, splits)
        values = [f"{100 * value:.1f}" for c in found for value in (c.spearman, c.pearson)]
        print(f"| {label} | {model} | {' | '.join(values)} |", flush=True)

    for method, model, typed in METHODS:
        if args.only and method not in args.only:
            continue
        embedder = make_embedder(embedder_spec(method, typed, model))
        settings = ", ".join(f"{name}={value}" for name, value in typed.items())
        row(f"{method} {settings}".strip(), model or "each its own", embedder.encode)


if __name__ == "__main__":
    main()
