"""Micro-tuning's loss over a few candidate words, with all other words as one frozen tail.

The first pass over the vocabulary is exact. It leaves, for each text, the words that matter most
(its labels, and those of the largest probability, summed over its positions) and, for each
position, what all others sum to. From then on an epoch costs as many words as there are candidates.

Let ``y0`` be a position's vector at the exact pass and ``y`` what it has become. The tail's part of
the softmax is continued to second order,

    log Σ exp(w·y + b) ≈ log Σ exp(w·y0 + b) + g·Δ + ½ Δᵀ H Δ,   Δ = y − y0,   sums over the tail,

with ``g`` the position's own mean tail word, which makes the first step exact. ``H``, the
covariance of the tail's words, is that of the whole vocabulary, scaled to the variance of the
text's own tail: one matrix serves all texts.

What is left out is of third order. How much it is can be told from the tail's probability and
``Δᵀ H Δ``. Before it would come to more than the tolerance over a text's run, the text gets another
exact pass, with the candidates of its own time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from neuralviz.micro_tuning.cross_entropy import CACHED_POSITIONS, rows_at_once
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.micro_tuning.output_layer import OutputLayer

CANDIDATES = 768 / 30_522  # share of the vocabulary, at the default tolerance
FEWEST_CANDIDATES = 16
COSINE_LOST = 0.004  # by a mean drift of 1: measured, and rounded up
_LEAST = 1e-30


def count_candidates(vocab: int, tolerance: float) -> int:
    """Words to follow, of ``vocab``, where the cosine to exact may be ``tolerance`` below 1."""
    share = CANDIDATES * (DEFAULT_TOLERANCE / tolerance) ** 0.75
    return min(vocab, max(FEWEST_CANDIDATES, math.ceil(vocab * min(1.0, share))))


class FrozenTail:
    """The loss of some texts at the same positions, epoch after epoch.

    Args:
        layer: the output layer.
        labels: [text, slot] the ids to predict.
        is_used: [text, slot] whether a slot holds a position; the first one of a text does.
        epochs: of the run.
        tolerance: how far a text's cosine to exact may fall below 1 over the run; an estimate.
    """

    def __init__(
        self,
        layer: OutputLayer,
        labels: Tensor,
        is_used: Tensor,
        *,
        epochs: int,
        tolerance: float = DEFAULT_TOLERANCE,
    ) -> None:
        self._layer = layer
        self._labels = torch.where(is_used, labels, labels[:, :1])
        self._share = is_used / is_used.sum(dim=1, keepdim=True)  # of a text's positions
        n_texts, n_slots = labels.shape
        # a position has one label, and a text as many of them as positions, if it has to
        n_words = count_candidates(len(layer.weight), tolerance)
        self._n_words = min(len(layer.weight), max(n_words, self._most_labels()))
        self._allowed = math.sqrt(tolerance / COSINE_LOST) * epochs  # sum of drifts
        self._epochs, self._epoch = epochs, 0
        width, make = layer.weight.shape[1], torch.empty
        like = {"device": layer.weight.device}
        self._start = make(n_texts, n_slots, width, **like)
        self._tail_word = make(n_texts, n_slots, width, **like)
        self._tail = make(n_texts, n_slots, **like)
        self._variance = make(n_texts, **like)
        self._words = make(n_texts, self._n_words, width, dtype=layer.weight.dtype, **like)
        self._bias = None if layer.bias is None else make(n_texts, 1, self._n_words, **like)
        self._label_word = layer.weight[self._labels].float()
        self._label_at = make(n_texts, n_slots, 1, dtype=torch.long, **like)
        self._drift = torch.zeros(n_texts, **like)
        self._slope = torch.zeros(n_texts, **like)  # sum over the epochs of squared mean gradients

    @staticmethod
    def size_in_bytes(layer: OutputLayer, n_texts: int, n_slots: int, tolerance: float) -> int:
        """About what one holds."""
        width = layer.weight.shape[1]
        n_words = count_candidates(len(layer.weight), tolerance)
        return 4 * n_texts * width * (n_words + 3 * n_slots)

    def _most_labels(self) -> int:
        ordered = self._labels.sort(dim=1).values
        return int((ordered.diff(dim=1) != 0).sum(dim=1).max()) + 1

    def loss(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Cross entropy of the next epoch and its gradient.

        Args:
            vectors: [text, slot, width] what goes into the output layer.

        Returns:
            [text, slot] in nats and [text, slot, width]; what is in slots not used means nothing.
        """
        self._epoch += 1
        if self._epoch == 1:
            loss, grad = torch.empty_like(self._tail), torch.empty_like(self._start)
            stale = torch.arange(len(vectors), device=vectors.device)
        else:
            loss, grad, drift = self._continued(vectors)
            n_left = self._epochs - self._epoch + 1
            within = self._drift + n_left * drift <= self._allowed
            stale = (~within).nonzero()[:, 0]
            self._drift += torch.where(within, drift, 0)
        if len(stale):
            self._freeze(vectors, stale, loss, grad)
        slope = torch.einsum("tp,tpd->td", self._share, grad)
        self._slope += slope.square().sum(dim=1)
        return loss, grad

    def _freeze(self, vectors: Tensor, at: Tensor, loss: Tensor, grad: Tensor) -> None:
        """Set the exact loss and gradient of the texts ``at``, and freeze their tails anew."""
        on_cpu = vectors.device.type == "cpu"
        rows = CACHED_POSITIONS if on_cpu else rows_at_once(len(self._layer.weight))
        tails = []
        for some in at.split(max(1, rows // vectors.shape[1])):
            loss[some], grad[some], tail = self._exactly(vectors[some], some)
            tails.append(tail)
        self._variance[at] = self._variance_of(torch.cat(tails))

    def _exactly(self, vectors: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and gradient of the texts ``at``, and [text, vocab] the mean of their tails."""
        weight, bias = self._layer.weight, self._layer.bias
        n_texts, n_slots, width = vectors.shape
        labels, share = self._labels[at], self._share[at].to(weight.dtype)
        given = vectors.reshape(-1, width).to(weight.dtype)
        logits = torch.mm(given, weight.T) if bias is None else torch.addmm(bias, given, weight.T)
        probability = logits.softmax(dim=1)
        by_text = torch.mm(torch.block_diag(*share.split(1)), probability)  # [text, vocab]
        wanted = by_text.nan_to_num(0).scatter_(1, labels, torch.inf)  # no number: diverged
        words = wanted.topk(self._n_words, dim=1, sorted=False).indices
        of_position = words[:, None].expand(-1, n_slots, -1)
        in_texts = probability.view(n_texts, n_slots, -1)
        of_words = in_texts.gather(2, of_position)
        likeliest, at_word = of_words.max(dim=2)
        its_logit = logits.gather(1, words.gather(1, at_word).view(-1, 1)).float()
        total = its_logit - likeliest.view(-1, 1).float().clamp_min_(_LEAST).log_()
        loss = total - logits.gather(1, labels.view(-1, 1)).float()
        del logits
        for text, its_words in zip(in_texts, words, strict=True):
            text.index_fill_(1, its_words, 0)  # from here on the tail's alone
        tail = probability.sum(dim=1).float()
        tail_word = torch.mm(probability, weight).float()
        own = weight[words]
        grad = torch.bmm(of_words, own).float() + tail_word.view(n_texts, n_slots, width)
        grad -= self._label_word[at]

        tail = tail.clamp_min_(_LEAST)[:, None]
        self._start[at] = vectors
        self._tail[at] = (total + tail.log()).view(n_texts, n_slots)
        self._tail_word[at] = (tail_word / tail).view(n_texts, n_slots, width)
        self._words[at] = own
        if self._bias is not None and bias is not None:
            self._bias[at] = bias[words][:, None].float()
        place = torch.empty_like(by_text, dtype=torch.long)
        place.scatter_(1, words, torch.arange(self._n_words, device=at.device).expand_as(words))
        self._label_at[at] = place.gather(1, labels)[..., None]
        return loss.view(n_texts, n_slots), grad, by_text.scatter_(1, words, 0)

    def _variance_of(self, tail: Tensor) -> Tensor:
        """[text] summed variance of the tail's words, from their probabilities [text, vocab]."""
        _, squares = self._layer.spread()
        mass = tail.float().sum(dim=1).clamp_min(_LEAST)
        mean = torch.mm(tail, self._layer.weight).float() / mass[:, None]
        return ((tail.float() @ squares) / mass - mean.square().sum(dim=1)).clamp_min(0)

    def _continued(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and gradient with the tails as they were frozen, and [text] the drift."""
        covariance, _ = self._layer.spread()
        given = vectors.to(self._words.dtype)
        logits = torch.bmm(given, self._words.transpose(1, 2)).float()
        if self._bias is not None:
            logits += self._bias
        moved = vectors - self._start
        bent = (moved @ covariance).mul_(self._variance[:, None, None])
        spread = torch.einsum("tpd,tpd->tp", moved, bent)
        tail = self._tail + torch.einsum("tpd,tpd->tp", moved, self._tail_word) + spread / 2
        total = torch.logaddexp(logits.logsumexp(dim=2), tail)
        loss = total - logits.gather(2, self._label_at)[..., 0]
        probability = logits.sub_(total[..., None]).exp_()
        of_tail = (tail - total).exp()
        grad = torch.bmm(probability.to(self._words.dtype), self._words).float()
        grad += bent.add_(self._tail_word).mul_(of_tail[..., None])
        grad -= self._label_word
        third = (self._share * of_tail * spread).sum(dim=1) * self._variance.sqrt()
        slope = (self._slope / (self._epoch - 1)).sqrt().clamp_min(_LEAST)
        return loss, grad, third / slope
