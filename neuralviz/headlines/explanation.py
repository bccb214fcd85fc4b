"""Which words make two texts similar: sentences of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from neuralviz.evaluation.explanation import Passages
from neuralviz.headlines import write_values
from neuralviz.words import joined, number

CANCELLING = (
    2.0  # sum of the contributions without their signs, over the cosine; above: they cancel
)
LEAST_SUM = 0.05  # smaller ones are written with another decimal


class NamedPairs(NamedTuple):
    """The contributions of pairs of words, or of sentences."""

    first: Sequence[str]  # names
    second: Sequence[str]
    contributions: np.ndarray  # [first + 1, second + 1]; the last belong to no word

    @classmethod
    def of_texts(cls, texts: Sequence[str], passages: Passages, *numbered: bool) -> NamedPairs:
        names = [
            [f"{n}. " * is_long + text[slice(*span)].strip() for n, span in enumerate(spans, 1)]
            for text, spans, is_long in zip(texts, passages.spans, numbered or (0, 0), strict=True)
        ]
        return cls(names[0], names[1], passages.contributions)

    @property
    def cosine(self) -> float:
        return float(self.contributions.sum())

    def strongest(self, n: int) -> list[tuple[str, str, float]]:
        """The ``n`` pairs of words with the largest contributions without their signs."""
        inner = self.contributions[:-1, :-1]
        order = np.argsort(-np.abs(inner), axis=None, kind="stable")[:n]
        places = zip(*np.unravel_index(order, inner.shape), strict=True)
        return [(self.first[i], self.second[j], float(inner[i, j])) for i, j in places]


def describe_words(by_method: Mapping[str, NamedPairs], *, are_equal: bool) -> str:
    """By each method, the word that adds most to a cosine; silent where several do.

    A second paragraph tells where large parts cancel.
    """
    if are_equal and all(round(pairs.cosine, 6) == 1 for pairs in by_method.values()):
        return "The texts are equal, so every word meets itself, and the cosine is 1."
    clauses, cancelling = [], []
    for method, pairs in by_method.items():
        inner = pairs.contributions[:-1, :-1]
        if np.abs(inner).sum() > CANCELLING * abs(pairs.cosine):
            high, low = (np.clip(sign * inner, 0, None).sum() for sign in (1, -1))
            values = f"{number(high, '.2f')} and take away {number(low, '.2f')}"
            cancelling.append(f"by {method}, pairs of words add {values}")
        sums = np.concatenate([pairs.contributions.sum(axis=axis)[:-1] for axis in (1, 0)])
        written = ".2f" if sums.max() >= LEAST_SUM else ".3f"
        largest = number(sums.max(), written)
        names = {
            name
            for name, value in zip([*pairs.first, *pairs.second], sums, strict=True)
            if number(value, written) == largest
        }
        if sums.max() > 0 and len(names) == 1:
            name = textwrap.shorten(names.pop(), 60, placeholder=" …")
            clauses.append(f"“{name}” by {method} ({largest} of {number(pairs.cosine, written)})")
    most = "What adds most to the cosine similarity is"
    sentence = f"{most} {joined(clauses)}." if clauses else ""
    cancels = f"Large parts cancel: {'; '.join(cancelling)}." if cancelling else ""
    return f"{sentence}\n\n{cancels}".strip()


def describe_deletions(agreements: Mapping[str, float]) -> str:
    """How well the sums foretell what leaving a word out does, by method; empty without any."""
    if not agreements:
        return ""
    values = dict(
        zip(agreements, write_values([*agreements.values()], is_share=False), strict=True)
    )
    listed = joined([f"{value} by {method}" for method, value in values.items()])
    return (
        "Check: with a word left out and the text embedded again, the cosine changes much as "
        f"without the word's parts of the vector (rank correlation {listed}; 1: the same order)."
    )
