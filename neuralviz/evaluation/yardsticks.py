"""What methods can be compared by: which way is good, what guessing reaches, how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.bootstrap import interval
from neuralviz.evaluation.in_words import HIGHER, LOWER
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.broken import BrokenCount
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.measured import Measured
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
