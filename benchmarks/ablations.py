"""Run the neural paper's ablations on STS-B test with the bundled model.

    NEURALVIZ_DATA=… python benchmarks/ablations.py [--experiment outputs] [--precision fast]

Prints a table in markdown, with the published figures in brackets; these are for bert-base-uncased,
a model five times as large. Takes about an hour on two cores. Embeddings are saved where
`neuralviz evaluate` saves them, so the same command resumes a run that was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.evaluation.data import read_data
from neuralviz.evaluation.measures import evaluate
from neuralviz.evaluation.results import Cell, EvaluationPlan, Progress, Published, find_published
from neuralviz.evaluation.rows import EXPERIMENTS, Row, experiment_rows
from neuralviz.reading.source import Source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--experiment", default="ablations", choices=EXPERIMENTS)
    parser.add_argument("--precision", default="exact", help="exact, fast, bf16 or fast+bf16")
    parser.add_argument("--limit", type=int, help="use only the first LIMIT pairs")
    args = parser.parse_args()
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        sys.exit("Needs the STS benchmark. Set NEURALVIZ_DATA to the folder that contains stsb/.")
    path = Path(folder) / "stsb" / "test.csv"
    data = read_data(Source.from_path(path), **({"max_rows": args.limit} if args.limit else {}))
    typed = {} if args.precision == "exact" else {"precision": args.precision}
    rows = experiment_rows(args.experiment, typed, None)
    print(f"STS-B test: {data.describe()}. Published: bert-base-uncased, in brackets.\n")
    print("| method | Spearman | 95% | tau-c | tau-b | pairs broken | triplets broken |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for event in evaluate(EvaluationPlan((data,), rows)):
        if isinstance(event, Progress):
            show(rows, event)
        elif isinstance(event, Cell):
            row = rows[event.row]
            print(line(row, event, find_published(data, row.published)), flush=True)


def show(rows: tuple[Row, ...], progress: Progress) -> None:
    """How far it is, on a terminal."""
    if sys.stderr.isatty() and progress.row is not None:
        label = rows[progress.row].label
        print(f"\r{label}: {progress.done:,} of {progress.total:,}  ", end="", file=sys.stderr)


def line(row: Row, cell: Cell, theirs: Published | None) -> str:
    """A line of the table, ours before the paper's."""
    measured = cell.measured
    if measured is None or measured.correlations is None:
        return f"| {row.label} | {cell.error} |"
    found = measured.correlations
    cells = [row.label]
    for name in ("spearman", "kendall_c", "kendall_b"):
        known = theirs.values.get(name) if theirs else None
        cells.append(f"{getattr(found, name):.3f}" + (f" ({known:.3f})" if known else ""))
        if name == "spearman" and (bounds := measured.interval(name)):
            low, high = bounds
            cells.append(f"{low:.3f} to {high:.3f}")
        elif name == "spearman":
            cells.append("–")
    for name in ("pairs", "triplets"):
        counted, known = getattr(measured, name), theirs and theirs.values.get(f"{name}.wrong")
        beside = f" ({known:,})" if known else ""
        cells.append(f"{counted.wrong:,}{beside}" if counted else "–")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
