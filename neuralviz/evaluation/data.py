"""Labelled data: scored pairs, groups, labels, paraphrases, from tables, corpora and the Hub."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from neuralviz.errors import NeuralvizError, SettingsError, shorten_reason
from neuralviz.evaluation.correlation import why_undefined
from neuralviz.evaluation.probing import why_not_probed
from neuralviz.evaluation.triplets import Grouping
from neuralviz.maps.neighbours import why_no_votes
from neuralviz.maps.opened import TEXTS_A_LABEL
from neuralviz.reading.arrow_tables import (
    STATE,
    find_split,
    is_saved_data_set,
    read_rows,
    read_saved,
)
from neuralviz.reading.pairs import (
    FEWEST_PAIRS,
    FIVE,
    ROLES,
    UNIT,
    Kind,
    Scale,
    check_fewest,
    find_role_columns,
    find_roles,
    list_missing,
    number_pairs,
    repeats_in_words,
    usable_rows,
)
from neuralviz.reading.source import Source, tidy
from neuralviz.reading.table import (
    Table,
    cell_text,
    guess_column,
    join_tables,
    parse_nested,
    parse_numbers,
    rate_texts,
)
from neuralviz.reading.tables import limit_rows, read_table
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.words import many, number

Measure = Literal[
    "correlations", "pairs", "triplets", "neighbours", "uniformity", "paraphrases", "probe",
    "read-back",
]  # fmt: skip
SLOW: tuple[Measure, ...] = ("probe", "read-back")

SIMILAR, DISSIMILAR = 4.0, 2.0  # on a scale of 0 … 5 (section 3.3)
MEASURES: dict[Kind, tuple[Measure, ...]] = {
    "pairs": ("correlations", "pairs", "triplets", "uniformity", "read-back"),
    "groups": ("triplets", "uniformity", "read-back"),
    "labels": ("neighbours", "uniformity", "probe", "read-back"),
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
        return tuple(name for name in self.measures if name not in SLOW)

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
        scale_range = f"the range from {number(scale.low)} to {number(scale.high)}"
        reason = f", which is 80% and 40% of {scale_range}" if self == BY_RANGE else ""
        return (
            f"The scores lie between {written[0]} and {written[1]}: pairs count as similar from "
            f"{written[2]} and as dissimilar up to {written[3]}{reason}. Change the "
            "thresholds if the scale is different."
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


# --- from tables, whose columns have roles or are guessed, and from corpora -----------------------

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
        if digest_texts(data.texts) == STS_TEST:
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
            note = (
                f"No text in the column “{columns['role'][:40]}” has the role “"
                f"{'” or “'.join(ANCHORS)}”, so roles are ignored. To use them, mark the anchors."
            )
            notes = (*notes, note)
    return grouped_data(name, texts, groups, anchors, notes=notes)


def _paraphrases(name: str, table: Table, columns: Mapping[str, str]) -> ParaphraseData:
    rows = usable_rows(
        table,
        (columns["original"], columns["generated"], columns["varies"]),
        (columns["value"], columns["fixed1"], columns["fixed2"]),
    )
    original, generated, varies = rows.texts
    check_fewest(name, len(original), "text", "an original and three values", 2, rows.notes)
    texts, places = distinct([*original, *generated])
    n = len(original)
    return ParaphraseData(
        name, texts, places[:n], places[n:], varies, *rows.numbers, notes=rows.notes
    )


LOOKED_AT = 500  # rows
LEAST_NUMBERS = 0.75  # share of the scores that are numbers; others are missing: “n/a”
_COUNTED = re.compile(r"(?:^|[\W_]|q)(?:id|idx|index|year)\d*$", re.I)  # names of no scores
SCORE_WORDS = ("score", "rating", "similar", "relat", "gold", "stars")


def guess_kind(table: Table, kinds: Collection[Kind] = ROLES) -> Kind:
    """The kind of data whose columns have usual names, else look like pairs or labelled texts."""
    offered = [kind for kind in ROLES if kind in kinds]
    named = {kind: find_role_columns(kind, table.columns) for kind in offered}
    for kind in offered:
        if not list_missing(kind, named[kind]):
            return kind
    for kind in offered:
        if kind in ("pairs", "labels") and not list_missing(kind, guess_columns(kind, table)):
            return kind
    return max(offered, key=lambda kind: (len(named[kind]), kind != "paraphrases"))


def guess_columns(kind: Kind, table: Table) -> dict[str, str]:
    """The columns found for a kind's roles, by name or else by content."""
    named = find_role_columns(kind, table.columns)
    if not list_missing(kind, named):
        return named
    table = table.first(LOOKED_AT)
    texts = [title for title in table.columns if rate_texts(table.column(title)) > 1]
    guessed: dict[str, str] = {}
    if kind == "pairs":
        guessed = dict(zip(("text1", "text2"), texts, strict=False))
        scores = [title for title in table.columns if _is_score(title, table.column(title))]
        likely = [title for title in scores if any(word in title.lower() for word in SCORE_WORDS)]
        if scores:
            guessed["score"] = (likely or scores)[-1]
    elif kind in ("labels", "groups") and texts:
        guessed["text"] = text = guess_column("The table", table)
        labels = [title for title in table.columns if _is_label(table.column(title))]
        if others := [title for title in labels if title != text]:
            guessed[kind.removesuffix("s")] = others[0]
    free = {role: title for role, title in guessed.items() if title not in named.values()}
    return free | named


def _is_score(name: str, column: Sequence[str]) -> bool:
    """Whether these are numbers or missing, and not numbers of rows or classes."""
    if _COUNTED.search(name):
        return False
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
    labels, texts = store.label_names(corpus, column), store.texts(corpus)
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


# --- the Hub -------------------------------------------------------------------------------------

PREFIX = "hf:"
_SCORES = ("similarity_score", "score", "similarity", "label")  # of pairs of sentences


class HubData(NamedTuple):
    repo: str
    config: str | None
    split: str


HUB_DATA = {
    "stsb": HubData("PhilipMay/stsb_multi_mt", "en", "test"),
    "mrpc": HubData("nyu-mll/glue", "mrpc", "train"),
    "asset": HubData("facebook/asset", "simplification", "test"),
    "summeval": HubData("mteb/summeval", None, "test"),
}


def load_hub_data(
    name: str,
    roles: Mapping[str, str] | None = None,
    *,
    thresholds: Thresholds = BY_RANGE,
    max_rows: int = MAX_ROWS,
) -> DataSet:
    """Load ``ID[:CONFIG[:SPLIT]]``; NeuralvizError if out of reach, else errors of `read_data`."""
    repo, config, split = [*name.removeprefix(PREFIX).split(":", 2), "", ""][:3]
    if not repo.strip():
        raise SettingsError(
            f"Enter the name of a data set after {PREFIX}, such as {PREFIX}stsb. Short "
            f"names: {', '.join(HUB_DATA)}."
        )
    benchmark = ""  # that was published
    if (known := HUB_DATA.get(repo.lower())) is not None:
        if config in ("", known.config) and split in ("", known.split):
            benchmark = repo.lower()
        repo, config, split = known.repo, config or known.config or "", split or known.split
    split = split or "test"
    table = _read_rows(repo, config, split, max_rows + 1)
    if len(table) > max_rows:
        benchmark = ""
    table = limit_rows(repo, table, max_rows)
    label = repo if (Path(repo) / STATE).is_file() else f"{repo}:{split}"
    data: DataSet | None = _group_lists(label, table)
    if data is None:
        roles = dict(roles or {})
        scores = [column for column in _SCORES if column in table.columns]
        if {"sentence1", "sentence2"} <= set(table.columns) and scores:
            roles.setdefault("score", scores[0])
        data = make_data(label, table, roles, thresholds=thresholds)
    return replace(data, benchmark=benchmark or data.benchmark)


def _read_rows(repo: str, config: str, split: str, n_wanted: int) -> Table:
    if is_saved_data_set(Path(repo)):
        folder = find_split(repo, Path(repo), config or split)
        return join_tables(repo, read_saved(repo, folder, n_wanted))
    rows = _load(repo, config, split).with_format("arrow")[:n_wanted]
    return join_tables(repo, read_rows(repo, rows))


def _load(repo: str, config: str, split: str) -> Any:
    try:
        from datasets import load_dataset
        from datasets.exceptions import DatasetNotFoundError
        from datasets.utils.logging import disable_progress_bar
    except ImportError as error:
        raise NeuralvizError(
            "Data sets on the Hub need the package “datasets”. Install it with `pip install "
            "datasets`, or save the data as CSV and use that file."
        ) from error
    from huggingface_hub import constants

    from neuralviz.models.hub import NETWORK_SECONDS, ask_hub

    disable_progress_bar()
    try:
        if not Path(repo).is_dir() and not constants.HF_HUB_OFFLINE:
            # within seconds, without the retries of `datasets`
            answer = ask_hub(lambda hub: hub.dataset_info(repo, timeout=NETWORK_SECONDS))
            if isinstance(answer, Exception):
                raise ConnectionError from answer
        return load_dataset(repo, config or None, split=split)
    except (DatasetNotFoundError, OSError) as error:
        raise NeuralvizError(
            f"The data set {repo} is not available: it is not on this machine and could not be "
            "downloaded from the Hub. Use a folder with a copy of it, or a CSV file. Set "
            "HF_HUB_OFFLINE=1 to use a copy that was downloaded earlier."
        ) from error
    except Exception as error:  # whatever a format of theirs may run into
        reason = shorten_reason(error)
        raise NeuralvizError(f"Could not read the data set {repo}: {reason}.") from error


def _group_lists(name: str, table: Table) -> GroupedData | None:
    """Rows of a text and a list of texts, each row a group; None for other columns."""
    titles = next((pair for pair in _LISTS if set(pair) <= set(table.columns)), None)
    if titles is None:
        return None
    texts, groups, anchors = [], [], []
    for row, (single, listed) in enumerate(zip(*map(table.column, titles), strict=True)):
        for place, text in enumerate([single, *(parse_nested(listed) or ())]):
            if readable := tidy(cell_text(text)):
                texts.append(readable)
                groups.append(str(row))
                anchors.append(place == 0)
    roles = None if titles[0] == "original" else anchors
    return grouped_data(name, texts, groups, roles, notes=table.notes)


_LISTS = (
    ("original", "simplifications"),
    ("text", "machine_summaries"),
    ("text", "human_summaries"),
)
