"""What the figures of layer dynamics show, in sentences made from their numbers. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.layers.marks import kind_in_words
from neuralviz.words import many, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.layers.following import Sensitivity, TokenWeights
    from neuralviz.layers.geometry import FollowedWord
    from neuralviz.layers.marks import MarkGrid
    from neuralviz.layers.words import WordGroup

NAMED = 3  # words of each kind
LONGEST = 24  # characters of a word
SAME_IMPORTANCE = 1e-6
CLEARLY = 0.05  # cosines that differ by less are not told apart
ABOUT_EQUAL = 0.1  # of the largest: changes that differ by less are about equal
HARDLY = 0.95  # cosine above which settings hardly matter


def of_text(words: Sequence[FollowedWord], weights: TokenWeights) -> str:
    """Which words of a text SBERT-WK gives most weight, and where their vectors turn; then why.

    Args:
        words: the most important first; without any, nothing is said.
        weights: of the tokens.
    """
    if not words:
        return ""
    if len(weights.layers) < 3:
        return "With two layers, no vector can turn unevenly: all tokens count equally."
    if float(np.ptp(weights.importance)) < SAME_IMPORTANCE:
        return "All tokens count equally: no vector turns more unevenly than another."
    first = int(weights.layers[0])
    named = words[: max(1, min(NAMED, len(words) - 1))]
    of_named = np.array([word.turns[first:] for word in named])
    at = int(of_named.mean(axis=0).argmin())
    turns = _turns(named, of_named[:, at], words[-1], first + at)
    if len(words) == 1:
        share = named[0].importance
        return f"{_quoted(named[0].word)} is the only word: {share:.0%} of this embedding. {turns}"
    share = sum(word.importance for word in named)
    carry = "carry" if len(named) > 1 else "carries"
    return (
        f"{_listed([_in_full(word) for word in named])} {carry} {share:.0%} of this embedding. "
        f"{turns}\n\nSBERT-WK gives most weight to words whose vectors turn unevenly from layer to "
        "layer, whatever they mean."
    )


def _turns(named: Sequence[FollowedWord], cosines: np.ndarray, least: FollowedWord, at: int) -> str:
    """How far the vectors of some words turn behind layer ``at``, by their cosines."""
    whose = "their vectors turn" if len(named) > 1 else "its vector turns"
    of_each = _listed([number(float(cosine), ".2f") for cosine in cosines])
    said = f"From layer {at} to {at + 1}, {whose} {{}} (cosine {of_each})"
    other = float(least.turns[at])
    if cosines.max() > other - CLEARLY:
        return said.format("furthest") + "."
    return f"{said.format('further')} than that of {_quoted(least.word)} ({number(other, '.2f')})."


def of_map(cosines: np.ndarray, whose: str) -> str:
    """Between which layers vectors turn most and least.

    Args:
        cosines: [layer, layer].
        whose: the subject of the sentence, e.g. "The vector of “cat”".
    """
    steps = np.diagonal(cosines, 1)
    if len(steps) == 0:
        return ""
    most, least = int(steps.argmin()), int(steps.argmax())
    if steps[least] - steps[most] < CLEARLY:
        mean = number(float(steps.mean()), ".2f")
        return f"{whose} turns about as far in every layer (cosine {mean})."
    places = [
        f"from layer {at} to {at + 1} (cosine {number(float(steps[at]), '.2f')})"
        for at in (most, least)
    ]
    return f"{whose} turns furthest {places[0]}, least {places[1]}."


def of_layer_weights(weights: TokenWeights) -> str:
    """Which layer has the largest weight for most tokens."""
    counts = np.bincount(weights.combined.argmax(axis=1), minlength=len(weights.layers))
    layer, most = weights.layers[counts.argmax()], int(counts.max())
    return f"Layer {layer} weighs most for {most:,} of {many(int(counts.sum()), 'token')}."


def of_settings(result: Sensitivity) -> str:
    """Whether other settings would change the embedding of a text."""
    window, start = np.unravel_index(int(result.by_window.argmin()), result.by_window.shape)
    lowest = float(result.by_window[window, start])
    if lowest > HARDLY:
        return (
            "The settings hardly matter for this text: the cosine similarity to your embedding "
            f"stays above {HARDLY}."
        )
    return (
        f"First layer {result.layer_starts[start]} with layer window {result.windows[window]} "
        "changes the embedding most: its cosine similarity to yours is "
        f"{number(lowest, '.2f')}."
    )


def of_corpus(groups: Sequence[WordGroup]) -> str:
    """Which words of a corpus turn most and least unevenly.

    Args:
        groups: of `WordVariances.groups`, that of the lowest variance first.
    """
    words = [word for group in groups for word in group.words]
    variance = np.concatenate([group.variance for group in groups])
    low, high = float(variance[0]), float(variance[-1])
    if not high > low:
        return f"All {len(words):,} words turn equally evenly."
    n = min(NAMED, len(words) // 2)
    most, least = words[::-1][:n], words[:n]
    said = (
        f"{_listed([_quoted(word) for word in most])} {'turn' if n > 1 else 'turns'} most unevenly "
        f"from layer to layer, {_listed([_quoted(word) for word in least])} most evenly."
    )
    if low > 0 and high / low >= 2:
        said += (
            f"\n\nThe variance of {_quoted(most[0])} is {high / low:,.0f} times that of "
            f"{_quoted(least[0])}. SBERT-WK gives words of high variance more weight."
        )
    return said


def of_groups(groups: Sequence[WordGroup]) -> str:
    """How far the variances of three groups of words reach.

    Args:
        groups: as of `of_corpus`.
    """
    ranges = [
        f"{_in_two_digits(float(group.variance.min()))} to "
        f"{_in_two_digits(float(group.variance.max()))}"
        for group in groups
    ]
    return f"In three groups of equal size, the variance is {_listed(ranges)}."


def of_epochs(totals: np.ndarray) -> str:
    """How soon the blocks move.

    Args:
        totals: [epoch, block] after each epoch; nothing is said of fewer than two.
    """
    means = totals.mean(axis=1)
    if len(means) < 2 or not np.isfinite(means).all() or not means[-1] > 0:
        return ""
    half = len(means) // 2
    share = means[half - 1] / means[-1]
    return (
        f"After {half:,} of {many(len(means), 'epoch')}, the blocks have come {share:.0%} of the "
        "way."
    )


def of_blocks(grid: MarkGrid, delta_norm: np.ndarray, *, per_value: bool, epoch: int) -> str:
    """Which blocks and which kinds of layers a text changes most.

    Args:
        grid: where the tuned layers stand.
        delta_norm: [layer] norms of their deltas after an epoch; without all, nothing is said.
        per_value: as of `MarkGrid.norms`.
        epoch: counted from 1.
    """
    if not np.isfinite(delta_norm).all():
        return ""
    of_block = grid.totals(delta_norm, per_value=per_value)
    of_kind = grid.totals_of_kinds(delta_norm, per_value=per_value)
    after = f"After {many(epoch, 'epoch')}"
    said = f"{after}, {_extremes([f'block {block}' for block in grid.blocks], of_block, 'blocks')}."
    if len(grid.kinds) > 1:
        kinds = [f"the {kind_in_words(kind)}" for kind in grid.kinds]
        by_kind = _extremes(kinds, of_kind, "kinds of layers")
        said += f" {by_kind[0].upper()}{by_kind[1:]}."
    return said


def _extremes(names: Sequence[str], values: np.ndarray, noun: str) -> str:
    most, least = int(values.argmax()), int(values.argmin())
    high, low = _in_two_digits(values[most]), _in_two_digits(values[least])
    if len(names) == 1:
        return f"{names[0]} has changed by {high}"
    if values[most] - values[least] <= ABOUT_EQUAL * values[most]:
        return f"all {noun} have changed about equally ({low} to {high})"
    return f"{names[most]} has changed most ({high}), {names[least]} least ({low})"


def _in_two_digits(value: float) -> str:
    return f"{value:#.2g}".rstrip(".") if value < 100 else f"{value:,.0f}"


def _in_full(word: FollowedWord) -> str:
    notes = [f"{word.times:,} times"] if word.times > 1 else []
    notes += [f"{word.n_tokens:,} tokens"] if word.n_tokens > word.times else []
    return _quoted(word.word) + (f" ({', '.join(notes)})" if notes else "")


def _quoted(word: str) -> str:
    return f"“{word if len(word) <= LONGEST else word[: LONGEST - 1] + '…'}”"


def _listed(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]
