"""Fast micro-tuning loss: exact over candidate words, extrapolated for the rest (docs/speed.md)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neuralviz.micro_tuning.cross_entropy import OutputLayer, positions_at_once, softmax_mean
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE

CANDIDATES = 384  # minimum, at the default tolerance
CANDIDATES_OF = 40  # one word in this many of the vocabulary is a candidate
ROUNDED_CANDIDATES = 2  # factor on the candidates for bfloat16, whose rounding uses tolerance
# Cosine lost per mean drift of 1. Calibrated on 1,800 texts and models of random weights, drawn as
# in tests/unit/test_precision.py, of which one exceeded the tolerance.
COSINE_LOST = 0.006
MOST_ABOVE = 10  # cap on the loss above log(vocab), in nats
TOO_LARGE = 1e18  # vector value beyond which logits may overflow: the text has diverged
_LEAST = 1e-30
# error of a mean word; a less probable tail is mere rounding, so its direction is taken as 0
_ROUNDING = {torch.float32: 4e-6, torch.bfloat16: 4e-3}
_SAMPLED = 16  # one word in this many estimates the total


def count_candidates(vocab: int, tolerance: float, dtype: torch.dtype = torch.float32) -> int:
    """Number of candidate words for a tolerance: all if more than half would be needed."""
    base = max(CANDIDATES, vocab / CANDIDATES_OF)
    if dtype == torch.bfloat16:
        base *= ROUNDED_CANDIDATES
    n_words = math.ceil(min(vocab, base * (DEFAULT_TOLERANCE / tolerance) ** 0.75))
    return n_words if n_words <= vocab / 2 else vocab


class FrozenTail:
    """The loss of texts at fixed positions over all epochs, within ``tolerance`` of the exact one.

    After an exact pass, each text follows only candidate words: its labels and the likeliest, now
    or at the end of the run if all steps are like the first. With ``Δ = y − y0`` since that pass,
    the sum over the other words (the tail) is

        log Σ exp(w·y + b) ≈ log Σ exp(w·y0 + b) + g·Δ + ½ Δᵀ H Δ

    where ``g`` is the mean tail word, and ``H`` the vocabulary's covariance, scaled to the tail's
    variance and corrected along the step. If the drift, estimated from the tail's probability and
    ``Δᵀ H Δ``, would exceed the tolerance, the text gets another exact pass and new candidates.

    ``labels`` and ``is_used`` are [text, slot], each text's first slot used. ``tolerance`` is an
    estimate of how far the cosine to the exact embedding may fall below 1. ``caution``, a factor
    on the drift, is 1 if the tuned layers lie just below the output layer.
    """

    def __init__(
        self,
        layer: OutputLayer,
        labels: Tensor,
        is_used: Tensor,
        *,
        epochs: int,
        tolerance: float = DEFAULT_TOLERANCE,
        caution: float = 1.0,
    ) -> None:
        self._layer, self._caution = layer, caution
        self._labels = torch.where(is_used, labels, labels[:, :1])
        self._is_used, self._is_unused = is_used, ~is_used[..., None]
        self._share = is_used / is_used.sum(dim=1, keepdim=True)  # of a text's positions
        n_texts, n_slots = labels.shape
        n_words = count_candidates(len(layer.weight), tolerance, layer.weight.dtype)
        n_labels = self._count_labels()
        self._n_words = max(n_words, int(n_labels.max()))
        self._is_spare: Tensor | None = None  # [text, 1, word] beside a text of more labels
        if self._n_words > n_words:
            place = torch.arange(self._n_words, device=labels.device)
            self._is_spare = place >= n_labels.clamp_min(n_words)[:, None, None]
        self._allowed = math.sqrt(tolerance / COSINE_LOST) * epochs  # summed over the epochs
        self._epochs, self._epoch = epochs, 0
        self._passes: list[tuple[Tensor, Tensor]] = []  # of the last epoch: as `_freeze` takes them
        width, make = layer.weight.shape[1], torch.empty
        like = {"device": layer.weight.device}
        self._start = make(n_texts, n_slots, width, **like)
        self._tail_word = make(n_texts, n_slots, width, **like)
        self._tail = make(n_texts, n_slots, **like)
        self._variance = make(n_texts, **like)
        self._along = make(n_texts, width, **like)
        self._excess = make(n_texts, **like)
        self._distrust = make(n_texts, **like)  # factor of the drift, at least 1
        self._words = make(n_texts, self._n_words, width, dtype=layer.weight.dtype, **like)
        self._bias = None if layer.bias is None else make(n_texts, 1, self._n_words, **like)
        self._label_word = layer.weight[self._labels].float()
        self._label_at = make(n_texts, n_slots, 1, dtype=torch.long, **like)
        self._drift = torch.zeros(n_texts, **like)
        self._slope = torch.zeros(n_texts, **like)  # sum over the epochs of squared mean gradients

    @staticmethod
    def size_in_bytes(layer: OutputLayer, n_texts: int, n_slots: int, tolerance: float) -> int:
        vocab, width = layer.weight.shape
        n_words = count_candidates(vocab, tolerance, layer.weight.dtype)
        return n_texts * (width * (layer.weight.itemsize * n_words + 4 * 3 * n_slots) + 4 * vocab)

    def _count_labels(self) -> Tensor:
        ordered = self._labels.sort(dim=1).values
        return (ordered.diff(dim=1) != 0).sum(dim=1) + 1

    def loss(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """The next epoch's [text, slot] loss in nats and its gradient; ignore unused slots."""
        self._epoch += 1
        vectors = vectors.masked_fill(self._is_unused, 0)
        if self._epoch == 1:
            loss, grad = torch.empty_like(self._tail), torch.empty_like(self._start)
            stale = torch.arange(len(vectors), device=vectors.device)
        else:
            while self._passes:
                self._freeze(vectors, *self._passes.pop())
            loss, grad, drift = self._continue_tails(vectors)
            n_left = self._epochs - self._epoch + 1
            is_stale = self._drift + n_left * drift > self._allowed
            stale = is_stale.nonzero()[:, 0]
            self._drift += torch.where(is_stale, 0, drift)
        for texts in stale.split(max(1, positions_at_once(self._layer.weight) // vectors.shape[1])):
            if len(texts):
                loss[texts], grad[texts] = self._compute_exactly(vectors[texts], texts)
        slope = torch.einsum("tp,tpd->td", self._share, grad)
        self._slope += slope.square().sum(dim=1)
        return loss, grad

    def _compute_exactly(self, vectors: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = self._layer.weight, self._layer.bias
        n_texts, n_slots, _ = vectors.shape
        labels, label_word = self._labels[rows], self._label_word[rows]
        has_diverged = ~(vectors.abs().amax(dim=(1, 2)) < TOO_LARGE)
        vectors = vectors.masked_fill(has_diverged[:, None, None], 0)  # of no harm to the others
        inputs = vectors.to(weight.dtype)
        label_logit = torch.einsum("tpd,tpd->tp", inputs.float(), label_word)
        if bias is not None:
            label_logit += bias[labels]
        is_last = self._epoch == self._epochs  # no later epoch needs candidates
        mass = vectors.new_zeros(n_texts, 0 if is_last else len(weight))
        total = vectors.new_full((n_texts, n_slots), math.log(len(weight)))
        mean_word = torch.zeros_like(vectors)
        text, slot = self._is_used[rows].nonzero(as_tuple=True)
        size = positions_at_once(weight)
        for part in zip(text.split(size), slot.split(size), strict=True):
            add = None
            if not is_last:
                share = self._share.new_zeros(n_texts, len(part[0]))
                columns = torch.arange(len(part[0]), device=rows.device)
                share[part[0], columns] = self._share[rows][part]
                add = _SummedProbability(
                    self._layer, inputs[part], label_logit[part], share, mass
                ).add
            total[part], mean_word[part] = softmax_mean(vectors[part], weight, bias, add)

        if not is_last:
            self._start[rows], self._tail[rows], self._tail_word[rows] = vectors, total, mean_word
            self._passes.append((rows, mass))
        loss = (total - label_logit).clamp_min_(0).masked_fill_(has_diverged[:, None], torch.nan)
        excess = (self._share[rows] * loss).sum(dim=1) - math.log(len(weight))
        self._distrust[rows] = self._caution * (self._caution * excess.clamp_(0, MOST_ABOVE)).exp_()
        return loss, mean_word - label_word

    def _freeze(self, vectors: Tensor, rows: Tensor, mass: Tensor) -> None:
        """Choose candidates for the texts ``rows`` by ``mass``, [text, vocab] probabilities."""
        weight, bias = self._layer.weight, self._layer.bias
        total, mean_word = self._tail[rows], self._tail_word[rows]
        labels, inputs = self._labels[rows], self._start[rows].to(weight.dtype)
        step = torch.einsum("tp,tpd->td", self._share[rows], vectors[rows] - self._start[rows])
        step *= self._epochs - self._epoch + 1  # assumes that all remaining steps are alike
        rise = (step.to(weight.dtype) @ weight.T).float()
        score = _weigh_words(mass, rise).scatter_(1, labels, torch.inf)
        words = score.topk(self._n_words, dim=1).indices
        if self._is_spare is not None:  # filled with a label, which is masked below
            words = torch.where(self._is_spare[rows][:, 0], words[:, :1], words)
        candidates = weight[words]  # [text, word, width]
        transposed = candidates.transpose(1, 2)
        if bias is None:
            logits = torch.bmm(inputs, transposed).float()
        elif weight.dtype == torch.bfloat16:
            # The bias is added before the logits are rounded, as in the pass over all words: the
            # tail is what the candidates leave of that, and would hold all that differs.
            logits = torch.baddbmm(bias[words][:, None], inputs, transposed).float()
        else:
            logits = torch.bmm(inputs, transposed) + bias[words][:, None]
        if self._is_spare is not None:
            logits.masked_fill_(self._is_spare[rows], -torch.inf)
        probability = logits.sub_(total[..., None]).exp_()
        tail = (1 - probability.sum(dim=2)).clamp_min_(_LEAST)
        tail_word = mean_word - torch.bmm(probability.to(candidates.dtype), candidates)
        tail_word /= (tail + _ROUNDING[weight.dtype])[..., None]

        self._tail[rows] = total + tail.log()
        self._tail_word[rows] = tail_word
        tail_mass = mass.scatter_(1, words, 0)
        variance = self._variance_of(tail_mass, tail, tail_word, rows)
        self._along[rows], self._excess[rows] = self._along_step(tail_mass, rise, step, variance)
        self._variance[rows] = variance
        self._words[rows] = candidates
        if self._bias is not None and bias is not None:
            self._bias[rows] = bias[words][:, None].float()
        place = torch.empty_like(mass, dtype=torch.long)
        order = torch.arange(self._n_words, device=rows.device).expand_as(words)
        place.scatter_reduce_(1, words, order, "amin", include_self=False)  # not a spare one
        self._label_at[rows] = place.gather(1, labels)[..., None]

    def _variance_of(self, mass: Tensor, tail: Tensor, tail_word: Tensor, rows: Tensor) -> Tensor:
        """[text] total variance of the tail's words, weighted by ``mass``."""
        _, squares = self._layer.spread()
        mean_square = (mass @ squares) / mass.sum(dim=1).clamp_min(_LEAST)
        share = self._share[rows] * tail
        mean = torch.einsum("tp,tpd->td", share, tail_word) / share.sum(dim=1, keepdim=True)
        return (mean_square - mean.square().sum(dim=1)).clamp_min_(0)

    def _along_step(
        self, mass: Tensor, rise: Tensor, step: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        """[text, width] vectors v and [text] factors f: f v vᵀ corrects the covariance."""
        covariance, _ = self._layer.spread()
        along = (step.to(covariance.dtype) @ covariance).float()
        whole = torch.einsum("td,td->t", along, step)
        chance = mass / mass.sum(dim=1, keepdim=True).clamp_min(_LEAST)
        mean = (chance * rise).sum(dim=1, keepdim=True)
        part = (chance * (rise - mean).square()).sum(dim=1)
        along /= whole.sqrt()[:, None]
        excess = part / whole - variance
        is_unknown = ~((whole > _LEAST) & whole.isfinite() & excess.isfinite())
        return along.masked_fill(is_unknown[:, None], 0), excess.masked_fill(is_unknown, 0)

    def _continue_tails(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and gradient with the frozen tails, and the [text] drift."""
        covariance, _ = self._layer.spread()
        inputs = vectors.to(self._words.dtype)
        logits = torch.bmm(inputs, self._words.transpose(1, 2)).float()
        if self._bias is not None:
            logits += self._bias
        if self._is_spare is not None:
            logits.masked_fill_(self._is_spare, -torch.inf)
        moved = vectors - self._start
        bent = (moved.to(covariance.dtype) @ covariance).float().mul_(self._variance[:, None, None])
        aside = torch.einsum("tpd,td->tp", moved, self._along) * self._excess[:, None]
        bent += aside[..., None] * self._along[:, None]
        spread = torch.einsum("tpd,tpd->tp", moved, bent).clamp_min_(0)
        tail = self._tail + torch.einsum("tpd,tpd->tp", moved, self._tail_word) + spread / 2
        total = torch.logaddexp(logits.logsumexp(dim=2), tail)
        loss = total - logits.gather(2, self._label_at)[..., 0]
        probability = logits.sub_(total[..., None]).exp_()
        tail_share = (tail - total).exp()
        grad = torch.bmm(probability.to(self._words.dtype), self._words).float()
        grad += bent.add_(self._tail_word).mul_(tail_share[..., None])
        grad -= self._label_word
        third = (self._share * tail_share * spread).sum(dim=1) * self._variance.sqrt()
        slope = (self._slope / (self._epoch - 1)).sqrt().clamp_min(_LEAST)
        return loss, grad, third / slope * self._distrust


def _weigh_words(mass: Tensor, rise: Tensor) -> Tensor:
    """[text, vocab] log weight of each word, now or after its logit has risen by ``rise``."""
    current = mass.clamp_min(_LEAST).log_()
    later = (current + rise).log_softmax(dim=1).nan_to_num_(-torch.inf)  # texts that diverged
    return current.log_softmax(dim=1).logaddexp(later)


class _SummedProbability:
    """Sums each word's probability over a text's positions, approximately, block by block."""

    def __init__(
        self, layer: OutputLayer, vectors: Tensor, label_logit: Tensor, share: Tensor, mass: Tensor
    ) -> None:
        sampled = vectors @ layer.weight[::_SAMPLED].T
        if layer.bias is not None:
            sampled += layer.bias[::_SAMPLED]
        total = sampled.float().logsumexp(dim=1) + math.log(_SAMPLED)
        self._total = total.logaddexp(label_logit)[:, None]
        self._share, self._mass = share, mass

    def add(self, words: slice, scaled: Tensor, peak: Tensor) -> None:
        """The ``look`` callback of `softmax_mean`."""
        factor = (peak - self._total).exp_().clamp_max_(1)  # probabilities are at most 1
        share = (self._share * factor.T).to(scaled.dtype)
        self._mass[:, words] += share @ scaled
