"""The best weights a training has had, for when it goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

STEPS_BETWEEN = 10  # steps, over which the loss is averaged, too
MARGIN = 0.25  # in nats and as a share of the first loss: batches alone differ by less


class BestWeights:
    """A copy of the trained weights from where the loss was lowest, looked at every few steps.

    Attributes:
        weights: by name.
        loss: mean of the steps that led to them, or the first step's.
    """

    def __init__(self, network: nn.Module) -> None:
        self.weights = trained_weights(network)
        self.loss = np.inf

    def look(self, network: nn.Module, loss: Sequence[float]) -> None:
        """Take the weights as they are after the steps with this loss, if they are the best."""
        if len(loss) == 1:  # what the weights of the start gave
            self.loss = loss[0]
        elif (
            len(loss) % STEPS_BETWEEN == 0
            and (mean := float(np.mean(loss[-STEPS_BETWEEN:]))) < self.loss
        ):
            self.weights, self.loss = trained_weights(network), mean


def has_diverged(loss: Sequence[float]) -> bool:
    """Whether the loss ended clearly above where it began, or is no number."""
    if not np.isfinite(loss).all():
        return True
    return bool(np.mean(loss[-STEPS_BETWEEN:]) > MARGIN + loss[0] * (1 + MARGIN))


def trained_weights(network: nn.Module) -> dict[str, Tensor]:
    """Copies of the weights that are trained, by name."""
    return {
        name: parameter.detach().clone()
        for name, parameter in network.named_parameters()
        if parameter.requires_grad
    }
