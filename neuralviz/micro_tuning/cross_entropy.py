"""Cross entropy of a frozen output layer, blockwise, so that all logits never exist at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from neuralviz.models import LanguageModel

BLOCK_VALUES = 16_000_000  # logits held at once: 64 MB in float32, some 500 positions of BERT's
CACHED_POSITIONS, CACHED_BYTES = 512, 4 << 20  # of a block of logits on a CPU
_LEAST = 1e-30
_layers: WeakKeyDictionary[LanguageModel, dict[torch.dtype, OutputLayer]] = WeakKeyDictionary()


class CrossEntropy(NamedTuple):
    loss: Tensor  # [position] cross entropy in nats
    grad: Tensor  # [position, width] with respect to each position's vector
    grad_bias: Tensor | None  # [text, vocab], only for per-text biases


def cross_entropy(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    text_of: Tensor | None = None,
    position_weight: Tensor | None = None,
) -> CrossEntropy:
    """Softmax cross entropy of [position, width] ``vectors`` with gradients.

    ``bias`` is [vocab], or [text, vocab] with [position] ``text_of``, its row, and
    ``position_weight``, the loss's weight in ``grad_bias``.
    """
    if bias is not None and bias.ndim == 2:
        assert text_of is not None and position_weight is not None
        return _with_own_bias(vectors, weight, bias, labels, text_of, position_weight)
    loss = vectors.new_empty(len(vectors))
    grad = torch.empty_like(vectors)
    size = positions_at_once(weight)
    for rows in (slice(start, start + size) for start in range(0, len(vectors), size)):
        total, grad[rows] = softmax_mean(vectors[rows], weight, bias)
        label_word = weight[labels[rows]].to(grad.dtype)
        chosen = torch.einsum("pd,pd->p", vectors[rows].to(weight.dtype).float(), label_word)
        if bias is not None:
            chosen += bias[labels[rows]]
        loss[rows] = (total - chosen).clamp_min_(0)  # below it by rounding alone
        grad[rows] -= label_word
    return CrossEntropy(loss, grad, None)


def positions_at_once(weight: Tensor) -> int:
    return CACHED_POSITIONS if weight.device.type == "cpu" else rows_at_once(len(weight))


def rows_at_once(vocab: int) -> int:
    """Positions whose logits may be held in memory at once."""
    return max(16, BLOCK_VALUES // vocab)


def softmax_mean(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    look: Callable[[slice, Tensor, Tensor], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """[position] log-sum-exp, and [position, width] mean row of ``weight`` by probability."""
    # ``look`` gets each block's words, ``exp(logits - peak)`` and ``peak``, and must not keep them
    inputs = vectors.to(weight.dtype)
    peak = inputs.new_full((len(inputs), 1), -torch.inf)
    total = vectors.new_zeros((len(inputs), 1))
    weighted = torch.zeros_like(vectors)
    on_cpu = weight.device.type == "cpu"
    size = CACHED_BYTES // (CACHED_POSITIONS * weight.itemsize) if on_cpu else len(weight)
    for first in range(0, len(weight), size):
        words = slice(first, first + size)
        block, transposed = weight[words], weight[words].T
        if bias is None:
            logits = torch.mm(inputs, transposed)
        else:
            logits = torch.addmm(bias[words], inputs, transposed)
        before, peak = peak, torch.maximum(peak, logits.amax(dim=1, keepdim=True))
        scaled = logits.sub_(peak).exp_()  # probabilities, but for the factor 1 / total
        if look is not None:
            look(words, scaled, peak)
        if first:
            fading = before.sub_(peak).to(total.dtype).exp_()
            total.mul_(fading)
            weighted.mul_(fading)
        total += scaled.sum(dim=1, keepdim=True)
        if scaled.dtype == weighted.dtype:
            weighted.addmm_(scaled, block)
        else:
            weighted += torch.mm(scaled, block)
    return (total.log() + peak).squeeze(1), weighted.div_(total)


def _with_own_bias(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    text_of: Tensor,
    position_weight: Tensor,
) -> CrossEntropy:
    """`cross_entropy` for per-text biases, whose gradient needs all probabilities at once."""
    loss = vectors.new_empty(len(vectors))
    grad = torch.empty_like(vectors)
    grad_bias = torch.zeros_like(bias)
    rows = rows_at_once(len(weight))
    for start in range(0, len(vectors), rows):
        block = slice(start, start + rows)
        inputs, target = vectors[block].to(weight.dtype), labels[block, None]
        logits = torch.mm(inputs, weight.T).to(bias.dtype).add_(bias[text_of[block]])
        chosen = logits.gather(1, target)
        peak = logits.amax(dim=1, keepdim=True)
        scaled = logits.sub_(peak).exp_()
        total = scaled.sum(dim=1, keepdim=True)
        loss[block] = (total.log() + peak - chosen).squeeze(1)
        probabilities = scaled.div_(total)
        mean = torch.mm(probabilities.to(weight.dtype), weight).to(grad.dtype)
        grad[block] = mean.sub_(weight[labels[block]])
        probabilities.scatter_add_(1, target, -torch.ones_like(chosen))
        grad_bias.index_add_(0, text_of[block], probabilities * position_weight[block, None])
    return CrossEntropy(loss, grad, grad_bias)


class OutputLayer:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias  # [vocab, width] and [vocab] or None, of one dtype
        self._spread: tuple[Tensor, Tensor] | None = None

    def spread(self) -> tuple[Tensor, Tensor]:
        """[width, width] covariance of the words, scaled to trace 1; [vocab] squared lengths."""
        if self._spread is None:
            words = self.weight.float()
            centred = words - words.mean(dim=0)
            covariance = centred.T @ centred
            covariance /= covariance.trace().clamp_min(_LEAST)
            self._spread = covariance.to(self.weight.dtype), words.square().sum(dim=1)
        return self._spread


def output_layer(model: LanguageModel, dtype: torch.dtype = torch.float32) -> OutputLayer:
    by_dtype = _layers.setdefault(model, {})
    if dtype not in by_dtype:
        layer = model.network.get_output_embeddings()
        bias = None if layer.bias is None else layer.bias.detach().to(dtype)
        by_dtype[dtype] = OutputLayer(layer.weight.detach().to(dtype), bias)
    return by_dtype[dtype]
