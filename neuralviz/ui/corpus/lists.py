"""What the page shows below the maps: the chosen text, and lists of texts and clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.corpus import describe_landing
from neuralviz.jobs.mapping import FindNeighbours
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.filtering import Selection
from neuralviz.maps.neighbourhoods import K, suggest_k
from neuralviz.maps.projection import MOST_WHOLE
from neuralviz.maps.searching import INDEXED
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import choose_one, show_choosable_table
from neuralviz.ui.corpus.labels import describe_themes, share_neighbours, spoken_labels
from neuralviz.ui.corpus.search import (
    CHOSEN_TEXT,
    CLUSTERS,
    DIFFERENT,
    LIST,
    NEAREST,
    ROW,
    SELECTED_BY,
    SELECTION,
    SENTENCE,
    choose_row,
    clear_selection,
    current_selection,
    row_to_read,
    select,
    show_background_run,
)
from neuralviz.ui.figures import download_table
from neuralviz.ui.page import plain
from neuralviz.ui.runs import SessionRuns
from neuralviz.ui.stage import hide_on_stage, show_headline, slide
from neuralviz.words import many, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neuralviz.jobs.mapping import PlacedSentence
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.ui.corpus.opened import OpenCorpus, OpenMap
    from neuralviz.ui.corpus.show import Maps

LISTED = 1000  # rows of a table at most: more make browsers slow
MOST_TAKEN = MOST_WHOLE  # selected texts that are downloaded
LISTED_LABELS = 4  # columns of labels in a table
SHOWN_NEIGHBOURS = 8
READ_NEIGHBOURS, READ_LABELS, READ_LENGTH = 3, 2, 160  # what fits on the stage; characters
NOTHING = 0.0005  # shown as 0.000
CARD_HEIGHT = 260  # px


def show_lists(
    page_maps: Maps, placed: dict[str, PlacedSentence], within: np.ndarray | None
) -> None:
    """Show one list at a time: the list of the user's last action comes first.

    Args:
        page_maps: one map or two of a corpus.
        placed: what is near the sentence that is searched for, by the id of the map.
        within: [text] whether a text is shown; None where all are.
    """
    lists = _Lists(page_maps, within)
    views: dict[str, Callable[[], None]] = {}
    if len(page_maps.maps) > 1:
        views[DIFFERENT] = lists.show_disagreement
    views[CLUSTERS] = lists.show_clusters
    views[CHOSEN_TEXT] = lists.show_text
    views[SELECTION] = lists.show_selected
    if st.session_state.get(SENTENCE):
        views[NEAREST] = lambda: lists.show_nearest(placed)
    if st.session_state.get(LIST, CLUSTERS) not in views:
        del st.session_state[LIST]
    chosen = choose_one(
        st.segmented_control,
        "List",
        list(views),
        key=LIST,
        label_visibility="collapsed",
        persist_state="session",
    )
    views[chosen]()


@dataclass(frozen=True)
class _Lists:
    """The lists of the texts that a filter lets through."""

    page_maps: Maps
    within: np.ndarray | None

    @property
    def corpus(self) -> OpenCorpus:
        return self.page_maps.corpus

    def filter_rows(self, rows: np.ndarray) -> np.ndarray:
        """The rows of texts that are shown, in their order."""
        return rows if self.within is None else rows[self.within[rows]]

    def show_text(self) -> None:
        """The text under the pointer, or the chosen one, with its neighbours on each map."""
        corpus, row = self.corpus, row_to_read(self.corpus.corpus.n_texts)
        if row is None:
            st.caption("Click a point to read its text and see its neighbours.")
            return
        (text,) = corpus.texts_at([row])
        with st.container(height=CARD_HEIGHT if len(text) > 700 else "content"):
            st.text(text)
            details = [f"ID {corpus.store.ids(corpus.corpus, [row])[0]}"]
            for name in (column.name for column in corpus.corpus.columns):
                value = corpus.store.labels(corpus.corpus, name, [row])[0]
                value = f"{value:g}" if isinstance(value, float) else str(value)
                if value and value != "nan":
                    details.append(f"{name}: {shorten(value, 60)}")
            st.caption(plain(" · ".join(details)))
        for column, open_map in zip(
            st.columns(len(self.page_maps.maps)), self.page_maps.maps, strict=True
        ):
            with column:
                st.caption(plain(f"Neighbours by {open_map.label}"))
                near = find_neighbours(open_map, row)
                if near is not None:
                    near = near.first(SHOWN_NEIGHBOURS)
                    self.show_near(open_map, near.indices[0], near.distances[0], "row")

    def show_near(
        self, open_map: OpenMap, rows: np.ndarray, distances: np.ndarray, kind: str
    ) -> None:
        """A table of the neighbours of something, with how near they are."""
        is_shown = slice(None) if self.within is None else self.within[rows]
        rows, values = rows[is_shown], distances[is_shown]
        name = open_map.kept.settings.metric
        if name == "cosine":
            values = 1 - values
        values = np.where(np.abs(values) < NOTHING, 0, values)  # no -0.000
        config = {name: st.column_config.NumberColumn(format="%.3f", width=80)}
        key = f"corpus-near-{kind}-{open_map.kept.id}"
        _show_table(self.corpus, rows, key, {name: values}, config)

    def show_nearest(self, placed: dict[str, PlacedSentence]) -> None:
        """The texts nearest to the sentence that was searched for."""
        corpus, sentence = self.corpus, st.session_state[SENTENCE]
        maps = [open_map for open_map in self.page_maps.maps if open_map.kept.id in placed]
        near = [placed[open_map.kept.id].near for open_map in maps]
        with slide("sentence"):
            for name in corpus.label_names[:1]:
                k = suggest_k([list(corpus.sizes(name).values())])
                labels = [
                    list(map(plain, corpus.labels_at(name, texts.indices[0][:k]))) for texts in near
                ]
                quoted = plain(shorten(sentence, 60))
                headline = describe_landing(quoted, spoken_labels(maps), labels, plain(name))
                show_headline(headline, key="sentence")
            for open_map, texts in zip(maps, near, strict=True):
                self._show_first(open_map, self.filter_rows(texts.indices[0])[:READ_NEIGHBOURS])
            if not maps:
                return
            with (
                hide_on_stage("sentence"),
                st.expander(f"All neighbours of “{plain(shorten(sentence, 80))}”"),
            ):
                for column, open_map, texts in zip(st.columns(len(maps)), maps, near, strict=True):
                    with column:
                        st.caption(plain(f"By {open_map.label}"))
                        rows, distances = texts.indices[0], texts.distances[0]
                        self.show_near(open_map, rows, distances, "sentence")

    def _show_first(self, open_map: OpenMap, rows: np.ndarray) -> None:
        """The first neighbours of a sentence by one method, readable on the stage."""
        if not len(rows):
            st.markdown(plain(f"The filter shows no text that is nearest by {open_map.label}."))
            return
        texts = self.corpus.texts_at(rows)
        head = f"**Nearest by {plain(open_map.label)}**"
        table = {head: [plain(shorten(text, READ_LENGTH)) for text in texts]}
        for name in self.corpus.label_names[:READ_LABELS]:
            values = self.corpus.labels_at(name, rows)
            table[plain(name)] = [plain(shorten(str(value), 30)) for value in values]
        st.table(pd.DataFrame(table), hide_index=True)

    def show_selected(self) -> None:
        """The selected texts."""
        corpus = self.corpus.corpus
        chosen = current_selection(corpus.n_texts, self.within)
        if chosen is None:
            st.caption(
                "Nothing is selected. Select points with the lasso, search for words, or select a "
                "cluster. All maps share the selection."
            )
            return
        n, rows = len(chosen), chosen.rows()[:MOST_TAKEN]
        listed = f", showing the first {LISTED:,}" if n > LISTED else ""
        if n > len(rows):
            listed += f"; downloads hold the first {MOST_TAKEN:,}"
        row = st.container(horizontal=True, vertical_alignment="center")
        row.markdown(plain(f"{many(n, 'text')} {st.session_state.get(SELECTED_BY, '')}{listed}."))
        row.button("Clear", icon=":material/close:", on_click=clear_selection, key="corpus-clear")
        with row:
            download_table(
                "Selected texts",
                lambda: corpus_table(self.corpus.store, corpus, rows=rows).to_pandas(),
                f"{corpus.name} selected",
                key="corpus-take-selected",
                provenance=self.page_maps.describe(self.page_maps.maps, corpus.n_texts),
            )
        _show_table(
            self.corpus, rows, f"corpus-selected-{len(self.page_maps.maps)}-{chosen.digest}"
        )

    def show_clusters(self) -> None:
        """The clusters of each map, with their words."""
        if not any(open_map.clusters.n for open_map in self.page_maps.maps):
            st.caption("There are no clusters to list.")
            return
        with slide("clusters"):
            themes = dict.fromkeys(map(describe_themes, self.page_maps.maps))
            show_headline("\n\n".join(themes), key="clusters")
            st.caption(
                "Dense groups of points on the map, with the words that distinguish their texts. "
                "Select a row to select its texts."
            )
            columns = st.columns(len(self.page_maps.maps))
            for place, (column, open_map) in enumerate(
                zip(columns, self.page_maps.maps, strict=True)
            ):
                with column:
                    _show_clusters(open_map, place)

    def show_disagreement(self) -> None:
        """The texts whose neighbours on two maps differ most, and those of the chosen one."""
        maps = first, second = self.page_maps.maps[0], self.page_maps.maps[1]
        is_same = first.kept.embedder == second.kept.embedder
        if is_same and self.corpus.is_large:
            st.caption(
                "Both maps show the same embeddings. The neighbours on two such maps are compared "
                f"for up to {MOST_WHOLE:,} texts."
            )
            return
        shared = share_neighbours(maps)
        if shared is None:
            return
        sample = f"Of a random sample of {many(len(shared.rows), 'text')}: on"
        st.markdown(
            plain(
                f"{sample if self.corpus.is_large else 'On'} average, “{first.label}” and "
                f"“{second.label}” share {percent(shared.shares.mean())} of a text's {shared.k} "
                f"neighbours ({'on the maps' if is_same else 'by embedding'}). Texts with the "
                "fewest shared neighbours come first."
            )
        )
        order = np.argsort(shared.shares, kind="stable")
        if self.within is not None:
            order = order[self.within[shared.rows[order]]]
        _show_table(
            self.corpus,
            shared.rows[order],
            f"corpus-different-{first.kept.id}-{second.kept.id}",
            {"shared": 100 * shared.shares[order]},
            {"shared": st.column_config.NumberColumn(format="%.0f%%", width=95)},
        )
        row = row_to_read(self.corpus.corpus.n_texts)
        if row is None:
            return
        if is_same:
            near = [shared.first.indices[row], shared.second.indices[row]]
        else:
            found = [find_neighbours(open_map, row) for open_map in maps]
            near = [neighbours.indices[0] for neighbours in found if neighbours is not None]
        if len(near) == len(maps):
            self._compare_neighbours(row, near)

    def _compare_neighbours(self, row: int, near: Sequence[np.ndarray]) -> None:
        """The neighbours of one text on both maps, with shared neighbours marked."""
        common = np.intersect1d(near[0][:K], near[1][:K])
        st.text(self.corpus.texts_at([row])[0])
        for column, open_map, rows in zip(st.columns(2), self.page_maps.maps, near, strict=True):
            with column:
                st.caption(plain(f"Neighbours by {open_map.label}; ● marks shared ones"))
                _show_table(
                    self.corpus,
                    rows[:K],
                    f"corpus-beside-{open_map.kept.id}-{row}",
                    {"shared": np.where(np.isin(rows[:K], common), "●", "")},
                    {"shared": st.column_config.TextColumn(width=70)},
                )


def _show_table(
    corpus: OpenCorpus,
    rows: np.ndarray,
    key: str,
    first: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
) -> None:
    """A table of texts with their labels, in the given order; ticking a row chooses its text."""
    listed = rows[:LISTED]
    table: dict[str, Any] = {name: values[:LISTED] for name, values in (first or {}).items()}
    table["text"] = [shorten(text, 240) for text in corpus.texts_at(listed)]
    for name in corpus.label_names[:LISTED_LABELS]:
        table[name if name not in table else f"{name} (label)"] = corpus.labels_at(name, listed)
    columns = {"text": st.column_config.TextColumn(width="large"), **(config or {})}
    show_choosable_table(
        table, key, lambda place: choose_row(int(listed[place]), show=False), columns
    )


def _show_clusters(open_map: OpenMap, place: int) -> None:
    sizes, n_texts = open_map.cluster_sizes, open_map.corpus.n_texts
    names = [name for name, _ in open_map.named_clusters]
    if not names:
        return
    n_none = n_texts - int(sizes.sum())
    note = f"; {many(n_none, 'text')} in no cluster" if n_none else ""
    st.caption(plain(f"{open_map.label}: {many(len(sizes), 'cluster')}{note}."))

    def choose(cluster: int) -> None:
        chosen = Selection.from_rows(open_map.cluster_rows(cluster), n_texts)
        select(chosen, f"in cluster {names[cluster]}", show=False)

    words = [", ".join(words) for words in open_map.kept.cluster_words]
    show_choosable_table(
        {"cluster": np.arange(1, len(sizes) + 1), "texts": sizes, "words": words},
        f"corpus-clusters-{place}-{open_map.kept.id}",
        choose,
        {"words": st.column_config.TextColumn(width="large")},
    )


def find_neighbours(open_map: OpenMap, row: int) -> Neighbours | None:
    """The neighbours of a text by a map; None while they are not known.

    Where finding them compares all vectors, a button starts a run, which can be stopped.
    """
    near = open_map.near(row, K)
    if near is not None:
        return near
    runs = SessionRuns(f"corpus-near-{open_map.kept.id}")
    task = FindNeighbours(open_map.corpus.id, open_map.kept.id, K, row)
    run, last = runs.find(task), runs.last()
    if run is None and last is not None and not last.is_over:
        run = last  # of another text: it can be stopped
    if run is None:
        metric, n = open_map.kept.settings.metric, open_map.corpus.n_distinct
        reason = "No index finds them"
        if metric != INDEXED:
            reason = f"No index serves the {metric} distance"
        is_chosen = row == st.session_state.get(ROW)
        advice = "" if is_chosen else " Click the text first."
        work = f"finding neighbours compares all {many(n, 'different text')}"
        st.caption(plain(f"{reason}: {work}.{advice}"))
        if not is_chosen or not st.button("Find neighbours", key=f"corpus-find-{open_map.kept.id}"):
            return None
        run = runs.start(task)
    show_background_run(
        runs,
        run,
        f"Finding the neighbours by {open_map.label} …",
        stopped="Stopped before the neighbours were found.",
    )
    if run.task != task or run.result is None or run.result.neighbours is None:
        return None
    return open_map.near(row, K, run.result.neighbours.near)
