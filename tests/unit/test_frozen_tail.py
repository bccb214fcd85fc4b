"""The loss with a frozen tail against torch's own cross entropy over all words."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional as F

from neuralviz.micro_tuning import cross_entropy
from neuralviz.micro_tuning import frozen_tail as module
from neuralviz.micro_tuning.cross_entropy import OutputLayer
from neuralviz.micro_tuning.frozen_tail import FrozenTail, count_candidates
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE

TEXTS, SLOTS, WIDTH, VOCAB = 3, 7, 12, 2000


def draw(
    *, vocab: int = VOCAB, spread: float = 0.4, seed: int = 0, with_bias: bool = True
) -> tuple[OutputLayer, torch.Tensor, torch.Tensor, torch.Tensor]:
    """An output layer of random words, vectors, labels as it predicts them, and slots of which some
    are not used."""
    g = torch.Generator().manual_seed(seed)
    weight = spread * torch.randn(vocab, WIDTH, generator=g)
    bias = 0.3 * torch.randn(vocab, generator=g) if with_bias else None
    vectors = torch.randn(TEXTS, SLOTS, WIDTH, generator=g)
    predicted = F.linear(vectors, weight, bias).softmax(dim=2).flatten(0, 1)
    labels = torch.multinomial(predicted, 1, generator=g).view(TEXTS, SLOTS)
    is_used = torch.arange(SLOTS) < torch.tensor([[7], [4], [1]])
    return OutputLayer(weight, bias), vectors, labels, is_used


def exactly(
    layer: OutputLayer, vectors: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """[text, slot] loss and [text, slot, width] gradient by torch, in double precision."""
    bias = None if layer.bias is None else layer.bias.double()
    leaf = vectors.double().requires_grad_()
    logits = F.linear(leaf, layer.weight.double(), bias)
    loss = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    (grad,) = torch.autograd.grad(loss.sum(), leaf)
    return loss.detach().float(), grad.float()


def moves(seed: int = 5) -> torch.Tensor:
    """[text, slot, width] steps of length 1."""
    step = torch.randn(TEXTS, SLOTS, WIDTH, generator=torch.Generator().manual_seed(seed))
    return step / step.norm(dim=2, keepdim=True)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("rows", [1, 16, 256])
def test_vectors_that_have_not_moved_are_exact(with_bias: bool, rows: int, monkeypatch) -> None:
    """Whether all texts go through the output layer together or one by one; later without it."""
    monkeypatch.setattr(cross_entropy, "CACHED_POSITIONS", rows)
    layer, vectors, labels, is_used = draw(with_bias=with_bias)
    tail = FrozenTail(layer, labels, is_used, epochs=5)
    expected, expected_grad = exactly(layer, vectors, labels)
    for _ in range(2):
        loss, grad = tail.loss(vectors)
        torch.testing.assert_close(loss[is_used], expected[is_used])
        torch.testing.assert_close(grad[is_used], expected_grad[is_used], atol=1e-5, rtol=1e-4)
        monkeypatch.setattr(FrozenTail, "_compute_exactly", None)


def test_labels_of_no_probability_are_followed(monkeypatch) -> None:
    """The labels are the words furthest behind: theirs is the loss, exact as the vectors move."""
    monkeypatch.setattr(module, "MOST_ABOVE", 0)
    layer, vectors, _, is_used = draw(spread=1.5)
    labels = (vectors @ layer.weight.T + layer.bias).argmin(dim=2)
    tail = FrozenTail(layer, labels, is_used, epochs=1000)  # so many that small steps are allowed
    tail.loss(vectors)
    moved = vectors + 0.01 * moves()
    loss, grad = tail.loss(moved)
    expected, expected_grad = exactly(layer, moved, labels)
    assert expected[is_used].min() > 8
    torch.testing.assert_close(loss[is_used], expected[is_used], rtol=1e-3, atol=0)
    torch.testing.assert_close(grad[is_used], expected_grad[is_used], rtol=0, atol=0.05)


def test_a_text_of_more_labels_than_candidates() -> None:
    """All of its labels are followed all the same."""
    g = torch.Generator().manual_seed(0)
    n_slots = 60
    layer = OutputLayer(0.3 * torch.randn(100, WIDTH, generator=g), None)
    labels = torch.randperm(100, generator=g)[None, :n_slots]
    assert count_candidates(100, 0.5) < n_slots
    vectors = torch.randn(1, n_slots, WIDTH, generator=g)
    used = torch.ones(1, n_slots, dtype=torch.bool)
    tail = FrozenTail(layer, labels, used, epochs=2, tolerance=0.5)
    tail.loss(vectors)
    moved = vectors * 1.01
    loss, _ = tail.loss(moved)
    torch.testing.assert_close(loss, exactly(layer, moved, labels)[0], rtol=1e-3, atol=0)


def error_after(move: float, *, spread: float = 0.25) -> torch.Tensor:
    """Mean absolute error of the loss behind a move of this length, most words in the tail."""
    layer, vectors, labels, is_used = draw(vocab=20_000, spread=spread, with_bias=False)
    tail = FrozenTail(layer, labels, is_used, epochs=10_000, tolerance=0.9)
    tail._allowed = torch.inf  # no other exact pass
    tail.loss(vectors)
    assert tail._words.shape[1] < 100
    moved = vectors + move * moves()
    loss, _ = tail.loss(moved)
    return (loss - exactly(layer, moved, labels)[0])[is_used].abs().mean()


def test_the_error_falls_with_the_square_of_the_move_at_least() -> None:
    """The slope at the start is exact: half the move leaves a quarter of the error, or less."""
    errors = [error_after(move) for move in (2.0, 1.0, 0.5)]
    assert all(large > 3.5 * small for large, small in itertools.pairwise(errors)), errors


def test_candidates_by_tolerance() -> None:
    assert count_candidates(30_522, DEFAULT_TOLERANCE) == 764  # one of forty
    assert count_candidates(61_044, DEFAULT_TOLERANCE) == 1_527
    assert count_candidates(15_000, DEFAULT_TOLERANCE) == 384
    assert count_candidates(768, DEFAULT_TOLERANCE) == 384
    assert count_candidates(767, DEFAULT_TOLERANCE) == 767  # more than half: all of them
    tolerances = [1e-9, 1e-5, 5e-4, 1e-3, 0.002, 0.01, 0.1, 0.99]
    for vocab in (1, 5, 16, 17, 300, 30_522, 250_000):
        counts = [count_candidates(vocab, tolerance) for tolerance in tolerances]
        assert all(more >= fewer for more, fewer in itertools.pairwise(counts))
        assert counts[0] == vocab  # nothing is to be lost: every word is followed
        assert min(counts) >= 1
        assert all(count <= vocab / 2 or count == vocab for count in counts)


def test_a_text_far_off_gets_another_exact_pass() -> None:
    """It alone: the others are continued, and their loss says so."""
    layer, vectors, labels, is_used = draw(spread=1.0)
    tail = FrozenTail(layer, labels, is_used, epochs=10, tolerance=0.01)
    tail.loss(vectors)
    moved = vectors + torch.tensor([0.003, 3.0, 0.003])[:, None, None] * moves()
    passed = []
    exactly_as_it_was = tail._compute_exactly
    tail._compute_exactly = lambda given, at: (
        passed.append(at.tolist()),
        exactly_as_it_was(given, at),
    )[1]
    loss, grad = tail.loss(moved)
    assert passed == [[1]]
    expected, expected_grad = exactly(layer, moved, labels)
    used = is_used[1]
    torch.testing.assert_close(loss[1][used], expected[1][used])
    torch.testing.assert_close(grad[1][used], expected_grad[1][used], atol=1e-5, rtol=1e-4)
    loss, _ = tail.loss(moved)  # from where it is now, nothing has moved
    assert passed == [[1]]
    torch.testing.assert_close(loss[1][used], expected[1][used])


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_broken_text_leaves_the_others_alone(broken: float) -> None:
    """Its own loss is no number, in every epoch from then on."""
    layer, vectors, labels, is_used = draw()
    whole = FrozenTail(layer, labels, is_used, epochs=5)
    spoilt = FrozenTail(layer, labels, is_used, epochs=5)
    others = torch.tensor([True, False, True])
    for step in range(5):
        moved = vectors + 0.2 * step * moves()
        expected, expected_grad = whole.loss(moved)
        if step >= 2:
            moved[1] = broken
        loss, grad = spoilt.loss(moved)
        at = is_used & others[:, None]
        torch.testing.assert_close(loss[at], expected[at])
        torch.testing.assert_close(grad[at], expected_grad[at])
        assert loss[1][is_used[1]].isfinite().all() == (step < 2)
    assert not grad[1][is_used[1]].isfinite().any()


def test_rounded_candidates_leave_no_more_to_the_tail_than_there_is() -> None:
    """The tail is what the candidates leave of 1, so both have to be rounded in the same way."""
    g = torch.Generator().manual_seed(0)
    weight = (0.4 * torch.randn(4000, 16, generator=g)).bfloat16()
    bias = (2 * torch.randn(4000, generator=g)).bfloat16()
    vectors = (2 * torch.randn(3, 16, 16, generator=g)).bfloat16().float()
    logits = F.linear(vectors.double(), weight.double(), bias.double())  # [text, slot, word]
    labels = logits.argmax(dim=2)
    tail = FrozenTail(OutputLayer(weight, bias), labels, torch.ones_like(labels).bool(), epochs=10)
    tail.loss(vectors)
    tail.loss(vectors)
    followed = torch.stack(
        [(weight[:, None] == words).all(dim=2).any(dim=1) for words in tail._words]
    )  # [text, word]
    in_tail = logits.masked_fill(followed[:, None], -torch.inf).logsumexp(dim=2)
    total = logits.logsumexp(dim=2)
    error = (tail._tail.double() - total).exp() - (in_tail - total).exp()
    assert error.abs().max() < 0.01
