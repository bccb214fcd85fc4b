"""What the views of layer dynamics show: sentences of plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.best_layer import best_layer, interval_of_difference, reversed_median
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.headlines import (
    Entry,
    Headline,
    Measured,
    compare_two,
    most_and_least,
    write_range,
)
from neuralviz.layers.settings import POOLING_NAMES
from neuralviz.words import joined, many, number

if TYPE_CHECKING:
    import pandas as pd

    from neuralviz.evaluation.best_layer import BestLayer, MeasuredPooling
    from neuralviz.layers.geometry import FollowedWord
    from neuralviz.layers.words import TokenWeights

NAMED = 3  # words of each kind
LONGEST = 24  # characters of a word
SAME_IMPORTANCE = 1e-6
CLEARLY = 0.05  # cosines that differ by less are not told apart
ABOUT_EQUAL = 0.1  # of the largest: changes that differ by less are about equal


def describe_best_layer(
    by_layer: Mapping[str, Sequence[MeasuredPooling]],
    coefficient: str,  # one of `COEFFICIENTS`
    name: str,  # of the coefficient
    *,
    is_whole: bool = True,  # all layers are measured
) -> tuple[str, BestLayer | None]:
    """Which layer follows people's scores best, compared with the last one; also that layer."""
    best = best_layer(by_layer, coefficient)
    n_pairs = next((len(layers[0].scores) for layers in by_layer.values() if layers), 0)
    pairs = many(n_pairs, "pair")
    if best is None:
        return f"{name} is undefined for every layer on {pairs}.", None
    median = reversed_median(by_layer, coefficient) if is_whole else None
    if median is not None:
        return (
            f"No layer follows people's scores: the median {name} of all layers is "
            f"{number(median, '.2f')} on {pairs}. {REVERSE}"
        ), best
    measured = Measured(f"{name} with people's scores is", pairs)
    layer_name = f"{best.layer} ({POOLING_NAMES[best.pooling]})"
    if best.rival is None:
        return Headline(measured, Entry(f"layer {layer_name}", best.value)).write_sentence(), best
    layers, rival = by_layer[best.pooling], best.rival
    bounds, reason = None, ""
    if is_whole:
        bounds = interval_of_difference(layers[best.layer], layers[rival], coefficient)
        reason = f"{pairs} are too few to say how sure that is"
    best_name = f"the last layer, {layer_name}," if best.is_last else f"layer {layer_name}"
    rival_name = "the last layer" if rival == len(layers) - 1 else f"layer {rival}"
    entries = Entry(best_name, best.value), Entry(rival_name, best.rival_value)
    return compare_two(measured, *entries, bounds, reason), best


def describe_parts(
    whole: MeasuredPooling, plain_mean: MeasuredPooling, coefficient: str, name: str
) -> str:
    """Whether SBERT-WK follows people's scores better than the mean of the last layer."""
    sbert_wk, mean = (getattr(side.correlation, coefficient) for side in (whole, plain_mean))
    bounds = interval_of_difference(whole, plain_mean, coefficient)
    if not np.isfinite([sbert_wk, mean]).all() or bounds is None:
        return ""
    measured = Measured(f"{name} with people's scores is", many(len(whole.scores), "pair"))
    entries = Entry("SBERT-WK", sbert_wk), Entry("the mean of the last layer", mean)
    return compare_two(measured, *entries, bounds)


def describe_text(words: Sequence[FollowedWord], weights: TokenWeights) -> str:
    """The most important words of an embedding, and the layer that changes them most."""
    if not words:
        return ""
    if float(np.ptp(weights.importance)) < SAME_IMPORTANCE:
        return "All words count equally: from layer to layer, all change alike."
    first = int(weights.layers[0])
    named = words[: max(1, min(NAMED, len(words) - 1))]
    cosines = np.array([word.turns[first:] for word in named]).mean(axis=0)
    layer = first + int(cosines.argmin()) + 1
    share = sum(word.importance for word in named)
    return (
        f"{share:.0%} of this embedding comes from {joined([_describe_word(w) for w in named])}: "
        f"layer {layer} changes {'them' if len(named) > 1 else 'it'} most."
    )


def describe_map(cosines: np.ndarray, subject: str) -> str:
    """Which layer changes a word most, and which least, from its [layer, layer] cosines."""
    steps = np.diagonal(cosines, 1)
    if len(steps) == 0:
        return ""
    if steps.max() - steps.min() < CLEARLY:
        return f"All layers change {subject} about equally (cosines: {write_range(steps)})."
    high, low = (number(float(step), ".2f") for step in (steps.max(), steps.min()))
    return (
        f"Layer {steps.argmin() + 1} changes {subject} most (cosine of the vectors before and "
        f"after it: {low}), layer {steps.argmax() + 1} least ({high})."
    )


def describe_corpus(words: Sequence[str], variance: np.ndarray) -> str:
    """Which words change in jumps between layers; the steadiest words come first."""
    if not variance[-1] > variance[0]:
        return f"From layer to layer, all {len(words):,} words change equally steadily."
    n = min(NAMED, len(words) // 2)
    jumping, steady = (joined(list(map(_quote, end))) for end in (words[::-1][:n], words[:n]))
    return f"Most in jumps from layer to layer: {jumping}. Most steadily: {steady}."


def describe_blocks(changes: pd.DataFrame, *, per_value: bool, epoch: int) -> str:
    """Which blocks change most, by the ``norm``, ``values`` and ``block`` of each layer."""
    if not np.isfinite(changes["norm"]).all():
        return ""
    squares = changes["norm"].pow(2).groupby(changes["block"]).sum()
    if per_value:
        squares /= changes.groupby("block")["values"].sum()
    values = np.sqrt(squares)
    entries = [Entry(f"block {block}", float(value)) for block, value in values.items()]
    if len(entries) == 1:
        clause = f"{entries[0].name} has changed by {entries[0].value:.2g}"
    elif np.ptp(values) <= ABOUT_EQUAL * values.max():
        clause = f"all blocks have changed about equally ({write_range(values.to_numpy(), '.2g')})"
    else:
        clause = most_and_least(entries, "has changed most ({})", spec=".2g")
    return f"After {many(epoch, 'epoch')} of micro-tuning on this text, {clause}."


def _describe_word(word: FollowedWord) -> str:
    return _quote(word.word) + (f" ({word.times:,} times)" if word.times > 1 else "")


def _quote(word: str) -> str:
    return f"“{word if len(word) <= LONGEST else word[: LONGEST - 1] + '…'}”"
