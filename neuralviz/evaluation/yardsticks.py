"""What methods are compared by, who is ahead and how sure that is, and what goes most wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.events import Bounds, finite_mean
from neuralviz.evaluation.results import HIGHER, LOWER
from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet, Measure
    from neuralviz.evaluation.events import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.triplets import WorstTriplets

LEVEL = 0.5e-4  # values that differ by less are written alike, and are level
WORST_PAIRS = 20
FAR = 0.25  # of all ranks: a pair that is no further from its own is not far off

Quote = Callable[[str], str]
"""Shortens and escapes a text."""


@dataclass(frozen=True)
class Yardstick:
    """A number by which methods can be compared.

    Attributes:
        name: of it in `Measured.resampled`, where it is resampled.
        title, short: as it is called in a sentence, and on a button.
        better: `HIGHER` or `LOWER`.
        is_share: whether it is written as a percentage.
    """

    name: str
    title: str
    short: str
    measure: Measure
    better: str
    is_share: bool

    def read(self, measured: Measured) -> float:
        """The number of a method; NaN where there is none."""
        if self.measure == "paraphrases":
            taus = [quality_map.kendall_c.ravel() for quality_map in measured.paraphrases]
            return finite_mean(np.concatenate([np.zeros(0), *taus]))
        result = getattr(measured, self.measure)
        field = {"pairs": "error", "triplets": "error", "correlations": self.name}
        return getattr(result, field.get(self.measure, "accuracy"), np.nan)

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1."""
        return 1 if self.better == HIGHER else -1

    def interval(self, measured: Measured) -> Bounds | None:
        """Where it would lie on other samples of such data, at 95%; None where nobody knows."""
        share = measured.accuracy_of(self.measure)
        return measured.interval(self.name) if share is None else share.interval

    def chance(self, measured: Measured) -> float:
        """What guessing reaches."""
        if (share := measured.accuracy_of(self.measure)) is not None:
            return share.baseline
        return 0.5 if self.better == LOWER else 0.0

    def write(self, value: float, digits: int | None = None) -> str:
        """A value as it is written in a sentence."""
        if self.is_share:
            return f"{number(100 * value, f'.{1 if digits is None else digits}f')}%"
        return number(value, f".{2 if digits is None else digits}f")


YARDSTICKS = (
    Yardstick("spearman", "Spearman correlation", "Spearman", "correlations", HIGHER, False),
    Yardstick("kendall_c", "Kendall tau-c correlation", "tau-c", "correlations", HIGHER, False),
    Yardstick("kendall_b", "Kendall tau-b correlation", "tau-b", "correlations", HIGHER, False),
    Yardstick("pearson", "Pearson correlation", "Pearson", "correlations", HIGHER, False),
    Yardstick("pairs", "pair error", "Pair error", "pairs", LOWER, True),
    Yardstick("triplets", "triplet error", "Triplet error", "triplets", LOWER, True),
    Yardstick("neighbours", "k-NN accuracy", "k-NN", "neighbours", HIGHER, True),
    Yardstick("probe", "probe accuracy", "Probe", "probe", HIGHER, True),
    Yardstick("paraphrases", "mean tau-c", "Mean tau-c", "paraphrases", HIGHER, False),
)


def yardsticks_of(results: Results, data: int) -> list[Yardstick]:
    """The yardsticks for which at least one method has a value, the main one first."""
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


EXPLAINED: dict[Measure, str] = {
    "correlations": (
        "A correlation says how well the cosine similarities of the pairs follow the human scores: "
        "1 is the same order, 0 no relation."
    ),
    "triplets": (
        "A triplet is an anchor, a text of its group (positive) and a text of another group "
        "(negative). It is broken if the negative is at least as similar to the anchor as the "
        "positive. The triplet error is the share that is broken."
    ),
    "pairs": (
        "A comparison takes a similar and a dissimilar pair. It is broken if the similar pair does "
        "not have the higher cosine similarity. The pair error is the share that is broken."
    ),
    "neighbours": (
        "k-NN accuracy is the share of texts whose k nearest neighbours vote for the text's own "
        "label. The majority baseline is what always guessing the most frequent label reaches."
    ),
    "probe": (
        "A probe is a small network with 50 hidden units that learns to tell the labels of texts "
        "from their embeddings. Its accuracy is the share of texts that it is right for, each of "
        "which it has not seen before (cross-validation in five folds). The majority baseline is "
        "what always guessing the most frequent label reaches, the TF-IDF baseline what logistic "
        "regression on the words of the texts reaches."
    ),
    "uniformity": (
        "Alignment is the mean squared distance of similar texts; uniformity says how evenly all "
        "texts are spread."
    ),
    "paraphrases": (
        "tau-c says how well cosine similarity follows the quality that varies while the two "
        "others are fixed."
    ),
}
"""What the columns of each measure mean."""

INTERVALS = (
    "A 95% interval says where the true value probably lies: about 95 of 100 such intervals "
    "contain it. If the interval of a lead includes 0, the data do not decide between the two "
    "methods. Intervals are not corrected for picking the best: of many methods, one can have a "
    "small lead by luck."
)


def explain_measures(results: Results, data: int, *, in_full: bool = True) -> list[str]:
    """What the measures mean that are there, those beside the point only ``in_full``."""
    measured = [result for _, _, result in results.finished(data)]
    return [
        sentence
        for name, sentence in EXPLAINED.items()
        if any(getattr(result, name) for result in measured) and (in_full or name != "uniformity")
    ]


# --- leads ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another on the same data.

    ``interval`` is at 95%: of accuracies exact, else by paired bootstrap; None where nobody knows.
    """

    first: str
    second: str
    value: float
    interval: Bounds | None

    @property
    def is_decided(self) -> bool:
        """Whether the data decide that the first is better: the interval is above 0."""
        bounds = self.interval
        return abs(self.value) >= LEVEL and bounds is not None and bounds[0] >= LEVEL


@dataclass(frozen=True, eq=False)
class RankedMethod:
    """A method with its value by a yardstick."""

    label: str
    value: float
    measured: Measured


def rank_methods(results: Results, data: int, yardstick: Yardstick) -> list[RankedMethod]:
    """The methods that have a value, the best first; of equal ones the first asked for."""
    methods = [
        RankedMethod(label, value, measured)
        for _, label, measured in results.finished(data)
        if np.isfinite(value := yardstick.read(measured))
    ]
    return sorted(methods, key=lambda method: -yardstick.sign * method.value)


def best_first(results: Results, data: int, yardstick: Yardstick) -> list[tuple[str, Measured]]:
    """Labels and what was measured, the best first, those without a value last."""
    ranked = {method.label: method.measured for method in rank_methods(results, data, yardstick)}
    return [*(ranked | {label: measured for _, label, measured in results.finished(data)}).items()]


def compute_leads(results: Results, data: int, yardstick: Yardstick) -> list[Lead]:
    """How far each method is ahead of each that is not better, the best methods first."""
    ranked = rank_methods(results, data, yardstick)
    return [compute_lead(yardstick, first, second) for first, second in combinations(ranked, 2)]


def compute_lead(yardstick: Yardstick, first: RankedMethod, second: RankedMethod) -> Lead:
    """How far one method is ahead of another."""
    bounds, sign = None, yardstick.sign
    both = first.measured, second.measured
    drawn = [measured.resampled.get(yardstick.name) for measured in both]
    if first.measured.accuracy_of(yardstick.measure) is not None:
        hits = [measured.right.get(yardstick.measure, np.zeros(0, bool)) for measured in both]
        bounds = paired_share_interval(*hits) if len(hits[0]) == len(hits[1]) > 0 else None
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(sign * drawn[0], sign * drawn[1])
    return Lead(first.label, second.label, sign * (first.value - second.value), bounds)


# --- the worst cases ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cases:
    """Cases of one kind that a method gets wrong, a line each of texts and numbers."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str | float, ...], ...]


def worst_cases(data: DataSet, measured: Measured) -> list[Cases]:
    """What a method gets most wrong, the worst first; nothing where it gets all right."""
    cases = []
    if isinstance(data, ScoredData) and len(measured.products):
        cases.append(_worst_pairs(data, measured))
    if measured.worst_triplets is not None:
        cases.append(_worst_triplets(data, measured.worst_triplets))
    texts = [
        (data.texts[miss.text], miss.label, miss.voted, f"{miss.agree:.0%}")
        for miss in measured.outvoted
    ]
    cases.append(
        Cases(
            "Texts whose neighbours vote for a different label",
            ("text", "label", "predicted label", "votes for the true label"),
            tuple(texts),
        )
    )
    return [kind for kind in cases if kind.lines]


def worst_in_words(data: DataSet, measured: Measured, label: str, quote: Quote) -> str:
    """A sentence on the worst case of all, or that there is none; empty where nobody knows.

    ``label`` of the method is marked up already.
    """
    if isinstance(data, ScoredData) and len(measured.products):
        return _describe_worst_pair(data, measured, label, quote)
    if measured.worst_triplets:
        anchor, positive, alike, negative, unlike = _worst_triplets(
            data, measured.worst_triplets
        ).lines[0]
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


def _describe_worst_pair(data: ScoredData, measured: Measured, label: str, quote: Quote) -> str:
    away = _ranks_away(data, measured)
    worst = int(np.abs(away).argmax())
    if abs(away[worst]) < FAR * len(data.scores):
        return f"{label} puts no pair far from its place by people's scores."
    first, second = (quote(data.texts[side[worst]]) for side in (data.first, data.second))
    cosine, others = measured.products[worst], np.delete(measured.products, worst)
    if away[worst] < 0:
        finds = f"{label} finds {(others > cosine).mean():.0%} of the other pairs more similar"
    else:
        share = (others < cosine).mean()
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


def _worst_pairs(data: ScoredData, measured: Measured) -> Cases:
    away = np.abs(_ranks_away(data, measured))
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
    columns = (
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
