"""What an experiment has found so far, as tables for people, for programs and in a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neuralviz import __version__
from neuralviz.arrays import RecordFormat
from neuralviz.embedders.specs import EmbedderSpec, part_names
from neuralviz.errors import LossWarning
from neuralviz.evaluation.bootstrap import Intervals
from neuralviz.evaluation.broken import TIE, BrokenCount, Overlap
from neuralviz.evaluation.correlation import COEFFICIENTS, Correlation
from neuralviz.evaluation.data import GroupedData, LabelledData, ParaphraseData, ScoredData
from neuralviz.evaluation.events import Cell, Compared, Measured
from neuralviz.evaluation.paraphrases import QualityMap
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings, Row
from neuralviz.evaluation.probed import Confusion, Probed
from neuralviz.evaluation.probing_tasks import ProbingTask
from neuralviz.evaluation.published import Published, find_published
from neuralviz.evaluation.triplets import Grouping, WorstTriplets
from neuralviz.evaluation.uniformity import Uniformity
from neuralviz.maps.neighbourhoods import KnnAccuracy, Outvoted
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.store.writing import escape_formula
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet


NAMES = {
    "spearman": "Spearman",
    "kendall_c": "tau-c",
    "kendall_b": "tau-b",
    "pearson": "Pearson",
}
HIGHER, LOWER = "higher is better", "lower is better"
ARROWS = {HIGHER: "↑", LOWER: "↓"}
EMPTY_CELL = "–"


class Table(NamedTuple):
    """A table as words.

    Attributes:
        heads: of the columns.
        lines: a row each.
        better: of each column, `HIGHER`, `LOWER`, or nothing where neither is better.
        best: line and column of the best values, where they differ.
    """

    heads: list[str]
    lines: list[list[str]]
    better: list[str]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Word:
    """What stands in a cell.

    Attributes:
        text: as it is read.
        value: as it is compared; NaN where it is not.
        better: as of `Table`.
    """

    text: str
    value: float = np.nan
    better: str = ""


def format_measured(measured: Measured) -> dict[str, dict[str, Word]]:
    """What was measured, by kind of measure and head of a column."""
    words: dict[str, dict[str, Word]] = {}
    if measured.correlations is not None:
        values = {NAMES[n]: getattr(measured.correlations, n) for n in COEFFICIENTS}
        cells = {name: Word(in_digits(v, 3), v, HIGHER) for name, v in values.items()}
        if measured.intervals is not None:
            low, high = measured.intervals.spearman
            bounds = f"{number(low, '.3f')} to {number(high, '.3f')}"
            cells["Spearman, 95% interval"] = Word(bounds)
        words[""] = cells
    for name, counted in (("pairs", measured.pairs), ("triplets", measured.triplets)):
        if counted is not None:
            words[name] = {
                "error": Word(f"{counted.error:.2%}", counted.error, LOWER),
                "broken": Word(f"{counted.wrong:,} of {counted.total:,}", counted.wrong, LOWER),
                "without ties": Word(f"{counted.wrong_strict:,}", counted.wrong_strict, LOWER),
                "same": Word(number(counted.same, ".2f")),
                "diff": Word(number(counted.diff, ".2f")),
            }
    if measured.neighbours is not None:
        accuracy, (low, high) = measured.neighbours.accuracy, measured.neighbours.interval
        words[f"{measured.neighbours.k}-NN"] = {
            "accuracy": Word(f"{accuracy:.1%}", accuracy, HIGHER),
            "95% interval": Word(f"{low:.1%} to {high:.1%}"),
            "majority baseline": Word(f"{measured.neighbours.baseline:.1%}"),
        }
        words |= _by_label(f"{measured.neighbours.k}-NN", measured.votes)
    if measured.probe is not None:
        probe, (low, high) = measured.probe, measured.probe.interval
        words["probe"] = {
            "accuracy": Word(f"{probe.accuracy:.1%}", probe.accuracy, HIGHER),
            "95% interval": Word(f"{low:.1%} to {high:.1%}"),
            "majority baseline": Word(f"{probe.baseline:.1%}"),
            "TF-IDF baseline": Word(EMPTY_CELL if probe.tfidf is None else f"{probe.tfidf:.1%}"),
        }
        words |= _by_label("probe", probe.confusion)
    if measured.uniformity is not None:
        spread = {
            "alignment": measured.uniformity.alignment,
            "uniformity": measured.uniformity.uniformity,
        }
        words["embeddings"] = {
            name: Word(number(value, ".3f"), value, LOWER)
            for name, value in spread.items()
            if value is not None
        }
    for quality_map in measured.paraphrases:
        defined = quality_map.kendall_c[np.isfinite(quality_map.kendall_c)]
        mean = float(defined.mean()) if len(defined) else np.nan
        words.setdefault("mean tau-c", {})[f"{quality_map.quality} varies"] = Word(
            in_digits(mean, 3), mean, HIGHER
        )
    return words


def _by_label(kind: str, confusion: Confusion | None) -> dict[str, dict[str, Word]]:
    """The measures that count every label alike, as of `format_measured`."""
    if confusion is None:
        return {}
    values = {"macro-F1": confusion.macro_f1, "balanced accuracy": confusion.balanced_accuracy}
    cells = {name: Word(f"{value:.1%}", value, HIGHER) for name, value in values.items()}
    return {f"{kind}, by label": cells}


def as_lines(lines: Sequence[Mapping[str, str | Word]]) -> Table:
    """Heads as they first come, and the cells under them."""
    heads = list(dict.fromkeys(head for line in lines for head in line))
    nothing = Word(EMPTY_CELL)
    columns = [[_word(line.get(head, nothing)) for line in lines] for head in heads]
    better = [next((word.better for word in column if word.better), "") for column in columns]
    best = {
        (line, place)
        for place, (column, direction) in enumerate(zip(columns, better, strict=True))
        for line in _best_of(column, direction)
    }
    texts = [[word.text for word in line] for line in zip(*columns, strict=True)]
    return Table(heads, texts, better, frozenset(best))


def _word(cell: str | Word) -> Word:
    return Word(cell) if isinstance(cell, str) else cell


def _best_of(column: Sequence[Word], better: str) -> list[int]:
    """Lines with the best value of a column, as it is read; none where all are alike."""
    values = [word.value for word in column]
    if not better or len({word.text for word in column if np.isfinite(word.value)}) < 2:
        return []
    text = column[int((np.nanargmax if better == HIGHER else np.nanargmin)(values))].text
    return [line for line, word in enumerate(column) if word.text == text]


def in_digits(value: float, digits: int) -> str:
    """A number with so many digits behind the point."""
    return EMPTY_CELL if np.isnan(value) else number(value, f".{digits}f")


def flatten(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Names and what they stand for, those of a mapping within behind a full stop."""
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if name == "paraphrases" and not isinstance(value, str):
            pairs += [
                (
                    f"{quality_map['quality']}.kendall_c at {a:g}, {b:g}",
                    quality_map["kendall_c"][i][j],
                )
                for quality_map in value
                for i, a in enumerate(quality_map["fixed1"])
                for j, b in enumerate(quality_map["fixed2"])
            ]
        elif isinstance(value, Mapping):
            pairs += flatten(value, f"{before}{name}.")
        elif isinstance(value, tuple):  # an interval
            pairs += [(f"{before}{name}.low", value[0]), (f"{before}{name}.high", value[1])]
        elif isinstance(value, str):
            pairs.append((before + name, escape_formula(value)))
        elif isinstance(value, int | float):
            pairs.append((before + name, value))
    return pairs


@dataclass(frozen=True, eq=False)
class Results:
    """An experiment and the cells that are finished.

    Attributes:
        plan: what was asked for.
        cells: by number of data set and row.
        compared: by number of data set.
        version: of neuralviz that made them.
        begun: when, ISO 8601 in UTC, to the second.
    """

    plan: EvaluationPlan
    cells: Mapping[tuple[int, int], Cell] = field(default_factory=dict)
    compared: Mapping[int, Compared] = field(default_factory=dict)
    version: str = __version__
    begun: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")

    @property
    def rows(self) -> tuple[Row, ...]:
        """The plan's ways to embed."""
        return self.plan.rows

    @property
    def data(self) -> tuple[DataSet, ...]:
        """The plan's data sets."""
        return self.plan.data

    def having(self, event: Cell | Compared) -> Results:
        """A copy with one more cell, or with the rows' shared errors."""
        if isinstance(event, Cell):
            return replace(self, cells={**self.cells, (event.data, event.row): event})
        return replace(self, compared={**self.compared, event.data: event})

    def of_data(self, data: int) -> Results:
        """The results of one data set alone, which becomes number 0."""
        return replace(
            self,
            plan=replace(self.plan, data=(self.data[data],)),
            cells={
                (0, row): replace(cell, data=0)
                for (number, row), cell in self.cells.items()
                if number == data
            },
            compared={0: replace(self.compared[data], data=0)} if data in self.compared else {},
        )

    @property
    def any_failed(self) -> bool:
        """Whether any of what was asked for is missing in a finished cell."""
        return any(cell.failed for cell in self.cells.values())

    def measured(self, data: int, row: int) -> Measured | None:
        """What was measured in a cell; None while it is missing, or when it failed."""
        cell = self.cells.get((data, row))
        return None if cell is None else cell.measured

    def finished(self, data: int) -> list[tuple[int, str, Measured]]:
        """Row, its label and what was measured of those that are finished."""
        entries = (
            (index, row.label, self.measured(data, index)) for index, row in enumerate(self.rows)
        )
        return [
            (index, label, measured) for index, label, measured in entries if measured is not None
        ]

    def sentences(self, data: int) -> list[str]:
        """Notes on a data set's cells, and why a measure is missing."""
        rows_of: dict[str, list[str]] = {}  # sentence to the labels of its rows
        for index, row in enumerate(self.rows):
            cell = self.cells.get((data, index))
            if cell is None:
                continue
            if cell.error:
                rows_of.setdefault(cell.error, []).append(row.label)
            if cell.measured is not None:
                for name, reason in cell.measured.failed.items():
                    rows_of.setdefault(f"{name}: {reason}", []).append(row.label)
                for note in cell.measured.notes:
                    rows_of.setdefault(note, []).append(row.label)
            if cell.n_rose:
                warning = LossWarning(cell.n_rose, len(self.data[data].texts))
                rows_of.setdefault(str(warning), []).append(row.label)
        sentences = [f"{'; '.join(labels)}: {sentence}" for sentence, labels in rows_of.items()]
        compared = self.compared.get(data)
        if compared is not None:
            sentences += [
                f"shared errors ({name}): {reason}" for name, reason in compared.failed.items()
            ]
        return sentences

    def left_out(self, data: int) -> str:
        """Which rows have no shared errors computed, in a sentence; empty where all have."""
        compared = self.compared.get(data)
        if compared is None or not compared.left_out:
            return ""
        return (
            f"Shared errors are shown for the first {many(len(compared.rows), 'method')} "
            f"only ({compared.left_out} more in the table)."
        )

    def published(self, data: int, row: int) -> Published | None:
        """What the paper has for a cell."""
        row_plan = self.rows[row]
        return find_published(self.data[data], row_plan.published, row_plan.spec.model_id)

    def models(self) -> str:
        """Which rows are of which model: ``bundled (neural), all-MiniLM-L6-v2 (mean; cls)``."""
        labels_of: dict[str, list[str]] = {}
        for row in self.rows:
            labels_of.setdefault(row.model, []).append(row.label)
        if len(labels_of) == 1:
            return next(iter(labels_of))
        return ", ".join(f"{model} ({'; '.join(labels)})" for model, labels in labels_of.items())

    def published_table(self, data: int) -> Table:
        """What the paper has for rows, as words, with the models; no lines where it has nothing."""
        lines = []
        for index, row in enumerate(self.rows):
            paper = self.published(data, index)
            if paper is None:
                continue
            line: dict[str, str | Word] = {
                "method": row.label,
                "model": paper.model,
                "paper": paper.source,
            }
            for name in COEFFICIENTS:
                value = getattr(paper, name, None)
                if value is not None:
                    line[NAMES[name]] = number(value, ".3f")
            for name, counted in (("pairs", paper.pairs), ("triplets", paper.triplets)):
                if counted is not None:
                    line |= {
                        f"{name} broken": f"{counted.wrong:,}",
                        f"{name} same": number(counted.same, ".2f"),
                        f"{name} diff": number(counted.diff, ".2f"),
                    }
                    if counted.shared is not None:
                        line[f"{name} shared with neural (I)"] = f"{counted.shared:.2f}"
            lines.append(line)
        return as_lines(lines)

    def table(self, data: int) -> Table:
        """Heads and lines of a data set's table, as words; columns that nobody has are left out."""
        lines = []
        for index, row in enumerate(self.rows):
            line: dict[str, str | Word] = {"": row.label}
            for group, words in self._words(data, index).items():
                before = "" if group == "embeddings" else f"{group} "
                line |= {f"{before}{head}".strip(): word for head, word in words.items()}
            lines.append(line)
        return as_lines(lines)

    def tables(self, data: int) -> list[Table]:
        """As `table`, in narrow tables, one a kind of measure; its name heads the labels."""
        words = [self._words(data, index) for index in range(len(self.rows))]
        tables = []
        for group in dict.fromkeys(group for line in words for group in line):
            lines: list[dict[str, str | Word]] = [
                {group: row.label, **line.get(group, {})}
                for row, line in zip(self.rows, words, strict=True)
            ]
            tables.append(as_lines(lines))
        return tables

    def overlap_tables(self, data: int) -> list[Table]:
        """Which share of what they break two rows have in common (Eq. 3), a table a measure.

        Rows are numbered, and columns are called by these numbers.
        """
        compared = self.compared.get(data)
        if compared is None:
            return []
        labels = [f"{n} {self.rows[index].label}" for n, index in enumerate(compared.rows, 1)]
        return [
            as_lines(
                [
                    {
                        f"{name}: shared errors (I)": label,
                        **{str(n): in_digits(value, 2) for n, value in enumerate(line, 1)},
                    }
                    for label, line in zip(labels, overlap.share, strict=True)
                ]
            )
            for name, overlap in compared.overlaps.items()
        ]

    def confusion_tables(self, data: int) -> list[Table]:
        """Which labels are taken for which, a table a row and measure; as many as can be read."""
        tables = []
        for _, label, measured in self.finished(data):
            for measure in ("neighbours", "probe"):
                confusion = measured.confusion_of(measure)
                if confusion is not None:
                    tables.append(_confusion_table(f"{label} ({measure})", confusion.at_most()))
        return tables

    def _words(self, data: int, row: int) -> dict[str, dict[str, Word]]:
        """The words of a cell, by kind of measure and column head."""
        cell = self.cells.get((data, row))
        if cell is None:
            return {}
        if cell.measured is None:
            return {"": {"failed": Word("yes")}}
        return format_measured(cell.measured)

    def as_json(self) -> dict[str, Any]:
        """The measures by row, for scripts; by data set and row where there are several sets."""
        by_data = {data.name: self._of_data(number) for number, data in enumerate(self.data)}
        return self._of_data(0) if len(self.data) == 1 else by_data

    def as_record(self) -> dict[str, Any]:
        """Everything: settings, data sets, rows, measures, overlaps, what was published."""
        return {
            "neuralviz": self.version,
            "begun": self.begun,
            "settings": self.settings(),
            "data": [self._data_record(number) for number in range(len(self.data))],
        }

    def settings(self) -> dict[str, Any]:
        """What was asked, defaults included."""
        return {
            "measures": list(self.plan.settings.measures) or "default",
            "neighbours": self.plan.settings.k,
            "bootstrap resamples": self.plan.settings.resamples,
            "bootstrap seed": self.plan.settings.seed,
            "tie": TIE,
            "rows": [
                {
                    "label": row.label,
                    "method": row.spec.method,
                    "model": {name: part.model_id for name, part in part_names(row.spec).items()}
                    if row.spec.parts
                    else row.model,
                    "options": {
                        name: part.all_options for name, part in part_names(row.spec).items()
                    },
                    "precision": row.precision or None,
                }
                for row in self.rows
            ],
        }

    def csv(self) -> str:
        """A line for every number: data, row, model, precision, measure, value, published."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "method", "model", "precision", "measure", "value", "published",
                         "published model"])  # fmt: skip
        for (data, row), cell in sorted(self.cells.items()):
            paper = self.published(data, row)
            row_plan = self.rows[row]
            numbers = {"error": cell.error} if cell.measured is None else cell.measured.as_json()
            for name, value in [*flatten(numbers), *self._shares(data, row)]:
                paper_value = _published_value(paper, name)
                writer.writerow([
                    escape_formula(self.data[data].name), row_plan.label,
                    escape_formula(row_plan.model), row_plan.precision, escape_formula(name), value,
                    "" if paper_value is None else paper_value,
                    paper.model if paper and paper_value else "",
                ])  # fmt: skip
        return file.getvalue()

    def _shares(self, data: int, row: int) -> list[tuple[str, float]]:
        """What a row breaks in common with others, by name."""
        compared = self.compared.get(data)
        if compared is None or row not in compared.rows:
            return []
        its_place = compared.rows.index(row)
        return [
            (f"{name}.I with {self.rows[rival_row].label}", float(overlap.share[its_place, place]))
            for name, overlap in compared.overlaps.items()
            for place, rival_row in enumerate(compared.rows)
            if rival_row != row and np.isfinite(overlap.share[its_place, place])
        ]

    def _of_data(self, data: int) -> dict[str, Any]:
        return {
            row.key: self._cell_json(data, index)
            for index, row in enumerate(self.rows)
            if (data, index) in self.cells
        }

    def _cell_json(self, data: int, row: int) -> dict[str, Any]:
        cell = self.cells[data, row]
        row_plan = self.rows[row]
        record: dict[str, Any] = {"model": row_plan.model}
        if row_plan.precision:
            record["precision"] = row_plan.precision
        if cell.n_rose:
            record["loss_rose"] = cell.n_rose
        if cell.measured is None:
            return record | {"error": cell.error}
        return record | cell.measured.as_json()

    def _data_record(self, number: int) -> dict[str, Any]:
        data = self.data[number]
        record: dict[str, Any] = {
            "name": data.name,
            "kind": data.kind,
            "about": data.describe(),
            "digest": data.digest,
            "columns": dict(data.columns),
            "notes": list(data.notes),
            "results": self._of_data(number),
        }
        if isinstance(data, ScoredData):
            record |= {"similar": data.similar, "dissimilar": data.dissimilar}
        papers = {row.key: self.published(number, index) for index, row in enumerate(self.rows)}
        record["published"] = {
            key: asdict(paper) for key, paper in papers.items() if paper is not None
        }
        compared = self.compared.get(number)
        if compared is not None:
            record["overlap"] = {
                "rows": [self.rows[index].key for index in compared.rows],
                "left_out": compared.left_out,
                "failed": dict(compared.failed),
                **{
                    name: {
                        "shared": overlap.shared.tolist(),
                        "I": [
                            [None if np.isnan(v) else v for v in line]
                            for line in overlap.share.tolist()
                        ],
                    }
                    for name, overlap in compared.overlaps.items()
                },
            }
        return record


def _confusion_table(title: str, confusion: Confusion) -> Table:
    """Own labels down, with the numbers that the columns have; predicted ones across."""
    heads = [str(n) for n in range(1, len(confusion.labels) + 1)]
    return Table(
        [f"{title}: own label (down), predicted (across)", *heads],
        [
            [f"{n} {label}", *(f"{count:,}" for count in counts)]
            for n, label, counts in zip(
                heads, confusion.labels, confusion.counts.tolist(), strict=True
            )
        ],
        [""] * (len(heads) + 1),
    )


def _published_value(paper: Published | None, name: str) -> float | None:
    if paper is None:
        return None
    if name in COEFFICIENTS:
        return getattr(paper, name)
    measure, _, field_name = name.partition(".")
    counted = {"pairs": paper.pairs, "triplets": paper.triplets}.get(measure)
    return (
        getattr(counted, field_name)
        if counted and field_name in ("wrong", "same", "diff")
        else None
    )


RESULTS_FORMAT = RecordFormat(
    "results",
    version=3,
    classes=(
        Blueprint, BrokenCount, Cell, Compared, Confusion, Correlation, EmbedderSpec,
        EvaluationPlan, GroupedData, Grouping, Intervals, KnnAccuracy, LabelledData, Measured,
        MeasureSettings, Outvoted, Overlap, ParaphraseData, Probed, ProbingTask, QualityMap,
        Results, Row, ScoredData, Uniformity, WorstTriplets,
    ),
)  # fmt: skip
