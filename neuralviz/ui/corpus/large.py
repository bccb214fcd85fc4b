"""Maps of large corpora: the part that is looked at, some of its points, and words on both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.maps.point_grid import Window
from neuralviz.maps.selection import Selection
from neuralviz.plots.corpus_map import MOST_DRAWN
from neuralviz.plots.large_map import (
    BESIDE,
    DENSITY_BINS,
    LargePoints,
    large_map_figure,
    large_points,
)
from neuralviz.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from neuralviz.plots.corpus_map import Standout
    from neuralviz.plots.point_colours import PointColour
    from neuralviz.ui.corpus.kept import OpenMap

WINDOWS = "corpus-windows"  # where the session keeps what is looked at, by the id of the map
MOST_BESIDE = 2000  # selected texts, all of which are drawn
AROUND = 0.5  # of a window, beyond each of its sides: density that is there when it is moved

Sides = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class LargeView:
    """What is drawn of a large map.

    Attributes:
        points: some of those in a window that a filter lets through, and the density of all.
        n: of which they are some.
        sides: of the window: left, right, bottom, top; None for the whole map.
    """

    points: LargePoints
    n: int
    sides: Sides | None

    @property
    def rows(self) -> np.ndarray:
        """[drawn] row numbers of the points in the order of their columns."""
        return self.points.columns.rows


def look_at(open_map: OpenMap, sides: tuple[float, ...] | None) -> None:
    """Look at a part of a map; at the whole if there are no sides, or none that bound a part."""
    windows: dict[str, Window] = st.session_state.setdefault(WINDOWS, {})
    windows.pop(open_map.kept.id, None)
    if sides is not None and len(sides) == len(_sides(open_map.grid.bounds)):
        try:
            windows[open_map.kept.id] = Window(*sides)
        except ValueError:
            return


def select_view(
    open_map: OpenMap, option: str, colour: PointColour, within: np.ndarray | None
) -> LargeView:
    """What is drawn of the part of a map that is looked at.

    Args:
        open_map: the map.
        option: names the colour.
        colour: of all points.
        within: [text] whether a filter lets them through; None where all are.
    """
    window: Window | None = st.session_state.get(WINDOWS, {}).get(open_map.kept.id)

    def make() -> LargeView:
        grid = open_map.grid
        part = None if window is None or window.holds(grid.bounds) else window
        rows, n = grid.sample(part, MOST_DRAWN, within)
        counts, covered = grid.counts(part and part.grown(AROUND), DENSITY_BINS)
        points = large_points(
            open_map.coordinates[rows],
            rows,
            colour.of(rows),
            counts,
            _sides(covered),
            everywhere=colour,
            axes=open_map.axes,
        )
        return LargeView(points, n, None if window is None else _sides(window))

    passed = None if within is None else Selection.of_mask(within).digest
    return open_map.view((window, option, passed), make)


def draw_background(
    open_map: OpenMap, view: LargeView, title: str, standout: Standout, chosen: Selection | None
) -> go.Figure:
    """A map without its points.

    Args:
        open_map: the map.
        view: what is drawn of it.
        title: plain text.
        standout: what stands out.
        chosen: texts that are selected.
    """
    row = standout.highlighted
    extra = None
    if chosen is not None and len(chosen) <= MOST_BESIDE:
        rows = np.setdiff1d(chosen.rows(), view.rows)
        extra = rows, open_map.coordinates[rows]
    return large_map_figure(
        view.points,
        title=title,
        bounds=_sides(open_map.grid.bounds),
        selected=None if chosen is None else chosen.at(view.rows),
        beside=extra,
        highlighted=None if row is None else open_map.coordinates[row],
        standout=standout,
        axes=open_map.axes,
        uirevision=open_map.kept.id,
    )


def _sides(window: Window) -> Sides:
    return window.left, window.right, window.bottom, window.top


def describe_fit(maps: Sequence[OpenMap]) -> str:
    """Of how many texts the maps were made, and how good neighbours are; plain text."""
    n = maps[0].corpus.n_texts
    sentences = []
    for open_map in maps:
        name = "The map" if len(maps) == 1 else f"The map by {open_map.label}"
        fitted = open_map.kept.n_fitted
        recall = open_map.kept.recall
        sentence = ""
        if fitted is not None and fitted < n:
            sentence = f"{name} was fitted on {fitted:,} of {n:,} texts"
        if recall is not None:
            neighbours_note = (
                f"neighbours are approximate ({percent(recall)} of the 10 nearest found)"
            )
            sentence = (
                f"{sentence}; {neighbours_note}" if sentence else f"{name}: {neighbours_note}"
            )
        if sentence:
            sentences.append(f"{sentence}.")
    return " ".join(sentences)


def describe_points(
    open_map: OpenMap, view: LargeView | None, n_drawn: int, *, with_extra: bool = False
) -> str:
    """What the points and the shades of a map are.

    Args:
        open_map: the map.
        view: what is drawn of it; None in three dimensions.
        n_drawn: points.
        with_extra: whether selected texts are drawn that are not among them.
    """
    if view is None:
        return (
            f"Points: a random sample of {n_drawn:,} of {open_map.corpus.n_texts:,} texts. "
            "Lists and searches cover all of them."
        )
    place = "" if view.sides is None else " in this part"
    if n_drawn == view.n:
        sentences = [f"Points: all {view.n:,} texts{place}."]
    else:
        sentences = [f"Points: a random sample of {n_drawn:,} of the {view.n:,} texts{place}."]
    if with_extra:
        sentences.append("Yellow: selected texts that are not in the sample.")
    sentences.append("Grey shades: how many of all texts lie there (log scale).")
    if n_drawn < view.n:
        sentences.append("Zoom in to see more. A lasso selects all texts within it, drawn or not.")
    return " ".join(sentences)


def has_extra_points(figure: go.Figure) -> bool:
    """Whether selected texts that are not among its points are drawn in a figure."""
    return any(trace.name == BESIDE for trace in figure.data)
