"""Numbers printed in the neural paper, for data and models that we can measure.

`published.csv` has Tables 1, 3–5, 7–9, 11–13, 15 and 16: STS test, MRPC train, ASSET test. It
leaves out the errors of Tables 7 and 11, which are printed ten times too small.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from neuralviz.evaluation.data import DataSet, GroupedData, ScoredData
from neuralviz.words import joined

MPNET = "all-mpnet-base-v2"
MODELS = {"mean": "all-MiniLM-L6-v2", f"mean of {MPNET}": MPNET}
BERT = "bert-base-uncased"  # of all others
TOTALS = {  # that the paper counted
    "pairs": {"stsb": 180_492, "mrpc": 2_953_956},
    "triplets": {"stsb": 455_624, "mrpc": 24_472_808, "asset": 155_511_620},
}
VALUES = (
    "spearman", "kendall_c", "kendall_b", "pairs.wrong", "pairs.same", "pairs.diff",
    "triplets.wrong", "triplets.same", "triplets.diff", "triplets.shared",
)  # fmt: skip


@dataclass(frozen=True)
class Published:
    model: str
    source: str  # the tables' numbers
    values: Mapping[str, float]  # by `VALUES`; ``shared`` is I with the neural embedding (Eq. 3)


def find_published(data: DataSet, name: str, model_id: str = "") -> Published | None:
    """What was published for a `Row.published` name on these data and model; else None."""
    # counts stand only for as many pairs or triplets as the paper had: thresholds may differ
    if name == "mean" and model_id.rstrip("/").endswith(MPNET):
        name = f"mean of {MPNET}"
    line = read_published().get((data.benchmark, name))
    if line is None:
        return None
    n_relations = {}
    if isinstance(data, ScoredData):
        n_relations["pairs"] = int(data.is_similar.sum()) * int(data.is_dissimilar.sum())
    if isinstance(data, ScoredData | GroupedData):
        n_relations["triplets"] = data.grouping.n_triplets
    values, tables = {}, set()
    for path in VALUES:
        measure, dot, _ = path.partition(".")
        is_alike = not dot or n_relations.get(measure) == TOTALS[measure].get(data.benchmark, -1)
        if (text := line[path]) and is_alike:
            values[path] = int(text) if text.isdigit() else float(text)
            tables.add(int(line[f"{measure if dot else 'correlations'}_table"]))
    if not tables:
        return None
    source = f"Table{'s' * (len(tables) > 1)} {joined([str(n) for n in sorted(tables)])}"
    return Published(MODELS.get(name, BERT), source, values)


@cache
def read_published() -> dict[tuple[str, str], dict[str, str]]:
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        return {(line["benchmark"], line["row"]): line for line in csv.DictReader(file)}
