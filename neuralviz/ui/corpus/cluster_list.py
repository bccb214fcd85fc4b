"""The list of the clusters of a map, each with its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.maps.filtering import Selection
from neuralviz.ui.corpus.choose import ROW_HEIGHT
from neuralviz.ui.corpus.labels import describe_themes
from neuralviz.ui.corpus.selecting import select
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.ui.corpus.kept import OpenMap

LIST_HEIGHT = 390  # px


def show_clusters(maps: Sequence[OpenMap]) -> None:
    if not any(open_map.clusters.n for open_map in maps):
        st.caption("There are no clusters to list.")
        return
    with slide("clusters"):
        show_headline(
            "\n\n".join(dict.fromkeys(describe_themes(open_map) for open_map in maps)),
            key="clusters",
        )
        st.caption(
            "Dense groups of points on the map, with the words that distinguish their texts. "
            "Select a row to select its texts."
        )
        for place, (column, open_map) in enumerate(zip(st.columns(len(maps)), maps, strict=True)):
            with column:
                _show_cluster_table(open_map, place)


def _show_cluster_table(open_map: OpenMap, place: int) -> None:
    n_texts = open_map.corpus.n_texts
    sizes = open_map.cluster_sizes
    names = [name for name, _ in open_map.clusters_named]
    key = f"corpus-clusters-{place}-{open_map.kept.id}"
    n_none = n_texts - int(sizes.sum())
    if not len(sizes):
        return
    note = f"; {many(n_none, 'text')} in no cluster" if n_none else ""
    st.caption(plain(f"{open_map.label}: {many(len(sizes), 'cluster')}{note}."))

    def choose() -> None:
        ticked = st.session_state[key]["selection"]["rows"]
        if ticked:
            cluster = ticked[0]
            rows = open_map.cluster_rows(cluster)
            select(Selection.from_rows(rows, n_texts), f"in cluster {names[cluster]}")
            st.session_state["corpus-list-stays"] = True

    st.dataframe(
        pd.DataFrame(
            {
                "cluster": np.arange(1, len(sizes) + 1),
                "texts": sizes,
                "words": [", ".join(words) for words in open_map.kept.cluster_words],
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
    """Height in px of a table of ``n_rows``, without empty rows; a long table scrolls."""
    return min(LIST_HEIGHT, ROW_HEIGHT * (n_rows + 1) + 3)
