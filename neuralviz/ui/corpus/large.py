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
    DENSITY_BINS,
    UNDRAWN_SELECTION,
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


def look_at(shown: OpenMap, sides: tuple[float, ...] | None) -> None:
    """Look at a part of a map; at the whole if there are no sides, or none that bound a part."""
    windows: dict[str, Window] = st.session_state.setdefault(WINDOWS, {})
    windows.pop(shown.kept.id, None)
    if sides is not None and len(sides) == len(_sides(shown.grid.bounds)):
        left, right, bottom, top = sides
        try:
            windows[shown.kept.id] = Window(left, right, bottom, top)
        except ValueError:
            return


def view_of(
    shown: OpenMap, option: str, colour: PointColour, within: np.ndarray | None
) -> LargeView:
    """What is drawn of the part of a map that is looked at.

    Args:
        shown: the map.
        option: names the colour.
        colour: of all points.
        within: [text] whether a filter lets them through; None where all are.
    """
    window: Window | None = st.session_state.get(WINDOWS, {}).get(shown.kept.id)

    def make() -> LargeView:
        grid = shown.grid
        seen = None if window is None or window.holds(grid.bounds) else window
        rows, n = grid.sample(seen, MOST_DRAWN, within)
        counts, covered = grid.counts(seen and seen.grown(AROUND), DENSITY_BINS)
        points = large_points(
            shown.coordinates[rows],
            rows,
            colour.select(rows),
            counts,
            _sides(covered),
            everywhere=colour,
            axes=shown.axes,
        )
        return LargeView(points, n, None if window is None else _sides(window))

    passed = None if within is None else Selection.from_mask(within).digest
    return shown.view((window, option, passed), make)


def figure_of(
    shown: OpenMap, view: LargeView, title: str, standout: Standout, chosen: Selection | None
) -> go.Figure:
    """A map without its points.

    Args:
        shown: the map.
        view: what is drawn of it.
        title: plain text.
        standout: what stands out.
        chosen: texts that are selected.
    """
    row = standout.highlighted
    beside = None
    if chosen is not None and len(chosen) <= MOST_BESIDE:
        rows = np.setdiff1d(chosen.rows(), view.rows)
        beside = rows, shown.coordinates[rows]
    return large_map_figure(
        view.points,
        title=title,
        bounds=_sides(shown.grid.bounds),
        selected=None if chosen is None else chosen.is_selected(view.rows),
        undrawn=beside,
        highlighted=None if row is None else shown.coordinates[row],
        standout=standout,
        axes=shown.axes,
        uirevision=shown.kept.id,
    )


def _sides(window: Window) -> Sides:
    return window.left, window.right, window.bottom, window.top


def fitted_in_words(maps: Sequence[OpenMap]) -> str:
    """Of how many texts the maps were made, and how good neighbours are; plain text."""
    n = maps[0].corpus.n_texts
    said = []
    for shown in maps:
        name = "The map" if len(maps) == 1 else f"The map by {shown.label}"
        fitted = shown.kept.n_fitted
        recall = shown.kept.recall
        sentence = ""
        if fitted is not None and fitted < n:
            sentence = f"{name} was fitted on {fitted:,} of {n:,} texts"
        if recall is not None:
            found = f"neighbours are approximate ({percent(recall)} of the 10 nearest found)"
            sentence = f"{sentence}; {found}" if sentence else f"{name}: {found}"
        if sentence:
            said.append(f"{sentence}.")
    return " ".join(said)


def drawn_in_words(
    shown: OpenMap, view: LargeView | None, n_drawn: int, *, beside: bool = False
) -> str:
    """What the points and the shades of a map are.

    Args:
        shown: the map.
        view: what is drawn of it; None in three dimensions.
        n_drawn: points.
        beside: whether selected texts are drawn that are not among them.
    """
    if view is None:
        return (
            f"Points: a random sample of {n_drawn:,} of {shown.corpus.n_texts:,} texts. Lists and "
            "searches cover all of them."
        )
    where = "" if view.sides is None else " in this part"
    if n_drawn == view.n:
        said = [f"Points: all {view.n:,} texts{where}."]
    else:
        said = [f"Points: a random sample of {n_drawn:,} of the {view.n:,} texts{where}."]
    if beside:
        said.append("Yellow: selected texts that are not in the sample.")
    said.append("Grey shades: how many of all texts lie there (log scale).")
    if n_drawn < view.n:
        said.append("Zoom in to see more. A lasso selects all texts within it, drawn or not.")
    return " ".join(said)


def has_beside(figure: go.Figure) -> bool:
    """Whether selected texts that are not among its points are drawn in a figure."""
    return any(trace.name == UNDRAWN_SELECTION for trace in figure.data)
