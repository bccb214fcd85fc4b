"""Micro-tuning as the paper tells it: a plain training loop over a whole `transformers` model.

Written from the papers' text alone and sharing no code with `neuralviz`: what the fast routes are
compared with, and what `benchmarks/` measures them against.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

DEFAULT_BLUEPRINTS = ((2, 1), (1, 1), (1, 2), (1, 3))


def masked_rows(n_tokens: int, blueprints: Sequence[tuple[int, int]]) -> list[list[bool]]:
    """The inputs of a chunk, a row an input: true where a token is masked."""
    rows = []
    for k, m in blueprints:
        period = k + m
        for s in range(period if n_tokens == 1 else min(period, n_tokens)):
            row = [(j - s) % period >= k for j in range(n_tokens)]
            if any(row):
                rows.append(row)
    return rows


def batch_of(
    tokenizer: PreTrainedTokenizerFast,
    chunk: Sequence[int],
    blueprints: Sequence[tuple[int, int]],
    predict_unmasked: bool,
) -> dict[str, torch.Tensor]:
    """The masked inputs and labels of a chunk of token ids, as one batch."""
    around = tokenizer("a")["input_ids"]  # the special tokens that the family puts around a text
    n = len(tokenizer("a", add_special_tokens=False)["input_ids"])
    first = next(
        i for i in range(len(around))
        if around[i : i + n] == tokenizer("a", add_special_tokens=False)["input_ids"]
    )  # fmt: skip
    before, behind = around[:first], around[first + n :]
    rows = [[True] * len(chunk)] if predict_unmasked else masked_rows(len(chunk), blueprints)
    ids, labels = [], []
    for row in rows:
        shown = [
            tokenizer.mask_token_id if masked and not predict_unmasked else token
            for token, masked in zip(chunk, row, strict=True)
        ]
        wanted = [token if masked else -100 for token, masked in zip(chunk, row, strict=True)]
        ids.append([*before, *shown, *behind])
        labels.append([-100] * len(before) + wanted + [-100] * len(behind))
    input_ids = torch.tensor(ids)
    return {
        "input_ids": input_ids,
        "attention_mask": torch.ones_like(input_ids),
        "labels": torch.tensor(labels),
    }


def plain_micro_tune(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    chunks: Sequence[Sequence[int]],
    layers: Sequence[str],
    *,
    blueprints: Sequence[tuple[int, int]] = DEFAULT_BLUEPRINTS,
    epochs: int = 10,
    learning_rate: float = 0.01,
    weight_decay: float = 0.01,
    predict_unmasked: bool = False,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Tune a fresh copy of the network on one text, all inputs of all chunks in one step an epoch.

    Returns:
        The delta of each layer, and the loss [epoch] before each step.
    """
    network = copy.deepcopy(network).eval().requires_grad_(False)
    by_name = dict(network.named_parameters())
    tuned = [by_name[name].requires_grad_() for name in layers]
    before = [parameter.detach().clone() for parameter in tuned]
    optimizer = torch.optim.AdamW(tuned, lr=learning_rate, weight_decay=weight_decay)
    batches = [batch_of(tokenizer, chunk, blueprints, predict_unmasked) for chunk in chunks]
    losses = []
    for _ in range(epochs):
        optimizer.zero_grad()
        losses.append(0.0)
        for batch, share in zip(batches, shares_of(batches), strict=True):
            ids = {name: ids.to(network.device) for name, ids in batch.items()}
            loss = network(**ids).loss * share
            loss.backward()
            losses[-1] += loss.item()
        optimizer.step()
    moved = [after.detach() - start for after, start in zip(tuned, before, strict=True)]
    return [delta.cpu().numpy() for delta in moved], np.array(losses)


def shares_of(batches: Sequence[dict[str, torch.Tensor]]) -> list[float]:
    """The share of each batch in the masked positions of all."""
    counts = [int((batch["labels"] != -100).sum()) for batch in batches]
    return [count / sum(counts) for count in counts]


def plain_gradients(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    chunks: Sequence[Sequence[int]],
    layers: Sequence[str],
) -> list[np.ndarray]:
    """Of each layer, by autograd, the gradient of the mean loss of all masked positions."""
    network = copy.deepcopy(network).eval()
    tuned = [dict(network.named_parameters())[name] for name in layers]
    for parameter in tuned:
        parameter.requires_grad_()
    batches = [batch_of(tokenizer, chunk, DEFAULT_BLUEPRINTS, False) for chunk in chunks]
    losses = [
        network(**batch).loss * share
        for batch, share in zip(batches, shares_of(batches), strict=True)
    ]
    gradients = torch.autograd.grad(torch.stack(losses).sum(), tuned)
    return [gradient.numpy() for gradient in gradients]


def plain_embedding(deltas: Sequence[np.ndarray]) -> np.ndarray:
    """Equation 1 of the paper."""
    joined = np.concatenate([delta / np.linalg.norm(delta) for delta in deltas])
    return joined / np.linalg.norm(joined)
