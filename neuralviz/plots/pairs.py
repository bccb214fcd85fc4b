"""Figures of layers measured on scored pairs of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.layers.settings import POOLING_NAMES, VARIANT_NAMES
from neuralviz.plots.parts import NAMES_OF_BARS, Trace, dots, draw, label_bars, line, number_axis
from neuralviz.plots.theme import BLUE, DISSIMILAR, GREEN, LAYER_COLOURS, escape, shorten
from neuralviz.words import number

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.layers.settings import Variant

_POOLING_LOOKS = {  # all pooled vectors have the same colour, on every page
    "mean": ("solid", "circle"),
    "cls": ("dash", "square"),
    "sep": ("dot", "diamond"),
    "last": ("dashdot", "triangle-up"),
}
_VARIANT_LOOKS = {"authors": ("solid", "circle"), "paper": ("dot", "diamond")}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
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
    """
    traces = []
    for pooling, values in correlations.items():
        dash, symbol = _POOLING_LOOKS[pooling]
        layers = np.arange(len(values))
        name = POOLING_NAMES[pooling]
        values_line = line(layers, values, BLUE, "layer %{x}: %{y:.3f}", dash=dash, name=name)
        traces.append(values_line | {"marker": {"size": 9, "symbol": symbol}})
    if best is not None:
        pooling, layer = best
        traces.append(_ring(layer, correlations[pooling][layer]))
    n_layers = max(map(len, correlations.values()), default=1)
    return draw(
        traces,
        "Correlation with human scores by layer",
        _whole_numbers("layer", 0, n_layers - 1),
        {"title": f"{coefficient} (higher is better)", "zeroline": True},
    )


def _ring(layer: int, value: float) -> dict[str, Any]:
    """A ring around a layer's value, with the value above it."""
    return dots(
        [layer],
        [value],
        BLUE,
        size=18,
        marker={"symbol": "circle-open", "line": {"width": 3}},
        mode="markers+text",
        text=[f"<b>{number(value, '.2f')}</b>"],
        textposition="top center",
        cliponaxis=False,
        showlegend=False,
    )


def ablation_figure(values: Mapping[str, float], coefficient: str) -> go.Figure:
    """The parts of SBERT-WK as bars, in the order given, the plain mean in the colour of means.

    Args:
        values: part to its correlation; NaN where there is none.
    """
    numbers = np.array(list(values.values()))
    parts = label_bars(
        numbers,
        [name.replace(", ", ",<br>") for name in values],
        [BLUE, *[GREEN] * (len(values) - 1)][: len(values)],
        "%{y}: %{x:.3f}",
        ["undefined" if np.isnan(value) else number(value, ".3f") for value in numbers],
    )
    x = {"title": coefficient, "zeroline": True, "nticks": 6}
    return draw([parts], "Contribution of each part", x, NAMES_OF_BARS, bargap=0.3)


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
        plain: correlation of the last layer's mean, drawn for comparison.
    """
    traces = []
    for variant, values in correlations.items():
        dash, symbol = _VARIANT_LOOKS[variant]
        name = f"SBERT-WK, {VARIANT_NAMES[variant].lower()}"
        hover = f"{axis} %{{x}}: %{{y:.3f}}"
        values_line = line(list(settings), values, GREEN, hover, dash=dash, name=name)
        traces.append(values_line | {"marker": {"size": 9, "symbol": symbol}})
    ends, name = [settings[0], settings[-1]], "mean of the last layer"
    look: Trace = {"width": 2, "dash": "dash", "size": 0}
    traces.append(line(ends, [plain, plain], BLUE, f"{name}: %{{y:.3f}}", name=name, **look))
    return draw(traces, title, _whole_numbers(axis, *ends), {"title": coefficient})


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
        kinds: a name of each pair's kind; drawn in one colour where there are none or too many.
    """
    hover = np.array([f"{_quote(a)}<br>{_quote(b)}" for a, b in sentences], dtype=object)
    kinds = kinds or [""] * len(scores)
    names = list(dict.fromkeys(kinds))
    has_kinds = 1 < len(names) <= MAX_KINDS
    groups = {"pairs": np.ones(len(scores), dtype=bool)}
    if has_kinds:
        groups = {name: np.array([kind == name for kind in kinds]) for name in names}
    traces = [
        dots(
            cosines[chosen],
            scores[chosen],
            LAYER_COLOURS[place] if has_kinds else DISSIMILAR,
            f"%{{customdata}}<br>score %{{y:.3~g}}, {axis} %{{x:.3f}}",
            marker={"opacity": 0.75, "symbol": _SYMBOLS[place]},
            name=escape(shorten(name, 24)) or "no kind",
            customdata=hover[chosen],
        )
        for place, (name, chosen) in enumerate(groups.items())
    ]
    x, y = {"title": axis, "nticks": 8}, {"title": "human score"}
    return draw(traces, title, x, y, showlegend=has_kinds)


def _quote(sentence: str) -> str:
    return f"“{escape(shorten(sentence, _HOVERED_CHARACTERS))}”"


def _whole_numbers(title: str, first: int, last: int) -> dict[str, Any]:
    """An axis that names whole numbers only, with room for the markers at its ends."""
    room = 0.04 * max(1, last - first)
    ends = {"range": [first - room, last + room], "tickformat": "d"}
    return number_axis(title, range(first, last + 1), **ends)
