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
FAR = 0.25  # of all ranks: a pair that is no further from its own is not far off

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
    cases = [_pairs(data, measured), _triplets(data, measured), _texts(data, measured)]
    return [kind for kind in cases if kind is not None and kind.lines]


def worst_in_words(data: DataSet, measured: Measured, label: str, quote: Quote) -> str:
    """A sentence on the worst case of all, or that there is none; empty where nobody knows.

    Args:
        data: what was measured on.
        measured: of a method.
        label: of the method, marked up already.
        quote: shortens and escapes a text.
    """
    if isinstance(data, ScoredData) and len(measured.products):
        return _worst_pair(data, measured, label, quote)
    triplets = _triplets(data, measured)
    if triplets is not None and triplets.lines:
        anchor, positive, alike, negative, unlike = triplets.lines[0]
        near, than = ("as near", "as") if alike == unlike else ("nearer", "than")
        return (
            f"{label} puts {quote(str(anchor))} {near} to {quote(str(negative))} {than} to "
            f"{quote(str(positive))} of its own group."
        )
    if measured.outvoted:
        worst = measured.outvoted[0]
        return (
            f"{label} takes {quote(data.texts[worst.text])} for {quote(worst.voted)}, but it is "
            f"{quote(worst.label)}."
        )
    if measured.triplets is not None and not measured.triplets.wrong:
        return f"With {label}, no triplet comes out wrong."
    if measured.neighbours is not None and measured.neighbours.accuracy == 1:
        return f"With {label}, the nearest texts vote for the right label of every text."
    return ""


def _worst_pair(data: ScoredData, measured: Measured, label: str, quote: Quote) -> str:
    n = len(data.scores)
    away = _ranks_away(data, measured)
    worst = int(np.abs(away).argmax())
    if abs(away[worst]) < FAR * n:
        return f"{label} puts no pair far from its place by people's scores."
    first, second = (quote(data.texts[side[worst]]) for side in (data.first, data.second))
    cosine = measured.products[worst]
    if away[worst] < 0:
        share = (np.delete(measured.products, worst) > cosine).mean()
        finds = f"{label} finds {share:.0%} of the other pairs more similar"
    else:
        share = (np.delete(measured.products, worst) < cosine).mean()
        finds = f"{label} finds it more similar than {share:.0%} of the other pairs"
    return (
        f"{label} is furthest from people on {first} and {second}: they give it "
        f"{number(float(data.scores[worst]))}, but {finds} (cosine similarity "
        f"{number(float(cosine), '.2f')})."
    )


def _ranks_away(data: ScoredData, measured: Measured) -> np.ndarray:
    """[pair] ranks by which the cosine similarity is too high, or with a minus too low.

    Pairs of equal score share all their ranks: within these, none is wrong.
    """
    lowest, highest = (
        scipy.stats.rankdata(data.scores, method=method) for method in ("min", "max")
    )
    rank = scipy.stats.rankdata(measured.products)
    return np.maximum(rank - highest, 0) + np.minimum(rank - lowest, 0)


def _pairs(data: DataSet, measured: Measured) -> Cases | None:
    """Pairs whose places by cosine similarity and by score are furthest apart."""
    if not isinstance(data, ScoredData) or not len(measured.products):
        return None
    away = np.abs(_ranks_away(data, measured))
    order = np.argsort(-away, kind="stable")[:WORST_PAIRS]
    return Cases(
        "Pairs with the largest disagreement between human score and cosine similarity",
        ("text 1", "text 2", "human score", "cosine similarity"),
        tuple(
            (
                data.texts[data.first[row]],
                data.texts[data.second[row]],
                float(data.scores[row]),
                float(measured.products[row]),
            )
            for row in order
            if away[row]
        ),
    )


def _triplets(data: DataSet, measured: Measured) -> Cases | None:
    worst = measured.worst_triplets
    if worst is None:
        return None
    columns: Sequence[Sequence[Cell]] = (
        [data.texts[row] for row in worst.anchor],
        [data.texts[row] for row in worst.positive],
        worst.alike.tolist(),
        [data.texts[row] for row in worst.negative],
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
            (data.texts[miss.text], miss.label, miss.voted, f"{miss.agree:.0%}")
            for miss in measured.outvoted
        ),
    )
