"""Which columns of a corpus tell its texts apart, and not names, ids or measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.settings import is_large
from neuralviz.reading.cells import cell_text
from neuralviz.reading.texts import ID_COLUMNS
from neuralviz.store.rows import are_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.store.corpora import Corpus, CorpusStore

MOST_CATEGORIES = 1000  # different labels of a column that texts are told apart by
TEXTS_A_LABEL = 2  # on average, at least; names and ids have fewer
TEXTS_A_NUMBER = 5
LOOKED_AT = 20_000  # texts of a large corpus by which the columns are found
FEW_NUMBERS = 12  # different whole numbers that may as well be names, as in a column of classes


def category_names(store: CorpusStore, corpus: Corpus) -> tuple[str, ...]:
    """Names of the columns that tell texts apart; of a large corpus found by a sample.

    Raises:
        StoreError: the corpus was deleted.
    """
    n, rows = corpus.n_texts, None
    if is_large(n):
        rows = np.sort(np.random.default_rng(0).choice(n, min(n, LOOKED_AT), replace=False))
    return tuple(find_categories(corpus, lambda name: store.labels(corpus, name, rows)))


def find_categories(corpus: Corpus, labels: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that tell texts apart, by name: [text] strings, blank where there is none.

    Args:
        corpus: whose columns are looked at.
        labels: gives [text] the strings or numbers of a column, of all texts or of some.
    """
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
