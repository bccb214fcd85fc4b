"""Crops against dropout, the embedding table alone, and before: 10-NN accuracy over chapters.

    NEURALVIZ_DATA=… python benchmarks/training.py --model bundled

Learning rates are chosen on the example corpus, ``sample_data/textbooks.csv``, one for each way;
what is printed is measured on the passages of all chapters that are not in it. No label is trained
on. Whatever is finished is kept in ``--folder``, and the same command goes on there. Prints tables
in markdown: in percent, the mean over the seeds and their range.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch

from benchmarks.crops_tables import SEEDS, TrainingRow, print_table, report_cells, training_table
from neuralviz.models import TextModel, load_text_model
from neuralviz.paths import sample_data
from neuralviz.training.settings import TrainingSettings

EPOCHS_TO_CHOOSE = 2  # of the model, on the example: about as many steps as an epoch of the rest
TABLE_EPOCHS = 10
ON_EXAMPLE = TrainingSettings(epochs=EPOCHS_TO_CHOOSE)
WAYS: dict[str, tuple[TrainingSettings, tuple[float, ...]]] = {  # on the example, and rates to try
    "crops": (ON_EXAMPLE, (2e-5, 1e-4, 3e-4, 1e-3)),
    "dropout": (replace(ON_EXAMPLE, pairs="dropout"), (5e-6, 2e-5, 1e-4)),
    "table alone, crops": (
        replace(ON_EXAMPLE, part="table", epochs=TABLE_EPOCHS),
        (0.5, 0.1, 0.01, 0.003, 0.001, 0.0003),
    ),
}
TABLES = ("pairs", "layers", "spaces")


def main() -> None:
    """Choose the rates, fill the tables, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bundled", help="model to begin with")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--folder", type=Path, default=Path("runs/training"))
    parser.add_argument("--threads", type=int, help="of torch")
    options = parser.parse_args()
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        sys.exit("Set NEURALVIZ_DATA to the folder of the real data.")
    if options.threads:
        torch.set_num_threads(options.threads)

    example = pd.read_csv(sample_data() / "textbooks.csv")
    passages = pd.read_csv(Path(folder) / "textbooks" / "passages.csv")
    rest = passages[~passages["id"].isin(example["id"])]
    model = load_text_model(options.model)
    chosen = choose(model, example, options.folder)
    rows = [
        TrainingRow("before", TrainingSettings(), is_trained=False),
        chosen["crops"],
        chosen["dropout"],
        TrainingRow("table alone, before", chosen["table alone, crops"].settings, is_trained=False),
        chosen["table alone, crops"],
    ]
    texts, labels = rest["text"].tolist(), rest["chapter"].tolist()
    cells = [*report_cells(rows, model, texts, labels, options.seeds, options.folder)]
    print(f"\n### {options.model}\n")
    rates = ", ".join(f"{row.label} {row.settings.peak_rate:g}" for row in chosen.values())
    print(
        f"{len(rest):,} passages of {rest['chapter'].nunique()} chapters, "
        f"{rest['subject'].nunique()} subjects. Learning rates: {rates}. "
        f"{torch.get_num_threads()} thread(s).\n"
    )
    for name in TABLES:
        print_table(training_table(name), cells)


def choose(model: TextModel, example: pd.DataFrame, folder: Path) -> dict[str, TrainingRow]:
    """The rows that are trained, each with the rate that is best for it on the example."""
    chosen = {}
    texts, labels = example["text"].tolist(), example["chapter"].tolist()
    for way, (settings, rates) in WAYS.items():
        rows = [
            TrainingRow(f"{way}, rate {rate:g}", replace(settings, learning_rate=rate))
            for rate in rates
        ]
        before = TrainingRow(f"{way}, before", settings, is_trained=False)
        first, *cells = report_cells([before, *rows], model, texts, labels, SEEDS[:1], folder)
        print_table(training_table("pairs"), [first, *cells])
        best = rows[max(range(len(rows)), key=lambda at: cells[at].layers[-1])].settings
        epochs = best.n_epochs if best.part == "table" else 1
        chosen[way] = TrainingRow(way, replace(best, epochs=epochs))
    return chosen


if __name__ == "__main__":
    main()
