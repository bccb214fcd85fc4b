"""The figures of a comparison: heatmaps, the chosen pair, two methods, and all side by side."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation.similarity import (
    least_alike,
    order_by_cluster,
    order_by_label,
    pair_indices,
    rank_differences,
)
from neuralviz.headlines.similar_texts import describe_agreement, describe_spread
from neuralviz.jobs.comparing import FollowPair
from neuralviz.plots.compare import (
    colour_range,
    difference_heatmap,
    layer_products_figure,
    products_scatter,
    similarity_heatmap,
    spread_figure,
    text_names,
)
from neuralviz.plots.micro_tuning import shares_figure, shares_width, short_layer_names
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import show_choosable_table
from neuralviz.ui.figures import allow_swiping, download_table, show_figure
from neuralviz.ui.live_figure import Handlers, draw_live_figure
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import hide_on_stage, show_headline, show_only_on_stage, slide
from neuralviz.words import many, name_texts, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.embedders import EmbedderSpec
    from neuralviz.evaluation.similarity import Disagreements, Similarity
    from neuralviz.jobs.comparing import Comparison, NeuralPair

AS_GIVEN, CLUSTERED = "Original", "Clustered by the first method"  # orders of texts
HEIGHTS = {1: 560, 2: 460, 3: 330, 4: 460}  # px, by the number of methods
LISTED_PAIRS = 500
TEXT_COLUMNS = ("text A", "text B")
PAIR = ("compare-first", "compare-second")  # session state: the chosen pair
METHODS = ("compare-a", "compare-b")  # session state: the methods that are compared
FRAMED_LENGTH = 90  # characters: one line or two of the stage
SHOWN_HEIGHT = 84  # px of a text; longer ones are scrolled
PATIENCE = 0.5  # seconds: enough for most pairs


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

    def choose(row: int) -> None:
        choose_pair(int(differences.first[row]), int(differences.second[row]))

    show_choosable_table(
        table,
        key,
        choose,
        {
            "difference": st.column_config.NumberColumn(format="%.0f%%", width=85),
            **{name: st.column_config.TextColumn(width=210) for name in TEXT_COLUMNS},
            **{result.method: st.column_config.NumberColumn(format="%.3f") for result in results},
        },
        None if len(results) == 2 else ["difference", *TEXT_COLUMNS, *ranks],  # that fit
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


# --- the chosen pair -----------------------------------------------------------------------------


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


def choose_texts(texts: Sequence[str]) -> None:
    """Widgets that choose two texts, which are shown in full."""
    if chosen_pair(len(texts)) is None:
        choose_pair(0, 1)
    for key, label in zip(PAIR, ("Text A", "Text B"), strict=True):
        st.selectbox(
            label,
            range(len(texts)),
            format_func=lambda i: f"{i + 1}. {shorten(texts[i], 70)}",
            key=key,
            help="Or click a cell of a heatmap." if key == PAIR[0] else None,
        )
        with st.container(height=SHOWN_HEIGHT, border=False):
            st.text(texts[st.session_state[key]])


def show_framed(texts: Sequence[str], key: str) -> None:
    """Show the beginnings of the two framed texts on the stage, which hides the full texts."""
    pair = chosen_pair(len(texts))
    if pair is not None:
        beginnings = (
            f"**{i + 1}** {plain(shorten(texts[i], FRAMED_LENGTH))}" for i in dict.fromkeys(pair)
        )
        with show_only_on_stage(f"framed-{key}"):
            st.markdown("Framed: " + "  \n".join(beginnings))


def show_products(results: Sequence[Similarity]) -> None:
    """Show how similar each method finds the two texts."""
    a, b = chosen_pair(len(results[0].texts)) or (0, 1)
    if a == b:
        st.caption("Choose two different texts.")
        return
    rows = []
    for result in results:
        cosine, rank = "", ""
        if np.isfinite(result.products[a, b]):
            cosine = number(float(result.products[a, b]), ".3f")
            rank = f"{result.ranks[a, b]:,.0f} of {np.isfinite(result.of_pairs).sum():,}"
        rows.append({"method": result.method, "cosine": cosine, "rank": rank})
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="compare-pair-table")


def show_neural_pairs(specs: Sequence[EmbedderSpec], comparison: Comparison) -> None:
    """Show each neural method's similarity of the two texts by layer and by word."""
    texts = comparison[0].texts
    a, b = chosen_pair(len(texts)) or (0, 1)
    names = short_labels([embedded.method for embedded in comparison])
    for place, (spec, embedded) in enumerate(zip(specs, comparison, strict=True)):
        vectors = embedded.vectors
        if a == b or spec.method not in ("neural", "neural-1") or vectors is None:
            continue
        if not np.isfinite(vectors[[a, b]]).all():
            continue
        runs = SessionRuns(f"compare-pair-{place}")
        pair_vectors = vectors[a].tobytes(), vectors[b].tobytes()
        run = runs.start(FollowPair(spec, (texts[a], texts[b]), pair_vectors))
        st.subheader(plain(f"How {names[place]} sees these two texts"), anchor=False)
        show_run_panel(
            runs,
            run,
            partial(_show_neural_pair, place, embedded.method, (a, b)),
            sentences=RunSentences(start="Computing word shares …", describe_done=lambda _: ""),
            patience=PATIENCE,
        )


def _show_neural_pair(
    place: int, method: str, pair: tuple[int, int], neural_pair: NeuralPair | None, _live: bool
) -> None:
    """Cosine similarity layer by layer, and the share of every word in each text's embedding."""
    if neural_pair is None:
        return
    names = short_layer_names(neural_pair.layers)
    show_figure(
        layer_products_figure(f"Cosine by layer: {method}", names, neural_pair.products),
        key=f"compare-layers-{place}",
        numbers=pd.DataFrame({"layer": names, "product": neural_pair.products}),
        name="product-by-layer",
        height=110 + 50 * len(names),
    )
    st.caption("If every layer changed, the pair's cosine similarity is the mean of these values.")
    if neural_pair.words is None:
        st.caption(
            "Word shares are shown here for short texts only. For longer texts, see the "
            "Micro-tuning page."
        )
        return
    sides = zip(st.columns(2), pair, neural_pair.words, ("first", "second"), strict=True)
    for column, text, (words, shares), side in sides:
        key = f"compare-words-{place}-{side}"
        with column, allow_swiping(f"{key}-wide", shares_width(words)):
            show_figure(
                shares_figure(words, shares, f"Word shares in text {text + 1}: {method}"),
                key=key,
                numbers=pd.DataFrame({"word": words, "share": shares}),
                name=f"word-shares-{text + 1}",
                height=360,
            )
