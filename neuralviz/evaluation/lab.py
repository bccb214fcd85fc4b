"""Fill an evaluation's table cell by cell; vectors are kept, so that it can stop and resume."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from neuralviz.embedders.base import has_risen
from neuralviz.embedders.specs import make_embedder
from neuralviz.errors import (
    NeuralvizError,
    Stopped,
    UnreadableTextError,
    describe_unexpected,
    never,
)
from neuralviz.evaluation.measures import measure, overlaps
from neuralviz.evaluation.results import Cell, Compared, Event, Progress
from neuralviz.micro_tuning.settings import is_fast
from neuralviz.models.shared import LOADERS
from neuralviz.paths import home
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.database import Database
from neuralviz.store.embedding import embed, embed_at_once
from neuralviz.store.importing import find_imported
from neuralviz.store.vectors import KeptEmbedder, KeptVectors, text_keys

if TYPE_CHECKING:
    from neuralviz.embedders import NeuralEmbedder
    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.plan import EvaluationPlan, Row
    from neuralviz.models.shared import Loaders

WITH_EPOCHS = ("neural", "neural-1")  # methods of which one run serves several epochs
MAX_OVERLAPPED = 12  # rows whose shared errors are computed


def kept_vectors(folder: Path | None = None) -> KeptVectors:
    """Vectors of evaluations, by default in the user's folder; StoreError if it is unreadable."""
    return KeptVectors(Database(folder or home() / "evaluation"))


def evaluate(
    plan: EvaluationPlan,
    vectors: KeptVectors | None = None,
    *,
    loaders: Loaders = LOADERS,
    should_stop: ShouldStop = never,
) -> Generator[Event]:
    """Fill a table cell by cell; a cell that fails does not end the work.

    Vectors are kept in ``vectors``, by default `kept_vectors`, so that the same plan resumes where
    it stopped. Yields `Progress`, a `Cell` for each row and data set and, from two rows on, what
    they break in common. Raises Stopped, and StoreError as `kept_vectors`.
    """
    once = {kind: cache(load) for kind, load in loaders.items()}
    yield from _Evaluation(plan, vectors or kept_vectors(), once, should_stop).events()


@dataclass(eq=False)
class _Evaluation:
    """One pass over a plan; remembers where each row's vectors are kept, by its number."""

    plan: EvaluationPlan
    vectors: KeptVectors
    loaders: Loaders
    should_stop: ShouldStop
    kept: dict[int, tuple[KeptVectors, KeptEmbedder]] = field(default_factory=dict)

    def events(self) -> Iterator[Event]:
        rows, settings = self.plan.rows, self.plan.settings
        order = sorted(range(len(rows)), key=lambda index: rows[index].spec.learns)
        together = {group[0]: group for group in _in_one_run(rows)}
        for number, data in enumerate(self.plan.data):
            finished = []
            for index in order:
                if index in together:
                    yield from self._embed_at_once(number, together[index])
                if self.should_stop():
                    raise Stopped
                for event in self._cell(number, index):
                    yield event
                    if isinstance(event, Cell) and event.measured is not None:
                        finished.append(index)
            if len(finished) > 1 and {"triplets", "pairs"} & set(settings.measures_of(data)):
                yield Progress(number, None, "comparing")
                yield self._compare(number, sorted(finished))

    def _cell(self, number: int, index: int) -> Iterator[Event]:
        """Embed and measure; the last event is the cell."""
        row, data = self.plan.rows[index], self.plan.data[number]
        keys, n, unread = text_keys(data.texts), len(data.texts), ""
        try:
            if row.spec.is_imported:
                self.kept[index] = find_imported(
                    (self.vectors, CorpusStore().vectors), row.spec, keys
                )
            else:
                embedder = make_embedder(row.spec, self.loaders)
                for event in embed(
                    data.texts,
                    embedder,
                    self.vectors,
                    with_vectors=False,
                    should_stop=self.should_stop,
                ):
                    unread = event.unread
                    yield Progress(number, index, "embedding", event.done, event.total)
                self.kept[index] = self.vectors, event.embedder
            vectors, kept = self.kept[index]
            yield Progress(number, index, "measuring", n, n)
            measured = measure(
                data,
                vectors.get(kept, keys),
                self.plan.settings,
                should_stop=self.should_stop,
            )
            if unread:
                measured = replace(measured, notes=(*measured.notes, unread))
            n_rose = int(has_risen(vectors.losses(kept, keys)).sum())
            yield Cell(number, index, measured, n_rose=n_rose, dim=kept.dim)
        except UnreadableTextError as error:
            start = " ".join(data.texts[error.place].split())[:60]
            yield Cell(
                number, index, None, error=f"Cannot embed “{start}”: the text {error.reason}"
            )
        except NeuralvizError as error:
            yield Cell(number, index, None, error=str(error))
        except (RuntimeError, MemoryError) as error:  # of torch: too little memory, mostly
            yield Cell(number, index, None, error=describe_unexpected(error))

    def _embed_at_once(self, number: int, group: Sequence[int]) -> Iterator[Progress]:
        """Embed rows that one run serves; each row meets its own errors again later."""
        rows, texts = self.plan.rows, self.plan.data[number].texts
        with suppress(NeuralvizError, RuntimeError, MemoryError):
            embedders = [
                cast("NeuralEmbedder", make_embedder(rows[index].spec, self.loaders))
                for index in group
            ]
            for event in embed_at_once(
                texts, embedders, self.vectors, should_stop=self.should_stop
            ):
                together = tuple(group[place] for place in event.embedders)
                yield Progress(number, together[0], "embedding", event.done, event.total, together)

    def _compare(self, number: int, finished: Sequence[int]) -> Compared:
        data = self.plan.data[number]
        rows = tuple(finished[:MAX_OVERLAPPED])
        keys = text_keys(data.texts)
        vectors = [store.get(kept, keys) for store, kept in map(self.kept.__getitem__, rows)]
        shared, failed = overlaps(data, vectors, self.plan.settings, should_stop=self.should_stop)
        return Compared(number, rows, shared, failed, len(finished) - len(rows))


def _in_one_run(rows: Sequence[Row]) -> list[list[int]]:
    """Groups of rows that differ by epochs alone, so that one run of micro-tuning serves them."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(rows):
        if row.spec.method not in WITH_EPOCHS:
            continue
        options = row.spec.all_options
        if not is_fast(str(options["precision"])):
            del options["epochs"]
            alike = row.spec.method, row.spec.model_id, *options.items()
            groups.setdefault(alike, []).append(index)
    return [group for group in groups.values() if len(group) > 1]
