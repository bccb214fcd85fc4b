"""What methods are compared by, which leads and how surely, and what each gets most wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.results import EXPLAINED, YARDSTICKS, Bounds, Yardstick
from neuralviz.maps.shares import paired_share_interval

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet
    from neuralviz.evaluation.results import Measured, Results
    from neuralviz.evaluation.triplets import WorstTriplets

LEVEL = 0.5e-4  # values that differ by less are written alike, and are level
INTERVALS = (
    "A 95% interval says where the true value probably lies: about 95 of 100 such intervals "
    "contain it. If the interval of a lead includes 0, the data do not decide between the two "
    "methods. Intervals are not corrected for picking the best: of many methods, one can have a "
    "small lead by luck."
)


def yardsticks_of(results: Results, data: int) -> list[Yardstick]:
    """Yardsticks that some method has a value for, the main one first."""
    finished = [measured for _, _, measured in results.finished(data)]
    used_k = [measured.neighbours.k for measured in finished if measured.neighbours is not None]
    named = [
        replace(yardstick, title=f"{used_k[0]}-NN accuracy", short=f"{used_k[0]}-NN accuracy")
        if yardstick.name == "neighbours" and used_k
        else yardstick
        for yardstick in YARDSTICKS
    ]
    return [
        yardstick
        for yardstick in named
        if any(np.isfinite(yardstick.read(measured)) for measured in finished)
    ]


def explain_measures(results: Results, data: int, *, in_full: bool = True) -> list[str]:
    """What the present measures mean; minor ones only ``in_full``."""
    measured = [result for _, _, result in results.finished(data)]
    return [
        sentence
        for name, sentence in EXPLAINED.items()
        if any(getattr(result, name) for result in measured) and (in_full or name != "uniformity")
    ]


# --- leads ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lead:
    first: str
    second: str
    value: float
    interval: Bounds | None  # 95%: of accuracies exact, else by paired bootstrap; None if unknown

    @property
    def is_decided(self) -> bool:
        bounds = self.interval
        return abs(self.value) >= LEVEL and bounds is not None and bounds[0] >= LEVEL


@dataclass(frozen=True, eq=False)
class RankedMethod:
    label: str
    value: float
    measured: Measured


def rank_methods(results: Results, data: int, yardstick: Yardstick) -> list[RankedMethod]:
    """Methods with a value, best first, ties in the order asked for."""
    methods = [
        RankedMethod(label, value, measured)
        for _, label, measured in results.finished(data)
        if np.isfinite(value := yardstick.read(measured))
    ]
    return sorted(methods, key=lambda method: -yardstick.sign * method.value)


def best_first(results: Results, data: int, yardstick: Yardstick) -> list[tuple[str, Measured]]:
    """Labels and measurements, best first, those without a value last."""
    ranked = {method.label: method.measured for method in rank_methods(results, data, yardstick)}
    return [*(ranked | {label: measured for _, label, measured in results.finished(data)}).items()]


def compute_leads(results: Results, data: int, yardstick: Yardstick) -> list[Lead]:
    ranked = rank_methods(results, data, yardstick)
    return [compute_lead(yardstick, first, second) for first, second in combinations(ranked, 2)]


def compute_lead(yardstick: Yardstick, first: RankedMethod, second: RankedMethod) -> Lead:
    bounds, sign, both = None, yardstick.sign, (first.measured, second.measured)
    told = [result.accuracies.get(yardstick.name) for result in both]
    drawn = [result.resampled.get(yardstick.name) for result in both]
    if told[0] is not None and told[1] is not None:
        right = told[0].right, told[1].right
        bounds = paired_share_interval(*right) if len(right[0]) == len(right[1]) > 0 else None
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(sign * drawn[0], sign * drawn[1])
    return Lead(first.label, second.label, sign * (first.value - second.value), bounds)


# --- the worst cases ------------------------------------------------------------------------------

WORST_PAIRS = 20


@dataclass(frozen=True)
class Cases:
    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str | float, ...], ...]


def worst_cases(data: DataSet, measured: Measured) -> list[Cases]:
    """What a method gets most wrong, worst first; empty if nothing."""
    cases = []
    if isinstance(data, ScoredData) and len(measured.products):
        cases.append(_worst_pairs(data, measured))
    if measured.worst_triplets is not None:
        cases.append(_worst_triplets(data, measured.worst_triplets))
    missed = tuple(
        (data.texts[miss.text], miss.label, miss.voted, f"{miss.agree:.0%}")
        for miss in measured.outvoted
    )
    title = "Texts whose neighbours vote for a different label"
    heads = ("text", "label", "predicted label", "votes for the true label")
    return [kind for kind in (*cases, Cases(title, heads, missed)) if kind.lines]


def ranks_away(data: ScoredData, measured: Measured) -> np.ndarray:
    """[pair] ranks by which the cosine is too high (negative: too low)."""
    # pairs of equal score share their ranks: within these, none is wrong
    lowest, highest = (scipy.stats.rankdata(data.scores, method=end) for end in ("min", "max"))
    rank = scipy.stats.rankdata(measured.products)
    return np.maximum(rank - highest, 0) + np.minimum(rank - lowest, 0)


def _worst_pairs(data: ScoredData, measured: Measured) -> Cases:
    away = np.abs(ranks_away(data, measured))
    rows = [row for row in np.argsort(-away, kind="stable")[:WORST_PAIRS] if away[row]]
    columns = (
        [data.texts[data.first[row]] for row in rows],
        [data.texts[data.second[row]] for row in rows],
        data.scores[rows].tolist(),
        measured.products[rows].tolist(),
    )
    return Cases(
        "Pairs with the largest disagreement between human score and cosine similarity",
        ("text 1", "text 2", "human score", "cosine similarity"),
        tuple(zip(*columns, strict=True)),
    )


def _worst_triplets(data: DataSet, worst: WorstTriplets) -> Cases:
    anchor, positive, negative = (
        [data.texts[row] for row in rows] for rows in (worst.anchor, worst.positive, worst.negative)
    )
    columns = anchor, positive, worst.alike.tolist(), negative, worst.unlike.tolist()
    return Cases(
        "Worst broken triplets, one per anchor",
        ("anchor", "positive", "cosine (positive)", "negative", "cosine (negative)"),
        tuple(zip(*columns, strict=True)),
    )
