"""Experiments as work that goes on: cell by cell, stopped and taken up again, nothing lost.

Vectors are kept by text and by all that they depend on, as those of corpora are, in a folder of
their own: a run that ended in any way finds what it had embedded, and a run that was finished is
measured again in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from neuralviz.embedders.base import rose
from neuralviz.embedders.registry import LOADERS, make_embedder
from neuralviz.errors import NeuralvizError, Stopped, UnreadableTextError
from neuralviz.evaluation.measures import Measured, measure, overlaps
from neuralviz.micro_tuning.settings import is_fast
from neuralviz.paths import home
from neuralviz.store.database import Database
from neuralviz.store.embedding import embed, embed_at_once
from neuralviz.store.vectors import KeptEmbedder, KeptVectors, text_keys

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder, NeuralEmbedder
    from neuralviz.embedders.registry import Loaders
    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.broken import Overlap
    from neuralviz.evaluation.data import DataSet, Measure
    from neuralviz.evaluation.experiments import Row

WITH_EPOCHS = ("neural", "neural-1")  # methods of which one run serves several epochs
MAX_OVERLAPPED = 12  # rows of which is told what they break in common


@dataclass(frozen=True, eq=False)
class Progress:
    """What is done of a cell, or of what comes after all cells of some data.

    Attributes:
        data, row: numbers; the row is None for overlaps.
        doing: ``embedding``, ``measuring`` or ``comparing``.
        done, total: texts embedded, of all rows that are embedded at once.
        at_once: numbers of the rows that are embedded in one run, this one among them; empty when
            it is alone.
    """

    data: int
    row: int | None
    doing: str
    done: int = 0
    total: int = 0
    at_once: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Cell:
    """A row of an experiment on a data set, finished.

    Attributes:
        data, row: numbers.
        measured: what was; None when it failed as a whole.
        error: why it failed; empty when it did not.
        n_rose: texts whose loss rose while they were learnt, or ceased to be a number.
        dim: values of a vector.
    """

    data: int
    row: int
    measured: Measured | None
    error: str = ""
    n_rose: int = 0
    dim: int = 0

    @property
    def failed(self) -> bool:
        """Whether any of what was asked for is missing."""
        return self.measured is None or bool(self.measured.failed)


@dataclass(frozen=True, eq=False)
class Compared:
    """What the rows break in common on a data set.

    Attributes:
        data: number.
        rows: numbers, in the order of the matrices.
        overlaps: by measure.
        failed: measure to why there is none.
        left_out: rows that are finished, and not compared, because there are so many.
    """

    data: int
    rows: tuple[int, ...]
    overlaps: Mapping[Measure, Overlap] = field(default_factory=dict)
    failed: Mapping[Measure, str] = field(default_factory=dict)
    left_out: int = 0


Event = Progress | Cell | Compared


class Lab:
    """Where vectors of experiments are kept.

    Attributes:
        vectors: by embedder and text.

    Args:
        folder: made when something is first kept in it; by default the user's own.

    Raises:
        StoreError: a newer neuralviz wrote the folder, or it cannot be read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home() / "evaluation"
        self.vectors = KeptVectors(Database(self.folder))

    def run(
        self,
        rows: Sequence[Row],
        data: Sequence[DataSet],
        wanted: Sequence[Measure] = (),
        *,
        k: int = 10,
        resamples: int = 1000,
        loaders: Loaders = LOADERS,
        should_stop: ShouldStop = lambda: False,
    ) -> Iterator[Event]:
        """Fill a table, a cell after the other; a cell that fails does not end the run.

        Rows that learn nothing come first; those that differ by their epochs alone are embedded in
        one run, unless they are fast. When it is told to stop, it ends; what is embedded is kept,
        and the same run goes on from there.

        Args:
            rows: ways to embed.
            data: data sets.
            wanted: measures; by default all that the data are made for.
            k: neighbours that vote on a label.
            resamples: of the bootstrap intervals.
            loaders: where models come from; each is loaded once.
            should_stop: asked again and again.

        Yields:
            `Progress` while something is done, a `Cell` for every row and data set, and, where
            there are two rows or more, what they break in common.

        Raises:
            Stopped: ``should_stop`` said so.
        """
        loaders = {kind: cache(load) for kind, load in loaders.items()}
        embedders: dict[int, KeptEmbedder] = {}
        order = sorted(range(len(rows)), key=lambda at: rows[at].spec.learns)
        for number, one in enumerate(data):
            finished = []
            at_once = {group[0]: group for group in _in_one_run(rows)}
            for at in order:
                if at in at_once:
                    yield from self._embed_at_once(
                        number, at_once[at], rows, one, loaders, should_stop
                    )
                if should_stop():
                    raise Stopped
                cell = None
                for event in self._cell(
                    (number, at), rows[at], one, wanted, k, resamples, loaders, should_stop,
                    embedders,
                ):  # fmt: skip
                    cell = event if isinstance(event, Cell) else None
                    yield event
                if cell is not None and cell.measured is not None:
                    finished.append(at)
            finished.sort()
            if len(finished) > 1 and {"triplets", "pairs"} & set(wanted or one.measures):
                yield Progress(number, None, "comparing")
                yield self._compare(number, finished, one, wanted, embedders, should_stop)

    def vectors_of(self, embedder: KeptEmbedder, texts: Sequence[str]) -> np.ndarray:
        """[text, dim] float32 vectors of texts that are embedded."""
        return self.vectors.get(embedder, text_keys(texts))

    def _cell(
        self,
        place: tuple[int, int],
        row: Row,
        data: DataSet,
        wanted: Sequence[Measure],
        k: int,
        resamples: int,
        loaders: Loaders,
        should_stop: ShouldStop,
        embedders: dict[int, KeptEmbedder],
    ) -> Iterator[Event]:
        try:
            embedder = make_embedder(row.spec, loaders)
            for event in embed(
                data.texts, embedder, self.vectors, with_vectors=False, should_stop=should_stop
            ):
                yield Progress(*place, "embedding", event.done, event.total)
            embedders[place[1]] = kept = event.embedder
            vectors = self.vectors_of(kept, data.texts)
            yield Progress(*place, "measuring", event.done, event.total)
            measured = measure(
                data, vectors, wanted, k=k, resamples=resamples, should_stop=should_stop
            )
            losses = self.vectors.losses(kept, text_keys(data.texts))
            yield Cell(*place, measured, n_rose=int(rose(losses).sum()), dim=kept.dim)
        except UnreadableTextError as error:
            reason = _unreadable(data.texts[error.place], embedder, error)
            yield Cell(*place, None, error=reason)
        except NeuralvizError as error:
            yield Cell(*place, None, error=str(error))
        except (RuntimeError, MemoryError) as error:  # of torch: too little memory, mostly
            reason = f"{type(error).__name__}: {error}".rstrip(": ")[:300]
            said = f"Something went wrong that was not foreseen ({reason})."
            yield Cell(*place, None, error=said)

    def _embed_at_once(
        self,
        number: int,
        group: Sequence[int],
        rows: Sequence[Row],
        data: DataSet,
        loaders: Loaders,
        should_stop: ShouldStop,
    ) -> Iterator[Progress]:
        """Embed by rows that one run serves; what goes wrong is for each row to find again."""
        with suppress(NeuralvizError, RuntimeError, MemoryError):
            embedders = [
                cast("NeuralEmbedder", make_embedder(rows[at].spec, loaders)) for at in group
            ]
            for event in embed_at_once(
                data.texts, embedders, self.vectors, should_stop=should_stop
            ):
                together = tuple(group[place] for place in event.embedders)
                yield Progress(number, together[0], "embedding", event.done, event.total, together)

    def _compare(
        self,
        number: int,
        finished: Sequence[int],
        data: DataSet,
        wanted: Sequence[Measure],
        embedders: Mapping[int, KeptEmbedder],
        should_stop: ShouldStop,
    ) -> Compared:
        rows = tuple(finished[:MAX_OVERLAPPED])
        vectors = [self.vectors_of(embedders[at], data.texts) for at in rows]
        found, failed = overlaps(data, vectors, wanted, should_stop=should_stop)
        return Compared(number, rows, found, failed, len(finished) - len(rows))


def _in_one_run(rows: Sequence[Row]) -> list[list[int]]:
    """Rows, two or more, that one run of micro-tuning serves, as they differ by epochs alone."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        if row.spec.method not in WITH_EPOCHS:
            continue
        options = row.spec.all_options
        if not is_fast(str(options["precision"])):
            del options["epochs"]
            alike = row.spec.method, row.spec.model_id, *options.items()
            groups.setdefault(alike, []).append(at)
    return [group for group in groups.values() if len(group) > 1]


def _unreadable(text: str, embedder: Embedder, error: UnreadableTextError) -> str:
    """Why an embedder cannot read a text, with its beginning."""
    start = " ".join(text.split())[:60]
    return f"“{start}” cannot be embedded by {embedder.name}: The text {error.reason}"
