"""A run as it is watched: what is known so far, folded from its events, and kept in a file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.events import MicroTuning, TuningEvent, neural_embeddings
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.micro_tuning.tokens import TokenizedText, tokenize

if TYPE_CHECKING:
    from neuralviz.micro_tuning.predictions import MaskedPredictions
    from neuralviz.models import LanguageModel

BATCH = 16  # texts tuned on together while somebody watches
MAX_PREDICTED = 4000  # masked positions of a text that are predicted for the report
MAX_FOLLOWED = {"head": 1000, "blocks": 64}  # tokens of a text whose shares are followed


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
    """An event of the batch of texts that begins with text ``first``; reports with its last one."""

    first: int
    event: TuningEvent
    reports: tuple[TextReport, ...] = ()


def watch(
    model: LanguageModel, texts: Sequence[str], settings: TuningSettings, *, batch: int = BATCH
) -> Iterator[WatchedEvent]:
    """Micro-tune texts batch by batch, with everything a watcher wants to see.

    Raises:
        SettingsError, TextError: before the first event.
    """
    from neuralviz.micro_tuning.run import tune

    tokenized = tokenize(model, texts)
    where = "head" if set(settings.layers) <= _names(model, "head") else "blocks"
    for first in range(0, len(texts), batch):
        part = tokenized[first : first + batch]
        follow = max(map(len, part)) <= MAX_FOLLOWED[where]
        for event in tune(model, part, settings, with_deltas=True, with_token_shares=follow):
            reports: tuple[TextReport, ...] = ()
            if event.result is not None:
                result = event.result
                reports = tuple(
                    _report(model, first + i, result, i) for i in range(len(result.texts))
                )
            yield WatchedEvent(first, event, reports)


def _names(model: LanguageModel, part: str) -> set[str]:
    return {layer.name for layer in model.layers if layer.part == part}


def _report(model: LanguageModel, index: int, result: MicroTuning, i: int) -> TextReport:
    from neuralviz.micro_tuning.plan import count_masked
    from neuralviz.micro_tuning.predictions import predict_masked

    text, settings = result.texts[i], result.settings
    beginning: list[slice] = []
    n = 0
    for chunk in text.chunks:
        n += count_masked(replace(text, chunks=(chunk,)), settings)
        if beginning and n > MAX_PREDICTED:
            break
        beginning.append(chunk)
    shown = replace(text, chunks=tuple(beginning))
    before = predict_masked(model, shown, settings, None)
    after = predict_masked(model, shown, settings, [delta[i] for delta in result.deltas])
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
        loss_after=after.mean_loss if len(text.chunks) == 1 else None,
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
        loss: [epoch, text] NaN where not known yet; each before its epoch's steps.
        delta_norm: [epoch, text, layer] after the epoch, likewise.
        deltas: per layer [epoch, text, dim], likewise.
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
        self.deltas: list[np.ndarray] = []
        self.reports: dict[int, TextReport] = {}
        self.steps_done = self.steps = self.texts_done = 0
        self.diverged: set[int] = set()
        self._chunks_seen = np.zeros(shape, dtype=int)

    @property
    def n_layers(self) -> int:
        return len(self.settings.layers)

    def add(self, watched: WatchedEvent) -> None:
        """Take in one event."""
        event, first = watched.event, watched.first
        epoch, at = event.epoch - 1, slice(first, first + len(event.loss))
        here = ~np.isnan(event.loss)
        seen = self._chunks_seen[epoch, at]
        mean = np.nan_to_num(self.loss[epoch, at]) * seen + np.where(here, event.loss, 0)
        self._chunks_seen[epoch, at] += here
        self.loss[epoch, at] = mean / np.maximum(self._chunks_seen[epoch, at], 1)
        self.delta_norm[epoch, at] = event.delta_norm
        if event.deltas is not None:
            if not self.deltas:
                shape = (self.settings.epochs, len(self.texts))
                self.deltas = [
                    np.full((*shape, delta.shape[1]), np.nan, dtype=np.float32)
                    for delta in event.deltas
                ]
            for kept, delta in zip(self.deltas, event.deltas, strict=True):
                kept[epoch, at] = delta
        self.steps_done, self.steps = event.step, event.steps
        if event.result is not None:
            self.texts_done = at.stop
            self.diverged |= {first + int(i) for i in np.flatnonzero(event.result.diverged)}
        for report in watched.reports:
            self.reports[report.index] = report

    @property
    def progress(self) -> float:
        """Share of the work that is done, 0 … 1."""
        if self.texts_done >= len(self.texts):
            return 1.0
        batch = min(BATCH, len(self.texts) - self.texts_done)
        inside = self.steps_done / self.steps if self.steps and self.steps_done < self.steps else 0
        return (self.texts_done + inside * batch) / len(self.texts)

    def epochs_done(self, text: int) -> int:
        """Epochs that a text has been tuned for, the one under way included."""
        return int((~np.isnan(self.delta_norm[:, text, 0])).sum())

    def loss_curve(self, text: int) -> np.ndarray:
        """[epoch + 1] loss after so many epochs of learning, NaN where not known."""
        report = self.reports.get(text)
        last = np.nan if report is None or report.loss_after is None else report.loss_after
        return np.append(self.loss[:, text], last)

    def loss_rose(self, text: int) -> bool:
        """Whether the last known loss is above the first, or no number."""
        known = self.loss[: self.epochs_done(text), text]
        return len(known) > 1 and not known[-1] <= known[0]

    def started(self) -> list[int]:
        """Numbers of the texts that have a delta."""
        return [i for i in range(len(self.texts)) if self.epochs_done(i)]

    def embeddings(self) -> np.ndarray:
        """[started text, dim] neural embeddings after the epochs done so far."""
        at = [(self.epochs_done(i) - 1, i) for i in self.started()]
        return neural_embeddings(
            tuple(np.stack([kept[epoch, i] for epoch, i in at]) for kept in self.deltas)
        )

    def save(self, path: Path) -> None:
        """Write a finished run as one compressed file of plain arrays."""
        arrays = {
            "loss": self.loss,
            "delta_norm": self.delta_norm,
            **{f"deltas_{i}": delta.astype(np.float16) for i, delta in enumerate(self.deltas)},
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
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        path.write_bytes(buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> RunRecord:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            s = about["settings"]
            s["layers"], s["betas"] = tuple(s["layers"]), tuple(s["betas"])
            s["blueprints"] = tuple(Blueprint(*pair) for pair in s["blueprints"])
            record = cls(about["model_id"], TuningSettings(**s), about["texts"])
            record.loss, record.delta_norm = arrays["loss"], arrays["delta_norm"]
            record.deltas = [
                arrays[f"deltas_{i}"].astype(np.float32) for i in range(record.n_layers)
            ]
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
