"""A sentence for each step from a text to a similarity, made from its numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.headlines import write_times
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.micro_tuning.walkthrough import Walkthrough

TIE = 0.005  # cosine similarities that differ by less look equal with two digits


def describe_steps(walk: Walkthrough) -> list[str]:
    """The nine sentences, the first of which is the result of all steps."""
    related, unrelated = (number(product, ".2f") for product in walk.products)
    n_words, n_inputs = len(walk.text.text.split()), len(walk.inputs.masked)
    often = write_times(walk.inputs.masked.sum(axis=0))
    neighbours = "" if often == "once" else ", each time with other neighbours to guess it from"
    before, after = walk.before.mean_loss, walk.after.mean_loss
    verb = "falls" if after < before else "does not fall"
    n_weights = sum(len(weights) for weights in walk.weights)
    furthest = max(float(np.abs(layer[-1, 0]).max()) for layer in walk.deltas)
    norms = walk.tuning.delta_norm[:, 0].mean(axis=1)
    n_to_half = int((norms >= norms[-1] / 2).argmax()) + 1
    product = (
        f"Text 2 is closer to text 1 ({related}) than text 3 is ({unrelated}), as it should be."
    )
    if abs(walk.products[0] - walk.products[1]) < TIE:
        product = f"Texts 2 and 3 are equally similar to text 1 ({related})."
    elif walk.products[0] < walk.products[1]:
        product = (
            f"Text 3 is closer to text 1 ({unrelated}) than text 2 is ({related}). Would you agree?"
        )
    return [
        f"Nine steps from a text to a number: its similarity to a related text is {related}, to an "
        f"unrelated one {unrelated}.",
        f"{many(n_words, 'word')}, {many(len(walk.text), 'token')}: this is all the model reads.",
        f"{many(n_inputs, 'masked input')}: every token is masked {often}{neighbours}.",
        f"The mean loss {verb}: {before:.2f} nats before, {after:.2f} after "
        f"{many(walk.settings.epochs, 'epoch')}.",
        f"Only {n_weights:,} of the model's weights may change, and none changes by more than "
        f"{math.ceil(100 * furthest) / 100:.2f}.",
        f"After {n_to_half} of {many(len(norms), 'epoch')}, the weights are at least half of the "
        "way.",
        f"The deltas of {many(len(walk.weights), 'layer')}, one after the other, make a vector of "
        f"{n_weights:,} values.",
        f"This is the text's embedding: {n_weights:,} values.",
        product,
    ]
