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
        hits: by label, as markdown, and by method: [text] whether its ``k`` neighbours vote for it.
        baselines: by label, the accuracy of always saying the most frequent one.
        texts, origin: what is counted: “all 480 texts”, or what follows their number.
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

    They have on average a share, 0 … 1, of the ``k`` nearest texts in common. Names are markdown.
    """
    first, second = methods
    manner = "in much the same way" if share >= ALIKE else "differently"
    overlap = f"share **{percent(share)}** of a text's {_nearest(k)}"
    if k == 1:
        overlap = f"agree on the nearest text for **{percent(share)}** of texts"
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
    """Among which texts a new sentence lands: the label of half or more of those near it.

    A method for which two labels are equally frequent names neither. Of the ``labels`` of the
    nearest texts, by method, ``""`` is none. All is markdown.
    """
    near = []
    for method, labels_near in zip(methods, labels, strict=True):
        counts, k = Counter(filter(None, labels_near)).most_common(2), len(labels_near)
        (label, n), (_, next_n) = [*counts, ("", 0), ("", 0)][:2]
        if n > next_n and n >= REAL * k:
            share = f"{counted(n)} of its {_nearest(k)}"
            if n == k:
                share = "its nearest text" if k == 1 else f"all of its {_nearest(k)}"
            near.append(f"{name} **{label}** by {method} ({share})")
    return f"“{sentence}” lands near {joined(near)}." if near else ""


def _nearest(k: int) -> str:
    return "nearest text" if k == 1 else f"{counted(k)} nearest texts"
