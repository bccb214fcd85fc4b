"""Pairs of sentences with a score of how alike they are, from CSV files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuralviz.corpus.reading import count, decode, name_lines, read_table, tidy
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


def read_pairs(name: str, content: bytes) -> ScoredPairs:
    """Read scored pairs from a CSV or TSV file.

    Args:
        name: file name, for messages.
        content: a table in UTF-8, UTF-16 or Windows-1252 whose first line names the columns
            ``sentence1``, ``sentence2`` (or ``text1``, ``text2``, or ``a``, ``b``) and ``score``.

    Raises:
        TextError: it is no such table, a column is missing, or fewer than 3 pairs can be used.
    """
    if not content.strip():
        raise TextError(f"{name} is empty.")
    text, notes = decode(name, content)
    table = read_table(name, text)
    first, second, score = _places(name, table.columns)
    used: list[tuple[str, ...]] = []
    scores: list[float] = []
    without_sentence, without_score = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        value = _finite(row[score])
        if not (tidy(row[first]) and tidy(row[second])):
            without_sentence.append(line)
        elif value is None:
            without_score.append(line)
        else:
            used.append(row)
            scores.append(value)
    notes += table.notes
    for lines, why in (
        (without_sentence, "a sentence is missing"),
        (without_score, "the score is no number such as 3.5"),
    ):
        if lines:
            notes += (f"{count(len(lines), 'row')} left out because {why} ({name_lines(lines)}).",)
    if len(used) < FEWEST_PAIRS:
        raise TextError(
            f"{name} has {len(used)} pair{'s' * (len(used) != 1)} with two sentences and a score; "
            f"at least {FEWEST_PAIRS} are needed. " + " ".join(notes)
        )
    by_name = {column.strip().lower(): place for place, column in enumerate(table.columns)}
    return ScoredPairs(
        sentences1=tuple(tidy(row[first]) for row in used),
        sentences2=tuple(tidy(row[second]) for row in used),
        scores=np.array(scores),
        notes=notes,
        labels={
            label: tuple(tidy(row[by_name[label]]) for row in used)
            for label in LABEL_COLUMNS
            if label in by_name
        },
    )


def _places(name: str, columns: Sequence[str]) -> tuple[int, int, int]:
    """Where the two sentences and the score stand."""
    by_name = {column.strip().lower(): place for place, column in enumerate(columns)}
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
