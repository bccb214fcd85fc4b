"""Labelled data from tables, whose columns have roles or are guessed, and from corpora."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from neuralviz.embedders.specs import EmbedderSpec
from neuralviz.errors import SettingsError, TextError
from neuralviz.evaluation.data import (
    BY_RANGE,
    ParaphraseData,
    distinct,
    grouped_data,
    labelled_data,
    scored_data,
    with_notes,
)
from neuralviz.maps.opened import TEXTS_A_LABEL
from neuralviz.reading.columns import TEXT_COLUMNS
from neuralviz.reading.lines import tidy
from neuralviz.reading.pairs import (
    OPTIONAL,
    ROLES,
    find_role_columns,
    find_roles,
    usable_rows,
)
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table, parse_numbers
from neuralviz.reading.tables import read_table
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet, GroupedData, Thresholds
    from neuralviz.reading.pairs import Kind
    from neuralviz.store.corpora import Corpus, CorpusStore


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
    """Read labelled data by roles; TextError if unusable, SettingsError for a wrong role."""
    # roles are only needed for columns not named as in `ROLES`
    table = read_table(source, max_rows=max_rows)
    return make_data(source.name, table, roles, thresholds=thresholds)


def make_data(
    name: str,
    table: Table,
    roles: Mapping[str, str] | None = None,
    *,
    thresholds: Thresholds = BY_RANGE,
) -> DataSet:
    """`read_data` for a table in memory."""
    kind, columns = find_roles(name, table.columns, roles or {})
    if kind == "pairs":
        rows = usable_rows(table, (columns["text1"], columns["text2"]), (columns["score"],))
        data: DataSet = scored_data(
            name, *rows.texts, *rows.numbers, thresholds=thresholds, notes=rows.notes
        )
        if data.digest_of_texts == STS_TEST:
            data = replace(data, benchmark="stsb")
    elif kind == "groups":
        data = _grouped(name, table, columns)
    elif kind == "labels":
        rows = usable_rows(table, (columns["text"], columns["label"]))
        data = labelled_data(name, *rows.texts, notes=rows.notes)
    else:
        data = _paraphrases(name, table, columns)
    if kind != "pairs" and thresholds != BY_RANGE:
        note = f"{name} has no scores, so the thresholds have no effect."
        data = replace(data, notes=(*data.notes, note))
    return replace(data, columns=columns)


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


LOOKED_AT = 500  # rows
LEAST_NUMBERS = 0.75  # share of the scores that are numbers; others are missing: “n/a”
_COUNTED = re.compile(r"(?:^|[\W_]|q)(?:id|idx|index|year)\d*$", re.I)  # names of no scores
SCORE_WORDS = ("score", "rating", "similar", "relat", "gold", "stars")


def guess_roles(table: Table) -> tuple[Kind, dict[str, str]]:
    """The likeliest kind of data, and the columns found for its roles."""
    # names count first; else two columns of texts and one of numbers are scored pairs, a column of
    # texts and one of repeated values labelled texts
    likely: tuple[Kind, ...] = (_by_name(table.columns), "pairs", "labels")
    named = find_role_columns(likely[0], table.columns)
    if not _lacking(likely[0], named):
        return likely[0], named
    for kind in likely[1:]:
        columns = guess_columns(kind, table)
        if not _lacking(kind, columns):
            return kind, columns
    return likely[0], named


def guess_columns(kind: Kind, table: Table) -> dict[str, str]:
    """The columns found for a kind's roles, by name or else by content."""
    named = find_role_columns(kind, table.columns)
    if not _lacking(kind, named):
        return named
    table = table.first(LOOKED_AT)
    texts, by_role = _texts(table), {}
    if kind == "pairs":
        by_role = dict(zip(("text1", "text2"), texts, strict=False))
        numbers = [
            name
            for name in table.columns
            if not _COUNTED.search(name) and _is_score(name, table.column(name))
        ]
        likely = [name for name in numbers if any(word in name.lower() for word in SCORE_WORDS)]
        if numbers:
            by_role["score"] = (likely or numbers)[-1]
    elif kind in ("labels", "groups") and texts:
        by_role["text"] = _choose_text(table, texts)
        labels = [name for name in table.columns if _is_label(table.column(name))]
        likely = [name for name in labels if name != by_role["text"]]
        if likely:
            by_role[kind.removesuffix("s")] = likely[0]
    free = {role: name for role, name in by_role.items() if name not in named.values()}
    return free | named


def _by_name(columns: Sequence[str]) -> Kind:

    def fits(kind: Kind) -> tuple[bool, int]:
        needed = [role for role in ROLES[kind] if role not in OPTIONAL]
        return len(needed) <= len(columns), len(find_role_columns(kind, columns))

    return max(("pairs", "groups", "labels", "paraphrases"), key=fits)


def _lacking(kind: Kind, columns: dict[str, str]) -> bool:
    return any(role not in columns for role in ROLES[kind] if role not in OPTIONAL)


def _texts(table: Table) -> list[str]:
    """Columns of mostly distinct cells with several words, in order."""
    names = []
    for name in table.columns:
        filled = [value for value in table.column(name) if value.strip()]
        n_words = sum(len(value.split()) for value in filled)
        if filled and n_words > 1.5 * len(filled) and 2 * len(set(filled)) >= len(filled):
            names.append(name)
    return names


def _choose_text(table: Table, titles: Sequence[str]) -> str:
    """The longest of the columns, or one with a usual name and almost as long."""
    lengths = {title: sum(map(len, table.column(title))) for title in titles}
    longest = max(lengths.values())
    named = [
        title
        for title in titles
        if title.strip().lower() in TEXT_COLUMNS and 2 * lengths[title] >= longest
    ]
    return max(named or titles, key=lambda title: lengths[title])


def _is_score(name: str, column: Sequence[str]) -> bool:
    """Whether these are numbers or missing, and not numbers of rows or classes."""
    filled = [value for value in column if value.strip()]
    finite = [value for value in parse_numbers(filled) if value is not None]
    if len(finite) < LEAST_NUMBERS * len(filled) or len(set(finite)) < 2:
        return False
    is_class = "label" in name.lower() and {0, 1, 2} <= set(finite) <= {-1, 0, 1, 2}  # of NLI
    return not is_class and finite != [finite[0] + place for place in range(len(finite))]


def _is_label(column: Sequence[str]) -> bool:
    """Whether few values repeat."""
    filled = [value for value in column if value.strip()]
    return 2 <= len(set(filled)) <= len(filled) / TEXTS_A_LABEL


CorpusKind = Literal["labels", "groups"]


def corpus_data(
    store: CorpusStore, corpus: Corpus, column: str, kind: CorpusKind, *, max_rows: int
) -> DataSet:
    """A corpus's texts with a label; StoreError without the column, TextError with too few."""
    values = store.labels(corpus, column)
    if values.dtype == float:
        labels = [f"{value:g}" if np.isfinite(value) else "" for value in values]
    else:
        labels = [str(value).strip() for value in values]
    texts = store.texts(corpus)
    used = [row for row, label in enumerate(labels) if label]
    notes: tuple[str, ...] = ()
    if len(used) < len(labels):
        notes += (f"Skipped {many(len(labels) - len(used), 'text')} without a label.",)
    if len(used) > max_rows:
        notes += (f"Using the first {max_rows:,} of {many(len(used), 'text')}.",)
        used = used[:max_rows]
    make = labelled_data if kind == "labels" else grouped_data
    name = f"{corpus.name}, {column}"
    data = make(name, [texts[row] for row in used], [labels[row] for row in used], notes=notes)
    return replace(data, columns={"label" if kind == "labels" else "group": column})


def kept_specs(store: CorpusStore, corpus: Corpus) -> tuple[EmbedderSpec, ...]:
    """Embedders with a vector for every text of a corpus, oldest first."""
    keys = np.unique(store.keys(corpus))
    specs: dict[EmbedderSpec, None] = {}
    for kept in store.vectors.embedders():
        if kept.spec and store.vectors.has_vectors(kept, keys).all():
            try:
                specs[EmbedderSpec.from_json(kept.spec)] = None
            except SettingsError:  # of a version that had other methods
                continue
    return tuple(specs)
