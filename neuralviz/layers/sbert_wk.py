"""SBERT-WK (Wang & Kuo): a text's vector from how its tokens' vectors change across layers."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from neuralviz.errors import check_choice
from neuralviz.layers.settings import PARTS, SbertWkSettings, Variant
from neuralviz.layers.states import LayerStates, Pooling, TokenWeights

Weighting = Literal["sbert-wk", "last", "equal"]
_DEPENDENT = 1e-12  # squared sine below which a direction adds nothing to a span
_BALANCED = 1e-12  # mean cosine below which the cosines cancel out
_STEADY = 1e-24  # variance below which a token counts as motionless


class LayerWeights(NamedTuple):
    """[token, layer] weights, each summing to 1 over the layers."""

    alignment: Tensor  # Equation 6: large where a layer differs from its neighbours
    novelty: Tensor  # Equation 7: large where its neighbours do not span a layer
    combined: Tensor  # Equation 9


def gram_matrices(vectors: Tensor) -> Tensor:
    """[token, layer, layer] float64 inner products of [token, layer, d_model] vectors."""
    exact = vectors.double()
    return exact @ exact.transpose(1, 2)


def layer_weights(gram: Tensor, window: int, variant: Variant, omega: float) -> LayerWeights:
    """The weights of the layers that count, from their [token, layer, layer] Gram matrices (section
    IV-A).

    The paper's QR factor R of a window is the Cholesky factor of the window's Gram matrix, so all
    windows of a batch are solved together. A layer that cannot be compared (no neighbour, zero
    vector) gets the others' mean weight; weights that sum to 0 become equal.
    """
    n_layers = gram.shape[1]
    windows, present = _windows(n_layers, window, variant, gram.device)
    columns = torch.cat([windows, torch.arange(n_layers, device=gram.device)[:, None]], dim=1)
    window_gram = gram[:, columns[:, :, None], columns[:, None, :]]  # [token, layer, W + 1, W + 1]
    is_member = torch.cat([present, present.new_ones(n_layers, 1)], dim=1)  # and the layer itself
    window_gram = window_gram * (is_member[:, :, None] & is_member[:, None, :])
    squared = torch.diagonal(gram, dim1=1, dim2=2)  # [token, layer]
    residual = _squared_residual(window_gram)
    new = (residual / squared).nan_to_num(0.0)
    new = torch.where(new < _DEPENDENT, 0, new.clamp(max=1)).sqrt()

    neighbours = window_gram[..., :-1, -1]  # [token, layer, W] products with the centre
    lengths = torch.diagonal(window_gram, dim1=2, dim2=3)[..., :-1].sqrt()
    # Authors: the neighbours' cosines with the projection on their span, not with the vector.
    centre = squared if variant == "paper" else (squared - residual).clamp(min=0)
    cosines = neighbours / (lengths * centre.sqrt()[..., None])
    n_present = present.sum(dim=1)
    beta = torch.where(present, cosines.nan_to_num(0.0, 0.0, 0.0), 0).sum(dim=2) / n_present
    if variant == "authors":  # which favours layers with a short window
        beta = beta * 2 * (n_present + 1)
    comparable = (n_present > 0) & (squared > 0)
    alignment = _normalized(1 / beta, comparable & (beta.abs() > _BALANCED))
    novelty = _normalized(new, comparable)
    combined = omega * alignment + (1 - omega) * novelty
    return LayerWeights(alignment, novelty, _normalized(combined, combined.isfinite()))


def _windows(
    n_layers: int, window: int, variant: Variant, device: torch.device
) -> tuple[Tensor, Tensor]:
    """[layer, W] numbers of neighbouring layers, 0 where missing, and which of them exist."""
    steps = [step for step in range(-window, window + 1) if step and abs(step) < n_layers]
    layers = torch.arange(n_layers, device=device)[:, None]
    neighbours = layers + torch.tensor(steps, dtype=torch.long, device=device)
    present = (neighbours >= 0) & (neighbours < n_layers)
    if variant == "authors":
        present &= (layers >= window) | (neighbours > layers)
    return torch.where(present, neighbours, 0), present


def _squared_residual(gram: Tensor) -> Tensor:
    """[…] squared length of the last vector's part orthogonal to the others, from […, n, n]."""
    lengths = torch.diagonal(gram, dim1=-2, dim2=-1).clone()
    for j in range(gram.shape[-1] - 1):
        pivot = gram[..., j, j]
        adds = pivot > _DEPENDENT * lengths[..., j]
        row = gram[..., j, :] / torch.where(adds, pivot, 1)[..., None] * adds[..., None]
        gram = gram - gram[..., :, j, None] * row[..., None, :]
    return gram[..., -1, -1].clamp(min=0)


def _normalized(weights: Tensor, defined: Tensor) -> Tensor:
    """[token, layer] shares over the layers; undefined weights get the mean, zeros become equal."""
    weights = torch.where(defined, weights, 0)
    total, n = weights.sum(dim=1, keepdim=True), defined.sum(dim=1, keepdim=True)
    shares = torch.where(defined, weights, total / n) / (total * weights.shape[1] / n)
    return torch.where(total != 0, shares, 1 / weights.shape[1])


def token_variance(gram: Tensor) -> Tensor:
    """[token] variance of consecutive layers' cosines (Eq. 11); 0 for fewer than three layers."""
    lengths = torch.diagonal(gram, dim1=1, dim2=2).sqrt()
    products = torch.diagonal(gram, offset=1, dim1=1, dim2=2)
    cosines = (products / (lengths[:, 1:] * lengths[:, :-1])).nan_to_num(0.0, 0.0, 0.0)
    if cosines.shape[1] < 2:
        return cosines.new_zeros(len(cosines))
    return cosines.var(dim=1, correction=0)


def importance(variance: Tensor) -> Tensor:
    """[token] unnormalised token weights from their variances."""
    return variance.clamp(min=_STEADY)


def sbert_wk_pooling(
    settings: SbertWkSettings, *, weighting: Weighting = "sbert-wk", token_importance: bool = True
) -> Pooling:
    """SBERT-WK as a pooling; the first special token and the text's own tokens count.

    For the ablation (Table VII), ``weighting`` may be ``last``, the last layer alone, or ``equal``,
    the mean of the layers that count; without ``token_importance`` all tokens weigh the same.
    """

    def weigh(states: LayerStates) -> TokenWeights:
        rows, positions = states.without_suffix.nonzero(as_tuple=True)
        vectors = states.vectors[settings.layer_start :, rows, positions].transpose(0, 1)
        n_tokens, n_layers, _ = vectors.shape
        gram = gram_matrices(vectors)
        if weighting == "sbert-wk":
            weights = layer_weights(
                gram, settings.window, settings.variant, settings.omega
            ).combined
        elif weighting == "last":
            weights = gram.new_zeros(n_tokens, n_layers)
            weights[:, -1] = 1
        else:
            weights = gram.new_full((n_tokens, n_layers), 1 / n_layers)
        tokens = importance(token_variance(gram)) if token_importance else gram.new_ones(n_tokens)
        # the largest is a common factor, without which the sums of float32 stay in range
        shares = vectors.new_zeros(n_layers, *states.attention.shape)
        shares[:, rows, positions] = (weights * tokens[:, None] / tokens.max()).to(shares.dtype).T
        total = tokens.new_zeros(len(states.lengths)).index_add_(0, rows, tokens)
        first, last = settings.layer_start, len(states.vectors)
        return TokenWeights(range(first, last), shares, total, tokens.max())

    return weigh


def part_pooling(settings: SbertWkSettings, part: str) -> Pooling:
    """The pooling for one of `PARTS`; else `SettingsError`."""
    check_choice("part of SBERT-WK", part, PARTS)
    return ablation(settings)[PARTS[part]]


def ablation(settings: SbertWkSettings) -> dict[str, Pooling]:
    """The rows of Table VII: SBERT-WK, each part alone, and the last layer's mean as baseline."""

    def alone(omega: float) -> SbertWkSettings:
        return SbertWkSettings(settings.layer_start, settings.variant, settings.window, omega)

    return {
        "Mean of the last layer": sbert_wk_pooling(
            settings, weighting="last", token_importance=False
        ),
        "Alignment": sbert_wk_pooling(alone(1.0), token_importance=False),
        "Novelty": sbert_wk_pooling(alone(0.0), token_importance=False),
        "Token importance, last layer": sbert_wk_pooling(settings, weighting="last"),
        "Token importance, all layers": sbert_wk_pooling(settings, weighting="equal"),
        "SBERT-WK": sbert_wk_pooling(settings),
    }
