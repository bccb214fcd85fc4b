"""What a method keeps together, in a sentence made from the nearest texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from neuralviz.embedders.labels import short_labels
from neuralviz.evaluation.broken import TIE
from neuralviz.evaluation.similarity import Similarity, pair_indices, rank_correlations
from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import many, number

MOST_LABELS = 40
FEWEST_PAIRS = 3
AGREE, IN_PART = 0.8, 0.5  # Spearman's coefficient of two rankings


def usable_labels(labels: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the labels that some texts share and others do not, 40 different ones at most."""
    nonempty = {name: [value for value in values if value] for name, values in labels.items()}
    return [
        name
        for name, values in nonempty.items()
        if 1 < len(set(values)) <= min(MOST_LABELS, len(values) - 1)
    ]


def nearest_shares(similarity: Similarity, labels: Sequence[str]) -> np.ndarray:
    """[done text with a label] whether the most similar other such text has the same label.

    Where several are equally similar, all of them have to: the order of the texts decides nothing.

    Args:
        similarity: of texts of which two with a label are done.
        labels: [text]; ``""`` is none.
    """
    used = _labelled(similarity, labels)
    products = similarity.products[np.ix_(used, used)].astype(float)
    np.fill_diagonal(products, -np.inf)
    of_text = np.asarray(labels)[used]
    is_nearest = products >= products.max(axis=1, keepdims=True) - TIE
    has_label = of_text[:, None] == of_text
    return (has_label | ~is_nearest).all(axis=1)


def _labelled(similarity: Similarity, labels: Sequence[str]) -> np.ndarray:
    """[text] whether a text is done and has a label."""
    return similarity.has_vector & np.array([bool(label) for label in labels])


def describe_similar_texts(
    similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]] | None = None
) -> str:
    """What the methods find similar, in a sentence, and how sure it is, in a paragraph below it.

    Empty where nothing was measured.

    With labels: how often the nearest text has the same one, and whether the best method differs
    from every other in that beyond chance (`paired_share_interval`). Texts without a label are left
    out.
    Without: how far the methods' rankings of the pairs agree.

    Args:
        similarities: of the same texts by each method; those with fewer than two texts done are
            left out.
        labels: by name, a label for every text.
    """
    measured = _spoken(
        [similarity for similarity in similarities if similarity.has_vector.sum() > 1]
    )
    if not measured:
        return ""
    shared = {
        name: values
        for name, values in (labels or {}).items()
        if name in usable_labels(labels or {})
        and all(_labelled(similarity, values).sum() > 1 for similarity in measured)
    }
    if shared:
        return _by_labels(measured, dict(list(shared.items())[:2]))
    if len(measured) > 1:
        return describe_agreement(*measured) if len(measured) == 2 else _agreements(measured)
    return _by_extremes(measured[0])


def _spoken(similarities: Sequence[Similarity]) -> list[Similarity]:
    names = short_labels([similarity.method for similarity in similarities])
    return [
        replace(similarity, method=name)
        for similarity, name in zip(similarities, names, strict=True)
    ]


def _by_labels(similarities: Sequence[Similarity], labels: Mapping[str, Sequence[str]]) -> str:
    sentences, verdicts = [], []
    for name, values in labels.items():
        shares = [nearest_shares(similarity, values) for similarity in similarities]
        best, *rest = sorted(range(len(similarities)), key=lambda place: -shares[place].mean())
        put = _how_many(float(shares[best].mean()))
        comparison = ", ".join(
            f"{similarities[index].method}: {shares[index].mean():.0%}" for index in rest
        )
        sentences.append(
            f"{similarities[best].method} puts {put} next to one of the same {name}"
            + f" ({comparison})" * bool(rest)
        )
        verdicts.append(_best(name, similarities, shares) if rest else "")
    return "\n\n".join(filter(None, [f"{'; '.join(sentences)}.", " ".join(filter(None, verdicts))]))


def _how_many(share: float) -> str:
    if share in (0, 1):
        return "every text" if share else "no text"
    return f"{share:.0%} of texts"


def _best(name: str, similarities: Sequence[Similarity], shares: Sequence[np.ndarray]) -> str:
    """Which method keeps a label together best, if the texts decide that."""
    if len({len(hits) for hits in shares}) > 1:  # some are still under way
        return ""
    best, *rest = sorted(range(len(shares)), key=lambda place: -shares[place].mean())
    for rival in rest:
        if paired_share_interval(shares[best], shares[rival])[0] <= 0:
            return (
                f"On the {name}, {many(len(shares[best]), 'text')} do not decide between "
                f"{similarities[best].method} and {similarities[rival].method}."
            )
    return f"{similarities[best].method} keeps the {name} together best."


def describe_agreement(first: Similarity, second: Similarity) -> str:
    """How far two methods' rankings of the pairs agree, and on which texts least.

    Spearman's coefficient over the pairs that both have done; from 0.8 they agree, from 0.5 in
    part.
    """
    first, second = _spoken([first, second])
    correlation = float(rank_correlations([first, second])[0, 1])
    n_pairs = int(np.isfinite(first.of_pairs + second.of_pairs).sum())
    if not np.isfinite(correlation) or n_pairs < FEWEST_PAIRS:
        return f"{first.method} and {second.method} cannot be compared on so few different pairs."
    relation = "agree" if correlation >= AGREE else "agree in part"
    if correlation < IN_PART:
        relation = "see different things"
    sentence = (
        f"{first.method} and {second.method} {relation}: their rankings of {many(n_pairs, 'pair')} "
        f"have a correlation of {number(correlation, '.2f')}."
    )
    return f"{sentence}{_describe_difference(first, second, ' They differ')}"


def _agreements(similarities: Sequence[Similarity]) -> str:
    """Which two of several methods agree most, and which least."""
    correlations = rank_correlations(similarities)
    pairs = _correlated(correlations)
    if len(pairs) < 2:
        return describe_agreement(*(similarities[place] for place in least_alike(similarities)))
    n_pairs = int(np.isfinite(sum(similarity.of_pairs for similarity in similarities)).sum())
    (first, second), (third, fourth) = (
        [similarities[place] for place in pairs[index]] for index in (0, -1)
    )
    low, high = (number(float(correlations[pairs[index]]), ".2f") for index in (0, -1))
    rankings = f"their rankings of {many(n_pairs, 'pair')}"
    difference = _describe_difference(first, second, f" {first.method} and {second.method} differ")
    if low == high:
        sentence = f"Any two methods agree about equally: {rankings} have a correlation of {low}."
        return f"{sentence}{difference}"
    return (
        f"{third.method} and {fourth.method} agree most ({high}) and {first.method} and "
        f"{second.method} least ({low}), by the correlation of {rankings}.{difference}"
    )


def _correlated(correlations: np.ndarray) -> list[tuple[int, int]]:
    """Places of every two methods whose rankings have a correlation, the lowest first."""
    pairs = list(zip(*np.triu_indices(len(correlations), k=1), strict=True))
    defined = [(int(a), int(b)) for a, b in pairs if np.isfinite(correlations[a, b])]
    return sorted(defined, key=lambda pair: correlations[pair])


def least_alike(similarities: Sequence[Similarity]) -> tuple[int, int]:
    """Places of the two methods that agree least; of the first two where that is not known."""
    return next(iter(_correlated(rank_correlations(similarities))), (0, 1))


def furthest_apart(first: Similarity, second: Similarity) -> tuple[int, int] | None:
    """The two texts whose ranks by two methods differ most; None where no pair has both ranks."""
    i, j = pair_indices(len(first.texts))
    apart = np.abs(first.ranks[i, j] - second.ranks[i, j])
    if not np.isfinite(apart).any():
        return None
    widest = int(np.nanargmax(apart))
    return int(i[widest]), int(j[widest])


def _describe_difference(first: Similarity, second: Similarity, begin: str) -> str:
    """On which texts two methods differ most; empty where they do on none."""
    pair = furthest_apart(first, second)
    ranks = (
        [(similarity.method, similarity.ranks[pair]) for similarity in (first, second)]
        if pair
        else []
    )
    if pair is None or ranks[0][1] == ranks[1][1]:
        return ""
    places = ", ".join(f"{rank:,.0f} by {method}" for method, rank in ranks)
    return f"{begin} most on texts {pair[0] + 1} and {pair[1] + 1}: rank {places}."


def describe_spread(similarities: Sequence[Similarity]) -> str:
    """Which method sets the pairs furthest apart, and which least; of each, two texts are done."""
    wide = {
        similarity.method: float(np.nanstd(similarity.of_pairs))
        for similarity in _spoken(similarities)
    }
    widest, narrowest = max(wide, key=wide.__getitem__), min(wide, key=wide.__getitem__)
    high, low = f"{wide[widest]:.2f}", f"{wide[narrowest]:.2f}"
    if len(wide) == 1:
        return f"{widest} spreads the pairs with a standard deviation of {high}."
    if high == low:
        subject = "Both" if len(wide) == 2 else "All"
        return f"{subject} methods spread the pairs about equally (standard deviation {high})."
    return (
        f"{widest} spreads the pairs widest (standard deviation {high}), {narrowest} least ({low})."
    )


def _by_extremes(similarity: Similarity) -> str:
    i, j = pair_indices(len(similarity.texts))
    products = similarity.products[i, j]
    finite = np.flatnonzero(np.isfinite(products))
    highest, lowest = finite[products[finite].argmax()], finite[products[finite].argmin()]
    sentence = (
        f"By {similarity.method}, texts {i[highest] + 1} and {j[highest] + 1} are most similar "
        f"({number(float(products[highest]), '.2f')})"
    )
    if len(finite) == 1:
        return f"{sentence}."
    if products[highest] == products[lowest]:
        value = number(float(products[highest]), ".2f")
        pairs = many(len(finite), "pair")
        return f"By {similarity.method}, all {pairs} are equally similar ({value})."
    return (
        f"{sentence}, texts {i[lowest] + 1} and {j[lowest] + 1} least "
        f"({number(float(products[lowest]), '.2f')})."
    )
