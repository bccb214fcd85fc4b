"""Measure what probes tell from each layer of a model: length, word content, exchanged words.

    python benchmarks/probing.py [--model bundled] [--texts FILE]

Makes the three probing tasks from the texts, embeds them by mean pooling of each layer, and prints
a table in markdown: accuracy with its 95% interval, and two baselines that need no embedding. The
texts are by default the sentences of the sample data.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.evaluation.measures import evaluate, kept_vectors
from neuralviz.evaluation.probing_tasks import TASKS, probing_task
from neuralviz.evaluation.results import Cell, EvaluationPlan
from neuralviz.evaluation.rows import experiment_rows
from neuralviz.models import BUNDLED
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts

SAMPLES = {
    "topics.csv": ("text",),
    "triplet_groups.csv": ("text",),
    "scored_pairs.csv": ("sentence1", "sentence2"),
}


def sentences() -> list[str]:
    """The different sentences of the sample data."""
    found: list[str] = []
    for name, columns in SAMPLES.items():
        with (sample_data() / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found += [row[column] for column in columns]
    return list(dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=BUNDLED, help="a Hub ID or a folder")
    parser.add_argument("--texts", type=Path, help="file of texts in place of the sample data")
    parser.add_argument("--seed", type=int, default=0, help="of the tasks")
    parser.add_argument("--threads", type=int, help="number of PyTorch threads")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    texts = list(read_texts(Source.from_path(args.texts)).texts) if args.texts else sentences()
    begun = time.perf_counter()
    tasks = [probing_task(name, "texts", texts, args.seed) for name in TASKS]
    rows = experiment_rows("layer-by-layer", {}, args.model)
    with TemporaryDirectory() as folder:
        events = evaluate(EvaluationPlan(tuple(tasks), rows), kept_vectors(Path(folder)))
        found = {(e.data, e.row): e.measured for e in events if isinstance(e, Cell)}
    print(
        f"{len(texts):,} different texts, {args.model}, mean pooling, {torch.get_num_threads()} ",
        end="",
    )
    print(f"PyTorch threads, {time.perf_counter() - begun:.0f} s\n")
    heads = [
        f"{TASKS[one.task].title.lower()} ({len(set(one.labels))} labels, {len(one.texts)} texts)"
        for one in tasks
    ]
    print(f"| | {' | '.join(heads)} |")
    print("| --- |" + " --- |" * len(tasks))
    probes = {at: one.probe for at, one in found.items() if one is not None and one.probe}
    firsts = [probes[number, 0] for number in range(len(tasks))]
    print(f"| majority baseline | {' | '.join(f'{one.baseline:.1%}' for one in firsts)} |")
    print(f"| TF-IDF baseline | {' | '.join(f'{one.tfidf or 0:.1%}' for one in firsts)} |")
    for at, row in enumerate(rows):
        cells = [
            f"{one.accuracy:.1%} ({100 * one.interval[0]:.1f} to {100 * one.interval[1]:.1f})"
            for one in (probes[number, at] for number in range(len(tasks)))
        ]
        print(f"| {row.label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
