"""Draws the maps, and handles clicks, hovering and selections on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.filtering import Selection
from neuralviz.maps.neighbourhoods import is_apart
from neuralviz.maps.settings import REDUCERS
from neuralviz.plots.corpus_map import Standout, drawn_rows, even_out, map_figure
from neuralviz.plots.map_page import PageMap, map_page
from neuralviz.store.writing import BYTE_ORDER_MARK, table_bytes
from neuralviz.ui.corpus import large
from neuralviz.ui.corpus.colours import CLUSTERS, LENGTH, K, colour_options, find_colour
from neuralviz.ui.corpus.provenance import about_maps
from neuralviz.ui.corpus.selecting import (
    HOVERED,
    ROW,
    SENTENCE,
    choose_row,
    current_selection,
    select,
)
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

MOST_SENT = 5_000  # texts of a corpus; the points of a larger one reach the browser without texts
HEIGHTS = {1: 560, 2: 460}  # px, by how many maps there are
IN_PAGE = ("label:", "number:", CLUSTERS, LENGTH)  # ways to colour that a downloaded page offers


def show_maps(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    colours: Sequence[str],
    placed: Mapping[str, PlacedSentence],
    within: np.ndarray | None,
    *,
    named: bool,
) -> None:
    """Show the maps side by side, with one selection on all of them.

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
        if fitted := large.describe_fit(maps):
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
    visible = _Visible(drawn, within, named)
    figures = [
        _draw_figure(corpus, maps, open_map, colour, visible, placed.get(open_map.kept.id))
        for open_map, colour in zip(maps, colours, strict=True)
    ]
    even_out([drawing.figure for drawing in figures])
    places = enumerate(zip(st.columns(len(maps)), maps, figures, strict=True))
    for place, (column, open_map, drawing) in places:
        with column:
            _show_map(corpus, maps, colours, open_map, drawing, place)
            _explain_star(open_map, placed.get(open_map.kept.id))


@dataclass(frozen=True, eq=False)
class _Visible:
    """Which texts all maps draw: their rows, the filter's mask, and whether clusters are named."""

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


def _draw_figure(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    open_map: OpenMap,
    colour: str,
    visible: _Visible,
    placement: PlacedSentence | None,
) -> _Drawing:
    n, drawn, within = corpus.corpus.n_texts, visible.drawn, visible.within
    point_colour = find_colour(colour, corpus, open_map, maps)
    sentence: str = st.session_state.get(SENTENCE, "")
    lands, near_it = [], []
    if placement is not None and placement.position is not None:
        lands = [(sentence, placement.position[0])]
        near_it = [open_map.coordinates[placement.near.first(K).indices[0]]]
    row = st.session_state.get(ROW)
    row = row if row is not None and row < n else None
    # one set of lines at a time: those of two points look the same
    near = None if row is None or lands else open_map.near(row, K)
    chosen = current_selection(n, within)
    title = f"{open_map.label} · {_describe_projection(open_map)}"
    is_in_columns = corpus.is_large and open_map.coordinates.shape[1] == 2
    standout = Standout(
        None if chosen is None or is_in_columns else chosen.rows(),
        row,
        None if near is None else open_map.coordinates[near.indices[0]],
        lands,
        near_it,
        open_map.clusters_named if visible.named else (),
    )
    if is_in_columns:
        view = large.select_view(open_map, colour, point_colour, within)
        figure = large.draw_background(open_map, view, title, standout, chosen)
        return _Drawing(figure, view.rows, view)
    figure = map_figure(
        open_map.coordinates[drawn],
        drawn,
        point_colour.select(drawn) if len(drawn) < n else point_colour,
        title=title,
        standout=standout,
        texts=corpus.texts_at(drawn) if n <= MOST_SENT else None,
        within=None if within is None else within[drawn],
        axes=open_map.axes,
        uirevision=open_map.kept.id,
    )
    return _Drawing(figure, drawn if within is None else drawn[within[drawn]])


def _show_map(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    colours: Sequence[str],
    open_map: OpenMap,
    drawing: _Drawing,
    place: int,
) -> None:
    n, view = corpus.corpus.n_texts, drawing.view

    def handle_click(click: dict[str, Any]) -> None:
        if click["customdata"] is not None:
            choose_row(click["customdata"])

    def handle_hover(row: int) -> None:
        if row != st.session_state.get(ROW):  # not where the pointer rests on the clicked point
            st.session_state[HOVERED] = int(row)

    def export_points(ending: str) -> bytes:
        table = corpus_table(corpus.store, corpus.corpus, open_map.embedder, open_map.kept)
        mark = BYTE_ORDER_MARK.encode() if ending == ".csv" else b""  # for spreadsheets
        return mark + table_bytes(ending, table)

    def export_numbers() -> pd.DataFrame:
        rows = drawing.rows if corpus.is_large else None
        return corpus_table(corpus.store, corpus.corpus, None, open_map.kept, rows).to_pandas()

    if view is None:
        handlers = Handlers(
            handle_click,
            lambda rows: select(Selection.from_rows(np.array(rows, np.int64), n), "selected"),
            handle_hover if n > MOST_SENT else "ignore",
        )
    else:
        handlers = Handlers(
            handle_click,
            hover=handle_hover,
            areas=lambda areas: select(
                Selection.from_mask(open_map.plane.inside(areas)), "selected"
            ),
            window=lambda sides: large.look_at(open_map, sides),
        )
    downloads = [
        Download(f"Points and embeddings ({name})", partial(export_points, f".{ending}"), ending)
        for name, ending in (("Parquet", "parquet"), ("CSV", "csv"))
    ]
    show_figure(
        drawing.figure,
        key=f"corpus-map-{place}",
        numbers=export_numbers,
        name=f"{corpus.corpus.name} {open_map.label}",
        height=HEIGHTS[len(maps)],
        alt=f"Map by {open_map.label}",
        handlers=handlers,
        provenance=about_maps(corpus, [open_map], len(drawing.rows)),
        page=lambda: _make_page(corpus, maps, colours, drawing.rows),
        downloads=() if corpus.is_large else downloads,
        columns=None if view is None else view.points.columns,
        window=None if view is None else view.sides,
    )
    if corpus.is_large:
        with_extra = large.has_extra_points(drawing.figure)
        st.caption(large.describe_points(open_map, view, len(drawing.rows), with_extra=with_extra))
    for note in open_map.kept.notes:
        st.caption(plain(note))


def _explain_star(open_map: OpenMap, placement: PlacedSentence | None) -> None:
    """Explain it where a sentence's star lies far from its nearest texts."""
    if placement is None or placement.position is None:
        return
    points, near = open_map.coordinates, placement.near.first(K).indices[0]
    if open_map.is_large:  # a sample says as much
        sample = drawn_rows(len(points))
        points, near = points[np.concatenate([near, sample])], np.arange(len(near))
    if is_apart(placement.position[0], points, near):
        st.caption(
            "The star lies away from the sentence's nearest texts, to which the lines lead: a map "
            "keeps only some neighbours together. The list below is by embedding."
        )


def _make_page(
    corpus: OpenCorpus, maps: Sequence[OpenMap], colours: Sequence[str], drawn: np.ndarray
) -> str:
    """A standalone page with all shown maps, each with its chosen colours at first."""
    options = colour_options(corpus, maps)
    pages = []
    for first, open_map in zip(colours, maps, strict=True):
        portable = (option for option in options if option.startswith(IN_PAGE))
        page_options = dict.fromkeys([first, *portable])
        pages.append(
            PageMap(
                f"{open_map.label} · {_describe_projection(open_map)}",
                open_map.coordinates[drawn],
                {
                    options[option]: find_colour(option, corpus, open_map, maps).select(drawn)
                    for option in page_options
                },
                open_map.clusters_named,
                open_map.axes,
            )
        )
    description = about_maps(corpus, maps, len(drawn))
    return map_page(pages, corpus.texts_at(drawn), description)


def _describe_projection(open_map: OpenMap) -> str:
    settings = open_map.kept.settings
    return REDUCERS[settings.reducer] + " 3-D" * (settings.dimensions == 3)
