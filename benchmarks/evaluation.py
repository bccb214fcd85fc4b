"""Measure the time and memory of an evaluation: triplets, shared errors, all measures of STS-B.

    NEURALVIZ_DATA=… python benchmarks/evaluation.py

The first two use random vectors of 3,949 texts in 359 groups of 11, the size of ASSET's test set,
such that some triplets are broken. The last one embeds STS-B test by mean pooling and computes all
measures, including bootstrap intervals; it is skipped if ``NEURALVIZ_DATA`` is not set. Prints a
table in markdown.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.evaluation.data import read_data
from neuralviz.evaluation.measures import evaluate, kept_vectors
from neuralviz.evaluation.results import Cell, EvaluationPlan
from neuralviz.evaluation.rows import method_rows
from neuralviz.evaluation.triplets import Grouping, count_triplets, shared_triplets
from neuralviz.reading.source import Source
from tests.support.memory import peak_memory

GROUPS, OF_GROUP, DIM = 359, 11, 384
NOISE = (0.55, 0.7)  # of two methods, beside groups' vectors of length 1


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw = np.random.default_rng(0)
    group = np.repeat(np.arange(GROUPS), OF_GROUP)
    centres = draw.normal(size=(GROUPS, DIM)) / np.sqrt(DIM)
    methods = [
        (centres[group] + by * draw.normal(size=(len(group), DIM)) * 4 / np.sqrt(DIM)).astype(
            np.float32
        )
        for by in NOISE
    ]
    grouping = Grouping(group)
    print(f"{platform.machine()}, {os.cpu_count()} cores\n")
    print("| | seconds | added memory, MB | |")
    print("| --- | --- | --- | --- |")
    row(
        f"{grouping.n_triplets:,} triplets counted",
        lambda: f"{count_triplets(methods[0], grouping).together.error:.1%} broken",
    )
    row(
        "shared errors of two methods",
        lambda: f"I = {shared_triplets(methods, grouping).share[0, 1]:.2f}",
    )
    folder = os.environ.get("NEURALVIZ_DATA")
    if folder and (Path(folder) / "stsb" / "test.csv").is_file():
        row("STS-B test, mean pooling, all measures", lambda: stsb(Path(folder)))


def row(name: str, work: Callable[[], str]) -> None:
    """A line of the table."""
    before = peak_memory()
    start = time.perf_counter()
    outcome = work()
    seconds = time.perf_counter() - start
    added = (peak_memory() - before) / 2**20
    print(f"| {name} | {seconds:.1f} | {added:,.0f} | {outcome} |", flush=True)


def stsb(folder: Path) -> str:
    """Embed and measure, with nothing kept from before."""
    path = folder / "stsb" / "test.csv"
    plan = EvaluationPlan((read_data(Source.from_path(path)),), method_rows(["mean"], {}))
    with TemporaryDirectory() as kept:
        events = evaluate(plan, kept_vectors(Path(kept)))
        cells = [event for event in events if isinstance(event, Cell)]
    measured = cells[0].measured
    if measured is None or measured.correlations is None:
        sys.exit(cells[0].error)
    return f"Spearman {measured.correlations.spearman:.3f}"


if __name__ == "__main__":
    main()
