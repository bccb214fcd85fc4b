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


def of_text(words: Sequence[FollowedWord], weights: TokenWeights) -> str:
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
    of_named = np.array([word.turns[first:] for word in named])
    at = int(of_named.mean(axis=0).argmin())
    layer, cosines = first + at + 1, of_named[:, at]
    share = sum(word.importance for word in named)
    whose = "them" if len(named) > 1 else "it"
    least, other = words[-1], float(words[-1].turns[first + at])
    is_clear = cosines.max() <= other - CLEARLY
    how = f"more than {_quoted(least.word)}" if is_clear else "most"
    of_each = joined([number(float(cosine), ".2f") for cosine in cosines])
    beside = f"; for {_quoted(least.word)} it is {number(other, '.2f')}" if is_clear else ""
    return (
        f"{share:.0%} of this embedding comes from {joined([_in_full(w) for w in named])}: "
        f"layer {layer} changes {whose} {how}.\n\nThe cosine between {_possessive(named)} before "
        f"and after layer {layer} is {of_each}{beside} (1: no change). SBERT-WK gives most weight "
        "to words that change in jumps from layer to layer, whatever they mean."
    )


def _possessive(named: Sequence[FollowedWord]) -> str:
    return "a word's vectors" if len(named) > 1 else "its vectors"


def of_map(cosines: np.ndarray, whose: str) -> str:
    """Which layer changes a word most, and which least; then by how much.

    Args:
        cosines: [layer, layer] between the word's vectors.
        whose: the word, e.g. "“cat”", or "the average word".
    """
    steps = np.diagonal(cosines, 1)
    if len(steps) == 0:
        return ""
    most, least = int(steps.argmin()), int(steps.argmax())
    if steps[least] - steps[most] < CLEARLY:
        mean = number(float(steps.mean()), ".2f")
        return (
            f"All layers change {whose} about equally.\n\nThe cosine between its vectors before "
            f"and after a layer is {mean} (1: no change)."
        )
    high, low = (number(float(steps[at]), ".2f") for at in (most, least))
    return (
        f"Layer {most + 1} changes {whose} most, layer {least + 1} least.\n\nThe cosine between "
        f"its vectors before and after these layers is {high} and {low} (1: no change)."
    )


def of_layer_weights(weights: TokenWeights) -> str:
    """Which layer has the largest weight for most tokens."""
    counts = np.bincount(weights.combined.argmax(axis=1), minlength=len(weights.layers))
    layer, most, n_tokens = weights.layers[counts.argmax()], int(counts.max()), int(counts.sum())
    whose = f"{most:,} of {many(n_tokens, 'token')}" if most < n_tokens else many(most, "token")
    every = "all " if most == n_tokens > 1 else ""
    return (
        f"A word's final vector is a mix of the layers. For {every}{whose}, layer {layer} has the "
        "largest part."
    )


def of_settings(result: Sensitivity) -> str:
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


def of_corpus(groups: Sequence[WordGroup]) -> str:
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
    most, least = words[::-1][:n], words[:n]
    said = (
        f"From layer to layer, {joined([_quoted(word) for word in most])} "
        f"{'change' if n > 1 else 'changes'} most in jumps, "
        f"{joined([_quoted(word) for word in least])} most steadily."
    )
    if low > 0 and high / low >= 2:
        said += (
            f"\n\nThe variance of {_quoted(most[0])} is {high / low:,.0f} times that of "
            f"{_quoted(least[0])}. SBERT-WK gives more weight to words that change in jumps."
        )
    return said


def of_groups(groups: Sequence[WordGroup]) -> str:
    """What three groups of words differ in; then how far their variances reach.

    Args:
        groups: as of `of_corpus`.
    """
    ranges = [
        f"{_in_two_digits(float(group.variance.min()))} to "
        f"{_in_two_digits(float(group.variance.max()))}"
        for group in groups
    ]
    low, high = float(groups[0].variance.min()), float(groups[-1].variance.max())
    if not high > low:
        return f"All words change equally steadily.\n\nTheir variance is {_in_two_digits(low)}."
    return (
        "A third of the words change steadily, a third in jumps, the rest in between.\n\nThe "
        f"variance is {ranges[0]} in the first third, {ranges[1]} in the middle, {ranges[2]} in "
        "the last."
    )


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
        f"After {half:,} of {many(len(means), 'epoch')}, the blocks have made {share:.0%} of their "
        "change."
    )


def of_blocks(grid: MarkGrid, delta_norm: np.ndarray, *, per_value: bool, epoch: int) -> str:
    """Which blocks and which kinds of layers a text changes most; then by how much.

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
    blocks, sizes = _extremes([f"block {block}" for block in grid.blocks], of_block, "blocks")
    said = f"After {many(epoch, 'epoch')}, the text has changed {blocks}"
    measured = f"{'Root mean square change' if per_value else 'Norm of the delta'}: {sizes}"
    if len(grid.kinds) > 1:
        names = [f"the {kind_in_words(kind)}" for kind in grid.kinds]
        kinds, sizes = _extremes(names, of_kind, "kinds")
        said += f"; of the kinds of layers, {kinds}"
        measured += f" by block, {sizes} by kind of layer"
    return f"{said}.\n\n{measured}."


def _extremes(names: Sequence[str], values: np.ndarray, noun: str) -> tuple[str, str]:
    """What has changed most and least, and by how much."""
    most, least = int(values.argmax()), int(values.argmin())
    high, low = _in_two_digits(values[most]), _in_two_digits(values[least])
    if len(names) == 1:
        return names[0], high
    if values[most] - values[least] <= ABOUT_EQUAL * values[most]:
        return f"all {noun} about equally", f"{low} to {high}"
    return f"{names[most]} most, {names[least]} least", f"{high} and {low}"


def _in_two_digits(value: float) -> str:
    return f"{value:#.2g}".rstrip(".") if value < 100 else f"{value:,.0f}"


def _in_full(word: FollowedWord) -> str:
    notes = [f"{word.times:,} times"] if word.times > 1 else []
    notes += [f"{word.n_tokens:,} tokens"] if word.n_tokens > word.times else []
    return _quoted(word.word) + (f" ({', '.join(notes)})" if notes else "")


def _quoted(word: str) -> str:
    return f"“{word if len(word) <= LONGEST else word[: LONGEST - 1] + '…'}”"
