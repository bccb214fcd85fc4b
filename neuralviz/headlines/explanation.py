"""Which words make two texts similar: sentences of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from unicodedata import category

import numpy as np

from neuralviz.evaluation.explanation import Passages
from neuralviz.headlines import write_values
from neuralviz.words import joined, number

CANCELLING, LARGE = 5.0, 0.5  # of parts without their signs, over the cosine; of those that add
NAMED = 5  # unknown words
MOST_TIED = 2  # words with the highest sum that are named


class NamedPairs(NamedTuple):
    """The contributions of pairs of words, or of sentences."""

    first: Sequence[str]  # names
    second: Sequence[str]
    contributions: np.ndarray  # [first + 1, second + 1]; the last belong to no word

    @classmethod
    def of_texts(cls, texts: Sequence[str], passages: Passages, *numbered: bool) -> NamedPairs:
        names = [
            [
                f"{n}. " * is_long + " ".join(text[slice(*span)].split())
                for n, span in enumerate(spans, 1)
            ]
            for text, spans, is_long in zip(texts, passages.spans, numbered or (0, 0), strict=True)
        ]
        return cls(names[0], names[1], passages.contributions)

    @property
    def cosine(self) -> float:
        return float(self.contributions.sum())

    @property
    def units(self) -> tuple[str, str]:
        """What each side's names are: numbered ``sentence``, else ``word``."""
        first, second = (
            "sentence" if names and names[0].startswith("1. ") else "word" for names in self[:2]
        )
        return first, second

    def strongest(self, n: int) -> list[tuple[str, str, float]]:
        """The ``n`` pairs of words with the largest contributions without their signs."""
        inner = self.contributions[:-1, :-1]
        order = np.argsort(-np.abs(inner), axis=None, kind="stable")[:n]
        places = zip(*np.unravel_index(order, inner.shape), strict=True)
        return [(self.first[i], self.second[j], float(inner[i, j])) for i, j in places]


def describe_words(
    by_method: Mapping[str, NamedPairs],
    sides: Sequence[str] = ("the first text", "the second text"),
    *,
    are_equal: bool,
    by_pair: bool = False,  # what is drawn; else sums of words
) -> str:
    """The word that adds most to a cosine, by each method, and by which large parts cancel.

    Where large parts cancel, no word makes the number.
    """
    if are_equal and all(round(pairs.cosine, 6) == 1 for pairs in by_method.values()):
        return "The texts are equal, so every word meets itself, and the cosine is 1."
    claims, notes = dict[str, list[str]](), []
    for method, pairs in by_method.items():
        sums = [pairs.contributions.sum(axis=axis) for axis in (1, 0)]
        drawn = [pairs.contributions] if by_pair else sums
        most = int(np.argmax([np.abs(parts).sum() for parts in drawn]))
        if do_cancel(drawn[most]):
            parts = "pairs of words" if by_pair else f"parts of {sides[most]}"
            adding = float(drawn[most].clip(0).sum())
            plus, minus = (number(value, ".1f") for value in (adding, adding - pairs.cosine))
            notes.append(
                f"By {method}, the {parts} cancel: they add {plus} and take away {minus}, which "
                f"leaves {number(pairs.cosine, '.2f')}."
            )
            continue
        claim, peak = _name_most(pairs, sums, sides)
        claims.setdefault(claim, []).append(method)
        side = int(np.argmax([parts[-1] for parts in sums]))
        if (beyond := number(sums[side][-1], ".2f")) != number(peak, ".2f"):
            rest = f"By {method}, what belongs to no word adds more: {beyond} in {sides[side]}."
            notes += [rest] * bool(sums[side][-1] > peak)
    named = [f"by {joined(methods)}, {claim}" for claim, methods in claims.items()]
    unit = " or ".join(sorted({*next(iter(by_method.values())).units}))
    first = f"The {unit} that adds most to the cosine similarity of {joined(sides)}"
    first = f"{first}: {'; '.join(named)}." * bool(named)
    return "\n\n".join(filter(None, [first, " ".join(notes)]))


def do_cancel(parts: np.ndarray) -> bool:
    """Whether large parts of a cosine add and subtract, and leave little."""
    is_large = parts[parts > 0].sum() > LARGE
    return bool(is_large and np.abs(parts).sum() > CANCELLING * abs(parts.sum()))


def _name_most(
    pairs: NamedPairs, sums: Sequence[np.ndarray], sides: Sequence[str]
) -> tuple[str, float]:
    """Which word, no punctuation mark, adds most, and how much."""
    parts = [
        (textwrap.shorten(name, 60, placeholder=" …"), side, float(value))
        for names, side, parts in zip(pairs[:2], sides, sums, strict=True)
        for name, value in zip(names, parts, strict=False)
    ]
    named = [part for part in parts if any(category(sign)[0] != "P" for sign in part[0])]
    peak = max((value for *_, value in named), default=0.0)
    largest, cosine = number(peak, ".2f"), number(pairs.cosine, ".2f")
    if round(peak, 2) <= 0:
        return f"none (of {cosine})", peak
    rest = f"of {cosine}" if peak <= pairs.cosine else f"all else takes that down to {cosine}"
    first = [f"“{name}” in {side}" for name, side, v in named if number(v, ".2f") == largest]
    if len(first) > MOST_TIED:
        return f"none stands out (at most {largest} of {cosine})", peak
    comma = "," * (peak > pairs.cosine)
    beyond = "; punctuation adds more" * any(round(v, 2) > round(peak, 2) for *_, v in parts)
    return (
        f"{joined(first)} ({largest}{' each,' if len(first) > 1 else comma} {rest}{beyond})",
        peak,
    )


def describe_unknown(words: Iterable[str]) -> str:
    """Which words of two texts a model does not know; empty if it knows all."""
    quoted = [f"“{word}”" for word in dict.fromkeys(words)]
    if not quoted:
        return ""
    quoted[NAMED:] = [f"{len(quoted) - NAMED} more"] * (len(quoted) > NAMED)
    return (
        f"The model does not know {joined(quoted)}. It reads all that it does not know as one and "
        "the same word, so what they add says nothing of their meaning."
    )


def describe_deletions(agreements: Mapping[str, float]) -> str:
    """How well the sums foretell what leaving a word out does, by method; empty without any."""
    if not agreements:
        return ""
    values = dict(
        zip(agreements, write_values([*agreements.values()], is_share=False), strict=True)
    )
    listed = joined([f"{value} by {method}" for method, value in values.items()])
    return (
        "Check: each word is left out in turn, and its text embedded again. The parts foretell how "
        f"the cosine then changes with a rank correlation of {listed} (1: in the same order, 0: "
        "not at all)."
    )
