"""The corpus that the training page opens with: passages of textbooks, long enough for crops."""

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
    """Keep the example, unless that has been done before; None then."""
    return add_once(store, "textbooks", lambda: add_textbooks(store))


def add_textbooks(store: CorpusStore) -> Corpus:
    """Keep the example; what is there of it already is used."""
    read = textbooks()
    return store.find(NAME, read) or store.add(NAME, read)


def textbooks() -> ReadTexts:
    return read_texts(Source(TEXTS, (sample_data() / TEXTS).read_bytes()))
