"""Labelled data in tables: roles of columns, complete rows, scored pairs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from neuralviz.errors import SettingsError, TextError, check_choice
from neuralviz.reading.source import Source, tidy
from neuralviz.reading.table import (
    MAX_CHARACTERS,
    Table,
    blank_missing,
    flatten_texts,
    fold_title,
    list_columns,
    match_names,
    parse_numbers,
)
from neuralviz.reading.tables import read_table
from neuralviz.words import joined, many, name_lines, number

# --- roles of columns ----------------------------------------------------------------------------

Kind = Literal["pairs", "groups", "labels", "paraphrases"]
# by kind of data, its roles and the usual names of their columns
ROLES: dict[Kind, Mapping[str, tuple[str, ...]]] = {
    "paraphrases": {
        role: (role,) for role in ("original", "generated", "varies", "value", "fixed1", "fixed2")
    },
    "pairs": {
        "text1": ("sentence1", "text1", "a", "sentence A", "question1", "#1 String"),
        "text2": ("sentence2", "text2", "b", "sentence B", "question2", "#2 String"),
        "score": (
            *("score", "similarity", "similarity score", "relatedness score", "is_duplicate"),
            "quality",
        ),
    },
    "groups": {"text": ("text",), "group": ("group",), "role": ("role",)},
    "labels": {"text": ("text",), "label": ("label", "topic", "class", "category")},
}

OPTIONAL = ("role",)


def find_roles(
    name: str,
    columns: Sequence[str],
    roles: Mapping[str, str],
    kinds: Sequence[Kind] = tuple(ROLES),
    optional: Sequence[str] = OPTIONAL,
) -> tuple[Kind, dict[str, str]]:
    """The kind of data that columns make, and the column of each role.

    ``roles`` maps roles to columns; an empty column leaves an optional role out. `TextError` if the
    columns make no kind, `SettingsError` for an unknown role or column.
    """
    _check_roles(name, columns, roles, sorted({role for kind in kinds for role in ROLES[kind]}))
    lacking: list[str] = []
    for kind in kinds:
        if not set(roles) <= set(ROLES[kind]):
            continue
        chosen = find_role_columns(kind, columns, roles)
        missing = list_missing(kind, chosen, optional)
        if not missing:
            return kind, chosen
        lacking.append(joined(missing))
    listed = f"Its columns are: {list_columns(columns)}."
    if lacking and (roles or len(kinds) == 1):
        needed = " or ".join(lacking)
        raise TextError(f"{name} needs a column for {needed}. {listed} Assign one to each role.")
    raise TextError(
        f"{name} is not a data set. It needs one of these sets of columns: sentence1, sentence2 "
        "and score; text and group; text and label; or original, generated, varies, value, "
        f"fixed1 and fixed2. {listed} Assign columns to the roles of one of them; scored pairs "
        "have the roles text1, text2 and score."
    )


def _check_roles(
    name: str, columns: Sequence[str], roles: Mapping[str, str], role_names: Sequence[str]
) -> None:
    assigned = set()
    for role, title in roles.items():
        check_choice("role", role, role_names)
        if role in OPTIONAL and not title.strip():
            continue
        column = _find_column(title, columns)
        if column in assigned:
            raise SettingsError(f"The column “{column[:40]}” has two roles. Give it one.")
        assigned.add(column)
        if not column:
            raise SettingsError(
                f"{name} has no column “{title[:40]}” for the role {role}. Its columns are: "
                f"{list_columns(columns)}."
            )


def find_role_columns(
    kind: Kind, columns: Sequence[str], roles: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The column of each role, declared or found by name."""
    declared = {role: _find_column(title, columns) for role, title in (roles or {}).items()}
    free = [column for column in columns if column not in declared.values()]
    named = {
        role: next(filter(None, (_find_column(title, free) for title in names)), "")
        for role, names in ROLES[kind].items()
    }
    return {role: column for role, column in (named | declared).items() if column}


def list_missing(
    kind: Kind, chosen: Mapping[str, str | None], optional: Sequence[str] = OPTIONAL
) -> list[str]:
    """The roles of a kind that need a column and have none."""
    return [role for role in ROLES[kind] if role not in optional and not chosen.get(role)]


def _find_column(title: str, columns: Sequence[str]) -> str:
    """The column of a name, ignoring capitals and signs; empty if none."""
    if title in columns:
        return title
    for fold in (str.casefold, fold_title):
        folded = fold(title.strip())
        column = next((name for name in columns if folded and fold(name.strip()) == folded), "")
        if column:
            return column
    return ""


# --- usable rows ---------------------------------------------------------------------------------

_LIKE_NUMBER = re.compile(r"[-+\u2212]?[.,'\s]*\d[\d.,'\s]*+[%\uff05]?")


@dataclass(frozen=True, eq=False)
class UsableRows:
    places: tuple[int, ...]  # of the rows in the table
    texts: tuple[tuple[str, ...], ...]  # [column][row] tidied, none blank
    numbers: tuple[np.ndarray, ...]  # [column][row] finite
    notes: tuple[str, ...]  # those of the table, and sentences on what was left out


def usable_rows(table: Table, texts: Sequence[str], numbers: Sequence[str] = ()) -> UsableRows:
    """The rows without missing numbers and missing or long texts; `TextError` if ambiguous."""
    table = blank_missing(table, {*texts, *numbers})
    flat = [flatten_texts(name, table.column(name)) for name in texts]
    tidied = [list(map(tidy, values)) for values, _ in flat]
    lengths = np.array([list(map(len, values)) for values in tidied])
    written = np.array([list(map(len, values)) for values, _ in flat])  # cut cells may end blank
    values = np.array([_check_numbers(table, name) for name in numbers], dtype=np.float64)
    lacks_text = (lengths == 0).any(axis=0)
    is_long = ~lacks_text & (written > MAX_CHARACTERS).any(axis=0)
    lacks_number = np.isnan(values.reshape(len(numbers), len(table))).any(axis=0)
    notes = table.notes + tuple(note for _, column_notes in flat for note in column_notes)
    for is_left_out, reason in (
        (lacks_text, f"{_quote_names(texts)} is missing"),
        (is_long, f"{_quote_names(texts)} has more than {MAX_CHARACTERS:,} characters"),
        (lacks_number & ~lacks_text & ~is_long, f"{_quote_names(numbers)} is not a number"),
    ):
        lines = [table.lines[place] for place in np.flatnonzero(is_left_out).tolist()]
        if lines:
            place_names = name_lines(lines, table.unit)
            notes += (f"Skipped {many(len(lines), 'row')}: {reason} ({place_names}).",)
    places = np.flatnonzero(~(lacks_text | is_long | lacks_number)).tolist()
    return UsableRows(
        places=tuple(places),
        texts=tuple(tuple(column[place] for place in places) for column in tidied),
        numbers=tuple(column[places] for column in values),
        notes=notes,
    )


def _check_numbers(table: Table, title: str) -> list[float | None]:
    """The numbers of a column; `TextError` if a tenth of them cannot be read."""
    values = [value.strip() for value in table.column(title)]
    numbers = parse_numbers(values)
    unread = [
        value
        for value, parsed in zip(values, numbers, strict=True)
        if parsed is None and _LIKE_NUMBER.fullmatch(value)
    ]
    if unread and 9 * len(unread) >= len(numbers) - numbers.count(None):
        raise TextError(
            f"{many(len(unread), 'number')} in the column “{title[:40]}” cannot be read, such as "
            f"“{unread[0][:40]}”. Write all with the same decimal sign, without thousands "
            "separators, and all or none with %."
        )
    return numbers


def check_fewest(
    name: str, n: int, noun: str, contents: str, fewest: int, notes: Sequence[str]
) -> None:
    """`TextError` for fewer than ``fewest`` texts or pairs with ``contents``; it has the notes."""
    if n < fewest:
        sentence = f"{name} has only {many(n, noun)} with {contents}; at least {fewest} are needed."
        raise TextError(" ".join([sentence, *notes]))


def _quote_names(columns: Sequence[str]) -> str:
    return " or ".join(f"“{column[:40]}”" for column in columns)


# --- scales of scores ----------------------------------------------------------------------------

_COMMON = (  # lowest score, highest score, and what the highest of the data is above
    (0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 5.0, 4.0), (0.0, 5.0, 4.0), (1.0, 7.0, 5.0),
    (1.0, 10.0, 7.0), (0.0, 10.0, 7.0), (0.0, 100.0, 50.0),
)  # fmt: skip
FEWEST_SCORES = 6  # scores, of which some should reach the upper part of their scale


@dataclass(frozen=True)
class Scale:
    """Convert between people's scores and shares of their scale."""

    low: float  # the lowest score of the scale
    high: float

    @classmethod
    def from_scores(cls, scores: np.ndarray) -> Scale:
        """A common scale whose upper part scores reach; else their range."""
        # scales from 1 are those of ratings: whole numbers, or scores whose lowest is 1
        if (common := _find_common(scores)) is not None:
            return common
        lowest, highest = float(np.min(scores)), float(np.max(scores))
        return cls(lowest, highest) if lowest < highest else FIVE

    def shares(self, scores: np.ndarray) -> np.ndarray:
        return (np.asarray(scores, np.float64) - self.low) / (self.high - self.low)

    def scores(self, shares: np.ndarray) -> np.ndarray:
        return self.low + np.asarray(shares, np.float64) * (self.high - self.low)

    def describe_other(self, scores: np.ndarray, subject: str) -> str:
        """A sentence on ``subject`` (“test pairs”) that seem to have another scale; else empty."""
        scores = scores[np.isfinite(scores)]
        if not len(scores):
            return ""
        common = _find_common(scores)
        data_scale = common or Scale(float(scores.min()), float(scores.max()))
        slack = (self.high - self.low) / 10
        is_outside = scores.min() < self.low - slack or scores.max() > self.high + slack
        least = self.high if common else (self.low + self.high) / 2
        if not is_outside and (data_scale.high >= least or len(scores) < FEWEST_SCORES):
            return ""
        bounds = (data_scale.low, data_scale.high, self.low, self.high)
        low, high, train_low, train_high = map(number, bounds)
        return (
            f"The scores of the {subject} seem to be on another scale (from {low} to {high}) than "
            f"those of the train pairs (from {train_low} to {train_high})."
        )


FIVE, UNIT = Scale(0.0, 5.0), Scale(0.0, 1.0)


def _find_common(scores: np.ndarray) -> Scale | None:
    lowest, highest = float(np.min(scores)), float(np.max(scores))
    is_rating = lowest == 1 or bool((np.mod(scores, 1) == 0).all())
    for low, high, threshold in _COMMON:
        if low == 1 and not is_rating:
            continue  # from 0 on, of which these scores happen to lack the lowest
        if low <= lowest and threshold < highest <= high:
            return Scale(low, high)
    return None


# --- scored pairs --------------------------------------------------------------------------------

LABEL_COLUMNS = ("kind", "topic")
FEWEST_PAIRS = 3  # that can be correlated
_NO_SCORES = np.zeros(0)


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of sentences; equal if sentences, scores and labels are."""

    sentences1: tuple[str, ...]  # none of them blank
    sentences2: tuple[str, ...]
    scores: np.ndarray = field(default_factory=lambda: _NO_SCORES)  # [pair] any scale; NaN for none
    notes: tuple[str, ...] = ()  # sentences on what was left out
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of `LABEL_COLUMNS`

    def __post_init__(self) -> None:
        if self.scores is _NO_SCORES:
            object.__setattr__(self, "scores", np.full(len(self.sentences1), np.nan))

    def __len__(self) -> int:
        return len(self.sentences1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoredPairs) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        columns = [self.sentences1, self.sentences2, self.scores.tolist(), dict(self.labels)]
        return hashlib.sha256(json.dumps(columns).encode()).hexdigest()

    @property
    def numbers(self) -> np.ndarray:
        return number_pairs(self.sentences1, self.sentences2)

    def take(self, places: Sequence[int] | np.ndarray) -> ScoredPairs:

        def pick(values: Sequence[str]) -> tuple[str, ...]:
            return tuple(values[place] for place in places)

        return replace(
            self,
            sentences1=pick(self.sentences1),
            sentences2=pick(self.sentences2),
            scores=self.scores[np.asarray(places, dtype=np.int64)],
            labels={name: pick(values) for name, values in self.labels.items()},
        )

    def first(self, n: int) -> ScoredPairs:
        return self.take(range(min(n, len(self))))


def number_pairs(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """[pair] number, from 0, of each pair's two texts in either order."""
    numbers: dict[frozenset[str], int] = {}
    text_sets = (frozenset(texts) for texts in zip(first, second, strict=True))
    return np.array(
        [numbers.setdefault(texts, len(numbers)) for texts in text_sets], dtype=np.int64
    )


def repeats_in_words(numbers: np.ndarray) -> tuple[str, ...]:
    """A sentence on repeated pairs, by `number_pairs`; empty if none."""
    n = len(numbers) - len(np.unique(numbers))
    sentence = f"{many(n, 'pair')} repeat{'s' * (n == 1)} the texts of another pair"
    return (f"{sentence}. Intervals count such pairs as one.",) if n else ()


def read_pairs(
    source: Source,
    roles: Mapping[str, str] | None = None,
    *,
    max_rows: int | None = None,
    needs_scores: bool = True,
) -> ScoredPairs:
    """Read scored pairs from a table; ``roles`` maps roles to columns not named as in `ROLES`.

    Without ``needs_scores``, missing scores are NaN. `TextError` for another table or fewer than 3
    pairs (without scores: none), `SettingsError` for wrong ``roles``.
    """
    table = read_table(source, max_rows=max_rows)
    optional = () if needs_scores else ("score",)
    _, columns = find_roles(source.name, table.columns, roles or {}, ("pairs",), optional)
    sentences, score = (columns["text1"], columns["text2"]), columns.get("score")
    rows = usable_rows(table, sentences, (str(score),) if needs_scores else ())
    contents, fewest = ("two texts and a score", FEWEST_PAIRS) if needs_scores else ("two texts", 1)
    check_fewest(source.name, len(rows.places), "pair", contents, fewest, rows.notes)
    notes = repeats_in_words(number_pairs(*rows.texts)) if needs_scores else ()
    written = table.column(score) if score else [""] * len(table)
    numbers = parse_numbers(written)
    scores = np.array([numbers[place] for place in rows.places], dtype=float)  # None is NaN
    if n_unread := sum(numbers[row] is None and written[row].strip() != "" for row in rows.places):
        notes += (f"Could not read {many(n_unread, 'value')} of “{score}” as numbers.",)
    titles = {title.strip().lower(): title for title in match_names(table.columns, LABEL_COLUMNS)}
    labelled = blank_missing(table, titles.values())
    labels = {
        label: tuple(tidy(labelled.column(title)[place]) for place in rows.places)
        for label, title in titles.items()
    }
    first, second = rows.texts
    return ScoredPairs(first, second, scores, (*rows.notes, *notes), labels)
