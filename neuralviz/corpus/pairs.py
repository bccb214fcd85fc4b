"""Pairs of sentences with a score of how alike they are, from tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from neuralviz.corpus.lines import count, name_lines, tidy
from neuralviz.corpus.tables import MAX_CHARACTERS, read_table
from neuralviz.errors import TextError

SENTENCE_COLUMNS = (("sentence1", "sentence2"), ("text1", "text2"), ("a", "b"))
SCORE_COLUMNS = ("score", "similarity")
LABEL_COLUMNS = ("kind", "topic")
FEWEST_PAIRS = 3  # that can be correlated


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of sentences in the order they came in.

    Attributes:
        sentences1, sentences2: none of them blank.
        scores: [pair] finite, on any scale; the larger, the more alike.
        notes: sentences on what was left out.
        labels: ``kind`` and ``topic``, one value a pair, where the file has such a column.
    """

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    scores: np.ndarray
    notes: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    def first(self, n: int) -> ScoredPairs:
        """The same with the first ``n`` pairs alone."""
        return replace(
            self,
            sentences1=self.sentences1[:n],
            sentences2=self.sentences2[:n],
            scores=self.scores[:n],
            labels={name: values[:n] for name, values in self.labels.items()},
        )


def read_pairs(name: str, content: bytes | Path) -> ScoredPairs:
    """Read scored pairs from a table in a file (see ``tables.TABLES``).

    Args:
        name: file name; its ending counts, and messages have it.
        content: a table, or where it is, with the columns ``sentence1``, ``sentence2`` (or
            ``text1``, ``text2``, or ``a``, ``b``) and ``score``.

    Raises:
        TextError: it is no such table, a column is missing, or fewer than 3 pairs can be used.
    """
    table = read_table(name, content)
    first, second, score = (table.values[place] for place in _places(name, table.columns))
    used: list[int] = []
    scores: list[float] = []
    without_sentence, without_score, too_long = [], [], []
    for place, line in enumerate(table.lines):
        value = _finite(score[place])
        if not (tidy(first[place]) and tidy(second[place])):
            without_sentence.append(line)
        elif max(len(first[place]), len(second[place])) > MAX_CHARACTERS:
            too_long.append(line)
        elif value is None:
            without_score.append(line)
        else:
            used.append(place)
            scores.append(value)
    notes = table.notes
    for lines, why in (
        (without_sentence, "a sentence is missing"),
        (too_long, f"a sentence has more than {MAX_CHARACTERS:,} characters"),
        (without_score, "the score is no number such as 3.5"),
    ):
        if lines:
            where = name_lines(lines, table.unit)
            notes += (f"{count(len(lines), 'row')} left out because {why} ({where}).",)
    if len(used) < FEWEST_PAIRS:
        raise TextError(
            f"{name} has {len(used)} pair{'s' * (len(used) != 1)} with two sentences and a score; "
            f"at least {FEWEST_PAIRS} are needed. " + " ".join(notes)
        )
    by_name = _by_name(table.columns)
    return ScoredPairs(
        sentences1=tuple(tidy(first[place]) for place in used),
        sentences2=tuple(tidy(second[place]) for place in used),
        scores=np.array(scores),
        notes=notes,
        labels={
            label: tuple(tidy(table.values[by_name[label]][place]) for place in used)
            for label in LABEL_COLUMNS
            if label in by_name
        },
    )


def _by_name(columns: Sequence[str]) -> dict[str, int]:
    """Where each column stands."""
    return {column.strip().lower(): place for place, column in enumerate(columns)}


def _places(name: str, columns: Sequence[str]) -> tuple[int, int, int]:
    """Where the two sentences and the score stand."""
    by_name = _by_name(columns)
    pair = next((pair for pair in SENTENCE_COLUMNS if set(pair) <= by_name.keys()), None)
    score = next((column for column in SCORE_COLUMNS if column in by_name), None)
    if pair is None or score is None:
        found = ", ".join(f"“{column[:40]}”" for column in columns[:12]) or "none"
        raise TextError(
            f"{name} needs the columns “sentence1”, “sentence2” and “score”, named in its first "
            f"line; it has {found}{' …' * (len(columns) > 12)}."
        )
    return by_name[pair[0]], by_name[pair[1]], by_name[score]


def _finite(score: str) -> float | None:
    try:
        value = float(score)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
