"""Pairs of sentences with a score of how similar they are, from tables; and the scale of scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from neuralviz.errors import TextError
from neuralviz.reading.labelled import ROLES, pair_columns, parse_numbers, usable_rows
from neuralviz.reading.lines import tidy
from neuralviz.reading.source import Source
from neuralviz.reading.table import blank_missing
from neuralviz.reading.tables import read_table
from neuralviz.words import many, number

# --- scales of scores ----------------------------------------------------------------------------

_COMMON = (  # lowest score, highest score, and what the highest of the data is above
    (0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 5.0, 4.0), (0.0, 5.0, 4.0), (1.0, 7.0, 5.0),
    (1.0, 10.0, 7.0), (0.0, 10.0, 7.0), (0.0, 100.0, 50.0),
)  # fmt: skip


FEWEST_SCORES = 6  # scores, of which some should reach the upper part of their scale


@dataclass(frozen=True)
class Scale:
    """From people's scores to shares of their scale, and back."""

    low: float  # the lowest score of the scale
    high: float

    @classmethod
    def from_scores(cls, scores: np.ndarray) -> Scale:
        """A common scale, of which scores reach the upper part; else the range of the scores.

        Scales from 1 on are those of ratings: whole numbers, or scores of which the lowest is 1.
        """
        if (common := _find_common(scores)) is not None:
            return common
        lowest, highest = float(np.min(scores)), float(np.max(scores))
        return cls(lowest, highest) if lowest < highest else FIVE

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """[pair] 0 … 1 for scores on the scale."""
        return (np.asarray(scores, np.float64) - self.low) / (self.high - self.low)

    def scores(self, shares: np.ndarray) -> np.ndarray:
        """[pair] on people's scale."""
        return self.low + np.asarray(shares, np.float64) * (self.high - self.low)

    def describe_other(self, scores: np.ndarray, whose: str) -> str:
        """A sentence on scores that seem to be on another scale; empty where they do not.

        They are NaN where there is none, and ``whose`` is such as ``test pairs``.
        """
        scores = scores[np.isfinite(scores)]
        if not len(scores):
            return ""
        common = _find_common(scores)
        theirs = common or Scale(float(scores.min()), float(scores.max()))
        slack = (self.high - self.low) / 10
        is_outside = scores.min() < self.low - slack or scores.max() > self.high + slack
        least = self.high if common else (self.low + self.high) / 2
        if not is_outside and (theirs.high >= least or len(scores) < FEWEST_SCORES):
            return ""
        bounds = (theirs.low, theirs.high, self.low, self.high)
        low, high, train_low, train_high = map(number, bounds)
        return (
            f"The scores of the {whose} seem to be on another scale (from {low} to {high}) than "
            f"those of the train pairs (from {train_low} to {train_high})."
        )


def _find_common(scores: np.ndarray) -> Scale | None:
    """The common scale of which scores reach the upper part, as of `Scale.from_scores`."""
    lowest, highest = float(np.min(scores)), float(np.max(scores))
    is_rating = lowest == 1 or bool((np.mod(scores, 1) == 0).all())
    for low, high, threshold in _COMMON:
        if low == 1 and not is_rating:
            continue  # from 0 on, of which these scores happen to lack the lowest
        if low <= lowest and threshold < highest <= high:
            return Scale(low, high)
    return None


FIVE, UNIT = Scale(0.0, 5.0), Scale(0.0, 1.0)


LABEL_COLUMNS = ("kind", "topic")
FEWEST_PAIRS = 3  # that can be correlated
NO_ROLES: Mapping[str, str] = MappingProxyType({})
_NO_SCORES = np.zeros(0)


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of sentences in the order they came in; equal where sentences, scores and labels are.

    Attributes:
        scores: [pair] finite, on any scale; the larger, the more similar. NaN for pairs without
            a score, and for all of them where none are given.
        labels: ``kind`` and ``topic``, one value a pair, where the file has such a column.
    """

    sentences1: tuple[str, ...]  # none of them blank
    sentences2: tuple[str, ...]  # none of them blank
    scores: np.ndarray = field(default_factory=lambda: _NO_SCORES)
    notes: tuple[str, ...] = ()  # sentences on what was left out
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        """Of sentences, scores and labels."""
        columns = [self.sentences1, self.sentences2, self.scores.tolist(), dict(self.labels)]
        return hashlib.sha256(json.dumps(columns).encode()).hexdigest()

    @property
    def numbers(self) -> np.ndarray:
        """[pair] as of `number_pairs`."""
        return number_pairs(self.sentences1, self.sentences2)

    def take(self, places: Sequence[int] | np.ndarray) -> ScoredPairs:
        """The pairs at some places, in that order."""
        return replace(
            self,
            sentences1=tuple(self.sentences1[place] for place in places),
            sentences2=tuple(self.sentences2[place] for place in places),
            scores=self.scores[np.asarray(places, dtype=np.int64)],
            labels={
                name: tuple(values[place] for place in places)
                for name, values in self.labels.items()
            },
        )

    def first(self, n: int) -> ScoredPairs:
        """The same with the first ``n`` pairs alone."""
        return self.take(range(min(n, len(self))))


def number_pairs(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """[pair] the number, 0 … of its two texts, in whichever order; the same of repeated pairs."""
    numbers: dict[frozenset[str], int] = {}
    both = (frozenset(texts) for texts in zip(first, second, strict=True))
    return np.array([numbers.setdefault(texts, len(numbers)) for texts in both], dtype=np.int64)


def repeats_in_words(numbers: np.ndarray) -> tuple[str, ...]:
    """A sentence on repeated pairs, by their `number_pairs`; none where there are none."""
    n = len(numbers) - len(np.unique(numbers))
    which = f"{many(n, 'pair')} repeat{'s' * (n == 1)} the texts of another pair"
    return (f"{which}. Intervals count such pairs as one.",) if n else ()


def read_pairs(
    source: Source, roles: Mapping[str, str] = NO_ROLES, *, max_rows: int | None = None
) -> ScoredPairs:
    """Read scored pairs from a table with columns for the roles of pairs, see `ROLES`.

    ``roles`` are the columns that are not called so. Rows beyond ``max_rows`` are left out.

    Raises:
        TextError: it is no such table, or fewer than 3 pairs can be used.
        SettingsError: a column is missing.
    """
    table = read_table(source, max_rows=max_rows)
    first, second, score = pair_columns(source.name, table.columns, roles, ROLES["pairs"])
    rows = usable_rows(table, texts=(first, second), numbers=(str(score),))
    if len(rows.places) < FEWEST_PAIRS:
        raise TextError(
            f"{source.name} has {many(len(rows.places), 'pair')} with two sentences and a score; "
            f"at least {FEWEST_PAIRS} are needed. " + " ".join(rows.notes)
        )
    by_name = {title.strip().lower(): title for title in table.columns}
    titles = {label: by_name[label] for label in LABEL_COLUMNS if label in by_name}
    labelled = blank_missing(table, titles.values())
    labels = {
        label: tuple(tidy(labelled.column(title)[place]) for place in rows.places)
        for label, title in titles.items()
    }
    notes = (*rows.notes, *repeats_in_words(number_pairs(*rows.texts)))
    return ScoredPairs(rows.texts[0], rows.texts[1], rows.numbers[0], notes, labels)


def read_text_pairs(
    source: Source, roles: Mapping[str, str] = NO_ROLES, *, max_rows: int | None = None
) -> ScoredPairs:
    """`read_pairs` of a table in which the score may be missing, as a column and in any row.

    Scores are NaN where there is none, or none that is a number, which a note says.

    Raises:
        TextError: it is no such table, or no pair can be used.
        SettingsError: a column of sentences is missing.
    """
    table = read_table(source, max_rows=max_rows)
    first, second, score = pair_columns(source.name, table.columns, roles)
    rows = usable_rows(table, texts=(first, second))
    if not rows.places:
        raise TextError(f"{source.name} has no pair of two sentences. " + " ".join(rows.notes))
    if score is None:
        return ScoredPairs(rows.texts[0], rows.texts[1], notes=rows.notes)
    written = [table.column(score)[place].strip() for place in rows.places]
    numbers = parse_numbers(table.column(score))
    scores = np.array([numbers[place] for place in rows.places], dtype=float)  # None is NaN
    unread = [
        value for value, number in zip(written, scores, strict=True) if value and np.isnan(number)
    ]
    notes = rows.notes
    if unread:
        values = f"{many(len(unread), 'value')} of “{score[:40]}”"
        notes += (f"Could not read {values} as numbers, such as “{unread[0][:40]}”.",)
    return ScoredPairs(rows.texts[0], rows.texts[1], scores, notes)
