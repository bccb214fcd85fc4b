"""Texts of a corpus by the words in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralviz.words import search_terms


def find_words(texts: Sequence[str], query: str) -> np.ndarray:
    """Rows of the texts that hold every word of a query, in their order.

    Upper and lower case are the same. A word may be part of a longer one; what stands in quotation
    marks has to be there just so.

    Args:
        texts: case-folded.
        query: as typed; a blank one finds nothing.
    """
    terms = search_terms(query)
    if not terms:
        return np.zeros(0, dtype=np.int64)
    return np.array(
        [row for row, text in enumerate(texts) if all(term in text for term in terms)],
        dtype=np.int64,
    )
