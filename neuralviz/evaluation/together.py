"""What a method keeps together, in a sentence made from the nearest texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.embedders.labels import spoken
from neuralviz.evaluation.similarity import Similarity, pair_indices, rank_correlations
from neuralviz.words import many, number

MOST_LABELS = 40
CHANCE = 0.05  # a difference that is likelier than this by chance decides nothing
FEWEST_PAIRS = 3
AGREE, IN_PART = 0.8, 0.5  # Spearman's coefficient of two rankings


def usable_labels(labels: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the labels that some texts share and others do not, 40 different ones at most."""
    given = {name: [value for value in values if value] for name, values in labels.items()}
    return [
        name
        for name, values in given.items()
        if 1 < len(set(values)) <= min(MOST_LABELS, len(values) - 1)
    ]


def nearest_shares(similarity: Similarity, labels: Sequence[str]) -> np.ndarray:
    """[done text with a label] whether the most similar other such text has the same label.

    Args:
        similarity: of texts of which two with a label are done.
        labels: [text]; ``""`` is none.
    """
    used = _labelled(similarity, labels)
    products = similarity.products[np.ix_(used, used)].astype(float)
    np.fill_diagonal(products, -np.inf)
    of_text = np.asarray(labels)[used]
    return of_text[products.argmax(axis=1)] == of_text


def _labelled(similarity: Similarity, labels: Sequence[str]) -> np.ndarray:
    """[text] whether a text is done and has a label."""
    return similarity.done & np.array([bool(label) for label in labels])


def kept_together(
    similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]] | None = None
) -> str:
    """What the methods find similar, in a sentence, and how sure it is, in a paragraph below it.

    Empty where nothing was measured.

    With labels: how often the nearest text has the same one, and whether the best method differs
    from every other in that beyond chance (exact sign test over the texts on which two methods
    differ; McNemar 1947). Texts without a label are left out.
    Without: how far the methods' rankings of the pairs agree.

    Args:
        similarities: of the same texts by each method; those with fewer than two texts done are
            left out.
        labels: by name, a label for every text.
    """
    done = _spoken([one for one in similarities if one.done.sum() > 1])
    if not done:
        return ""
    shared = {
        name: values
        for name, values in (labels or {}).items()
        if name in usable_labels(labels or {})
        and all(_labelled(one, values).sum() > 1 for one in done)
    }
    if shared:
        return _by_labels(done, dict(list(shared.items())[:2]))
    if len(done) > 2:
        return closest(done)
    if len(done) > 1:
        return agreement(*done)
    return _by_extremes(done[0])


def _spoken(similarities: Sequence[Similarity]) -> list[Similarity]:
    names = spoken([one.method for one in similarities])
    return [replace(one, method=name) for one, name in zip(similarities, names, strict=True)]


def _by_labels(done: Sequence[Similarity], labels: Mapping[str, Sequence[str]]) -> str:
    shares = {
        name: [nearest_shares(one, values) for one in done] for name, values in labels.items()
    }
    parts = []
    for place, one in enumerate(done):
        percent = [f"{of[place].mean():.0%}" for of in shares.values()]
        if place:
            parts.append(f"by {one.method}, {' and '.join(percent)}")
            continue
        first, *others = (f"the {name} for {p}" for name, p in zip(shares, percent, strict=True))
        also = "".join(f" and {other}" for other in others)
        parts.append(f"By {one.method}, the nearest text shares {first} of the texts{also}")
    said = "; ".join(parts) + "."
    verdicts = [_best(name, done, of) for name, of in shares.items()] if len(done) > 1 else []
    return "\n\n".join(filter(None, [said, " ".join(filter(None, verdicts))]))


def _best(name: str, done: Sequence[Similarity], shares: Sequence[np.ndarray]) -> str:
    """Which method keeps a label together best, if the texts decide that."""
    if len({len(of) for of in shares}) > 1:  # some are still under way
        return ""
    best, *others = sorted(range(len(shares)), key=lambda place: -shares[place].mean())
    for other in others:
        if not _is_decided(shares[best], shares[other]):
            return (
                f"On the {name}, {many(len(shares[best]), 'text')} do not decide between "
                f"{done[best].method} and {done[other].method}."
            )
    return f"{done[best].method} keeps the {name} together best."


def _is_decided(best: np.ndarray, other: np.ndarray) -> bool:
    """Whether one method is right on more texts than another beyond chance (exact sign test)."""
    only_best, only_other = int((best & ~other).sum()), int((other & ~best).sum())
    n_differ = only_best + only_other
    return n_differ > 0 and bool(scipy.stats.binomtest(only_best, n_differ).pvalue < CHANCE)


def closest(similarities: Sequence[Similarity]) -> str:
    """Which two of three or more methods rank the pairs most alike, and which two least."""
    done = _spoken(similarities)
    products = np.stack([one.of_pairs for one in done])
    n_pairs = int(np.isfinite(products).all(axis=0).sum())
    correlations = rank_correlations(done)
    couples = [
        (float(correlations[i, j]), f"{done[i].method} and {done[j].method}")
        for i, j in zip(*pair_indices(len(done)), strict=True)
        if np.isfinite(correlations[i, j])
    ]
    if len(couples) < 2 or n_pairs < FEWEST_PAIRS:
        return f"{len(done)} methods cannot be compared on so few different pairs."
    (least, apart), (most, near) = min(couples), max(couples)
    low, high = number(least, ".2f"), number(most, ".2f")
    pairs = many(n_pairs, "pair")
    if low == high:
        return f"All {len(done)} methods rank the {pairs} equally alike (correlation {high})."
    return f"{near} rank the {pairs} most alike (correlation {high}), {apart} least ({low})."


def agreement(first: Similarity, second: Similarity) -> str:
    """How far two methods' rankings of the pairs agree, and on which texts least.

    Spearman's coefficient over the pairs that both have done; from 0.8 they agree, from 0.5 in
    part.
    """
    first, second = _spoken([first, second])
    correlation = float(rank_correlations([first, second])[0, 1])
    i, j = pair_indices(len(first.texts))
    ranks = np.stack([one.ranks[i, j] for one in (first, second)])
    both = np.isfinite(ranks).all(axis=0)
    n_pairs = int(both.sum())
    if not np.isfinite(correlation) or n_pairs < FEWEST_PAIRS:
        return f"{first.method} and {second.method} cannot be compared on so few different pairs."
    apart = np.where(both, np.abs(np.diff(np.nan_to_num(ranks), axis=0)[0]), -1)
    most = int(apart.argmax())
    how = "agree" if correlation >= AGREE else "agree in part"
    if correlation < IN_PART:
        how = "see different things"
    said = (
        f"{first.method} and {second.method} {how}: their rankings of {many(n_pairs, 'pair')} "
        f"have a correlation of {number(correlation, '.2f')}."
    )
    if not apart[most]:
        return said
    places = [f"{ranks[m, most]:,.0f} by {one.method}" for m, one in enumerate((first, second))]
    return (
        f"{said} They differ most on texts {i[most] + 1} and {j[most] + 1}: rank {places[0]}, "
        f"{places[1]}."
    )


def spread(similarities: Sequence[Similarity]) -> str:
    """Which method sets the pairs furthest apart, and which least."""
    wide = {one.method: float(np.nanstd(one.of_pairs)) for one in _spoken(similarities)}
    widest, narrowest = max(wide, key=wide.__getitem__), min(wide, key=wide.__getitem__)
    if len(wide) == 1:
        return f"{widest} spreads the pairs with a standard deviation of {wide[widest]:.2f}."
    return (
        f"{widest} spreads the pairs widest (standard deviation {wide[widest]:.2f}), {narrowest} "
        f"least ({wide[narrowest]:.2f})."
    )


def _by_extremes(one: Similarity) -> str:
    i, j = pair_indices(len(one.texts))
    products = one.products[i, j]
    finite = np.flatnonzero(np.isfinite(products))
    most, least = finite[products[finite].argmax()], finite[products[finite].argmin()]
    said = (
        f"By {one.method}, texts {i[most] + 1} and {j[most] + 1} are most similar "
        f"({number(float(products[most]), '.2f')})"
    )
    if most == least:
        return f"{said}."
    return (
        f"{said}, texts {i[least] + 1} and {j[least] + 1} least "
        f"({number(float(products[least]), '.2f')})."
    )
