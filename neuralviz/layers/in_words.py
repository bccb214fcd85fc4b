"""What the figures of layer dynamics show, in sentences made from their numbers. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.layers.marks import kind_in_words
from neuralviz.words import joined, many, number

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


def describe_text(words: Sequence[FollowedWord], weights: TokenWeights) -> str:
    """Which words an embedding comes from, and which layer changes them; then the numbers and why.

    Args:
        words: the most important first; without any, nothing is said.
        weights: of the tokens.
    """
    if not words:
        return ""
    if len(weights.layers) < 3:
        return "With two layers, no word can change in jumps: all words count equally."
    if float(np.ptp(weights.importance)) < SAME_IMPORTANCE:
        return "All words count equally: from layer to layer, all change alike."
    first = int(weights.layers[0])
    named = words[: max(1, min(NAMED, len(words) - 1))]
    named_turns = np.array([word.turns[first:] for word in named])
    index = int(named_turns.mean(axis=0).argmin())
    layer, cosines = first + index + 1, named_turns[:, index]
    share = sum(word.importance for word in named)
    pronoun = "them" if len(named) > 1 else "it"
    least, least_cosine = words[-1], float(words[-1].turns[first + index])
    is_clear = cosines.max() <= least_cosine - CLEARLY
    comparison = f"more than {_quote(least.word)}" if is_clear else "most"
    written = joined([number(float(cosine), ".2f") for cosine in cosines])
    contrast = f"; for {_quote(least.word)} it is {number(least_cosine, '.2f')}" if is_clear else ""
    return (
        f"{share:.0%} of this embedding comes from {joined([_describe_word(w) for w in named])}: "
        f"layer {layer} changes {pronoun} {comparison}.\n\nThe cosine between "
        f"{_possessive(named)} before and after layer {layer} is {written}{contrast} (1: no "
        "change). SBERT-WK gives most weight to words that change in jumps from layer to layer, "
        "whatever they mean."
    )


def _possessive(named: Sequence[FollowedWord]) -> str:
    return "a word's vectors" if len(named) > 1 else "its vectors"


def describe_map(cosines: np.ndarray, subject: str) -> str:
    """Which layer changes a word most, and which least; then by how much.

    Args:
        cosines: [layer, layer] between the word's vectors.
        subject: the word, e.g. "“cat”", or "the average word".
    """
    steps = np.diagonal(cosines, 1)
    if len(steps) == 0:
        return ""
    strongest, weakest = int(steps.argmin()), int(steps.argmax())
    if steps[weakest] - steps[strongest] < CLEARLY:
        mean = number(float(steps.mean()), ".2f")
        return (
            f"All layers change {subject} about equally.\n\nThe cosine between its vectors before "
            f"and after a layer is {mean} (1: no change)."
        )
    high, low = (number(float(steps[step]), ".2f") for step in (strongest, weakest))
    return (
        f"Layer {strongest + 1} changes {subject} most, layer {weakest + 1} least.\n\nThe cosine "
        f"between its vectors before and after these layers is {high} and {low} (1: no change)."
    )


def describe_layer_weights(weights: TokenWeights) -> str:
    """Which layer has the largest weight for most tokens."""
    counts = np.bincount(weights.combined.argmax(axis=1), minlength=len(weights.layers))
    layer, largest, n_tokens = weights.layers[counts.argmax()], int(counts.max()), int(counts.sum())
    tokens = f"{largest:,} of " * (largest < n_tokens) + many(n_tokens, "token")
    prefix = "all " if largest == n_tokens > 1 else ""
    return (
        f"A word's final vector is a mix of the layers. For {prefix}{tokens}, layer {layer} has "
        "the largest part."
    )


def describe_settings(result: Sensitivity) -> str:
    """Whether other settings would change the embedding of a text."""
    window, start = np.unravel_index(int(result.by_window.argmin()), result.by_window.shape)
    lowest = float(result.by_window[window, start])
    if lowest > HARDLY:
        return (
            "For this text, the settings hardly matter.\n\nWith every first layer and layer "
            f"window, the cosine similarity to your embedding stays above {HARDLY}."
        )
    return (
        f"For this text, the settings matter: first layer {result.layer_starts[start]} with layer "
        f"window {result.windows[window]} changes the embedding most.\n\nIts cosine similarity to "
        f"yours is then {number(lowest, '.2f')}."
    )


def describe_corpus(groups: Sequence[WordGroup]) -> str:
    """Which words of a corpus change in jumps from layer to layer, and which steadily.

    Args:
        groups: of `WordVariances.groups`, that of the lowest variance first.
    """
    words = [word for group in groups for word in group.words]
    variance = np.concatenate([group.variance for group in groups])
    low, high = float(variance[0]), float(variance[-1])
    if not high > low:
        return f"From layer to layer, all {len(words):,} words change equally steadily."
    n = min(NAMED, len(words) // 2)
    jumping, steady = words[::-1][:n], words[:n]
    sentence = (
        f"From layer to layer, {joined([_quote(word) for word in jumping])} "
        f"{'change' if n > 1 else 'changes'} most in jumps, "
        f"{joined([_quote(word) for word in steady])} most steadily."
    )
    if low > 0 and high / low >= 2:
        sentence += (
            f"\n\nThe variance of {_quote(jumping[0])} is {high / low:,.0f} times that of "
            f"{_quote(steady[0])}. SBERT-WK gives more weight to words that change in jumps."
        )
    return sentence


def describe_groups(groups: Sequence[WordGroup]) -> str:
    """The difference between three groups of words, then the ranges of their variances.

    Args:
        groups: as of `describe_corpus`.
    """
    ranges = [
        f"{_format_two_digits(float(group.variance.min()))} to "
        f"{_format_two_digits(float(group.variance.max()))}"
        for group in groups
    ]
    low, high = float(groups[0].variance.min()), float(groups[-1].variance.max())
    if not high > low:
        return f"All words change equally steadily.\n\nTheir variance is {_format_two_digits(low)}."
    return (
        "A third of the words change steadily, a third in jumps, the rest in between.\n\nThe "
        f"variance is {ranges[0]} in the first third, {ranges[1]} in the middle, {ranges[2]} in "
        "the last."
    )


def describe_epochs(totals: np.ndarray) -> str:
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
        f"After {half:,} of {many(len(means), 'epoch')}, the blocks have made {share:.0%} of their "
        "change."
    )


def describe_blocks(grid: MarkGrid, delta_norm: np.ndarray, *, per_value: bool, epoch: int) -> str:
    """Which blocks and which kinds of layers a text changes most; then by how much.

    Args:
        grid: where the tuned layers stand.
        delta_norm: [layer] norms of their deltas after an epoch; without all, nothing is said.
        per_value: as of `MarkGrid.norms`.
        epoch: counted from 1.
    """
    if not np.isfinite(delta_norm).all():
        return ""
    block_totals = grid.totals(delta_norm, per_value=per_value)
    kind_totals = grid.totals_of_kinds(delta_norm, per_value=per_value)
    blocks, sizes = _describe_extremes(
        [f"block {block}" for block in grid.blocks], block_totals, "blocks"
    )
    sentence = f"After {many(epoch, 'epoch')}, the text has changed {blocks}"
    measured = f"{'Root mean square change' if per_value else 'Norm of the delta'}: {sizes}"
    if len(grid.kinds) > 1:
        names = [f"the {kind_in_words(kind)}" for kind in grid.kinds]
        kinds, sizes = _describe_extremes(names, kind_totals, "kinds")
        sentence += f"; of the kinds of layers, {kinds}"
        measured += f" by block, {sizes} by kind of layer"
    return f"{sentence}.\n\n{measured}."


def _describe_extremes(names: Sequence[str], values: np.ndarray, noun: str) -> tuple[str, str]:
    """Words for the largest and the smallest change, and for their sizes."""
    highest, lowest = int(values.argmax()), int(values.argmin())
    high, low = _format_two_digits(values[highest]), _format_two_digits(values[lowest])
    if len(names) == 1:
        return names[0], high
    if values[highest] - values[lowest] <= ABOUT_EQUAL * values[highest]:
        return f"all {noun} about equally", f"{low} to {high}"
    return f"{names[highest]} most, {names[lowest]} least", f"{high} and {low}"


def _format_two_digits(value: float) -> str:
    return f"{value:#.2g}".rstrip(".") if value < 100 else f"{value:,.0f}"


def _describe_word(word: FollowedWord) -> str:
    notes = [f"{word.times:,} times"] if word.times > 1 else []
    notes += [f"{word.n_tokens:,} tokens"] if word.n_tokens > word.times else []
    return _quote(word.word) + (f" ({', '.join(notes)})" if notes else "")


def _quote(word: str) -> str:
    return f"“{word if len(word) <= LONGEST else word[: LONGEST - 1] + '…'}”"
