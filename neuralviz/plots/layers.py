"""Figures of layer dynamics: cosines between layers, SBERT-WK's weights, words, changed blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.colors import sample_colorscale
from plotly.subplots import make_subplots

from neuralviz.layers.settings import POOLING_NAMES, VARIANT_NAMES
from neuralviz.plots.parts import (
    BARE,
    CIVIDIS,
    FEW_COLUMNS,
    GROUND,
    NAMES_OF_BARS,
    TOP_DOWN,
    Trace,
    bar_title,
    cell_labels,
    cell_values,
    cells,
    dots,
    draw,
    label_bars,
    line,
    name_axis,
    number_axis,
)
from neuralviz.plots.theme import (
    BLUE,
    DISSIMILAR,
    GREEN,
    LAYER_COLOURS,
    escape,
    shorten,
    symmetric_range,
)
from neuralviz.words import many, number

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.layers.geometry import FollowedWord
    from neuralviz.layers.settings import Variant

MAX_TOKENS = 60
MAX_WORDS = 80  # lines
TOKEN_HEIGHT = 26  # px
DIMMEST = 0.3  # place along the scale from which its colours are seen on dark pages
_WORD_HEIGHT = 24  # px
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


def _floor_to(value: float, step: float) -> float:
    """``value`` rounded down to a multiple of ``step``."""
    return float(np.floor(value / step + 1e-9) * step)


def _lowest(cosines: np.ndarray, step: float) -> float:
    """Where a scale of cosines begins, so that differences without meaning are not blown up."""
    return min(_floor_to(float(cosines.min()), step), 1 - step)


def cosine_map_figure(cosines: np.ndarray, subject: str) -> go.Figure:
    """[layer, layer] cosines (SBERT-WK, Figure 1 a-d) of a ``subject``, e.g. "token mean"."""
    layers = np.arange(len(cosines))
    hover = "layers %{y} and %{x}<br>cosine %{z:.3f}"
    look = {**CIVIDIS, **cell_values(cosines), **bar_title("cosine")}
    axis = number_axis("layer", layers, constrain="domain", **BARE)
    return draw(
        [cells(cosines, layers, layers, hover, (_lowest(cosines, 0.1), 1.0), **look)],
        f"Cosine between layers: {escape(subject)}",
        axis,
        {**axis, **TOP_DOWN, "scaleanchor": "x"},
    )


def turns_figure(words: Sequence[FollowedWord], named: int, first_layer: int) -> go.Figure:
    """How far the vectors of a text's words turn in every layer, a line a word.

    Args:
        words: the most important first.
        named: so many of them, and the least important, have names; the others are grey.
        first_layer: the first that counts; what lies before it is shaded.
    """
    coloured = dict(zip(range(named), LAYER_COLOURS, strict=False))
    if len(words) > named:
        coloured[len(words) - 1] = LAYER_COLOURS[named]
    grey = [place for place in range(len(words)) if place not in coloured]
    n_steps = len(words[0].turns) if words else 1
    figure = draw(
        [_turns_line(words[i], i, coloured.get(i)) for i in [*grey, *coloured][-MAX_WORDS:]],
        "How far each layer turns a word",
        number_axis("layer", range(1, n_steps + 1), zeroline=False, range=[0.7, n_steps + 0.3]),
        {"title": "cosine (1: no turn)", "zeroline": False},
        showlegend=True,
    )
    if first_layer > 0:
        shade = {"fillcolor": DISSIMILAR, "opacity": 0.12, "line_width": 0}
        figure.add_vrect(x0=0.7, x1=first_layer + 0.5, **shade)
        figure.add_annotation(
            text="does not count", x=0.75, xanchor="left", y=0, yref="paper", yanchor="bottom",
            showarrow=False,
        )  # fmt: skip
    return figure


def _turns_line(word: FollowedWord, place: int, colour: str | None) -> dict[str, Any]:
    name = escape(shorten(word.word, 20))
    return line(
        np.arange(1, len(word.turns) + 1),
        word.turns,
        colour or DISSIMILAR,
        f"{name}, into layer %{{x}}<br>cosine %{{y:.3f}}",
        width=4 if colour else 1.5,
        size=9 if colour else 0,
        name=name,
        opacity=1 if colour else 0.6,
        showlegend=colour is not None,
        legendrank=place + 1,
    )


def diagonals_figure(diagonals: Mapping[int, np.ndarray], subject: str) -> go.Figure:
    """Cosines of layers some steps apart (SBERT-WK, Figure 1 e-h).

    Args:
        diagonals: by offset, [layer - offset] cosines.
    """
    traces = [
        line(
            np.arange(len(values)),
            values,
            colour,
            "layers %{x} and %{customdata}<br>cosine %{y:.3f}",
            name=f"distance {offset}",
            customdata=np.arange(len(values)) + offset,
        )
        for colour, (offset, values) in zip(LAYER_COLOURS, diagonals.items(), strict=False)
    ]
    n = max((len(values) + offset for offset, values in diagonals.items()), default=2)
    return draw(
        traces,
        f"Cosine by layer distance: {escape(subject)}",
        number_axis("earlier layer", range(n - 1), zeroline=False, range=[-0.3, n - 1.7]),
        {"title": "cosine", "zeroline": False},
        showlegend=True,
    )


def weights_figure(
    weights: Mapping[str, np.ndarray], layers: np.ndarray, tokens: Sequence[str]
) -> go.Figure:
    """SBERT-WK's weights of the layers, a row a token, a panel a kind of weight.

    Args:
        weights: by name, [token, layer]; the first 60 tokens are drawn.
    """
    tokens = tokens[:MAX_TOKENS]
    drawn = {name: values[: len(tokens)] for name, values in weights.items()}
    all_weights = np.stack(list(drawn.values()))
    low, high = 0.0, float(all_weights.max())
    if all_weights.min() < 0:
        low, high = symmetric_range(all_weights)
    is_narrow = len(layers) <= FEW_COLUMNS
    figure = make_subplots(
        cols=len(drawn),
        shared_yaxes=True,
        subplot_titles=[f"<b>{name}</b>" for name in drawn],
        horizontal_spacing=0.04,
    )
    for column, (name, values) in enumerate(drawn.items(), 1):
        panel = cells(
            values,
            layers,
            np.arange(len(tokens)),
            f"%{{customdata}}<br>layer %{{x}}<br>{name.lower()} %{{z:.3f}}",
            coloraxis="coloraxis",
            customdata=[[escape(token)] * len(layers) for token in tokens],
            **(cell_labels(values) if is_narrow else {}),
        )
        figure.add_trace(panel, row=1, col=column)
    scale = {"colorscale": "Cividis"} if low >= 0 else {}
    figure.update_xaxes(number_axis("layer", layers, **BARE))
    figure.update_yaxes(name_axis(tokens, 14, **TOP_DOWN, **BARE))
    return figure.update_layout(
        title="Layer weights by token",
        margin={"t": 78},
        height=170 + TOKEN_HEIGHT * len(tokens),
        coloraxis={"cmin": low, "cmax": high, "showscale": not is_narrow, **scale},
    )


def settings_figure(
    cosines: np.ndarray, windows: np.ndarray, layer_starts: np.ndarray, chosen: tuple[int, int]
) -> go.Figure:
    """[window, layer_start] the sentence vector against that at the ``chosen`` ones (Figure 3)."""
    hover = "layer window %{y}, first layer %{x}<br>cosine %{z:.4f}"
    look = {**CIVIDIS, **cell_values(cosines), **bar_title("cosine")}
    figure = draw(
        [cells(cosines, layer_starts, windows, hover, (_lowest(cosines, 0.05), 1.0), **look)],
        "Effect of layer window and first layer",
        number_axis("first layer", layer_starts, **BARE),
        {"title": "layer window", "tickvals": windows, **BARE},
    )
    window, start = chosen
    if window in windows and start in layer_starts:
        corners = {"x0": start - 0.48, "x1": start + 0.48, "y0": window - 0.48, "y1": window + 0.48}
        for width, colour in ((5, "#000000"), (2, "#FFFFFF")):  # seen on every colour
            figure.add_shape(type="rect", **corners, line={"color": colour, "width": width})
    return figure


def omega_figure(omegas: np.ndarray, cosines: np.ndarray, chosen: float) -> go.Figure:
    """[omega] cosines of the sentence vector at other omegas to that at the ``chosen`` one."""
    figure = draw(
        [line(omegas, cosines, GREEN, "omega %{x:.1f}<br>cosine %{y:.4f}")],
        "Effect of omega",
        {"title": "omega (0: novelty only, 1: alignment only)", "zeroline": False},
        {"title": "cosine", "zeroline": False, "range": [_lowest(cosines, 0.05), 1.005]},
    )
    figure.add_vline(x=chosen, line={"dash": "dot", "width": 2, "color": DISSIMILAR})
    return figure


# --- changed blocks ----------------------------------------------------------------------------


def marks_figure(
    norms: np.ndarray,
    kinds: Sequence[str],
    blocks: Sequence[int],
    *,
    measure: str,
    moment: str,
    full_kinds: Sequence[str] | None = None,
) -> go.Figure:
    """The delta of each kind of layer in each block.

    Args:
        norms: [kind, block]; NaN where a block has no such layer.
    """
    finite = norms[np.isfinite(norms)]
    high = float(finite.max(initial=0.0)) or 1.0
    low = min(float(finite.min(initial=high)), 0.9 * high)  # equal changes look equal
    rows = np.arange(len(kinds))
    hover = "block %{x}<br>%{customdata}<br>%{z:.4~g}"
    names = [[escape(kind)] * len(blocks) for kind in full_kinds or kinds]
    look = {**CIVIDIS, **cell_values(norms, _format_two_digits), "customdata": names}
    return draw(
        [cells(norms, list(blocks), rows, hover, (low, high), **look)],
        f"{measure}, {moment}",
        number_axis("block", blocks, **BARE),
        name_axis(kinds, 28, **TOP_DOWN, **BARE),
    )


def block_totals_figure(
    totals: np.ndarray, blocks: Sequence[int], *, measure: str, epochs: int
) -> go.Figure:
    """The delta of each whole block over the epochs.

    Args:
        totals: [epoch, block] after each epoch; NaN where not known.
    """
    traces = [
        line(
            np.arange(epochs + 1),
            np.append(0.0, totals[:, i]),
            colour,
            f"block {block}<br>epoch %{{x}}: %{{y:.4~g}}",
            size=7 if epochs <= 30 else 0,
            name=f"block {block}",
        )
        for i, (block, colour) in enumerate(zip(blocks, _shades(len(blocks)), strict=True))
    ]
    ends = {"range": [-0.04 * epochs, epochs * 1.04], "tickformat": "d"}
    return draw(
        traces,
        "Change of each block by epoch",
        number_axis("epoch", range(epochs + 1), **ends),
        {"title": measure, "rangemode": "tozero"},
        showlegend=1 < len(blocks) <= FEW_COLUMNS,
    )


def _format_two_digits(value: float) -> str:
    """Two digits that count: ``0.034``, ``120``."""
    return np.format_float_positional(value, 2, unique=False, fractional=False, trim="-")


def _shades(n: int) -> list[str]:
    """A colour for each of ``n`` blocks: categories while they are few, else from low to high."""
    if n <= len(LAYER_COLOURS):
        return list(LAYER_COLOURS[:n])
    return sample_colorscale("Viridis", np.linspace(0.3, 0.8, n).tolist())


# --- words of a corpus -------------------------------------------------------------------------


def words_figure(
    words: Sequence[str],
    variance: np.ndarray,
    occurrences: np.ndarray,
    limits: tuple[float, float],
    title: str,
    gap: int | None = None,
) -> go.Figure:
    """Words as dots along the variance of their change from layer to layer, the first at the top.

    Args:
        occurrences: [word] in the corpus; the more, the larger the dot.
        limits: smallest and largest variance among all groups, so that their figures compare.
        gap: number of the word before which a row is left empty.
    """
    rows = np.arange(len(words)) + (np.arange(len(words)) >= gap if gap else 0)
    is_logarithmic = limits[0] > 0 and limits[1] > 4 * limits[0]
    places = DIMMEST + (1 - DIMMEST) * _scale_places(variance, limits, is_logarithmic)
    hovered = [
        [escape(shorten(word, 60)), many(count, "occurrence")]
        for word, count in zip(words, occurrences.tolist(), strict=True)
    ]
    variances = dots(
        variance,
        rows,
        sample_colorscale("Cividis", places.tolist()),
        "%{customdata[0]}: variance %{x:.2~g}<br>%{customdata[1]}",
        size=9 + 3 * np.log10(np.maximum(occurrences, 1)),
        marker={"line": {"width": 1, "color": GROUND}},
        customdata=hovered,
        cliponaxis=False,
    )
    n_rows = len(words) + bool(gap)
    ends = {"range": [n_rows - 0.4, -0.6], "zeroline": False}
    y = name_axis(words, 16, ticklabelstandoff=6, **ends) | {"tickvals": rows}
    x, height = _variance_axis(limits, is_logarithmic), 110 + _WORD_HEIGHT * max(3, n_rows)
    return draw([variances], title, x, y, showlegend=False, height=height)


def _scale_places(
    variance: np.ndarray, limits: tuple[float, float], is_logarithmic: bool
) -> np.ndarray:
    """[word] places between the limits, 0 … 1."""
    scaled = np.log if is_logarithmic else np.asarray
    low, high, values = scaled(limits[0]), scaled(limits[1]), scaled(variance)
    return np.clip((values - low) / (high - low), 0, 1) if high > low else np.full(len(values), 0.5)


def _variance_axis(limits: tuple[float, float], is_logarithmic: bool) -> dict[str, Any]:
    axis = {"title": "variance", "zeroline": False, "nticks": 4}
    if not is_logarithmic:
        room = 0.06 * (limits[1] - limits[0]) or 0.5 * limits[1] or 1.0
        return axis | {"range": [limits[0] - room, limits[1] + room], "tickformat": ".2~g"}
    low, high = np.log10(limits)
    room = 0.06 * (high - low)
    ticks = [
        digit * 10.0**power
        for power in range(int(np.floor(low)), int(np.ceil(high)) + 1)
        for digit in ((1, 2, 5) if high - low < 2 else (1,))
    ]
    written = {"tickvals": ticks, "ticktext": [f"{tick:.4g}" for tick in ticks]}
    return axis | {"type": "log", "range": [low - room, high + room], **written}


# --- scored pairs of sentences ------------------------------------------------------------------


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
