"""AdamW over many texts at once, a row a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.micro_tuning.settings import TuningSettings


class Step(NamedTuple):
    """AdamW's next step: the state after it, and the parts of the change.

    All are [text, dim]. The change of the weights is ``decay - scale * first``.
    """

    first: Tensor
    second: Tensor
    scale: Tensor
    decay: Tensor
    value: Tensor

    @property
    def is_finite(self) -> Tensor:
        """[text] bool, true where the step leads to numbers."""
        return self.value.isfinite().all(dim=1) & self.second.isfinite().all(dim=1)


@dataclass(eq=False)
class RowAdamW:
    """AdamW (Loshchilov & Hutter) on tuned weights, [text, dim], of one parameter or of several.

    The library's own does not tell what of a step came from which gradient, nor leaves a text out
    whose step leads to no numbers. It gives ``torch.optim.AdamW``'s numbers.
    """

    value: Tensor  # [text, dim] the tuned weights
    settings: TuningSettings
    text_of: Tensor  # [token] the text of each token whose part is followed; empty to follow none

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
        """[text, dim] tuned minus original weights."""
        return self.value - self.start

    def prepare(self, grad: Tensor) -> Step:
        """The step that the gradient [text, dim] asks for, not taken yet."""
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
        """Take a prepared step; texts that are left out once are left out for good.

        Args:
            step: from `prepare`.
            texts: [text] bool, true for those that take it.
            token_grad: [token, dim] the part of the gradient of each token that is followed.
        """
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
