"""Fill a table of trainings row by row and seed by seed; it can stop and resume."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from neuralviz.errors import NeuralvizError, Stopped, never
from neuralviz.evaluation.training_tables import (
    CELLS_FORMAT,
    RowProgress,
    TrainingCell,
    TrainingRow,
)
from neuralviz.maps.neighbours import K, knn_by_space
from neuralviz.store.files import folder_error, write_bytes_beside
from neuralviz.training.learner import make_learner
from neuralviz.training.loop import Schedule, train
from neuralviz.training.pairs import PairSource
from neuralviz.training.record import (
    TrainingEnded,
    TrainingStep,
    Watch,
    tables_folder,
    training_folder,
)

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.models import TextModel
    from neuralviz.training.record import Snapshot
    from neuralviz.training.settings import TrainingSettings

MOST_TEXTS = 4000  # that are measured, read up to the model's window
TESTED = 0.1  # of the texts with a label, as in the authors' program
TEST_SEED = 42
SEEDS = (1, 2, 3)
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
    Raises NeuralvizError for fewer than two labels or none shared, StoreError if a cell cannot be
    written, Stopped, and as `neuralviz.training.train`.
    """
    if len(set(filter(None, labels))) < 2:
        raise NeuralvizError("The experiment needs a column with at least two different labels.")
    if len({text for text, label in zip(texts, labels, strict=True) if label}) < 2 * K:
        raise NeuralvizError(f"The experiment needs {2 * K} different texts with a label or more.")
    lab = _Lab(model, texts, labels, folder, should_stop)
    cells = [(row, seed) for seed in seeds for row in rows if row.is_trained or seed == seeds[0]]
    for number, (row, seed) in enumerate(cells):
        for event in lab.cell(row, seed):
            if isinstance(event, RowProgress):
                event = replace(event, cell=number, cells=len(cells))
            yield event


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
        path = (self._own_folder or tables_folder()) / f"{key}.npz"
        cell = _read(path)
        if not isinstance(cell, TrainingCell):
            # Checkpoints, and what is known after each epoch. They are large: the user's own make
            # room for others like any training's; the cells stay.
            cell_folder = self._own_folder / key if self._own_folder else training_folder(key)
            cell = yield from self._make_cell(row, seed, cell_folder)
            _write(path, cell)
            shutil.rmtree(cell_folder, ignore_errors=True)
        yield replace(cell, row=row.label)

    def _make_cell(
        self, row: TrainingRow, seed: int, cell_folder: Path
    ) -> Generator[RowProgress, None, TrainingCell]:
        if row.is_trained:
            return (yield from self._train_cell(row, seed, cell_folder))
        yield RowProgress(row.label, seed, 0, 0)
        return self._measure(row, seed, self._at_start(row.settings))

    def _train_cell(
        self, row: TrainingRow, seed: int, cell_folder: Path
    ) -> Generator[RowProgress, None, TrainingCell]:
        accuracy = _read(cell_folder / "epochs.npz") or {}  # by step
        accuracy[0] = _last(self._at_start(row.settings))
        texts = self._trained_on(row)
        n_pairs = len(PairSource(texts, row.settings))
        schedule = Schedule.from_settings(row.settings, n_pairs)
        took: list[float] = []  # seconds of the steps after which nothing was measured
        start = time.monotonic()
        for event in train(
            self.model,
            texts,
            row.settings,
            watch=self.watch,
            watch_every=schedule.per_epoch,
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
                f"The encoder of “{row.label}” gives no numbers any more: lower the learning rate."
            )
        ends = [*range(0, result.step, schedule.per_epoch), result.step]
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
            learner = make_learner(self.model, settings)
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


def _last(snapshot: Snapshot) -> float:
    assert snapshot.accuracy is not None
    return float(snapshot.accuracy[-1])


def _read(path: Path) -> Any:
    try:
        return CELLS_FORMAT.unpack(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write(path: Path, content: object) -> None:
    try:
        write_bytes_beside(path, CELLS_FORMAT.pack(content))
    except OSError as error:
        sentence = f"Could not save to {path.parent}: {error.strerror or error}."
        raise folder_error(sentence) from error
