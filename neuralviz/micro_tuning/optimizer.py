"""AdamW over many texts at once, one row per text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.micro_tuning.settings import TuningSettings


class Step(NamedTuple):
    """A pending AdamW step, all [text, dim]; the weights change by ``decay - scale * first``."""

    first: Tensor  # moving average of the gradient after the step
    second: Tensor  # and of its square
    scale: Tensor
    decay: Tensor
    value: Tensor  # the new weights

    @property
    def is_finite(self) -> Tensor:
        """[text] true if the step leads to finite numbers."""
        return self.value.isfinite().all(dim=1) & self.second.isfinite().all(dim=1)


@dataclass(eq=False)
class RowAdamW:
    """``torch.optim.AdamW`` row by row; tracks each token's part, and rows can be left out."""

    value: Tensor  # [text, dim] tuned weights
    settings: TuningSettings
    text_of: Tensor  # [token] text of each followed token; empty to follow none

    def __post_init__(self) -> None:
        self.start = self.value.clone()
        self.first = torch.zeros_like(self.value)
        self.second = torch.zeros_like(self.value)
        # steps so far; float64, because 1 - 0.999 loses its last digits in float32
        self.n_taken = self.value.new_zeros((), dtype=torch.float64)
        n_tokens, dim = len(self.text_of), self.value.shape[1]
        self.token_first = self.value.new_zeros(n_tokens, dim)
        self.token_part = self.value.new_zeros(n_tokens, dim)
        self.decay_part = torch.zeros_like(self.value)

    @property
    def delta(self) -> Tensor:
        return self.value - self.start

    def prepare(self, grad: Tensor) -> Step:
        """The step for the [text, dim] gradient; weights stay unchanged until `take`."""
        s, (beta1, beta2) = self.settings, self.settings.betas
        n_steps = self.n_taken + 1
        first = beta1 * self.first + (1 - beta1) * grad
        second = beta2 * self.second + (1 - beta2) * grad.square()
        rate = (s.learning_rate / (1 - beta1**n_steps)).to(grad.dtype)
        spread = (1 - beta2**n_steps).sqrt().to(grad.dtype)
        scale = rate / (second.sqrt() / spread + s.eps)
        decay = -s.learning_rate * s.weight_decay * self.value
        value = self.value + decay - scale * first
        return Step(first, second, scale, decay, value)

    def take(self, step: Step, texts: Tensor, token_grad: Tensor | None = None) -> None:
        """Take the step for the texts marked in ``texts``; once left out, a text must stay out."""
        rows = texts[:, None]
        if token_grad is not None:
            beta1 = self.settings.betas[0]
            tokens = rows[self.text_of]
            token_first = beta1 * self.token_first + (1 - beta1) * token_grad
            self.token_first = torch.where(tokens, token_first, self.token_first)
            part = self.token_part - step.scale[self.text_of] * token_first
            self.token_part = torch.where(tokens, part, self.token_part)
            self.decay_part = torch.where(rows, self.decay_part + step.decay, self.decay_part)
        self.value = torch.where(rows, step.value, self.value)
        self.first = torch.where(rows, step.first, self.first)
        self.second = torch.where(rows, step.second, self.second)
        self.n_taken += 1
