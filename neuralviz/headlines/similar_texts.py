"""What methods find similar among a few texts: sentences of plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation.similarity import (
    Similarity,
    agree_by_chance,
    correlated_methods,
    furthest_apart,
    nearest_shares,
    pair_indices,
    random_share,
    rank_correlations,
    usable_labels,
)
from neuralviz.headlines import (
    SIGNIFICANT,
    Entry,
    Measured,
    most_and_least,
    rank_hits,
    write_values,
)
from neuralviz.words import many, number

FEWEST_PAIRS = 6  # of four texts: rankings of fewer agree by chance
AGREE, IN_PART = 0.8, 0.5  # Spearman's coefficient of two rankings


def describe_similar_texts(
    similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]] | None = None
) -> str:
    """How well methods bring texts of a label together, else how far methods agree.

    The first of ``labels`` counts that finished texts share.
    """
    measured = _shorten(
        [similarity for similarity in similarities if similarity.has_vector.sum() > 1]
    )
    if not measured:
        return ""
    usable = [  # columns in which finished texts share a label, by each method
        (name, values)
        for name, values in (labels or {}).items()
        if all(usable_labels({name: np.array(values)[s.has_vector]}) for s in measured)
    ]
    for name, values in usable[:1]:
        hits = [nearest_shares(similarity, values) for similarity in measured]
        clause, guess = f"the nearest text has the same {name} for", random_share(values)
        guesser = "a text drawn at random"
        guessing = f"{guesser} has it for {write_values([guess], is_share=True)[0]}"
        n_texts = many(len(hits[0]), "text")
        share = Measured(clause, n_texts, "of", True, guessing, guesser, guess)
        return rank_hits(share, [s.method for s in measured], hits).write_sentence()
    return describe_agreement(measured) if len(measured) > 1 else _describe_extremes(measured[0])


def _shorten(similarities: Sequence[Similarity]) -> list[Similarity]:
    names = short_labels([similarity.method for similarity in similarities])
    return [replace(s, method=name) for s, name in zip(similarities, names, strict=True)]


def describe_agreement(similarities: Sequence[Similarity]) -> str:
    """How far two methods' rankings of the pairs agree; of several, those that agree least."""
    similarities = _shorten(similarities)
    correlations = rank_correlations(similarities)
    (i, j), *further = correlated_methods(correlations) or [(0, 1)]
    first, second, correlation = similarities[i], similarities[j], float(correlations[i, j])
    n_pairs = int(np.isfinite(first.of_pairs + second.of_pairs).sum())
    if n_pairs < FEWEST_PAIRS:
        pairs = many(n_pairs, "pair")
        return f"With only {pairs}, {first.method} and {second.method} cannot be compared."
    if not np.isfinite(correlation):
        return (
            f"{first.method} and {second.method} cannot be compared: by one of them, all pairs are "
            "equally similar."
        )
    written, pairs = number(correlation, ".2f"), many(n_pairs, "pair")
    difference = _describe_difference(first, second)
    if correlation <= 0 or agree_by_chance(first, second) > SIGNIFICANT:
        names = f"{first.method} and {second.method}"
        beginning = f"{names} do not agree significantly"
        if correlation >= IN_PART:
            n_texts = many(int((first.has_vector & second.has_vector).sum()), "text")
            beginning = f"{n_texts} are too few to tell whether {names} agree"
        return (
            f"{beginning}: their rankings of {pairs} have a correlation of {written}.{difference}"
        )
    relation = "agree" if correlation >= AGREE else "agree in part"
    if correlation < IN_PART:
        relation = "agree little"
    if further:
        relation = "agree least"
    claim = f"{first.method} and {second.method} {relation}: their"
    if further and correlation >= AGREE:
        claim = f"All methods agree: even {first.method}'s and {second.method}'s"
    return f"{claim} rankings of {pairs} have a correlation of {written}.{difference}"


def _describe_difference(first: Similarity, second: Similarity) -> str:
    """On which texts two methods differ most; empty where they do on none."""
    pair = furthest_apart(first, second)
    if pair is None or first.ranks[pair] == second.ranks[pair]:
        return ""
    ranks = ", ".join(f"{round(s.ranks[pair]):,} by {s.method}" for s in (first, second))
    return (
        f" They differ most on texts {pair[0] + 1} and {pair[1] + 1}: this pair has rank {ranks}."
    )


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
