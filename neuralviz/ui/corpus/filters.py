"""The widgets that leave texts out, by their labels and numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.maps.filtering import TextFilter
from neuralviz.plots.theme import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.ui.corpus.kept import OpenCorpus

MOST_FILTERS = 8  # columns
LONGEST_NAME = 60  # characters


def choose_filter(corpus: OpenCorpus) -> tuple[np.ndarray | None, str]:
    """[text] whether a text is shown, None where all are; and a sentence on it.

    The choice is in the address.
    """
    columns = [column.name for column in corpus.corpus.columns]
    labels = {name: columns.index(name) for name in corpus.categories}
    numbers = {name: columns.index(name) for name in corpus.numbers if name not in labels}
    if not labels and not numbers:
        return None, ""
    with st.popover("Filter", icon=":material/filter_alt:", key="corpus-filter"):
        chosen = TextFilter(
            _choose_labels(corpus, dict(list(labels.items())[:MOST_FILTERS])),
            _choose_ranges(corpus, dict(list(numbers.items())[:MOST_FILTERS])),
        )
        st.caption("Filters combine: a text must meet all of them. Nothing chosen shows all texts.")
    if not chosen:
        return None, ""
    values = {**corpus.categories, **{name: corpus.labels(name) for name in numbers}}
    n = corpus.corpus.n_texts
    within = chosen.within(values.__getitem__, n)
    return within, chosen.in_words(int(within.sum()), n)


def _choose_labels(corpus: OpenCorpus, places: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, place in places.items():
        options = [value for value, _ in Counter(corpus.categories[name].tolist()).most_common()]
        wanted = st.multiselect(
            shorten(name, LONGEST_NAME),
            options,
            format_func=lambda value: shorten(value, LONGEST_NAME) or "no value",
            placeholder="All",
            key=f"only-{place}-{corpus.corpus.id}",
            bind="query-params",
        )
        if wanted:
            found[name] = tuple(wanted)
    return found


def _choose_ranges(corpus: OpenCorpus, places: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, place in places.items():
        values = corpus.labels(name)
        finite = values[np.isfinite(values)]
        if not len(finite) or finite.min() == finite.max():
            continue
        kind = int if (finite % 1 == 0).all() else float
        ends = kind(finite.min()), kind(finite.max())
        low, high = st.slider(
            shorten(name, LONGEST_NAME),
            *ends,
            ends,
            key=f"only-{place}-{corpus.corpus.id}",
            bind="query-params",
        )
        if (low, high) != ends:
            found[name] = (low, high)
    return found
