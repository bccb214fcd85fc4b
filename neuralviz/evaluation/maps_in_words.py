"""What maps of a corpus show, as the sentences above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import counted, joined, many, percent

ALIKE = 0.5  # share of the neighbours in common from which two methods are said to agree
REAL = 0.5  # share of the nearest texts that a label needs for a sentence to be near it
NAMED = 4  # clusters in a sentence


@dataclass(frozen=True, eq=False)
class _Compared:
    """Two methods on one label; ``better`` is None where it is not decided.

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
    texts: str = "texts",
) -> str:
    """How often the label of a text can be guessed from its ``k`` nearest, by one method or two.

    Args:
        methods: names of one or two, as markdown.
        hits: by label, as markdown, and by method: [text] whether its neighbours vote for it.
        baselines: by label, the accuracy of always saying the most frequent one.
        k: neighbours that vote.
        texts: what is counted, such as ``all 480 texts`` where some are not shown.

    Returns:
        One or two sentences of markdown; empty where there is no label.
    """
    if not hits:
        return ""
    guessed = f"guessed from {_nearest(k)}, a text's"
    if len(methods) == 1:
        shares = [(name, f"**{percent(of[0].mean())}**", "") for name, of in hits.items()]
        return (
            f"Guessed from {_nearest(k)} by **{methods[0]}**, a text's {_rights(shares, texts)}. "
            f"{_always(baselines, hits)}"
        )
    compared = [_compare(name, first, second) for name, (first, second) in hits.items()]
    decided = [one for one in compared if one.better is not None]
    undecided = [one for one in compared if one.better is None]
    if not decided:
        level = _rights([_beside(one, 0, methods, named=True) for one in undecided], texts)
        return (
            f"This corpus does not decide between **{methods[0]}** and **{methods[1]}**: "
            f"{guessed} {level}, but {_doubt(len(undecided))}."
        )
    winners = list(dict.fromkeys(one.better for one in decided if one.better is not None))
    claims = [
        f"**{methods[winner]}** "
        + f"sorts {texts} better " * (winner == winners[0])
        + f"by {joined([one.label for one in decided if one.better == winner])}"
        for winner in winners
    ]
    right = [
        _beside(one, winner, methods, named=len(winners) > 1, mark="**")
        for winner in winners
        for one in decided
        if one.better == winner
    ]
    said = f"{', '.join(claims)}: {guessed} {_rights(right, 'texts')}."
    if undecided:
        doubtful = [
            f"{one.label} ({methods[0]}: {percent(one.shares[0])}, "
            f"{methods[1]}: {percent(one.shares[1])})"
            for one in undecided
        ]
        said += f" This corpus does not decide on {joined(doubtful)}: {_doubt(len(undecided))}."
    return said


def accuracy_point(
    methods: Sequence[str],
    hits: Mapping[str, Sequence[np.ndarray]],
    baselines: Mapping[str, float],
    k: int,
) -> str:
    """By which of several methods the labels of texts are guessed best, and what guessing reaches.

    Args:
        methods: names, as markdown.
        hits, baselines, k: as of `neighbours_point`.
    """
    if not hits or len(methods) == 1:
        return neighbours_point(methods, hits, baselines, k)
    parts: list[str] = []
    before = ""
    for name, of in hits.items():
        shares = [float(one.mean()) for one in of]
        order = sorted(range(len(of)), key=lambda place: -shares[place])
        best = [place for place in order if shares[place] == max(shares)]
        doubtful = [
            f"{methods[other]}, {percent(shares[other])}"
            for other in order[len(best) :]
            if any(paired_share_interval(of[one], of[other])[0] <= 0 for one in best)
        ]
        share = f"{percent(max(shares))}{'' if parts else ' of texts'}"
        beside = f"; not clearly more than {joined(doubtful)}" if doubtful else ""
        how, whose = " is right most often", joined([f"**{methods[one]}**" for one in best])
        if len(best) == len(of):
            how, whose = " is right equally often", f"{'both' if len(of) == 2 else 'all'} methods"
        parts.append(f"{name}{how * (how != before)} by {whose} ({share}{beside})")
        before = how
    said = joined([parts[0], *(f"its {part}" for part in parts[1:])])
    return f"Guessed from {_nearest(k)}, a text's {said}. {_always(baselines, hits)}"


def agreement_point(
    methods: Sequence[str], share: float, k: int, texts: str = "these texts"
) -> str:
    """How far two methods agree on what is near, for a corpus without labels.

    Args:
        methods: names of two, as markdown.
        share: 0 … 1 of the ``k`` nearest texts that both have, on average.
        k: neighbours that are compared.
        texts: that are grouped, such as ``all 480 texts`` where some are not shown.
    """
    first, second = methods
    how = "in much the same way" if share >= ALIKE else "differently"
    return (
        f"**{first}** and **{second}** group {texts} {how}: they share **{percent(share)}** of a "
        f"text's {_nearest(k).removeprefix('its ')}."
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
        these = f"these {many(n_texts, 'text')}"
        return f"By **{method}**, {these} form no clusters: no group is dense enough."
    largest = [
        f"**{name}** ({size:,})" for name, size in zip(names[:NAMED], sizes[:NAMED], strict=True)
    ]
    which = "" if len(names) <= NAMED else "the largest are "
    return (
        f"By **{method}**, {sum(sizes):,} of {many(n_texts, 'text')} form "
        f"{many(len(names), 'cluster')}: {which}{joined(largest)}."
    )


def landing_point(
    sentence: str, methods: Sequence[str], labels: Sequence[Sequence[str]], name: str
) -> str:
    """Among which texts a new sentence lands: the label of most of those near it, half or more.

    Args:
        sentence: as markdown, shortened.
        methods: names, as markdown.
        labels: by method, the labels of the texts nearest to the sentence, as markdown; ``""`` is
            none.
        name: of the labels, as markdown.

    Returns:
        Sentences of markdown; empty where no text near it has a label.
    """
    near: dict[str, list[str]] = {}
    between = []
    for method, of_near in zip(methods, labels, strict=True):
        counts = Counter(label for label in of_near if label)
        if not counts:
            continue
        k = len(of_near)
        (label, n), *others = counts.most_common(2)
        is_level = bool(others) and others[0][1] == n
        if n >= REAL * k and not is_level:
            near.setdefault(label, []).append(
                f"{method} ({n if n < k else 'all'} of {_nearest(k)})"
            )
        elif counts.total() < REAL * k:
            have = "has" if counts.total() == 1 else "have"
            between.append((method, f"only {counts.total()} of {_nearest(k)} {have} one"))
        else:
            between.append((method, f"{_nearest(k)} have {len(counts)} different ones"))
    parts = [f"**{label}** by {joined(methods)}" for label, methods in near.items()]
    said = [f"“{sentence}” lands near {name} {joined(parts)}."] if parts else []
    for method, why in between:
        what = "it" if said else f"“{sentence}”"
        said.append(f"By {method}, {what} lands near no single {name}: {why}.")
    return " ".join(said)


def _compare(name: str, first: np.ndarray, second: np.ndarray) -> _Compared:
    low, high = paired_share_interval(first, second)
    better = None if low <= 0 <= high else int(high < 0)
    return _Compared(name, better, (float(first.mean()), float(second.mean())))


def _beside(
    one: _Compared, place: int, methods: Sequence[str], *, named: bool, mark: str = ""
) -> tuple[str, str, str]:
    """A label, the share of the method at a place, and behind it the other's, for `_rights`."""
    by = f" by {methods[place]}" * named
    other = f" ({methods[1 - place]}: {percent(one.shares[1 - place])})"
    return one.label, f"{mark}{percent(one.shares[place])}{mark}", by + other


def _nearest(k: int) -> str:
    """``its nearest text``, ``its ten nearest texts``."""
    if k == 1:
        return "its nearest text"
    return f"its {counted(k)} nearest texts"


def _rights(right: Sequence[tuple[str, str, str]], texts: str) -> str:
    """``topic is right for … of texts and its form for …``: labels, shares, what follows them."""
    (label, share, more), *others = right
    parts = [f"{label} is right for {share} of {texts}{more}"]
    return joined([*parts, *(f"its {name} for {one}{after}" for name, one, after in others)])


def _always(baselines: Mapping[str, float], names: Iterable[str]) -> str:
    """What always guessing the most frequent label would reach."""
    first, *others = names
    said = [f"the most frequent {first} would be right for {percent(baselines[first])}"]
    said += [f"the most frequent {name} for {percent(baselines[name])}" for name in others]
    return f"Always guessing {joined(said)}."


def _doubt(n: int) -> str:
    if n == 1:
        return "the 95% interval of the difference includes 0"
    return "the 95% intervals of the differences include 0"
