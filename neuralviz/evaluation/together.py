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
    given = {name: [value for value in values if value] for name, values in labels.items()}
    return [
        name
        for name, values in given.items()
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
    return similarity.done & np.array([bool(label) for label in labels])


def kept_together(
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
    if len(done) > 1:
        return agreement(*done) if len(done) == 2 else _agreements(done)
    return _by_extremes(done[0])


def _spoken(similarities: Sequence[Similarity]) -> list[Similarity]:
    names = short_labels([one.method for one in similarities])
    return [replace(one, method=name) for one, name in zip(similarities, names, strict=True)]


def _by_labels(done: Sequence[Similarity], labels: Mapping[str, Sequence[str]]) -> str:
    said, verdicts = [], []
    for name, values in labels.items():
        shares = [nearest_shares(one, values) for one in done]
        best, *others = sorted(range(len(done)), key=lambda place: -shares[place].mean())
        put = _how_many(float(shares[best].mean()))
        beside = ", ".join(f"{done[one].method}: {shares[one].mean():.0%}" for one in others)
        said.append(
            f"{done[best].method} puts {put} next to one of the same {name}"
            + f" ({beside})" * bool(others)
        )
        verdicts.append(_best(name, done, shares) if others else "")
    return "\n\n".join(filter(None, [f"{'; '.join(said)}.", " ".join(filter(None, verdicts))]))


def _how_many(share: float) -> str:
    if share in (0, 1):
        return "every text" if share else "no text"
    return f"{share:.0%} of texts"


def _best(name: str, done: Sequence[Similarity], shares: Sequence[np.ndarray]) -> str:
    """Which method keeps a label together best, if the texts decide that."""
    if len({len(of) for of in shares}) > 1:  # some are still under way
        return ""
    best, *others = sorted(range(len(shares)), key=lambda place: -shares[place].mean())
    for other in others:
        if paired_share_interval(shares[best], shares[other])[0] <= 0:
            return (
                f"On the {name}, {many(len(shares[best]), 'text')} do not decide between "
                f"{done[best].method} and {done[other].method}."
            )
    return f"{done[best].method} keeps the {name} together best."


def agreement(first: Similarity, second: Similarity) -> str:
    """How far two methods' rankings of the pairs agree, and on which texts least.

    Spearman's coefficient over the pairs that both have done; from 0.8 they agree, from 0.5 in
    part.
    """
    first, second = _spoken([first, second])
    correlation = float(rank_correlations([first, second])[0, 1])
    n_pairs = int(np.isfinite(first.of_pairs + second.of_pairs).sum())
    if not np.isfinite(correlation) or n_pairs < FEWEST_PAIRS:
        return f"{first.method} and {second.method} cannot be compared on so few different pairs."
    how = "agree" if correlation >= AGREE else "agree in part"
    if correlation < IN_PART:
        how = "see different things"
    said = (
        f"{first.method} and {second.method} {how}: their rankings of {many(n_pairs, 'pair')} "
        f"have a correlation of {number(correlation, '.2f')}."
    )
    return f"{said}{_where(first, second, ' They differ')}"


def _agreements(done: Sequence[Similarity]) -> str:
    """Which two of several methods agree most, and which least."""
    correlations = rank_correlations(done)
    pairs = _correlated(correlations)
    if len(pairs) < 2:
        return agreement(*(done[place] for place in least_alike(done)))
    n_pairs = int(np.isfinite(sum(one.of_pairs for one in done)).sum())
    (first, second), (third, fourth) = ([done[one] for one in pairs[at]] for at in (0, -1))
    low, high = (number(float(correlations[pairs[at]]), ".2f") for at in (0, -1))
    rankings = f"their rankings of {many(n_pairs, 'pair')}"
    where = _where(first, second, f" {first.method} and {second.method} differ")
    if low == high:
        said = f"Any two methods agree about equally: {rankings} have a correlation of {low}."
        return f"{said}{where}"
    return (
        f"{third.method} and {fourth.method} agree most ({high}) and {first.method} and "
        f"{second.method} least ({low}), by the correlation of {rankings}.{where}"
    )


def _correlated(correlations: np.ndarray) -> list[tuple[int, int]]:
    """Places of every two methods whose rankings have a correlation, the lowest first."""
    pairs = list(zip(*np.triu_indices(len(correlations), k=1), strict=True))
    known = [(int(a), int(b)) for a, b in pairs if np.isfinite(correlations[a, b])]
    return sorted(known, key=lambda pair: correlations[pair])


def least_alike(similarities: Sequence[Similarity]) -> tuple[int, int]:
    """Places of the two methods that agree least; of the first two where that is not known."""
    return next(iter(_correlated(rank_correlations(similarities))), (0, 1))


def furthest_apart(first: Similarity, second: Similarity) -> tuple[int, int] | None:
    """The two texts whose ranks by two methods differ most; None where no pair has both ranks."""
    i, j = pair_indices(len(first.texts))
    apart = np.abs(first.ranks[i, j] - second.ranks[i, j])
    if not np.isfinite(apart).any():
        return None
    most = int(np.nanargmax(apart))
    return int(i[most]), int(j[most])


def _where(first: Similarity, second: Similarity, begin: str) -> str:
    """On which texts two methods differ most; empty where they do on none."""
    pair = furthest_apart(first, second)
    ranks = [(one.method, one.ranks[pair]) for one in (first, second)] if pair else []
    if pair is None or ranks[0][1] == ranks[1][1]:
        return ""
    places = ", ".join(f"{rank:,.0f} by {method}" for method, rank in ranks)
    return f"{begin} most on texts {pair[0] + 1} and {pair[1] + 1}: rank {places}."


def spread(similarities: Sequence[Similarity]) -> str:
    """Which method sets the pairs furthest apart, and which least; of each, two texts are done."""
    wide = {one.method: float(np.nanstd(one.of_pairs)) for one in _spoken(similarities)}
    widest, narrowest = max(wide, key=wide.__getitem__), min(wide, key=wide.__getitem__)
    high, low = f"{wide[widest]:.2f}", f"{wide[narrowest]:.2f}"
    if len(wide) == 1:
        return f"{widest} spreads the pairs with a standard deviation of {high}."
    if high == low:
        whose = "Both" if len(wide) == 2 else "All"
        return f"{whose} methods spread the pairs about equally (standard deviation {high})."
    return (
        f"{widest} spreads the pairs widest (standard deviation {high}), {narrowest} least ({low})."
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
    if len(finite) == 1:
        return f"{said}."
    if products[most] == products[least]:
        value = number(float(products[most]), ".2f")
        return f"By {one.method}, all {many(len(finite), 'pair')} are equally similar ({value})."
    return (
        f"{said}, texts {i[least] + 1} and {j[least] + 1} least "
        f"({number(float(products[least]), '.2f')})."
    )
