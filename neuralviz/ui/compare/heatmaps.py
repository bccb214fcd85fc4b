"""The heatmaps of a comparison, while it goes on and after."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.plots.compare import colour_range, similarity_heatmap, text_names
from neuralviz.ui.compare.selection import (
    choose_cell,
    chosen_pair,
    order_labels,
    similarity_table,
    text_order,
)
from neuralviz.ui.figures import show_figure
from neuralviz.ui.live_figure import Handlers, draw_live_figure
from neuralviz.ui.page import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.jobs.comparing import Comparison
    from neuralviz.plots.standalone import About

HEIGHTS = {1: 560, 2: 460, 3: 330, 4: 460}  # px, by the number of methods


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


def show_heatmaps(comparison: Comparison, look: Look, live: bool) -> None:
    """Draw a heatmap for each method that has begun."""
    for embedded in comparison:
        if embedded.error:
            st.error(plain(embedded.error))
    texts = comparison[0].texts
    similarities = [part.similarity for part in comparison if part.similarity is not None]
    groups = order_labels(look.labels, look.order)
    order = text_order(comparison, groups, look.order)
    names = text_names(texts, groups)
    pair = None if live else chosen_pair(len(texts))
    numbers = [n for n, part in enumerate(comparison) if part.similarity or not part.error]
    in_a_row = len(numbers) if len(numbers) < 4 else 2
    for first in range(0, len(numbers), in_a_row):
        for column, number in zip(st.columns(in_a_row), numbers[first:], strict=False):
            similarity = comparison[number].similarity
            with column:
                if similarity is None:
                    state = "waiting" if live else "not finished"
                    st.caption(plain(f"{comparison[number].method}: {state}."))
                    continue
                limits = colour_range(similarities if look.one_scale else [similarity])
                figure = similarity_heatmap(similarity, names, order, limits, pair, groups)
                key, name = f"compare-{number}", f"similarity {similarity.method}"
                height = HEIGHTS[len(numbers)]
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
