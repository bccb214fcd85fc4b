"""Compare the time for a map, with neighbours, clusters and scores, with that of UMAP alone.

    python benchmarks/project.py

Maps 10,000 random vectors of 384 values in 40 groups. In every round, ``UMAP.fit_transform`` and
neuralviz (neighbours, layout, clusters, k-NN accuracy, shared neighbours) take turns on the same
vectors with the same seed, which makes UMAP run on one thread. Prints a table in markdown. What
counts is the ratio of the times, the median over the rounds; the ratio of CPU times, next to it,
depends less on what else the machine is doing.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.maps.clusters import find_clusters
from neuralviz.maps.neighbourhoods import knn_accuracy, label_agreement
from neuralviz.maps.neighbours import nearest
from neuralviz.maps.projecting import place, project, warm_up
from neuralviz.maps.projection import Projection, ProjectionEvent
from neuralviz.maps.settings import ProjectionSettings
from tests.support.memory import peak_memory

ROUNDS = 5
REQUIRED = 1.1
GROUPS = 40


def vectors_in_groups(n: int, dim: int, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    """[text, dim] float32 of length 1 around random centres, and the group of each."""
    rng = np.random.default_rng(seed)
    group = rng.integers(GROUPS, size=n)
    vectors = rng.normal(size=(GROUPS, dim))[group] + 1.2 * rng.normal(size=(n, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), [f"group {number}" for number in group]


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=10_000, help="number of vectors")
    parser.add_argument("--dim", type=int, default=384, help="values per vector")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds")
    parser.add_argument(
        "--ours-only",
        action="store_true",
        help="run once, without UMAP for comparison (for memory and large maps)",
    )
    args = parser.parse_args()

    vectors, labels = vectors_in_groups(args.texts, args.dim)
    settings = ProjectionSettings()
    parts: dict[str, list[float]] = {}
    made: list[Projection] = []

    def ours() -> None:
        marks = [("", time.perf_counter())]

        def mark(name: str) -> None:
            marks.append((name, time.perf_counter()))

        def on_progress(event: ProjectionEvent) -> None:
            if event.stage == "layout" and not event.done:
                mark("neighbours")

        projection = project(vectors, settings, on_progress=on_progress)
        mark("layout")
        find_clusters(projection.coordinates)
        mark("clusters")
        knn_accuracy(projection.neighbours, labels)
        label_agreement(projection.neighbours, labels)
        mark("scores")
        for (_, before), (name, after) in itertools.pairwise(marks):
            parts.setdefault(name, []).append(after - before)
        made[:] = [projection]

    print(f"compiling took {timed(lambda: warm_up(large=True)):.1f} s", flush=True)
    import umap

    def directly() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a seed makes it run on one thread
            umap.UMAP(
                n_neighbors=settings.n_neighbors,
                min_dist=settings.min_dist,
                metric=settings.metric,
                random_state=settings.seed,
            ).fit_transform(vectors)

    runs = {"UMAP.fit_transform": directly, "ours": ours}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in runs}
    if args.ours_only:
        seconds = {"ours": [timed(ours)]}
    else:
        directly()
        ours()
        parts.clear()
        for _ in range(args.rounds):
            for name, run in runs.items():
                start = time.process_time()
                seconds[name].append(timed(run))
                cpu_seconds[name].append(time.process_time() - start)

    machine = platform.processor() or platform.machine()
    print(f"{machine}, {args.texts:,} × {args.dim}, {len(seconds['ours'])} rounds\n")
    print("| | s | ratio | ratio of CPU time |\n| --- | --- | --- | --- |")
    for name, values in seconds.items():
        said = "| "
        if not args.ours_only:
            both = [
                np.median(np.array(times[name]) / np.array(times["UMAP.fit_transform"]))
                for times in (seconds, cpu_seconds)
            ]
            required = f" (required: {REQUIRED})" if name == "ours" else ""
            said = f"{both[0]:.3f}{required} | {both[1]:.3f}"
        print(f"| {name} | {np.median(values):.2f} | {said} |")
    for name, values in parts.items():
        print(f"| ours: {name} | {np.median(values):.2f} | | |")

    rng = np.random.default_rng(1)
    new = vectors[:1] + 0.02 * rng.normal(size=(1, args.dim)).astype(np.float32)
    print(
        f"\nfirst new text placed in {timed(lambda: place(vectors, made[0], new)):.2f} s, ", end=""
    )
    print(f"the next in {timed(lambda: place(vectors, made[0], new)):.2f} s, ", end="")
    print(f"its nearest texts found in {timed(lambda: nearest(vectors, new, 15)):.2f} s")
    peak = peak_memory() / 2**30
    print(
        f"largest memory of the process: {peak:.1f} GiB, vectors {vectors.nbytes / 2**30:.2f} GiB"
    )


if __name__ == "__main__":
    main()
