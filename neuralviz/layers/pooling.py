"""The usual ways from the vectors of a text's tokens to one vector of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from neuralviz.errors import SettingsError
from neuralviz.layers.settings import POOLINGS

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.layers.settings import PoolingName
    from neuralviz.layers.states import LayerStates, Pooling
    from neuralviz.models import TextModel


def make_pooling(
    model: TextModel,
    name: PoolingName,
    layers: tuple[int, ...],
    *,
    special_tokens: bool = True,
) -> Pooling:
    """A pooling of the vectors at some layers, averaged over the layers.

    Args:
        model: whose vectors.
        name: ``mean`` over the tokens; ``cls``, the first special token; ``sep``, the first special
            token behind the text; ``last``, the text's own last token. Of a text in several chunks
            the first three are taken over all chunks.
        layers: from `check_layer_numbers`.
        special_tokens: whether the mean takes in the special tokens, as sentence encoders do.

    Raises:
        SettingsError: there is no such pooling, or the model has no such token.
    """
    if name not in POOLINGS:
        raise SettingsError(f"The pooling must be one of: {', '.join(POOLINGS)}.")
    if (name == "cls" and not model.prefix_ids) or (name == "sep" and not model.suffix_ids):
        side = "before" if name == "cls" else "after"
        raise SettingsError(
            f"The model “{model.id}” has no special token {side} a text. Use mean or last."
        )
    chosen = list(layers)

    def average(vectors: Tensor) -> Tensor:
        """[layer, row, …, d_model] to [row, …, d_model]."""
        return vectors[chosen].mean(dim=0) if len(chosen) > 1 else vectors[chosen[0]]

    def mean(states: LayerStates) -> tuple[Tensor, Tensor]:
        mask = states.attention if special_tokens else states.text_tokens
        return torch.einsum("rtd,rt->rd", average(states.vectors), mask.float()), mask.sum(dim=1)

    def one_token(states: LayerStates) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(states.lengths), device=states.lengths.device)
        behind = states.lengths - states.n_suffix
        positions = {"cls": torch.zeros_like(behind), "sep": behind, "last": behind - 1}[name]
        counts = states.is_last if name == "last" else torch.ones_like(behind)
        return average(states.vectors[:, rows, positions]) * counts[:, None], counts

    return mean if name == "mean" else one_token
