"""The results of an experiment so far, as tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neuralviz import __version__
from neuralviz.arrays import RecordFormat
from neuralviz.embedders.specs import EmbedderSpec, part_names
from neuralviz.errors import LossWarning
from neuralviz.evaluation.broken import TIE, BrokenCount, Overlap
from neuralviz.evaluation.columns import COLUMNS, EMPTY_CELL, HIGHER, LOWER, NAMES
from neuralviz.evaluation.correlation import Correlation
from neuralviz.evaluation.data import GroupedData, LabelledData, ParaphraseData, ScoredData
from neuralviz.evaluation.events import (
    Cell,
    Compared,
    Measured,
    QualityMap,
    Uniformity,
    finite_mean,
    none_if_nan,
)
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings, Row
from neuralviz.evaluation.probing import Accuracy, Confusion
from neuralviz.evaluation.probing_tasks import ProbingTask
from neuralviz.evaluation.published import Published, find_published
from neuralviz.evaluation.triplets import Grouping, WorstTriplets
from neuralviz.maps.neighbours import Outvoted
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.store.writing import escape_formula
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet

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
                for sentence in self._cell_notes(cell):
                    labels_of.setdefault(sentence, []).append(row.label)
        sentences = [f"{'; '.join(labels)}: {sentence}" for sentence, labels in labels_of.items()]
        compared = self.compared.get(data)
        failed = compared.failed if compared else {}
        return sentences + [f"shared errors ({name}): {reason}" for name, reason in failed.items()]

    def _cell_notes(self, cell: Cell) -> Iterator[str]:
        if cell.error:
            yield cell.error
        if cell.measured is not None:
            yield from (f"{name}: {reason}" for name, reason in cell.measured.failed.items())
            yield from cell.measured.notes
        if cell.n_rose:
            yield str(LossWarning(cell.n_rose, len(self.data[cell.data].texts)))

    def left_out(self, data: int) -> str:
        """A sentence naming rows without shared errors; empty if none."""
        compared = self.compared.get(data)
        if compared is None or not compared.left_out:
            return ""
        return (
            f"Shared errors are shown for the first {many(len(compared.rows), 'method')} "
            f"only ({compared.left_out} more in the table)."
        )

    def published(self, data: int, row: int) -> Published | None:
        spec_row = self.rows[row]
        return find_published(self.data[data], spec_row.published, spec_row.spec.model_id)

    def models(self) -> str:
        """Which rows are of which model: ``bundled (neural), all-MiniLM-L6-v2 (mean; cls)``."""
        labels_of: dict[str, list[str]] = {}
        for row in self.rows:
            labels_of.setdefault(row.model, []).append(row.label)
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
                    (head if group in ("", "embeddings") else f"{group} {head}"): word
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
            for shown in [confusion.at_most()]
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
            numbers = {"error": cell.error} if cell.measured is None else cell.measured.as_json()
            for name, value in [*_flatten(numbers), *self._shares(data, index)]:
                published = paper.values.get(name) if paper else None
                writer.writerow([
                    escape_formula(self.data[data].name), row.label, escape_formula(row.model),
                    row.precision, escape_formula(name), value, published,
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
            row.key: _cell_json(row, self.cells[data, index])
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
    for column in COLUMNS:
        if column.is_measured(measured):
            value = column.find(measured) if column.better else np.nan
            word = Word(column.write_cell(measured), value, column.better)
            words.setdefault(column.name_group(measured), {})[column.head] = word
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
        "precision": row.precision or None,
    }


def _cell_json(row: Row, cell: Cell) -> dict[str, Any]:
    record: dict[str, Any] = {"model": row.model}
    if row.precision:
        record["precision"] = row.precision
    if cell.n_rose:
        record["loss_rose"] = cell.n_rose
    return record | ({"error": cell.error} if cell.measured is None else cell.measured.as_json())


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
        Overlap, ParaphraseData, ProbingTask, QualityMap, Results, Row, ScoredData, Uniformity,
        WorstTriplets,
    ),
)  # fmt: skip
