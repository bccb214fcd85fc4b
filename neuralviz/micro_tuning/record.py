"""A run as it is watched: what is known so far, folded from its events."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.arrays import RecordFormat
from neuralviz.micro_tuning.blanks import TextDelta
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.events import Predictions, TextReport, neural_embeddings
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models.tokens import TokenizedText

if TYPE_CHECKING:
    from pathlib import Path

    from neuralviz.micro_tuning.watching import WatchedEvent

HISTORY_BYTES = 1 << 26  # deltas kept epoch by epoch; of texts beyond it only the last
RECORD_FORMAT = RecordFormat(
    "a run", version=1, classes=(Blueprint, Predictions, TextReport, TokenizedText, TuningSettings)
)


class RunRecord:
    """The results so far of a run over ``texts``; `having` makes a new record with more events.

    Attributes:
        loss: [epoch, text] before the epoch's step; NaN where not known yet, or no number.
        delta_norm: [epoch, text, layer] after the epoch; NaN where not known yet.
        last: per layer [text, dim] the latest delta, NaN where there is none.
        history: per layer [epoch, text, dim] the delta after each epoch, of as many texts as
            64 MB hold.
        reports: by text, once its tuning is over.
        epochs_reached: of the batch that is being tuned; ``texts_done`` texts are finished.
        diverged: numbers of the texts whose loss or weights ceased to be finite.
    """

    def __init__(self, model_id: str, settings: TuningSettings, texts: Sequence[str]) -> None:
        self.model_id = model_id
        self.settings = settings
        self.texts = tuple(texts)
        shape = (settings.epochs, len(self.texts))
        self.loss = np.full(shape, np.nan)
        self.delta_norm = np.full((*shape, len(settings.layers)), np.nan)
        self.last: list[np.ndarray] = []
        self.history: list[np.ndarray] = []
        self.reports: dict[int, TextReport] = {}
        self.epochs_reached = self.texts_done = self._batch = 0
        self.diverged: set[int] = set()

    @property
    def n_layers(self) -> int:
        return len(self.settings.layers)

    def _add(self, watched: WatchedEvent) -> None:
        """Take in one event; of a copy that nobody has read yet."""
        if watched.report is not None:
            self.reports[watched.report.index] = watched.report
        event, first = watched.event, watched.first
        if event is None:
            return
        self._batch = len(event.loss)
        epoch, columns = event.epoch - 1, slice(first, first + self._batch)
        self.loss[epoch, columns] = event.loss
        self.delta_norm[epoch, columns] = event.delta_norm
        if event.deltas is not None:
            if not self.last:
                self._make_room([delta.shape[1] for delta in event.deltas])
            for last, history, delta in zip(self.last, self.history, event.deltas, strict=True):
                last[columns] = delta
                kept = history[epoch, columns]
                kept[:] = delta[: len(kept)]
        self.epochs_reached = event.epoch
        if event.result is not None:
            self.texts_done = columns.stop
            self.diverged |= {first + int(i) for i in np.flatnonzero(event.result.diverged)}

    def having(self, events: Sequence[WatchedEvent]) -> RunRecord:
        """The record with some more events; this one stays as it is."""
        grown = copy(self)
        grown.loss, grown.delta_norm = self.loss.copy(), self.delta_norm.copy()
        grown.last = [kept.copy() for kept in self.last]
        grown.history = [kept.copy() for kept in self.history]
        grown.reports, grown.diverged = dict(self.reports), set(self.diverged)
        for event in events:
            grown._add(event)
        return grown

    def _make_room(self, dims: Sequence[int]) -> None:
        n_texts, epochs = len(self.texts), self.settings.epochs
        kept = min(n_texts, HISTORY_BYTES // (4 * epochs * sum(dims)))
        self.last = [np.full((n_texts, dim), np.nan, dtype=np.float32) for dim in dims]
        self.history = [np.full((epochs, kept, dim), np.nan, dtype=np.float32) for dim in dims]

    @property
    def progress(self) -> float:
        """Share of the work that is done, 0 … 1; a text counts by its length."""
        if self.texts_done >= len(self.texts):
            return 1.0
        inside = self.epochs_reached % self.settings.epochs / self.settings.epochs
        ends = np.cumsum([0, *map(len, self.texts)])
        n_started = min(self.texts_done + self._batch, len(self.texts))
        n_done = ends[self.texts_done] + inside * (ends[n_started] - ends[self.texts_done])
        return float(n_done / ends[-1])

    def epochs_done(self, text: int) -> int:
        """Epochs that a text has been tuned for."""
        return int((~np.isnan(self.delta_norm[:, text, 0])).sum())

    def delta(self, layer: int, text: int) -> np.ndarray:
        """[epoch, dim] the delta of a layer after each epoch, NaN where it is not kept."""
        history = self.history[layer]
        if text < history.shape[1]:
            return history[:, text]
        only_last = np.full((self.settings.epochs, history.shape[2]), np.nan, dtype=np.float32)
        only_last[self.epochs_done(text) - 1] = self.last[layer][text]
        return only_last

    def text_delta(self, text: int) -> TextDelta:
        """The latest delta of a text; NaN where it has not been started."""
        values = tuple(last[text] for last in self.last)
        return TextDelta(self.model_id, self.settings.layers, values)

    def strongest_neurons(self, layer: int, text: int, n: int = 5) -> list[int]:
        """The ``n`` neurons of a layer that moved most so far, strongest first."""
        if not self.epochs_done(text):
            return []
        return np.argsort(-np.abs(self.last[layer][text]))[:n].tolist()

    def loss_curves(self) -> np.ndarray:
        """[text, epoch + 1] `loss_curve` of every text."""
        return np.array([self.loss_curve(i) for i in range(len(self.texts))])

    def loss_curve(self, text: int) -> np.ndarray:
        """[epoch + 1] loss after so many epochs of learning, NaN where not known."""
        report = self.reports.get(text)
        last = np.nan if report is None or report.loss_after is None else report.loss_after
        return np.append(self.loss[:, text], last)

    def loss_rose(self, text: int) -> bool:
        """Whether the last known loss is above the first, or no number."""
        losses = self.loss[: self.epochs_done(text), text]
        return len(losses) > 1 and not losses[-1] <= losses[0]

    @property
    def started_texts(self) -> list[int]:
        """Numbers of the texts that have a delta."""
        return [i for i in range(len(self.texts)) if self.epochs_done(i)]

    def texts_like(self, text: int) -> list[int]:
        """Numbers of the texts that are as far as a text: finished, under way or not started.

        A text is finished when there is a report on it.
        """

        states = [(i in self.reports, self.epochs_done(i) > 0) for i in range(len(self.texts))]
        return [i for i, state in enumerate(states) if state == states[text]]

    def embeddings(self) -> np.ndarray:
        """[started text, dim] neural embeddings after the epochs done so far."""
        started = self.started_texts
        return neural_embeddings(tuple(last[started] for last in self.last))


def load_record(path: Path) -> RunRecord:
    """The run in a file of `record_bytes`; errors as of `read_record`."""
    return read_record(path.read_bytes())


def record_bytes(record: RunRecord) -> bytes:
    """The content of a file with a run that is over, also one that was stopped.

    Deltas on the way are rounded to float16 where all are within its range; the latest are not, so
    that embeddings come back bit by bit.
    """
    return RECORD_FORMAT.pack(vars(record) | {"history": _round_to_halves(record.history)})


def _round_to_halves(history: Sequence[np.ndarray]) -> list[np.ndarray]:
    """In float16 where all values are within its range, which those that diverged may not be."""
    with np.errstate(over="ignore"):
        halves = [values.astype(np.float16) for values in history]
    return [
        values if np.isinf(half).any() else half
        for values, half in zip(history, halves, strict=True)
    ]


def read_record(content: bytes) -> RunRecord:
    """The run that `record_bytes` made bytes of; ValueError for anything else."""
    values = RECORD_FORMAT.unpack(content)
    try:
        record = RunRecord(values["model_id"], values["settings"], values["texts"])
        vars(record).update(values)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("This is no file of a run.") from error
    record.history = [deltas.astype(np.float32) for deltas in record.history]
    return record
