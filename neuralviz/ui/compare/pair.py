"""The pair of texts that is looked at."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.jobs.comparing import FollowPair
from neuralviz.plots.compare import layer_products_figure
from neuralviz.plots.micro_tuning import shares_figure, shares_width, short_layer_names
from neuralviz.plots.theme import shorten
from neuralviz.ui.compare.looking import PAIR, choose_pair, chosen_pair
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.run_panel import SessionRuns, Words, run_panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.embedders import EmbedderSpec
    from neuralviz.evaluation.similarity import Similarity
    from neuralviz.jobs.comparing import Comparison, NeuralPair

COSINE = "cosine similarity"
PATIENCE = 0.5  # seconds: most pairs are followed by then


def show_pair(
    specs: Sequence[EmbedderSpec], comparison: Comparison, done: Sequence[Similarity]
) -> None:
    """One pair: its texts, its products, and how neural embeddings of it came about."""
    texts = comparison[0].texts
    st.subheader("A pair of texts", anchor=False)
    if chosen_pair(len(texts)) is None:
        choose_pair(0, 1)
    for place, key, label in zip(st.columns(2), PAIR, ("Text A", "Text B"), strict=True):
        place.selectbox(
            label,
            range(len(texts)),
            format_func=lambda i: f"{i + 1}. {shorten(texts[i], 70)}",
            key=key,
        )
        place.text(texts[st.session_state[key]])
    a, b = chosen_pair(len(texts)) or (0, 1)
    if a == b:
        st.caption("Choose two different texts.")
        return
    rows = []
    for one in done:
        is_measured = np.isfinite(one.products[a, b])
        n_pairs = int(np.isfinite(one.of_pairs).sum())
        rows.append(
            {
                "method": one.method,
                COSINE: one.products[a, b] if is_measured else None,
                "rank": f"{one.ranks[a, b]:,.0f} of {n_pairs:,}" if is_measured else "",
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="compare-pair-table",
        column_config={COSINE: st.column_config.NumberColumn(format="%.3f")},
    )
    for number, (spec, embedded) in enumerate(zip(specs, comparison, strict=True)):
        vectors = embedded.vectors
        if (
            spec.method in ("neural", "neural-1")
            and vectors is not None
            and np.isfinite(vectors[[a, b]]).all()
        ):
            runs = SessionRuns(f"compare-pair-{number}")
            both = vectors[a].tobytes(), vectors[b].tobytes()
            run = runs.start(FollowPair(spec, (texts[a], texts[b]), both))
            run_panel(
                runs,
                run,
                partial(_neural_pair, number, embedded.method, (a, b)),
                words=Words(begins="Computing word shares …", done=lambda _: ""),
                patience=PATIENCE,
            )


def _neural_pair(
    number: int, method: str, pair: tuple[int, int], found: NeuralPair | None, live: bool
) -> None:
    """Cosine similarity layer by layer, and the share of every word in each text's embedding."""
    if found is None:
        return
    names = short_layer_names(found.layers)
    show_figure(
        layer_products_figure(f"Cosine by layer: {method}", names, found.products),
        key=f"compare-layers-{number}",
        numbers=pd.DataFrame({"layer": names, "product": found.products}),
        name="product-by-layer",
        height=110 + 50 * len(names),
    )
    st.caption("If every layer changed, the pair's cosine similarity is the mean of these values.")
    if found.words is None:
        st.caption(
            "Word shares are shown here for short texts only. For longer texts, see the "
            "Micro-tuning page."
        )
        return
    for place, text, (spelt, shares) in zip(st.columns(2), pair, found.words, strict=True):
        side = "one" if text == pair[0] else "other"
        with place, swiped(f"compare-words-wide-{number}-{side}", shares_width(spelt)):
            show_figure(
                shares_figure(spelt, shares, f"Word shares in text {text + 1}: {method}"),
                key=f"compare-words-{number}-{side}",
                numbers=pd.DataFrame({"word": spelt, "share": shares}),
                name=f"word-shares-{text + 1}",
                height=360,
            )
