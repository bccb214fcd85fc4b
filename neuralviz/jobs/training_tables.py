"""Filling a declared table of trainings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from neuralviz import evaluation
from neuralviz.evaluation.training_tables import TrainingCell, read_cell, training_table
from neuralviz.jobs.keeping import KeptTask
from neuralviz.jobs.task import Progress
from neuralviz.models.shared import shared_text_model
from neuralviz.store.corpora import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Generator

    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.training_lab import RowProgress
    from neuralviz.models.shared import ModelRef
    from neuralviz.training.settings import TrainingSettings

FORMAT = 2  # of what is kept


@dataclass(frozen=True, eq=False)
class FilledTable:
    """A table as far as it is filled.

    Attributes:
        cells: finished.
        current: where the next one is; None before the first, and when all are there.
    """

    cells: tuple[TrainingCell, ...] = ()
    current: RowProgress | None = None


@dataclass(frozen=True)
class FillTrainingTable(KeptTask["RowProgress | TrainingCell", FilledTable]):
    """Fill a table: a training for every row and seed. What is finished is found again.

    Attributes:
        table: name of a declared one.
        model: to begin with.
        corpus: id of a saved corpus.
        labels: its column of labels.
        settings: that all rows share.
        seeds: each row is trained once with each.
    """

    table: str
    model: ModelRef
    corpus: str
    labels: str
    settings: TrainingSettings
    seeds: tuple[int, ...]

    def start(self) -> FilledTable:
        return FilledTable()

    def events(self, should_stop: ShouldStop) -> Generator[RowProgress | TrainingCell, None, None]:
        store = CorpusStore()
        corpus = store.corpus(self.corpus)
        model = shared_text_model(self.model.id)
        yield from evaluation.fill_table(
            training_table(self.table).rows(self.settings, model.n_blocks),
            model,
            store.texts(corpus),
            store.label_names(corpus, self.labels),
            seeds=self.seeds,
            should_stop=should_stop,
        )

    def fold(
        self, result: FilledTable, events: Sequence[RowProgress | TrainingCell]
    ) -> FilledTable:
        cells = tuple(event for event in events if isinstance(event, TrainingCell))
        last = events[-1] if events else result.current
        current = None if isinstance(last, TrainingCell) else last
        return replace(result, cells=result.cells + cells, current=current)

    def progress(self, result: FilledTable) -> Progress:
        row = result.current
        if row is None:
            return Progress(doing=f"{len(result.cells)} rows are there" if result.cells else "")
        doing = f"Training {row.cell + 1} of {row.cells}: {row.row}, seed {row.seed}"
        share = row.step / row.steps if row.steps else 0.0
        if row.steps:
            doing += f", step {row.step:,} of {row.steps:,}"
        is_last = row.seed != self.seeds[0] or row.cell == row.cells - 1  # each row has begun
        part = row.cell if len(self.seeds) == 1 else None
        return Progress(row.cell + share, row.cells, doing=doing, part=part, is_last=is_last)

    def cache_key(self) -> str:
        return json.dumps([FORMAT, asdict(self)])

    def pack(self, result: FilledTable) -> bytes:
        return json.dumps([asdict(cell) for cell in result.cells]).encode()

    def unpack(self, content: bytes) -> FilledTable:
        return FilledTable(tuple(map(read_cell, json.loads(content))))
