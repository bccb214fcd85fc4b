"""The networks of the rungs: small ones over what a frozen model gives at its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.training.similarity.settings import SimilaritySettings


def encoder_widths(n_layers: int, d_model: int) -> tuple[int, ...]:
    """[layer] units of each layer's encoder: a quarter of the model's width, the upper half's half.

    For gpt2-medium that is 256 and, for the last twelve layers, 512 (FREEZE, section 4.2.3).
    """
    n_wide = n_layers // 2
    narrow, wide = max(d_model // 4, 1), max(d_model // 2, 1)
    return (narrow,) * (n_layers - n_wide) + (wide,) * n_wide


class LayerEncoders(nn.Module):
    """An encoder a layer: layer norm, then linear (FREEZE, sections 4.2.2 and 4.2.3).

    They begin as random projections with orthogonal rows, which change cosines little.
    """

    def __init__(self, n_layers: int, d_model: int) -> None:
        super().__init__()
        self.encoders = nn.ModuleList()
        for width in encoder_widths(n_layers, d_model):
            linear = nn.Linear(d_model, width)
            nn.init.orthogonal_(linear.weight)
            nn.init.zeros_(linear.bias)
            self.encoders.append(nn.Sequential(nn.LayerNorm(d_model), linear))

    def forward(self, vectors: Tensor) -> list[Tensor]:
        """[text, layer, d_model] to a [text, width] for each layer."""
        return [encoder(vectors[:, layer]) for layer, encoder in enumerate(self.encoders)]


class Decoders(nn.Module):
    """What turns a code back into a layer's vector; needed for learning alone."""

    def __init__(self, n_layers: int, d_model: int) -> None:
        super().__init__()
        self.decoders = nn.ModuleList(
            nn.Linear(width, d_model) for width in encoder_widths(n_layers, d_model)
        )

    def losses(self, codes: list[Tensor], vectors: Tensor) -> Tensor:
        """[layer] mean squared errors of the [text, layer, d_model] vectors behind the codes."""
        return torch.stack(
            [
                functional.mse_loss(decoder(code), vectors[:, layer])
                for layer, (decoder, code) in enumerate(zip(self.decoders, codes, strict=True))
            ]
        )


class CosineHead(nn.Module):
    """From the cosines at the layers to a score, the highest where all cosines are 1.

    The score is ``sigmoid(top - |f(1, …, 1) - f(cosines)|)`` with a linear part and an MLP in
    ``f``: two equal texts, whose cosines are all 1, cannot be scored lower than any other pair.
    """

    def __init__(self, n_layers: int, hidden: int) -> None:
        super().__init__()
        self.top = nn.Parameter(torch.tensor(3.0))
        self.linear = nn.Linear(n_layers, 1, bias=False)
        nn.init.constant_(self.linear.weight, 6.0 / n_layers)
        self.mlp = nn.Sequential(
            nn.Linear(n_layers, hidden), nn.GELU(), nn.Linear(hidden, 1, bias=False)
        )
        nn.init.zeros_(self.mlp[2].weight)

    def f(self, cosines: Tensor) -> Tensor:
        """[pair] from [pair, layer]."""
        return (self.linear(cosines) + self.mlp(cosines))[:, 0]

    def forward(self, cosines: Tensor) -> Tensor:
        """[pair] logits from [pair, layer] cosines."""
        best = self.f(torch.ones_like(cosines[:1]))
        return self.top - (best - self.f(cosines)).abs()


class SimilarityNetwork(nn.Module):
    """A rung: maybe encoders, then cosines, then the head."""

    def __init__(self, settings: SimilaritySettings, n_layers: int, d_model: int) -> None:
        super().__init__()
        self.encoders = LayerEncoders(n_layers, d_model) if settings.has_encoders else None
        self.head = CosineHead(n_layers, settings.hidden)

    def cosines(self, first: Tensor, second: Tensor) -> Tensor:
        """[pair, layer] cosines of two [pair, layer, d_model], behind the encoders if any."""
        if self.encoders is None:
            return functional.cosine_similarity(first, second, dim=2)
        return torch.stack(
            [
                functional.cosine_similarity(first_codes, second_codes, dim=1)
                for first_codes, second_codes in zip(
                    self.encoders(first), self.encoders(second), strict=True
                )
            ],
            dim=1,
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """[pair] scores, 0 … 1, of two [pair, layer, d_model]."""
        return torch.sigmoid(self.head(self.cosines(first, second)))


def log_variance(predicted: Tensor, scores: Tensor) -> Tensor:
    """``log Var(prediction - score)``: a shift of all predictions costs nothing (section 4.1)."""
    return torch.log((predicted - scores).var() + 1e-8)
