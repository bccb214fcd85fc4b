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
        shares = [
            (name, f"**{percent(by_method[0].mean())}**", "") for name, by_method in hits.items()
        ]
        return (
            f"Guessed from {_nearest(k)} by **{methods[0]}**, a text's {_rights(shares, texts)}. "
            f"{_always(baselines, hits)}"
        )
    compared = [_compare(name, first, second) for name, (first, second) in hits.items()]
    decided = [comparison for comparison in compared if comparison.better is not None]
    undecided = [comparison for comparison in compared if comparison.better is None]
    if not decided:
        level = _rights(
            [_compare_shares(comparison, 0, methods, named=True) for comparison in undecided], texts
        )
        return (
            f"This corpus does not decide between **{methods[0]}** and **{methods[1]}**: "
            f"{guessed} {level}, but {_doubt(len(undecided))}."
        )
    winners = list(
        dict.fromkeys(comparison.better for comparison in decided if comparison.better is not None)
    )
    claims = [
        f"**{methods[winner]}** "
        + f"sorts {texts} better " * (winner == winners[0])
        + f"by {joined([pair.label for pair in decided if pair.better == winner])}"
        for winner in winners
    ]
    right = [
        _compare_shares(comparison, winner, methods, named=len(winners) > 1, mark="**")
        for winner in winners
        for comparison in decided
        if comparison.better == winner
    ]
    sentence = f"{', '.join(claims)}: {guessed} {_rights(right, 'texts')}."
    if undecided:
        doubtful = [
            f"{comparison.label} ({methods[0]}: {percent(comparison.shares[0])}, "
            f"{methods[1]}: {percent(comparison.shares[1])})"
            for comparison in undecided
        ]
        sentence += f" This corpus does not decide on {joined(doubtful)}: {_doubt(len(undecided))}."
    return sentence


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
    for name, by_method in hits.items():
        shares = [float(method_hits.mean()) for method_hits in by_method]
        order = sorted(range(len(by_method)), key=lambda place: -shares[place])
        best = [place for place in order if shares[place] == max(shares)]
        doubtful = [
            f"{methods[rival]}, {percent(shares[rival])}"
            for rival in order[len(best) :]
            if any(
                paired_share_interval(by_method[winner], by_method[rival])[0] <= 0
                for winner in best
            )
        ]
        share = f"{percent(max(shares))}{'' if parts else ' of texts'}"
        doubt = f"; not clearly more than {joined(doubtful)}" if doubtful else ""
        claim, owners = " is right most often", joined([f"**{methods[place]}**" for place in best])
        if len(best) == len(by_method):
            claim, owners = (
                " is right equally often",
                f"{'both' if len(by_method) == 2 else 'all'} methods",
            )
        parts.append(f"{name}{claim * (claim != before)} by {owners} ({share}{doubt})")
        before = claim
    accuracies = joined([parts[0], *(f"its {part}" for part in parts[1:])])
    return f"Guessed from {_nearest(k)}, a text's {accuracies}. {_always(baselines, hits)}"


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
    manner = "in much the same way" if share >= ALIKE else "differently"
    return (
        f"**{first}** and **{second}** group {texts} {manner}: they share **{percent(share)}** of "
        f"a text's {_nearest(k).removeprefix('its ')}."
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
        sample = f"these {many(n_texts, 'text')}"
        return f"By **{method}**, {sample} form no clusters: no group is dense enough."
    largest = [
        f"**{name}** ({size:,})" for name, size in zip(names[:NAMED], sizes[:NAMED], strict=True)
    ]
    beginning = "" if len(names) <= NAMED else "the largest are "
    return (
        f"By **{method}**, {sum(sizes):,} of {many(n_texts, 'text')} form "
        f"{many(len(names), 'cluster')}: {beginning}{joined(largest)}."
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
    undecided = []
    for method, of_near in zip(methods, labels, strict=True):
        counts = Counter(label for label in of_near if label)
        if not counts:
            continue
        k = len(of_near)
        (label, n), *runners_up = counts.most_common(2)
        is_level = bool(runners_up) and runners_up[0][1] == n
        if n >= REAL * k and not is_level:
            near.setdefault(label, []).append(
                f"{method} ({n if n < k else 'all'} of {_nearest(k)})"
            )
        elif counts.total() < REAL * k:
            verb = "has" if counts.total() == 1 else "have"
            undecided.append((method, f"only {counts.total()} of {_nearest(k)} {verb} one"))
        else:
            undecided.append((method, f"{_nearest(k)} have {len(counts)} different ones"))
    parts = [f"**{label}** by {joined(methods)}" for label, methods in near.items()]
    sentences = [f"“{sentence}” lands near {name} {joined(parts)}."] if parts else []
    for method, reason in undecided:
        subject = "it" if sentences else f"“{sentence}”"
        sentences.append(f"By {method}, {subject} lands near no single {name}: {reason}.")
    return " ".join(sentences)


def _compare(name: str, first: np.ndarray, second: np.ndarray) -> _Compared:
    low, high = paired_share_interval(first, second)
    better = None if low <= 0 <= high else int(high < 0)
    return _Compared(name, better, (float(first.mean()), float(second.mean())))


def _compare_shares(
    comparison: _Compared, place: int, methods: Sequence[str], *, named: bool, mark: str = ""
) -> tuple[str, str, str]:
    """A label, the share of the method at a place, and behind it the other's, for `_rights`."""
    method_phrase = f" by {methods[place]}" * named
    rival_phrase = f" ({methods[1 - place]}: {percent(comparison.shares[1 - place])})"
    return (
        comparison.label,
        f"{mark}{percent(comparison.shares[place])}{mark}",
        method_phrase + rival_phrase,
    )


def _nearest(k: int) -> str:
    """``its nearest text``, ``its ten nearest texts``."""
    if k == 1:
        return "its nearest text"
    return f"its {counted(k)} nearest texts"


def _rights(right: Sequence[tuple[str, str, str]], texts: str) -> str:
    """``topic is right for … of texts and its form for …``: labels, shares, what follows them."""
    (label, share, suffix), *rest = right
    parts = [f"{label} is right for {share} of {texts}{suffix}"]
    return joined(
        [*parts, *(f"its {name} for {other_share}{after}" for name, other_share, after in rest)]
    )


def _always(baselines: Mapping[str, float], names: Iterable[str]) -> str:
    """What always guessing the most frequent label would reach."""
    first, *rest = names
    parts = [f"the most frequent {first} would be right for {percent(baselines[first])}"]
    parts += [f"the most frequent {name} for {percent(baselines[name])}" for name in rest]
    return f"Always guessing {joined(parts)}."


def _doubt(n: int) -> str:
    if n == 1:
        return "the 95% interval of the difference includes 0"
    return "the 95% intervals of the differences include 0"
