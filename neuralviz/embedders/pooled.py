"""Vectors pooled from a model's layers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from neuralviz.embedders.base import Embedded, ModelEmbedder, missing_losses
from neuralviz.embedders.splits import SPECIAL_TOKENS, Part, SplitVector
from neuralviz.errors import ShouldStop
from neuralviz.layers.sbert_wk import part_pooling
from neuralviz.layers.settings import PoolingName, Variant, check_layer_numbers, check_sbert_wk
from neuralviz.layers.states import Pooling, make_pooling, pool_texts, split_texts
from neuralviz.models import TextModel, TokenizedText


class _StatesEmbedder(ModelEmbedder):
    pooling: Pooling

    @property
    def dim(self) -> int:
        return self.model.d_model

    def _embed(self, read: Sequence[TokenizedText], should_stop: ShouldStop) -> Embedded:
        (vectors,) = pool_texts(self.model, read, [self.pooling], should_stop=should_stop)
        return vectors, missing_losses(len(read))

    def _split(self, read: Sequence[TokenizedText], should_stop: ShouldStop) -> list[SplitVector]:
        pooled = split_texts(self.model, read, self.pooling, should_stop=should_stop)
        return [
            SplitVector.of_text(
                text, [Part(f"layer {n}", 0, rows) for n, rows in by_layer.items()], SPECIAL_TOKENS
            )
            for text, by_layer in zip(read, pooled, strict=True)
        ]


class PooledEmbedder(_StatesEmbedder):
    """Mean, CLS, SEP or last-token pooling at one layer, or averaged over several.

    ``layer`` is 0 (embedding output) to the number of blocks, negative from the end, several to
    average over, ``last`` or ``all``. ``special_tokens`` includes these in the mean, as sentence
    encoders do; the neural paper's *avg* does not. Long texts are read whole, in chunks.
    `SettingsError` for a pooling or layer that the model does not have.
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

    Takes the arguments of `check_sbert_wk`, and as ``part`` one of `PARTS` (Table VII).
    `SettingsError` for an invalid setting.
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


class LayerwiseEmbedder(ModelEmbedder):
    """The pooled vectors of all layers, joined into one unit vector (FREEZE, section 3).

    The cosine of two such vectors is the mean of the layers' cosines; `unfold` takes them apart.
    `SettingsError` for a pooling that the model does not have.
    """

    def __init__(self, model: TextModel, pooling: PoolingName = "mean") -> None:
        super().__init__(model, f"{pooling}, every layer")
        self.n_layers = model.n_blocks + 1
        self._pooling_name = pooling
        self._of_layer = [make_pooling(model, pooling, (layer,)) for layer in range(self.n_layers)]

    @property
    def dim(self) -> int:
        return self.n_layers * self.model.d_model

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "layerwise", **self.depends_on_model, "pooling": self._pooling_name}

    def unfold(self, vectors: np.ndarray) -> np.ndarray:
        """[text, layer, d_model] unit vectors, in place of [text, dim]; zeros stay zero."""
        vectors *= np.float32(math.sqrt(self.n_layers))
        return vectors.reshape(len(vectors), self.n_layers, self.model.d_model)

    def _embed(self, read: Sequence[TokenizedText], should_stop: ShouldStop) -> Embedded:
        pooled = pool_texts(self.model, read, self._of_layer, should_stop=should_stop)
        by_layer = np.stack(pooled, axis=1)
        length = np.linalg.norm(by_layer.astype(np.float64), axis=2, keepdims=True)
        length *= math.sqrt(self.n_layers)
        scaled = np.divide(by_layer, length, out=np.zeros_like(by_layer), where=length != 0)
        return scaled.reshape(len(read), -1), missing_losses(len(read))
