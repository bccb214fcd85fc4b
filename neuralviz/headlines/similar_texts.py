"""What methods find similar among a few texts: sentences of plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from neuralviz.evaluation.similarity import (
    Similarity,
    agree_by_chance,
    most_similar,
    nearest_shares,
    order_apart,
    pair_indices,
    random_share,
    rank_correlations,
    rank_differences,
    usable_labels,
)
from neuralviz.headlines import (
    SIGNIFICANT,
    Entry,
    Measured,
    begin,
    most_and_least,
    rank_hits,
    write_values,
)
from neuralviz.words import joined, many, name_pairs, name_texts, number

LONGEST_NAME = 20  # characters of a label column in a title
FEWEST_PAIRS = 6  # of four texts: rankings of fewer agree by chance
AGREE, IN_PART = 0.8, 0.5  # Spearman's coefficient of two rankings


def describe_similar_texts(
    similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]] | None = None
) -> str:
    """How well methods bring texts of a label together, else which texts are most similar.

    The first of ``labels`` counts that finished texts share.
    """
    measured = [similarity for similarity in similarities if similarity.has_vector.sum() > 1]
    if not measured:
        return ""
    for name, values in _find_usable(measured, labels or {}):
        hits = [nearest_shares(similarity, values) for similarity in measured]
        clause, guess = f"the nearest text has the same {name} for", random_share(values)
        guesser = "a text drawn at random"
        guessing = f"{guesser} has it for {write_values([guess], is_share=True)[0]}"
        n_texts = many(len(hits[0]), "text")
        share = Measured(clause, n_texts, "of", True, guessing, guesser, guess)
        return rank_hits(share, [s.method for s in measured], hits).write_sentence()
    return _describe_nearest(measured) if len(measured) > 1 else _describe_extremes(measured[0])


def note_similar_texts(
    similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]]
) -> list[str]:
    """What the titles of the methods' grids say of `describe_similar_texts`."""
    for name, values in _find_usable(similarities, labels):
        means = [float(nearest_shares(s, values).mean()) for s in similarities]
        shares = write_values(means, is_share=True)
        return [
            f": same {name if len(name) <= LONGEST_NAME else f'{name[:LONGEST_NAME]}…'} for {share}"
            for share in shares
        ]
    return [f": highest {number(float(np.nanmax(s.of_pairs)), '.2f')}" for s in similarities]


def _find_usable(
    similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]]
) -> list[tuple[str, Sequence[str]]]:
    """The first column in which finished texts share a label, by each method; else none."""
    return [
        (name, values)
        for name, values in labels.items()
        if all(usable_labels({name: np.array(values)[s.has_vector]}) for s in similarities)
    ][:1]


def describe_agreement(
    first: Similarity, second: Similarity, hardly_read: Sequence[int] = ()
) -> tuple[str, str]:
    """On which texts two methods differ most, of those that are read, and how far they agree.

    The latter, which may be all that there is, is on their rankings of the pairs.
    """
    correlation = float(rank_correlations([first, second])[0, 1])
    n_pairs = int(np.isfinite(first.of_pairs + second.of_pairs).sum())
    names = f"the methods {first.method} and {second.method}"
    written, pairs = number(correlation, ".2f"), many(n_pairs, "pair")
    difference = _describe_difference(first, second, hardly_read)
    if n_pairs < FEWEST_PAIRS:
        return begin(f"{names} {difference or f'put {pairs} in the same order'}."), ""
    if not np.isfinite(correlation):
        reason = "by one of them, all pairs are equally similar"
        return begin(f"{names} cannot be compared: {reason}."), ""
    subject, methods = ("they", "the methods") if difference else (names, names)
    claim = f"{subject} agree little: their"
    if correlation <= 0 or agree_by_chance(first, second) > SIGNIFICANT:
        claim = f"{subject} do not agree significantly: their"
        if correlation >= IN_PART:
            n_texts = many(int((first.has_vector & second.has_vector).sum()), "text")
            claim = f"{n_texts} are too few to tell whether {methods} agree: their"
    elif correlation >= AGREE:
        claim = f"{subject} agree: their"
    elif correlation >= IN_PART:
        claim = f"{subject} agree in part: their"
    claim = f"{claim} rankings of {pairs} have a correlation of {written} (1: the same order)."
    if difference:
        return begin(f"{names} {difference}."), f"On the whole, {claim}"
    return begin(claim), ""


def _describe_difference(first: Similarity, second: Similarity, hardly_read: Sequence[int]) -> str:
    """On which texts two methods ``differ most …``; empty where they do on none."""
    pairs = order_apart(first, second, hardly_read)
    gaps = np.abs(rank_differences(first, second)[*pairs.T])
    if not gaps.max(initial=0):
        return ""
    if gaps.max() == 1:
        return f"differ by no more than one rank on any of {len(pairs):,} pairs (1: most similar)"
    pair, *ties = map(tuple, pairs[gaps == gaps[0]].tolist())
    first_rank, second_rank = (f"{round(s.ranks[pair]):,}" for s in (first, second))
    n_pairs = f"{np.isfinite(first.of_pairs).sum():,}"
    are_read = bool(hardly_read) and not {*pair}.intersection(hardly_read)
    among = " of those that their models read" * are_read
    several = f"{1 + len(ties):,} pairs, such as " * bool(ties)
    return (
        f"differ most on {several}{name_texts(pair)}{among}: this pair has "
        f"rank {first_rank} of {n_pairs} pairs by {first.method}, {second_rank} by {second.method} "
        "(1: most similar)"
    )


def _describe_nearest(similarities: Sequence[Similarity]) -> str:
    """Which pair is the most similar one by each of several methods."""
    if len(similarities[0].texts) == 2:
        values = [f"{number(float(s.products[0, 1]), '.2f')} by {s.method}" for s in similarities]
        return f"The two texts have a similarity of {joined(values)}."
    methods: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for similarity in similarities:
        highest = number(float(np.nanmax(similarity.of_pairs)), ".2f")
        pairs = tuple(map(tuple, most_similar(similarity).tolist()))
        methods.setdefault(pairs, []).append(f"{similarity.method} ({highest})")
    clauses = [
        f"by {joined(names)}, {name_pairs(pairs)}{' are most similar' * (place == 0)}"
        for place, (pairs, names) in enumerate(methods.items())
    ]
    return begin(f"{'; '.join(clauses)}.")


def _describe_extremes(similarity: Similarity) -> str:
    i, j = pair_indices(len(similarity.texts))
    pairs = [
        Entry(f"texts {a + 1} and {b + 1}", float(product))
        for a, b, product in zip(i, j, similarity.products[i, j], strict=True)
        if np.isfinite(product)
    ]
    if len(pairs) == 1:
        value = number(pairs[0].value, ".2f")
        return f"By {similarity.method}, the two texts have a similarity of {value}."
    alike = f"all {len(pairs):,} pairs have a similarity of {{}}"
    return (
        f"By {similarity.method}, {most_and_least(pairs, 'pairs', 'are most similar ({})', alike)}."
    )
