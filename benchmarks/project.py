"""Compare the time for a map, with neighbours, clusters and scores, with that of UMAP alone.

    python benchmarks/project.py [--sampled --texts 300000]

Maps 10,000 random vectors of 384 values in 40 groups. In every round, ``UMAP.fit_transform`` and
neuralviz (neighbours, layout, clusters, k-NN accuracy, shared neighbours) take turns on the same
vectors with the same seed, which makes UMAP run on one thread. Prints a table in markdown. What
counts is the ratio of the times, the median over the rounds; the ratio of CPU times, next to it,
depends less on what else the machine is doing.

With ``--sampled``, a corpus above 200,000 texts is saved with made-up embeddings and mapped as the
app and the command line do it: an index, UMAP of a sample of 200,000, and the other texts placed on
it. Prints how long each stage takes, the largest memory of a process, and which share of the 10
nearest points are of the same topic, for the texts of the sample and for those that were placed.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.maps.clusters import find_clusters
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import make_map
from neuralviz.maps.neighbours import EXACT_UP_TO, find_neighbours, knn_right, nearest
from neuralviz.maps.projection import (
    MOST_WHOLE,
    Projection,
    ProjectionEvent,
    ProjectionSettings,
    place,
    project,
    warm_up,
)
from neuralviz.store.corpora import CorpusStore
from tests.support import large_corpus
from tests.support.memory import peak_memory

ROUNDS = 5
REQUIRED = 1.1
GROUPS = 40
CHECKED = 3000  # texts of a large map whose nearest points are looked at


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


def compile_all() -> None:
    """Make what numba compiles, also the search for neighbours among many texts."""
    warm_up()
    find_neighbours(vectors_in_groups(EXACT_UP_TO + 1, 8)[0], 15)


def measure_sampled(n: int, dim: int) -> None:
    """Make the map of a saved corpus that is too large to be fitted as a whole."""
    from sklearn.neighbors import NearestNeighbors

    marks: list[tuple[str, float]] = []

    def on_progress(event: ProjectionEvent) -> None:
        if not marks or marks[-1][0] != event.stage:
            marks.append((event.stage, time.perf_counter()))

    print(f"compiling took {timed(compile_all):.1f} s\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        store = CorpusStore(Path(folder))
        corpus, made_up = large_corpus.keep_large(store, n, dim=dim)
        KeptMaps(store).delete(made_up)
        [embedder] = store.vectors.embedders()
        start = time.perf_counter()
        kept = make_map(store, corpus, embedder, ProjectionSettings(), on_progress=on_progress)
        ends = [at for _, at in marks[1:]] + [time.perf_counter()]
        of_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        peak = peak_memory() / 2**30
        points, _ = KeptMaps(store).points(kept)
        sample = KeptMaps(store).sample(kept)

    print("| stage | s |\n| --- | --- |")
    for (stage, begun), end in zip(marks, ends, strict=True):
        print(f"| {stage} | {end - begun:.0f} |")
    print(f"| all | {ends[-1] - start:.0f} |\n")
    topics = large_corpus.topics_of(n)
    is_fitted = np.zeros(n, dtype=bool)
    is_fitted[sample] = True
    neighbours, draw = NearestNeighbors(n_neighbors=11).fit(points), np.random.default_rng(0)
    for name, among in (("fitted", is_fitted), ("placed", ~is_fitted)):
        rows = draw.choice(np.flatnonzero(among), CHECKED)
        near = neighbours.kneighbors(points[rows], return_distance=False)[:, 1:]
        share = (topics[near] == topics[rows, None]).mean()
        print(f"{name}: {among.sum():,} texts; {share:.1%} of the 10 nearest are of their topic")
    print(
        f"largest memory, the making of the corpus included: {peak:.1f} GiB, of another process: "
        f"{of_child:.1f} GiB; vectors {n * dim * 4 / 2**30:.2f} GiB; recall {kept.recall}"
    )


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
    parser.add_argument(
        "--sampled",
        action="store_true",
        help=f"map a saved corpus of more than {MOST_WHOLE:,} texts as the app does",
    )
    args = parser.parse_args()
    if args.sampled:
        if args.texts <= MOST_WHOLE:
            parser.error(f"--sampled needs --texts above {MOST_WHOLE}")
        measure_sampled(args.texts, args.dim)
        return

    vectors, labels = vectors_in_groups(args.texts, args.dim)
    settings = ProjectionSettings()
    parts: dict[str, list[float]] = {}
    made: list[Projection] = []

    def ours() -> None:
        marks = [("", time.perf_counter())]

        def mark(name: str) -> None:
            marks.append((name, time.perf_counter()))

        def on_progress(event: ProjectionEvent) -> None:
            if event.stage == "layout" and not event.n_done:
                mark("neighbours")

        projection = project(vectors, settings, on_progress=on_progress)
        mark("layout")
        find_clusters(projection.coordinates)
        mark("clusters")
        knn_right(projection.neighbours, labels)
        mark("scores")
        for (_, before), (name, after) in itertools.pairwise(marks):
            parts.setdefault(name, []).append(after - before)
        made[:] = [projection]

    print(f"compiling took {timed(compile_all):.1f} s", flush=True)
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
