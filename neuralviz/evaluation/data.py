"""Labelled data as values: scored pairs, groups, labels, paraphrases; each text is listed once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.evaluation.correlation import why_undefined
from neuralviz.evaluation.probing import why_not_probed
from neuralviz.evaluation.triplets import Grouping
from neuralviz.maps.neighbours import why_no_votes
from neuralviz.reading.pairs import (
    FEWEST_PAIRS,
    FIVE,
    UNIT,
    Kind,
    Scale,
    check_fewest,
    number_pairs,
    repeats_in_words,
)
from neuralviz.words import many, number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Measure = Literal[
    "correlations", "pairs", "triplets", "neighbours", "uniformity", "paraphrases", "probe"
]

SIMILAR, DISSIMILAR = 4.0, 2.0  # on a scale of 0 … 5 (section 3.3)
MEASURES: dict[Kind, tuple[Measure, ...]] = {
    "pairs": ("correlations", "pairs", "triplets", "uniformity"),
    "groups": ("triplets", "uniformity"),
    "labels": ("neighbours", "uniformity", "probe"),
    "paraphrases": ("paraphrases",),
}


def digest_texts(texts: Iterable[str]) -> str:
    content = "\x1e".join(texts)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True, eq=False)
class DataSet(ABC):
    name: str
    texts: tuple[str, ...]  # the different ones, in the order in which they first come
    _: KW_ONLY
    notes: tuple[str, ...] = ()  # what was left out, or not taken as it may have been meant
    columns: Mapping[str, str] = field(default_factory=dict)  # of the table, by role
    benchmark: str = ""  # the published data that these are: ``stsb``, ``mrpc``, ``asset``
    kind: ClassVar[Kind]

    @property
    def measures(self) -> tuple[Measure, ...]:
        return MEASURES[self.kind]

    @property
    def by_default(self) -> tuple[Measure, ...]:
        """The measures that run by default: all but the slow ones."""
        return tuple(name for name in self.measures if name != "probe")

    @cached_property
    def digest_of_texts(self) -> str:
        return digest_texts(self.texts)

    @cached_property
    def digest(self) -> str:
        """Hash of all that a measure depends on: the texts and a kind's own fields."""
        shared = {attribute.name for attribute in fields(DataSet)}
        names = [attribute.name for attribute in fields(self)]
        values = [getattr(self, name) for name in names if name not in shared]
        return digest_texts([self.kind, *_contents(values), *self.texts])

    @abstractmethod
    def describe(self) -> str:
        """A description in numbers."""

    def problem(self, measure: Measure) -> str:
        """Why the measure is impossible, whatever the vectors; empty if possible."""
        return ""


@dataclass(frozen=True)
class Thresholds:
    """Scores that bound similar and dissimilar pairs; None is 80% and 40% of the scale."""

    similar: float | None = None
    dissimilar: float | None = None

    def of_scores(self, scores: np.ndarray) -> tuple[float, float]:
        """Both bounds, with those that are None taken from the range of the scores."""
        shares = FIVE.shares(np.array([SIMILAR, DISSIMILAR]))
        similar, dissimilar = Scale.from_scores(scores).scores(shares).round(9).tolist()
        return (
            similar if self.similar is None else self.similar,
            dissimilar if self.dissimilar is None else self.dissimilar,
        )

    def note(self, scores: np.ndarray) -> str:
        """A sentence on thresholds that follow an uncommon or doubtful scale; else empty."""
        scale = Scale.from_scores(scores)
        is_doubtful = scale == FIVE and 1 <= scores.min() < scores.max()  # or is it from 1 to 5
        is_common = scale in (UNIT, FIVE) and not is_doubtful
        if is_common or None not in (self.similar, self.dissimilar):
            return ""
        written = [number(value) for value in (scores.min(), scores.max(), *self.of_scores(scores))]
        return (
            f"The scores lie between {written[0]} and {written[1]}: pairs count as similar from "
            f"{written[2]} and as dissimilar up to {written[3]}, which is 80% and 40% of the range "
            f"from {number(scale.low)} to {number(scale.high)}. Set other thresholds if the scale "
            "is another."
        )


BY_RANGE = Thresholds()


@dataclass(frozen=True, eq=False)
class ScoredData(DataSet):
    """Pairs of texts with a score by people; the larger, the more alike."""

    first: np.ndarray  # [pair] places in ``texts``
    second: np.ndarray
    scores: np.ndarray
    similar: float = SIMILAR
    dissimilar: float = DISSIMILAR
    kind: ClassVar[Kind] = "pairs"

    def __post_init__(self) -> None:
        if not self.similar > self.dissimilar:
            raise SettingsError(
                f"The threshold for similar pairs ({number(self.similar)}) must be above the one "
                f"for dissimilar pairs ({number(self.dissimilar)})."
            )

    @property
    def is_similar(self) -> np.ndarray:
        return self.scores >= self.similar

    @property
    def is_dissimilar(self) -> np.ndarray:
        return self.scores <= self.dissimilar

    @cached_property
    def numbers(self) -> np.ndarray:
        return number_pairs(
            [self.texts[place] for place in self.first],
            [self.texts[place] for place in self.second],
        )

    @cached_property
    def rows(self) -> np.ndarray:
        """[row] places in ``texts`` of the similar pairs' texts, each pair its own group."""
        chosen = self.is_similar
        return np.stack([self.first[chosen], self.second[chosen]], axis=1).ravel()

    @cached_property
    def grouping(self) -> Grouping:
        return Grouping(np.arange(len(self.rows)) // 2)

    def describe(self) -> str:
        return (
            f"{len(self.scores):,} scored pairs, {int(self.is_similar.sum()):,} of them similar "
            f"(≥ {number(self.similar)}), "
            f"{int(self.is_dissimilar.sum()):,} dissimilar (≤ {number(self.dissimilar)})"
        )

    def problem(self, measure: Measure) -> str:
        n_similar, n_dissimilar = int(self.is_similar.sum()), int(self.is_dissimilar.sum())
        if measure == "correlations":
            return why_undefined(np.arange(len(self.scores)), self.scores)
        has_few = {"triplets": n_similar < 2, "pairs": not (n_similar and n_dissimilar)}
        if has_few.get(measure):
            return (
                f"Too few pairs are similar ({n_similar:,} score {number(self.similar)} or more) "
                f"or dissimilar ({n_dissimilar:,} score {number(self.dissimilar)} or less). Change "
                "the thresholds."
            )
        return ""


@dataclass(frozen=True, eq=False)
class GroupedData(DataSet):
    """Texts in groups that mean the same; ``rows`` are places in ``texts``."""

    rows: np.ndarray
    grouping: Grouping
    kind: ClassVar[Kind] = "groups"

    def describe(self) -> str:
        anchors = ""
        if self.grouping.anchor is not None:
            anchors = f", {int(self.grouping.anchor.sum()):,} of them anchors"
        return (
            f"{many(len(self.rows), 'text')} in "
            f"{many(len(np.unique(self.grouping.group)), 'group')}{anchors}; "
            f"{many(self.grouping.n_triplets, 'triplet')}"
        )

    def problem(self, measure: Measure) -> str:
        if measure == "triplets":
            try:
                self.grouping.check()
            except NeuralvizError as error:
                return str(error)
        return ""


@dataclass(frozen=True, eq=False)
class LabelledData(DataSet):
    """Texts with a label; ``rows`` are places in ``texts``."""

    rows: np.ndarray
    labels: tuple[str, ...]
    kind: ClassVar[Kind] = "labels"

    def describe(self) -> str:
        return f"{many(len(self.rows), 'text')} with {many(len(set(self.labels)), 'label')}"

    def problem(self, measure: Measure) -> str:
        if measure == "neighbours":
            return why_no_votes(self.labels)
        return why_not_probed(self.labels, self.rows.tolist()) if measure == "probe" else ""


@dataclass(frozen=True, eq=False)
class ParaphraseData(DataSet):
    """Phrases generated from originals, with one quality of similarity varied (section 3.1)."""

    original: np.ndarray  # [phrase] places in ``texts``
    generated: np.ndarray
    varies: tuple[str, ...]  # [phrase] the quality that varies
    values: np.ndarray  # its values
    fixed1: np.ndarray  # those of the two others
    fixed2: np.ndarray
    kind: ClassVar[Kind] = "paraphrases"

    def describe(self) -> str:
        names = ", ".join(dict.fromkeys(self.varies))
        return f"{many(len(self.values), 'generated phrase')}, varying in {names}"

    def problem(self, measure: Measure) -> str:
        values: dict[tuple[str, float, float], set[float]] = {}
        for *cell, value in zip(self.varies, self.fixed1, self.fixed2, self.values, strict=True):
            values.setdefault(tuple(cell), set()).add(value)
        if any(len(different) > 1 for different in values.values()):
            return ""
        return (
            "The values never vary within a pair of fixed values, so there is nothing to "
            "correlate with."
        )


def scored_data(
    name: str,
    first: Sequence[str],
    second: Sequence[str],
    scores: ArrayLike,
    *,
    thresholds: Thresholds = BY_RANGE,
    notes: tuple[str, ...] = (),
) -> ScoredData:
    """Make scored pairs; TextError for fewer than three, SettingsError for wrong thresholds."""
    scores = np.asarray(scores, dtype=np.float64)
    check_fewest(name, len(scores), "pair", "two texts and a score", FEWEST_PAIRS, notes)
    texts, places = distinct([*first, *second])
    n = len(scores)
    bounds = thresholds.of_scores(scores)
    notes += tuple(filter(None, [thresholds.note(scores)]))
    notes += repeats_in_words(number_pairs(first, second))
    return ScoredData(name, texts, places[:n], places[n:], scores, *bounds, notes=notes)


def grouped_data(
    name: str,
    texts: Sequence[str],
    groups: Sequence[str],
    anchors: Sequence[bool] | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> GroupedData:
    """Make groups from columns; TextError for fewer than three texts."""
    check_fewest(name, len(texts), "text", "a group", 3, notes)
    different, places = distinct(texts)
    anchor = None if anchors is None else np.array(anchors, dtype=bool)
    return GroupedData(name, different, places, Grouping(distinct(groups)[1], anchor), notes=notes)


def labelled_data(
    name: str, texts: Sequence[str], labels: Sequence[str], *, notes: tuple[str, ...] = ()
) -> LabelledData:
    """Make labelled texts, each pair once, ``""`` for unlabelled; TextError for fewer than two."""
    labelled = [(text, label) for text, label in zip(texts, labels, strict=True) if label]
    once = list(dict.fromkeys(labelled))
    check_fewest(name, len(once), "text", "a label", 2, notes)
    if n_equal := len(labelled) - len(once):
        notes += (f"Skipped {many(n_equal, 'row')}: duplicate text and label.",)
    different, places = distinct([text for text, _ in once])
    return LabelledData(name, different, places, tuple(label for _, label in once), notes=notes)


def distinct(texts: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """The distinct texts in order of appearance, and each text's place among them."""
    places: dict[str, int] = {}
    row_places = [places.setdefault(text, len(places)) for text in texts]
    return tuple(places), np.array(row_places, dtype=np.int64)


def _contents(values: Iterable[object]) -> list[str]:
    """The strings to hash: values, and the fields of dataclasses."""
    contents = []
    for value in values:
        if is_dataclass(value):
            contents += _contents(getattr(value, attribute.name) for attribute in fields(value))
        elif isinstance(value, np.ndarray):
            contents.append(hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest())
        else:
            contents.append(repr(value))
    return contents
