"""The training page's example corpus: textbook passages, long enough for crops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from neuralviz.store.corpora import add_once

if TYPE_CHECKING:
    from neuralviz.reading.texts import ReadTexts
    from neuralviz.store.corpora import Corpus, CorpusStore

TEXTS = "textbooks.csv"
NAME = "Example: textbooks"


def add_textbooks_once(store: CorpusStore) -> Corpus | None:
    """Add the example unless it was added before; None then."""
    return add_once(store, "textbooks", lambda: add_textbooks(store))


def add_textbooks(store: CorpusStore) -> Corpus:
    read = textbooks()
    return store.find(NAME, read) or store.add(NAME, read)


def textbooks() -> ReadTexts:
    return read_texts(Source(TEXTS, (sample_data() / TEXTS).read_bytes()))
