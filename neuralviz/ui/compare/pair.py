"""The chosen pair of texts, and how each method sees it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import short_labels
from neuralviz.jobs.comparing import FollowPair
from neuralviz.plots.compare import layer_products_figure
from neuralviz.plots.micro_tuning import shares_figure, shares_width, short_layer_names
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import show_only_on_stage
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.embedders import EmbedderSpec
    from neuralviz.evaluation.similarity import Similarity
    from neuralviz.jobs.comparing import Comparison, NeuralPair

PAIR = ("compare-first", "compare-second")  # session state: the chosen pair
METHODS = ("compare-a", "compare-b")  # session state: the methods that are compared
FRAMED_LENGTH = 90  # characters: one line or two of the stage
SHOWN_HEIGHT = 84  # px of a text; longer ones are scrolled
PATIENCE = 0.5  # seconds: enough for most pairs


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
