"""The heatmaps of a comparison, while it goes on and after."""

from __future__ import annotations

from dataclasses import dataclass
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
    from neuralviz.plots.standalone import About

HEIGHTS = {1: 560, 2: 460, 3: 330, 4: 460}  # px, by the number of methods


@dataclass(frozen=True)
class Look:
    """How heatmaps are drawn.

    Attributes:
        labels: of the texts, by name.
        order: of the texts, as it was chosen.
        one_scale: whether all have the same scale of colours.
        about: for what is downloaded.
    """

    labels: Mapping[str, tuple[str, ...]]
    order: str
    one_scale: bool
    about: About


def show_heatmaps(comparison: Comparison, look: Look, live: bool) -> None:
    """A heatmap for each method that has begun."""
    for one in comparison:
        if one.error:
            st.error(plain(one.error))
    texts = comparison[0].texts
    measured = [one.similarity for one in comparison if one.similarity is not None]
    groups = labels_of(look.labels, look.order)
    places = order_of(comparison, groups, look.order)
    names = text_names(texts, groups)
    pair = None if live else chosen_pair(len(texts))
    shown = [n for n, one in enumerate(comparison) if one.similarity or not one.error]
    in_a_row = len(shown) if len(shown) < 4 else 2
    for first in range(0, len(shown), in_a_row):
        for column, number in zip(st.columns(in_a_row), shown[first:], strict=False):
            found = comparison[number].similarity
            with column:
                if found is None:
                    when = "waiting" if live else "not finished"
                    st.caption(plain(f"{comparison[number].method}: {when}."))
                    continue
                limits = colour_range(measured if look.one_scale else [found])
                figure = similarity_heatmap(found, names, places, limits, pair, groups)
                key, name = f"compare-{number}", f"similarity {found.method}"
                height = HEIGHTS[len(shown)]
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
                        about=look.about,
                    )
