"""The maps themselves: drawn, pointed at, searched, selected on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from neuralviz.embedders.specs import models_now
from neuralviz.jobs.mapping import PlaceSentence
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.neighbourhoods import is_apart
from neuralviz.maps.selection import Selection
from neuralviz.maps.settings import REDUCERS
from neuralviz.plots.corpus_map import Standout, drawn_rows, even_out, map_figure
from neuralviz.plots.map_page import PageMap, map_page
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import BYTE_ORDER_MARK, table_bytes
from neuralviz.ui.compare.settings import needs_asking
from neuralviz.ui.corpus import address, large
from neuralviz.ui.corpus.about import about_maps
from neuralviz.ui.corpus.colours import CLUSTERS, LENGTH, K, colour_of, colours_of
from neuralviz.ui.corpus.filters import choose_filter
from neuralviz.ui.figures import Download, show_figure
from neuralviz.ui.live_figure import Handlers
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import Words, run_panel
from neuralviz.ui.session_runs import SessionRuns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from neuralviz.jobs.mapping import Placed
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

ROW, HOVERED = "corpus-row", "corpus-hovered"
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SENTENCE = "corpus-sentence"
SEARCH, HOW, ASKED = "corpus-search", "corpus-how", "corpus-asked"  # what, how; what was done
WORDS, MEANING = "By words", "By meaning"
_BY_MEANING = "meaning"  # in the address
MOST_SENT = 5_000  # texts that go to the browser with their points
REMEMBERED = 50  # sentences, with where they landed
MOST_SEARCHED = 500  # characters
WAIT = 60.0  # seconds for another map to be done
PATIENCE = 0.3  # seconds: a sentence is placed by then on most maps
HEIGHTS = {1: 560, 2: 460}  # px, by how many maps there are
IN_PAGE = ("label:", "number:", CLUSTERS, LENGTH)  # colours that a page of its own offers


def forget_selection() -> None:
    """Nothing is selected, searched for or chosen any more."""
    for key in (ROW, HOVERED, SELECTED, SELECTED_BY, SENTENCE, SEARCH, ASKED):
        st.session_state.pop(key, None)


def selected(n_texts: int, within: np.ndarray | None = None) -> Selection | None:
    """Texts that are selected, and let through by a filter; None where nothing is selected."""
    found: Selection | None = st.session_state.get(SELECTED)
    if found is None or found.n_texts != n_texts:
        return None
    return found if within is None else Selection.of_mask(found.mask() & within)


def select(chosen: Selection, by: str) -> None:
    """Select texts on all maps, and say by what."""
    if len(chosen):
        st.session_state[SELECTED], st.session_state[SELECTED_BY] = chosen, by
    else:
        st.session_state.pop(SELECTED, None)


def choose_row(row: int) -> None:
    """Look at a text."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)


def search_bar(corpus: OpenCorpus) -> tuple[np.ndarray | None, bool]:
    """A search, a filter, and whether clusters are named. The search is in the address.

    Returns:
        [text] whether a text is shown, None where all are; and whether the clusters' names stand on
        the maps.
    """
    how, query = st.session_state.get(ASKED, (WORDS, ""))
    if linked := address.opened(address.SEARCHED):
        by_meaning = st.query_params.get(address.BY) == _BY_MEANING
        how, query = MEANING if by_meaning else WORDS, " ".join(linked.split())
        st.session_state[HOW], st.session_state[SEARCH] = how, query
    st.session_state.setdefault(HOW, how)
    st.session_state.setdefault(SEARCH, query)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    box = row.container(width="stretch")
    how = (
        row.segmented_control(
            "Search mode", [WORDS, MEANING], required=True, key=HOW, label_visibility="collapsed"
        )
        or WORDS
    )
    query = box.text_input(
        "Search",
        key=SEARCH,
        max_chars=MOST_SEARCHED,
        placeholder="Find words in the texts" if how == WORDS else
        "Enter a sentence to see where it lands",
    ).strip()  # fmt: skip
    if (how, query) != st.session_state.get(ASKED, (WORDS, "")):
        st.session_state[ASKED] = how, query
        _search(corpus, how, query)
    address.put(address.SEARCHED, query)
    address.put(address.BY, _BY_MEANING if query and how == MEANING else "")
    with row:
        within, said = choose_filter(corpus)
        named = st.toggle("Cluster names", value=True, key="names", bind="query-params")
    if said:
        st.markdown(plain(said))
    return within, named


def _search(corpus: OpenCorpus, how: str, query: str) -> None:
    """Select the texts with some words, or have a sentence placed; nothing where there is none."""
    st.session_state.pop(SENTENCE, None)
    st.session_state.pop(SELECTED, None)
    if query and how == MEANING:
        st.session_state[SENTENCE] = query
    elif query:
        found = corpus.find(query)
        select(
            Selection.of_rows(found, corpus.corpus.n_texts), f"containing “{shorten(query, 40)}”"
        )
        if not len(found):
            st.session_state[SELECTED_BY] = f"no text containing “{shorten(query, 40)}”"


def show_placing(maps: Sequence[OpenMap]) -> dict[str, Placed]:
    """Where the sentence that is searched for lands, by map; panels for what is under way."""
    sentence: str = st.session_state.get(SENTENCE, "")
    found: dict[str, Placed] = {}
    for shown in maps if sentence else ():
        if shown.spec.is_imported:
            st.info(
                plain(
                    f"A new sentence cannot be placed on the map by “{shown.label}”: its "
                    "vectors were imported, so there is no model to embed the sentence with."
                )
            )
            continue
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
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    colours: Sequence[str],
    placed: Mapping[str, Placed],
    within: np.ndarray | None,
    *,
    named: bool,
) -> None:
    """The maps side by side, one selection on all of them.

    Args:
        corpus: whose texts are the points.
        maps: one or two.
        colours: what the points of each map are coloured by.
        placed: where a sentence lands, by the id of the map.
        within: [text] whether a text is shown; None where all are.
        named: whether the clusters' names stand on the maps.
    """
    n = corpus.corpus.n_texts
    drawn = drawn_rows(n)
    if corpus.is_large:
        if fitted := large.fitted_in_words(maps):
            st.caption(plain(fitted))
    elif len(drawn) < n:
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
    looked_at = _Looked(drawn, within, named)
    figures = [
        _figure(corpus, maps, shown, colour, looked_at, placed.get(shown.kept.id))
        for shown, colour in zip(maps, colours, strict=True)
    ]
    even_out([one.figure for one in figures])
    places = enumerate(zip(st.columns(len(maps)), maps, figures, strict=True))
    for place, (column, shown, drawing) in places:
        with column:
            _show_map(corpus, maps, colours, shown, drawing, place)
            _explain_star(shown, placed.get(shown.kept.id))


@dataclass(frozen=True, eq=False)
class _Looked:
    """What is drawn of all texts: rows, whether a filter lets them through, names of clusters."""

    drawn: np.ndarray
    within: np.ndarray | None
    named: bool


@dataclass(frozen=True, eq=False)
class _Drawing:
    """A map as it is drawn.

    Attributes:
        figure: of the map.
        rows: of the points that are drawn and let through by a filter.
        view: where these are columns of their own.
    """

    figure: go.Figure
    rows: np.ndarray
    view: large.LargeView | None = None


def _figure(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    shown: OpenMap,
    colour: str,
    looked: _Looked,
    found: Placed | None,
) -> _Drawing:
    n, drawn, within = corpus.corpus.n_texts, looked.drawn, looked.within
    by = colour_of(colour, corpus, shown, maps)
    sentence: str = st.session_state.get(SENTENCE, "")
    lands, near_it = [], []
    if found is not None and found.at is not None:
        lands = [(sentence, found.at[0])]
        near_it = [shown.coordinates[found.near.first(K).indices[0]]]
    row = st.session_state.get(ROW)
    row = row if row is not None and row < n else None
    # lines of two points could not be told apart
    near = None if row is None or lands else shown.near(row, K)
    chosen = selected(n, within)
    title = f"{shown.label} · {_describe(shown)}"
    is_in_columns = corpus.is_large and shown.coordinates.shape[1] == 2
    standout = Standout(
        None if chosen is None or is_in_columns else chosen.rows(),
        row,
        None if near is None else shown.coordinates[near.indices[0]],
        lands,
        near_it,
        shown.clusters_named if looked.named else (),
    )
    if is_in_columns:
        view = large.view_of(shown, colour, by, within)
        figure = large.figure_of(shown, view, title, standout, chosen)
        return _Drawing(figure, view.rows, view)
    figure = map_figure(
        shown.coordinates[drawn],
        drawn,
        by.of(drawn) if len(drawn) < n else by,
        title=title,
        standout=standout,
        texts=corpus.texts_at(drawn) if n <= MOST_SENT else None,
        within=None if within is None else within[drawn],
        axes=shown.axes,
        uirevision=shown.kept.id,
    )
    return _Drawing(figure, drawn if within is None else drawn[within[drawn]])


def _show_map(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    colours: Sequence[str],
    shown: OpenMap,
    drawing: _Drawing,
    place: int,
) -> None:
    n, view = corpus.corpus.n_texts, drawing.view

    def clicked(click: dict[str, Any]) -> None:
        if click["customdata"] is not None:
            choose_row(click["customdata"])

    def hovered(row: int) -> None:
        if row != st.session_state.get(ROW):  # a pointer that rests where it clicked asks nothing
            st.session_state[HOVERED] = int(row)

    def points(ending: str, vectors: bool) -> bytes:
        embedder = shown.embedder if vectors else None
        table = corpus_table(corpus.store, corpus.corpus, embedder, shown.kept)
        mark = BYTE_ORDER_MARK.encode() if ending == ".csv" else b""  # for spreadsheets
        return mark + table_bytes(ending, table)

    def numbers() -> pd.DataFrame:
        rows = drawing.rows if corpus.is_large else None
        return corpus_table(corpus.store, corpus.corpus, None, shown.kept, rows).to_pandas()

    if view is None:
        handlers = Handlers(
            clicked,
            lambda rows: select(Selection.of_rows(np.array(rows, np.int64), n), "selected"),
            hovered if n > MOST_SENT else "ignore",
        )
    else:
        handlers = Handlers(
            clicked,
            hover=hovered,
            areas=lambda areas: select(Selection.of_mask(shown.grid.inside(areas)), "selected"),
            window=lambda sides: large.look_at(shown, sides),
        )
    of_all = [
        Download("Points and embeddings (Parquet)", lambda: points(".parquet", True), "parquet"),
        Download("Points and embeddings (CSV)", lambda: points(".csv", True), "csv"),
    ]
    show_figure(
        drawing.figure,
        key=f"corpus-map-{place}",
        numbers=numbers,
        name=f"{corpus.corpus.name} {shown.label}",
        height=HEIGHTS[len(maps)],
        alt=f"Map by {shown.label}",
        handlers=handlers,
        about=about_maps(corpus, [shown], len(drawing.rows)),
        page=lambda: _page(corpus, maps, colours, drawing.rows),
        more=() if corpus.is_large else of_all,
        columns=None if view is None else view.points.columns,
        window=None if view is None else view.sides,
    )
    if corpus.is_large:
        beside = large.has_beside(drawing.figure)
        st.caption(large.drawn_in_words(shown, view, len(drawing.rows), beside=beside))
    for note in shown.kept.notes:
        st.caption(plain(note))


def _explain_star(shown: OpenMap, found: Placed | None) -> None:
    """Say so where a sentence lies far from the texts that are nearest to it."""
    if found is None or found.at is None:
        return
    points, near = shown.coordinates, found.near.first(K).indices[0]
    if shown.is_large:  # a sample says as much
        some = drawn_rows(len(points))
        points, near = points[np.concatenate([near, some])], np.arange(len(near))
    if is_apart(found.at[0], points, near):
        st.caption(
            "The star lies away from the sentence's nearest texts, to which the lines lead: a map "
            "keeps only some neighbours together. The list below is by embedding."
        )


def _page(
    corpus: OpenCorpus, maps: Sequence[OpenMap], colours: Sequence[str], drawn: np.ndarray
) -> str:
    """All maps that are shown on one page, each coloured by its choice at the start."""
    options = colours_of(corpus, maps)
    pages = []
    for first, shown in zip(colours, maps, strict=True):
        wanted = [first, *(one for one in options if one.startswith(IN_PAGE) and one != first)]
        pages.append(
            PageMap(
                f"{shown.label} · {_describe(shown)}",
                shown.coordinates[drawn],
                {options[one]: colour_of(one, corpus, shown, maps).of(drawn) for one in wanted},
                shown.clusters_named,
                shown.axes,
            )
        )
    about = about_maps(corpus, maps, len(drawn))
    return map_page(pages, corpus.texts_at(drawn), about)


def _describe(shown: OpenMap) -> str:
    settings = shown.kept.settings
    return REDUCERS[settings.reducer] + " 3-D" * (settings.dimensions == 3)
