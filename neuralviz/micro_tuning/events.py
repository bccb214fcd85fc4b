"""Micro-tuning as a stream of events, what they come to, and the record of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.files import RecordFormat
from neuralviz.micro_tuning.settings import Blueprint, TuningSettings
from neuralviz.models import LanguageModel
from neuralviz.models.tokens import TokenizedText
from neuralviz.words import ShortRepr

CANCELLING = 2.0  # sum of a layer's shares without their signs; above, they tell little


@dataclass(frozen=True, eq=False, repr=False)
class TokenShares(ShortRepr):
    """Each token's contribution to a text's delta; with weight decay's they sum to the delta."""

    # exact over all steps, as AdamW's step is linear in the gradient's first moment, and the
    # gradient is a sum over masked positions

    tokens: tuple[np.ndarray, ...]  # per layer, [token, dim] contributions
    decay: tuple[np.ndarray, ...]  # per layer, [dim] contribution of weight decay

    def token_shares(self) -> np.ndarray:
        """[token] projection of contributions on the delta, relative to it, mean over layers.

        Negative ones are against the delta; with `decay_share` all sum to 1, or to 0 if nothing
        moved. AdamW divides by the size of the gradient: where the tokens' gradients nearly cancel,
        their contributions are many times the delta. Layers whose shares sum to more than 2 without
        their signs are left out, unless all do; then the one with the smallest sum is taken, and
        `do_cancel` is true.
        """
        return self._shares()[:-1]

    @property
    def do_cancel(self) -> bool:
        """Whether the contributions nearly cancel in all layers, so that shares tell nothing."""
        return float(np.abs(self._shares()).sum()) > CANCELLING

    def decay_share(self) -> float:
        return float(self._shares()[-1])

    def _shares(self) -> np.ndarray:
        layer_shares = []
        for tokens, decay in zip(self.tokens, self.decay, strict=True):
            parts = np.vstack([tokens, decay]).astype(np.float64)
            delta = parts.sum(axis=0)
            if delta.any():
                layer_shares.append(parts @ delta / (delta @ delta))
        if not layer_shares:
            return np.zeros(len(self.tokens[0]) + 1)
        sums = np.abs(layer_shares).sum(axis=1)
        return np.mean(np.array(layer_shares)[sums <= max(CANCELLING, sums.min())], axis=0)


@dataclass(frozen=True, eq=False)
class TextDelta:
    model_id: str  # the model that was tuned
    layers: tuple[str, ...]  # names of the tuned layers
    values: tuple[np.ndarray, ...]  # per layer, [dim] tuned minus original weights


@dataclass(frozen=True, eq=False, repr=False)
class MicroTuning(ShortRepr):
    model_id: str
    fingerprint: str
    settings: TuningSettings
    texts: tuple[TokenizedText, ...]
    deltas: tuple[np.ndarray, ...]  # per layer, [text, dim] tuned minus original weights
    # [epoch, text] mean cross entropy in nats over masked positions, before the step
    loss: np.ndarray
    delta_norm: np.ndarray  # [epoch, text, layer] length of each delta after the step
    # [text] loss or weights became infinite or NaN; deltas are the last finite ones
    diverged: np.ndarray
    shares: tuple[TokenShares, ...] | None = None  # one per text, if requested

    @property
    def embeddings(self) -> np.ndarray:
        """[text, dim] unit-length neural embeddings."""
        return neural_embeddings(self.deltas)

    @property
    def products(self) -> np.ndarray:
        """[text, text] cosine similarities of the embeddings."""
        return self.embeddings @ self.embeddings.T

    @property
    def loss_rose(self) -> np.ndarray:
        """[text] true if the last loss exceeds the first: the learning rate was too high."""
        return ~(self.loss[-1] <= self.loss[0])


@dataclass(frozen=True, eq=False, repr=False)
class TuningEvent(ShortRepr):
    """One epoch of micro-tuning, which is one optimiser step, or a part of it."""

    epoch: int  # counted from 1
    epochs: int  # epochs in the whole run
    loss: np.ndarray  # [text] cross entropy in nats before the step
    delta_norm: np.ndarray  # [text, layer] length of each delta after the step
    # of the epoch's masked positions; below 1, the loss is that at the last ones read, NaN without
    share: float = 1.0
    read: np.ndarray | None = None  # [text] share of its own positions; None after a whole epoch
    # per layer, [text, dim] after the step, if requested
    deltas: tuple[np.ndarray, ...] | None = None
    result: MicroTuning | None = None  # the finished run, only on the last event


@dataclass(frozen=True, eq=False)
class MaskedPredictions:
    """Predictions at a text's masked positions, ordered by input, then token."""

    input: np.ndarray  # [position] index of the masked input, over all chunks
    token: np.ndarray  # [position] index of the masked token in the text
    probability: np.ndarray  # [position] of the masked token, 0 … 1
    loss: np.ndarray  # [position] cross entropy in nats
    words: tuple[tuple[str, ...], ...]  # [position, top] the likeliest tokens, likeliest first
    shares: np.ndarray  # [position, top] their probabilities

    def __len__(self) -> int:
        return len(self.token)

    @property
    def mean_loss(self) -> float:
        """Mean cross entropy in nats; over all of a text's positions, what tuning minimises."""
        return float(self.loss.mean())

    @property
    def top_words(self) -> list[str]:
        """[position] such as ``“word” 61%, “other” 12%``."""
        pairs = zip(self.words, self.shares, strict=True)
        return [
            ", ".join(f"“{word}” {share:.0%}" for word, share in zip(words, shares, strict=True))
            for words, shares in pairs
        ]


@dataclass(frozen=True)
class Candidate:
    """A token that could fill a blank, and its probability before and after adding the deltas."""

    token: str
    before: float  # 0 … 1, with the pretrained weights
    after: float  # 0 … 1, with the deltas added

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class FilledBlank:
    before: tuple[Candidate, ...]  # likeliest with the pretrained weights, likeliest first
    after: tuple[Candidate, ...]  # likeliest with the deltas, likeliest first
    risen: tuple[Candidate, ...]  # largest rise in probability first

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The tokens of both: the best guesses, then the likeliest with the deltas first."""
        likeliest = sorted((*self.after, *self.before), key=lambda candidate: -candidate.after)
        return tuple(dict.fromkeys((self.after[0], self.before[0], *likeliest)))


# of a text that the model hardly reads: words in pieces, their share of the words, both at least,
# and mean probability of its tokens; tried on 20 languages, 3,600 headlines and sentences, and code
HARDLY_READ = ((3, 0.3, 0.02), (2, 0.5, 0.01))
LEAST_LETTERS = 0.85  # share of the characters
JUDGED = 300  # masked positions, at most


@dataclass(frozen=True, eq=False)
class TextReport:
    index: int  # number of the text in the run, from 0
    text: TokenizedText
    shares: np.ndarray | None  # [token] shares of the delta; None if not followed
    decay_share: float  # weight decay's share; all shares sum to 1
    before: MaskedPredictions  # of up to 4,000 masked positions, before tuning
    after: MaskedPredictions  # and after it
    loss_after: float | None  # in nats; None if some positions were not predicted
    # of `sentence_with_blank`, with the text's delta; None without finite predictions
    blank: FilledBlank | None = None

    @property
    def is_hardly_read(self) -> bool:
        """Whether the text is likely in a language that the model cannot read.

        Several words in lower case are in pieces, and before tuning the model hardly guesses any;
        code has fewer letters.
        """
        text, in_pieces = self.text, self.text.in_pieces
        letters = np.array([sum(map(str.isalpha, word)) for word in text.word_texts])
        n, n_words = in_pieces.sum(), len(in_pieces)
        is_prose = letters.sum() >= LEAST_LETTERS * len("".join(text.text.split()))
        tokens = self.before.token[:JUDGED]
        guessed = self.before.probability[:JUDGED][letters[text.words[tokens]] > 0]
        return text.is_spelt_out or any(
            is_prose and n >= max(fewest, share * n_words) and guessed.mean() < probability
            for fewest, share, probability in HARDLY_READ
        )

    @property
    def words(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The words in text order, [word] shares, and whether a word is unknown to the model."""
        assert self.shares is not None, "the text's tokens were followed"
        text = self.text
        unknown = np.bincount(text.words, weights=text.unknown) > 0
        return text.word_texts, np.bincount(text.words, weights=self.shares), unknown


def collect_result(events: Iterable[TuningEvent]) -> MicroTuning:
    """Consume all events and return the last one's result."""
    result = None
    for event in events:
        result = event.result
    assert result is not None, "a run's last event carries its result"
    return result


def join_runs(results: Sequence[MicroTuning]) -> MicroTuning:
    if len(results) == 1:
        return results[0]
    shares = [text_shares for result in results for text_shares in result.shares or ()]
    return replace(
        results[0],
        texts=tuple(text for result in results for text in result.texts),
        deltas=tuple(map(np.concatenate, zip(*(r.deltas for r in results), strict=True))),
        loss=np.concatenate([result.loss for result in results], axis=1),
        delta_norm=np.concatenate([result.delta_norm for result in results], axis=1),
        diverged=np.concatenate([result.diverged for result in results]),
        shares=tuple(shares) or None,
    )


def neural_embeddings(deltas: tuple[np.ndarray, ...]) -> np.ndarray:
    """[text, dim] from per-layer [text, dim] deltas (neural paper, Equation 1)."""
    # each layer is normalised, then the concatenation; layers that did not move give zeros
    return unit_vectors(np.concatenate([unit_vectors(delta) for delta in deltas], axis=1))


def take_apart(model: LanguageModel, settings: TuningSettings, embedding: np.ndarray) -> TextDelta:
    """The deltas that a neural embedding came from, by their directions alone.

    Zeros stay zeros; of two layers, one twice as long in the embedding, such as a mean, is twice
    as long here. A unit-length layer gets the length that AdamW's steps can reach at most:
    learning rate × epochs × √dim, which few epochs come near (docs/evaluation.md, Read-back).
    """
    sizes = {layer.name: layer.size for layer in model.layers}
    ends = np.cumsum([sizes[name] for name in settings.layers])
    scale = settings.learning_rate * settings.epochs * math.sqrt(len(ends))
    directions = np.split(np.asarray(embedding, dtype=np.float32), ends[:-1])
    values = tuple(scale * math.sqrt(len(part)) * part for part in directions)
    return TextDelta(model.id, settings.layers, values)


class Part(NamedTuple):
    """The masked positions of a text that are read together."""

    text: int
    share: float  # of the text's positions, up to the last of these
    loss: float  # mean cross entropy at these, in nats


HISTORY_BYTES = 1 << 26  # for deltas of every epoch; other texts keep only the latest


class RunRecord:
    """The results of a run so far; `having` returns a copy with further events."""

    def __init__(self, model_id: str, settings: TuningSettings, texts: Sequence[str]) -> None:
        self.model_id = model_id
        self.settings = settings
        self.texts = tuple(texts)
        shape = (settings.epochs, len(self.texts))
        # [epoch, text] before the step; NaN if unknown or not a number
        self.loss = np.full(shape, np.nan)
        # [epoch, text, layer]; NaN if unknown
        self.delta_norm = np.full((*shape, len(settings.layers)), np.nan)
        self.last: list[np.ndarray] = []  # per layer, [text, dim] latest delta; NaN if none
        # per layer, [epoch, text, dim] deltas of the texts that fit in 64 MB
        self.history: list[np.ndarray] = []
        self.reports: dict[int, TextReport] = {}  # of finished texts
        self.epochs_reached = self.texts_done = self._batch = 0  # epochs of the current batch
        self.parts: list[Part] = []  # of the epoch that has begun, of long texts
        self._read = 0.0  # share of that epoch's positions
        self.diverged: set[int] = set()  # texts whose loss or weights became infinite or NaN

    def _add(self, watched: WatchedEvent) -> None:
        if watched.report is not None:
            self.reports[watched.report.index] = watched.report
        event, first = watched.event, watched.first
        if event is None:
            return
        self._batch = len(event.loss)
        epoch, columns = event.epoch - 1, slice(first, first + self._batch)
        if event.read is not None:
            self.epochs_reached, self._read = epoch, event.share
            parts = map(Part, range(first, columns.stop), event.read.tolist(), event.loss.tolist())
            self.parts += [part for part in parts if np.isfinite(part.loss)]
            return
        self.parts, self._read = [], 0.0
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
        grown = copy(self)
        grown.loss, grown.delta_norm = self.loss.copy(), self.delta_norm.copy()
        grown.last = [kept.copy() for kept in self.last]
        grown.history = [kept.copy() for kept in self.history]
        grown.reports, grown.diverged = dict(self.reports), set(self.diverged)
        grown.parts = list(self.parts)
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
        """Share of the work done, 0 … 1, by texts and the epochs of the current batch."""
        n_texts, inside = len(self.texts), float(self.epochs_reached % self.settings.epochs)
        inside += self._read
        n_started = min(self._batch, n_texts - self.texts_done)
        return (self.texts_done + n_started * inside / self.settings.epochs) / n_texts

    @property
    def epoch(self) -> int:
        """The epoch, from 1, that is under way: each begins by measuring the loss."""
        return max(1, self.epochs_reached + bool(self.parts))

    def epochs_done(self, text: int) -> int:
        return int((~np.isnan(self.delta_norm[:, text, 0])).sum())

    def delta(self, layer: int, text: int) -> np.ndarray:
        """[epoch, dim] a layer's delta after each epoch; NaN if not kept."""
        history = self.history[layer]
        if text < history.shape[1]:
            return history[:, text]
        only_last = np.full((self.settings.epochs, history.shape[2]), np.nan, dtype=np.float32)
        only_last[self.epochs_done(text) - 1] = self.last[layer][text]
        return only_last

    def text_delta(self, text: int) -> TextDelta:
        values = tuple(last[text] for last in self.last)
        return TextDelta(self.model_id, self.settings.layers, values)

    def strongest_neurons(self, layer: int, text: int, n: int = 5) -> list[int]:
        if not self.epochs_done(text):
            return []
        return np.argsort(-np.abs(self.last[layer][text]))[:n].tolist()

    def loss_curves(self) -> np.ndarray:
        return np.array([self.loss_curve(i) for i in range(len(self.texts))])

    def loss_curve(self, text: int) -> np.ndarray:
        """[epoch + 1] loss after 0, 1, … epochs; NaN if unknown."""
        report = self.reports.get(text)
        last = np.nan if report is None or report.loss_after is None else report.loss_after
        return np.append(self.loss[:, text], last)

    def loss_so_far(self, text: int) -> tuple[float, float] | None:
        """Mean loss at the positions read in the epoch that has begun, and their share."""
        parts = [part for part in self.parts if part.text == text]
        if not parts:
            return None
        ends = np.array([part.share for part in parts])
        losses = np.array([part.loss for part in parts])
        return float(losses @ np.diff(ends, prepend=0) / ends[-1]), float(ends[-1])

    def loss_rose(self, text: int) -> bool:
        """Whether the last known loss exceeds the first or is not finite."""
        losses = self.loss[: self.epochs_done(text), text]
        return len(losses) > 1 and not losses[-1] <= losses[0]

    @property
    def started_texts(self) -> list[int]:
        return [i for i in range(len(self.texts)) if self.epochs_done(i)]

    def texts_like(self, text: int) -> list[int]:
        """Numbers of the texts at the same stage: finished, under way or not started."""

        states = [(i in self.reports, self.epochs_done(i) > 0) for i in range(len(self.texts))]
        return [i for i, state in enumerate(states) if state == states[text]]

    def embeddings(self) -> np.ndarray:
        started = self.started_texts
        return neural_embeddings(tuple(last[started] for last in self.last))


@dataclass(frozen=True)
class RunFormat(RecordFormat):
    """Packs a run, finished or stopped; all deltas but the latest become float16 where they fit."""

    def pack(self, record: Any) -> bytes:
        return super().pack(vars(record) | {"history": _round_to_halves(record.history)})

    def unpack(self, content: bytes) -> RunRecord:
        values = super().unpack(content)
        record = RunRecord(values["model_id"], values["settings"], values["texts"])
        vars(record).update(values)
        record.history = [deltas.astype(np.float32) for deltas in record.history]
        return record


RUN_FORMAT = RunFormat(
    "a run",
    version=3,
    classes=(
        Blueprint,
        Candidate,
        FilledBlank,
        MaskedPredictions,
        Part,
        TextReport,
        TokenizedText,
        TuningSettings,
    ),
)


def _round_to_halves(history: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Convert to float16 if all values are within its range; diverged ones may not be."""
    with np.errstate(over="ignore"):
        halves = [values.astype(np.float16) for values in history]
    return [
        values if np.isinf(half).any() else half
        for values, half in zip(history, halves, strict=True)
    ]


@dataclass(frozen=True, eq=False, repr=False)
class WatchedEvent(ShortRepr):
    """An epoch of a batch whose first text is number ``first``, or the report on one text."""

    first: int
    event: TuningEvent | None = None
    report: TextReport | None = None
