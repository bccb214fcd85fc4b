"""Figures of layers measured on scored pairs of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from neuralviz.layers.settings import POOLING_NAMES, VARIANT_NAMES
from neuralviz.plots.room import spaced_ticks
from neuralviz.plots.theme import (
    BLUE,
    DISSIMILAR,
    GREEN,
    LAYER_COLOURS,
    SMALL_FONT_SIZE,
    escape,
    shorten,
)
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.layers.settings import Variant

_POOLING_LOOKS = {  # all pooled vectors have the same colour, on every page
    "mean": ("solid", "circle"),
    "cls": ("dash", "square"),
    "sep": ("dot", "diamond"),
    "last": ("dashdot", "triangle-up"),
}
_VARIANT_LOOKS = {"authors": ("solid", "circle"), "paper": ("dot", "diamond")}
_HOVERED_CHARACTERS = 70
MAX_KINDS = len(LAYER_COLOURS)


def layer_figure(
    correlations: Mapping[str, Sequence[float]],
    coefficient: str,
    best: tuple[str, int] | None = None,
) -> go.Figure:
    """Correlation with the scores, layer by layer, a line for each pooling.

    Args:
        correlations: pooling to its values at layers 0, 1, …; NaN where there is none.
        coefficient: what the values are, e.g. ``Spearman``.
        best: pooling and layer that are marked.
    """
    figure = go.Figure()
    for pooling, values in correlations.items():
        dash, symbol = _POOLING_LOOKS[pooling]
        figure.add_scatter(
            x=np.arange(len(values)),
            y=values,
            mode="lines+markers",
            name=POOLING_NAMES[pooling],
            line={"color": BLUE, "width": 3, "dash": dash},
            marker={"size": 9, "symbol": symbol},
            hovertemplate="layer %{x}: %{y:.3f}<extra></extra>",
        )
    if best is not None:
        pooling, layer = best
        value = correlations[pooling][layer]
        figure.add_scatter(
            x=[layer],
            y=[value],
            mode="markers+text",
            text=[f"<b>{number(value, '.2f')}</b>"],
            textposition="top center",
            marker={"size": 18, "symbol": "circle-open", "color": BLUE, "line": {"width": 3}},
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    n_layers = max(map(len, correlations.values()), default=1)
    figure.update_layout(
        title="Correlation with human scores by layer",
        xaxis=_whole_numbers("layer", 0, n_layers - 1),
        yaxis={"title": f"{coefficient} (higher is better)", "zeroline": True},
    )
    return figure


def ablation_figure(values: Mapping[str, float], coefficient: str) -> go.Figure:
    """The parts of SBERT-WK as bars, in the order given, the plain mean in the colour of means.

    Args:
        values: part to its correlation; NaN where there is none.
        coefficient: what the values are.
    """
    names = list(values)
    numbers = np.array([values[name] for name in names])
    colours = [BLUE, *[GREEN] * (len(names) - 1)]
    figure = go.Figure(
        go.Bar(
            x=numbers,
            y=[name.replace(", ", ",<br>") for name in names],
            orientation="h",
            marker={"color": colours[: len(names)]},
            text=["undefined" if np.isnan(value) else number(value, ".3f") for value in numbers],
            textposition="auto",
            textfont={"size": SMALL_FONT_SIZE},
            insidetextfont={"color": "white"},
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
        )
    )
    figure.update_layout(
        title="Contribution of each part",
        xaxis={"title": coefficient, "zeroline": True, "nticks": 6},
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": "", "ticklabelstandoff": 6},
        bargap=0.3,
    )
    return figure


def sweep_figure(
    settings: Sequence[int],
    correlations: Mapping[Variant, Sequence[float]],
    *,
    plain: float,
    title: str,
    axis: str,
    coefficient: str,
) -> go.Figure:
    """Correlation over one setting of SBERT-WK, a line for each variant.

    Args:
        settings: values of the setting.
        correlations: variant to its values at the settings.
        plain: correlation of the last layer's mean, drawn for comparison.
        title: of the figure.
        axis: name of the setting.
        coefficient: what the values are.
    """
    figure = go.Figure()
    for variant, values in correlations.items():
        dash, symbol = _VARIANT_LOOKS[variant]
        figure.add_scatter(
            x=list(settings),
            y=values,
            mode="lines+markers",
            name=f"SBERT-WK, {VARIANT_NAMES[variant].lower()}",
            line={"color": GREEN, "width": 3, "dash": dash},
            marker={"size": 9, "symbol": symbol},
            hovertemplate=f"{axis} %{{x}}: %{{y:.3f}}<extra></extra>",
        )
    figure.add_scatter(
        x=[settings[0], settings[-1]],
        y=[plain, plain],
        mode="lines",
        name="mean of the last layer",
        line={"color": BLUE, "width": 2, "dash": "dash"},
        hovertemplate="mean of the last layer: %{y:.3f}<extra></extra>",
    )
    figure.update_layout(
        title=title,
        xaxis=_whole_numbers(axis, settings[0], settings[-1]),
        yaxis={"title": coefficient},
    )
    return figure


def scatter_figure(
    cosines: np.ndarray,
    scores: np.ndarray,
    sentences: Sequence[tuple[str, str]],
    kinds: Sequence[str] | None,
    title: str,
    *,
    axis: str = "cosine similarity",
) -> go.Figure:
    """Scores of pairs against the cosines of their vectors; the pair is named where one points.

    Args:
        cosines, scores: [pair].
        sentences: the two of each pair.
        kinds: a name of each pair's kind; drawn in one colour where there are none or too many.
        title: of the figure.
        axis: what the cosines are called.
    """
    hover = np.array(
        [f"{_quote(first)}<br>{_quote(second)}" for first, second in sentences],
        dtype=object,
    )
    names = list(dict.fromkeys(kinds or ()))
    if not 1 < len(names) <= MAX_KINDS:
        groups = {"pairs": np.ones(len(scores), dtype=bool)}
    else:
        groups = {name: np.array([kind == name for kind in kinds or ()]) for name in names}
    figure = go.Figure()
    for place, (name, chosen) in enumerate(groups.items()):
        figure.add_scatter(
            x=cosines[chosen],
            y=scores[chosen],
            mode="markers",
            name=escape(shorten(name, 24)) or "no kind",
            marker={
                "size": 9,
                "color": LAYER_COLOURS[place] if len(groups) > 1 else DISSIMILAR,
                "opacity": 0.75,
                "symbol": _SYMBOLS[place],
            },
            customdata=hover[chosen],
            hovertemplate=(
                f"%{{customdata}}<br>score %{{y:.3~g}}, {axis} %{{x:.3f}}<extra></extra>"
            ),
        )
    figure.update_layout(
        title=title,
        xaxis={"title": axis, "nticks": 8},
        yaxis={"title": "human score"},
        showlegend=len(groups) > 1,
    )
    return figure


_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


def _quote(sentence: str) -> str:
    return f"“{escape(shorten(sentence, _HOVERED_CHARACTERS))}”"


def _whole_numbers(title: str, first: int, last: int) -> dict:
    """An axis that names whole numbers only, with room for the markers at its ends."""
    room = 0.04 * max(1, last - first)
    return {
        "title": title,
        "range": [first - room, last + room],
        "tickvals": spaced_ticks(range(first, last + 1)),
        "tickformat": "d",
    }
