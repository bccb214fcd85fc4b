"""Events and results of a micro-tuning run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models.tokens import TokenizedText
from neuralviz.words import short_repr


@dataclass(frozen=True, eq=False)
class TokenShares:
    """Each token's contribution to a text's delta; with weight decay's they sum to the delta."""

    # exact over all steps, as AdamW's step is linear in the gradient's first moment, and the
    # gradient is a sum over masked positions

    __repr__ = short_repr

    tokens: tuple[np.ndarray, ...]  # per layer, [token, dim] contributions
    decay: tuple[np.ndarray, ...]  # per layer, [dim] contribution of weight decay

    def token_shares(self) -> np.ndarray:
        """[token] projection of contributions on the delta, relative to it, mean over layers."""
        # negative: against the delta; with `decay_share` they sum to 1, or 0 if nothing moved
        return self._shares()[:-1]

    def decay_share(self) -> float:
        return float(self._shares()[-1])

    def _shares(self) -> np.ndarray:
        layer_shares = []
        for tokens, decay in zip(self.tokens, self.decay, strict=True):
            parts = np.vstack([tokens, decay]).astype(np.float64)
            delta = parts.sum(axis=0)
            if delta.any():
                layer_shares.append(parts @ delta / (delta @ delta))
        return np.mean(layer_shares, axis=0) if layer_shares else np.zeros(len(self.tokens[0]) + 1)


@dataclass(frozen=True, eq=False)
class MicroTuning:
    __repr__ = short_repr

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


@dataclass(frozen=True, eq=False)
class TuningEvent:
    """One epoch of micro-tuning, which is one optimiser step."""

    __repr__ = short_repr

    epoch: int  # counted from 1
    epochs: int  # epochs in the whole run
    loss: np.ndarray  # [text] cross entropy in nats before the step
    delta_norm: np.ndarray  # [text, layer] length of each delta after the step
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


@dataclass(frozen=True, eq=False)
class TextReport:
    index: int  # number of the text in the run, from 0
    text: TokenizedText
    shares: np.ndarray | None  # [token] shares of the delta; None if not followed
    decay_share: float  # weight decay's share; all shares sum to 1
    before: MaskedPredictions  # of up to 4,000 masked positions, before tuning
    after: MaskedPredictions  # and after it
    loss_after: float | None  # in nats; None if some positions were not predicted

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
