"""A sentence for each step of the way from a text to a similarity, made from its numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.headlines import write_times
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.micro_tuning.walkthrough import Walkthrough

TIE = 0.005  # cosine similarities that differ by less look equal with two digits


def describe_text(walk: Walkthrough) -> str:
    """The result of all ten steps."""
    related, unrelated = (number(product, ".2f") for product in walk.products)
    return (
        f"Ten steps from a text to a number: its similarity to a related text is {related}, to an "
        f"unrelated one {unrelated}."
    )


def describe_tokens(walk: Walkthrough) -> str:
    n_words = len(walk.text.text.split())
    return f"{many(n_words, 'word')}, {many(len(walk.text), 'token')}: this is all the model reads."


def describe_inputs(walk: Walkthrough) -> str:
    often = write_times(walk.inputs.masked.sum(axis=0))
    inputs = many(len(walk.inputs.masked), "masked input")
    ending = "" if often == "once" else ", each time with other neighbours to guess it from"
    return f"{inputs}: every token is masked {often}{ending}."


def describe_loss(walk: Walkthrough) -> str:
    before, after = walk.before.mean_loss, walk.after.mean_loss
    verb = "falls" if after < before else "does not fall"
    return (
        f"The mean loss {verb}: {before:.2f} nats before, {after:.2f} after "
        f"{many(walk.settings.epochs, 'epoch')}."
    )


def describe_weights(walk: Walkthrough) -> str:
    tuned = sum(len(weights) for weights in walk.weights)
    furthest = max(float(np.abs(layer[-1, 0]).max()) for layer in walk.deltas)
    return (
        f"Only {tuned:,} of the model's weights may change, and none changes by more than "
        f"{math.ceil(100 * furthest) / 100:.2f}."
    )


def describe_delta(walk: Walkthrough) -> str:
    norms = walk.tuning.delta_norm[:, 0].mean(axis=1)
    half = int((norms >= norms[-1] / 2).argmax()) + 1
    epochs = many(len(norms), "epoch")
    return f"After {half} of {epochs}, the weights are at least half of the way."


def describe_norms(walk: Walkthrough) -> str:
    low, high = float(walk.lengths.min()), float(walk.lengths.max())
    return f"The deltas of the layers have norms from {low:.2f} to {high:.2f}."


def describe_concatenated(walk: Walkthrough) -> str:
    sizes = [len(weights) for weights in walk.weights]
    return (
        f"The deltas of {many(len(sizes), 'layer')}, one after the other, make a vector of "
        f"{sum(sizes):,} values."
    )


def describe_embedding(walk: Walkthrough) -> str:
    squares = np.sort(np.square(walk.tuning.embeddings[0]))[::-1]
    tenth = max(1, len(squares) // 10)
    share = squares[:tenth].sum() / squares.sum()
    return (
        f"This is the text's embedding: {len(squares):,} values. The largest tenth of them holds "
        f"{share:.0%} of its squared length."
    )


def describe_product(walk: Walkthrough) -> str:
    related, unrelated = walk.products
    first, second = number(related, ".2f"), number(unrelated, ".2f")
    if abs(related - unrelated) < TIE:
        return f"Texts 2 and 3 are equally similar to text 1 ({first})."
    if related > unrelated:
        return f"Text 2 is closer to text 1 ({first}) than text 3 is ({second}), as it should be."
    return f"Text 3 is closer to text 1 ({second}) than text 2 is ({first}). Would you agree?"
