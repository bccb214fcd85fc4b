"""Settings and events of similarity models; loads no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from neuralviz.errors import SettingsError
from neuralviz.layers.settings import POOLINGS, PoolingName
from neuralviz.training.settings import Limits, check_whole_numbers
from neuralviz.words import ShortRepr

if TYPE_CHECKING:
    import numpy as np

Rung = Literal["cosines", "siamese", "autoencoder", "log-variance"]
RUNGS: tuple[Rung, ...] = get_args(Rung)
# Pearson and Spearman of gpt2-medium on the test pairs of STS-B (FREEZE, section 5)
PUBLISHED: dict[Rung, tuple[float, float]] = {
    "cosines": (0.392, 0.421),
    "siamese": (0.716, 0.697),
    "autoencoder": (0.754, 0.732),
    "log-variance": (0.769, 0.750),
}
_WHOLE_NUMBERS: dict[str, Limits] = {
    "seed": ("seed", 0, 2**32 - 1),
    "batch_size": ("batch size", 2, 4096),
    "max_epochs": ("number of epochs", 1, 1000),
    "patience": ("patience", 1, 1000),
    "autoencoder_epochs": ("number of autoencoder epochs", 1, 1000),
    "autoencoder_steps": ("number of autoencoder steps", 0, 10**6),
    "hidden": ("number of hidden units", 1, 4096),
}


@dataclass(frozen=True)
class SimilaritySettings:
    """How one rung of `RUNG_NAMES` is trained (FREEZE, section 4); `SettingsError` if invalid."""

    rung: Rung = "log-variance"
    pooling: PoolingName = "mean"
    seed: int = 42
    batch_size: int = 32  # pairs; autoencoders have as many texts as these pairs
    max_epochs: int = 60
    patience: int = 6  # epochs without a better Spearman on the dev pairs that end the training
    autoencoder_epochs: int = 10
    autoencoder_steps: int = 600  # at least: of few texts there are more passes
    learning_rate: float = 3e-3  # of Adam, for the MLP
    encoder_rate: float = 3e-4  # for encoders and autoencoders
    hidden: int = 64  # units of the MLP

    def __post_init__(self) -> None:
        if self.rung not in RUNGS:
            raise SettingsError(f"The rung must be one of: {', '.join(RUNGS)}.")
        if self.pooling not in POOLINGS:
            raise SettingsError(f"The pooling must be one of: {', '.join(POOLINGS)}.")
        check_whole_numbers(self, _WHOLE_NUMBERS)
        for rate in (self.learning_rate, self.encoder_rate):
            if not (math.isfinite(rate) and rate > 0):
                raise SettingsError("The learning rate must be above 0.")

    @property
    def has_encoders(self) -> bool:
        return self.rung != "cosines"

    @property
    def pretrains(self) -> bool:
        return self.rung in ("autoencoder", "log-variance")


RUNG_NAMES: dict[Rung, str] = {
    "cosines": "MLP over cosines",
    "siamese": "Siamese encoders",
    "autoencoder": "Autoencoders first",
    "log-variance": "Log-variance loss",
}


@dataclass(frozen=True, eq=False, repr=False)
class AutoencoderEpoch(ShortRepr):
    """One pass of the autoencoders over the texts (FREEZE, section 4.2.3)."""

    epoch: int
    epochs: int
    # [layer] share of the dev vectors' variance that the code loses; of their mean it would be 1
    losses: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityEpoch(ShortRepr):
    epoch: int
    epochs: int
    loss: float  # mean over the steps, of scores as shares of their range
    dev: float  # Spearman on the dev pairs, NaN where it is undefined
    is_best: bool  # no epoch before had a better one


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityEnded(ShortRepr):
    settings: SimilaritySettings
    n_layers: int  # of the features that it takes
    d_model: int
    weights: bytes  # of its network, as safetensors
    losses: np.ndarray | None  # [layer] as of the last `AutoencoderEpoch`; None without
    best_epoch: int  # whose weights these are
    epochs: int  # that there were
    dev: float  # Spearman on the dev pairs at the best epoch
    layer_shares: np.ndarray  # [layer] as of `loop.compute_layer_shares`


SimilarityEvent = AutoencoderEpoch | SimilarityEpoch | SimilarityEnded
