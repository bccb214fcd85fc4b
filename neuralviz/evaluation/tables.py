"""Labelled data read from tables whose columns have declared roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from neuralviz.errors import TextError
from neuralviz.evaluation.data import (
    BY_RANGE,
    ParaphraseData,
    distinct,
    grouped_data,
    labelled_data,
    scored_data,
    with_notes,
)
from neuralviz.reading.lines import tidy
from neuralviz.reading.roles import find_roles
from neuralviz.reading.rows import usable_rows
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table
from neuralviz.reading.tables import read_table
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet, GroupedData, LabelledData, ScoredData, Thresholds

MAX_ROWS = 2_000_000
ANCHORS = ("anchor", "document")  # roles of texts that are compared with the others
STS_TEST = "d904940cd4780dfd4645e54b"  # digest of the texts of the benchmark's test pairs


def read_data(
    source: Source,
    roles: Mapping[str, str] | None = None,
    *,
    thresholds: Thresholds = BY_RANGE,
    max_rows: int = MAX_ROWS,
) -> DataSet:
    """Read a table of one of the kinds.

    Args:
        source: the file.
        roles: role to column, for those that are not called as in `ROLES`.
        thresholds: of the scores.
        max_rows: rows behind are left out, with a note.

    Raises:
        TextError: it cannot be read, has none of the sets of columns, or too few rows are whole.
        SettingsError: a role that there is not, or whose column there is not.
    """
    table = read_table(source, max_rows=max_rows)
    return make_data(source.name, table, roles, thresholds=thresholds)


def make_data(
    name: str,
    table: Table,
    roles: Mapping[str, str] | None = None,
    *,
    thresholds: Thresholds = BY_RANGE,
) -> DataSet:
    """`read_data` for a table that is read already."""
    kind, columns = find_roles(name, table.columns, roles or {})
    if kind == "pairs":
        data: DataSet = _scored(name, table, columns, thresholds)
        if data.digest_of_texts == STS_TEST:
            data = replace(data, benchmark="stsb")
    elif kind == "groups":
        data = _grouped(name, table, columns)
    elif kind == "labels":
        data = _labelled(name, table, columns)
    else:
        data = _paraphrases(name, table, columns)
    if kind != "pairs" and thresholds != BY_RANGE:
        note = f"{name} has no scores, so the thresholds have no effect."
        data = replace(data, notes=(*data.notes, note))
    return replace(data, columns=columns)


def _scored(
    name: str, table: Table, columns: Mapping[str, str], thresholds: Thresholds
) -> ScoredData:
    rows = usable_rows(table, (columns["text1"], columns["text2"]), (columns["score"],))
    first, second = rows.texts
    (scores,) = rows.numbers
    return scored_data(name, first, second, scores, thresholds=thresholds, notes=rows.notes)


def _grouped(name: str, table: Table, columns: Mapping[str, str]) -> GroupedData:
    rows = usable_rows(table, (columns["text"], columns["group"]))
    texts, groups = rows.texts
    anchors, notes = None, rows.notes
    if "role" in columns:
        roles = [tidy(table.column(columns["role"])[place]).lower() for place in rows.places]
        if any(role in ANCHORS for role in roles):
            anchors = [role in ANCHORS for role in roles]
        else:
            notes += (
                (
                    f"No text in the column “{columns['role'][:40]}” has the role “"
                    f"{'” or “'.join(ANCHORS)}”, so roles are ignored. To use them, mark the "
                    "anchors."
                ),
            )
    return grouped_data(name, texts, groups, anchors, notes=notes)


def _labelled(name: str, table: Table, columns: Mapping[str, str]) -> LabelledData:
    rows = usable_rows(table, (columns["text"], columns["label"]))
    texts, labels = rows.texts
    return labelled_data(name, texts, labels, notes=rows.notes)


def _paraphrases(name: str, table: Table, columns: Mapping[str, str]) -> ParaphraseData:
    rows = usable_rows(
        table,
        (columns["original"], columns["generated"], columns["varies"]),
        (columns["value"], columns["fixed1"], columns["fixed2"]),
    )
    original, generated, varies = rows.texts
    if len(original) < 2:
        raise TextError(
            (
                f"{name} has only {many(len(original), 'text')} generated from an original; at "
                "least two are needed."
            )
            + with_notes(rows.notes)
        )
    texts, places = distinct([*original, *generated])
    n = len(original)
    return ParaphraseData(
        name, texts, places[:n], places[n:], varies, *rows.numbers, notes=rows.notes
    )
