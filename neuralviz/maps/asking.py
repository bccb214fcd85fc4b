"""The nearest texts of a kept map's texts, whatever the size of its corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import SettingsError
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.settings import SEED

if TYPE_CHECKING:
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.store.corpora import Corpus, CorpusStore

SAMPLED = 1000  # texts by which a large corpus is scored


def neighbours_of_rows(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, rows: np.ndarray, k: int
) -> Neighbours:
    """The texts nearest to some texts of a map, by the vectors.

    Args:
        store: that keeps all of it.
        corpus: on the map.
        kept: the map.
        rows: of the texts, in any order.
        k: neighbours of each, fewer where so many are not kept or there are not so many texts.

    Returns:
        [row, k] rows of the corpus, never the text itself.

    Raises:
        SettingsError: ``k`` is below 1.
        StoreError: the map, the corpus or a vector is gone.
    """
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")
    return KeptMaps(store).neighbours_of(kept, np.asarray(rows)).first(k)


def sampled_neighbours(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, k: int, n: int = SAMPLED
) -> tuple[np.ndarray, Neighbours]:
    """The neighbours of a random sample of the texts: the same texts for every map of a corpus.

    Args:
        store, corpus, kept, k: as of `neighbours_of_rows`.
        n: texts of the sample; all where there are not so many.

    Returns:
        [n] rows of the sample in their order, and their neighbours.

    Raises:
        As `neighbours_of_rows`.
    """
    drawn = np.random.default_rng(SEED).choice(corpus.n_texts, min(n, corpus.n_texts), False)
    rows = np.sort(drawn)
    return rows, neighbours_of_rows(store, corpus, kept, rows, k)
