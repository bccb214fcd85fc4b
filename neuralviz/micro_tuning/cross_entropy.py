"""Cross entropy behind a frozen output layer, without ever holding all logits.

With a vocabulary of 30,522 words the logits are by far the largest tensor of micro-tuning, and the
two matrix products with the output layer nearly all of its work. Loss and gradient are made
together, for some positions and some words at a time: what a block makes is used up while it is
still in the processor's cache. The softmax over all words comes of running maxima and sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

BLOCK_VALUES = 16_000_000  # logits held at once: 64 MB in float32, some 500 positions of BERT's
CACHED_POSITIONS, CACHED_WORDS = 256, 2048  # of a block on a CPU: 2 MB


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
        weight: [vocab, width] the output layer, frozen. Matrix products are made in its type.
        bias: [vocab]; or [text, vocab] when each text has its own, and then ``text_of`` and
            ``position_weight`` are needed and the gradient by the bias is made too.
        labels: [position] the ids to predict.
        text_of: [position] row of ``bias`` that a position uses.
        position_weight: [position] weight of each position's loss in ``grad_bias``.
    """
    if bias is not None and bias.ndim == 2:
        assert text_of is not None and position_weight is not None
        return _with_own_bias(vectors, weight, bias, labels, text_of, position_weight)
    loss = vectors.new_empty(len(vectors))
    grad = torch.empty_like(vectors)
    on_cpu = vectors.device.type == "cpu"
    n_words = CACHED_WORDS if on_cpu else len(weight)
    n_positions = CACHED_POSITIONS if on_cpu else rows_at_once(len(weight))
    blocks = [
        (start, weight[start : start + n_words], None if bias is None else bias[start:][:n_words])
        for start in range(0, len(weight), n_words)
    ]
    for start in range(0, len(vectors), n_positions):
        some = slice(start, start + n_positions)
        loss[some], grad[some] = _of_positions(vectors[some], blocks, labels[some])
    return CrossEntropy(loss, grad.sub_(weight[labels]), None)


def rows_at_once(vocab: int) -> int:
    """Positions whose logits may be held at once."""
    return max(16, BLOCK_VALUES // vocab)


def _of_positions(
    vectors: Tensor, blocks: list[tuple[int, Tensor, Tensor | None]], labels: Tensor
) -> tuple[Tensor, Tensor]:
    """[position] loss, and [position, width] mean row of the output layer by probability."""
    given = vectors.to(blocks[0][1].dtype)
    peak = given.new_full((len(given), 1), -torch.inf)
    chosen = vectors.new_empty((len(given), 1))
    total = torch.zeros_like(chosen)
    weighted = torch.zeros_like(vectors)
    for first, weight, bias in blocks:
        logits = torch.mm(given, weight.T) if bias is None else torch.addmm(bias, given, weight.T)
        at = (labels - first)[:, None]
        is_here = (at >= 0) & (at < len(weight))
        own = logits.gather(1, at.clamp(0, len(weight) - 1))
        chosen = torch.where(is_here, own.to(chosen.dtype), chosen)
        before, peak = peak, torch.maximum(peak, logits.amax(dim=1, keepdim=True))
        scaled = logits.sub_(peak).exp_()  # probabilities, but for the factor 1 / total
        if first:
            fading = before.sub_(peak).to(total.dtype).exp_()
            total.mul_(fading)
            weighted.mul_(fading)
        total += scaled.sum(dim=1, keepdim=True)
        if scaled.dtype == weighted.dtype:
            weighted.addmm_(scaled, weight)
        else:
            weighted += torch.mm(scaled, weight)
    return (total.log() + peak - chosen).squeeze(1), weighted.div_(total)


def _with_own_bias(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    text_of: Tensor,
    position_weight: Tensor,
) -> CrossEntropy:
    """Each text's own bias: its gradient takes the probabilities of all words at once."""
    loss = vectors.new_empty(len(vectors))
    grad = torch.empty_like(vectors)
    grad_bias = torch.zeros_like(bias)
    rows = rows_at_once(len(weight))
    for start in range(0, len(vectors), rows):
        some = slice(start, start + rows)
        given, target = vectors[some].to(weight.dtype), labels[some, None]
        logits = torch.mm(given, weight.T).to(bias.dtype).add_(bias[text_of[some]])
        chosen = logits.gather(1, target)
        peak = logits.amax(dim=1, keepdim=True)
        scaled = logits.sub_(peak).exp_()
        total = scaled.sum(dim=1, keepdim=True)
        loss[some] = (total.log() + peak - chosen).squeeze(1)
        probabilities = scaled.div_(total)
        mean = torch.mm(probabilities.to(weight.dtype), weight).to(grad.dtype)
        grad[some] = mean.sub_(weight[labels[some]])
        probabilities.scatter_add_(1, target, -torch.ones_like(chosen))
        grad_bias.index_add_(0, text_of[some], probabilities * position_weight[some, None])
    return CrossEntropy(loss, grad, grad_bias)
