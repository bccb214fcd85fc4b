"""Modules that replace a frozen network's own so that each text uses its tuned vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor
    from transformers.modeling_outputs import BaseModelOutput


@dataclass(eq=False)
class TunedRows:
    """The tuned vectors that the modules of one `PerTextNetwork` read during a pass."""

    # parameter name to [row, dim] or [row, position, dim]
    values: dict[str, Tensor] = field(default_factory=dict)
    # [row] text of each row; consecutive rows of a text share their vectors
    text_of: Tensor | None = None

    def spread(self, name: str, ndim: int) -> Tensor:
        """A tuned vector, shaped [row, …, dim] to broadcast over activations of ``ndim`` axes."""
        value = self.values[name]
        if value.ndim == ndim:
            return value
        return value.view(len(value), *[1] * (ndim - 2), value.shape[-1])


class PerTextLinear(nn.Module):
    """A linear layer with one bias per row."""

    def __init__(self, linear: nn.Linear, rows: TunedRows, bias: str) -> None:
        super().__init__()
        self.weight, self.rows, self.name = linear.weight, rows, bias
        self.is_multiplied = False  # whether its input is already multiplied by its weight

    def forward(self, x: Tensor) -> Tensor:
        product = x if self.is_multiplied else F.linear(x, self.weight)
        return product + self.rows.spread(self.name, x.ndim)


class PerTextLayerNorm(nn.Module):
    """A layer norm with weight, bias or both per row."""

    def __init__(self, norm: nn.LayerNorm, rows: TunedRows, names: dict[str, str]) -> None:
        super().__init__()
        self.norm, self.rows, self.names = norm, rows, names

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x, self.norm.normalized_shape, None, None, self.norm.eps)
        weight, bias = (
            self.rows.spread(self.names[part], x.ndim) if part in self.names else frozen
            for part, frozen in (("weight", self.norm.weight), ("bias", self.norm.bias))
        )
        if weight is not None:
            x = x * weight
        return x if bias is None else x + bias


class PerTextModule(nn.Module):
    """Any other module with tuned vectors, run once per distinct vector."""

    def __init__(self, module: nn.Module, rows: TunedRows, names: dict[str, str]) -> None:
        super().__init__()
        self.module, self.rows, self.names = module, rows, names

    def forward(self, x: Tensor) -> Tensor:
        values = {part: self.rows.values[name] for part, name in self.names.items()}
        if any(value.ndim == x.ndim for value in values.values()):  # one for each position
            flat = {part: value.flatten(0, -2) for part, value in values.items()}
            pieces = [
                torch.func.functional_call(
                    self.module, {p: v[i] for p, v in flat.items()}, (token,)
                )
                for i, token in enumerate(x.flatten(0, -2).split(1))
            ]
            return torch.cat(pieces).unflatten(0, x.shape[:-1])
        _, counts = torch.unique_consecutive(self.rows.text_of, return_counts=True)
        pieces, row = [], 0
        for piece in x.split(counts.tolist()):
            text_values = {part: value[row] for part, value in values.items()}
            pieces.append(torch.func.functional_call(self.module, text_values, (piece,)))
            row += len(piece)
        return torch.cat(pieces)


class PrecomputedOutput(nn.Module):
    """Stands in for modules whose output is already known."""

    def __init__(self, attention_type: str | None = None) -> None:
        super().__init__()
        self.output: Tensor | None = None
        self.block_input: Tensor | None = None  # last input of the module replaced
        # length, if the module returns a tuple that starts with the output
        self.tuple_size: int | None = None
        if attention_type is not None:
            self.attention_type = attention_type  # ModernBERT asks each block for it

    def forward(self, *_args: object, **_kwargs: object) -> object:
        if self.tuple_size is None:
            return self.output
        return (self.output, *[None] * (self.tuple_size - 1))


class PrecomputedEncoder(PrecomputedOutput):
    def forward(self, *_args: object, **_kwargs: object) -> BaseModelOutput:
        # imported when the model is there: no two threads import transformers at once
        from transformers.modeling_outputs import BaseModelOutput

        return BaseModelOutput(last_hidden_state=self.output)
