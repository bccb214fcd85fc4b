"""A corpus that the page holds in memory, shared by all sessions: it never changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError
from neuralviz.lazy import Lazy
from neuralviz.maps.filtering import category_names, find_categories, find_words
from neuralviz.maps.settings import is_large
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.rows import are_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.store.corpora import Corpus

MOST_FILTERS = 8  # columns of labels, and as many columns of numbers
HELD = 12  # cached columns of a large corpus, 40 or 80 MB each for 10 million texts


@dataclass(frozen=True)
class Span:
    """The lowest and the highest of a column's numbers, and whether all are whole."""

    low: float
    high: float
    is_whole: bool


@dataclass(frozen=True, eq=False)
class OpenCorpus:
    """A corpus in memory; its parts are read when they are first needed, and never change.

    Attributes:
        store: that keeps it.
        corpus: what is known of it.
    """

    store: CorpusStore
    corpus: Corpus
    _parts: Lazy = field(default_factory=Lazy, repr=False)
    _columns: Lazy = field(default_factory=lambda: Lazy(HELD), repr=False)

    @property
    def is_large(self) -> bool:
        """Whether it is too large to hold its texts in memory: only arrays hold all of it."""
        return is_large(self.corpus.n_texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts; not of a large corpus."""
        return self._parts.get("texts", lambda: tuple(self.store.texts(self.corpus)))

    @property
    def folded(self) -> tuple[str, ...]:
        """All texts in lower case, for searching; not of a large corpus."""
        return self._parts.get("folded", lambda: tuple(text.casefold() for text in self.texts))

    def texts_at(self, rows: Sequence[int] | np.ndarray) -> list[str]:
        """The texts of some rows."""
        if self.is_large:
            return self.store.texts(self.corpus, rows)
        return [self.texts[row] for row in rows]

    def id_at(self, row: int) -> str:
        """The id of a row."""
        if self.is_large:
            return self.store.ids(self.corpus, [row])[0]
        return self._parts.get("ids", lambda: tuple(self.store.ids(self.corpus)))[row]

    def find(self, query: str) -> np.ndarray:
        """Rows of the texts that hold all words of a query."""
        if self.is_large:
            return self.store.rows_with_words(self.corpus, query)
        return find_words(self.folded, query)

    @property
    def lengths(self) -> np.ndarray:
        """[text] characters; not of a large corpus."""
        return self._parts.get("lengths", lambda: np.array([len(text) for text in self.texts]))

    def labels(self, name: str) -> np.ndarray:
        """[text] a column of labels: strings or numbers; of a large corpus, numbers alone."""
        held = self._columns if self.is_large else self._parts
        return held.get(("labels", name), lambda: self.store.labels(self.corpus, name))

    def label_at(self, name: str, row: int) -> object:
        """The value of a column of a row: a string or a number."""
        if self.is_large:
            return self.store.labels(self.corpus, name, [row])[0]
        return self.labels(name)[row]

    @property
    def categories(self) -> Mapping[str, np.ndarray]:
        """Columns that tell texts apart, by name: [text] strings, blank where there is none.

        Not of a large corpus: it has `category_names` and `codes`.
        """
        return self._parts.get(
            "categories", lambda: MappingProxyType(find_categories(self.corpus, self.labels))
        )

    @property
    def category_names(self) -> tuple[str, ...]:
        """Names of the columns that tell texts apart; of a large corpus found by a sample."""
        if not self.is_large:
            return tuple(self.categories)
        return self._parts.get("category names", lambda: category_names(self.store, self.corpus))

    def categories_at(self, name: str, rows: np.ndarray) -> np.ndarray:
        """[row] the values of a column that tells texts apart, blank where there is none."""
        if not self.is_large:
            return self.categories[name][rows]
        codes, names = self.codes(name)
        return np.array([*names, ""], dtype=object)[codes[rows]]

    def codes(self, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """[text] which of some names each text has in a column, -1 for none; and the names."""

        def find() -> tuple[np.ndarray, tuple[str, ...]]:
            if self.is_large:
                return self.store.label_codes(self.corpus, name)
            names, codes = np.unique(self.categories[name].astype(str), return_inverse=True)
            blank = int(names[0] == "")  # the first, if it is there
            return codes.astype(np.int32) - np.int32(blank), tuple(names[blank:].tolist())

        return self._columns.get(("codes", name), find)

    def sizes(self, name: str) -> Mapping[str, int]:
        """How many texts have each name of `codes`, in their order."""

        def count() -> Mapping[str, int]:
            codes, names = self.codes(name)
            sizes = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
            return MappingProxyType(dict(zip(names, sizes, strict=True)))

        return self._parts.get(("sizes", name), count)

    def span(self, name: str) -> Span | None:
        """The range of a column of numbers; None where it has no number."""

        def find() -> Span | None:
            # not cached: for many millions of texts, few columns fit in memory
            values = self.store.labels(self.corpus, name)
            finite = values[np.isfinite(values)]
            if not len(finite):
                return None
            return Span(float(finite.min()), float(finite.max()), are_whole(finite))

        return self._parts.get(("span", name), find)

    @property
    def filtered_labels(self) -> tuple[str, ...]:
        """Columns of labels that texts can be filtered by."""
        return self.category_names[:MOST_FILTERS]

    @property
    def filtered_numbers(self) -> tuple[str, ...]:
        """Columns of numbers that texts can be filtered by; not those filtered as labels."""
        labels = self.category_names
        return tuple(name for name in self.numbers if name not in labels)[:MOST_FILTERS]

    def read_ahead(self) -> None:
        """Read the labels that a map of a large corpus is coloured by at first."""
        with suppress(NeuralvizError):  # raised again where the labels are used
            for name in self.category_names[:1]:
                self.codes(name)

    def prepare(self) -> None:
        """Compute what a filter of a large corpus offers, before it is needed."""
        with suppress(NeuralvizError):  # raised again where the filter is drawn
            for name in self.filtered_labels:
                self.sizes(name)
            for name in self.filtered_numbers:
                self.span(name)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(column.name for column in self.corpus.columns if column.kind == "number")
