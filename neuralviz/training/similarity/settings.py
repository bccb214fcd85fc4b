"""What a similarity model is made of, how it is trained, and what that tells; loads no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from neuralviz.errors import SettingsError
from neuralviz.layers.settings import POOLINGS
from neuralviz.words import short_repr

if TYPE_CHECKING:
    import numpy as np

    from neuralviz.layers.settings import PoolingName


Rung = Literal["cosines", "siamese", "autoencoder", "log-variance"]
RUNGS: tuple[Rung, ...] = get_args(Rung)
PUBLISHED: dict[Rung, tuple[float, float]] = {
    "cosines": (0.392, 0.421),
    "siamese": (0.716, 0.697),
    "autoencoder": (0.754, 0.732),
    "log-variance": (0.769, 0.750),
}
"""Pearson and Spearman of gpt2-medium on the test pairs of STS-B (FREEZE, section 5)."""


@dataclass(frozen=True)
class SimilaritySettings:
    """How one rung is trained (FREEZE, section 4); SettingsError where a value makes no sense.

    Attributes:
        rung: ``cosines``, an MLP over the cosines at the layers; ``siamese``, an encoder a layer,
            and the same over the cosines of what they give; ``autoencoder``, their encoders
            learnt as autoencoders first; ``log-variance``, as the last, with the logarithm of the
            variance of the errors as loss in place of their mean square.
        batch_size: pairs of a step; the autoencoders have as many texts as these pairs.
        patience: epochs without a better Spearman on the dev pairs after which training ends.
        autoencoder_steps: of few texts there are more passes, until so many steps are made.
        learning_rate, encoder_rate: of Adam, for the MLP, and for encoders and autoencoders.
        hidden: units of the MLP.
    """

    rung: Rung = "log-variance"
    pooling: PoolingName = "mean"
    seed: int = 42
    batch_size: int = 32
    max_epochs: int = 60
    patience: int = 6
    autoencoder_epochs: int = 10
    autoencoder_steps: int = 600
    learning_rate: float = 3e-3
    encoder_rate: float = 3e-4
    hidden: int = 64

    def __post_init__(self) -> None:
        if self.rung not in RUNGS:
            raise SettingsError(f"The rung must be one of: {', '.join(RUNGS)}.")
        if self.pooling not in POOLINGS:
            raise SettingsError(f"The pooling must be one of: {', '.join(POOLINGS)}.")
        for name, value, lowest, highest in (
            ("The seed", self.seed, 0, 2**32 - 1),
            ("The batch size", self.batch_size, 2, 4096),
            ("The number of epochs", self.max_epochs, 1, 1000),
            ("The patience", self.patience, 1, 1000),
            ("The number of autoencoder epochs", self.autoencoder_epochs, 1, 1000),
            ("The number of autoencoder steps", self.autoencoder_steps, 0, 10**6),
            ("The number of hidden units", self.hidden, 1, 4096),
        ):
            if (
                not isinstance(value, int)
                or isinstance(value, bool)
                or not lowest <= value <= highest
            ):
                raise SettingsError(
                    f"{name} must be a whole number from {lowest:,} to {highest:,}."
                )
        for rate in (self.learning_rate, self.encoder_rate):
            if not (math.isfinite(rate) and rate > 0):
                raise SettingsError("The learning rate must be above 0.")

    @property
    def has_encoders(self) -> bool:
        """Whether the vectors go through encoders before their cosines are taken."""
        return self.rung != "cosines"

    @property
    def pretrains(self) -> bool:
        """Whether its encoders are autoencoders first."""
        return self.rung in ("autoencoder", "log-variance")


RUNG_NAMES: dict[Rung, str] = {
    "cosines": "MLP over cosines",
    "siamese": "Siamese encoders",
    "autoencoder": "Autoencoders first",
    "log-variance": "Log-variance loss",
}
RUNG_MEANS: dict[Rung, str] = {
    "cosines": "A small network reads the cosines at all layers.",
    "siamese": "Each layer has an encoder; the network reads the cosines of what they give.",
    "autoencoder": "The same; the encoders learn to rebuild each layer's vectors first.",
    "log-variance": (
        "The same; the loss is the logarithm of the variance of the errors, in place of their "
        "mean square."
    ),
}


@dataclass(frozen=True, eq=False)
class AutoencoderEpoch:
    """One pass of the autoencoders over the texts (FREEZE, section 4.2.3).

    ``losses`` is the [layer] share of the variance of the dev texts' vectors that the code loses, 0
    for none; above 1 the mean of all vectors would be closer.
    """

    __repr__ = short_repr

    epoch: int
    epochs: int
    losses: np.ndarray


@dataclass(frozen=True, eq=False)
class SimilarityEpoch:
    """One pass over the pairs.

    ``loss`` is the mean over the steps: mean squared error, or the logarithm of the errors'
    variance, of scores as shares of their range. ``dev`` is Spearman on the dev pairs, NaN where it
    is undefined; ``is_best`` if no epoch before had a better one.
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
        n_layers, d_model: of the features that it takes.
        weights: of its network, as safetensors.
        losses: [layer] as of the last `AutoencoderEpoch`; None without autoencoders.
        best_epoch, epochs: the epoch whose weights these are, and how many there were.
        dev: Spearman on the dev pairs then.
        layer_shares: [layer] as of `loop.compute_layer_shares`.
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
