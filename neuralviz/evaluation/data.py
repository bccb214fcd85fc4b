"""Labelled data to measure embeddings on, read from tables whose columns have declared roles.

Four kinds: pairs of texts with a score; texts in groups; texts with a label; phrases generated to
be alike to a chosen degree. Different texts are listed once, whatever the rows: each is embedded
once, and the same text has the same vector.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.broken import Grouping
from neuralviz.reading.lines import tidy
from neuralviz.reading.pairs import FEWEST_PAIRS, SCORE_COLUMNS, SENTENCE_COLUMNS
from neuralviz.reading.rows import usable_rows
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table
from neuralviz.reading.tables import read_table
from neuralviz.words import count, many

Kind = Literal["pairs", "groups", "labels", "paraphrases"]
Measure = Literal["correlations", "pairs", "triplets", "neighbours", "uniformity", "paraphrases"]

MAX_ROWS = 2_000_000
SIMILAR, DISSIMILAR = 4.0, 2.0  # on a scale of 0 … 5 (section 3.3)
ANCHORS = ("anchor", "document")  # roles of texts that are compared with the others
STS_TEST = "d904940cd4780dfd4645e54b"  # digest of the texts of the benchmark's test pairs
MEASURES: dict[Kind, tuple[Measure, ...]] = {
    "pairs": ("correlations", "pairs", "triplets", "uniformity"),
    "groups": ("triplets", "uniformity"),
    "labels": ("neighbours", "uniformity"),
    "paraphrases": ("paraphrases",),
}
ROLES: dict[Kind, Mapping[str, tuple[str, ...]]] = {
    "paraphrases": {
        "original": ("original",),
        "generated": ("generated",),
        "varies": ("varies",),
        "value": ("value",),
        "fixed1": ("fixed1",),
        "fixed2": ("fixed2",),
    },
    "pairs": {
        "text1": tuple(first for first, _ in SENTENCE_COLUMNS),
        "text2": tuple(second for _, second in SENTENCE_COLUMNS),
        "score": SCORE_COLUMNS,
    },
    "groups": {"text": ("text",), "group": ("group",), "role": ("role",)},
    "labels": {"text": ("text",), "label": ("label", "topic", "class", "category")},
}
"""By kind of data, its roles and the names of columns that are taken for them."""

OPTIONAL = ("role",)


@dataclass(frozen=True, eq=False)
class DataSet(ABC):
    """What all kinds have.

    Attributes:
        name: for people.
        texts: the different texts, in the order in which they first come.
        notes: sentences on what was left out, or not taken as it may have been meant.
        columns: role to column, of the table that was read.
        benchmark: the published data that these are, ``stsb``, ``mrpc`` or ``asset``; else empty.
    """

    name: str
    texts: tuple[str, ...]
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    columns: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    benchmark: str = field(default="", kw_only=True)
    kind: ClassVar[Kind]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What can be measured on it."""
        return MEASURES[self.kind]

    @cached_property
    def digest_of_texts(self) -> str:
        """Hash of the different texts in their order."""
        content = "\x1e".join(self.texts)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    @cached_property
    def digest(self) -> str:
        """Hash of all that a measure depends on."""
        parts = [self.kind, *(_content(value) for value in self._contents())]
        content = "\x1e".join([*parts, *self.texts])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    @abstractmethod
    def describe(self) -> str:
        """What it is, in numbers."""

    def problem(self, measure: Measure) -> str:
        """Why it cannot be measured at all, whatever the vectors; empty where it can be."""
        return ""

    @abstractmethod
    def _contents(self) -> Iterable[object]:
        """All that a measure depends on besides the texts."""


@dataclass(frozen=True, eq=False)
class ScoredData(DataSet):
    """Pairs of texts with a score by people.

    Attributes:
        first, second: [pair] places in ``texts``.
        scores: [pair]; the larger, the more alike.
        similar, dissimilar: pairs with at least, and with at most, this score are similar, and
            dissimilar.
    """

    first: np.ndarray
    second: np.ndarray
    scores: np.ndarray
    similar: float = SIMILAR
    dissimilar: float = DISSIMILAR
    kind: ClassVar[Kind] = "pairs"

    def __post_init__(self) -> None:
        if not self.similar > self.dissimilar:
            raise SettingsError(
                f"Similar pairs have to score more than dissimilar ones; {self.similar:g} is not "
                f"above {self.dissimilar:g}."
            )

    @property
    def is_similar(self) -> np.ndarray:
        """[pair] whether it scores high."""
        return self.scores >= self.similar

    @property
    def is_dissimilar(self) -> np.ndarray:
        """[pair] whether it scores low."""
        return self.scores <= self.dissimilar

    @cached_property
    def similar_rows(self) -> np.ndarray:
        """[row] places in ``texts`` of the similar pairs' texts, the two of a pair together.

        A text that is in several pairs comes as often: every pair is a group of its own.
        """
        chosen = self.is_similar
        return np.stack([self.first[chosen], self.second[chosen]], axis=1).ravel()

    @cached_property
    def grouping(self) -> Grouping:
        """Of ``similar_rows``, for triplets."""
        return Grouping(np.arange(len(self.similar_rows)) // 2)

    def describe(self) -> str:
        return (
            f"{len(self.scores):,} scored pairs, {int(self.is_similar.sum()):,} of them similar "
            f"(≥ {self.similar:g}), {int(self.is_dissimilar.sum()):,} dissimilar "
            f"(≤ {self.dissimilar:g})"
        )

    def problem(self, measure: Measure) -> str:
        n_similar, n_dissimilar = int(self.is_similar.sum()), int(self.is_dissimilar.sum())
        if measure == "correlations":
            from neuralviz.evaluation.correlation import why_undefined

            return why_undefined(np.arange(len(self.scores)), self.scores)
        if measure == "triplets" and n_similar < 2:
            return (
                f"{_scoring(n_similar)} {self.similar:g} or more; triplets need at least two. "
                "Choose another bound of what is similar."
            )
        if measure == "pairs" and not (n_similar and n_dissimilar):
            return (
                f"{_scoring(n_similar)} {self.similar:g} or more, {_scoring(n_dissimilar)} "
                f"{self.dissimilar:g} or less; both are needed. Choose other bounds of what is "
                "similar and dissimilar."
            )
        return ""

    def _contents(self) -> Iterable[object]:
        return self.first, self.second, self.scores, self.similar, self.dissimilar


@dataclass(frozen=True, eq=False)
class GroupedData(DataSet):
    """Texts in groups that mean the same.

    Attributes:
        rows: [row] places in ``texts``.
        grouping: of the rows.
    """

    rows: np.ndarray
    grouping: Grouping
    kind: ClassVar[Kind] = "groups"

    def describe(self) -> str:
        anchors = ""
        if self.grouping.anchor is not None:
            anchors = f", {int(self.grouping.anchor.sum()):,} of them anchors"
        return (
            f"{many(len(self.rows), 'text')} in "
            f"{many(len(np.unique(self.grouping.group)), 'group')}{anchors}: "
            f"{many(self.grouping.n_triplets, 'triplet')}"
        )

    def problem(self, measure: Measure) -> str:
        if measure == "triplets":
            try:
                self.grouping.check()
            except NeuralvizError as error:
                return str(error)
        return ""

    def _contents(self) -> Iterable[object]:
        return self.rows, self.grouping.group, self.grouping.anchor


@dataclass(frozen=True, eq=False)
class LabelledData(DataSet):
    """Texts with a label.

    Attributes:
        rows: [row] places in ``texts``.
        labels: [row].
    """

    rows: np.ndarray
    labels: tuple[str, ...]
    kind: ClassVar[Kind] = "labels"

    def describe(self) -> str:
        return f"{many(len(self.rows), 'text')} with {many(len(set(self.labels)), 'label')}"

    def problem(self, measure: Measure) -> str:
        if measure == "neighbours" and len(set(self.labels)) < 2:
            return "All texts have the same label, so any neighbour is right; two are needed."
        return ""

    def _contents(self) -> Iterable[object]:
        return self.rows, self.labels


@dataclass(frozen=True, eq=False)
class ParaphraseData(DataSet):
    """Phrases generated from originals, with one quality of similarity varied (section 3.1).

    Attributes:
        original, generated: [phrase] places in ``texts``.
        varies: [phrase] which quality.
        values: [phrase] its value.
        fixed1, fixed2: [phrase] values of the two others.
    """

    original: np.ndarray
    generated: np.ndarray
    varies: tuple[str, ...]
    values: np.ndarray
    fixed1: np.ndarray
    fixed2: np.ndarray
    kind: ClassVar[Kind] = "paraphrases"

    def describe(self) -> str:
        names = ", ".join(dict.fromkeys(self.varies))
        return f"{many(len(self.values), 'generated phrase')}, varied in {names}"

    def problem(self, measure: Measure) -> str:
        cells = np.stack([_codes(self.varies), self.fixed1, self.fixed2], axis=1)
        _, cell = np.unique(cells, axis=0, return_inverse=True)
        for number in range(int(cell.max()) + 1):
            if len(np.unique(self.values[cell.ravel() == number])) > 1:
                return ""
        return "In no cell does the value of a quality vary, so there is nothing to correlate with."

    def _contents(self) -> Iterable[object]:
        return (
            self.original, self.generated, self.varies, self.values, self.fixed1, self.fixed2
        )  # fmt: skip


def read_data(
    name: str,
    content: bytes | Path,
    roles: Mapping[str, str] | None = None,
    *,
    similar: float | None = None,
    dissimilar: float | None = None,
    max_rows: int = MAX_ROWS,
) -> DataSet:
    """Read a table of one of the kinds.

    Args:
        name: file name; its ending counts, and messages have it.
        content: the file, or where it is.
        roles: role to column, for those that are not called as in `ROLES`.
        similar, dissimilar: bounds of the scores; by default 4 and 2, and 0.8 and 0.4 where all
            scores lie within 0 … 1.
        max_rows: rows behind are left out, with a note.

    Raises:
        TextError: it cannot be read, has none of the sets of columns, or too few rows are whole.
        SettingsError: a role that there is not, or whose column there is not.
    """
    table = read_table(Source(name, content), max_rows=max_rows)
    return data_of(name, table, roles, similar=similar, dissimilar=dissimilar)


def data_of(
    name: str,
    table: Table,
    roles: Mapping[str, str] | None = None,
    *,
    similar: float | None = None,
    dissimilar: float | None = None,
) -> DataSet:
    """`read_data` for a table that is read already."""
    kind, columns = find_roles(name, table.columns, roles or {})
    if kind == "pairs":
        data: DataSet = _scored(name, table, columns, similar, dissimilar)
        if data.digest_of_texts == STS_TEST:
            data = replace(data, benchmark="stsb")
    elif kind == "groups":
        data = _grouped(name, table, columns)
    elif kind == "labels":
        data = _labelled(name, table, columns)
    else:
        data = _paraphrases(name, table, columns)
    if kind != "pairs" and (similar is not None or dissimilar is not None):
        note = f"{name} has no scores, so bounds of what is similar change nothing."
        data = replace(data, notes=(*data.notes, note))
    return replace(data, columns=columns)


def find_roles(
    name: str, columns: Sequence[str], roles: Mapping[str, str]
) -> tuple[Kind, dict[str, str]]:
    """The kind of data that columns make, and the column of each of its roles.

    Args:
        name: of the file, for messages.
        columns: of the table.
        roles: role to column, declared; no column for an optional role that is not to be used.

    Raises:
        TextError: they make none.
        SettingsError: a declared role or its column does not exist.
    """
    known = {role for of_kind in ROLES.values() for role in of_kind}
    taken = set()
    for role, column in roles.items():
        if role not in known:
            raise SettingsError(
                f"There is no role “{role[:40]}”; there is {', '.join(sorted(known))}."
            )
        if not column.strip():
            if role in OPTIONAL:
                continue
            raise SettingsError(f"The role {role} is given no column; it cannot do without one.")
        found_column = _named(column, columns)
        if found_column in taken:
            raise SettingsError(f"The column “{found_column[:40]}” cannot have two roles at once.")
        taken.add(found_column)
        if not found_column:
            raise SettingsError(
                f"{name} has no column “{column[:40]}” for the role {role}; it has "
                f"{_listed(columns)}."
            )
    for kind, of_kind in ROLES.items():
        found = columns_of(kind, columns, roles)
        needed = [role for role in of_kind if role not in OPTIONAL]
        if all(role in found for role in needed) and set(roles) <= set(of_kind):
            return kind, found
    lacking = [
        [role for role in of_kind if role not in (*OPTIONAL, *columns_of(kind, columns, roles))]
        for kind, of_kind in ROLES.items()
        if roles and set(roles) <= set(of_kind)
    ]
    if lacking:
        raise TextError(
            f"{name} has no column for {' or '.join(map(' and '.join, lacking))} beside what is "
            f"said already; it has {_listed(columns)}. Say which it is, as in --role "
            f"{lacking[0][0]}=…"
        )
    raise TextError(
        f"{name} has no columns that can be measured on. It needs sentence1, sentence2 and score; "
        "or text and group; or text and label; or original, generated, varies, value, fixed1 and "
        f"fixed2. It has {_listed(columns)}; say which column has which role, as in "
        "--role text1=… --role text2=… --role score=…."
    )


def columns_of(
    kind: Kind, columns: Sequence[str], roles: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The column of each role of a kind, the declared one or one by its name; some may have none.

    Args:
        kind: of data.
        columns: of a table.
        roles: role to column, declared.
    """
    declared = {role: _named(column, columns) for role, column in (roles or {}).items()}
    free = [column for column in columns if column not in declared.values()]
    found = {}
    for role, names in ROLES[kind].items():
        there = declared.get(role)
        if there is None:
            there = next(filter(None, (_named(name, free) for name in names)), "")
        if there:
            found[role] = there
    return found


def _named(name: str, columns: Sequence[str]) -> str:
    """The column of a name, or one that differs by capitals alone; empty if there is none."""
    if name in columns:
        return name
    same = name.strip().lower()
    return next((column for column in columns if column.strip().lower() == same), "")


def scored_data(
    name: str,
    first: Sequence[str],
    second: Sequence[str],
    scores: np.ndarray,
    *,
    similar: float | None = None,
    dissimilar: float | None = None,
    notes: tuple[str, ...] = (),
) -> ScoredData:
    """Scored pairs from columns.

    Raises:
        TextError: there are fewer than three.
        SettingsError: ``similar`` is not above ``dissimilar``.
    """
    if len(scores) < FEWEST_PAIRS:
        raise TextError(
            f"{name} has {many(len(scores), 'pair')} with two texts and a score; "
            f"at least {FEWEST_PAIRS} are needed.{_and(notes)}"
        )
    scale = 5.0 if scores.max() <= 1 and scores.min() >= 0 else 1.0
    texts, at = distinct([*first, *second])
    n = len(scores)
    return ScoredData(
        name,
        texts,
        at[:n],
        at[n:],
        scores,
        SIMILAR / scale if similar is None else similar,
        DISSIMILAR / scale if dissimilar is None else dissimilar,
        notes=notes,
    )


def grouped_data(
    name: str,
    texts: Sequence[str],
    groups: Sequence[str],
    anchors: Sequence[bool] | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> GroupedData:
    """Texts in groups from columns.

    Raises:
        TextError: there are fewer than three.
    """
    if len(texts) < 3:
        raise TextError(
            f"{name} has {many(len(texts), 'text')} with a group; a triplet needs "
            f"three.{_and(notes)}"
        )
    different, at = distinct(texts)
    anchor = None if anchors is None else np.array(anchors, dtype=bool)
    return GroupedData(name, different, at, Grouping(_codes(groups), anchor), notes=notes)


def labelled_data(
    name: str, texts: Sequence[str], labels: Sequence[str], *, notes: tuple[str, ...] = ()
) -> LabelledData:
    """Texts with labels from columns; the same text with the same label counts once.

    Raises:
        TextError: there are fewer than two.
    """
    once = list(dict.fromkeys(zip(texts, labels, strict=True)))
    if len(once) < 2:
        raise TextError(
            f"{name} has {many(len(once), 'text')} with a label; at least 2 are needed."
            + _and(notes)
        )
    if len(once) < len(texts):
        rows = count(len(texts) - len(once), "row")
        notes += (f"{rows} left out because text and label came before.",)
    different, at = distinct([text for text, _ in once])
    return LabelledData(name, different, at, tuple(label for _, label in once), notes=notes)


def distinct(texts: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """The different texts as they first come, and for each text its place among them."""
    places: dict[str, int] = {}
    at = [places.setdefault(text, len(places)) for text in texts]
    return tuple(places), np.array(at, dtype=np.int64)


def _scored(
    name: str,
    table: Table,
    columns: Mapping[str, str],
    similar: float | None,
    dissimilar: float | None,
) -> ScoredData:
    rows = usable_rows(table, (columns["text1"], columns["text2"]), (columns["score"],))
    first, second = rows.texts
    (scores,) = rows.numbers
    return scored_data(
        name, first, second, scores, similar=similar, dissimilar=dissimilar, notes=rows.notes
    )


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
                f"No text has the role “{'” or “'.join(ANCHORS)}” in the column "
                f"“{columns['role'][:40]}”, so the roles are not used; write it beside those that "
                "are anchors.",
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
            f"{name} has {many(len(original), 'text')} generated from an original; at least 2 are "
            "needed." + _and(rows.notes)
        )
    texts, at = distinct([*original, *generated])
    n = len(original)
    return ParaphraseData(name, texts, at[:n], at[n:], varies, *rows.numbers, notes=rows.notes)


def _codes(names: Sequence[str]) -> np.ndarray:
    """[name] numbers, the same for the same name."""
    return distinct(names)[1]


def _scoring(n: int) -> str:
    return f"{many(n, 'pair')} score{'s' * (n == 1)}"


def _and(notes: Sequence[str]) -> str:
    return "".join(f" {note}" for note in notes)


def _listed(columns: Sequence[str]) -> str:
    found = ", ".join(f"“{column[:40]}”" for column in columns[:12]) or "none"
    return found + " …" * (len(columns) > 12)


def _content(value: object) -> str:
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return repr(value)
