"""Clusters that one of two methods holds together and the other does not, and what they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.errors import ShouldStop, check_stop, never
from neuralviz.maps.clusters import (
    SMALLEST_CLUSTER,
    Clusters,
    name_clusters,
    naming_words,
    split_words,
)
from neuralviz.maps.shares import LEAST_RATIO, compute_chance

PERMUTATIONS = 999  # none may reach what is decided: a level of 1 in 1,000
AT_ONCE = 37  # permutations, a divisor of their number
LEVEL = 1 / (PERMUTATIONS + 1)
HELD = 1.0  # standard deviations above all pairs from which a cluster is held together
LOOSE = 0.5  # share of the one method's similarity that the other's must not exceed
COMMON = 0.8  # share of a cluster's texts with its phrase, and with each of its words
COMMON_OUTSIDE = 0.5  # share of the other texts with a word from which it does not mark any off
FEWEST_WORDS = 3  # in a phrase
MOST_WORDS = 100  # in a phrase
NAMED_WORDS = 4
READ_WORDS = 20  # candidates
LONGER = 1.5  # minimum ratio of median lengths


@dataclass(frozen=True)
class Traits:
    """What the texts of a group share and the others do not."""

    phrase: str = ""  # the longest in common, as in one of the texts
    words: tuple[str, ...] = ()  # the most characteristic first
    lengths: tuple[int, int] | None = None  # median words, inside and outside

    def __bool__(self) -> bool:
        return bool(self.phrase or self.words or self.lengths)


@dataclass(frozen=True)
class HeldGroup:
    """A cluster of one method that another does not hold together."""

    place: int  # of the method among the two, 0 or 1
    cluster: int
    # mean standardised cosine of its pairs, by its own method and by the other
    within: tuple[float, float]
    traits: Traits


def find_held_groups(
    vectors: Sequence[np.ndarray],
    clusters: Sequence[np.ndarray],
    texts: Sequence[str],
    should_stop: ShouldStop = never,
) -> tuple[HeldGroup, ...]:
    """Of each of two methods, the cluster that it holds together most beyond the other, if any.

    ``vectors`` and ``clusters`` are [text, dim] and [text] (−1 for none) by method. The cosines of
    each method are standardised by the mean and standard deviation of all its pairs. A cluster
    counts where its mean is at least 1 by its own method and at most half as much by the other;
    where this lead, over its standard deviation under permutations of the texts, exceeds the
    largest of any cluster in all of 999 permutations (Westfall and Young 1993); and where its
    texts share what others do not, by `find_traits`, which no similarity has chosen.
    """
    units = [unit_vectors(values).astype(np.float32) for values in vectors]
    scores = [_standardise(unit @ unit.T) for unit in units]
    sizes = [np.bincount(labels[labels >= 0]) for labels in clusters]
    numbers = [np.flatnonzero(counts >= SMALLEST_CLUSTER) for counts in sizes]
    n_clusters = sum(map(len, numbers))
    if not n_clusters:
        return ()
    masks = np.concatenate(
        [labels == chosen[:, None] for labels, chosen in zip(clusters, numbers, strict=True)]
    )
    signs = np.repeat([1.0, -1.0], list(map(len, numbers)))
    within = [_mean_within(products, masks) for products in scores]
    tight, loose = np.where(signs > 0, within, within[::-1])
    is_held = (tight >= HELD) & (loose <= LOOSE * tight)
    if not is_held.any():
        return ()
    leads = tight - loose
    is_held &= _decide(leads, scores[0] - scores[1], masks, signs, should_stop)
    groups = []
    for place in range(2):
        candidates = np.flatnonzero(is_held & (signs == (1, -1)[place]))
        for row in candidates[np.argsort(-leads[candidates], kind="stable")].tolist():
            traits = find_traits(texts, masks[row], n_clusters)
            if traits:
                cluster = int(np.concatenate(numbers)[row])
                means = float(tight[row]), float(loose[row])
                groups.append(HeldGroup(place, cluster, means, traits))
                break
    return tuple(groups)


def _standardise(products: np.ndarray) -> np.ndarray:
    """[text, text] standardised over pairs of different texts; 0 where all are equal."""
    pairs = products[np.triu_indices(len(products), k=1)]
    spread = pairs.std()
    return (products - pairs.mean()) / spread if spread > 0 else np.zeros_like(products)


def _mean_within(products: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """[group] mean over the pairs of different texts of each group."""
    weights = masks.astype(products.dtype)
    sums = np.einsum("gi,gi->g", weights @ products, weights) - weights @ np.diagonal(products)
    sizes = weights.sum(axis=1)
    return sums / (sizes * (sizes - 1))


def _decide(
    leads: np.ndarray,
    differences: np.ndarray,
    masks: np.ndarray,
    signs: np.ndarray,
    should_stop: ShouldStop,
) -> np.ndarray:
    """[group] whether no group leads as much in any permutation of the texts."""
    draw, n = np.random.default_rng(0), masks.shape[1]
    permuted = np.zeros((PERMUTATIONS, len(leads)))
    for start in range(0, PERMUTATIONS, AT_ONCE):
        check_stop(should_stop)
        orders = [draw.permutation(n) for _ in range(AT_ONCE)]
        means = _mean_within(differences, masks[:, orders].reshape(-1, n))
        permuted[start : start + AT_ONCE] = signs * means.reshape(len(masks), AT_ONCE).T
    spread = permuted.std(axis=0)
    spread[spread == 0] = np.inf
    return leads / spread > (permuted / spread).max()


# --- what texts share ----------------------------------------------------------------------------


def find_traits(texts: Sequence[str], inside: np.ndarray, n_groups: int = 1) -> Traits:
    """What the texts ``inside`` share and the others do not: a phrase, words, their length.

    A phrase of three words or more and each word are in four fifths of the texts, and at least
    twice as often as outside. Each is tested at 1 in 1,000: phrases and words by Fisher's
    exact test (hypergeometric), corrected for all word positions or different words, lengths by
    the rank sum; all are corrected for ``n_groups``.
    """
    level = LEVEL / n_groups
    words = [split_words(text) for text in texts]
    return Traits(
        _find_phrase(texts, words, inside, level),
        _find_words(texts, words, inside, level),
        _compare_lengths(np.array(list(map(len, words))), inside, level),
    )


def is_marked_off(contains: np.ndarray, inside: np.ndarray, level: float) -> bool:
    """Whether what texts contain is twice as frequent inside, and more than by chance."""
    n_inside, n_outside = int(inside.sum()), int((~inside).sum())
    n_in, n_out = int((contains & inside).sum()), int((contains & ~inside).sum())
    is_frequent = n_in * n_outside >= LEAST_RATIO * n_out * n_inside
    return is_frequent and compute_chance(n_in, n_inside, n_in + n_out, len(inside)) <= level


def _find_phrase(
    texts: Sequence[str], words: Sequence[Sequence[str]], inside: np.ndarray, level: float
) -> str:
    members = np.flatnonzero(inside).tolist()
    n_needed = math.ceil(COMMON * len(members))
    frequent: Counter[tuple[str, ...]] = Counter()
    for n_words in range(1, MOST_WORDS + 1):
        counts = Counter[tuple[str, ...]]()
        for member in members:
            member_words = words[member]
            sequences = {
                tuple(member_words[i : i + n_words]) for i in range(len(member_words) - n_words + 1)
            }
            if n_words > 1:
                sequences = {s for s in sequences if s[:-1] in frequent and s[1:] in frequent}
            counts.update(sequences)
        longer = Counter({s: n for s, n in counts.items() if n >= n_needed})
        if not longer:
            break
        frequent = longer
    phrase = _choose_first([words[member] for member in members], frequent)
    phrase = _strip_common(phrase, words, ~inside)
    if len(phrase) < FEWEST_WORDS:
        return ""
    needle = f" {' '.join(phrase)} "
    contains = np.array([needle in f" {' '.join(text_words)} " for text_words in words])
    n_positions = sum(map(len, words))
    if not is_marked_off(contains, inside, level / n_positions):
        return ""
    text = texts[next(member for member in members if contains[member])]
    return _quote(text, phrase)


def _choose_first(
    texts: Sequence[Sequence[str]], counts: Mapping[tuple[str, ...], int]
) -> tuple[str, ...]:
    """Of the sequences of most texts, all of one length, the first in the first text with one."""
    most, n_words = max(counts.values(), default=0), len(next(iter(counts), ()))
    places = (tuple(text[i : i + n_words]) for text in texts for i in range(len(text)))
    return next((sequence for sequence in places if counts.get(sequence) == most), ())


def _strip_common(
    phrase: tuple[str, ...], words: Sequence[Sequence[str]], outside: np.ndarray
) -> tuple[str, ...]:
    """The phrase without what half of the texts outside have, too, at its ends."""
    n_texts = Counter[str]()
    for text in np.flatnonzero(outside).tolist():
        n_texts.update(set(words[text]) & set(phrase))
    own = [i for i, word in enumerate(phrase) if n_texts[word] < COMMON_OUTSIDE * outside.sum()]
    return phrase[own[0] : own[-1] + 1] if own else ()


def _quote(text: str, phrase: Sequence[str]) -> str:
    """The words of a phrase as they are in a text, with what is between them."""
    pattern = r"\W+".join(map(re.escape, phrase))
    match = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE)
    return " ".join(match.group().split()) if match else " ".join(phrase)


def _find_words(
    texts: Sequence[str], words: Sequence[Sequence[str]], inside: np.ndarray, level: float
) -> tuple[str, ...]:
    clusters = Clusters(np.where(inside, 0, -1), 1)
    (candidates,) = name_clusters(texts, clusters, READ_WORDS)
    different = [set(naming_words(text_words)) for text_words in words]
    n_different = len(set().union(*different))
    chosen = []
    for word in candidates:
        contains = np.array([word in text_words for text_words in different])
        is_common = (contains & inside).sum() >= COMMON * inside.sum()
        if is_common and is_marked_off(contains, inside, level / n_different):
            chosen.append(word)
    return tuple(chosen[:NAMED_WORDS])


def _compare_lengths(
    lengths: np.ndarray, inside: np.ndarray, level: float
) -> tuple[int, int] | None:
    """Median lengths inside and outside, where they differ by half and beyond chance."""
    medians = [int(np.median(lengths[mask])) for mask in (inside, ~inside)]
    low, high = sorted(medians)
    if not low or high < LONGER * low:
        return None
    members, rest = lengths[inside], np.sort(lengths[~inside])
    n, m = len(members), len(rest)
    ranks = [np.searchsorted(rest, members, side=side) for side in ("left", "right")]
    rank_sum = np.sum(ranks) / 2 - n * m / 2
    spread = math.sqrt(n * m * (n + m + 1) / 12)
    is_decided = math.erfc(abs(rank_sum) / spread / math.sqrt(2)) <= level
    return (medians[0], medians[1]) if is_decided else None
