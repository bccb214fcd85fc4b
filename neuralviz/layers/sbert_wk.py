"""SBERT-WK: a text's vector from how its tokens' vectors move through the layers (Wang & Kuo).

A token's vectors at the layers are weighed by how little they align with the neighbouring layers
and how much is new in them, and summed; tokens are weighed by how unsteadily they move, and summed.

Everything comes from the products of a token's vectors, its Gram matrix: the triangular factor R of
the QR decomposition of a window of vectors is the Cholesky factor of the window's Gram matrix. So
all windows of all tokens of a batch are taken at once, in small matrices of float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch

from neuralviz.errors import SettingsError
from neuralviz.layers.settings import PARTS, SbertWkSettings

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.layers.settings import Variant
    from neuralviz.layers.states import LayerStates, Pooling

Weighting = Literal["sbert-wk", "last", "equal"]
_DEPENDENT = 1e-12  # squared sine of a direction below which it adds nothing to a span
_BALANCED = 1e-12  # mean of cosines below which they cancel out
_STEADY = 1e-24  # variance of cosines below which a token does not move at all


class LayerWeights(NamedTuple):
    """Weights of the layers for each token, each [token, layer] with a sum of 1 over the layers.

    Attributes:
        alignment: inverse alignment, Equation 6: large where a layer differs from its neighbours.
    """

    alignment: Tensor
    novelty: Tensor  # Equation 7: large where a layer has something that its neighbours do not span
    combined: Tensor  # Equation 9


def gram_matrices(vectors: Tensor) -> Tensor:
    """[token, layer, layer] products in float64 of [token, layer, d_model] vectors."""
    exact = vectors.double()
    return exact @ exact.transpose(1, 2)


def layer_weights(gram: Tensor, window: int, variant: Variant, omega: float) -> LayerWeights:
    """The weights of the layers for each token (SBERT-WK, section IV-A).

    Args:
        gram: [token, layer, layer] of the layers that count.
        window, variant, omega: as of `SbertWkSettings`.

    A layer that cannot be compared (no neighbour in its window, or a vector of zeros) takes the
    mean weight of the others. Where weights have a sum of 0 (novelty among identical layers), all
    layers weigh the same.
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
    """[layer, W] numbers of each layer's neighbours, 0 where there is none, and which are there.

    In the authors' program the first ``window`` layers look only at later ones.
    """
    steps = [step for step in range(-window, window + 1) if step and abs(step) < n_layers]
    layers = torch.arange(n_layers, device=device)[:, None]
    neighbours = layers + torch.tensor(steps, dtype=torch.long, device=device)
    present = (neighbours >= 0) & (neighbours < n_layers)
    if variant == "authors":
        present &= (layers >= window) | (neighbours > layers)
    return torch.where(present, neighbours, 0), present


def _squared_residual(gram: Tensor) -> Tensor:
    """[…] squared length of the last vector's part that is orthogonal to the vectors before it.

    ``gram`` is [… , n, n]. That is the last entry of the diagonal of its Cholesky factor, squared;
    vectors that lie in the span of those before them are passed over.
    """
    lengths = torch.diagonal(gram, dim1=-2, dim2=-1).clone()
    for j in range(gram.shape[-1] - 1):
        pivot = gram[..., j, j]
        adds = pivot > _DEPENDENT * lengths[..., j]
        row = gram[..., j, :] / torch.where(adds, pivot, 1)[..., None] * adds[..., None]
        gram = gram - gram[..., :, j, None] * row[..., None, :]
    return gram[..., -1, -1].clamp(min=0)


def _normalized(weights: Tensor, defined: Tensor) -> Tensor:
    """[token, layer] weights with a sum of 1 over the layers.

    Those not defined are the mean of the others; without a sum to divide by, all are equal.
    """
    weights = torch.where(defined, weights, 0)
    total, n = weights.sum(dim=1, keepdim=True), defined.sum(dim=1, keepdim=True)
    shares = torch.where(defined, weights, total / n) / (total * weights.shape[1] / n)
    return torch.where(total != 0, shares, 1 / weights.shape[1])


def token_variance(gram: Tensor) -> Tensor:
    """[token] variance of the cosines of consecutive layers (SBERT-WK, Equation 11).

    ``gram`` is [token, layer, layer]; 0 with fewer than three layers.
    """
    lengths = torch.diagonal(gram, dim1=1, dim2=2).sqrt()
    products = torch.diagonal(gram, offset=1, dim1=1, dim2=2)
    cosines = (products / (lengths[:, 1:] * lengths[:, :-1])).nan_to_num(0.0, 0.0, 0.0)
    if cosines.shape[1] < 2:
        return cosines.new_zeros(len(cosines))
    return cosines.var(dim=1, correction=0)


def importance(variance: Tensor) -> Tensor:
    """[token] weights of tokens before they are normalised: equal where nothing moves."""
    return variance.clamp(min=_STEADY)


def sbert_wk_pooling(
    settings: SbertWkSettings,
    *,
    weighting: Weighting = "sbert-wk",
    token_importance: bool = True,
) -> Pooling:
    """SBERT-WK as a pooling: the first special token and the text's own tokens count.

    Args:
        settings: from `check_sbert_wk`.
        weighting: for the ablation (Table VII): ``last`` takes the last layer's vectors, ``equal``
            the mean over all layers from the first that counts.
        token_importance: false weighs all tokens alike.
    """

    def pool(states: LayerStates) -> tuple[Tensor, Tensor]:
        rows, positions = states.without_suffix.nonzero(as_tuple=True)
        vectors = states.vectors[settings.layer_start :, rows, positions].transpose(0, 1)
        n_tokens, n_layers, d_model = vectors.shape
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
        # a common factor drops out, and keeps the sums of float32 in range
        scaled = (weights * tokens[:, None] / tokens.max()).to(vectors.dtype)
        unified = (scaled[:, None] @ vectors)[:, 0]
        n_rows = len(states.lengths)
        sums = vectors.new_zeros(n_rows, d_model).index_add_(0, rows, unified)
        return (
            sums.double() * tokens.max(),
            tokens.new_zeros(n_rows).index_add_(0, rows, tokens),
        )

    return pool


def part_pooling(settings: SbertWkSettings, part: str) -> Pooling:
    """The pooling of one of `PARTS`; else `SettingsError`."""
    if part not in PARTS:
        raise SettingsError(
            f"Unknown part of SBERT-WK “{part[:40]}”. Choose from: {', '.join(PARTS)}."
        )
    return ablation(settings)[PARTS[part]]


def ablation(settings: SbertWkSettings) -> dict[str, Pooling]:
    """The rows of Table VII: each part of SBERT-WK alone, and all of it.

    The baseline is the mean of the last layer over the same tokens.
    """

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
