"""Tables of trainings, the experiments of the crops paper; filled row by row, and resumed.

    python benchmarks/crops_tables.py pairs --corpus "Example: textbooks" --labels chapter -o a.csv

Every row is a training for each seed. Finished rows are kept beside the user's trainings: the same
command goes on where it was. Prints the table in markdown, in percent: the mean over the seeds and
their range. The file has the shares.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before scikit-learn and torch, which read how threads wait

# isort: split
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from neuralviz import training
from neuralviz.cli.corpus import open_corpus
from neuralviz.errors import NeuralvizError, ShouldStop, Stopped, check_choice, never
from neuralviz.files import RecordFormat, write_bytes_beside
from neuralviz.jobs.training import TEXTBOOKS
from neuralviz.maps.neighbours import K
from neuralviz.models import load_text_model
from neuralviz.models.language_model import MINILM
from neuralviz.store.writing import explain_write_errors, write_text
from neuralviz.training.record import (
    TABLES,
    TrainingEnded,
    TrainingStep,
    Watch,
    training_folder,
)
from neuralviz.training.settings import (
    PairSource,
    TrainingPooling,
    TrainingSettings,
    steps_of_epoch,
)
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.models import TextModel
    from neuralviz.training.record import Snapshot
    from neuralviz.training.settings import PairKind

Columns = Literal["accuracy", "layers", "spaces", "epochs"]


@dataclass(frozen=True)
class TrainingRow:
    label: str
    settings: TrainingSettings
    is_trained: bool = True  # else the encoder is measured as it is before the first step
    unseen: bool = False  # whether the training leaves out the texts that are tested on


# from the settings that all rows share, and the number of the model's blocks
MakeRows = Callable[[TrainingSettings, int], tuple[TrainingRow, ...]]


@dataclass(frozen=True)
class TrainingTable:
    line: str  # what it compares, and where the paper does
    columns: Columns  # what its numbers are
    rows: MakeRows


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


CELLS_FORMAT = RecordFormat("a table of trainings", version=4, classes=(TrainingCell,))


def training_frame(table: TrainingTable, cells: Sequence[TrainingCell]) -> pd.DataFrame:
    """The table so far as text: percent, mean and range over seeds; mean steps and seconds."""
    seeds = training_numbers(table, cells).drop(columns=["seed", "diverged"])
    rows = seeds.groupby("row", sort=False)
    spent = rows[["steps", "seconds"]].mean().map("{:,.0f}".format)
    return rows.agg(_percent).assign(**spent).reset_index()


def training_numbers(table: TrainingTable, cells: Sequence[TrainingCell]) -> pd.DataFrame:
    """The numbers, a cell a row: row, seed, accuracies (0 … 1), steps, seconds, diverged."""
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


def _list_kinds(*kinds: PairKind, before: bool = True) -> MakeRows:
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
    pretrained = [replace(row, start="pretrained") for row in (table, dropout)]
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
    for pooling in get_args(TrainingPooling):
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
    check_choice("experiment", name, TRAINING_TABLES)
    return TRAINING_TABLES[name]


# --- filling a table -----------------------------------------------------------------------------

MOST_TEXTS = 4000  # that are measured, read up to the model's window
TESTED = 0.1  # of the texts with a label, as in the authors' program
TEST_SEED = 42
SEEDS = (1, 2, 3)
SPACE_METRICS = ("euclidean", "cosine")
_FORMAT = 3  # raise it where the same row gives other numbers


def fill_table(
    rows: Sequence[TrainingRow],
    model: TextModel,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    seeds: Sequence[int] = SEEDS,
    folder: Path | None = None,
    should_stop: ShouldStop = never,
) -> Generator[RowProgress | TrainingCell]:
    """Fill a table, all rows for one seed before the next; finished cells are reused.

    ``labels``, one per text and ``""`` for none, are not trained on. Cells and checkpoints are kept
    in ``folder``, by default the user's. Yields progress, and each cell once finished or found.
    Raises NeuralvizError for fewer than two labels or none shared, or if a cell cannot be written,
    Stopped, and as `neuralviz.training.train`.
    """
    if len(set(filter(None, labels))) < 2:
        raise NeuralvizError("The experiment needs a column with at least two different labels.")
    if len({text for text, label in zip(texts, labels, strict=True) if label}) < 2 * K:
        raise NeuralvizError(f"The experiment needs {2 * K} different texts with a label or more.")
    lab = _Lab(model, texts, labels, folder, should_stop)
    for seed in seeds:
        for row in rows:
            if row.is_trained or seed == seeds[0]:
                yield from lab.cell(row, seed)


class _Lab:
    def __init__(
        self,
        model: TextModel,
        texts: Sequence[str],
        labels: Sequence[str],
        folder: Path | None,
        should_stop: ShouldStop,
    ) -> None:
        self.model, self.texts, self.should_stop = model, texts, should_stop
        self._own_folder = folder
        # As the authors' program, it reads a text's beginning.
        self.watch = Watch(texts, labels, n_texts=MOST_TEXTS, characters=None, is_whole=False)
        self._before: dict[tuple[Any, ...], Snapshot] = {}
        self.labels = np.array([labels[i] for i in self.watch.watched])
        places = np.arange(len(self.labels))
        _, tested = train_test_split(places, test_size=TESTED, random_state=TEST_SEED)
        self.tested = np.isin(places, tested)  # [watched text]
        content = json.dumps([_FORMAT, model.fingerprint, list(texts), list(labels)])
        self._data = hashlib.sha256(content.encode())

    def cell(self, row: TrainingRow, seed: int) -> Generator[RowProgress | TrainingCell]:
        """Find a cell, or train and keep it; yields the cell last."""
        row = replace(row, settings=replace(row.settings, seed=seed))
        key = self._key(row)
        path = (self._own_folder or training_folder(TABLES)) / f"{key}.npz"
        cell = CELLS_FORMAT.read(path)
        if not isinstance(cell, TrainingCell):
            # Checkpoints, and what is known after each epoch. They are large: the user's own make
            # room for others like any training's; the cells stay.
            cell_folder = self._own_folder / key if self._own_folder else training_folder(key)
            if row.is_trained:
                cell = yield from self._train_cell(row, seed, cell_folder)
            else:
                yield RowProgress(row.label, seed, 0, 0)
                cell = self._measure(row, seed, self._at_start(row.settings))
            _write(path, cell)
            shutil.rmtree(cell_folder, ignore_errors=True)
        yield replace(cell, row=row.label)

    def _train_cell(
        self, row: TrainingRow, seed: int, cell_folder: Path
    ) -> Generator[RowProgress, None, TrainingCell]:
        accuracy = CELLS_FORMAT.read(cell_folder / "epochs.npz") or {}  # by step
        accuracy[0] = _last(self._at_start(row.settings))
        texts = self._trained_on(row)
        per_epoch = steps_of_epoch(len(PairSource(texts, row.settings)), row.settings.batch_size)
        took: list[float] = []  # seconds of the steps after which nothing was measured
        start = time.monotonic()
        for event in training.train(
            self.model,
            texts,
            row.settings,
            watch=self.watch,
            watch_every=per_epoch,
            watch_before=False,
            folder=cell_folder / "checkpoints",
            should_stop=self.should_stop,
        ):
            if event.snapshot is not None:
                accuracy[event.snapshot.step] = _last(event.snapshot)
                _write(cell_folder / "epochs.npz", accuracy)
            elif isinstance(event, TrainingStep):
                took.append(time.monotonic() - start)
            if not isinstance(event, TrainingEnded):
                yield RowProgress(row.label, seed, event.step, event.steps)
            start = time.monotonic()
        assert isinstance(event, TrainingEnded)
        result = event.result
        if result.is_stopped:
            raise Stopped
        if event.snapshot is None:
            raise NeuralvizError(
                f"The encoder of “{row.label}” outputs infinite or NaN values. Lower the learning "
                "rate."
            )
        ends = [*range(0, result.step, per_epoch), result.step]
        return replace(
            self._measure(row, seed, event.snapshot),
            steps=result.step,
            seconds=float(np.median(took)) * result.step if took else 0.0,
            diverged=result.diverged,
            epochs=tuple(accuracy.get(end) for end in ends),
        )

    def _at_start(self, settings: TrainingSettings) -> Snapshot:
        """The snapshot before training, measured once for encoders with the same start."""
        seed = settings.seed if settings.start == "random" else None
        start = settings.part, settings.pooling, seed
        if start not in self._before:
            learner = training.make_learner(self.model, settings)
            self._before[start] = self.watch.look(learner, 0, self.should_stop)
        return self._before[start]

    def _trained_on(self, row: TrainingRow) -> list[str]:
        """All texts, or all but the tested ones and their duplicates."""
        tested = self.watch.watched[self.tested] if row.unseen else ()
        hidden = {self.texts[number] for number in tested}
        return [text for text in self.texts if text not in hidden]

    def _measure(self, row: TrainingRow, seed: int, snapshot: Snapshot) -> TrainingCell:
        assert snapshot.accuracy is not None
        assert snapshot.vectors is not None
        layers = tuple(map(float, snapshot.accuracy))
        spaces = knn_by_space(snapshot.vectors, self.labels, self.tested)
        return TrainingCell(row.label, seed, 0, 0.0, False, layers, layers[-1:], spaces)

    def _key(self, row: TrainingRow) -> str:
        key = self._data.copy()
        key.update(json.dumps([asdict(row.settings), row.is_trained, row.unseen]).encode())
        return key.hexdigest()[:32]


def knn_by_space(vectors: np.ndarray, labels: np.ndarray, tested: np.ndarray) -> dict[str, float]:
    """k-NN accuracy of ``tested`` texts, by space and metric (crops paper, Table S2)."""
    # uniform votes of untested texts alone; centring and whitening use all texts
    spaces = {
        "raw": vectors,
        "centred": vectors - vectors.mean(axis=0),
        "whitened": PCA(whiten=True).fit_transform(vectors),
    }
    k = min(K, int((~tested).sum()))
    return {
        f"{name} {metric}": float(
            KNeighborsClassifier(k, metric=metric, algorithm="brute")
            .fit(points[~tested], labels[~tested])
            .score(points[tested], labels[tested])
        )
        for name, points in spaces.items()
        for metric in SPACE_METRICS
    }


def _last(snapshot: Snapshot) -> float:
    assert snapshot.accuracy is not None
    return float(snapshot.accuracy[-1])


def _write(path: Path, content: object) -> None:
    with explain_write_errors(path):
        write_bytes_beside(path, CELLS_FORMAT.pack(content))


# --- the command ---------------------------------------------------------------------------------


def main() -> None:
    """Fill a table on a saved corpus, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", nargs="?", choices=TRAINING_TABLES)
    parser.add_argument("--corpus", default=TEXTBOOKS, help="a saved corpus")
    parser.add_argument("--labels", default="chapter", help="its column, never trained on")
    parser.add_argument("--model", default=MINILM, help="model to begin with")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="trainings of a row")
    parser.add_argument("--output", "-o", type=Path, help="CSV file")
    for name in ("epochs", "batch-size", "sentences", "shortest", "longest"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--learning-rate", type=float, help="of the whole model")
    options = parser.parse_args()
    if options.experiment is None:  # among all benchmarks: it would train for hours
        print(f"Name a table to fill: {', '.join(TRAINING_TABLES)}.")
        return
    if options.seeds < 1:
        sys.exit("--seeds must be at least 1.")
    if options.output and not options.output.parent.is_dir():
        sys.exit(f"There is no folder {options.output.parent}.")
    names = ("epochs", "batch_size", "sentences", "shortest", "longest", "learning_rate")
    typed = {name: v for name in names if (v := getattr(options, name)) is not None}
    try:
        settings, (store, corpus) = TrainingSettings(**typed), open_corpus(options.corpus)
        labels = store.label_names(corpus, options.labels)
        model = load_text_model(options.model)
        table, seeds = training_table(options.experiment), range(1, options.seeds + 1)
        rows = table.rows(settings, model.n_blocks)
        cells, stopped = [], ""
        try:
            for cell in report_cells(rows, model, store.texts(corpus), labels, seeds):
                cells.append(cell)
        except KeyboardInterrupt:
            stopped = "Stopped. Finished rows are saved; run the same command again to resume."
        if options.output and cells:
            write_text(options.output, training_numbers(table, cells).to_csv(index=False))
        if cells:
            print_table(table, cells)
        if stopped:
            sys.exit(stopped)
    except NeuralvizError as error:
        sys.exit(str(error))


def report_cells(
    rows: Sequence[TrainingRow],
    model: TextModel,
    texts: Sequence[str],
    labels: Sequence[str],
    seeds: Sequence[int],
    folder: Path | None = None,
) -> Iterator[TrainingCell]:
    """All cells of the rows, as they are filled; says on standard error where it is."""
    for event in fill_table(rows, model, texts, labels, seeds=seeds, folder=folder):
        if isinstance(event, TrainingCell):
            yield event
        elif event.step % 10 == 0:
            moment = f"step {event.step} of {event.steps}"
            print(f"{event.row}, seed {event.seed}: {moment}", file=sys.stderr, flush=True)


def print_table(table: TrainingTable, cells: Sequence[TrainingCell]) -> None:
    frame = training_frame(table, cells)
    print(f"| {' | '.join(frame.columns)} |\n|{' --- |' * len(frame.columns)}")
    for row in frame.itertuples(index=False):
        print(f"| {' | '.join(map(str, row))} |")
    print(flush=True)


if __name__ == "__main__":
    main()
