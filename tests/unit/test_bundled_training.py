"""The optimiser that trains the bundled model where there is no bfloat16."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from bundled_model.muon import Muon, nearest_orthogonal

COEFFICIENTS = (3.4445, -4.775, 2.0315)


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (24, 8)])
def test_singular_values_come_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape) * torch.tensor([1e-3, 1.0, 1e3])[:, None, None]
    turned = nearest_orthogonal(matrices, COEFFICIENTS, steps=5, eps=1e-7)
    values = torch.linalg.svdvals(turned)
    assert turned.dtype == torch.float32
    assert values.max() < 1.3
    assert values[:, : min(shape) - 2].min() > 0.5
    torch.testing.assert_close(
        turned[0], nearest_orthogonal(matrices[:1], COEFFICIENTS, 5, 1e-7)[0]
    )


def test_it_steps_as_pytorchs_own_does() -> None:
    torch.manual_seed(0)
    starts = [torch.randn(s) for s in ((8, 8), (8, 24), (24, 8), (8, 8))]
    ours = [torch.nn.Parameter(s.clone()) for s in starts]
    theirs = [torch.nn.Parameter(s.clone()) for s in starts]
    given = {"lr": 0.01, "weight_decay": 0.01, "adjust_lr_fn": "match_rms_adamw"}
    optimizers = Muon(ours, **given), torch.optim.Muon(theirs, **given)
    for _ in range(3):
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            other.grad = mine.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for start, mine, other in zip(starts, ours, theirs, strict=True):
        moved, as_far = mine - start, other - start
        assert (moved - as_far).norm() < 0.03 * as_far.norm()  # theirs is rounded to bfloat16


def test_it_takes_no_closure() -> None:
    with pytest.raises(ValueError, match="closure"):
        Muon([torch.nn.Parameter(torch.eye(2))]).step(lambda: 0.0)
