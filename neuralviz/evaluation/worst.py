"""What a method gets most wrong, as texts and in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.evaluation.data import ScoredData
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet
    from neuralviz.evaluation.measured import Measured

WORST_PAIRS = 20

Cell = str | float
Quote = Callable[[str], str]


@dataclass(frozen=True)
class Cases:
    """Cases of one kind that a method gets wrong, the worst first.

    Attributes:
        title: what they are.
        heads: of the columns.
        lines: a case each: texts and numbers.
    """

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


def worst_cases(data: DataSet, measured: Measured) -> list[Cases]:
    """What a method gets most wrong; nothing where it gets all right."""
    found = [_pairs(data, measured), _triplets(data, measured), _texts(data, measured)]
    return [one for one in found if one is not None and one.lines]


def worst_in_words(data: DataSet, measured: Measured, label: str, quote: Quote) -> str:
    """A sentence on the worst case of all; empty where there is none.

    Args:
        data: what was measured on.
        measured: of a method.
        label: of the method, marked up already.
        quote: shortens and escapes a text.
    """
    cases = worst_cases(data, measured)
    if not cases:
        return ""
    first = cases[0].lines[0]
    if isinstance(data, ScoredData) and len(measured.products):
        one, other, score, cosine = first
        return (
            f"{label} is furthest from people on {quote(str(one))} and {quote(str(other))}: "
            f"they give it {float(score):g}, {label} a cosine similarity of "
            f"{number(float(cosine), '.2f')}."
        )
    if measured.triplets is not None:
        anchor, positive, _, negative, _ = first
        return (
            f"{label} puts {quote(str(anchor))} nearer to {quote(str(negative))} than to "
            f"{quote(str(positive))} of its own group."
        )
    text, own, voted, _ = first
    return f"{label} takes {quote(str(text))} for {quote(str(voted))}, but it is {quote(str(own))}."


def _pairs(data: DataSet, measured: Measured) -> Cases | None:
    """Pairs whose places by cosine similarity and by score are furthest apart."""
    if not isinstance(data, ScoredData) or not len(measured.products):
        return None
    by_score, by_product = (scipy.stats.rankdata(one) for one in (data.scores, measured.products))
    order = np.argsort(-np.abs(by_score - by_product), kind="stable")[:WORST_PAIRS]
    worst = [at for at in order if by_score[at] != by_product[at]]
    return Cases(
        "Pairs with the largest disagreement between human score and cosine similarity",
        ("text 1", "text 2", "human score", "cosine similarity"),
        tuple(
            (
                data.texts[data.first[at]],
                data.texts[data.second[at]],
                float(data.scores[at]),
                float(measured.products[at]),
            )
            for at in worst
        ),
    )


def _triplets(data: DataSet, measured: Measured) -> Cases | None:
    worst = measured.worst_triplets
    if worst is None:
        return None
    columns: Sequence[Sequence[Cell]] = (
        [data.texts[at] for at in worst.anchor],
        [data.texts[at] for at in worst.positive],
        worst.alike.tolist(),
        [data.texts[at] for at in worst.negative],
        worst.unlike.tolist(),
    )
    return Cases(
        "Worst broken triplets, one per anchor",
        ("anchor", "positive", "cosine (positive)", "negative", "cosine (negative)"),
        tuple(zip(*columns, strict=True)),
    )


def _texts(data: DataSet, measured: Measured) -> Cases | None:
    if not measured.outvoted:
        return None
    return Cases(
        "Texts whose neighbours vote for a different label",
        ("text", "label", "predicted label", "votes for the true label"),
        tuple(
            (data.texts[one.text], one.label, one.voted, f"{one.agree:.0%}")
            for one in measured.outvoted
        ),
    )
