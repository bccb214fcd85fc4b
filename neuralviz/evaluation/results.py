"""A plan of evaluation, what it yields cell by cell, and its results as tables, JSON and CSV.

`published.csv` has Tables 1, 3–5, 7–9, 11–13, 15 and 16 of the neural paper: STS test, MRPC train,
ASSET test. It leaves out the errors of Tables 7 and 11, which are printed ten times too small.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from neuralviz import __version__
from neuralviz.embedders.specs import EmbedderSpec, part_names, short_labels
from neuralviz.errors import LossWarning, SettingsError
from neuralviz.evaluation.bootstrap import FEWEST_RESAMPLES, MOST_RESAMPLES, RESAMPLES, interval
from neuralviz.evaluation.broken import MAX_COMPARED, TIE, BrokenCount, Overlap
from neuralviz.evaluation.correlation import COEFFICIENTS, Correlation
from neuralviz.evaluation.data import (
    DataSet,
    GroupedData,
    LabelledData,
    Measure,
    ParaphraseData,
    ScoredData,
)
from neuralviz.evaluation.probing import Accuracy, Confusion
from neuralviz.evaluation.probing_tasks import ProbingTask
from neuralviz.evaluation.rows import Row
from neuralviz.evaluation.triplets import Grouping, WorstTriplets
from neuralviz.files import RecordFormat
from neuralviz.maps.neighbours import K, Outvoted
from neuralviz.micro_tuning.settings import Blueprint
from neuralviz.store.writing import escape_formula
from neuralviz.words import ShortRepr, joined, many, number

Bounds = tuple[float, float]
LEAST_RATIO, LARGEST_RATIO = 0.5, 1.5  # as the paper cuts its figures
KEY_VERSION = 4  # of `EvaluationPlan.cache_key`: raise it where the same plan gives other results


@dataclass(frozen=True)
class MeasureSettings:
    # "all" for all that the data are made for; empty for all of these but the slow ones
    measures: tuple[Measure | Literal["all"], ...] = ()
    k: int = K  # neighbours that vote on a label
    resamples: int = RESAMPLES  # of the bootstrap intervals; 0 for none
    seed: int = 0  # of all that is drawn: bootstrap samples, and pairs and texts of many
    max_compared: int = MAX_COMPARED  # relations compared one by one, for what methods share

    def __post_init__(self) -> None:
        if self.resamples and not FEWEST_RESAMPLES <= self.resamples <= MOST_RESAMPLES:
            raise SettingsError(
                f"Intervals need {FEWEST_RESAMPLES} to {MOST_RESAMPLES:,} resamples. Use 0 for no "
                "intervals."
            )

    def measures_of(self, data: DataSet) -> tuple[Measure, ...]:
        """The chosen measures; SettingsError if the data are not made for one."""
        if "all" in self.measures:
            return data.measures
        named = tuple(name for name in self.measures if name != "all")
        for name in named:
            if name not in data.measures:
                raise SettingsError(
                    f"{data.name} cannot be used for {name}. It has {data.describe()}. It "
                    f"supports: {', '.join(data.measures)}."
                )
        return named or data.by_default


DEFAULT_MEASURES = MeasureSettings()


@dataclass(frozen=True, eq=False)
class EvaluationPlan:
    """A table to fill: every row on every data set. Plans are equal when their `cache_key` is."""

    data: tuple[DataSet, ...]
    rows: tuple[Row, ...]
    settings: MeasureSettings = DEFAULT_MEASURES

    def cache_key(self) -> str:
        """Hash of all that results depend on: data, rows and settings."""
        content = {
            "version": KEY_VERSION,
            "data": [[data_set.name, data_set.digest] for data_set in self.data],
            "rows": [[row.label, row.spec.to_json()] for row in self.rows],
            "settings": asdict(self.settings),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EvaluationPlan):
            return NotImplemented
        return self.cache_key() == other.cache_key()

    def __hash__(self) -> int:
        return hash(self.cache_key())

    @property
    def n_cells(self) -> int:
        return len(self.data) * len(self.rows)


@dataclass(frozen=True)
class Uniformity:
    """Two sides of a good embedding (Wang & Isola 2020), of all texts or an even sample of them."""

    alignment: float | None  # 0 … 4 mean squared distance of alike texts; None where none are
    uniformity: float  # -8 … 0 log of the mean of exp(-2 d²); lower where texts are spread evenly
    n_texts: int


@dataclass(frozen=True)
class ReadBack:
    """Shares, 0 … 1, of the texts' different words that are among those read from embeddings."""

    recall_at_10: float  # guesses a text
    recall_at_5: float
    baseline: float  # with the 10 most frequent words of the texts instead
    ceiling: float  # if each of the 10 was a word of the text
    n: int  # words, each once a text


@dataclass(frozen=True, eq=False)
class QualityMap:
    """How the product follows one quality, for each pair of values of the two others."""

    quality: str
    fixed1: np.ndarray
    fixed2: np.ndarray
    kendall_c: np.ndarray  # [fixed1, fixed2]; NaN where there are no two phrases, or all are alike
    n: np.ndarray  # [fixed1, fixed2] phrases

    def ratio(self, other: QualityMap) -> np.ndarray:
        """[fixed1, fixed2] tau-c by another method's, cut to 0.5 … 1.5; NaN where that is ≤ 0."""
        cut = np.full(self.kendall_c.shape, np.nan)
        sound = (other.kendall_c > 0) & np.isfinite(self.kendall_c)
        np.divide(self.kendall_c, other.kendall_c, out=cut, where=sound)
        return np.clip(cut, LEAST_RATIO, LARGEST_RATIO)

    def as_json(self) -> dict[str, Any]:
        values = {name: np.asarray(value).tolist() for name, value in vars(self).items()}
        values["kendall_c"] = [[none_if_nan(tau) for tau in row] for row in values["kendall_c"]]
        return values


def finite_mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else value


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of one method on one data set; None where missing or undefined."""

    correlations: Correlation | None = None
    pairs: BrokenCount | None = None
    triplets: BrokenCount | None = None
    worst_triplets: WorstTriplets | None = None  # rows are places in ``data.texts``
    neighbours: Accuracy | None = None
    outvoted: tuple[Outvoted, ...] = ()  # texts of another label than their neighbours', by place
    probe: Accuracy | None = None
    uniformity: Uniformity | None = None
    read_back: ReadBack | None = None
    paraphrases: tuple[QualityMap, ...] = ()
    failed: Mapping[Measure, str] = field(default_factory=dict)  # why there is none
    notes: tuple[str, ...] = ()
    # [resample] coefficients by name, and errors of pairs and triplets, alike for all methods
    resampled: Mapping[str, np.ndarray] = field(default_factory=dict)
    products: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [pair] or [phrase]
    # products of what is alike and what is not, a sample where there are many
    same: np.ndarray = field(default_factory=lambda: np.zeros(0))
    diff: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def accuracies(self) -> dict[str, Accuracy]:
        both = {"neighbours": self.neighbours, "probe": self.probe}
        return {name: accuracy for name, accuracy in both.items() if accuracy is not None}

    @property
    def confusions(self) -> dict[str, Confusion]:
        return {
            name: accuracy.confusion
            for name, accuracy in self.accuracies.items()
            if accuracy.confusion
        }

    def find_result(self, measure: Measure) -> Any:
        return getattr(self, measure.replace("-", "_"))

    def interval(self, name: str) -> Bounds | None:
        """95% interval of a coefficient, error or accuracy; None if unknown."""
        if name in self.accuracies:
            return self.accuracies[name].interval
        drawn = self.resampled.get(name)
        return None if drawn is None else interval(drawn)

    def as_json(self) -> dict[str, Any]:
        """The numbers by the names that scripts know; None where one is undefined."""
        numbers: dict[str, Any] = {}
        if self.correlations is not None:
            for name in (*COEFFICIENTS, "n"):
                numbers[name] = none_if_nan(getattr(self.correlations, name))
        if coefficients := [name for name in COEFFICIENTS if name in self.resampled]:
            numbers["intervals"] = {name: self.interval(name) for name in coefficients}
            numbers["intervals"]["resamples"] = len(self.resampled[coefficients[0]])
        for name, counted in (("pairs", self.pairs), ("triplets", self.triplets)):
            if counted is not None:
                numbers[name] = asdict(counted) | {"error": counted.error}
                if bounds := self.interval(name):
                    numbers[name]["interval"] = bounds
        numbers |= {name: accuracy.as_json() for name, accuracy in self.accuracies.items()}
        if self.uniformity is not None:
            numbers["uniformity"] = asdict(self.uniformity)
        if self.read_back is not None:
            numbers["read-back"] = asdict(self.read_back) | {"interval": self.interval("read-back")}
        rest = {
            "paraphrases": [quality_map.as_json() for quality_map in self.paraphrases],
            "failed": dict(self.failed),
            "notes": list(self.notes),
        }
        return numbers | {name: value for name, value in rest.items() if value}


@dataclass(frozen=True, eq=False, repr=False)
class Progress(ShortRepr):
    """Progress of a cell, or of the comparison after all cells of a data set."""

    data: int  # number of the data set
    row: int | None  # its number; None while rows are compared
    doing: str  # ``embedding``, ``measuring`` or ``comparing``
    done: int = 0  # texts embedded, of all rows that are embedded at once
    total: int = 0
    at_once: tuple[int, ...] = ()  # rows that are embedded in one run, if several


@dataclass(frozen=True, eq=False, repr=False)
class Cell(ShortRepr):
    """A finished row on a data set, both by number."""

    data: int
    row: int
    measured: Measured | None  # None when it failed as a whole; ``error`` says why
    error: str = ""
    n_rose: int = 0  # texts whose loss rose while they were learnt, or ceased to be a number
    dim: int = 0  # of the vectors

    @property
    def failed(self) -> bool:
        return self.measured is None or bool(self.measured.failed)

    def list_notes(self, n_texts: int) -> Iterator[str]:
        """Why something failed, notes, and how many of the texts' losses rose."""
        if self.measured is None:
            yield self.error
        else:
            yield from (f"{name}: {reason}" for name, reason in self.measured.failed.items())
            yield from self.measured.notes
        if self.n_rose:
            yield str(LossWarning(self.n_rose, n_texts))

    def as_json(self) -> dict[str, Any]:
        """As `Measured.as_json`, or why there is none."""
        return {"error": self.error} if self.measured is None else self.measured.as_json()


@dataclass(frozen=True, eq=False, repr=False)
class Compared(ShortRepr):
    """What the rows, by number, break in common on a data set, by measure."""

    data: int
    rows: tuple[int, ...]
    overlaps: Mapping[Measure, Overlap] = field(default_factory=dict)
    failed: Mapping[Measure, str] = field(default_factory=dict)  # why there is no overlap
    left_out: int = 0  # rows that are finished, and not compared, because there are so many


Event = Progress | Cell | Compared


# --- columns of tables ---------------------------------------------------------------------------

EMPTY_CELL = "–"
HIGHER, LOWER = "higher is better", "lower is better"
RESAMPLED = {"correlations": "spearman", "read-back": "read-back"}  # whose interval a table has


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
        if self.field == "interval" and self.measure in RESAMPLED:
            return measured.interval(RESAMPLED[self.measure])
        result = measured.find_result(self.measure)
        for name in self.field.split("."):
            result = getattr(result, name, None)
        return result

    def write_cell(self, measured: Measured) -> str:
        value = self.find(measured)
        if isinstance(value, tuple):
            return " to ".join(number(bound, self.form) for bound in value)
        if value is None or np.isnan(value):
            return EMPTY_CELL
        written = number(value, self.form)
        if self.total:
            written += f" of {getattr(measured.find_result(self.measure), self.total):,}"
        return written


@dataclass(frozen=True, kw_only=True)
class Yardstick(Column):
    name: str  # of it in `Measured.resampled`, where it is resampled
    title: str  # as it is called in a sentence
    short: str  # on a button
    axis: str  # of its figure

    @property
    def is_share(self) -> bool:
        """Whether it is written as a percentage."""
        return self.form.endswith("%")

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

    def compute_chance(self, measured: Measured) -> float:
        guessing = 0.5 if self.better == LOWER else 0.0
        return float(getattr(measured.find_result(self.measure), "baseline", guessing))

    def write(self, value: float) -> str:
        return number(value, ".1%" if self.is_share else ".2f")


def _coefficient(name: str, short: str, title: str) -> Yardstick:
    return Yardstick(
        "correlations", name, short, ".3f", HIGHER,
        name=name, title=f"{title} correlation", short=short, axis=f"{short} ↑",
    )  # fmt: skip


def _error(measure: Measure, title: str) -> tuple[Column, ...]:
    error = Yardstick(
        measure, "error", "error", ".2%", LOWER, group=measure,
        name=measure, title=title, short=title.capitalize(), axis="error ↓",
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
        measure, "accuracy", "accuracy", ".1%", HIGHER, group=group,
        name=measure, title=f"{title} accuracy", short=short, axis="share of texts ↑",
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
    Yardstick(
        "read-back", "recall_at_10", "recall at 10", ".1%", HIGHER, group="read-back",
        name="read-back", title="read-back recall", short="Read-back", axis="share of words ↑",
    ),
    Column("read-back", "interval", "95% interval", ".1%", group="read-back"),
    Column("read-back", "recall_at_5", "recall at 5", ".1%", group="read-back"),
    Column("read-back", "baseline", "frequent words", ".1%", group="read-back"),
    Column("read-back", "ceiling", "at most", ".1%", group="read-back"),
    Column("uniformity", "alignment", "alignment", better=LOWER, group="embeddings"),
    Column("uniformity", "uniformity", "uniformity", better=LOWER, group="embeddings"),
)  # fmt: skip
NAMES = {column.field: column.head for column in COLUMNS[:4]}  # of coefficients
YARDSTICKS = (
    *(column for column in COLUMNS if isinstance(column, Yardstick)),
    Yardstick(
        "paraphrases", "", "", better=HIGHER,
        name="paraphrases", title="mean tau-c", short="Mean tau-c", axis="tau-c ↑",
    ),
)  # fmt: skip


def _join_heads(group: str, head: str) -> str:
    """A column's head in a table of all measures, such as ``pair error`` or ``pairs broken``."""
    if group in ("", "embeddings"):
        return head
    return f"{group.removesuffix('s') if head == 'error' else group} {head}"


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
    "read-back": (
        "Read-back guesses the words of a text from its embedding alone. Recall at 10 is the share "
        "of the texts' different words that are among ten guesses a text. A neural embedding is "
        "put into the model: guesses are the words that it makes likelier. For another vector they "
        "are the words whose own vectors are nearest. The baseline always guesses the ten most "
        "frequent words of the texts."
    ),
    "paraphrases": (
        "tau-c says how well cosine similarity follows the quality that varies while the two "
        "others are fixed."
    ),
}


# --- published numbers ---------------------------------------------------------------------------

MPNET = "all-mpnet-base-v2"
VALUES = (
    "spearman", "kendall_c", "kendall_b", "pairs.wrong", "pairs.same", "pairs.diff",
    "triplets.wrong", "triplets.same", "triplets.diff", "triplets.shared",
)  # fmt: skip


@dataclass(frozen=True)
class Published:
    model: str
    source: str  # the tables' numbers
    values: Mapping[str, float]  # by `VALUES`; ``shared`` is I with the neural embedding (Eq. 3)


def find_published(data: DataSet, name: str, model_id: str = "") -> Published | None:
    """What was published for a `Row.published` name on these data and model; else None."""
    # counts stand only for as many pairs or triplets as the paper had: thresholds may differ
    if name == "mean" and model_id.rstrip("/").endswith(MPNET):
        name = f"mean of {MPNET}"
    line = read_published().get((data.benchmark, name))
    if line is None:
        return None
    n_relations = {}
    if isinstance(data, ScoredData):
        n_relations["pairs"] = int(data.is_similar.sum()) * int(data.is_dissimilar.sum())
    if isinstance(data, ScoredData | GroupedData):
        n_relations["triplets"] = data.grouping.n_triplets
    values, tables = {}, set()
    for path in VALUES:
        measure, dot, _ = path.partition(".")
        is_alike = not dot or str(n_relations.get(measure)) == line[f"{measure}_total"]
        if (text := line[path]) and is_alike:
            values[path] = int(text) if text.isdigit() else float(text)
            tables.add(int(line[f"{measure if dot else 'correlations'}_table"]))
    if not tables:
        return None
    source = f"Table{'s' * (len(tables) > 1)} {joined([str(n) for n in sorted(tables)])}"
    return Published(line["model"], source, values)


@cache
def read_published() -> dict[tuple[str, str], dict[str, str]]:
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        return {(line["benchmark"], line["row"]): line for line in csv.DictReader(file)}


# --- all results so far --------------------------------------------------------------------------

ARROWS = {HIGHER: "↑", LOWER: "↓"}
CSV_COLUMNS = ("data", "method", "model", "precision", "measure", "value", "published",
               "published model")  # fmt: skip


class Table(NamedTuple):
    heads: list[str]
    lines: list[list[str]]
    better: list[str]  # of each column, `HIGHER`, `LOWER`, or nothing where neither is better
    best: frozenset[tuple[int, int]] = frozenset()  # line and column of the best values


class Word(NamedTuple):
    """A cell's text, and its value if its column is compared (see `Table`)."""

    text: str
    value: float = np.nan
    better: str = ""


@dataclass(frozen=True, eq=False)
class Results:
    """An experiment and the cells that are finished."""

    plan: EvaluationPlan
    cells: Mapping[tuple[int, int], Cell] = field(default_factory=dict)  # by data set and row
    compared: Mapping[int, Compared] = field(default_factory=dict)  # by data set
    version: str = __version__  # of neuralviz that made them
    begun: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.plan.rows

    @property
    def data(self) -> tuple[DataSet, ...]:
        return self.plan.data

    def having(self, event: Cell | Compared) -> Results:
        if isinstance(event, Cell):
            return replace(self, cells={**self.cells, (event.data, event.row): event})
        return replace(self, compared={**self.compared, event.data: event})

    def of_data(self, data: int) -> Results:
        """The results of one data set alone, which becomes number 0."""
        compared = self.compared.get(data)
        return replace(
            self,
            plan=replace(self.plan, data=(self.data[data],)),
            cells={(0, c.row): replace(c, data=0) for c in self.cells.values() if c.data == data},
            compared={} if compared is None else {0: replace(compared, data=0)},
        )

    @property
    def any_failed(self) -> bool:
        return any(cell.failed for cell in self.cells.values())

    def measured(self, data: int, row: int) -> Measured | None:
        """What was measured in a cell; None if missing or failed."""
        cell = self.cells.get((data, row))
        return None if cell is None else cell.measured

    def finished(self, data: int) -> list[tuple[int, str, Measured]]:
        return [
            (index, row.label, measured)
            for index, row in enumerate(self.rows)
            if (measured := self.measured(data, index)) is not None
        ]

    def sentences(self, data: int) -> list[str]:
        labels_of: dict[str, list[str]] = {}  # by sentence
        for index, row in enumerate(self.rows):
            if cell := self.cells.get((data, index)):
                for sentence in cell.list_notes(len(self.data[data].texts)):
                    labels_of.setdefault(sentence, []).append(row.label)
        sentences = [f"{'; '.join(labels)}: {sentence}" for sentence, labels in labels_of.items()]
        compared = self.compared.get(data)
        if compared is None:
            return sentences
        if compared.left_out:
            sentences.append(
                f"Shared errors are those of the first {many(len(compared.rows), 'method')}."
            )
        failed = compared.failed.items()
        return sentences + [f"shared errors ({name}): {reason}" for name, reason in failed]

    def published(self, data: int, row: int) -> Published | None:
        spec_row = self.rows[row]
        return find_published(self.data[data], spec_row.published, spec_row.spec.model_id)

    def models(self) -> str:
        """Which rows are of which model: ``bundled (neural), all-MiniLM-L6-v2 (mean; cls)``."""
        labels_of: dict[str, list[str]] = {}
        for row, label in zip(self.rows, short_labels([r.label for r in self.rows]), strict=True):
            labels_of.setdefault(row.model, []).append(label)
        if len(labels_of) == 1:
            return next(iter(labels_of))
        return ", ".join(f"{model} ({'; '.join(labels)})" for model, labels in labels_of.items())

    # --- tables for people ------------------------------------------------------------------------

    def table(self, data: int) -> Table:
        """A data set's table as words, without empty columns."""
        return make_table(
            [
                {"": row.label}
                | {
                    _join_heads(group, head): word
                    for group, words in self._words(data, index).items()
                    for head, word in words.items()
                }
                for index, row in enumerate(self.rows)
            ]
        )

    def tables(self, data: int) -> list[Table]:
        """`table` divided by kind of measure."""
        words = {row.label: self._words(data, index) for index, row in enumerate(self.rows)}
        return [
            make_table([{group: label, **line.get(group, {})} for label, line in words.items()])
            for group in dict.fromkeys(group for line in words.values() for group in line)
        ]

    def _words(self, data: int, row: int) -> dict[str, dict[str, Word]]:
        cell = self.cells.get((data, row))
        if cell is None:
            return {}
        return {"": {"failed": Word("yes")}} if cell.measured is None else _words(cell.measured)

    def published_table(self, data: int) -> Table:
        """Published numbers of rows, with models; no lines if there are none."""
        papers = [(row.label, self.published(data, n)) for n, row in enumerate(self.rows)]
        return make_table([_published_line(label, paper) for label, paper in papers if paper])

    def overlap_tables(self, data: int) -> list[Table]:
        """The share of broken relations that two rows have in common (Eq. 3), by measure."""
        compared = self.compared.get(data)
        if compared is None:
            return []
        labels = [self.rows[index].label for index in compared.rows]
        return [
            _numbered_table(
                f"{name}: shared errors (I)",
                labels,
                [[_in_digits(value, 2) for value in line] for line in overlap.share],
            )
            for name, overlap in compared.overlaps.items()
        ]

    def confusion_tables(self, data: int) -> list[Table]:
        """Confusion matrices by row and measure, as many as can be read."""
        return [
            _numbered_table(
                f"{label} ({measure}): own label (down), predicted (across)",
                shown.labels,
                [[f"{count:,}" for count in counts] for counts in shown.counts.tolist()],
            )
            for _, label, measured in self.finished(data)
            for measure, confusion in measured.confusions.items()
            for shown in [confusion.merge_rarest()]
        ]

    # --- values for programs ----------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Measures by row, for scripts; by data set and row if there are several sets."""
        by_data = {data.name: self._rows_json(number) for number, data in enumerate(self.data)}
        return self._rows_json(0) if len(self.data) == 1 else by_data

    def as_record(self) -> dict[str, Any]:
        """Everything: settings, data sets, rows, measures, overlaps, published numbers."""
        return {
            "neuralviz": self.version,
            "begun": self.begun,
            "settings": self.settings(),
            "data": [self._data_record(number) for number in range(len(self.data))],
        }

    def settings(self) -> dict[str, Any]:
        settings = self.plan.settings
        return {
            "measures": list(settings.measures) or "default",
            "neighbours": settings.k,
            "bootstrap resamples": settings.resamples,
            "bootstrap seed": settings.seed,
            "tie": TIE,
            "rows": [_row_settings(row) for row in self.rows],
        }

    def csv(self) -> str:
        """One number per line: data, row, model, precision, measure, value, published."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for (data, index), cell in sorted(self.cells.items()):
            row, paper = self.rows[index], self.published(data, index)
            for name, value in [*_flatten(cell.as_json()), *self._shares(data, index)]:
                published = paper.values.get(name) if paper else None
                writer.writerow([
                    escape_formula(self.data[data].name), row.label, escape_formula(row.model),
                    row.spec.precision, escape_formula(name), value, published,
                    paper.model if paper and published else "",
                ])  # fmt: skip
        return file.getvalue()

    def _shares(self, data: int, row: int) -> list[tuple[str, float]]:
        compared = self.compared.get(data)
        if compared is None or row not in compared.rows:
            return []
        return [
            (f"{name}.I with {self.rows[rival].label}", float(share))
            for name, overlap in compared.overlaps.items()
            for rival, share in zip(
                compared.rows, overlap.share[compared.rows.index(row)], strict=True
            )
            if rival != row and np.isfinite(share)
        ]

    def _rows_json(self, data: int) -> dict[str, Any]:
        return {
            row.key: _row_json(row, self.cells[data, index])
            for index, row in enumerate(self.rows)
            if (data, index) in self.cells
        }

    def _data_record(self, number: int) -> dict[str, Any]:
        data, compared = self.data[number], self.compared.get(number)
        papers = {row.key: self.published(number, index) for index, row in enumerate(self.rows)}
        record: dict[str, Any] = {
            "name": data.name,
            "kind": data.kind,
            "about": data.describe(),
            "digest": data.digest,
            "columns": dict(data.columns),
            "notes": list(data.notes),
            "results": self._rows_json(number),
            "published": {
                key: {"model": paper.model, "source": paper.source, **paper.values}
                for key, paper in papers.items()
                if paper
            },
        }
        if isinstance(data, ScoredData):
            record |= {"similar": data.similar, "dissimilar": data.dissimilar}
        if compared is not None:
            record["overlap"] = {
                "rows": [self.rows[index].key for index in compared.rows],
                "left_out": compared.left_out,
                "failed": dict(compared.failed),
                **{
                    name: {
                        "shared": overlap.shared.tolist(),
                        "I": [list(map(none_if_nan, line)) for line in overlap.share.tolist()],
                    }
                    for name, overlap in compared.overlaps.items()
                },
            }
        return record


def _in_digits(value: float, digits: int) -> str:
    return EMPTY_CELL if np.isnan(value) else number(value, f".{digits}f")


def make_table(lines: Sequence[Mapping[str, str | Word]]) -> Table:
    heads = list(dict.fromkeys(head for line in lines for head in line))
    written = [[line.get(head, EMPTY_CELL) for line in lines] for head in heads]
    columns = [
        [Word(cell) if isinstance(cell, str) else cell for cell in cells] for cells in written
    ]
    better = [next((word.better for word in column if word.better), "") for column in columns]
    best = {
        (line, place)
        for place, (column, direction) in enumerate(zip(columns, better, strict=True))
        for line in _find_best(column, direction)
    }
    texts = [[word.text for word in line] for line in zip(*columns, strict=True)]
    return Table(heads, texts, better, frozenset(best))


def _find_best(column: Sequence[Word], better: str) -> list[int]:
    """Lines with the best value as displayed; none if all are equal."""
    values = [word.value for word in column]
    if not better or len({word.text for word in column if np.isfinite(word.value)}) < 2:
        return []
    text = column[int((np.nanargmax if better == HIGHER else np.nanargmin)(values))].text
    return [line for line, word in enumerate(column) if word.text == text]


def _numbered_table(head: str, labels: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    """A square table; columns are headed by the numbers of the labels."""
    return make_table(
        [
            {head: f"{n} {label}"} | {str(place): cell for place, cell in enumerate(line, 1)}
            for n, (label, line) in enumerate(zip(labels, cells, strict=True), 1)
        ]
    )


def _words(measured: Measured) -> dict[str, dict[str, Word]]:
    words: dict[str, dict[str, Word]] = {}
    k = measured.neighbours.k if measured.neighbours else ""
    for column in COLUMNS:
        if (value := column.find(measured)) is not None:
            compared = value if column.better else np.nan
            word = Word(column.write_cell(measured), compared, column.better)
            words.setdefault(column.group.format(k=k), {})[column.head] = word
    for quality_map in measured.paraphrases:
        mean = finite_mean(quality_map.kendall_c)
        word = Word(_in_digits(mean, 3), mean, HIGHER)
        words.setdefault("mean tau-c", {})[f"{quality_map.quality} varies"] = word
    return words


def _published_line(label: str, paper: Published) -> dict[str, str]:
    line = {"method": label, "model": paper.model, "paper": paper.source}
    for name, value in paper.values.items():
        measure, dot, field_name = name.partition(".")
        if not dot:
            line[NAMES[name]] = number(value, ".3f")
        elif field_name == "wrong":
            line[f"{measure} broken"] = f"{value:,}"
        else:
            head = "shared with neural (I)" if field_name == "shared" else field_name
            line[f"{measure} {head}"] = number(value, ".2f")
    return line


def _row_settings(row: Row) -> dict[str, Any]:
    parts = part_names(row.spec)
    models = {name: part.model_id for name, part in parts.items()}
    return {
        "label": row.label,
        "method": row.spec.method,
        "model": models if row.spec.parts else row.model,
        "options": {name: part.all_options for name, part in parts.items()},
        "precision": row.spec.precision or None,
    }


def _row_json(row: Row, cell: Cell) -> dict[str, Any]:
    precision = {"precision": row.spec.precision} if row.spec.precision else {}
    rose = {"loss_rose": cell.n_rose} if cell.n_rose else {}
    return {"model": row.model, **precision, **rose, **cell.as_json()}


def _flatten(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Values of nested mappings by dotted names."""
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if name == "paraphrases" and not isinstance(value, str):
            pairs += [entry for quality_map in value for entry in _flatten_map(quality_map)]
        elif isinstance(value, Mapping):
            pairs += _flatten(value, f"{before}{name}.")
        elif isinstance(value, tuple):  # an interval
            pairs += [(f"{before}{name}.low", value[0]), (f"{before}{name}.high", value[1])]
        elif isinstance(value, str):
            pairs.append((before + name, escape_formula(value)))
        elif isinstance(value, int | float):
            pairs.append((before + name, value))
    return pairs


def _flatten_map(quality_map: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (f"{quality_map['quality']}.kendall_c at {a:g}, {b:g}", quality_map["kendall_c"][i][j])
        for i, a in enumerate(quality_map["fixed1"])
        for j, b in enumerate(quality_map["fixed2"])
    ]


RESULTS_FORMAT = RecordFormat(
    "results",
    version=5,
    classes=(
        Accuracy, Blueprint, BrokenCount, Cell, Compared, Confusion, Correlation, EmbedderSpec,
        EvaluationPlan, GroupedData, Grouping, LabelledData, Measured, MeasureSettings, Outvoted,
        Overlap, ParaphraseData, ProbingTask, QualityMap, ReadBack, Results, Row, ScoredData,
        Uniformity, WorstTriplets,
    ),
)  # fmt: skip
