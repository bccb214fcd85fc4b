"""What methods are compared by, which leads and how surely, and what each gets most wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.data import DataSet, ScoredData
from neuralviz.evaluation.results import EXPLAINED, YARDSTICKS, Bounds, Measured, Results, Yardstick
from neuralviz.maps.shares import paired_share_interval

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.5e-4  # values that differ by less are written alike, and are level
INTERVALS = (
    "A 95% interval says where the true value probably lies: about 95 of 100 such intervals "
    "contain it. If the interval of a difference includes 0, the difference is not significant. "
    "Intervals are not corrected for picking the best: of many methods, one can have a small lead "
    "by luck."
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


def explain_measures(results: Results, data: int) -> list[str]:
    """What the present measures mean."""
    measured = [result for _, _, result in results.finished(data)]
    return [
        sentence
        for name, sentence in EXPLAINED.items()
        if any(result.find_result(name) for result in measured)
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


class RankedMethod(NamedTuple):
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
    bounds, sign, pair = None, yardstick.sign, (first.measured, second.measured)
    values = [result.accuracies.get(yardstick.name) for result in pair]
    drawn = [result.resampled.get(yardstick.name) for result in pair]
    if values[0] is not None and values[1] is not None:
        right = values[0].right, values[1].right
        bounds = paired_share_interval(*right) if len(right[0]) == len(right[1]) > 0 else None
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(sign * drawn[0], sign * drawn[1])
    return Lead(first.label, second.label, sign * (first.value - second.value), bounds)


# --- the worst cases ------------------------------------------------------------------------------

WORST_PAIRS = 20


def worst_cases(data: DataSet, measured: Measured) -> dict[str, pd.DataFrame]:
    """Tables by title of what a method gets most wrong, worst first; empty if nothing."""
    import pandas as pd

    def texts(places: Iterable[int]) -> list[str]:
        return [data.texts[place] for place in places]

    cases: dict[str, dict[str, Any]] = {}
    if isinstance(data, ScoredData) and len(measured.products):
        away = np.abs(ranks_away(data, measured))
        rows = [row for row in np.argsort(-away, kind="stable")[:WORST_PAIRS] if away[row]]
        cases["Pairs with the largest disagreement between human score and cosine similarity"] = {
            "text 1": texts(data.first[rows]),
            "text 2": texts(data.second[rows]),
            "human score": data.scores[rows],
            "cosine similarity": measured.products[rows],
        }
    if worst := measured.worst_triplets:
        cases["Worst broken triplet of each text"] = {
            "text": texts(worst.anchor),
            "text of its group": texts(worst.positive),
            "cosine (own group)": worst.alike,
            "text of another group": texts(worst.negative),
            "cosine (other group)": worst.unlike,
        }
    missed = measured.outvoted
    k = measured.neighbours.k if measured.neighbours else 0
    cases["Texts with the fewest nearest texts of their label"] = {
        "text": texts(miss.text for miss in missed),
        "label": [miss.label for miss in missed],
        "predicted label": [miss.voted for miss in missed],
        "nearest with its label": [f"{round(miss.agree * k)} of {k}" for miss in missed],
    }
    tables = {title: pd.DataFrame(columns) for title, columns in cases.items()}
    return {title: table for title, table in tables.items() if len(table)}


def ranks_away(data: ScoredData, measured: Measured) -> np.ndarray:
    """[pair] ranks by which the cosine is too high (negative: too low)."""
    # pairs of equal score share their ranks: within these, none is wrong
    lowest, highest = (scipy.stats.rankdata(data.scores, method=end) for end in ("min", "max"))
    rank = scipy.stats.rankdata(measured.products)
    return np.maximum(rank - highest, 0) + np.minimum(rank - lowest, 0)
