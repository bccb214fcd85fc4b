"""Maps of large corpora: the visible part, a sample of its points, and sentences on both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.maps.filtering import Selection
from neuralviz.maps.map_points import Window
from neuralviz.plots.corpus_map import (
    DENSITY_BINS,
    MOST_DRAWN,
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

WINDOWS = "corpus-windows"  # session state: the visible part, by the id of the map
MOST_BESIDE = 2000  # selected texts; a larger selection is drawn only within the sample
AROUND = 0.5  # of a window, beyond each side: density that is drawn before the window moves

Sides = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class LargeView:
    """The sample of a large map's points that is drawn, and their density.

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
    """Show a part of a map; the whole map if ``sides`` is None or bounds no part."""
    windows: dict[str, Window] = st.session_state.setdefault(WINDOWS, {})
    windows.pop(open_map.kept.id, None)
    if sides is not None and len(sides) == len(_sides(open_map.plane.bounds)):
        try:
            windows[open_map.kept.id] = Window(*sides)
        except ValueError:
            return


def select_view(
    open_map: OpenMap, option: str, colour: PointColour, within: np.ndarray | None
) -> LargeView:
    """The points and the density of the visible part of a map.

    Args:
        open_map: the map.
        option: names the colour.
        colour: of all points.
        within: [text] whether a filter lets them through; None where all are.
    """
    window: Window | None = st.session_state.get(WINDOWS, {}).get(open_map.kept.id)

    def make() -> LargeView:
        plane = open_map.plane
        part = None if window is None or window.holds(plane.bounds) else window
        rows, n = plane.sample(part, MOST_DRAWN, within)
        counts, covered = plane.counts(part and part.grown(AROUND), DENSITY_BINS)
        points = large_points(
            open_map.coordinates[rows],
            rows,
            colour.select(rows),
            counts,
            _sides(covered),
            everywhere=colour,
            axes=open_map.axes,
        )
        return LargeView(points, n, None if window is None else _sides(window))

    passed = None if within is None else Selection.from_mask(within).digest
    return open_map.view((window, option, passed), make)


def draw_background(
    open_map: OpenMap, view: LargeView, title: str, standout: Standout, chosen: Selection | None
) -> go.Figure:
    """The figure of a large map without its points, which the browser gets as columns.

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
        bounds=_sides(open_map.plane.bounds),
        selected=None if chosen is None else chosen.is_selected(view.rows),
        undrawn=extra,
        highlighted=None if row is None else open_map.coordinates[row],
        standout=standout,
        axes=open_map.axes,
        uirevision=open_map.kept.id,
    )


def _sides(window: Window) -> Sides:
    return window.left, window.right, window.bottom, window.top


def describe_fit(maps: Sequence[OpenMap]) -> str:
    """How many texts the maps were fitted on, and the recall of their neighbours; plain text."""
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
    """Sentences on what the points and the shades of a map are.

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
    """Whether a figure also draws selected texts outside its sample."""
    return any(trace.name == UNDRAWN_SELECTION for trace in figure.data)
