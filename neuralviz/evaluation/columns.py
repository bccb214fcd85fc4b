"""The numbers of each measure: how they are read, written, compared and explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.evaluation.events import Bounds, finite_mean
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.events import Measured

EMPTY_CELL = "–"
HIGHER, LOWER = "higher is better", "lower is better"


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
        if (self.measure, self.field) == ("correlations", "interval"):
            return measured.interval("spearman")
        result = getattr(measured, self.measure)
        for name in self.field.split("."):
            result = getattr(result, name, None)
        return result

    def is_measured(self, measured: Measured) -> bool:
        """Whether there is a cell; words without a letter have an empty one."""
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
        return 1 if self.better == HIGHER else -1

    def interval(self, measured: Measured) -> Bounds | None:
        """95% interval on other samples of such data; None if unknown."""
        return measured.interval(self.name)

    def chance(self, measured: Measured) -> float:
        guessing = 0.5 if self.better == LOWER else 0.0
        return float(getattr(getattr(measured, self.measure), "baseline", guessing))

    def write(self, value: float) -> str:
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
# what the columns of each measure mean
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
