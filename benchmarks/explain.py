"""Measure what explanations of cosine similarities foretell, point at and cost.

    NEURALVIZ_DATA=… python benchmarks/explain.py

Prints three tables in markdown, each by mean pooling, SBERT-WK and neural (fast, 5 epochs):

1. The deletion check. Each word of the first 200 scored pairs of STS-B dev is left out in turn, and
   the change of the cosine is compared with what the split foretold: the mean over the pairs of the
   rank correlation over a pair's words, with a bootstrap interval over pairs.
2. Which reading points at the words that differ: the cosine as it is, or centred on the mean of all
   texts of ``scored_pairs.csv``. Of two words of a text, one that the other text also has and one
   that it lacks, how often does the first add more to the cosine? Half is chance. It is the mean
   over such pairs of words, the two texts and the pairs of texts: those that differ in few words
   (each shares at least half of its words, score below 4), and paraphrases (score of at least 4).
   Signs are no words. Words that mean the same but are spelt differently count as different.
3. The time to explain two texts of 30 tokens, and its ratio to micro-tuning on both with shares
   and to embedding both.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.embedders import Embedder, embedder_spec, make_embedder
from neuralviz.embedders.neural import NeuralEmbedder
from neuralviz.evaluation.bootstrap import draw_resamples, interval
from neuralviz.evaluation.explanation import Explanation, explain, explain_splits, try_deletions
from neuralviz.micro_tuning.events import collect_result
from neuralviz.micro_tuning.loop import tune
from neuralviz.paths import sample_data
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.words import number

METHODS = {"mean": {}, "sbert-wk": {}, "neural": {"precision": "fast", "epochs": "5"}}
SIMILAR = 4.0  # of scores up to 5
COMMON = 0.5  # of the words
A = (
    "The old bridge over the river was closed because of the flood last winter, and the whole "
    "village had to take the long way round through the hills."
)
B = (
    "Since the water damaged the crossing in December, everybody who lives here drives for an hour "
    "over the mountains, although a ferry was promised by the council."
)


def pairs_of(path: Path) -> ScoredPairs:
    return read_pairs(Source(path.name, path.read_bytes()))


def describe(measured: Sequence[float]) -> str:
    """The mean with its bootstrap interval."""
    data = np.asarray(measured)
    means = [counts @ data / counts.sum(axis=1) for counts in draw_resamples(len(data))]
    if not means:
        return number(float(data.mean()), ".2f")
    values = (float(data.mean()), *interval(np.concatenate(means)))
    mean, low, high = (number(value, ".2f") for value in values)
    return f"{mean} ({low} … {high})"


# --- the deletion check ---------------------------------------------------------------------------


def print_agreement(embedders: dict[str, Embedder], pairs: ScoredPairs) -> None:
    print(f"STS-B dev, {len(pairs)} pairs\n")
    print("| method | rank correlation | pairs without one |\n| --- | --- | --- |")
    for name, embedder in embedders.items():
        found = []
        for a, b in zip(pairs.sentences1, pairs.sentences2, strict=True):
            found.append(try_deletions(embedder, explain(embedder, a, b)).agreement)
        known = [value for value in found if value is not None]
        print(f"| {name} | {describe(known)} | {len(found) - len(known)} |", flush=True)


# --- what points at words -------------------------------------------------------------------------


def list_words(explanation: Explanation) -> list[list[tuple[str, float]]]:
    """Of both texts, the words with what they add; no signs."""
    cells, spans = explanation.words.contributions, explanation.words.spans
    sums = cells.sum(axis=1)[:-1], cells.sum(axis=0)[:-1]
    return [
        [
            (word, value)
            for (start, end), value in zip(places, side.tolist(), strict=True)
            if any(map(str.isalnum, word := text[start:end].strip().lower()))
        ]
        for text, places, side in zip(explanation.texts, spans, sums, strict=True)
    ]


def points_at_words(explanation: Explanation) -> float | None:
    """How often a common word adds more than a different one; None without one of these."""
    first, second = list_words(explanation)
    shares = []
    for own, others in ((first, second), (second, first)):
        known = {word for word, _ in others}
        common = np.array([value for word, value in own if word in known])
        different = np.array([value for word, value in own if word not in known])
        if len(common) and len(different):
            gaps = common[:, None] - different
            shares.append(float(np.mean((gaps > 0) + 0.5 * (gaps == 0))))
    return float(np.mean(shares)) if shares else None


def differ_in_few_words(explanation: Explanation) -> bool:
    words = [{word for word, _ in side} for side in list_words(explanation)]
    n_common = len(words[0] & words[1])
    return all(n_common >= COMMON * len(side) for side in words)


def print_readings(embedders: dict[str, Embedder], pairs: ScoredPairs) -> None:
    texts = list(dict.fromkeys([*pairs.sentences1, *pairs.sentences2]))
    print("| method | pairs | n | as it is | centred | centred − as it is |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, embedder in embedders.items():
        centre = np.asarray(embedder.encode(texts), dtype=np.float64).mean(axis=0)
        by_kind: dict[str, list[tuple[float, float]]] = {}
        for a, b, score in zip(pairs.sentences1, pairs.sentences2, pairs.scores, strict=True):
            splits = embedder.split([a, b])
            assert splits is not None
            plain, centred = (explain_splits(name, *splits, middle) for middle in (None, centre))
            kind = "paraphrases" if score >= SIMILAR else "few words differ"
            shares = points_at_words(plain), points_at_words(centred)
            if shares[0] is None or shares[1] is None:
                continue
            if score >= SIMILAR or differ_in_few_words(plain):
                by_kind.setdefault(kind, []).append((shares[0], shares[1]))
        for kind, found in sorted(by_kind.items()):
            plain_shares, centred_shares = np.array(found).T
            cells = map(describe, (plain_shares, centred_shares, centred_shares - plain_shares))
            print(f"| {name} | {kind} | {len(found)} | {' | '.join(cells)} |", flush=True)


# --- time -----------------------------------------------------------------------------------------


def tune_with_shares(embedder: NeuralEmbedder) -> None:
    texts = embedder.read([A, B])
    collect_result(tune(embedder.model, texts, embedder.settings, with_token_shares=True))


def print_times(embedders: dict[str, Embedder], rounds: int) -> None:
    print("| method | explaining, ms | × with shares | × embedding |\n| --- | --- | --- | --- |")
    for name, embedder in embedders.items():
        runs: dict[str, Callable[[], object]] = {
            "explain": lambda embedder=embedder: explain(embedder, A, B),
            "embed": lambda embedder=embedder: embedder.encode([A, B]),
        }
        if isinstance(embedder, NeuralEmbedder):
            runs["shares"] = lambda embedder=embedder: tune_with_shares(embedder)
        for run in runs.values():
            run()
        seconds: dict[str, list[float]] = {step: [] for step in runs}
        for _ in range(rounds):
            for step, run in runs.items():
                start = time.perf_counter()
                run()
                seconds[step].append(time.perf_counter() - start)
        explaining = np.array(seconds["explain"])
        ratios = [
            f"{np.median(explaining / seconds[step]):.2f}" if step in seconds else "–"
            for step in ("shares", "embed")
        ]
        print(f"| {name} | {1e3 * np.median(explaining):.0f} | {' | '.join(ratios)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=200, help="number of pairs of each data set")
    parser.add_argument("--rounds", type=int, default=15, help="number of rounds of the times")
    parser.add_argument("--only", nargs="+", choices=["agreement", "readings", "times"])
    parser.add_argument("--threads", type=int, help="number of PyTorch threads")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    tables = args.only or ["agreement", "readings", "times"]
    folder = os.environ.get("NEURALVIZ_DATA")
    if "agreement" in tables and not folder:
        sys.exit("Needs the STS benchmark. Set NEURALVIZ_DATA to the folder that contains stsb/.")
    embedders = {name: make_embedder(embedder_spec(name, typed)) for name, typed in METHODS.items()}
    print(f"{platform.machine()}, {torch.get_num_threads()} threads\n")
    if "agreement" in tables:
        print_agreement(embedders, pairs_of(Path(str(folder)) / "stsb/dev.csv").first(args.pairs))
        print()
    if "readings" in tables:
        pairs = pairs_of(sample_data() / "scored_pairs.csv")
        print_readings(embedders, pairs if args.pairs >= 200 else pairs.first(args.pairs))
        print()
    if "times" in tables:
        print_times(embedders, args.rounds)


if __name__ == "__main__":
    main()
