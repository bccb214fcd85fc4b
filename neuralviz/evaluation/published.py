"""What the neural paper prints for data that we can measure, with the model that it measured.

`published.csv` has Tables 1, 3 to 5, 7 to 9, 11 to 13, 15 and 16: STS test, MRPC train, ASSET test.
The errors of Tables 7 and 11 are printed ten times too small and are not used; the counts are.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from neuralviz.evaluation.data import DataSet, GroupedData, ScoredData
from neuralviz.words import joined

BERT = "bert-base-uncased"
MPNET, MINI = "all-mpnet-base-v2", "all-MiniLM-L6-v2"
# how many pairs and triplets the paper counted
TOTALS = {
    "pairs": {"stsb": 180_492, "mrpc": 2_953_956},
    "triplets": {"stsb": 455_624, "mrpc": 24_472_808, "asset": 155_511_620},
}


@dataclass(frozen=True)
class PublishedCount:
    """A published count of broken pairs or triplets, the mean products, and I with the neural
    embedding (Eq. 3) where it is printed.
    """

    wrong: int
    same: float
    diff: float
    shared: float | None = None


@dataclass(frozen=True)
class Published:
    """What the tables named by ``source`` have for a row; None where they have no value."""

    model: str
    spearman: float | None = None
    kendall_c: float | None = None
    kendall_b: float | None = None
    pairs: PublishedCount | None = None
    triplets: PublishedCount | None = None
    source: str = ""


def find_published(data: DataSet, name: str, model_id: str = "") -> Published | None:
    """What was published of a row, by `Row.published`, on these data; None where nothing was.

    Nothing is known of data without a ``benchmark``. Counts stand only where there are as many
    pairs, or triplets, as the paper had: with other bounds of what is similar there are others.
    Pooled vectors were published of two models.
    """
    if name == "mean" and model_id.rstrip("/").endswith(MPNET):
        name = f"mean of {MPNET}"
    row = read_published().get((data.benchmark, name))
    if row is None:
        return None
    pairs = triplets = None
    if isinstance(data, ScoredData):
        pairs = _count(row, "pairs", int(data.is_similar.sum()) * int(data.is_dissimilar.sum()))
    if isinstance(data, ScoredData | GroupedData):
        triplets = _count(row, "triplets", data.grouping.n_triplets)
    spearman, tau_c, tau_b = (_number(row[n]) for n in ("spearman", "kendall_c", "kendall_b"))
    values = {"correlation": spearman, "pair": pairs, "triplet": triplets}
    tables = sorted(int(row[f"{kind}_table"]) for kind, value in values.items() if value)
    if not tables:
        return None
    model = {"mean": MINI, f"mean of {MPNET}": MPNET}.get(name, BERT)
    source = f"Table{'s' * (len(tables) > 1)} {joined([str(table) for table in tables])}"
    return Published(model, spearman, tau_c, tau_b, pairs, triplets, source)


@cache
def read_published() -> dict[tuple[str, str], dict[str, str]]:
    """The lines of `published.csv`, by benchmark and row."""
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        return {(line["benchmark"], line["row"]): line for line in csv.DictReader(file)}


def _count(row: dict[str, str], kind: str, total: int) -> PublishedCount | None:
    if total != TOTALS[kind].get(row["benchmark"]):
        return None
    same, diff, shared = row[f"{kind}_same"], row[f"{kind}_diff"], row.get(f"{kind}_shared", "")
    return PublishedCount(int(row[kind]), float(same), float(diff), _number(shared))


def _number(text: str) -> float | None:
    return float(text) if text else None
