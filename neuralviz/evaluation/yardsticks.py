"""The numbers that are measured: how they are read, written and compared, and who is ahead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.events import Bounds, finite_mean
from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet, Measure
    from neuralviz.evaluation.events import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.triplets import WorstTriplets

EMPTY_CELL = "–"
HIGHER, LOWER = "higher is better", "lower is better"
LEVEL = 0.5e-4  # values that differ by less are written alike, and are level


@dataclass(frozen=True)
class Column:
    """A number of a measure's result, or an interval, as a column of tables."""

    measure: Measure
    field: str  # of the result; also of what is in it, behind a full stop
    head: str
    form: str = ".3f"
    better: str = ""  # `HIGHER`, `LOWER`, or nothing where neither is
    total: str = ""  # field of the number that it is one of
    group: str = ""  # what the measure is called in tables, if anything; {k} for neighbours

    def find(self, measured: Measured) -> Any:
        """The number or interval; None where there is none."""
        if (self.measure, self.field) == ("correlations", "interval"):
            return measured.interval("spearman")
        result = getattr(measured, self.measure)
        for name in self.field.split("."):
            result = getattr(result, name, None)
        return result

    def is_measured(self, measured: Measured) -> bool:
        """Whether there is a cell; of words without a letter there is an empty one."""
        is_there = self.find(measured) is not None
        return is_there or (self.field == "tfidf" and measured.probe is not None)

    def name_group(self, measured: Measured) -> str:
        return self.group.format(k=measured.neighbours.k if measured.neighbours else "")

    def write_cell(self, measured: Measured) -> str:
        value = self.find(measured)
        if isinstance(value, tuple):
            return " to ".join(number(bound, self.form) for bound in value)
        if value is None or np.isnan(value):
            return EMPTY_CELL
        written = number(value, self.form)
        if self.total:
            written += f" of {getattr(getattr(measured, self.measure), self.total):,}"
        return written


@dataclass(frozen=True, kw_only=True)
class Yardstick(Column):
    """A number by which methods can be compared."""

    name: str  # of it in `Measured.resampled`, where it is resampled
    title: str  # as it is called in a sentence
    short: str  # on a button
    axis: str  # of its figure
    is_share: bool = False  # whether it is written as a percentage

    def read(self, measured: Measured) -> float:
        """The number of a method; NaN where there is none."""
        if self.measure == "paraphrases":
            taus = [quality_map.kendall_c.ravel() for quality_map in measured.paraphrases]
            return finite_mean(np.concatenate([np.zeros(0), *taus]))
        value = self.find(measured)
        return np.nan if value is None else float(value)

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1."""
        return 1 if self.better == HIGHER else -1

    def interval(self, measured: Measured) -> Bounds | None:
        """Where it would lie on other samples of such data, at 95%; None where nobody knows."""
        return measured.interval(self.name)

    def chance(self, measured: Measured) -> float:
        """What guessing reaches."""
        guessing = 0.5 if self.better == LOWER else 0.0
        return float(getattr(getattr(measured, self.measure), "baseline", guessing))

    def write(self, value: float) -> str:
        """A value as it is written in a sentence."""
        return number(value, ".1%" if self.is_share else ".2f")


def _coefficient(name: str, short: str, title: str) -> Yardstick:
    return Yardstick(
        "correlations", name, short, ".3f", HIGHER,
        name=name, title=f"{title} correlation", short=short, axis=f"{short} ↑",
    )  # fmt: skip


def _error(measure: Measure, title: str) -> tuple[Column, ...]:
    error = Yardstick(
        measure, "error", "error", ".2%", LOWER, group=measure, is_share=True,
        name=measure, title=title, short=title.capitalize(), axis="error, % ↓",
    )  # fmt: skip
    return (
        error,
        Column(measure, "wrong", "broken", ",", LOWER, "total", measure),
        Column(measure, "wrong_strict", "without ties", ",", LOWER, group=measure),
        Column(measure, "same", "same", ".2f", group=measure),
        Column(measure, "diff", "diff", ".2f", group=measure),
    )


def _accuracy(measure: Measure, title: str, short: str, group: str) -> tuple[Column, ...]:
    accuracy = Yardstick(
        measure, "accuracy", "accuracy", ".1%", HIGHER, group=group, is_share=True,
        name=measure, title=f"{title} accuracy", short=short, axis="accuracy ↑",
    )  # fmt: skip
    words = Column(measure, "tfidf", "TF-IDF baseline", ".1%", group=group)
    by_label, balanced = f"{group}, by label", "confusion.balanced_accuracy"
    return (
        accuracy,
        Column(measure, "interval", "95% interval", ".1%", group=group),
        Column(measure, "baseline", "majority baseline", ".1%", group=group),
        *[words] * (measure == "probe"),
        Column(measure, "confusion.macro_f1", "macro-F1", ".1%", HIGHER, group=by_label),
        Column(measure, balanced, "balanced accuracy", ".1%", HIGHER, group=by_label),
    )


COLUMNS: tuple[Column, ...] = (
    _coefficient("spearman", "Spearman", "Spearman"),
    _coefficient("kendall_c", "tau-c", "Kendall tau-c"),
    _coefficient("kendall_b", "tau-b", "Kendall tau-b"),
    _coefficient("pearson", "Pearson", "Pearson"),
    Column("correlations", "interval", "Spearman, 95% interval"),
    *_error("pairs", "pair error"),
    *_error("triplets", "triplet error"),
    *_accuracy("neighbours", "k-NN", "k-NN", "{k}-NN"),
    *_accuracy("probe", "probe", "Probe", "probe"),
    Column("uniformity", "alignment", "alignment", better=LOWER, group="embeddings"),
    Column("uniformity", "uniformity", "uniformity", better=LOWER, group="embeddings"),
)
NAMES = {column.field: column.head for column in COLUMNS[:4]}  # of coefficients
YARDSTICKS = (
    *(column for column in COLUMNS if isinstance(column, Yardstick)),
    Yardstick(
        "paraphrases", "", "", better=HIGHER,
        name="paraphrases", title="mean tau-c", short="Mean tau-c", axis="tau-c ↑",
    ),
)  # fmt: skip


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
    """How far a method is ahead of another on the same data."""

    first: str
    second: str
    value: float
    interval: Bounds | None  # 95%: of accuracies exact, else by paired bootstrap; None if unknown

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
    missed = tuple(
        (data.texts[miss.text], miss.label, miss.voted, f"{miss.agree:.0%}")
        for miss in measured.outvoted
    )
    title = "Texts whose neighbours vote for a different label"
    heads = ("text", "label", "predicted label", "votes for the true label")
    return [kind for kind in (*cases, Cases(title, heads, missed)) if kind.lines]


def ranks_away(data: ScoredData, measured: Measured) -> np.ndarray:
    """[pair] ranks by which the cosine similarity is too high, or with a minus too low.

    Pairs of equal score share all their ranks: within these, none is wrong.
    """
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
