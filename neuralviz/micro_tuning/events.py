"""The events of a micro-tuning run, and its result."""

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
    """How much each token of a text wrote of the text's delta.

    Every AdamW step is linear in the gradient's first moment, and the gradient is a sum over
    masked positions, so the part of each token can be carried through all steps; weight decay is
    the rest. Tokens and decay sum to the delta.
    """

    __repr__ = short_repr

    tokens: tuple[np.ndarray, ...]
    decay: tuple[np.ndarray, ...]  # per layer, [dim] the part that came from weight decay

    def token_shares(self) -> np.ndarray:
        """[token] share of the delta: its part's projection on the delta, mean over layers.

        Layers that did not move are left out. Shares and the decay's share sum to 1, unless nothing
        moved: then all are 0. A negative share pulled the other way.
        """
        return self._shares()[:-1]

    def decay_share(self) -> float:
        """Weight decay's share of the delta."""
        return float(self._shares()[-1])

    def _shares(self) -> np.ndarray:
        """[token + 1] the tokens' shares and, last, the decay's."""
        layer_shares = []
        for tokens, decay in zip(self.tokens, self.decay, strict=True):
            parts = np.vstack([tokens, decay]).astype(np.float64)
            delta = parts.sum(axis=0)
            if delta.any():
                layer_shares.append(parts @ delta / (delta @ delta))
        return np.mean(layer_shares, axis=0) if layer_shares else np.zeros(len(self.tokens[0]) + 1)


@dataclass(frozen=True, eq=False)
class MicroTuning:
    """A finished run.

    Attributes:
        loss: [epoch, text] cross entropy in nats before the epoch's step, mean over the masked
            positions of all chunks of a text.
        diverged: [text] true where loss or weights ceased to be finite; the deltas are then the
            last finite ones.
        shares: per text, who wrote the delta; None unless asked for.
    """

    __repr__ = short_repr

    model_id: str  # of the model that it was run on
    fingerprint: str
    settings: TuningSettings  # how
    texts: tuple[TokenizedText, ...]  # the texts and their tokens
    deltas: tuple[np.ndarray, ...]  # per layer, [text, dim] tuned minus original weights
    loss: np.ndarray
    delta_norm: np.ndarray  # [epoch, text, layer] length of each delta after the epoch
    diverged: np.ndarray
    shares: tuple[TokenShares, ...] | None = None

    def select_texts(self, texts: slice) -> MicroTuning:
        """The result of some of the texts."""
        return replace(
            self,
            texts=self.texts[texts],
            deltas=tuple(delta[texts] for delta in self.deltas),
            loss=self.loss[:, texts],
            delta_norm=self.delta_norm[:, texts],
            diverged=self.diverged[texts],
            shares=None if self.shares is None else self.shares[texts],
        )

    @property
    def embeddings(self) -> np.ndarray:
        """[text, dim] neural embeddings, of length 1."""
        return neural_embeddings(self.deltas)

    @property
    def products(self) -> np.ndarray:
        """[text, text] products of the embeddings."""
        return self.embeddings @ self.embeddings.T

    @property
    def loss_rose(self) -> np.ndarray:
        """[text] true where the last loss is above the first: the learning rate was too high."""
        return ~(self.loss[-1] <= self.loss[0])


@dataclass(frozen=True, eq=False)
class TuningEvent:
    """One epoch, which is one optimiser step.

    Attributes:
        deltas: per layer, [text, dim] after the step; None unless asked for.
    """

    __repr__ = short_repr

    epoch: int  # counted from 1
    epochs: int  # how many there are in all
    loss: np.ndarray  # [text] cross entropy in nats before the step
    delta_norm: np.ndarray  # [text, layer] length of each delta after the step
    deltas: tuple[np.ndarray, ...] | None = None
    result: MicroTuning | None = None  # the finished run, on the last event

    def select_texts(self, texts: slice) -> TuningEvent:
        """The epoch of some of the texts."""
        return replace(
            self,
            loss=self.loss[texts],
            delta_norm=self.delta_norm[texts],
            deltas=None if self.deltas is None else tuple(delta[texts] for delta in self.deltas),
            result=None if self.result is None else self.result.select_texts(texts),
        )


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions at the masked positions of a text before and after tuning, in words."""

    input: np.ndarray  # [position] the masked input
    token: np.ndarray  # [position] the masked token, an index into the text's tokens
    before: np.ndarray  # [position] probability of the masked word
    after: np.ndarray  # [position] probability of the masked word
    loss_before: np.ndarray  # [position] cross entropy in nats
    loss_after: np.ndarray  # [position] cross entropy in nats
    words_before: tuple[str, ...]  # [position] the likeliest words and their probabilities
    words_after: tuple[str, ...]  # [position] the likeliest words and their probabilities


@dataclass(frozen=True, eq=False)
class TextReport:
    """The report on one text when its tuning is over."""

    index: int  # number of the text in the run, counted from 0
    text: TokenizedText  # the text and its tokens
    shares: np.ndarray | None
    decay_share: float  # weight decay's share; with the tokens' it sums to 1
    predictions: Predictions  # of the first inputs, up to 4,000 masked positions
    loss_after: float | None


def collect_result(events: Iterable[TuningEvent]) -> MicroTuning:
    """Consume a run's events and return what the last one carries."""
    result = None
    for event in events:
        result = event.result
    assert result is not None, "a run's last event carries its result"
    return result


def join_runs(results: Sequence[MicroTuning]) -> MicroTuning:
    """Join several runs with the same model and settings into one run of all their texts."""
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
    """[text, dim] embeddings from per-layer deltas [text, dim] (neural paper, Equation 1).

    Each layer's delta is normalised, the layers are concatenated, the whole is normalised. A layer
    that did not move contributes zeros; when none moved, the embedding is all zeros.
    """
    return unit_vectors(np.concatenate([unit_vectors(delta) for delta in deltas], axis=1))
