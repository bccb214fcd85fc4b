"""Muon in the gradients' own precision: for processors without bfloat16, and for GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import torch


def nearest_orthogonal(
    matrices: torch.Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> torch.Tensor:
    """Matrices [matrix, row, column] with all singular values brought near 1, in their own dtype.

    The quintic Newton-Schulz iteration of Jordan et al. 2024 (Muon), as torch.optim.Muon runs it
    in bfloat16. Singular values end between about 0.7 and 1.2.
    """
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Muon):
    """torch.optim.Muon in the gradients' dtype, with Nesterov's momentum and AdamW's RMS.

    PyTorch's own always works in bfloat16, which is many times slower than float32 on a processor
    that has no instructions for it. Matrices of one shape are worked on together.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        """Take one step from the gradients; a closure is not supported."""
        if closure is not None:
            raise ValueError("This optimiser takes no closure.")
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = torch.stack([self._with_momentum(p, group) for p in parameters])
                directions = nearest_orthogonal(
                    updates, group["ns_coefficients"], group["ns_steps"], group["eps"]
                )
                rate = 0.2 * group["lr"] * max(shape) ** 0.5
                for parameter, direction in zip(parameters, directions, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(direction, alpha=-rate)

    def _with_momentum(self, parameter: torch.Tensor, group: dict) -> torch.Tensor:
        """The gradient with Nesterov's momentum, [row, column]; the buffer is updated."""
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter.grad)
        buffer = state["momentum_buffer"].lerp_(parameter.grad, 1 - group["momentum"])
        return parameter.grad.lerp(buffer, group["momentum"])
