"""What the training of a similarity model tells while it goes on; loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuralviz.words import short_repr

if TYPE_CHECKING:
    import numpy as np

    from neuralviz.training.similarity.settings import SimilaritySettings


@dataclass(frozen=True, eq=False)
class AutoencoderEpoch:
    """One pass of the autoencoders over the texts (FREEZE, section 4.2.3).

    Attributes:
        epoch, epochs: this one and how many there are, counted from 1.
        losses: [layer] share of the variance of the dev texts' vectors that the code loses, 0 for
            none; above 1 the mean of all vectors would be closer.
    """

    __repr__ = short_repr

    epoch: int
    epochs: int
    losses: np.ndarray


@dataclass(frozen=True, eq=False)
class SimilarityEpoch:
    """One pass over the pairs.

    Attributes:
        epoch, epochs: this one, counted from 1, and how many there are at most.
        loss: mean over the steps: mean squared error, or the logarithm of the errors' variance, of
            scores as shares of their range.
        dev: Spearman of predictions and scores of the dev pairs, -1 … 1; NaN where it is undefined.
        is_best: whether no epoch before had a better one.
    """

    __repr__ = short_repr

    epoch: int
    epochs: int
    loss: float
    dev: float
    is_best: bool


@dataclass(frozen=True, eq=False)
class SimilarityEnded:
    """A trained similarity model: what there was at the best epoch.

    Attributes:
        settings: how it was trained.
        n_layers, d_model: of the features that it takes.
        weights: of its network, as safetensors.
        losses: [layer] as of the last `AutoencoderEpoch`; None without autoencoders.
        best_epoch, epochs: the epoch whose weights these are, and how many there were.
        dev: Spearman on the dev pairs then.
        layer_shares: [layer] share of what the scores depend on, together 1, as of
            `loop.compute_layer_shares`.
    """

    __repr__ = short_repr

    settings: SimilaritySettings
    n_layers: int
    d_model: int
    weights: bytes
    losses: np.ndarray | None
    best_epoch: int
    epochs: int
    dev: float
    layer_shares: np.ndarray


SimilarityEvent = AutoencoderEpoch | SimilarityEpoch | SimilarityEnded
