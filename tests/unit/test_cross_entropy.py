"""The output layer's loss and gradients against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from neuralviz.micro_tuning import cross_entropy as module
from neuralviz.micro_tuning.cross_entropy import cross_entropy

POSITIONS, WIDTH, VOCAB, TEXTS = 53, 8, 40, 3


@pytest.fixture(params=[16_000_000, 16 * VOCAB, 17 * VOCAB, 1], ids="one 16 17 least".split())
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All positions at once, or in blocks that 53 is no multiple of."""
    monkeypatch.setattr(module, "BLOCK_VALUES", request.param)


def draw(seed: int = 0) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    vectors = torch.randn(POSITIONS, WIDTH, generator=g)
    weight = torch.randn(VOCAB, WIDTH, generator=g)
    labels = torch.randint(VOCAB, (POSITIONS,), generator=g)
    return vectors, weight, labels


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("with_bias", [False, True])
def test_loss_and_gradient(with_bias: bool) -> None:
    vectors, weight, labels = draw()
    bias = torch.linspace(-2, 2, VOCAB) if with_bias else None
    ours = cross_entropy(vectors, weight, bias, labels)
    leaf = vectors.clone().requires_grad_()
    loss = F.cross_entropy(F.linear(leaf, weight, bias), labels, reduction="none")
    (grad,) = torch.autograd.grad(loss.sum(), leaf)
    torch.testing.assert_close(ours.loss, loss.detach())
    torch.testing.assert_close(ours.grad, grad)
    assert ours.grad_bias is None


@pytest.mark.usefixtures("_blocks")
def test_a_bias_of_its_own_for_each_text() -> None:
    vectors, weight, labels = draw()
    g = torch.Generator().manual_seed(1)
    bias = torch.randn(TEXTS, VOCAB, generator=g)
    text_of = torch.randint(TEXTS, (POSITIONS,), generator=g)
    position_weight = torch.rand(POSITIONS, generator=g)
    ours = cross_entropy(
        vectors, weight, bias, labels, text_of=text_of, position_weight=position_weight
    )
    leaf, bias_leaf = vectors.clone().requires_grad_(), bias.clone().requires_grad_()
    logits = leaf @ weight.T + bias_leaf[text_of]
    loss = F.cross_entropy(logits, labels, reduction="none")
    (grad,) = torch.autograd.grad(loss.sum(), leaf, retain_graph=True)
    (grad_bias,) = torch.autograd.grad((loss * position_weight).sum(), bias_leaf)
    torch.testing.assert_close(ours.loss, loss.detach())
    torch.testing.assert_close(ours.grad, grad)
    torch.testing.assert_close(ours.grad_bias, grad_bias)


def test_large_logits_stay_finite() -> None:
    """Logits of ±1000: the likeliest label costs nothing, another the distance between them."""
    weight = torch.tensor([[1000.0], [-1000.0]])
    ours = cross_entropy(torch.ones(2, 1), weight, None, torch.tensor([0, 1]))
    torch.testing.assert_close(ours.loss, torch.tensor([0.0, 2000.0]))
    torch.testing.assert_close(ours.grad, torch.tensor([[0.0], [2000.0]]))
