"""What the page shows below the maps: the chosen text, and lists of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.corpus import describe_landing
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.neighbourhoods import common_neighbours, suggest_k
from neuralviz.maps.settings import MOST_WHOLE
from neuralviz.plots.theme import shorten
from neuralviz.ui.corpus import address
from neuralviz.ui.corpus.cluster_list import show_clusters, table_height
from neuralviz.ui.corpus.colours import K, common_share, compared_neighbours
from neuralviz.ui.corpus.following import (
    CHOSEN_TEXT,
    CLUSTERS,
    DIFFERENT,
    IN_ADDRESS,
    NEAREST,
    SELECTION,
    SHOWN_LIST,
    first_list,
    follow,
)
from neuralviz.ui.corpus.labels import spoken_labels
from neuralviz.ui.corpus.neighbours import find_neighbours
from neuralviz.ui.corpus.provenance import about_maps
from neuralviz.ui.corpus.samples import known_samples
from neuralviz.ui.corpus.selecting import (
    HOVERED,
    ROW,
    SELECTED_BY,
    SENTENCE,
    choose_row,
    current_selection,
    forget_selection,
)
from neuralviz.ui.figures import download_table
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain
from neuralviz.ui.stage import hide_on_stage, slide
from neuralviz.words import many, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.jobs.mapping import PlacedSentence
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

LISTED = 1000  # rows of a table at most: more make browsers slow
MOST_TAKEN = MOST_WHOLE  # selected texts that are downloaded
SHOWN_NEIGHBOURS = 8
READ_NEIGHBOURS, READ_LABELS, READ_LENGTH = 3, 2, 160  # what fits on the stage; characters
NOTHING = 0.0005  # shown as 0.000
CARD_HEIGHT = 260


def show_lists(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    placed: Mapping[str, PlacedSentence],
    within: np.ndarray | None,
) -> None:
    """Show one list at a time: the list of the user's last action comes first.

    Args:
        corpus: whose texts are listed.
        maps: one or two.
        placed: what is near the sentence that is searched for, by the id of the map.
        within: [text] whether a text is shown; None where all are.
    """
    options = [CHOSEN_TEXT, SELECTION, CLUSTERS]
    if len(maps) > 1:
        options.insert(2, DIFFERENT)
    if st.session_state.get(SENTENCE):
        options.insert(0, NEAREST)
    follow(options, len(maps))
    list_name = st.segmented_control(
        "List", options, required=True, key="corpus-list", label_visibility="collapsed"
    ) or first_list(len(maps))
    st.session_state[SHOWN_LIST] = list_name
    row = st.session_state.get(ROW)
    address.write_link(address.TEXT, "" if row is None else str(row + 1))
    is_first = list_name == first_list(len(maps))
    address.write_link(address.LIST, "" if is_first else IN_ADDRESS[list_name])
    if list_name == NEAREST:
        _show_nearest(corpus, maps, placed, within)
    elif list_name == SELECTION:
        _show_selected(corpus, maps, within)
    elif list_name == DIFFERENT:
        _show_disagreement(corpus, maps, within)
    elif list_name == CLUSTERS:
        show_clusters(maps)
    else:
        _show_text(corpus, maps, within)


def _show_table(
    corpus: OpenCorpus,
    rows: Sequence[int] | np.ndarray,
    key: str,
    first: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
) -> None:
    """A table of texts with their labels, in the given order; ticking a row chooses its text."""
    listed = np.asarray(rows)[:LISTED]
    table: dict[str, Any] = {name: values[:LISTED] for name, values in (first or {}).items()}
    table["text"] = [shorten(text, 240) for text in corpus.texts_at(listed)]
    for name in corpus.category_names[:4]:
        values = corpus.categories_at(name, listed)
        table[name if name not in table else f"{name} (label)"] = values

    def choose() -> None:
        ticked = st.session_state[key]["selection"]["rows"]
        if ticked:
            choose_row(int(listed[ticked[0]]))
            st.session_state["corpus-list-stays"] = True

    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        height=table_height(len(listed)),
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config={"text": st.column_config.TextColumn(width="large"), **(config or {})},
    )


def _find_row(corpus: OpenCorpus) -> int | None:
    """The row of the text under the pointer, else of the clicked text."""
    row = st.session_state.get(HOVERED)
    row = st.session_state.get(ROW) if row is None else row
    return row if row is not None and row < corpus.corpus.n_texts else None


def _show_text(corpus: OpenCorpus, maps: Sequence[OpenMap], within: np.ndarray | None) -> None:
    row = _find_row(corpus)
    if row is None:
        st.caption("Click a point to read its text and see its neighbours.")
        return
    (text,) = corpus.texts_at([row])
    with st.container(height=CARD_HEIGHT if len(text) > 700 else "content"):
        st.text(text)
        details = [f"ID {corpus.id_at(row)}"]
        for label in corpus.corpus.columns:
            value = corpus.label_at(label.name, row)
            value = f"{value:g}" if isinstance(value, float) else str(value)
            if value and value != "nan":
                details.append(f"{label.name}: {shorten(value, 60)}")
        st.caption(plain(" · ".join(details)))
    for column, open_map in zip(st.columns(len(maps)), maps, strict=True):
        with column:
            st.caption(plain(f"Neighbours by {open_map.label}"))
            near = find_neighbours(open_map, row, chosen=row == st.session_state.get(ROW))
            if near is not None:
                near = near.first(SHOWN_NEIGHBOURS)
                _show_near_table(
                    corpus, open_map, near.indices[0], near.distances[0], "row", within
                )


def _show_nearest(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    placed: Mapping[str, PlacedSentence],
    within: np.ndarray | None,
) -> None:
    sentence = st.session_state[SENTENCE]
    placements = {
        open_map: placed[open_map.kept.id] for open_map in maps if open_map.kept.id in placed
    }
    with slide("sentence"):
        for name in corpus.category_names[:1]:
            k = suggest_k([list(corpus.sizes(name).values())])
            nearest = [placement.near.indices[0][:k] for placement in placements.values()]
            near = [list(map(plain, corpus.categories_at(name, rows))) for rows in nearest]
            methods = spoken_labels(list(placements))
            headline = describe_landing(plain(shorten(sentence, 60)), methods, near, plain(name))
            show_headline(headline, key="sentence")
        for open_map, placement in placements.items():
            _show_nearest_texts(corpus, open_map, placement.near.indices[0], within)
        if not placements:
            return
        with (
            hide_on_stage("sentence"),
            st.expander(f"All neighbours of “{plain(shorten(sentence, 80))}”"),
        ):
            columns = st.columns(len(placements))
            for column, (open_map, placement) in zip(columns, placements.items(), strict=True):
                with column:
                    st.caption(plain(f"By {open_map.label}"))
                    rows, distances = placement.near.indices[0], placement.near.distances[0]
                    _show_near_table(corpus, open_map, rows, distances, "sentence", within)


def _show_nearest_texts(
    corpus: OpenCorpus, open_map: OpenMap, rows: np.ndarray, within: np.ndarray | None
) -> None:
    """The first neighbours of a sentence by one method, readable on the stage."""
    rows = (rows if within is None else rows[within[rows]])[:READ_NEIGHBOURS]
    if not len(rows):
        st.markdown(plain(f"The filter shows no text that is nearest by {open_map.label}."))
        return
    head = f"**Nearest by {plain(open_map.label)}**"
    table = {head: [plain(shorten(text, READ_LENGTH)) for text in corpus.texts_at(rows)]}
    for name in corpus.category_names[:READ_LABELS]:
        values = corpus.categories_at(name, rows)
        table[plain(name)] = [plain(shorten(str(value), 30)) for value in values]
    st.table(pd.DataFrame(table), hide_index=True)


def _show_near_table(
    corpus: OpenCorpus,
    open_map: OpenMap,
    rows: np.ndarray,
    distances: np.ndarray,
    kind: str,
    within: np.ndarray | None,
) -> None:
    if within is not None:
        rows, distances = rows[within[rows]], distances[within[rows]]
    key = f"corpus-near-{kind}-{open_map.kept.id}"
    metric = open_map.kept.settings.metric
    name, values = ("cosine", 1 - distances) if metric == "cosine" else (metric, distances)
    values = np.where(np.abs(values) < NOTHING, 0, values)  # no -0.000
    _show_table(
        corpus,
        rows,
        key,
        {name: values},
        {name: st.column_config.NumberColumn(format="%.3f", width=80)},
    )


def _show_selected(corpus: OpenCorpus, maps: Sequence[OpenMap], within: np.ndarray | None) -> None:
    n_texts = corpus.corpus.n_texts
    chosen = current_selection(n_texts, within)
    if chosen is None:
        st.caption(
            "Nothing is selected. Select points with the lasso, search for words, or select a "
            "cluster. All maps share the selection."
        )
        return
    row = st.container(horizontal=True, vertical_alignment="center")
    n, rows = len(chosen), chosen.rows()[:MOST_TAKEN]
    listed = f", showing the first {LISTED:,}" if n > LISTED else ""
    if n > len(rows):
        listed += f"; downloads hold the first {MOST_TAKEN:,}"
    row.markdown(plain(f"{many(n, 'text')} {st.session_state.get(SELECTED_BY, '')}{listed}."))
    row.button("Clear", icon=":material/close:", on_click=forget_selection, key="corpus-clear")
    with row:
        download_table(
            "Selected texts",
            lambda: _make_frame(corpus, rows),
            f"{corpus.corpus.name} selected",
            key="corpus-take-selected",
            provenance=about_maps(corpus, maps, n_texts),
        )
    _show_table(corpus, rows, f"corpus-selected-{len(maps)}-{chosen.digest}")


def _make_frame(corpus: OpenCorpus, rows: np.ndarray) -> pd.DataFrame:
    return corpus_table(corpus.store, corpus.corpus, rows=rows).to_pandas()


def _show_disagreement(
    corpus: OpenCorpus, maps: Sequence[OpenMap], within: np.ndarray | None
) -> None:
    if corpus.is_large:
        _show_sample_disagreement(corpus, maps, within)
        return
    shares = common_share(maps)
    first, second = compared_neighbours(maps)
    order = np.argsort(shares, kind="stable")
    if within is not None:
        order = order[within[order]]
    k = min(K, first.k, second.k)
    basis = "on the maps" if maps[0].kept.embedder == maps[1].kept.embedder else "by embedding"
    st.markdown(
        plain(
            f"On average, “{maps[0].label}” and “{maps[1].label}” share {percent(shares.mean())} "
            f"of a text's {k} neighbours ({basis}). Texts with the fewest shared neighbours come "
            "first."
        )
    )
    _show_table(
        corpus,
        order,
        f"corpus-different-{maps[0].kept.id}-{maps[1].kept.id}",
        {"shared": 100 * shares[order]},
        {"shared": st.column_config.NumberColumn(format="%.0f%%", width=95)},
    )
    row = _find_row(corpus)
    if row is not None:
        _compare_neighbours(corpus, maps, row, [first.indices[row], second.indices[row]])


def _show_sample_disagreement(
    corpus: OpenCorpus, maps: Sequence[OpenMap], within: np.ndarray | None
) -> None:
    """Where two maps of a large corpus disagree, measured on a sample of its texts."""
    if maps[0].kept.embedder == maps[1].kept.embedder:
        st.caption(
            "Both maps show the same embeddings. The neighbours on two such maps are compared "
            f"for up to {MOST_WHOLE:,} texts."
        )
        return
    samples = known_samples(maps)
    if samples is None:
        return
    (rows, first), (_, second) = ((sample.rows, sample.near) for sample in samples)
    shares = common_neighbours(first, second, K)
    st.markdown(
        plain(
            f"Of a random sample of {many(len(rows), 'text')}: on average, “{maps[0].label}” and "
            f"“{maps[1].label}” share {percent(shares.mean())} of a text's {min(K, first.k)} "
            "neighbours (by embedding). Texts with the fewest shared neighbours come first."
        )
    )
    order = np.argsort(shares, kind="stable")
    if within is not None:
        order = order[within[rows[order]]]
    _show_table(
        corpus,
        rows[order],
        f"corpus-different-{maps[0].kept.id}-{maps[1].kept.id}",
        {"shared": 100 * shares[order]},
        {"shared": st.column_config.NumberColumn(format="%.0f%%", width=95)},
    )
    row = _find_row(corpus)
    if row is not None:
        is_chosen = row == st.session_state.get(ROW)
        near = [find_neighbours(open_map, row, chosen=is_chosen) for open_map in maps]
        indices = [neighbours.indices[0] for neighbours in near if neighbours is not None]
        if len(indices) == len(maps):
            _compare_neighbours(corpus, maps, row, indices)


def _compare_neighbours(
    corpus: OpenCorpus, maps: Sequence[OpenMap], row: int, near: Sequence[np.ndarray]
) -> None:
    """The neighbours of one text on both maps, with shared neighbours marked."""
    common = set(near[0][:K].tolist()) & set(near[1][:K].tolist())
    st.text(corpus.texts_at([row])[0])
    for column, open_map, neighbours in zip(st.columns(2), maps, near, strict=True):
        with column:
            st.caption(plain(f"Neighbours by {open_map.label}; ● marks shared ones"))
            indices = neighbours[:K]
            _show_table(
                corpus,
                indices,
                f"corpus-beside-{open_map.kept.id}-{row}",
                {"shared": np.where(np.isin(indices, list(common)), "●", "")},
                {"shared": st.column_config.TextColumn(width=70)},
            )
