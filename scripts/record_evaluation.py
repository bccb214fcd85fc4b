"""Remake the results that the Evaluation page opens with: sample_data/recorded_evaluation.npz.

python scripts/record_evaluation.py

To be run after a change of the examples, of the bundled weights, or of what is measured; a test
says when. Micro-tuning on every text takes about a quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from neuralviz.evaluation import measures
from neuralviz.evaluation.results import RESULTS_FORMAT, Progress, Results
from neuralviz.jobs.evaluating import RECORDED, example_plan
from neuralviz.paths import sample_data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--store", type=Path, help="folder to save the embeddings in for another run"
    )
    args = parser.parse_args()
    plan = example_plan()
    results = Results(plan)
    with TemporaryDirectory() as folder:
        for event in measures.evaluate(plan, measures.kept_vectors(args.store or Path(folder))):
            if not isinstance(event, Progress):
                results = results.having(event)
            elif event.row is not None:
                where = f"{plan.data[event.data].name}, {plan.rows[event.row].label}"
                print(f"\r{where}: {event.done} of {event.total}  ", end="", flush=True)
    if results.any_failed:
        raise SystemExit("\n".join(["", *results.sentences(0)]))
    path = sample_data() / RECORDED
    path.write_bytes(pack(results))
    print(f"\n{path}: {path.stat().st_size / 1e6:.1f} MB")


def pack(results: Results) -> bytes:
    """The content of the recorded file: cosines that are only drawn lose digits."""
    cells = {}
    for place, cell in results.cells.items():
        drawn = {name: getattr(cell.measured, name).astype(np.float16) for name in ("same", "diff")}
        cells[place] = replace(cell, measured=replace(cell.measured, **drawn))
    return RESULTS_FORMAT.pack(replace(results, cells=cells))


if __name__ == "__main__":
    main()
