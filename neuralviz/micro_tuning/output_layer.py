"""The frozen output layer of a model, in the type in which its products are made."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.models import LanguageModel

_LEAST = 1e-30
_layers: WeakKeyDictionary[LanguageModel, dict[torch.dtype, OutputLayer]] = WeakKeyDictionary()


class OutputLayer:
    """A word a row.

    Attributes:
        weight: [vocab, width] in the type of the products.
        bias: [vocab] in the same, or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self._spread: tuple[Tensor, Tensor] | None = None

    def spread(self) -> tuple[Tensor, Tensor]:
        """How the words lie: [width, width] covariance of trace 1, and [vocab] squared lengths.

        Made once, in float32; the covariance, which goes into products, is then in their type.
        """
        if self._spread is None:
            words = self.weight.float()
            centred = words - words.mean(dim=0)
            covariance = centred.T @ centred
            covariance /= covariance.trace().clamp_min(_LEAST)
            self._spread = covariance.to(self.weight.dtype), words.square().sum(dim=1)
        return self._spread


def output_layer(model: LanguageModel, dtype: torch.dtype = torch.float32) -> OutputLayer:
    """A model's output layer, made once for each type; in float32 the model's own tensors."""
    by_dtype = _layers.setdefault(model, {})
    if dtype not in by_dtype:
        layer = model.network.get_output_embeddings()
        bias = None if layer.bias is None else layer.bias.detach().to(dtype)
        by_dtype[dtype] = OutputLayer(layer.weight.detach().to(dtype), bias)
    return by_dtype[dtype]
