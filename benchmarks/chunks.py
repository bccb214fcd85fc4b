"""Measure how the inputs of a long text are best dealt out to optimiser steps.

    python benchmarks/chunks.py [--window 50] [--texts 48] [--epochs 5] [--precision fast]

Narrows the model's window, so that the passages of the sample data come in chunks, and learns each
passage in three ways: *one step an epoch*, of all inputs of all chunks; *as many steps as chunks*,
the inputs dealt out so that each step has its share of every chunk; *a step for each chunk*. All of
the passages fit the model's own window, so there is a fourth one to compare with: *no chunks*.

Prints a table in markdown: triplet error, with the passages of a subject as a group (neural paper,
Eq. 2); the mean cosine to the embedding without chunks; and, over every fourth passage, the mean
cosine to the embeddings of its longest and of its shortest chunk.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.evaluation.triplets import Grouping, count_triplets
from neuralviz.micro_tuning.events import neural_embeddings
from neuralviz.micro_tuning.gradients import Gradients, JoinedLayers
from neuralviz.micro_tuning.inputs import MaskedInput, PreparedInputs, mask_texts
from neuralviz.micro_tuning.loop import RowAdamW
from neuralviz.micro_tuning.probe import per_text_network
from neuralviz.micro_tuning.settings import TuningSettings, check_settings
from neuralviz.models import BUNDLED, load_model, tokenize
from neuralviz.paths import sample_data

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel, TokenizedText

PARTS_OF_EVERY = 4

Deal = Callable[[list[list[MaskedInput]]], list[list[MaskedInput]]]
"""From the inputs of each chunk to those of each step of an epoch."""


def all_at_once(chunks: list[list[MaskedInput]]) -> list[list[MaskedInput]]:
    return [[entry for chunk in chunks for entry in chunk]]


def a_share_of_each(chunks: list[list[MaskedInput]]) -> list[list[MaskedInput]]:
    """Each chunk begins with another step, so that no step has the longest blueprints of all."""
    steps: list[list[MaskedInput]] = [[] for _ in chunks]
    for first, chunk in enumerate(chunks):
        for number, entry in enumerate(chunk):
            steps[(first + number) % len(steps)].append(entry)
    return steps


def a_step_each(chunks: list[list[MaskedInput]]) -> list[list[MaskedInput]]:
    return chunks


def learn(
    model: LanguageModel, text: TokenizedText, settings: TuningSettings, deal: Deal
) -> np.ndarray:
    """[dim] the neural embedding of a text, its inputs dealt out to steps."""
    chunks = [
        mask_texts(model, [replace(text, chunks=(chunk,))], settings) for chunk in text.chunks
    ]
    network, layers = per_text_network(model, settings.layers), JoinedLayers(model, settings.layers)
    steps = []
    for inputs in deal(chunks):
        weight = 1 / sum(len(entry.masked) for entry in inputs)
        inputs = [replace(entry, weight=weight) for entry in inputs]
        steps.append(PreparedInputs(model, network, inputs, settings))
    gradients = Gradients(model, network, layers, [text], settings, follow_tokens=False)
    nobody = torch.zeros(0, dtype=torch.long)
    optimizer = RowAdamW(layers.weights[None].clone(), settings, nobody)
    for _ in range(settings.epochs):
        for inputs in steps:
            gradients.compute(inputs, optimizer.value)
            optimizer.take(optimizer.prepare(gradients.joined), torch.tensor([True]))
    deltas = layers.split(optimizer.delta).values()
    return neural_embeddings(tuple(delta.numpy() for delta in deltas))[0]


def choose_passages(n: int) -> tuple[list[str], list[str]]:
    """The shortest passages of each subject, ``n`` in all, and their subjects."""
    by_subject = defaultdict(list)
    with (sample_data() / "textbooks.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by_subject[row["subject"]].append(row["text"])
    texts, subjects = [], []
    for subject, passages in by_subject.items():
        shortest = sorted(passages, key=len)[: n // len(by_subject)]
        texts += shortest
        subjects += [subject] * len(shortest)
    return texts, subjects


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=BUNDLED, help="a Hub ID or a folder")
    parser.add_argument("--window", type=int, default=50, help="tokens that fit, special included")
    parser.add_argument("--texts", type=int, default=48, help="number of passages")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--precision", default="fast")
    parser.add_argument("--threads", type=int, help="number of PyTorch threads")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    whole = load_model(args.model)
    narrow = replace(whole, window=args.window)
    settings = check_settings(whole, epochs=args.epochs, precision=args.precision)
    texts, subjects = choose_passages(args.texts)
    read, in_chunks = tokenize(whole, texts), tokenize(narrow, texts)
    assert all(len(text.chunks) == 1 for text in read), "a passage does not fit the model's window"
    ways: dict[str, tuple[LanguageModel, Sequence[TokenizedText], Deal]] = {
        "no chunks": (whole, read, all_at_once),
        "one step an epoch": (narrow, in_chunks, all_at_once),
        "as many steps as chunks": (narrow, in_chunks, a_share_of_each),
        "a step for each chunk": (narrow, in_chunks, a_step_each),
    }
    begun = time.process_time()
    vectors: dict[str, list[np.ndarray]] = {way: [] for way in ways}
    of_parts: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for number, text in enumerate(in_chunks):
        for way, (model, tokens, deal) in ways.items():
            vectors[way].append(learn(model, tokens[number], settings, deal))
        if number % PARTS_OF_EVERY == 0 and len(text.chunks) > 1:
            sizes = [chunk.stop - chunk.start for chunk in text.chunks]
            ends = [text.chunks[int(at)] for at in (np.argmax(sizes), np.argmin(sizes))]
            parts = [
                learn(narrow, replace(text, chunks=(chunk,)), settings, all_at_once)
                for chunk in ends
            ]
            for way in ways:
                longest, shortest = (float(part @ vectors[way][-1]) for part in parts)
                of_parts[way].append((longest, shortest))
        print(f"\r{number + 1} of {len(texts)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    n_tokens = np.mean([len(text) for text in in_chunks])
    n_chunks = np.mean([len(text.chunks) for text in in_chunks])
    print(
        f"{len(texts)} passages of {n_tokens:.0f} tokens and {n_chunks:.1f} chunks on average, "
        f"window of {args.window} tokens, {args.model}, {args.epochs} epochs, {args.precision}, "
        f"{time.process_time() - begun:.0f} s of CPU time\n"
    )
    print("| | triplet error | cosine to no chunks | to longest chunk | to shortest chunk |")
    print("|---|---:|---:|---:|---:|")
    without = np.array(vectors["no chunks"])
    grouping = Grouping(np.unique(subjects, return_inverse=True)[1])
    for way, rows in vectors.items():
        found = np.array(rows)
        to_whole = float((found * without).sum(axis=1).mean())
        longest, shortest = np.mean(of_parts[way], axis=0)
        error = count_triplets(found, grouping).together.error
        print(f"| {way} | {error:.1%} | {to_whole:.3f} | {longest:.3f} | {shortest:.3f} |")


if __name__ == "__main__":
    main()
