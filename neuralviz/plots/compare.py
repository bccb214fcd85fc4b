"""Figures that compare embeddings of the same texts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.evaluation.similarity import Similarity, rank_differences
from neuralviz.plots.report import About, figure_html, page_html
from neuralviz.plots.theme import (
    CIVIDIS,
    SMALL_FONT_SIZE,
    TOP_DOWN,
    Trace,
    cell_labels,
    cells,
    draw,
    escape,
    even_ticks,
    method_colour,
    shorten,
    symmetric_range,
)
from neuralviz.words import number

if TYPE_CHECKING:
    import plotly.graph_objects as go

MAX_VALUES = 10  # texts; more leave no room for numbers in the cells
MAX_NAMES = 16  # texts; more leave no room for the texts beside their rows
FEW_TEXTS, LARGE_VALUES, SMALL_VALUES = 6, 18, 10  # px of the numbers, equal in all heatmaps
MAX_TICKS, SMALL_TICKS = 9, 12  # of many texts; px of letters where all of up to 16 have one
ROOM_FOR_TEXTS = 640  # px, from which on rows have the texts and not their numbers alone
ROW_HEIGHT, ROOM_AROUND = 21, 110  # px: of a row with its text, of what is around all rows
NAME_LENGTH, LINE_LENGTH = 60, 32
NAMED_GROUPS, GROUP_NAME = 12, 14
NARROWEST = 0.1  # minimum colour range
_TWO_COLUMNS = """
main {display: grid; grid-template-columns: repeat(auto-fill, minmax(min(32rem, 100%), 1fr))}
div {min-width: 0}
"""


def text_names(texts: Sequence[str], labels: Sequence[str] | None = None) -> list[str]:
    """Unique names of texts for hover boxes: number, label and beginning."""
    heads = [""] * len(texts) if labels is None else [f"[{label}] " for label in labels]
    names = []
    for number_, (head, text) in enumerate(zip(heads, texts, strict=True), 1):
        lines = textwrap.wrap(f"{number_}. {shorten(head + text, NAME_LENGTH)}", LINE_LENGTH)
        names.append("<br>".join(map(escape, lines)))
    return names


@dataclass(frozen=True, eq=False)
class Layout:
    """How the texts of a heatmap are arranged."""

    names: Sequence[str]  # [text] from `text_names`, which begin with the texts' numbers
    order: np.ndarray  # [text] numbers of the texts, top to bottom
    groups: Sequence[str] | None = None  # [text] labels that are divided by lines
    pair: tuple[int, int] | None = None  # of texts, framed


def similarity_heatmap(similarity: Similarity, layout: Layout, note: str = "") -> go.Figure:
    """Heatmap of one method's similarities without the diagonal, in all colours.

    On the stage, no pair is framed. A note follows the method in the title.
    """
    products = similarity.products.copy()
    np.fill_diagonal(products, np.nan)
    limits = _colour_range(similarity.of_pairs)
    matrix = _matrix(products, layout, limits, "cosine similarity", ".3f") | CIVIDIS
    matrix["colorbar"] = _bar_below("cosine similarity", limits)
    figure = _draw_matrix(matrix, escape(similarity.method + note), layout)
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    figure.layout.meta |= {"stage": {"shapes": [shape.to_plotly_json() for shape in lines]}}
    return figure


def _colour_range(products: np.ndarray) -> tuple[float, float]:
    """The lowest and highest similarity of two different texts; of one pair, 0 to 1."""
    finite = products[np.isfinite(products)]
    if finite.size < 2:
        return float(finite.min(initial=0)), 1.0
    low, high = float(finite.min()), float(finite.max())
    margin = max(0, NARROWEST - (high - low)) / 2
    return low - margin, min(high + margin, 1.0)


def difference_heatmap(first: Similarity, second: Similarity, layout: Layout) -> go.Figure:
    """How many ranks higher ``first`` puts each pair; similarities differ in range."""
    difference = rank_differences(first, second)
    limits = symmetric_range(difference)
    matrix = _matrix(difference, layout, limits, "ranks", "+.0f")
    first_name, second_name = escape(first.method), escape(second.method)
    title = f"orange: more similar by {first_name}, purple: by {second_name} (in ranks)"
    matrix["colorbar"] = _bar_below(title, limits, least=1)
    title = f"Difference of the ranks by {first_name} and {second_name}"
    if "text" in matrix:
        title = f"Rank of each pair by {first_name} → by {second_name} (1: most similar)"
        ranks = (s.ranks[np.ix_(layout.order, layout.order)] for s in (first, second))
        written = (cell_labels(matrix, "{:,.0f}".format)["text"] for matrix in ranks)
        matrix["text"] = [
            [f"{a}→{b}" * bool(a and b) for a, b in zip(*rows, strict=True)]
            for rows in zip(*written, strict=True)
        ]
    return _draw_matrix(matrix, title, layout)


def _draw_matrix(matrix: Trace, title: str, layout: Layout) -> go.Figure:
    order, pair = layout.order, layout.pair
    n_ticks = MAX_TICKS if len(order) < 100 else MAX_TICKS // 2  # of three digits
    if len(order) <= MAX_NAMES:
        n_ticks = MAX_NAMES
    places = range(0, len(order), max(1, -(-len(order) // n_ticks)))
    x = {
        "type": "category",
        "tickmode": "array",
        "tickangle": 0,
        "showgrid": False,
        "tickvals": list(places),
        "ticktext": [layout.names[order[place]].partition(".")[0] for place in places],
        **({"tickfont": {"size": SMALL_TICKS}} if MAX_TICKS < len(order) <= MAX_NAMES else {}),
    }
    figure = draw([matrix], title, x, {**x, **TOP_DOWN}, meta={})
    if layout.groups is not None:
        _divide(figure, [layout.groups[i] for i in order])
    elif len(order) <= MAX_NAMES:
        figure.layout.meta |= {"from_width": [_name_rows([layout.names[i] for i in order])]}
    place = {int(text): position for position, text in enumerate(order)}
    for a, b in {pair, pair[::-1]} if pair else ():
        corners = {"x0": place[a] - 0.5, "x1": place[a] + 0.5}
        corners |= {"y0": place[b] - 0.5, "y1": place[b] + 0.5}
        frame = {"color": method_colour("neural"), "width": 3}
        figure.add_shape(type="rect", **corners, line=frame)
    return figure


def _name_rows(names: Sequence[str]) -> list[Any]:
    """Texts in place of numbers beside the rows, and the width and height from which on they fit"""
    n_lines = 3 if len(names) <= MAX_VALUES else 1
    lines = [name.split("<br>") for name in names]
    texts = ["<br>".join(name[:n_lines]) + " …" * (len(name) > n_lines) for name in lines]
    changes: dict[str, Any] = {"yaxis.tickvals": list(range(len(names))), "yaxis.ticktext": texts}
    changes["yaxis.tickfont.size"] = SMALL_FONT_SIZE
    n_all = len(names) * max(min(len(name), n_lines) for name in lines)
    return [ROOM_FOR_TEXTS, changes, ROW_HEIGHT * n_all + ROOM_AROUND]


def similarity_page(
    similarities: Sequence[Similarity], labels: Sequence[str] | None, title: str
) -> str:
    """A standalone page with one heatmap per method, each in all colours."""
    names = text_names(similarities[0].texts, labels)
    layout = Layout(names, np.arange(len(names)))
    drawn = [figure_html(similarity_heatmap(part, layout), 640) for part in similarities]
    heatmaps = "".join(f"<div>{part}</div>" for part in drawn)
    return page_html(About(title), f"<style>{_TWO_COLUMNS}</style><main>{heatmaps}</main>")


def _bar_below(title: str, limits: tuple[float, float], least: float = 0) -> dict[str, Any]:
    place = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "thickness": 10}
    return {**place, "title": {"text": title, "side": "bottom"}, **even_ticks(limits, least)}


def _matrix(
    values: np.ndarray, layout: Layout, limits: tuple[float, float], measure: str, written: str
) -> Trace:
    order = layout.order
    named = [layout.names[i] for i in order]
    ordered = values[np.ix_(order, order)].astype(np.float32)
    short_format = written.replace(".3f", ".2f")
    labels = {}
    if len(order) <= MAX_VALUES:
        labels = cell_labels(ordered, lambda value: number(value, short_format))
        labels["textfont"] = {"size": LARGE_VALUES if len(order) <= FEW_TEXTS else SMALL_VALUES}
    hover = f"%{{y}}<br>%{{x}}<br>{measure} %{{z:{written}}}"
    on_stage = {"stage": {"colorbar.title.side": "top"}}  # ticks are beside a large title below
    return cells(ordered, named, named, hover, limits, meta=on_stage, **labels)


def _divide(figure: go.Figure, group_names: Sequence[str]) -> None:
    """Draw lines between groups and name them beside rows; columns keep their numbers."""
    if len(group_names) > MAX_NAMES:
        figure.update_xaxes(showticklabels=False, ticks="")  # their numbers have no order
    starts = [i for i, name in enumerate(group_names) if i == 0 or group_names[i - 1] != name]
    ends = [*starts[1:], len(group_names)]
    middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
    for start in starts[1:]:
        for across, along in (("x", "y"), ("y", "x")):
            places = {f"{across}0": start - 0.5, f"{across}1": start - 0.5,
                      f"{along}0": -0.5, f"{along}1": len(group_names) - 0.5}  # fmt: skip
            figure.add_shape(type="line", line={"color": "#FFFFFF", "width": 2}, **places)
    if len(starts) <= NAMED_GROUPS:
        names = [escape(shorten(group_names[start], GROUP_NAME)) for start in starts]
        figure.update_yaxes(tickvals=middles, ticktext=names, ticks="")
