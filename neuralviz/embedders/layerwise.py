"""All layers of a frozen model at once: the features of the frozen-features paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from neuralviz.embedders.base import ModelEmbedder, missing_losses
from neuralviz.layers.pooling import make_pooling
from neuralviz.layers.states import pool_texts

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.errors import ShouldStop
    from neuralviz.layers.settings import PoolingName
    from neuralviz.layers.states import LayerStates
    from neuralviz.models import TextModel, TokenizedText


class LayerwiseEmbedder(ModelEmbedder):
    """One pooled vector of every layer, behind each other in one long vector (FREEZE, section 3).

    Each layer's vector is scaled to the same length and the whole has length 1, so that the cosine
    of two whole vectors is the mean of the cosines at the layers. `unfold` takes them apart.

    Args:
        model: from `neuralviz.load_text_model` or `neuralviz.load_model`.
        pooling: ``mean``, ``cls``, ``sep`` or ``last``, the paper's.

    Raises:
        SettingsError: no such pooling, or the model has no such token.
    """

    def __init__(self, model: TextModel, pooling: PoolingName = "mean") -> None:
        super().__init__(model, f"{pooling}, every layer")
        self.n_layers = model.n_blocks + 1
        self._pooling_name = pooling
        self._of_layer = [make_pooling(model, pooling, (layer,)) for layer in range(self.n_layers)]

    @property
    def dim(self) -> int:
        """Values of one vector: the model's width times its layers, the embedding output's too."""
        return self.n_layers * self.model.d_model

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "layerwise", **self.depends_on_model, "pooling": self._pooling_name}

    def unfold(self, vectors: np.ndarray) -> np.ndarray:
        """[text, layer, d_model] vectors of length 1 from [text, dim]; those of zeros stay so.

        They take the place of ``vectors``: of many texts there is no room for both.
        """
        vectors *= np.float32(math.sqrt(self.n_layers))
        return vectors.reshape(len(vectors), self.n_layers, self.model.d_model)

    def _embed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        (vectors,) = pool_texts(self.model, read, [self._pooling], should_stop=should_stop)
        by_layer = vectors.reshape(len(vectors), self.n_layers, self.model.d_model)
        length = np.linalg.norm(by_layer.astype(np.float64), axis=2, keepdims=True)
        length *= math.sqrt(self.n_layers)
        scaled = np.divide(by_layer, length, out=np.zeros_like(by_layer), where=length != 0)
        return scaled.reshape(vectors.shape), missing_losses(len(read))

    def _pooling(self, states: LayerStates) -> tuple[Tensor, Tensor]:
        """[row, layer · d_model] sums, and the sums of their weights: the same at every layer."""
        pooled = [pooling(states) for pooling in self._of_layer]
        return torch.cat([sums for sums, _ in pooled], dim=1), pooled[0][1]
