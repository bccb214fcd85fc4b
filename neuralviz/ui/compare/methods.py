"""Where methods part ways: over all pairs, two against each other, and by their spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.similarity import rank_differences
from neuralviz.evaluation.together import agreement, least_alike, spread
from neuralviz.plots.compare import difference_heatmap, products_scatter, spread_figure
from neuralviz.plots.theme import shorten
from neuralviz.ui.compare.looking import (
    METHODS,
    all_pairs,
    as_table,
    choose_cell,
    choose_pair,
    choose_point,
    chosen_pair,
)
from neuralviz.ui.compare.pair import show_framed
from neuralviz.ui.figures import download_table, show_figure
from neuralviz.ui.live_figure import Handlers
from neuralviz.ui.page import plain
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import off_stage, slide
from neuralviz.words import many, name_texts, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.evaluation.similarity import Disagreements, Similarity
    from neuralviz.jobs.comparing import Comparison
    from neuralviz.plots.standalone import About

LISTED_PAIRS = 500
TEXT_COLUMNS = ("text A", "text B")


def show_warnings(comparison: Comparison, done: Sequence[Similarity]) -> None:
    """What a person should know before believing the figures."""
    for one in done:
        if one.zeros.any():
            st.warning(
                plain(
                    f"{one.method}: all embedding values, and therefore all cosine similarities, "
                    f"are 0 for {name_texts(np.flatnonzero(one.zeros).tolist())}."
                )
            )
    for each in comparison:
        if each.loss_rose.any():
            st.warning(
                plain(
                    f"{each.method}: micro-tuning diverged on "
                    f"{name_texts(np.flatnonzero(each.loss_rose).tolist())}. "
                )
                + "Lower the learning rate (the paper uses 0.01)."
            )
    of_methods: dict[str, list[str]] = {}
    for each in comparison:
        of_methods.setdefault(each.unread, []).append(each.method)
    for sentence, methods in of_methods.items():
        if sentence:
            st.warning(plain(f"{'; '.join(methods)}: {sentence}"))
    texts = comparison[0].texts
    if len(set(texts)) < len(texts):
        n = len(texts) - len(set(texts))
        st.caption(f"The texts contain {many(n, 'duplicate')}.")


def show_disagreements(run_id: int, done: Sequence[Similarity], found: Disagreements) -> None:
    """The pairs of texts on which the methods disagree, those of most disagreement first."""
    st.subheader("Where the methods disagree", anchor=False)
    if not len(found.first):
        st.caption("No pair of texts was embedded by every method.")
        return
    st.caption(
        f"{many(len(found.first), 'pair')} of texts, sorted by how much their ranks differ "
        "between the methods (*difference*, as a percentage of all ranks). Rank 1 is the most "
        "similar pair. Select a row to see its texts above."
    )
    listed, key = slice(0, LISTED_PAIRS), f"compare-pairs-{run_id}"
    ranks = [f"{one.method}: rank" for one in done]
    table: dict[str, Any] = {"difference": 100 * found.spread[listed]}
    for name, which in zip(TEXT_COLUMNS, (found.first, found.second), strict=True):
        table[name] = [f"{i + 1}. {shorten(done[0].texts[i], 80)}" for i in which[listed]]
    for m, one in enumerate(done):
        table[one.method] = found.products[listed, m]
        table[ranks[m]] = found.ranks[listed, m].astype(int)

    def choose() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows:
            choose_pair(int(found.first[rows[0]]), int(found.second[rows[0]]))

    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        column_order=None if len(done) == 2 else ["difference", *TEXT_COLUMNS, *ranks],  # which fit
        height=260,
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config={
            "difference": st.column_config.NumberColumn(format="%.0f%%", width=85),
            **{name: st.column_config.TextColumn(width=210) for name in TEXT_COLUMNS},
            **{one.method: st.column_config.NumberColumn(format="%.3f") for one in done},
        },
    )
    with st.popover(
        "Download", icon=":material/download:", type="tertiary", key="compare-pairs-take"
    ):
        download_table("All pairs", lambda: all_pairs(done), "pairs", key="compare-pairs")


def show_two_methods(
    done: Sequence[Similarity],
    names: Sequence[str],
    places: np.ndarray,
    groups: Sequence[str] | None,
    about: About,
) -> None:
    """Two methods against each other: at first those that agree least.

    Args:
        done: all methods.
        names: of the texts.
        places: numbers of the texts in the order that was chosen.
        groups: the labels that the texts are ordered by, if they are.
        about: for what is downloaded.
    """
    st.subheader("Two methods compared", anchor=False)
    first, second = least_alike(done)
    if len(done) > 2:
        left, right = st.columns(2)
        numbers = range(len(done))

        def label(i: int) -> str:
            return done[i].method

        names_of = zip(
            (left, right), ("Method A", "Method B"), (first, second), METHODS, strict=True
        )
        first, second = (
            side.selectbox(name, numbers, index=place, format_func=label, key=key)
            for side, name, place, key in names_of
        )
        if first == second:
            st.caption("Choose two different methods.")
            return
    a, b = done[first], done[second]
    pair = chosen_pair(len(a.texts))
    with slide("two-methods"):
        show_point(plain(agreement(a, b)), key="compare-two")
        show_framed(a.texts, "two")
        left, right = st.columns(2)
        with left:
            show_figure(
                difference_heatmap(a, b, names, places, pair, groups),
                key="compare-difference",
                numbers=lambda: _differences(a, b),
                name=f"rank difference {a.method} {b.method}",
                height=480,
                handlers=Handlers(choose_cell),
                about=about,
            )
            st.caption(
                f"Orange: {plain(a.method)} ranks the pair higher, as more similar; purple: lower. "
                "Ranks are compared because methods use different ranges of cosine similarity."
            )
        with right:
            show_figure(
                products_scatter(a, b, pair, [one.method for one in done]),
                key="compare-scatter",
                numbers=lambda: all_pairs((a, b)),
                name=f"all pairs {a.method} {b.method}",
                height=480,
                handlers=Handlers(choose_point),
                about=about,
            )
            st.caption("Each point is a pair of texts. Click one to see its texts above.")


def _differences(a: Similarity, b: Similarity) -> pd.DataFrame:
    table = as_table(a)
    table.iloc[:, 1:] = rank_differences(a, b)
    return table


def show_spread(done: Sequence[Similarity], about: About) -> None:
    """How widely each method spreads its products."""
    st.subheader("Distribution of cosine similarities", anchor=False)
    rows = []
    for one in done:
        products = one.of_pairs[np.isfinite(one.of_pairs)]
        rows.append(
            {
                "method": one.method,
                "mean": products.mean(),
                "std. dev.": products.std(),
                "lowest": products.min(),
                "highest": products.max(),
            }
        )
    with slide("spread"):
        show_point(plain(spread(done)), key="compare-spread")
        left, right = st.columns([3, 2], vertical_alignment="center")
        with left:
            show_figure(
                spread_figure(done),
                key="compare-spread",
                numbers=lambda: pd.DataFrame({one.method: one.of_pairs for one in done}),
                name="distribution",
                height=380,
                about=about,
            )
        with right, off_stage("compare-spread"):
            st.dataframe(
                _in_digits(rows), hide_index=True, key="compare-spread-table", width="stretch"
            )
            st.caption(
                "A wide distribution sets the pairs further apart. It does not show that a "
                "method is right."
            )


def _in_digits(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {name: value if isinstance(value, str) else number(float(value), ".3f")
             for name, value in row.items()}
            for row in rows
        ]
    )  # fmt: skip
