"""Filters and selections of texts, and the label columns that suit them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.projection import is_large
from neuralviz.reading.cells import cell_text
from neuralviz.reading.texts import ID_COLUMNS
from neuralviz.store.corpora import are_whole
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.store.corpora import Corpus, CorpusStore

NAMED_VALUES = 3  # values of a column listed in a sentence
MOST_CATEGORIES = 1000  # labels in a categorical column
TEXTS_A_LABEL = 2  # minimum average; names and IDs have fewer
TEXTS_A_NUMBER = 5
LOOKED_AT = 20_000  # sampled texts of a large corpus
FEW_NUMBERS = 12  # distinct whole numbers that may be categories


@dataclass(frozen=True)
class TextFilter:
    # by column, the allowed values; "" is no value
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # by numeric column, lowest and highest; missing numbers do not pass
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.labels or self.ranges)

    def within(
        self,
        codes: Callable[[str], tuple[np.ndarray, Sequence[str]]],  # as `CorpusStore.label_codes`
        numbers: Callable[[str], np.ndarray],  # [text] values of a column
        n_texts: int,
    ) -> np.ndarray:
        mask = np.ones(n_texts, dtype=bool)
        for name, allowed in self.labels.items():
            text_codes, names = codes(name)
            mask &= np.array([*(label in allowed for label in names), "" in allowed])[text_codes]
        for name, (low, high) in self.ranges.items():
            values = numbers(name)
            mask &= (values >= low) & (values <= high)  # false for NaN
        return mask

    def describe(self, n_shown: int, n_texts: int) -> str:
        reasons = []
        for name, allowed in self.labels.items():
            named = [value or "no value" for value in allowed[:NAMED_VALUES]]
            rest = len(allowed) - len(named)
            suffix = f" or {rest} more" if rest else ""
            reasons.append(f"{name} is {' or '.join(named)}{suffix}")
        for name, (low, high) in self.ranges.items():
            reasons.append(f"{name} is {number(low)} to {number(high)}")
        return f"Showing {n_shown:,} of {many(n_texts, 'text')}: {', and '.join(reasons)}."


@dataclass(frozen=True, eq=False)
class Selection:
    """A set of texts, stored as bits: 1.25 MB for 10 million."""

    bits: np.ndarray  # [⌈text / 8⌉] uint8, lowest bit first
    n_texts: int  # of the corpus
    n: int  # selected

    @classmethod
    def from_mask(cls, mask: np.ndarray) -> Selection:
        return cls(np.packbits(mask, bitorder="little"), len(mask), int(np.count_nonzero(mask)))

    @classmethod
    def from_rows(cls, rows: np.ndarray, n_texts: int) -> Selection:
        mask = np.zeros(n_texts, dtype=bool)
        mask[rows[rows < n_texts]] = True
        return cls.from_mask(mask)

    def __len__(self) -> int:
        return self.n

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(self.bits.tobytes(), digest_size=12).hexdigest()

    def mask(self) -> np.ndarray:
        return np.unpackbits(self.bits, count=self.n_texts, bitorder="little").view(bool)

    def rows(self) -> np.ndarray:
        return np.flatnonzero(self.mask())

    def is_selected(self, rows: np.ndarray) -> np.ndarray:
        return (self.bits[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(bool)


def category_names(store: CorpusStore, corpus: Corpus) -> tuple[str, ...]:
    """Columns with categorical labels; large corpora are judged by a sample."""
    n, rows = corpus.n_texts, None
    if is_large(n):
        rows = np.sort(np.random.default_rng(0).choice(n, min(n, LOOKED_AT), replace=False))
    return tuple(find_categories(corpus, lambda name: store.labels(corpus, name, rows)))


def find_categories(corpus: Corpus, labels: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Categorical columns as [text] strings, blank for none; ``labels`` reads a column."""
    categories = {}
    for column in corpus.columns:
        if column.name.strip().lower() in ID_COLUMNS:
            continue
        values = labels(column.name)
        if column.kind == "number":
            finite = values[np.isfinite(values)]
            n = len(np.unique(finite))
            if n > FEW_NUMBERS or not are_whole(finite) or len(finite) < TEXTS_A_NUMBER * n:
                continue
            values = np.array([cell_text(v) if np.isfinite(v) else "" for v in values.tolist()])
        n = len(set(values) - {""})
        if 1 < n <= min(MOST_CATEGORIES, max(2, len(values) // TEXTS_A_LABEL)):
            categories[column.name] = values
    return categories
