"""Where methods differ: over all pairs, two against each other, and by their spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.similarity import least_alike, rank_differences
from neuralviz.headlines.similar_texts import describe_agreement, describe_spread
from neuralviz.plots.compare import difference_heatmap, products_scatter, spread_figure
from neuralviz.plots.theme import shorten
from neuralviz.ui.compare.pair import show_framed
from neuralviz.ui.compare.selection import (
    METHODS,
    choose_cell,
    choose_pair,
    choose_point,
    chosen_pair,
    pairs_table,
    similarity_table,
)
from neuralviz.ui.figures import download_table, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.live_figure import Handlers
from neuralviz.ui.page import plain
from neuralviz.ui.stage import hide_on_stage, slide
from neuralviz.words import many, name_texts, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.evaluation.similarity import Disagreements, Similarity
    from neuralviz.jobs.comparing import Comparison
    from neuralviz.plots.standalone import About

LISTED_PAIRS = 500
TEXT_COLUMNS = ("text A", "text B")


def show_warnings(comparison: Comparison, results: Sequence[Similarity]) -> None:
    """Warn of embeddings that are 0, of divergence and of duplicates."""
    for result in results:
        if result.zeros.any():
            st.warning(
                plain(
                    f"{result.method}: all embedding values, and therefore all cosine "
                    f"similarities, are 0 for {name_texts(np.flatnonzero(result.zeros).tolist())}."
                )
            )
    for part in comparison:
        if part.loss_rose.any():
            st.warning(
                plain(
                    f"{part.method}: micro-tuning diverged on "
                    f"{name_texts(np.flatnonzero(part.loss_rose).tolist())}. "
                )
                + "Lower the learning rate (the paper uses 0.01)."
            )
    methods_by_warning: dict[str, list[str]] = {}
    for part in comparison:
        methods_by_warning.setdefault(part.unread, []).append(part.method)
    for sentence, methods in methods_by_warning.items():
        if sentence:
            st.warning(plain(f"{'; '.join(methods)}: {sentence}"))
    texts = comparison[0].texts
    if len(set(texts)) < len(texts):
        n = len(texts) - len(set(texts))
        st.caption(f"The texts contain {many(n, 'duplicate')}.")


def show_disagreements(
    run_id: str, results: Sequence[Similarity], differences: Disagreements
) -> None:
    """List the pairs of texts by how much the methods disagree, the most first."""
    st.subheader("Where the methods disagree", anchor=False)
    if not len(differences.first):
        st.caption("No pair of texts was embedded by every method.")
        return
    st.caption(
        f"{many(len(differences.first), 'pair')} of texts, sorted by how much their ranks differ "
        "between the methods (*difference*, as a percentage of all ranks). Rank 1 is the most "
        "similar pair. Select a row to see its texts above."
    )
    listed, key = slice(0, LISTED_PAIRS), f"compare-pairs-{run_id}"
    ranks = [f"{result.method}: rank" for result in results]
    table: dict[str, Any] = {"difference": 100 * differences.spread[listed]}
    for name, texts in zip(TEXT_COLUMNS, (differences.first, differences.second), strict=True):
        table[name] = [f"{i + 1}. {shorten(results[0].texts[i], 80)}" for i in texts[listed]]
    for m, result in enumerate(results):
        table[result.method] = differences.products[listed, m]
        table[ranks[m]] = differences.ranks[listed, m].astype(int)

    def choose() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows:
            choose_pair(int(differences.first[rows[0]]), int(differences.second[rows[0]]))

    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        column_order=None if len(results) == 2 else ["difference", *TEXT_COLUMNS, *ranks],  # fit
        height=260,
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config={
            "difference": st.column_config.NumberColumn(format="%.0f%%", width=85),
            **{name: st.column_config.TextColumn(width=210) for name in TEXT_COLUMNS},
            **{result.method: st.column_config.NumberColumn(format="%.3f") for result in results},
        },
    )
    with st.popover(
        "Download", icon=":material/download:", type="tertiary", key="compare-pairs-take"
    ):
        download_table("All pairs", lambda: pairs_table(results), "pairs", key="compare-pairs")


def show_two_methods(
    results: Sequence[Similarity],
    names: Sequence[str],
    places: np.ndarray,
    groups: Sequence[str] | None,
    provenance: About,
) -> None:
    """Draw two methods against each other: at first those that agree least.

    Args:
        results: all methods.
        names: of the texts.
        places: numbers of the texts in the order that was chosen.
        groups: the labels that the texts are ordered by, if they are.
        provenance: for what is downloaded.
    """
    st.subheader("Two methods compared", anchor=False)
    first, second = least_alike(results)
    if len(results) > 2:
        numbers = range(len(results))

        def label(i: int) -> str:
            return results[i].method

        columns = st.columns(2)
        widgets = zip(columns, ("Method A", "Method B"), (first, second), METHODS, strict=True)
        first, second = (
            column.selectbox(name, numbers, index=place, format_func=label, key=key)
            for column, name, place, key in widgets
        )
        if first == second:
            st.caption("Choose two different methods.")
            return
    a, b = results[first], results[second]
    pair = chosen_pair(len(a.texts))
    with slide("two-methods"):
        show_headline(plain(describe_agreement([a, b])), key="compare-two")
        show_framed(a.texts, "two")
        left_column, right_column = st.columns(2)
        with left_column:
            show_figure(
                difference_heatmap(a, b, names, places, pair, groups),
                key="compare-difference",
                numbers=lambda: _difference_table(a, b),
                name=f"rank difference {a.method} {b.method}",
                height=480,
                handlers=Handlers(choose_cell),
                provenance=provenance,
            )
            st.caption(
                f"Orange: {plain(a.method)} ranks the pair higher, as more similar; purple: lower. "
                "Ranks are compared because methods use different ranges of cosine similarity."
            )
        with right_column:
            show_figure(
                products_scatter(a, b, pair, [result.method for result in results]),
                key="compare-scatter",
                numbers=lambda: pairs_table((a, b)),
                name=f"all pairs {a.method} {b.method}",
                height=480,
                handlers=Handlers(choose_point),
                provenance=provenance,
            )
            st.caption("Each point is a pair of texts. Click one to see its texts above.")


def _difference_table(a: Similarity, b: Similarity) -> pd.DataFrame:
    table = similarity_table(a)
    table.iloc[:, 1:] = rank_differences(a, b)
    return table


def show_spread(results: Sequence[Similarity], provenance: About) -> None:
    """Draw the distribution of each method's cosine similarities."""
    st.subheader("Distribution of cosine similarities", anchor=False)
    rows = []
    for result in results:
        products = result.of_pairs[np.isfinite(result.of_pairs)]
        rows.append(
            {
                "method": result.method,
                "mean": products.mean(),
                "std. dev.": products.std(),
                "lowest": products.min(),
                "highest": products.max(),
            }
        )
    with slide("spread"):
        show_headline(plain(describe_spread(results)), key="compare-spread")
        figure_column, table_column = st.columns([3, 2], vertical_alignment="center")
        with figure_column:
            show_figure(
                spread_figure(results),
                key="compare-spread",
                numbers=lambda: pd.DataFrame(
                    {result.method: result.of_pairs for result in results}
                ),
                name="distribution",
                height=380,
                provenance=provenance,
            )
        with table_column, hide_on_stage("compare-spread"):
            st.dataframe(
                _format_numbers(rows), hide_index=True, key="compare-spread-table", width="stretch"
            )
            st.caption(
                "A wide distribution sets the pairs further apart. It does not show that a "
                "method is right."
            )


def _format_numbers(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {name: value if isinstance(value, str) else number(float(value), ".3f")
             for name, value in row.items()}
            for row in rows
        ]
    )  # fmt: skip
