"""What maps of a corpus show: sentences of markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from neuralviz.headlines import Measured, rank_hits, voters
from neuralviz.words import counted, joined, many, percent

ALIKE = 0.5  # share of the neighbours in common from which two methods are said to agree
REAL = 0.5  # share of the nearest texts that a label needs for a sentence to be near it
NAMED = 4  # clusters in a sentence


def describe_labels(
    methods: Sequence[str],
    hits: Mapping[str, Sequence[np.ndarray]],
    baselines: Mapping[str, float],
    k: int,
    texts: str = "",
    origin: str = "",
) -> str:
    """By which method the nearest texts find the labels best, a sentence a column of labels.

    Args:
        methods: names, as markdown.
        hits: by label, as markdown, and by method: [text] whether its neighbours vote for it.
        baselines: by label, the accuracy of always saying the most frequent one.
        k: neighbours that vote.
        texts: what is counted, such as “all 480 texts” where some are not shown.
        origin: of a sample, what follows its number of texts: “ drawn at random”.
    """
    names = [f"**{method}**" for method in methods]
    sentences = []
    for label, by_method in hits.items():
        guess = f"{baselines[label]:.1%}"
        guessing = f"always guessing the most frequent {label} reaches {guess}"
        sample = texts or many(len(by_method[0]), "text") + origin
        clause = f"{voters(k)} for the right {label} of"
        headline = rank_hits(Measured(clause, sample, "of", True, guessing), names, by_method)
        sentences.append(headline.write_sentence())
        if len(methods) > 1 and headline.best.value <= baselines[label]:
            sentences.append(f"Always guessing the most frequent {label} reaches {guess}.")
    return " ".join(sentences)


def describe_agreement(
    methods: Sequence[str], share: float, k: int, texts: str = "these texts"
) -> str:
    """How far two methods agree on what is near, for a corpus without labels.

    Args:
        methods: names of two, as markdown.
        share: 0 … 1 of the ``k`` nearest texts that both have, on average.
        k: neighbours that are compared.
        texts: that are grouped, such as “all 480 texts” where some are not shown.
    """
    first, second = methods
    manner = "in much the same way" if share >= ALIKE else "differently"
    overlap = f"share **{percent(share)}** of a text's {_nearest(k)}"
    if k == 1:
        overlap = f"agree on the nearest text for **{percent(share)}** of texts"
    return f"**{first}** and **{second}** group {texts} {manner}: they {overlap}."


def describe_clusters(method: str, names: Sequence[str], sizes: Sequence[int], n_texts: int) -> str:
    """The themes of a corpus: its clusters on a map, the largest first.

    Args:
        method: as markdown.
        names: of the clusters, as markdown.
        sizes: texts in each.
        n_texts: on the map.
    """
    if not names:
        texts = many(n_texts, "text")
        return f"By **{method}**, these {texts} form no clusters: no group is dense enough."
    largest = [f"**{name}** ({size:,})" for name, size in zip(names, sizes, strict=True)][:NAMED]
    beginning = "" if len(names) <= NAMED else "the largest are "
    return (
        f"By **{method}**, {sum(sizes):,} of {many(n_texts, 'text')} form "
        f"{many(len(names), 'cluster')}: {beginning}{joined(largest)}."
    )


def describe_landing(
    sentence: str, methods: Sequence[str], labels: Sequence[Sequence[str]], name: str
) -> str:
    """Among which texts a new sentence lands: the label of most of those near it, half or more.

    A method is left out where fewer than half of the texts near the sentence have a label.

    Args:
        sentence: as markdown, shortened.
        methods: names, as markdown.
        labels: by method, the labels of the texts nearest to the sentence, as markdown; ``""`` is
            none.
        name: of the labels, as markdown.
    """
    near, undecided = [], []
    for method, labels_near in zip(methods, labels, strict=True):
        counts = Counter(filter(None, labels_near))
        fewest = REAL * len(labels_near)
        if counts.total() < max(1, fewest):
            continue
        (label, n), *next_labels = counts.most_common(2)
        if n < fewest or (next_labels and next_labels[0][1] == n):
            undecided.append(method)
        else:
            near.append(f"{name} **{label}** by {method} ({_count_nearest(n, len(labels_near))})")
    several = f"among texts of more than one {name}"
    if not near:
        return f"By {joined(undecided)}, “{sentence}” lands {several}." if undecided else ""
    ending = f"; by {joined(undecided)}, {several}" if undecided else ""
    return f"“{sentence}” lands near {joined(near)}{ending}."


def _nearest(k: int) -> str:
    return "nearest text" if k == 1 else f"{counted(k)} nearest texts"


def _count_nearest(n: int, k: int) -> str:
    if n == k:
        return "its nearest text" if k == 1 else f"all of its {_nearest(k)}"
    return f"{counted(n)} of its {_nearest(k)}"
