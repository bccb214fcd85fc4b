"""The usual ways from the vectors of a text's tokens to one vector of the text."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Literal, get_args

import torch

from neuralviz.errors import SettingsError

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.layers.states import LayerStates, Pooling
    from neuralviz.models import TextModel

PoolingName = Literal["mean", "cls", "sep", "last"]
POOLINGS: tuple[PoolingName, ...] = get_args(PoolingName)


def check_layer_numbers(
    model: TextModel, layer: int | Iterable[int] | Literal["last", "all"]
) -> tuple[int, ...]:
    """Numbers of layers of vectors, 0 (embedding output) … ``model.n_blocks``.

    Args:
        model: whose layers.
        layer: one or several; negative ones count from the end; ``last``, or ``all``.

    Raises:
        SettingsError: the model has no such layer, or none is given.
    """
    n_layers = model.n_blocks + 1
    if isinstance(layer, str):
        if layer not in ("last", "all"):
            raise SettingsError("The layer has to be a number, “last” or “all”.")
        return tuple(range(n_layers)) if layer == "all" else (n_layers - 1,)
    numbers = tuple(layer) if isinstance(layer, Iterable) else (layer,)
    if not numbers:
        raise SettingsError("Choose at least one layer.")
    for number in numbers:
        is_whole = isinstance(number, Integral) and not isinstance(number, bool)
        if not is_whole or not -n_layers <= number < n_layers:
            raise SettingsError(
                f"The model {model.id} has no layer {number}: its layers of vectors are 0, the "
                f"embedding output, to {n_layers - 1}, or -1 to -{n_layers} from the end."
            )
    return tuple(dict.fromkeys(int(number) % n_layers for number in numbers))


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
        raise SettingsError(f"The pooling has to be one of {', '.join(POOLINGS)}.")
    if (name == "cls" and not model.prefix_ids) or (name == "sep" and not model.suffix_ids):
        place = "before" if name == "cls" else "behind"
        raise SettingsError(
            f"The model {model.id} puts no special token {place} a text; use mean or last."
        )
    chosen = list(layers)

    def average(vectors: Tensor) -> Tensor:
        """[layer, row, …, d_model] to [row, …, d_model]."""
        return vectors[chosen].mean(dim=0) if len(chosen) > 1 else vectors[chosen[0]]

    def mean(states: LayerStates) -> tuple[Tensor, Tensor]:
        mask = states.attention if special_tokens else states.own
        return torch.einsum("rtd,rt->rd", average(states.vectors), mask.float()), mask.sum(dim=1)

    def one_token(states: LayerStates) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(states.lengths), device=states.lengths.device)
        behind = states.lengths - states.n_suffix
        at = {"cls": torch.zeros_like(behind), "sep": behind, "last": behind - 1}[name]
        counts = states.is_last if name == "last" else torch.ones_like(behind)
        return average(states.vectors[:, rows, at]) * counts[:, None], counts

    return mean if name == "mean" else one_token
