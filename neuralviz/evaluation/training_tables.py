"""Tables of trainings: the experiments of the crops paper, one training a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from neuralviz.arrays import RecordFormat
from neuralviz.errors import SettingsError
from neuralviz.training.settings import TRAINING_POOLINGS, TrainingSettings
from neuralviz.words import number

if TYPE_CHECKING:
    import pandas as pd

    from neuralviz.training.settings import PairKind

Columns = Literal["accuracy", "layers", "spaces", "epochs"]


@dataclass(frozen=True)
class TrainingRow:
    label: str
    settings: TrainingSettings
    is_trained: bool = True  # else the encoder is measured as it is before the first step
    unseen: bool = False  # whether the training leaves out the texts that are tested on


@dataclass(frozen=True)
class TrainingTable:
    line: str  # what it compares, and where the paper does
    columns: Columns  # what its numbers are
    # from the settings that all rows share, and the number of the model's blocks
    rows: Callable[[TrainingSettings, int], tuple[TrainingRow, ...]]


@dataclass(frozen=True, eq=False)
class TrainingCell:
    """The result of one row and seed; accuracies are shares, 0 … 1."""

    row: str
    seed: int
    steps: int
    seconds: float  # that the steps took: the median of a step, times their number
    diverged: bool
    layers: tuple[float, ...]  # [layer] 10-NN accuracy, each text by all others, cosine similarity
    # the last layer's, before and after every epoch; None where it is not known, as the process
    # was killed between
    epochs: tuple[float | None, ...]
    # 10-NN accuracy of the last layer on a random tenth, whose neighbours are among the rest
    # (Table S2), by space and metric, such as ``whitened cosine``
    spaces: Mapping[str, float]

    def numbers(self, columns: Columns) -> dict[str, float | None]:
        if columns == "layers":
            return {f"layer {layer}": value for layer, value in enumerate(self.layers)}
        if columns == "spaces":
            return dict(self.spaces)
        if columns == "epochs":
            names = ["before", *(f"epoch {n}" for n in range(1, len(self.epochs)))]
            return dict(zip(names, self.epochs, strict=True))
        return {"last layer": self.layers[-1], "best layer": max(self.layers)}


@dataclass(frozen=True)
class RowProgress:
    row: str
    seed: int
    step: int
    steps: int  # 0 while the encoder is looked at before
    cell: int = 0  # finished ones, of ``cells``
    cells: int = 0


CELLS_FORMAT = RecordFormat("a table of trainings", version=4, classes=(TrainingCell,))


def training_frame(table: TrainingTable, cells: Sequence[TrainingCell]) -> pd.DataFrame:
    """The table so far as text: percent, mean and range over seeds; mean steps and seconds."""
    seeds = training_numbers(table, cells).drop(columns=["seed", "diverged"])
    rows = seeds.groupby("row", sort=False)
    spent = rows[["steps", "seconds"]].mean().map("{:,.0f}".format)
    return rows.agg(_percent).assign(**spent).reset_index()


def training_numbers(table: TrainingTable, cells: Sequence[TrainingCell]) -> pd.DataFrame:
    """The numbers, a cell a row: row, seed, accuracies (0 … 1), steps, seconds, diverged."""
    import pandas as pd

    return pd.DataFrame(
        {"row": cell.row, "seed": cell.seed}
        | cell.numbers(table.columns)
        | {"steps": cell.steps, "seconds": cell.seconds, "diverged": cell.diverged}
        for cell in cells
    )


def _percent(shares: pd.Series) -> str:
    percents = 100 * shares.dropna()
    if percents.empty:
        return "–"
    mean, low, high = (number(v, ".1f") for v in (percents.mean(), percents.min(), percents.max()))
    return mean if len(percents) == 1 else f"{mean} ({low} … {high})"


# --- declared tables ------------------------------------------------------------------------------


def _before(settings: TrainingSettings, label: str = "before") -> TrainingRow:
    return TrainingRow(label, settings, is_trained=False)


def _list_kinds(
    *kinds: PairKind, before: bool = True
) -> Callable[[TrainingSettings, int], tuple[TrainingRow, ...]]:
    """The rows of some kinds of pairs, below that of the untrained encoder."""

    def make(settings: TrainingSettings, n_blocks: int) -> tuple[TrainingRow, ...]:
        rows = [TrainingRow(kind, replace(settings, pairs=kind)) for kind in kinds]
        return (*[_before(settings)] * before, *rows)

    return make


def _starts(settings: TrainingSettings, n_blocks: int) -> tuple[TrainingRow, ...]:
    crops = replace(settings, pairs="crops", start="pretrained")
    scratch = replace(crops, start="random", epochs=None)
    table = replace(  # alone, with its own epochs and rate
        scratch, part="table", pooling="mean", frozen_blocks=0, epochs=None, learning_rate=None
    )
    dropout = replace(table, pairs="dropout")
    pretrained = [replace(way, start="pretrained") for way in (table, dropout)]
    starts = {
        "pretrained": [crops],
        "random": [scratch],
        "table alone": [table, dropout],
        "pretrained table alone": pretrained,
    }
    rows: list[TrainingRow] = []
    for start, ways in starts.items():
        rows.append(_before(ways[0], f"{start}, before"))
        rows += [TrainingRow(f"{start}, {way.pairs}", way) for way in ways]
    return tuple(rows)


def _frozen(settings: TrainingSettings, n_blocks: int) -> tuple[TrainingRow, ...]:
    crops = replace(settings, pairs="crops")
    frozen = [TrainingRow(f"{n} frozen", replace(crops, frozen_blocks=n)) for n in range(n_blocks)]
    return (_before(crops), *frozen)


def _poolings(settings: TrainingSettings, n_blocks: int) -> tuple[TrainingRow, ...]:
    crops = replace(settings, pairs="crops")
    rows: list[TrainingRow] = []
    for pooling in TRAINING_POOLINGS:
        pooled = replace(crops, pooling=pooling)
        rows += [_before(pooled, f"{pooling}, before"), TrainingRow(f"{pooling}, crops", pooled)]
    return tuple(rows)


def _unseen(settings: TrainingSettings, n_blocks: int) -> tuple[TrainingRow, ...]:
    before, *rows = CROPS_AND_DROPOUT(settings, n_blocks)
    apart = [replace(row, label=f"{row.label}, test unseen", unseen=True) for row in rows]
    return (before, *rows, *apart)


CROPS_AND_DROPOUT = _list_kinds("crops", "dropout")
TRAINING_TABLES = {
    "pairs": TrainingTable(
        "Crops, dropout and masking against before (section 3).",
        "accuracy",
        _list_kinds("crops", "dropout", "masking"),
    ),
    "layers": TrainingTable(
        "Every layer, before and after (Fig. 4b).", "layers", CROPS_AND_DROPOUT
    ),
    "frozen": TrainingTable("Crops with the first blocks frozen (Fig. 4a).", "accuracy", _frozen),
    "spaces": TrainingTable(
        "Raw, centred and whitened; Euclidean and cosine (Table S2).", "spaces", CROPS_AND_DROPOUT
    ),
    "epochs": TrainingTable(
        "After every epoch.", "epochs", _list_kinds("crops", "dropout", before=False)
    ),
    "starts": TrainingTable(
        "Pretrained weights, random weights, and the embedding table alone (Table S5: random).",
        "accuracy",
        _starts,
    ),
    "poolings": TrainingTable("Mean, CLS, SEP and the seventh token.", "accuracy", _poolings),
    "unseen": TrainingTable(
        "Tested on texts that were trained on, and on texts that were not.", "spaces", _unseen
    ),
}


def training_table(name: str) -> TrainingTable:
    """The table of a name; SettingsError where there is none."""
    if name not in TRAINING_TABLES:
        raise SettingsError(f"Unknown experiment “{name[:40]}”. Use: {', '.join(TRAINING_TABLES)}.")
    return TRAINING_TABLES[name]
