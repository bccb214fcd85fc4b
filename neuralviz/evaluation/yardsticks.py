"""What methods are compared by, who is ahead and how sure that is, and what goes most wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.evaluation.bootstrap import interval, paired_interval
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.results import HIGHER, LOWER
from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.broken import BrokenCount
    from neuralviz.evaluation.data import DataSet, Measure
    from neuralviz.evaluation.events import Measured
    from neuralviz.evaluation.results import Results


MOST_DIGITS = 4  # behind the point: differences that are smaller are none


@dataclass(frozen=True)
class Yardstick:
    """A number by which methods can be compared.

    Attributes:
        name: of it in `Measured.resampled`, where it is resampled.
        title: as it is called in a sentence.
        short: as it is called on a button.
        measure: the measure that it belongs to.
        better: `HIGHER` or `LOWER`.
        is_share: whether it is written as a percentage.
        read: finds the number; NaN where there is none.
    """

    name: str
    title: str
    short: str
    measure: Measure
    better: str
    is_share: bool
    read: Callable[[Measured], float]

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1."""
        return 1 if self.better == HIGHER else -1

    def interval(self, measured: Measured) -> tuple[float, float] | None:
        """Where it would lie on other samples of such data, at 95%; None where nobody knows."""
        if (share := measured.accuracy_of(self.measure)) is not None:
            return share.interval
        resampled = measured.resampled.get(self.name)
        return None if resampled is None else interval(resampled)

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


def yardsticks_of(results: Results, data: int) -> list[Yardstick]:
    """The yardsticks for which at least one method has a value, the main one first."""
    measured = [result for _, _, result in results.finished(data)]
    return [
        _named(yardstick, results.plan.settings.k, measured)
        for yardstick in _YARDSTICKS
        if any(np.isfinite(yardstick.read(result)) for result in measured)
    ]


def best_first(results: Results, data: int, yardstick: Yardstick) -> list[tuple[str, Measured]]:
    """Labels and what was measured, the best first, those without a value last."""
    methods = [(label, measured) for _, label, measured in results.finished(data)]
    return sorted(
        methods,
        key=lambda method: -np.nan_to_num(yardstick.sign * yardstick.read(method[1]), nan=-np.inf),
    )


def _named(yardstick: Yardstick, k: int, measured: list[Measured]) -> Yardstick:
    """The yardstick with the number of voting neighbours in its title."""
    if yardstick.name != "neighbours":
        return yardstick
    voted = next((result.neighbours.k for result in measured if result.neighbours is not None), k)
    title = f"{voted}-NN accuracy"
    return Yardstick(
        yardstick.name,
        title,
        title,
        yardstick.measure,
        yardstick.better,
        yardstick.is_share,
        yardstick.read,
    )


def _coefficient(name: str) -> Callable[[Measured], float]:
    return lambda measured: (
        np.nan if measured.correlations is None else getattr(measured.correlations, name)
    )


def _error(counted: BrokenCount | None) -> float:
    return np.nan if counted is None else counted.error


def _accuracy(measure: Measure) -> Callable[[Measured], float]:
    def read(measured: Measured) -> float:
        share = measured.accuracy_of(measure)
        return np.nan if share is None else share.accuracy

    return read


def _mean_tau(measured: Measured) -> float:
    taus = [np.ravel(quality_map.kendall_c) for quality_map in measured.paraphrases]
    finite = np.concatenate([np.zeros(0), *taus])
    finite = finite[np.isfinite(finite)]
    return float(finite.mean()) if len(finite) else np.nan


_YARDSTICKS = (
    *(
        Yardstick(name, title, short, "correlations", HIGHER, False, _coefficient(name))
        for name, title, short in (
            ("spearman", "Spearman correlation", "Spearman"),
            ("kendall_c", "Kendall tau-c correlation", "tau-c"),
            ("kendall_b", "Kendall tau-b correlation", "tau-b"),
            ("pearson", "Pearson correlation", "Pearson"),
        )
    ),
    Yardstick(
        "pairs", "pair error", "Pair error", "pairs", LOWER, True,
        lambda measured: _error(measured.pairs),
    ),
    Yardstick(
        "triplets", "triplet error", "Triplet error", "triplets", LOWER, True,
        lambda measured: _error(measured.triplets),
    ),
    Yardstick(
        "neighbours", "k-NN accuracy", "k-NN", "neighbours", HIGHER, True,
        _accuracy("neighbours"),
    ),
    Yardstick("probe", "probe accuracy", "Probe", "probe", HIGHER, True, _accuracy("probe")),
    Yardstick("paraphrases", "mean tau-c", "Mean tau-c", "paraphrases", HIGHER, False, _mean_tau),
)  # fmt: skip

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
    is_measured = {
        "correlations": any(result.correlations is not None for result in measured),
        "triplets": any(result.triplets is not None for result in measured),
        "pairs": any(result.pairs is not None for result in measured),
        "neighbours": any(result.neighbours is not None for result in measured),
        "probe": any(result.probe is not None for result in measured),
        "uniformity": in_full and any(result.uniformity is not None for result in measured),
        "paraphrases": any(result.paraphrases for result in measured),
    }
    return [sentence for name, sentence in EXPLAINED.items() if is_measured[name]]


_LEVEL = 10.0**-MOST_DIGITS / 2  # values that differ by less are written alike, and are level


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another on the same data.

    Attributes:
        first, second: labels of the methods.
        value: by how much the first is better, 0 or more.
        interval: of the value, at 95%, on the same data: of accuracies exact, else by paired
            bootstrap; None where nobody knows.
    """

    first: str
    second: str
    value: float
    interval: tuple[float, float] | None

    @property
    def is_level(self) -> bool:
        """Whether there is no difference to speak of."""
        return abs(self.value) < _LEVEL

    @property
    def is_decided(self) -> bool:
        """Whether the data decide that the first is better: the interval is above 0."""
        return not self.is_level and self.interval is not None and self.interval[0] >= _LEVEL


@dataclass(frozen=True, eq=False)
class RankedMethod:
    """A method with its value by a yardstick."""

    label: str
    value: float
    measured: Measured


def compute_leads(results: Results, data: int, yardstick: Yardstick) -> list[Lead]:
    """How far each method is ahead of each that is not better, the best methods first."""
    ranked = rank_methods(results, data, yardstick)
    return [
        compute_lead(yardstick, first, second)
        for place, first in enumerate(ranked)
        for second in ranked[place + 1 :]
    ]


def rank_methods(results: Results, data: int, yardstick: Yardstick) -> list[RankedMethod]:
    """The methods that have a value, the best first; of equal ones the first asked for."""
    methods = [
        RankedMethod(label, yardstick.read(measured), measured)
        for _, label, measured in results.finished(data)
        if np.isfinite(yardstick.read(measured))
    ]
    return sorted(methods, key=lambda method: -yardstick.sign * method.value)


def compute_lead(yardstick: Yardstick, first: RankedMethod, second: RankedMethod) -> Lead:
    bounds = None
    drawn = [method.measured.resampled.get(yardstick.name) for method in (first, second)]
    if first.measured.accuracy_of(yardstick.measure) is not None:
        hits = first.measured.right(yardstick.measure), second.measured.right(yardstick.measure)
        bounds = paired_share_interval(*hits) if len(hits[0]) == len(hits[1]) > 0 else None
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(yardstick.sign * drawn[0], yardstick.sign * drawn[1])
    return Lead(first.label, second.label, yardstick.sign * (first.value - second.value), bounds)


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
