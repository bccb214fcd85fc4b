"""Cross entropy behind a frozen output layer, without ever holding all logits.

With a vocabulary of 30,522 words the logits are by far the largest tensor of micro-tuning. Loss and
gradient are made together, a block of positions at a time: large enough for the matrix products to
run at full speed, small enough to bound the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

BLOCK_VALUES = 16_000_000  # logits held at once: 64 MB in float32, some 500 positions of BERT's


class CrossEntropy(NamedTuple):
    """Loss and gradients of a batch of masked positions.

    Attributes:
        loss: [position] cross entropy in nats.
        grad: [position, width] of each position's loss by its own vector.
        grad_bias: [text, vocab] of the weighted losses by the output bias, when asked for.
    """

    loss: Tensor
    grad: Tensor
    grad_bias: Tensor | None


def cross_entropy(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    text_of: Tensor | None = None,
    position_weight: Tensor | None = None,
) -> CrossEntropy:
    """Softmax cross entropy of ``vectors @ weight.T + bias`` against ``labels``, with gradients.

    Args:
        vectors: [position, width] what goes into the output layer.
        weight: [vocab, width] the output layer, frozen.
        bias: [vocab]; or [text, vocab] when each text has its own, and then ``text_of`` and
            ``position_weight`` are needed and the gradient by the bias is made too.
        labels: [position] the ids to predict.
        text_of: [position] row of ``bias`` that a position uses.
        position_weight: [position] weight of each position's loss in ``grad_bias``.
    """
    n_positions, vocab = vectors.shape[0], weight.shape[0]
    loss = vectors.new_empty(n_positions)
    grad = torch.empty_like(vectors)
    own_bias = bias if bias is not None and bias.ndim == 2 else None
    grad_bias = None if own_bias is None else torch.zeros_like(own_bias)
    rows = max(16, BLOCK_VALUES // vocab)
    for start in range(0, n_positions, rows):
        block = slice(start, start + rows)
        target = labels[block, None]
        if own_bias is not None:
            assert text_of is not None
            logits = torch.mm(vectors[block], weight.T).add_(own_bias[text_of[block]])
        elif bias is not None:
            logits = torch.addmm(bias, vectors[block], weight.T)
        else:
            logits = torch.mm(vectors[block], weight.T)
        chosen = logits.gather(1, target)
        peak = logits.amax(dim=1, keepdim=True)
        scaled = logits.sub_(peak).exp_()  # probabilities, but for the factor 1 / total
        total = scaled.sum(dim=1, keepdim=True)
        loss[block] = (total.log() + peak - chosen).squeeze(1)
        grad[block] = torch.mm(scaled, weight).div_(total).sub_(weight[labels[block]])
        if grad_bias is not None:
            assert text_of is not None and position_weight is not None
            probabilities = scaled.div_(total).scatter_add_(1, target, -torch.ones_like(chosen))
            grad_bias.index_add_(0, text_of[block], probabilities * position_weight[block, None])
    return CrossEntropy(loss, grad, grad_bias)
