"""The figures of a comparison: heatmaps, two methods against each other, and all side by side."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.similarity import (
    least_alike,
    order_by_cluster,
    order_by_label,
    pair_indices,
    rank_differences,
)
from neuralviz.headlines.similar_texts import describe_agreement, describe_spread
from neuralviz.plots.compare import (
    colour_range,
    difference_heatmap,
    products_scatter,
    similarity_heatmap,
    spread_figure,
    text_names,
)
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.compare.pair import METHODS, choose_pair, chosen_pair, show_framed
from neuralviz.ui.figures import download_table, show_figure
from neuralviz.ui.live_figure import Handlers, draw_live_figure
from neuralviz.ui.page import plain
from neuralviz.ui.stage import hide_on_stage, show_headline, show_only_on_stage, slide
from neuralviz.words import many, name_texts, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.evaluation.similarity import Disagreements, Similarity
    from neuralviz.jobs.comparing import Comparison

AS_GIVEN, CLUSTERED = "Original", "Clustered by the first method"  # orders of texts
HEIGHTS = {1: 560, 2: 460, 3: 330, 4: 460}  # px, by the number of methods
LISTED_PAIRS = 500
TEXT_COLUMNS = ("text A", "text B")


@dataclass(frozen=True)
class Look:
    """How the heatmaps of a comparison are drawn.

    Attributes:
        labels: of the texts, by name.
        order: of the texts, as it was chosen.
        one_scale: whether all have the same scale of colours.
        provenance: for what is downloaded.
    """

    labels: Mapping[str, tuple[str, ...]]
    order: str
    one_scale: bool
    provenance: About

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The labels that the texts are ordered by; None when they are not."""
        name = self.order.removeprefix("By ")
        return self.labels.get(name) if self.order.startswith("By ") else None

    def order_texts(self, comparison: Comparison) -> np.ndarray:
        """Numbers of the texts in the order that was chosen."""
        if self.groups is not None:
            return order_by_label(self.groups)
        first = comparison[0].similarity
        if self.order == CLUSTERED and first is not None:
            return order_by_cluster(first)
        return np.arange(len(comparison[0].texts))


def choose_cell(click: dict[str, Any]) -> None:
    """Choose the pair of a clicked heatmap cell, whose names begin with the texts' numbers."""
    first, second = (int(str(click[axis]).partition(".")[0]) - 1 for axis in ("y", "x"))
    choose_pair(first, second)


def choose_point(click: dict[str, Any]) -> None:
    """Choose the pair of a clicked scatter point, which carries the texts' numbers."""
    if click["customdata"]:
        first, second = (int(number) - 1 for number in click["customdata"])
        choose_pair(first, second)


def show_heatmaps(comparison: Comparison, look: Look, live: bool) -> None:
    """Draw a heatmap for each method that has begun."""
    for embedded in comparison:
        if embedded.error:
            st.error(plain(embedded.error))
    texts = comparison[0].texts
    similarities = [part.similarity for part in comparison if part.similarity is not None]
    order, names = look.order_texts(comparison), text_names(texts, look.groups)
    pair = None if live else chosen_pair(len(texts))
    numbers = [n for n, part in enumerate(comparison) if part.similarity or not part.error]
    in_a_row = len(numbers) if len(numbers) < 4 else 2
    columns = [
        column
        for first in range(0, len(numbers), in_a_row or 1)
        for column in st.columns(in_a_row)[: len(numbers) - first]
    ]
    for column, number_ in zip(columns, numbers, strict=True):
        similarity = comparison[number_].similarity
        if similarity is None:
            state = "waiting" if live else "not finished"
            column.caption(plain(f"{comparison[number_].method}: {state}."))
            continue
        limits = colour_range(similarities if look.one_scale else [similarity])
        figure = similarity_heatmap(similarity, names, order, limits, pair, look.groups)
        key, name = f"compare-{number_}", f"similarity {similarity.method}"
        height = HEIGHTS[len(numbers)]
        with column:
            if live:
                draw_live_figure(figure, key=key, height=height, name=name)
            else:
                show_figure(
                    figure,
                    key=key,
                    numbers=partial(similarity_table, similarity),
                    name=name,
                    height=height,
                    handlers=Handlers(choose_cell),
                    provenance=look.provenance,
                )


def show_warnings(comparison: Comparison, results: Sequence[Similarity]) -> None:
    """Warn of embeddings that are 0, of divergence, of what no model reads, and of duplicates."""
    for result in results:
        if result.zeros.any():
            st.warning(
                plain(
                    f"{result.method}: all embedding values, and therefore all cosine "
                    f"similarities, are 0 for {name_texts(np.flatnonzero(result.zeros).tolist())}."
                )
            )
    methods_by_warning: dict[str, list[str]] = {}
    for part in comparison:
        if part.loss_rose.any():
            st.warning(
                plain(
                    f"{part.method}: micro-tuning diverged on "
                    f"{name_texts(np.flatnonzero(part.loss_rose).tolist())}. "
                    "Lower the learning rate (the paper uses 0.01)."
                )
            )
        if part.unread:
            methods_by_warning.setdefault(part.unread, []).append(part.method)
    for sentence, methods in methods_by_warning.items():
        st.warning(plain(f"{'; '.join(methods)}: {sentence}"))
    n_duplicates = len(comparison[0].texts) - len(set(comparison[0].texts))
    if n_duplicates:
        st.caption(f"The texts contain {many(n_duplicates, 'duplicate')}.")


def show_two_methods(
    comparison: Comparison, results: Sequence[Similarity], look: Look, main_headline: str
) -> None:
    """Draw two methods against each other: at first those that agree least.

    Their headline is shown on the stage alone where ``main_headline`` says the same.
    """
    st.subheader("Two methods compared", anchor=False)
    first, second = least_alike(results)
    if len(results) > 2:
        labels = [result.method for result in results]
        widgets = zip(st.columns(2), "AB", (first, second), METHODS, strict=True)
        first, second = (
            column.selectbox(
                f"Method {letter}", range(len(labels)), place, labels.__getitem__, key=key
            )
            for column, letter, place, key in widgets
        )
        if first == second:
            st.caption("Choose two different methods.")
            return
    a, b = results[first], results[second]
    pair, headline = chosen_pair(len(a.texts)), plain(describe_agreement([a, b]))
    order, names = look.order_texts(comparison), text_names(a.texts, look.groups)
    with slide("two-methods"):
        is_said = headline == main_headline
        with show_only_on_stage("compare-two-headline") if is_said else nullcontext():
            show_headline(headline, key="compare-two")
        show_framed(a.texts, "two")
        left_column, right_column = st.columns(2)
        with left_column:
            show_figure(
                difference_heatmap(a, b, names, order, pair, look.groups),
                key="compare-difference",
                numbers=lambda: similarity_table(a, rank_differences(a, b)),
                name=f"rank difference {a.method} {b.method}",
                height=480,
                handlers=Handlers(choose_cell),
                provenance=look.provenance,
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
                provenance=look.provenance,
            )
            st.caption("Each point is a pair of texts. Click one to see its texts above.")


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
        for row in st.session_state[key]["selection"]["rows"]:
            choose_pair(int(differences.first[row]), int(differences.second[row]))

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


def show_spread(results: Sequence[Similarity], provenance: About) -> None:
    """Draw the distribution of each method's cosine similarities."""
    st.subheader("Distribution of cosine similarities", anchor=False)
    products = pd.DataFrame({result.method: result.of_pairs for result in results})
    values = pd.DataFrame(
        {
            "mean": products.mean(),
            "std. dev.": products.std(ddof=0),
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
                numbers=products,
                name="distribution",
                height=380,
                provenance=provenance,
            )
        with table_column, hide_on_stage("compare-spread"):
            written = values.map(partial(number, spec=".3f")).rename_axis("method").reset_index()
            st.dataframe(written, hide_index=True, key="compare-spread-table", width="stretch")
            st.caption(
                "A wide distribution sets the pairs further apart. It does not show that a "
                "method is right."
            )


def similarity_table(similarity: Similarity, values: np.ndarray | None = None) -> pd.DataFrame:
    """The similarity matrix, or other values of it, a row and a column for every text."""
    names = [f"text {i + 1}" for i in range(len(similarity.texts))]
    table = pd.DataFrame(similarity.products if values is None else values, columns=names)
    table.insert(0, "text", similarity.texts)
    return table


def pairs_table(results: Sequence[Similarity]) -> pd.DataFrame:
    """The similarities and ranks by every method, a row for every pair of texts."""
    texts = np.array(results[0].texts, dtype=object)
    i, j = pair_indices(len(texts))
    table = {"id1": i + 1, "id2": j + 1, "text1": texts[i], "text2": texts[j]}
    for result in results:
        table[f"{result.method} cosine similarity"] = result.products[i, j]
        table[f"{result.method} rank"] = result.ranks[i, j]
    return pd.DataFrame(table)
