"""The widgets that filter texts by their labels and numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.maps.filtering import TextFilter
from neuralviz.plots.theme import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.ui.corpus.opened import OpenCorpus

LONGEST_NAME = 60  # characters
MOST_VALUES = 1000  # offered of a column of a large corpus


def choose_filter(corpus: OpenCorpus) -> tuple[np.ndarray | None, str]:
    """[text] whether a text is shown, None where all are; and a sentence on it.

    The choice is in the address. For a large corpus, finding what to offer takes seconds, so
    it is found only when the filter is opened.
    """
    columns = [column.name for column in corpus.corpus.columns]
    labels = {name: columns.index(name) for name in corpus.filtered_labels}
    numbers = {name: columns.index(name) for name in corpus.filtered_numbers}
    if not labels and not numbers:
        return None, ""
    large = corpus.is_large
    popover = st.popover(
        "Filter",
        icon=":material/filter_alt:",
        key="corpus-filter",
        on_change="rerun" if large else "ignore",
    )
    if large and not popover.open and not _is_known(corpus, [*labels.values(), *numbers.values()]):
        return None, ""
    with popover:
        chosen = TextFilter(
            _choose_labels(corpus, labels),
            _choose_ranges(corpus, numbers),
        )
        st.caption("Filters combine: a text must meet all of them. Nothing chosen shows all texts.")
    if not chosen:
        return None, ""
    n = corpus.corpus.n_texts
    within = chosen.within(corpus.codes, corpus.labels, n)
    return within, chosen.describe(int(within.sum()), n)


def _key(corpus: OpenCorpus, place: int) -> str:
    return f"only-{place}-{corpus.corpus.id}"


def _is_known(corpus: OpenCorpus, places: Sequence[int]) -> bool:
    """Whether the address filters, or the session has chosen before."""
    keys = (_key(corpus, place) for place in places)
    return any(key in st.session_state or key in st.query_params for key in keys)


def _choose_labels(corpus: OpenCorpus, places: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    labels = {}
    for name, place in places.items():
        options = _list_values(corpus, name)
        values = st.multiselect(
            shorten(name, LONGEST_NAME),
            options,
            format_func=lambda value: shorten(value, LONGEST_NAME) or "no value",
            placeholder="All",
            key=_key(corpus, place),
            bind="query-params",
        )
        if values:
            labels[name] = tuple(values)
    return labels


def _list_values(corpus: OpenCorpus, name: str) -> list[str]:
    """The values of a column, the most frequent first; ``""`` where some texts have none."""
    if not corpus.is_large:
        return [value for value, _ in Counter(corpus.categories[name].tolist()).most_common()]
    sizes = corpus.sizes(name)
    values = sorted(sizes, key=sizes.__getitem__, reverse=True)[:MOST_VALUES]
    return [*values, *([""] if sum(sizes.values()) < corpus.corpus.n_texts else [])]


def _choose_ranges(corpus: OpenCorpus, places: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    ranges = {}
    for name, place in places.items():
        span = corpus.span(name)
        if span is None or span.low == span.high:
            continue
        kind = int if span.is_whole else float
        ends = kind(span.low), kind(span.high)
        low, high = st.slider(
            shorten(name, LONGEST_NAME),
            *ends,
            ends,
            key=_key(corpus, place),
            bind="query-params",
        )
        if (low, high) != ends:
            ranges[name] = (low, high)
    return ranges
