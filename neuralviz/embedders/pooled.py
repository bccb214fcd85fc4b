"""Vectors pooled from what a model gives at its layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neuralviz.embedders.base import ModelEmbedder, missing_losses
from neuralviz.layers.pooling import make_pooling
from neuralviz.layers.sbert_wk import part_pooling
from neuralviz.layers.settings import check_layer_numbers, check_sbert_wk
from neuralviz.layers.states import pool_texts

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.layers.settings import PoolingName, Variant
    from neuralviz.layers.states import Pooling
    from neuralviz.models import TextModel, TokenizedText


class _StatesEmbedder(ModelEmbedder):
    """An embedder whose vectors are weighted means over a model's token vectors."""

    pooling: Pooling

    @property
    def dim(self) -> int:
        """Values of one vector: the width of the model."""
        return self.model.d_model

    def _embed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        (vectors,) = pool_texts(self.model, read, [self.pooling], should_stop=should_stop)
        return vectors, missing_losses(len(read))


class PooledEmbedder(_StatesEmbedder):
    """Mean, CLS, SEP or last-token pooling at one layer, or averaged over several.

    A text longer than the model's window is read in chunks, nothing of it is cut off.

    Args:
        model: from `neuralviz.load_text_model` or `neuralviz.load_model`.
        pooling: ``mean``, ``cls``, ``sep`` or ``last``.
        layer: 0 (embedding output) to the number of blocks, negative from the end, several to
            average over, ``last`` or ``all``.
        special_tokens: whether the mean takes in the special tokens, as sentence encoders do; the
            neural paper's *avg* does not.
        name: for labels; the pooling's by default.

    Raises:
        SettingsError: no such pooling or layer, or the model has no such token.
    """

    def __init__(
        self,
        model: TextModel,
        pooling: PoolingName = "mean",
        layer: int | Iterable[int] | Literal["last", "all"] = "last",
        special_tokens: bool = True,
        name: str = "",
    ) -> None:
        super().__init__(model, name or pooling)
        layers = check_layer_numbers(model, layer)
        self.pooling = make_pooling(model, pooling, layers, special_tokens=special_tokens)
        self._settings = {
            "pooling": pooling, "layers": layers, "special_tokens": bool(special_tokens)
        }  # fmt: skip

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "pooled", **self.depends_on_model, **self._settings}


class SbertWkEmbedder(_StatesEmbedder):
    """SBERT-WK: layers weighed by alignment and novelty, tokens by variance (Wang & Kuo, IV).

    Args:
        model: from `neuralviz.load_text_model` or `neuralviz.load_model`.
        variant: ``authors``, the published program, or ``paper``, the equations.
        layer_start: the first layer that counts; by default a third of the blocks (4 of 12).
        window: layers to each side that a layer is compared with, at least 1.
        omega: share of alignment in a layer's weight, 0 … 1.
        part: ``all`` of it, or one of `sbert_wk.PARTS` alone (Table VII).

    Raises:
        SettingsError: a setting makes no sense.
    """

    def __init__(
        self,
        model: TextModel,
        variant: Variant = "authors",
        layer_start: int | None = None,
        window: int = 2,
        omega: float = 0.5,
        part: str = "all",
    ) -> None:
        super().__init__(model, "sbert-wk")
        self.settings = check_sbert_wk(
            model, variant=variant, layer_start=layer_start, window=window, omega=omega
        )
        self.pooling = part_pooling(self.settings, part)
        self._part = part

    @property
    def depends_on(self) -> Mapping[str, Any]:
        settings = {"part": self._part, **asdict(self.settings)}
        return {"method": "sbert-wk", **self.depends_on_model, **settings}
