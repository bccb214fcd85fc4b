"""What maps of a corpus show: sentences of markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from neuralviz.headlines import Measured, predict_labels, rank_hits, write_values
from neuralviz.words import joined, many, percent

ALIKE = 0.5  # share of the neighbours in common from which two methods are said to agree
REAL = 0.5  # share of the nearest texts that a label needs for a sentence to be near it
NAMED = 4  # clusters in a sentence


def describe_label(
    methods: Sequence[str],  # markdown
    label: str,  # column of labels, markdown
    hits: Sequence[np.ndarray],  # by method: [text] is the vote right?
    baseline: float,  # accuracy of always saying the most frequent label
    k: int,
    origin: str = "",  # follows the number of texts, such as “ drawn at random”
) -> str:
    """By which method the nearest texts predict a label best."""
    names = [f"**{method}**" for method in methods]
    guesser = f"always guessing the most frequent {label}"
    guessing = f"{guesser} reaches {write_values([baseline], is_share=True)[0]}"
    sample = many(len(hits[0]), "text") + origin
    clause = predict_labels(label, k)
    share = Measured(clause, sample, "of", True, guessing, guesser, baseline)
    return rank_hits(share, names, hits).write_sentence()


def describe_agreement(methods: Sequence[str], share: float, k: int, texts: str) -> str:
    """How far two methods agree: the mean share, 0 … 1, of ``k`` nearest texts in common."""
    first, second = methods
    manner = "in much the same way" if share >= ALIKE else "differently"
    overlap = f"share **{percent(share)}** of a text's {many(k, 'nearest text')}"
    return f"**{first}** and **{second}** group {texts} {manner}: they {overlap}."


def describe_clusters(method: str, names: Sequence[str], sizes: Sequence[int], n_texts: int) -> str:
    """The themes of a corpus: its clusters on a map, the largest first; names are markdown."""
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
    """The label that half or more of the texts near a sentence have, by method; ``""`` is none."""
    near = []
    for method, labels_near in zip(methods, labels, strict=True):
        counts, k = Counter(filter(None, labels_near)).most_common(2), len(labels_near)
        (label, n), (_, next_n) = [*counts, ("", 0), ("", 0)][:2]
        if n > next_n and n >= REAL * k:
            verb = "has" if n == 1 else "have"
            nearest = f"{n} of its {many(k, 'nearest text')} {verb}"
            near.append(f"by {method}, {nearest} the {name} **{label}**")
    return f"“{sentence}”: {'; '.join(near)}." if near else ""
