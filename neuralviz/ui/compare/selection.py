"""The order of the texts, and the chosen pair of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.similarity import (
    order_by_cluster,
    order_by_label,
    pair_indices,
    usable_labels,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.evaluation.similarity import Similarity
    from neuralviz.jobs.comparing import Comparison

PAIR = ("compare-first", "compare-second")  # session state: the chosen pair
METHODS = ("compare-a", "compare-b")  # session state: the chosen methods
ORDER_WIDTH = 190  # px
AS_GIVEN, CLUSTERED = "Original", "Clustered by the first method"


def choose_order(labels: dict[str, tuple[str, ...]]) -> str:
    """Ask for the order of the texts: the original one, clustered, or by a column of labels."""
    return (
        st.selectbox(
            "Order of texts",
            [AS_GIVEN, CLUSTERED, *(f"By {name}" for name in usable_labels(labels))],
            key="order",
            bind="query-params",
            width=ORDER_WIDTH,
        )
        or AS_GIVEN
    )


def text_order(comparison: Comparison, labels: tuple[str, ...] | None, order: str) -> np.ndarray:
    """Numbers of the texts in the order that was chosen."""
    if labels is not None:
        return order_by_label(labels)
    first = comparison[0].similarity
    if order == CLUSTERED and first is not None:
        return order_by_cluster(first)
    return np.arange(len(comparison[0].texts))


def order_labels(labels: Mapping[str, tuple[str, ...]], order: str) -> tuple[str, ...] | None:
    """The labels that the texts are ordered by; None when they are not."""
    return labels.get(order.removeprefix("By ")) if order.startswith("By ") else None


def forget_pair() -> None:
    """Forget the chosen pair and methods, so that those with the least agreement are shown."""
    for key in (*PAIR, *METHODS):
        st.session_state.pop(key, None)


def choose_pair(first: int, second: int) -> None:
    """Choose a pair of texts."""
    st.session_state.update(zip(PAIR, (first, second), strict=True))


def chosen_pair(n_texts: int) -> tuple[int, int] | None:
    """The chosen pair; None where there is none among these texts."""
    a, b = (st.session_state.get(key, -1) for key in PAIR)
    texts = range(n_texts)
    return (int(a), int(b)) if a in texts and b in texts else None


def choose_cell(click: dict[str, Any]) -> None:
    """Choose the pair of a clicked heatmap cell, whose names begin with the texts' numbers."""
    first, second = (int(str(click[axis]).partition(".")[0]) - 1 for axis in ("y", "x"))
    choose_pair(first, second)


def choose_point(click: dict[str, Any]) -> None:
    """Choose the pair of a clicked scatter point, which carries the texts' numbers."""
    if click["customdata"]:
        first, second = (int(number) - 1 for number in click["customdata"])
        choose_pair(first, second)


def similarity_table(similarity: Similarity) -> pd.DataFrame:
    """The similarity matrix, a row and a column for every text."""
    names = [f"text {i + 1}" for i in range(len(similarity.texts))]
    table = pd.DataFrame(similarity.products, columns=names)
    table.insert(0, "text", similarity.texts)
    return table


def pairs_table(results: Sequence[Similarity]) -> pd.DataFrame:
    """The similarities and ranks by every method, a row for every pair of texts."""
    texts = results[0].texts
    i, j = pair_indices(len(texts))
    table: dict[str, Any] = {
        "id1": i + 1,
        "id2": j + 1,
        "text1": [texts[k] for k in i],
        "text2": [texts[k] for k in j],
    }
    for result in results:
        table[f"{result.method} cosine similarity"] = result.products[i, j]
        table[f"{result.method} rank"] = result.ranks[i, j]
    return pd.DataFrame(table)
