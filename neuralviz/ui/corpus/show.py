"""The maps of a corpus: their colours, figures, clicks and downloads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.maps.kept import corpus_table
from neuralviz.maps.map_points import Selection, Window
from neuralviz.maps.neighbours import K, label_agreement
from neuralviz.maps.opened import OpenMap
from neuralviz.plots.corpus_map import (
    DENSITY_BINS,
    MOST_DRAWN,
    LargePoints,
    PointColour,
    Standout,
    colour_by_number,
    colour_points,
    describe_maps,
    drawn_rows,
    even_out,
    large_map_figure,
    large_points,
    list_page_colours,
    map_figure,
    page_of_maps,
)
from neuralviz.store.writing import BYTE_ORDER_MARK, table_bytes
from neuralviz.ui.corpus.lists import share_neighbours
from neuralviz.ui.corpus.search import SENTENCE, MapView, choose_row, hover_row, select
from neuralviz.ui.figures import Download, Handlers, show_figure
from neuralviz.ui.page import plain
from neuralviz.words import percent

MOST_SENT = 5_000  # texts of a corpus; the points of a larger one reach the browser without texts
HEIGHTS = {1: 560, 2: 460}  # px, by how many maps there are
WINDOWS = "corpus-windows"  # session state: the visible part, by the id of the map
MOST_BESIDE = 2000  # selected texts; a larger selection is drawn only within the sample
AROUND = 0.5  # of a window, beyond each side: density that is drawn before the window moves

COMMON = "common"
LOSSES = {"first-loss": "Loss before micro-tuning", "last-loss": "Loss after micro-tuning"}


# --- colours -------------------------------------------------------------------------------------


def list_colours(maps: Sequence[OpenMap]) -> dict[str, str]:
    """Names of ways to colour points, by key; fewer for a large corpus."""
    corpus = maps[0].corpus
    options = list_page_colours(corpus)
    if corpus.is_large:
        return options
    k = min([K, *(open_map.neighbours.k for open_map in maps)])
    options |= {
        f"agreement:{name}": f"Share of {k} neighbours with the same {name}"
        for name in corpus.label_names
    }
    if any(open_map.spec.learns and np.isfinite(open_map.losses).any() for open_map in maps):
        options |= LOSSES
    if len(maps) > 1:
        options[COMMON] = f"Neighbours shared by both maps (of {k})"
    return options


def find_colour(view: MapView, option: str, open_map: OpenMap) -> PointColour:
    key = (option, *(drawn_map.kept.id for drawn_map in view.maps if option == COMMON))
    return open_map.recent.get(key, lambda: _make_colour(view, option, open_map))


def _make_colour(view: MapView, option: str, open_map: OpenMap) -> PointColour:
    corpus = view.corpus
    kind, _, name = option.partition(":")
    if kind == "agreement":
        labels = corpus.labels_at(name, np.arange(corpus.n_texts)).tolist()
        shares = label_agreement(open_map.neighbours, labels, K)
        return colour_by_number(f"neighbours with the same {name}", shares)
    if kind in LOSSES:
        return colour_by_number("loss, nats", open_map.losses[:, list(LOSSES).index(kind)])
    if kind == COMMON and (shared := share_neighbours(view)) is not None:
        return colour_by_number("shared neighbours", shared.shares)
    return colour_points(open_map, option)


# --- figures -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Drawing:
    figure: go.Figure
    rows: np.ndarray  # of its points
    # of a large map, which is drawn by parts:
    points: LargePoints | None = None  # a sample of the points in a window
    n: int = 0  # number of all points in the window that the filter shows
    window: Window | None = None  # None for the whole map


def show_maps(view: MapView) -> None:
    """Show the maps side by side with one selection on all."""
    n = view.corpus.n_texts
    drawn = drawn_rows(n)
    if view.corpus.is_large:
        st.caption(plain(" ".join(map(_describe_recall, view.maps))))
    elif len(drawn) < n:
        st.caption(
            f"The map shows a random sample of {len(drawn):,} of the {n:,} texts. Lists and "
            "searches cover all of them."
        )
        help_ = "Drawing all points takes longer."
        if st.toggle(f"Draw all {n:,} points", key="corpus-all", help=help_):
            drawn = np.arange(n)
    drawings = []
    for open_map, option in zip(view.maps, view.colours, strict=True):
        standout, colour = _find_standout(view, open_map), find_colour(view, option, open_map)
        if open_map.is_drawn_by_parts:
            drawings.append(_draw_large(view, open_map, option, colour, standout))
        else:
            drawings.append(_draw(view, open_map, colour, standout, drawn))
    even_out([drawing.figure for drawing in drawings])
    for place, (column, open_map) in enumerate(view.columns()):
        with column:
            _show_map(view, open_map, drawings[place], place)


def _find_standout(view: MapView, open_map: OpenMap) -> Standout:
    """What stands out on a map: the selection, the chosen text, a placed sentence, names."""
    points, row, chosen = open_map.coordinates, view.chosen_row, view.selection
    placement, placed = view.placed.get(open_map.kept.id), None
    # one set of lines at a time: those of two points look the same
    near = None if row is None else open_map.near(row, K)
    if placement is not None and placement.position is not None:
        placed = st.session_state.get(SENTENCE, ""), placement.position[0]
        near = placement.near.first(K)
    return Standout(
        None if chosen is None or open_map.is_drawn_by_parts else chosen.rows(),
        row,
        placed,
        None if near is None else points[near.indices[0]],
        open_map.named_clusters if view.has_names else (),
    )


def _draw(
    view: MapView, open_map: OpenMap, colour: PointColour, standout: Standout, drawn: np.ndarray
) -> _Drawing:
    n = view.corpus.n_texts
    figure = map_figure(
        open_map.coordinates[drawn],
        drawn,
        colour.select(drawn) if len(drawn) < n else colour,
        title=open_map.title,
        standout=standout,
        texts=view.corpus.texts_at(drawn) if n <= MOST_SENT else None,
        within=None if view.within is None else view.within[drawn],
        axes=open_map.axes,
        uirevision=open_map.kept.id,
    )
    return _Drawing(figure, view.filter_rows(drawn))


def _draw_large(
    view: MapView, open_map: OpenMap, option: str, colour: PointColour, standout: Standout
) -> _Drawing:
    """The visible part of a large map without its points, which the browser gets as columns."""
    plane = open_map.plane
    window: Window | None = st.session_state.get(WINDOWS, {}).get(open_map.kept.id)

    def make() -> tuple[LargePoints, int]:
        part = None if window is None or window.holds(plane.bounds) else window
        rows, n = plane.sample(part, MOST_DRAWN, view.within)
        counts, covered = plane.counts(part and part.grown(AROUND), DENSITY_BINS)
        places, look = open_map.coordinates[rows], colour.select(rows)
        sides = astuple(covered)
        axes = open_map.axes
        return large_points(places, rows, look, counts, sides, axes=axes), n

    passed = None if view.within is None else Selection(view.within).digest
    points, n = open_map.recent.get((window, option, passed), make)
    rows, undrawn, chosen = points.rows, None, view.selection
    if chosen is not None and len(chosen) <= MOST_BESIDE:
        missing = np.setdiff1d(chosen.rows(), rows)
        undrawn = missing, open_map.coordinates[missing]
    row = standout.highlighted
    figure = large_map_figure(
        points,
        title=open_map.title,
        bounds=astuple(plane.bounds),
        selected=None if chosen is None else chosen.mask[rows],
        undrawn=undrawn,
        highlighted=None if row is None else open_map.coordinates[row],
        standout=standout,
        axes=open_map.axes,
        uirevision=open_map.kept.id,
    )
    return _Drawing(figure, rows, points, n, window)


def _look_at(open_map: OpenMap, sides: tuple[float, ...] | None) -> None:
    """Show a part of a map; the whole map if ``sides`` is None or bounds no part."""
    windows: dict[str, Window] = st.session_state.setdefault(WINDOWS, {})
    windows.pop(open_map.kept.id, None)
    if sides is not None and len(sides) == 4:
        with suppress(ValueError):
            windows[open_map.kept.id] = Window(*sides)


# --- a map on the page ---------------------------------------------------------------------------


def _show_map(view: MapView, open_map: OpenMap, drawing: _Drawing, place: int) -> None:
    corpus = view.corpus
    store, kept, n = corpus.store, corpus.corpus, corpus.n_texts

    def choose(click: dict[str, Any]) -> None:
        if click["customdata"] is not None:
            choose_row(click["customdata"])

    def select_rows(rows: list[int]) -> None:
        select(Selection.from_rows(np.array(rows, np.int64), n), "selected")

    def select_areas(areas: list[np.ndarray]) -> None:
        select(Selection(open_map.plane.inside(areas)), "selected")

    def export_points(ending: str) -> bytes:
        table = corpus_table(store, kept, open_map.embedder, open_map.kept)
        mark = BYTE_ORDER_MARK.encode() if ending == ".csv" else b""  # for spreadsheets
        return mark + table_bytes(ending, table)

    def export_numbers() -> pd.DataFrame:
        rows = drawing.rows if corpus.is_large else None
        return corpus_table(store, kept, None, open_map.kept, rows).to_pandas()

    handlers = Handlers(choose, select_rows, hover_row if n > MOST_SENT else None)
    if drawing.points is not None:
        window = partial(_look_at, open_map)
        handlers = Handlers(choose, hover=hover_row, areas=select_areas, window=window)
    downloads = [
        Download(f"Points and embeddings ({name})", partial(export_points, f".{ending}"), ending)
        for name, ending in (("Parquet", "parquet"), ("CSV", "csv"))
    ]
    show_figure(
        drawing.figure,
        f"{kept.name} {open_map.label}",
        export_numbers,
        describe_maps([open_map], len(drawing.rows)),
        key=f"corpus-map-{place}",
        height=HEIGHTS[len(view.maps)],
        alt=f"Map by {open_map.label}",
        handlers=handlers,
        page=lambda: _make_page(view, drawing.rows),
        downloads=() if corpus.is_large else downloads,
        columns=drawing.points,
        window=None if drawing.window is None else astuple(drawing.window),
    )
    if corpus.is_large:
        st.caption(_describe_points(n, drawing))
    for note in open_map.kept.notes:
        st.caption(plain(note))


def _make_page(view: MapView, drawn: np.ndarray) -> str:
    """A standalone page of all shown maps, which opens with their chosen colours."""
    options, portable = list_colours(view.maps), list_page_colours(view.corpus)
    colours = [
        {
            options[key]: find_colour(view, key, open_map)
            for key in dict.fromkeys([first, *portable])
        }
        for first, open_map in zip(view.colours, view.maps, strict=True)
    ]
    return page_of_maps(view.maps, colours, drawn)


def _describe_recall(open_map: OpenMap) -> str:
    """The recall of a large map's neighbours."""
    recall = open_map.kept.recall
    note = f"neighbours are approximate ({percent(recall or 0)} of the 10 nearest found)"
    return f"Map by {open_map.label}: {note}." if recall is not None else ""


def _describe_points(n_texts: int, drawing: _Drawing) -> str:
    """What the points and the shades of a large map are."""
    if drawing.points is None:
        drawn, advice = f"{len(drawing.rows):,} of the {n_texts:,} texts", ""
    else:
        part = "" if drawing.window is None else " in this part"
        drawn = f"{len(drawing.rows):,} of the {drawing.n:,} texts{part}"
        advice = " Zoom in to see more. Grey shades: how many of all texts lie there (log scale)."
    return f"Points: {drawn}, at random. Lists and searches cover all of them.{advice}"
