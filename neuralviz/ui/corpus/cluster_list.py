"""The list of the clusters of a map, each with its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.maps.selection import Selection
from neuralviz.ui.corpus.choose import ROW_HEIGHT
from neuralviz.ui.corpus.labels import themes_of
from neuralviz.ui.corpus.selecting import select
from neuralviz.ui.page import plain
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.ui.corpus.kept import OpenMap

LIST_HEIGHT = 390  # px


def show_clusters(maps: Sequence[OpenMap]) -> None:
    if not any(shown.clusters.n for shown in maps):
        st.caption("There are no clusters to list.")
        return
    with slide("clusters"):
        show_point("\n\n".join(dict.fromkeys(themes_of(shown) for shown in maps)), key="clusters")
        st.caption(
            "Dense groups of points on the map, with the words that distinguish their texts. "
            "Select a row to select its texts."
        )
        for place, (column, shown) in enumerate(zip(st.columns(len(maps)), maps, strict=True)):
            with column:
                _clusters_of(shown, place)


def _clusters_of(shown: OpenMap, place: int) -> None:
    n_texts = shown.corpus.n_texts
    sizes = shown.cluster_sizes
    names = [name for name, _ in shown.clusters_named]
    key = f"corpus-clusters-{place}-{shown.kept.id}"
    n_none = n_texts - int(sizes.sum())
    if not len(sizes):
        return
    beside = f"; {many(n_none, 'text')} in no cluster" if n_none else ""
    st.caption(plain(f"{shown.label}: {many(len(sizes), 'cluster')}{beside}."))

    def choose() -> None:
        ticked = st.session_state[key]["selection"]["rows"]
        if ticked:
            cluster = ticked[0]
            rows = shown.rows_of(cluster)
            select(Selection.from_rows(rows, n_texts), f"in cluster {names[cluster]}")
            st.session_state["corpus-list-stays"] = True

    st.dataframe(
        pd.DataFrame(
            {
                "cluster": np.arange(1, len(sizes) + 1),
                "texts": sizes,
                "words": [", ".join(words) for words in shown.kept.cluster_words],
            }
        ),
        hide_index=True,
        height=table_height(len(sizes)),
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config={"words": st.column_config.TextColumn(width="large")},
    )


def table_height(n_rows: int) -> int:
    """px of a table of so many rows, none of them empty; long ones are scrolled."""
    return min(LIST_HEIGHT, ROW_HEIGHT * (n_rows + 1) + 3)
