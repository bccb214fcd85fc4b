"""The maps themselves: drawn, pointed at, searched, selected on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from neuralviz.embedders.specs import models_now
from neuralviz.jobs.mapping import PlaceSentence
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.search import find_words
from neuralviz.maps.settings import REDUCERS
from neuralviz.plots.corpus_map import Standout, drawn_rows, map_figure, map_page
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import table_bytes
from neuralviz.ui.compare.settings import needs_asking
from neuralviz.ui.corpus.choose import file_name
from neuralviz.ui.corpus.colours import colour_of, colours_of
from neuralviz.ui.figures import Download, show_figure
from neuralviz.ui.live_figure import Handlers
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import SessionRuns, Words, run_panel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from neuralviz.jobs.mapping import Placed
    from neuralviz.ui.corpus.kept import OpenCorpus, OpenMap

ROW, HOVERED = "corpus-row", "corpus-hovered"
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SENTENCE, SEARCH = "corpus-sentence", "corpus-search"
WORDS, MEANING = "By words", "By meaning"
MOST_SENT = 5_000  # texts that go to the browser with their points
REMEMBERED = 50  # sentences, with where they landed
MOST_SEARCHED = 500  # characters
WAIT = 60.0  # seconds for another map to be done
PATIENCE = 0.3  # seconds: a sentence is placed by then on most maps
HEIGHTS = {1: 620, 2: 540}


def forget_selection() -> None:
    """Nothing is selected, searched for or chosen any more."""
    for key in (ROW, HOVERED, SELECTED, SELECTED_BY, SENTENCE, SEARCH):
        st.session_state.pop(key, None)


def selected_rows(n_texts: int) -> np.ndarray | None:
    """Rows that are selected; None where nothing is."""
    rows = st.session_state.get(SELECTED)
    return None if rows is None else rows[rows < n_texts]


def select(rows: np.ndarray | Sequence[int], by: str) -> None:
    """Select rows on all maps, and say by what."""
    rows = np.asarray(rows, dtype=np.int64)
    if len(rows):
        st.session_state[SELECTED], st.session_state[SELECTED_BY] = rows, by
    else:
        st.session_state.pop(SELECTED, None)


def choose_row(row: int) -> None:
    """Look at a text."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)


def search_bar(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> str:
    """What the points are coloured by, and a search; gives the choice of colours."""
    options = colours_of(corpus, maps)
    left, middle, right = st.columns([2, 4, 2], vertical_alignment="bottom")
    if st.session_state.get("colour", next(iter(options))) not in options:
        st.session_state["colour"] = next(iter(options))
    colour = left.selectbox(
        "Colour by",
        list(options),
        format_func=lambda one: options[one],
        key="colour",
        bind="query-params",
    )
    how = right.segmented_control(
        "Search mode", [WORDS, MEANING], default=WORDS, required=True, key="corpus-how",
        label_visibility="collapsed",
    )  # fmt: skip

    def search() -> None:
        query = st.session_state.get(SEARCH, "").strip()
        st.session_state.pop(SENTENCE, None)
        st.session_state.pop(SELECTED, None)
        if query and st.session_state.get("corpus-how") == MEANING:
            st.session_state[SENTENCE] = query
        elif query:
            found = find_words(corpus.folded, query)
            select(found, f"containing “{shorten(query, 40)}”")
            if not len(found):
                st.session_state[SELECTED_BY] = f"no text containing “{shorten(query, 40)}”"

    middle.text_input(
        "Search",
        key=SEARCH,
        on_change=search,
        max_chars=MOST_SEARCHED,
        placeholder="Find words in the texts" if how == WORDS else
        "Enter a sentence to place it on the map",
    )  # fmt: skip
    if how != st.session_state.get("corpus-searched-how", how):
        search()
    st.session_state["corpus-searched-how"] = how
    return colour or next(iter(options))


def show_placing(maps: Sequence[OpenMap]) -> dict[str, Placed]:
    """Where the sentence that is searched for lands, by map; panels for what is under way."""
    sentence: str = st.session_state.get(SENTENCE, "")
    found: dict[str, Placed] = {}
    for shown in maps if sentence else ():
        runs = SessionRuns(f"corpus-placing-{shown.kept.id}", kept=REMEMBERED)
        task = PlaceSentence(
            shown.corpus.id, shown.kept.id, shown.spec, sentence, models_now((shown.spec,)), WAIT
        )
        if runs.of(task) is None and needs_asking((shown.spec,)):
            st.info(plain(f"The model of “{shown.label}” is not loaded."))
            if not st.button("Load the model", key=f"corpus-load-{shown.kept.id}"):
                continue
        run = runs.start(task)
        run_panel(
            runs,
            run,
            lambda _result, _live: None,
            words=Words(f"Placing the sentence on the map by {shown.label} …", done=lambda _: ""),
            patience=PATIENCE,
        )
        if run.result is not None:
            found[shown.kept.id] = run.result
    return found


def show_maps(
    corpus: OpenCorpus, maps: Sequence[OpenMap], colour: str, placed: Mapping[str, Placed]
) -> None:
    """The maps side by side, one selection on all of them.

    Args:
        corpus: whose texts are the points.
        maps: one or two.
        colour: what the points are coloured by.
        placed: where a sentence lands, by the id of the map.
    """
    n = corpus.corpus.n_texts
    drawn = drawn_rows(n)
    if len(drawn) < n:
        st.caption(
            f"The map shows a random sample of {len(drawn):,} of the {n:,} texts. Lists and "
            "searches cover all of them."
        )
        if st.toggle(
            f"Draw all {n:,} points",
            key="corpus-all",
            help="Drawing all points takes longer.",
        ):
            drawn = np.arange(n)
    for place, (column, shown) in enumerate(zip(st.columns(len(maps)), maps, strict=True)):
        with column:
            _show_map(corpus, maps, shown, colour, drawn, place, placed.get(shown.kept.id))


def _show_map(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    shown: OpenMap,
    colour: str,
    drawn: np.ndarray,
    place: int,
    found: Placed | None,
) -> None:
    n = corpus.corpus.n_texts
    by = colour_of(colour, corpus, shown, maps)
    of_drawn = by.of(drawn) if len(drawn) < n else by
    title = f"{shown.label} · {_describe(shown)}"
    whole_title = f"{corpus.corpus.name} · {title}"
    if len(drawn) < n:
        whole_title += f", sample of {len(drawn):,} of {n:,}"
    sentence: str = st.session_state.get(SENTENCE, "")
    lands = [(sentence, found.at[0])] if found is not None and found.at is not None else []
    row = st.session_state.get(ROW)
    figure = map_figure(
        shown.coordinates[drawn],
        drawn,
        of_drawn,
        title=title,
        standout=Standout(selected_rows(n), row if row is not None and row < n else None, lands),
        texts=[corpus.texts[i] for i in drawn] if n <= MOST_SENT else None,
        axes=shown.axes,
        uirevision=shown.kept.id,
    )

    def clicked(click: dict[str, Any]) -> None:
        if click["customdata"] is not None:
            choose_row(click["customdata"])

    def hovered(row: int) -> None:
        st.session_state[HOVERED] = int(row)

    def points(ending: str, vectors: bool) -> bytes:
        embedder = shown.embedder if vectors else None
        return table_bytes(ending, corpus_table(corpus.store, corpus.corpus, embedder, shown.kept))

    def numbers() -> pd.DataFrame:
        return corpus_table(corpus.store, corpus.corpus, None, shown.kept).to_pandas()

    show_figure(
        figure,
        key=f"corpus-map-{place}",
        numbers=numbers,
        name=f"{file_name(corpus.corpus)} {shown.label}",
        height=HEIGHTS[len(maps)],
        alt=f"Map by {shown.label}",
        handlers=Handlers(
            clicked,
            lambda rows: select(rows, "selected"),
            hovered if n > MOST_SENT else "ignore",
        ),
        page=lambda: map_page(
            shown.coordinates[drawn], [corpus.texts[i] for i in drawn], of_drawn, title=whole_title
        ),
        more=[
            Download(
                "Points and embeddings (Parquet)", lambda: points(".parquet", True), "parquet"
            ),
            Download("Points and embeddings (CSV)", lambda: points(".csv", True), "csv"),
        ],
    )
    for note in shown.kept.notes:
        st.caption(plain(note))


def _describe(shown: OpenMap) -> str:
    settings = shown.kept.settings
    return REDUCERS[settings.reducer] + " 3-D" * (settings.dimensions == 3)
