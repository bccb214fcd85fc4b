"""A run as it is watched: what is known so far, folded from its events, and kept in a file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import SettingsError
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.events import MicroTuning, TuningEvent, neural_embeddings
from neuralviz.micro_tuning.settings import PRECISIONS, TuningSettings
from neuralviz.models.tokens import TokenizedText, tokenize

if TYPE_CHECKING:
    from neuralviz.micro_tuning.predictions import MaskedPredictions
    from neuralviz.models import LanguageModel

BATCH = 16  # most texts tuned on together while somebody watches
BATCH_TOKENS = 512  # and most of their tokens, unless one text alone has more
MAX_PREDICTED = 4000  # masked positions of a text that are predicted for the report
MAX_FOLLOWED_IN_BLOCKS = 64  # tokens of a text; each costs a backward pass through the blocks
HISTORY_BYTES = 1 << 26  # deltas kept epoch by epoch; of texts beyond it only the last


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions at the masked positions of a text before and after tuning, in words.

    Attributes:
        input: [position] the masked input.
        token: [position] the masked token, an index into the text's tokens.
        before, after: [position] probability of the masked word.
        loss_before, loss_after: [position] cross entropy in nats.
        words_before, words_after: [position] the likeliest words and their probabilities.
    """

    input: np.ndarray
    token: np.ndarray
    before: np.ndarray
    after: np.ndarray
    loss_before: np.ndarray
    loss_after: np.ndarray
    words_before: tuple[str, ...]
    words_after: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TextReport:
    """What is known of one text when its tuning is over.

    Attributes:
        index: number of the text in the run, counted from 0.
        text: the text and its tokens.
        shares: [token] each token's share of the delta; None when it was not followed.
        decay_share: weight decay's share; with the tokens' it sums to 1.
        predictions: of the first inputs, up to 4,000 masked positions.
        loss_after: mean cross entropy after tuning, when all positions were predicted, else None.
    """

    index: int
    text: TokenizedText
    shares: np.ndarray | None
    decay_share: float
    predictions: Predictions
    loss_after: float | None


@dataclass(frozen=True, eq=False)
class WatchedEvent:
    """A step of the texts that begin with text ``first``, or the report on one of them."""

    first: int
    event: TuningEvent | None = None
    report: TextReport | None = None


def watch(
    model: LanguageModel,
    texts: Sequence[str],
    settings: TuningSettings,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[WatchedEvent]:
    """Micro-tune texts batch by batch, with everything a watcher wants to see.

    Raises:
        SettingsError, TextError: before the first event.
        Stopped: ``should_stop``, asked again and again, also within a step, said so.
    """
    from neuralviz.micro_tuning.run import tune

    first = 0
    for batch, follow in _batches(model, tokenize(model, texts), settings):
        result = None
        events = tune(
            model,
            batch,
            settings,
            with_deltas=True,
            with_token_shares=follow,
            should_stop=should_stop,
        )
        for event in events:
            result = event.result
            yield WatchedEvent(first, event)
        assert result is not None, "a run's last event carries its result"
        for i in range(len(batch)):
            yield WatchedEvent(first, report=_report(model, first + i, result, i))
        first += len(batch)


def _batches(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> Iterator[tuple[list[TokenizedText], bool]]:
    """Texts in order, in batches of bounded size, and whether their tokens can be followed."""
    from neuralviz.micro_tuning.run import MAX_FOLLOWED_VALUES, followed_values

    by_name = {layer.name: layer for layer in model.layers}
    layers = [by_name[name] for name in settings.layers]
    head_only = all(layer.part == "head" for layer in layers)
    over_vocabulary = any(layer.size == model.vocab_size for layer in layers)

    def can_follow(batch: list[TokenizedText]) -> bool:
        return (
            not over_vocabulary
            and followed_values(model, batch, settings) <= MAX_FOLLOWED_VALUES
            and (head_only or max(map(len, batch), default=0) <= MAX_FOLLOWED_IN_BLOCKS)
        )

    batch: list[TokenizedText] = []  # a long text takes nothing from the short ones around it
    for text in texts:
        grown = [*batch, text]
        fits = len(grown) <= BATCH and sum(map(len, grown)) <= BATCH_TOKENS
        alike = can_follow(batch) == can_follow([text]) == can_follow(grown)
        if batch and not (fits and alike):
            yield batch, can_follow(batch)
            grown = [text]
        batch = grown
    if batch:
        yield batch, can_follow(batch)


def _report(model: LanguageModel, index: int, result: MicroTuning, i: int) -> TextReport:
    from neuralviz.micro_tuning.plan import count_masked
    from neuralviz.micro_tuning.predictions import predict_masked

    text, settings = result.texts[i], result.settings
    deltas = [delta[i] for delta in result.deltas]
    before = predict_masked(model, text, settings, None, at_most=MAX_PREDICTED)
    after = predict_masked(model, text, settings, deltas, at_most=MAX_PREDICTED)
    all_predicted = len(after) == count_masked(text, settings)
    shares = result.shares[i] if result.shares else None
    return TextReport(
        index=index,
        text=text,
        shares=None if shares is None else shares.by_token(),
        decay_share=0.0 if shares is None else shares.of_decay(),
        predictions=Predictions(
            input=before.input,
            token=before.token,
            before=before.probability,
            after=after.probability,
            loss_before=before.loss,
            loss_after=after.loss,
            words_before=_in_words(model, before),
            words_after=_in_words(model, after),
        ),
        loss_after=after.mean_loss if all_predicted and len(text.chunks) == 1 else None,
    )


def _in_words(
    model: LanguageModel, predictions: MaskedPredictions, top: int = 3
) -> tuple[str, ...]:
    """[position] ``word 61 %, other 12 %``."""
    words = model.tokenizer.convert_ids_to_tokens
    return tuple(
        ", ".join(
            f"{word} {share:.0%}"
            for word, share in zip(words(ids[:top].tolist()), shares[:top], strict=True)
        )
        for ids, shares in zip(predictions.top_ids, predictions.top_probabilities, strict=True)
    )


class RunRecord:
    """What is known so far of a run over ``texts``.

    Attributes:
        model_id, settings, texts: what is run.
        loss: [epoch, text] before the epoch's steps; NaN where not known yet, or no number.
        delta_norm: [epoch, text, layer] after the epoch; NaN where not known yet.
        last: per layer [text, dim] the latest delta, NaN where there is none.
        history: per layer [epoch, text, dim] the delta after each epoch, of as many texts as
            64 MB hold.
        reports: by text, once its tuning is over.
        steps_done, steps: of the batch that is being tuned; ``texts_done`` texts are finished.
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
        self.steps_done = self.steps = self.texts_done = self._batch = 0
        self.diverged: set[int] = set()

    @property
    def n_layers(self) -> int:
        return len(self.settings.layers)

    def add(self, watched: WatchedEvent) -> None:
        """Take in one event."""
        if watched.report is not None:
            self.reports[watched.report.index] = watched.report
        event, first = watched.event, watched.first
        if event is None:
            return
        self._batch = len(event.loss)
        epoch, at = event.epoch - 1, slice(first, first + self._batch)
        self.loss[epoch, at] = event.epoch_loss
        self.delta_norm[epoch, at] = event.delta_norm
        if event.deltas is not None:
            if not self.last:
                self._make_room([delta.shape[1] for delta in event.deltas])
            for last, history, delta in zip(self.last, self.history, event.deltas, strict=True):
                last[at] = delta
                kept = history[epoch, at]
                kept[:] = delta[: len(kept)]
        self.steps_done, self.steps = event.step, event.steps
        if event.result is not None:
            self.texts_done = at.stop
            self.diverged |= {first + int(i) for i in np.flatnonzero(event.result.diverged)}

    def having(self, events: Sequence[WatchedEvent]) -> RunRecord:
        """The record with some more events; this one stays as it is."""
        grown = copy(self)
        grown.loss, grown.delta_norm = self.loss.copy(), self.delta_norm.copy()
        grown.last = [kept.copy() for kept in self.last]
        grown.history = [kept.copy() for kept in self.history]
        grown.reports, grown.diverged = dict(self.reports), set(self.diverged)
        for event in events:
            grown.add(event)
        return grown

    def _make_room(self, dims: Sequence[int]) -> None:
        n_texts, epochs = len(self.texts), self.settings.epochs
        kept = min(n_texts, HISTORY_BYTES // (4 * epochs * sum(dims)))
        self.last = [np.full((n_texts, dim), np.nan, dtype=np.float32) for dim in dims]
        self.history = [np.full((epochs, kept, dim), np.nan, dtype=np.float32) for dim in dims]

    @property
    def progress(self) -> float:
        """Share of the work that is done, 0 … 1."""
        if self.texts_done >= len(self.texts):
            return 1.0
        inside = self.steps_done / self.steps if 0 < self.steps_done < self.steps else 0.0
        return (self.texts_done + inside * self._batch) / len(self.texts)

    def epochs_done(self, text: int) -> int:
        """Epochs that a text has been tuned for, the one under way included."""
        return int((~np.isnan(self.delta_norm[:, text, 0])).sum())

    def delta(self, layer: int, text: int) -> np.ndarray:
        """[epoch, dim] the delta of a layer after each epoch, NaN where it is not kept."""
        history = self.history[layer]
        if text < history.shape[1]:
            return history[:, text]
        only_last = np.full((self.settings.epochs, history.shape[2]), np.nan, dtype=np.float32)
        only_last[self.epochs_done(text) - 1] = self.last[layer][text]
        return only_last

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

    def epochs_learnt(self, text: int) -> float:
        """Epochs of steps that a text has been tuned for: 2.5 half-way through its third."""
        inside = self.texts_done <= text and 0 < self.steps_done < self.steps
        if inside and self.epochs_done(text):
            return self.steps_done / self.steps * self.settings.epochs
        return float(self.epochs_done(text))

    def loss_rose(self, text: int) -> bool:
        """Whether the last known loss is above the first, or no number."""
        known = self.loss[: self.epochs_done(text), text]
        return len(known) > 1 and not known[-1] <= known[0]

    def started(self) -> list[int]:
        """Numbers of the texts that have a delta."""
        return [i for i in range(len(self.texts)) if self.epochs_done(i)]

    def embeddings(self) -> np.ndarray:
        """[started text, dim] neural embeddings after the epochs done so far."""
        at = self.started()
        return neural_embeddings(tuple(last[at] for last in self.last))

    def save(self, path: Path) -> None:
        """Write a finished run as one compressed file of plain arrays."""
        arrays: dict[str, Any] = {
            "loss": self.loss,
            "delta_norm": self.delta_norm,
            **{f"deltas_{i}": kept.astype(np.float16) for i, kept in enumerate(self.history)},
        }
        about: dict[str, Any] = {
            "model_id": self.model_id,
            "settings": asdict(self.settings),
            "texts": self.texts,
            "reports": [],
        }
        for index, report in sorted(self.reports.items()):
            text, said = report.text, report.predictions
            arrays |= {
                f"{index}_text_{k}": getattr(text, k) for k in ("ids", "spans", "words", "unknown")
            }
            arrays |= {
                f"{index}_{k}": getattr(said, k)
                for k in ("input", "token", "before", "after", "loss_before", "loss_after")
            }
            if report.shares is not None:
                arrays[f"{index}_shares"] = report.shares
            about["reports"].append(
                {
                    "index": index,
                    "tokens": text.tokens,
                    "chunks": [(c.start, c.stop) for c in text.chunks],
                    "decay_share": report.decay_share,
                    "loss_after": report.loss_after,
                    "words_before": said.words_before,
                    "words_after": said.words_after,
                }
            )
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        path.write_bytes(buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> RunRecord:
        """Read what `save` wrote; a file without a precision is of an exact run.

        Raises:
            SettingsError: it was made with a precision that is not known here.
        """
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            s = about["settings"]
            if s.get("precision", "exact") not in PRECISIONS:
                raise SettingsError(
                    f"{path.name} holds a run of the precision “{str(s['precision'])[:40]}”, which "
                    "is not known here; a newer neuralviz may have made it."
                )
            s["layers"], s["betas"] = tuple(s["layers"]), tuple(s["betas"])
            s["blueprints"] = tuple(Blueprint(*pair) for pair in s["blueprints"])
            known = {field.name for field in fields(TuningSettings)}
            if set(s) - known:
                raise SettingsError(
                    f"{path.name} holds a run with settings that are not known here; a newer "
                    "neuralviz may have made it."
                )
            record = cls(about["model_id"], TuningSettings(**s), about["texts"])
            record.loss, record.delta_norm = arrays["loss"], arrays["delta_norm"]
            record.history = [
                arrays[f"deltas_{i}"].astype(np.float32) for i in range(record.n_layers)
            ]
            record.last = [history[-1] for history in record.history]
            for told in about["reports"]:
                record.reports[told["index"]] = _read_report(arrays, told, record.texts)
        record.texts_done = len(record.texts)
        record.steps_done = record.steps = record.settings.epochs
        return record


def _read_report(arrays: np.lib.npyio.NpzFile, told: dict, texts: Iterable[str]) -> TextReport:
    index = told["index"]

    def array(name: str) -> np.ndarray:
        return arrays[f"{index}_{name}"]

    names = ("input", "token", "before", "after", "loss_before", "loss_after")
    return TextReport(
        index=index,
        text=TokenizedText(
            text=tuple(texts)[index],
            tokens=tuple(told["tokens"]),
            chunks=tuple(slice(*chunk) for chunk in told["chunks"]),
            **{name: array(f"text_{name}") for name in ("ids", "spans", "words", "unknown")},
        ),
        shares=array("shares") if f"{index}_shares" in arrays else None,
        decay_share=told["decay_share"],
        predictions=Predictions(
            **{name: array(name) for name in names},
            words_before=tuple(told["words_before"]),
            words_after=tuple(told["words_after"]),
        ),
        loss_after=told["loss_after"],
    )
