"""Figures of what makes two texts similar."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.plots.theme import (
    BARE,
    TOP_DOWN,
    cell_labels,
    cells,
    draw,
    escape,
    name_axis,
    shorten,
    symmetric_range,
)
from neuralviz.words import number

if TYPE_CHECKING:
    import plotly.graph_objects as go

NAME_LENGTH = 18  # characters of a word or sentence
LINE_LENGTH = 11
TOTAL = "sum"  # the name of the last column
MOST_VALUES = 12  # words side by side with room for numbers


def words_figure(names: Sequence[str], sums: Mapping[str, np.ndarray], title: str) -> go.Figure:
    """What each word adds to the cosine, a row a method, whose colours span its own range.

    ``sums`` are [word]; the last column is their total, without a colour.
    """
    words = np.array(list(sums.values()))
    names, values = [*names, TOTAL], np.c_[words, words.sum(axis=1)]
    shares = np.array([row / symmetric_range(row)[1] for row in words])
    methods = list(map(escape, sums))
    labels = cell_labels(values) if len(names) <= 2 * MOST_VALUES else {}
    written = [[number(value, "+.3f") for value in row] for row in values]
    hovered = np.dstack([np.tile(list(map(escape, names)), (len(values), 1)), written])
    matrix = cells(
        np.c_[shares, np.zeros(len(shares))],
        np.arange(len(names)),
        methods,
        "%{y}: “%{customdata[0]}” adds %{customdata[1]}",
        (-1, 1),
        customdata=hovered,
        showscale=False,
        xgap=2,
        ygap=4,
        **labels,
    )
    columns = [re.sub(r"^(\d+)\. .*", r"\1", name) for name in names]  # sentences by number
    across = name_axis(columns, NAME_LENGTH, autotickangles=[0, -45, -90], ticks="", **BARE)
    if len(names) <= MOST_VALUES:  # sentences take two lines
        lines = [textwrap.wrap(shorten(name, NAME_LENGTH), LINE_LENGTH) for name in names]
        across["ticktext"] = ["<br>".join(map(escape, name[:2])) for name in lines]
    return draw([matrix], title, across, {**BARE, **TOP_DOWN, "type": "category", "ticks": ""})


def pairs_figure(
    first: Sequence[str], second: Sequence[str], contributions: np.ndarray, title: str
) -> go.Figure:
    """What each pair of words, or other parts of two vectors, adds to the cosine, as a matrix.

    ``contributions`` are [first, second].
    """
    labels = cell_labels(contributions) if len(second) <= MOST_VALUES else {}
    hovered = [[[escape(a), escape(b)] for b in second] for a in first]
    matrix = cells(
        contributions,
        np.arange(len(second)),
        np.arange(len(first)),
        "“%{customdata[0]}” with “%{customdata[1]}” adds %{z:+.3f}",
        symmetric_range(contributions),
        customdata=np.array(hovered, dtype=object),
        colorbar={"title": {"text": "adds to the cosine", "side": "right"}},
        **labels,
    )
    across = name_axis(second, NAME_LENGTH, autotickangles=[0, -45, -90], ticks="", **BARE)
    down = name_axis(first, NAME_LENGTH, ticks="", **BARE, **TOP_DOWN)
    return draw([matrix], title, across, down)
