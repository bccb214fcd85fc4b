"""What the compare page shows of a comparison, while it goes on and after."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders import make_embedder
from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.similarity import (
    disagreements,
    order_by_cluster,
    order_by_label,
    pair_indices,
)
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
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import frame_csv
from neuralviz.ui.compare.run import PAIR, Comparison
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.job_panel import job_panel
from neuralviz.ui.live_figure import live_figure
from neuralviz.ui.model_choice import LOADERS
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.embedders import EmbedderSpec, NeuralEmbedder
    from neuralviz.evaluation.similarity import Disagreements, Similarity

LIVE_SECONDS = 0.5
LIVE_SECONDS_OF_MANY = 1.5
MANY_TEXTS = 100
AS_GIVEN, CLUSTERED = "As given", "Clustered by the first method"
MOST_LABELS = 40
LISTED_PAIRS = 500
MAX_FOLLOWED_TOKENS = 120  # of a pair, whose words are followed while the page waits
MAX_FOLLOWED_IN_BLOCKS = 80
TEXT_COLUMNS = ("one text", "other text")


def choose_order(labels: dict[str, tuple[str, ...]]) -> str:
    """In which order the texts stand: as given, clustered, or by a column of labels."""
    usable = [
        name
        for name, values in labels.items()
        if 1 < len(set(values)) <= min(MOST_LABELS, len(values) - 1)
    ]
    return (
        st.selectbox(
            "Order of the texts",
            [AS_GIVEN, CLUSTERED, *(f"By {name}" for name in usable)],
            key="order",
            bind="query-params",
        )
        or AS_GIVEN
    )


def show_comparison(comparison: Comparison, order: str) -> None:
    """Heatmaps, live while methods are under way; all the rest once they are done."""
    comparison.catch_up()
    live = not comparison.job.is_over
    many = len(comparison.texts) > MANY_TEXTS
    pause = LIVE_SECONDS_OF_MANY if many else LIVE_SECONDS
    if live:
        st.fragment(_show_heatmaps, run_every=pause)(comparison, order, live)
        return
    done = [one for m in range(len(comparison.specs)) if (one := comparison.similarity(m))]
    found = disagreements(done) if len(done) > 1 else None
    if _pair(comparison) is None and found is not None and len(found.first):
        chosen = (int(found.first[0]), int(found.second[0]))
        st.session_state.update(zip(PAIR, chosen, strict=True))
    _show_heatmaps(comparison, order, live)
    if done:
        _show_the_rest(comparison, done, found, order)


def _show_heatmaps(comparison: Comparison, order: str, live: bool) -> None:
    comparison.catch_up()
    if live and comparison.job.is_over:
        st.rerun()
    _state(comparison)
    for error in comparison.errors.values():
        st.error(plain(error))
    similarities = [comparison.similarity(m) for m in range(len(comparison.specs))]
    limits = colour_range([s for s in similarities if s is not None])
    places = _order(comparison, order)
    names = text_names(comparison.texts, _labels(comparison, order))
    pair = None if live else _pair(comparison)
    shown = [n for n, one in enumerate(similarities) if one or n not in comparison.errors]
    columns = st.columns(2 if len(shown) != 3 else 3)
    for column, number in zip(itertools.cycle(columns), shown, strict=False):
        one = similarities[number]
        with column:
            if one is None:
                when = "comes next" if live else "was not reached"
                st.caption(plain(f"{comparison.methods[number]} {when}."))
                continue
            figure = similarity_heatmap(one, names, places, limits, pair)
            key, name = f"compare-{number}", f"products {one.method}"
            height = 520 if len(columns) == 2 else 420
            if live:
                live_figure(figure, key=key, height=height, name=name)
            else:
                show_figure(
                    figure,
                    key=key,
                    numbers=partial(_as_table, one),
                    name=name,
                    height=height,
                    on_click=_choose_cell,
                )
    if not live:
        st.caption("Click a cell to look at its pair of texts below.")


def _state(comparison: Comparison) -> None:
    """Progress with counts and *Stop*, the place in the queue, or how it ended."""
    n = len(comparison.texts)
    counts = ", ".join(
        f"{method} {comparison.n_done(m):,} of {n:,}"
        for m, method in enumerate(comparison.methods)
        if comparison.n_done(m) < n and m not in comparison.errors
    )
    started = any(comparison.n_done(m) for m in range(len(comparison.specs)))
    job_panel(
        comparison.job,
        key="compare-stop",
        share=comparison.progress,
        doing=f"Texts embedded: {counts}" if started else "Getting the models ready …",
        stopped=f"Stopped. What was embedded until then is kept: {counts}.",
    )


def _order(comparison: Comparison, order: str) -> np.ndarray:
    labels = _labels(comparison, order)
    if labels is not None:
        return order_by_label(labels)
    first = comparison.similarity(0)
    if order == CLUSTERED and first is not None:
        return order_by_cluster(first)
    return np.arange(len(comparison.texts))


def _labels(comparison: Comparison, order: str) -> tuple[str, ...] | None:
    return comparison.labels.get(order.removeprefix("By ")) if order.startswith("By ") else None


def _as_table(similarity: Similarity) -> pd.DataFrame:
    names = [f"text {i + 1}" for i in range(len(similarity.texts))]
    table = pd.DataFrame(similarity.products, columns=names)
    table.insert(0, "text", similarity.texts)
    return table


# --- the pair that is looked at ------------------------------------------------------------------


def _choose_cell(click: dict[str, Any]) -> None:
    """A click on a heatmap: the names of a row and a column begin with the texts' numbers."""
    numbers = [int(str(click[axis]).partition(".")[0]) - 1 for axis in ("y", "x")]
    st.session_state.update(zip(PAIR, numbers, strict=True))


def _choose_point(click: dict[str, Any]) -> None:
    """A click on a point of the scatter, which carries the texts' numbers."""
    if click["customdata"]:
        numbers = [int(number) - 1 for number in click["customdata"]]
        st.session_state.update(zip(PAIR, numbers, strict=True))


def _pair(comparison: Comparison) -> tuple[int, int] | None:
    """The chosen pair, where it is one of these texts."""
    a, b = (st.session_state.get(key, -1) for key in PAIR)
    known = range(len(comparison.texts))
    return (int(a), int(b)) if a in known and b in known else None


def _show_the_rest(
    comparison: Comparison,
    done: Sequence[Similarity],
    found: Disagreements | None,
    order: str,
) -> None:
    _warnings(comparison, done)
    if found is not None:
        _part_ways(comparison, done, found)
    _show_pair(comparison, done)
    if len(done) > 1:
        _two_methods(comparison, done, order)
    _spread(done)


def _warnings(comparison: Comparison, done: Sequence[Similarity]) -> None:
    for one in done:
        if one.zeros.any():
            st.warning(
                plain(f"{one.method} gives text {_numbers(one.zeros)} a vector of zeros; its ")
                + "products are 0."
            )
    for method, rose in zip(comparison.methods, comparison.loss_rose, strict=True):
        if rose.any():
            st.warning(
                plain(f"{method}: the loss of text {_numbers(rose)} rose in place of falling; ")
                + "lower the learning rate. The paper's is 0.01."
            )
    if len(set(comparison.texts)) < len(comparison.texts):
        n = len(comparison.texts) - len(set(comparison.texts))
        st.caption(f"{n:,} of the texts stand{'s' * (n == 1)} there more than once.")


def _numbers(which: np.ndarray) -> str:
    first = ", ".join(str(i + 1) for i in np.flatnonzero(which)[:5])
    return first + (" and others" if which.sum() > 5 else "")


def _part_ways(comparison: Comparison, done: Sequence[Similarity], found: Disagreements) -> None:
    st.subheader("Where the methods part ways", anchor=False)
    if not len(found.first):
        st.caption("No pair of texts is done by every method.")
        return
    st.caption(
        f"{len(found.first):,} pair{'s' * (len(found.first) != 1)} of texts, those first whose "
        "places differ most between the methods (*apart*, of all places); place 1 is the most "
        "similar pair. Tick a row to look at its pair below."
    )
    listed, key = slice(0, LISTED_PAIRS), f"compare-pairs-{comparison.number}"
    table: dict[str, Any] = {"apart": 100 * found.spread[listed]}
    for name, which in zip(TEXT_COLUMNS, (found.first, found.second), strict=True):
        table[name] = [f"{i + 1}. {shorten(comparison.texts[i], 80)}" for i in which[listed]]
    for m, one in enumerate(done):
        table[one.method] = found.products[listed, m]
        table[f"{one.method}: place"] = found.ranks[listed, m].astype(int)

    def choose() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows:
            pair = (int(found.first[rows[0]]), int(found.second[rows[0]]))
            st.session_state.update(zip(PAIR, pair, strict=True))

    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        height=260,
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config={
            "apart": st.column_config.NumberColumn(format="%.0f %%", width=70),
            **{name: st.column_config.TextColumn(width=210) for name in TEXT_COLUMNS},
            **{one.method: st.column_config.NumberColumn(format="%.3f") for one in done},
        },
    )
    with st.popover(
        "Download", icon=":material/download:", type="tertiary", key="compare-pairs-take"
    ):
        st.download_button(
            "All pairs (CSV)",
            lambda: frame_csv(_all_pairs(comparison, done)),
            "pairs.csv",
            "text/csv",
            key="compare-pairs-csv",
            on_click="ignore",
            width="stretch",
        )
        st.download_button(
            "All pairs (parquet)",
            lambda: _all_pairs(comparison, done).to_parquet(index=False),
            "pairs.parquet",
            key="compare-pairs-parquet",
            on_click="ignore",
            width="stretch",
        )


def _all_pairs(comparison: Comparison, done: Sequence[Similarity]) -> pd.DataFrame:
    i, j = pair_indices(len(comparison.texts))
    table: dict[str, Any] = {
        "id1": i + 1,
        "id2": j + 1,
        "text1": [comparison.texts[k] for k in i],
        "text2": [comparison.texts[k] for k in j],
    }
    for one in done:
        table[f"{one.method} product"] = one.products[i, j]
        table[f"{one.method} place"] = one.ranks[i, j]
    return pd.DataFrame(table)


def _show_pair(comparison: Comparison, done: Sequence[Similarity]) -> None:
    st.subheader("A pair of texts", anchor=False)
    if _pair(comparison) is None:
        st.session_state.update(zip(PAIR, (0, 1), strict=True))
    for place, key, label in zip(st.columns(2), PAIR, ("One text", "Other text"), strict=True):
        place.selectbox(
            label,
            range(len(comparison.texts)),
            format_func=lambda i: f"{i + 1}. {shorten(comparison.texts[i], 70)}",
            key=key,
        )
        place.text(comparison.texts[st.session_state[key]])
    a, b = _pair(comparison) or (0, 1)
    if a == b:
        st.caption("This is one text twice; choose another one to see a pair.")
        return
    rows = []
    for one in done:
        known = np.isfinite(one.products[a, b])
        n_pairs = int(np.isfinite(one.of_pairs).sum())
        rows.append(
            {
                "method": one.method,
                "product": one.products[a, b] if known else None,
                "place among the pairs": f"{one.ranks[a, b]:,.0f} of {n_pairs:,}" if known else "",
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="compare-pair-table",
        column_config={"product": st.column_config.NumberColumn(format="%.3f")},
    )
    for method, spec in enumerate(comparison.specs):
        vectors = comparison.vectors[method]
        if (
            spec.method in ("neural", "neural-1")
            and vectors is not None
            and np.isfinite(vectors[[a, b]]).all()
        ):
            _neural_pair(comparison, method, (a, b))


def _neural_pair(comparison: Comparison, method: int, pair: tuple[int, int]) -> None:
    """Products layer by layer, and the words that wrote each side."""
    spec, vectors = comparison.specs[method], comparison.vectors[method]
    assert vectors is not None
    try:
        embedder = _neural_embedder(spec)
        texts = (comparison.texts[i] for i in pair)
        words = _words_of_pair(embedder.cache_key(), spec, *texts)
    except NeuralvizError as error:
        show_error(error)
        return
    names = short_layer_names(embedder.settings.layers)
    products = embedder.layer_products(*vectors[list(pair)])
    label = comparison.methods[method]
    show_figure(
        layer_products_figure(f"Product by layer, {label}", names, products),
        key=f"compare-layers-{method}",
        numbers=pd.DataFrame({"layer": names, "product": products}),
        name="product-by-layer",
        height=110 + 50 * len(names),
    )
    st.caption("The pair's product is their mean, when every layer has moved.")
    if words is None:
        st.caption(
            "Which words wrote an embedding is followed for shorter texts alone: it would take "
            "too long here. The page “Micro-tuning” shows it as far as it can."
        )
        return
    for place, number, (spelt, shares) in zip(st.columns(2), pair, words, strict=True):
        side = "one" if number == pair[0] else "other"
        with place, swiped(f"compare-words-wide-{method}-{side}", shares_width(spelt)):
            show_figure(
                shares_figure(spelt, shares, f"Words that wrote text {number + 1}, {label}"),
                key=f"compare-words-{method}-{side}",
                numbers=pd.DataFrame({"word": spelt, "share": shares}),
                name=f"word-shares-{number + 1}",
                height=360,
            )


def _neural_embedder(spec: EmbedderSpec) -> NeuralEmbedder:
    return cast("NeuralEmbedder", make_embedder(spec, LOADERS))


@st.cache_data(max_entries=64, show_spinner="Following the words …")
def _words_of_pair(
    cache_key: str, spec: EmbedderSpec, first: str, second: str
) -> list[tuple[list[str], np.ndarray]] | None:
    """Words and their shares of the delta of two texts; None where they are too long to follow.

    ``cache_key`` is the embedder's: it changes when the model's weights do.
    """
    from neuralviz.micro_tuning import finished
    from neuralviz.micro_tuning.run import MAX_FOLLOWED_VALUES, followed_values, tune
    from neuralviz.models import tokenize

    embedder = _neural_embedder(spec)
    texts = tokenize(embedder.model, [first, second])
    n_tokens = sum(map(len, texts))
    head_only = set(embedder.settings.layers) <= set(embedder.model.head_layers)
    if (
        n_tokens > (MAX_FOLLOWED_TOKENS if head_only else MAX_FOLLOWED_IN_BLOCKS)
        or followed_values(embedder.model, texts, embedder.settings) > MAX_FOLLOWED_VALUES
    ):
        return None
    result = finished(tune(embedder.model, texts, embedder.settings, with_token_shares=True))
    assert result.shares is not None
    return [
        (
            [text.text[start:end] for start, end in text.word_spans],
            np.bincount(text.words, weights=shares.by_token()),
        )
        for text, shares in zip(texts, result.shares, strict=True)
    ]


# --- two methods, all methods --------------------------------------------------------------------


def _two_methods(comparison: Comparison, done: Sequence[Similarity], order: str) -> None:
    st.subheader("Two methods against each other", anchor=False)
    first, second = 0, 1
    if len(done) > 2:
        left, right = st.columns(2)
        numbers = range(len(done))

        def label(i: int) -> str:
            return done[i].method

        first = left.selectbox("One method", numbers, index=0, format_func=label, key="compare-a")
        second = right.selectbox(
            "Other method", numbers, index=1, format_func=label, key="compare-b"
        )
        if first == second:
            st.caption("Choose two different methods.")
            return
    a, b = done[first], done[second]
    pair = _pair(comparison)
    names = text_names(comparison.texts, _labels(comparison, order))
    left, right = st.columns(2)
    with left:
        show_figure(
            difference_heatmap(a, b, names, _order(comparison, order), pair),
            key="compare-difference",
            numbers=lambda: _differences(a, b),
            name="difference",
            height=480,
            on_click=_choose_cell,
        )
        st.caption(f"Orange: {plain(a.method)} finds the pair more similar; purple: less.")
    with right:
        show_figure(
            products_scatter(a, b, pair),
            key="compare-scatter",
            numbers=lambda: _all_pairs(comparison, (a, b)),
            name="products",
            height=480,
            on_click=_choose_point,
        )
        st.caption(_correlation_in_words(a, b))


def _differences(a: Similarity, b: Similarity) -> pd.DataFrame:
    table = _as_table(a)
    table.iloc[:, 1:] -= b.products
    return table


def _correlation_in_words(a: Similarity, b: Similarity) -> str:
    from neuralviz.evaluation.correlation import correlate

    known = np.isfinite(a.of_pairs) & np.isfinite(b.of_pairs)
    found = correlate(a.of_pairs[known], b.of_pairs[known])
    if not np.isfinite(found.spearman):
        return "Too few different products for a rank correlation."
    return (
        f"Rank correlation of {known.sum():,} pairs: Spearman {found.spearman:.2f}, Kendall "
        f"tau-b {found.kendall_b:.2f}."
    )


def _spread(done: Sequence[Similarity]) -> None:
    st.subheader("Spread", anchor=False)
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
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        show_figure(
            spread_figure(done),
            key="compare-spread",
            numbers=lambda: pd.DataFrame({one.method: one.of_pairs for one in done}),
            name="spread",
            height=380,
        )
    with right:
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key="compare-spread-table",
            column_config={
                name: st.column_config.NumberColumn(format="%.3f", width=72)
                for name in ("mean", "std. dev.", "lowest", "highest")
            },
        )
        st.caption(
            "The wider a method spreads the products of different texts, the more it sets them "
            "apart. The neural paper (section 3) found its neural embeddings to spread wider than "
            "others; here you see whether they do on these texts and models."
        )
