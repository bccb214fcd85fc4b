"""What the rungs are called, and what is told of them; loads no torch."""

from __future__ import annotations

from neuralviz.training.similarity.settings import Rung

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
