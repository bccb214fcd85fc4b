"""AdamW over many texts at once, a row a text, each with a step count of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.micro_tuning.settings import TuningSettings


@dataclass(eq=False)
class RowAdamW:
    """AdamW (Loshchilov & Hutter) on one tuned parameter, [text, dim].

    The library's own keeps one step count for a whole tensor, and does not tell what of a step came
    from which gradient; both are needed here. On one text it gives ``torch.optim.AdamW``'s numbers.

    Attributes:
        value: [text, dim] the tuned weights.
        text_of: [token] the text of each token whose part is followed; empty to follow none.
    """

    value: Tensor
    settings: TuningSettings
    text_of: Tensor

    def __post_init__(self) -> None:
        self.start = self.value.clone()
        self.first = torch.zeros_like(self.value)
        self.second = torch.zeros_like(self.value)
        # [text, 1] steps so far; float64, because 1 - 0.999 loses its last digits in float32
        self.taken = self.value.new_zeros(len(self.value), 1, dtype=torch.float64)
        n_tokens, dim = len(self.text_of), self.value.shape[1]
        self.token_first = self.value.new_zeros(n_tokens, dim)
        self.token_part = self.value.new_zeros(n_tokens, dim)
        self.decay_part = torch.zeros_like(self.value)

    @property
    def delta(self) -> Tensor:
        """[text, dim] tuned minus original weights."""
        return self.value - self.start

    def step(self, grad: Tensor, active: Tensor, token_grad: Tensor | None = None) -> Tensor:
        """Take a step on the ``active`` [text] rows whose result is finite.

        Args:
            grad: [text, dim].
            active: [text] bool, the texts that take part in the step.
            token_grad: [token, dim] the part of ``grad`` of each token that is followed.

        Returns:
            [text] bool, the rows that were stepped.
        """
        s, (beta1, beta2) = self.settings, self.settings.betas
        taken = self.taken + 1
        first = beta1 * self.first + (1 - beta1) * grad
        second = beta2 * self.second + (1 - beta2) * grad.square()
        rate = (s.learning_rate / (1 - beta1**taken)).to(grad.dtype)  # [text, 1]
        spread = (1 - beta2**taken).sqrt().to(grad.dtype)  # [text, 1]
        scale = rate / (second.sqrt() / spread + s.eps)  # [text, dim]
        decay = -s.learning_rate * s.weight_decay * self.value
        value = self.value + decay - scale * first
        moved = active & value.isfinite().all(dim=1) & second.isfinite().all(dim=1)
        rows = moved[:, None]
        if token_grad is not None:
            tokens = rows[self.text_of]
            token_first = beta1 * self.token_first + (1 - beta1) * token_grad
            self.token_first = torch.where(tokens, token_first, self.token_first)
            part = self.token_part - scale[self.text_of] * token_first
            self.token_part = torch.where(tokens, part, self.token_part)
            self.decay_part = torch.where(rows, self.decay_part + decay, self.decay_part)
        self.value = torch.where(rows, value, self.value)
        self.first = torch.where(rows, first, self.first)
        self.second = torch.where(rows, second, self.second)
        self.taken = torch.where(rows, taken, self.taken)
        return moved
