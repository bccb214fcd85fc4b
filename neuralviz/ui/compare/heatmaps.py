"""The heatmaps of a comparison, while it goes on and after."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.plots.compare import colour_range, similarity_heatmap, text_names
from neuralviz.ui.compare.looking import as_table, choose_cell, chosen_pair, labels_of, order_of
from neuralviz.ui.figures import show_figure
from neuralviz.ui.live_figure import Handlers, live_figure
from neuralviz.ui.page import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.jobs.comparing import Comparison


def show_heatmaps(
    comparison: Comparison, labels: Mapping[str, tuple[str, ...]], order: str, live: bool
) -> None:
    """A heatmap for each method that has begun; one scale of colours for all."""
    for one in comparison:
        if one.error:
            st.error(plain(one.error))
    texts = comparison[0].texts
    limits = colour_range([one.similarity for one in comparison if one.similarity is not None])
    of_order = labels_of(labels, order)
    places = order_of(comparison, of_order, order)
    names = text_names(texts, of_order)
    pair = None if live else chosen_pair(len(texts))
    shown = [n for n, one in enumerate(comparison) if one.similarity or not one.error]
    columns = st.columns(2 if len(shown) != 3 else 3)
    for column, number in zip(itertools.cycle(columns), shown, strict=False):
        found = comparison[number].similarity
        with column:
            if found is None:
                when = "waiting" if live else "not finished"
                st.caption(plain(f"{comparison[number].method}: {when}."))
                continue
            figure = similarity_heatmap(found, names, places, limits, pair)
            key, name = f"compare-{number}", f"products {found.method}"
            height = 520 if len(columns) == 2 else 420
            if live:
                live_figure(figure, key=key, height=height, name=name)
            else:
                show_figure(
                    figure,
                    key=key,
                    numbers=partial(as_table, found),
                    name=name,
                    height=height,
                    handlers=Handlers(choose_cell),
                )
    if not live:
        st.caption("Click a cell to see its pair of texts below.")
