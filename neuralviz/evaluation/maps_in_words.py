"""What maps of a corpus show, as the sentences above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralviz.evaluation.shares import paired_share_interval
from neuralviz.words import many

ALIKE = 0.5  # share of the neighbours in common from which two methods are said to agree
NAMED = 4  # clusters in a sentence
_DIGITS = {10: "ten"}
_DOUBT = "the 95% interval of the difference includes 0"


@dataclass(frozen=True, eq=False)
class _Compared:
    """Two methods on one label, the better one first; ``better`` is None where it is not decided.

    Attributes:
        label: what it is called.
        better: place of the better method.
        shares: 0 … 1 of the texts that were right, by method.
    """

    label: str
    better: int | None
    shares: tuple[float, float]


def neighbours_point(
    methods: Sequence[str],
    hits: Mapping[str, Sequence[np.ndarray]],
    baselines: Mapping[str, float],
    k: int,
) -> str:
    """What the ``k`` nearest texts say of labels, by one method or two.

    Args:
        methods: names of one or two, as markdown.
        hits: by label, as markdown, and by method: [text] whether its neighbours vote for it.
        baselines: by label, the accuracy of always saying the most frequent one.
        k: neighbours that vote.

    Returns:
        One or two sentences of markdown; empty where there is no label.
    """
    if not hits:
        return ""
    nearest = f"{_DIGITS.get(k, str(k))} nearest texts"
    if len(methods) == 1:
        right = [(name, f"**{of[0].mean():.0%}**", "") for name, of in hits.items()]
        guessed = _and([f"{baselines[name]:.0%}" for name in hits])
        return (
            f"By **{methods[0]}**, the {nearest} {_point_to(right)}. "
            f"Always saying the most frequent one would be right for {guessed}."
        )
    compared = [_compare(name, first, second) for name, (first, second) in hits.items()]
    decided = [one for one in compared if one.better is not None]
    undecided = [one for one in compared if one.better is None]
    if not decided:
        shares = [(one.label, _both(one.shares), "") for one in undecided]
        return (
            f"This corpus does not decide between **{methods[0]}** and **{methods[1]}**: "
            f"their {nearest} {_point_to(shares)}, and {_DOUBT}."
        )
    winners = list(dict.fromkeys(one.better for one in decided if one.better is not None))
    claims = [
        f"**{methods[winner]}** "
        + "sorts texts better " * (winner == winners[0])
        + f"by {_and([one.label for one in decided if one.better == winner])}"
        for winner in winners
    ]
    right = [
        (one.label, f"**{max(one.shares):.0%}**", f" against {min(one.shares):.0%}")
        for winner in winners
        for one in decided
        if one.better == winner
    ]
    whose = "the" if len(winners) > 1 else "its"
    said = f"{_and(claims, ', ')}: {whose} {nearest} {_point_to(right)}."
    if undecided:
        open_ones = _and([f"{one.label} ({_both(one.shares)})" for one in undecided])
        said += f" This corpus does not decide on {open_ones}: {_DOUBT}."
    return said


def agreement_point(methods: Sequence[str], share: float, k: int) -> str:
    """How far two methods agree on what is near, for a corpus without labels.

    Args:
        methods: names of two, as markdown.
        share: 0 … 1 of the ``k`` nearest texts that both have, on average.
        k: neighbours that are compared.
    """
    first, second = methods
    how = "in much the same way" if share >= ALIKE else "differently"
    return (
        f"**{first}** and **{second}** group these texts {how}: they share "
        f"**{share:.0%}** of a text's {_DIGITS.get(k, str(k))} nearest texts."
    )


def clusters_point(method: str, names: Sequence[str], sizes: Sequence[int], n_texts: int) -> str:
    """The themes of a corpus: its clusters on a map, the largest first.

    Args:
        method: as markdown.
        names: of the clusters, as markdown.
        sizes: texts in each.
        n_texts: on the map.
    """
    if not names:
        return f"By **{method}**, these {many(n_texts, 'text')} form no clusters."
    largest = [
        f"**{name}** ({size:,})" for name, size in zip(names[:NAMED], sizes[:NAMED], strict=True)
    ]
    which = "" if len(names) <= NAMED else "the largest are "
    return (
        f"By **{method}**, {sum(sizes):,} of {many(n_texts, 'text')} form "
        f"{many(len(names), 'cluster')}: {which}{_and(largest)}."
    )


def landing_point(
    sentence: str, methods: Sequence[str], labels: Sequence[Sequence[str]], name: str
) -> str:
    """Among which texts a new sentence lands, by the label that most of those near it have.

    Args:
        sentence: as markdown, shortened.
        methods: names, as markdown.
        labels: by method, the labels of the texts nearest to the sentence, as markdown; ``""`` is
            none.
        name: of the labels, as markdown.

    Returns:
        A sentence of markdown; empty where no text near it has a label.
    """
    parts = []
    for method, of_near in zip(methods, labels, strict=True):
        counts = Counter(label for label in of_near if label)
        if counts:
            label, n = counts.most_common(1)[0]
            parts.append(f"**{label}** by {method} ({n} of its {len(of_near)} nearest texts)")
    return f"“{sentence}” lands near {name} {_and(parts)}." if parts else ""


def _compare(name: str, first: np.ndarray, second: np.ndarray) -> _Compared:
    low, high = paired_share_interval(first, second)
    better = None if low <= 0 <= high else int(high < 0)
    return _Compared(name, better, (float(first.mean()), float(second.mean())))


def _point_to(right: Sequence[tuple[str, str, str]]) -> str:
    """``point to the right … for … of texts and …``, of labels, shares and what follows them."""
    (label, share, more), *others = right
    parts = [f"point to the right {label} for {share} of texts{more}"]
    return _and([*parts, *(f"to the right {name} for {one}{and_}" for name, one, and_ in others)])


def _both(shares: Sequence[float]) -> str:
    return " and ".join(f"{share:.0%}" for share in shares)


def _and(parts: Sequence[str], last: str = " and ") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}{last}{parts[-1]}"
