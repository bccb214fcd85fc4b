"""The maps themselves: drawn, pointed at, selected on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.neighbourhoods import is_apart
from neuralviz.maps.selection import Selection
from neuralviz.maps.settings import REDUCERS
from neuralviz.plots.corpus_map import Standout, drawn_rows, even_out, map_figure
from neuralviz.plots.map_page import PageMap, map_page
from neuralviz.store.writing import BYTE_ORDER_MARK, table_bytes
from neuralviz.ui.corpus import large
from neuralviz.ui.corpus.about import about_maps
from neuralviz.ui.corpus.colours import CLUSTERS, LENGTH, K, colour_of, colours_of
from neuralviz.ui.corpus.selecting import HOVERED, ROW, SENTENCE, choose_row, select, selected
from neuralviz.ui.figures import Download, show_figure
from neuralviz.ui.live_figure import Handlers
from neuralviz.ui.page import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from neuralviz.jobs.mapping import PlacedSentence
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

MOST_SENT = 5_000  # texts that go to the browser with their points
HEIGHTS = {1: 560, 2: 460}  # px, by how many maps there are
IN_PAGE = ("label:", "number:", CLUSTERS, LENGTH)  # colours that a page of its own offers


def show_maps(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    colours: Sequence[str],
    placed: Mapping[str, PlacedSentence],
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
    found: PlacedSentence | None,
) -> _Drawing:
    n, drawn, within = corpus.corpus.n_texts, looked.drawn, looked.within
    by = colour_of(colour, corpus, shown, maps)
    sentence: str = st.session_state.get(SENTENCE, "")
    lands, near_it = [], []
    if found is not None and found.position is not None:
        lands = [(sentence, found.position[0])]
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
        by.select(drawn) if len(drawn) < n else by,
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
            lambda rows: select(Selection.from_rows(np.array(rows, np.int64), n), "selected"),
            hovered if n > MOST_SENT else "ignore",
        )
    else:
        handlers = Handlers(
            clicked,
            hover=hovered,
            areas=lambda areas: select(Selection.from_mask(shown.grid.inside(areas)), "selected"),
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


def _explain_star(shown: OpenMap, found: PlacedSentence | None) -> None:
    """Say so where a sentence lies far from the texts that are nearest to it."""
    if found is None or found.position is None:
        return
    points, near = shown.coordinates, found.near.first(K).indices[0]
    if shown.is_large:  # a sample says as much
        some = drawn_rows(len(points))
        points, near = points[np.concatenate([near, some])], np.arange(len(near))
    if is_apart(found.position[0], points, near):
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
                {options[one]: colour_of(one, corpus, shown, maps).select(drawn) for one in wanted},
                shown.clusters_named,
                shown.axes,
            )
        )
    about = about_maps(corpus, maps, len(drawn))
    return map_page(pages, corpus.texts_at(drawn), about)


def _describe(shown: OpenMap) -> str:
    settings = shown.kept.settings
    return REDUCERS[settings.reducer] + " 3-D" * (settings.dimensions == 3)
