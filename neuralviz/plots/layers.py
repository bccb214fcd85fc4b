"""Figures of layer dynamics and SBERT-WK."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.subplots import make_subplots

from neuralviz.layers.settings import POOLING_NAMES, VARIANT_NAMES, Variant, kind_in_words
from neuralviz.plots.theme import (
    BARE,
    BLUE,
    CIVIDIS,
    DISSIMILAR,
    FEW_COLUMNS,
    GREEN,
    LAYER_COLOURS,
    NAMES_OF_BARS,
    NOT_MEASURED,
    TOP_DOWN,
    Trace,
    bar_title,
    bars,
    cell_labels,
    cell_values,
    cells,
    dots,
    draw,
    escape,
    label_bars,
    line,
    name_axis,
    number_axis,
    shorten,
    symmetric_range,
)
from neuralviz.words import choose_format, many, number

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from neuralviz.layers.geometry import FollowedWord

MAX_TOKENS = 60
MAX_WORDS = 80  # lines
TOKEN_HEIGHT = 26  # px
_WORD_HEIGHT = 24  # px
_POOLING_LOOKS = {  # all pooled vectors share one colour
    "mean": ("solid", "circle"),
    "cls": ("dash", "square"),
    "sep": ("dot", "diamond"),
    "last": ("dashdot", "triangle-up"),
}
_VARIANT_LOOKS = {"authors": ("solid", "circle"), "paper": ("dot", "diamond")}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
_HOVERED_CHARACTERS = 70
MAX_KINDS = len(LAYER_COLOURS)


LEAST_RANGE = 0.1  # of cosines in a scale, so that negligible differences look so


def _limits(values: np.ndarray) -> tuple[float, float]:
    """The ends of a scale of cosines; NaN are left out."""
    low, high = (float(end(values)) for end in (np.nanmin, np.nanmax))
    return min(low, high - LEAST_RANGE), high


def cosine_map_figure(cosines: np.ndarray, subject: str) -> go.Figure:
    """[layer, layer] cosines (SBERT-WK, Figure 1 a-d) of a ``subject``, e.g. "token mean".

    The diagonal is grey, and the colours are scaled by the rest.
    """
    layers = np.arange(len(cosines))
    values = np.where(np.eye(len(cosines), dtype=bool), np.nan, cosines)
    hover = "layers %{y} and %{x}<br>cosine %{z:.3f}"
    look = {**CIVIDIS, **cell_values(values), **bar_title("cosine")}
    axis = number_axis("layer", layers, constrain="domain", **BARE)
    limits = _limits(values) if len(cosines) > 1 else (0.0, 1.0)
    return draw(
        [cells(values, layers, layers, hover, limits, **look)],
        f"Cosine between layers: {escape(subject)}",
        axis,
        {**axis, **TOP_DOWN, "scaleanchor": "x"},
        plot_bgcolor=NOT_MEASURED,
    )


def turns_figure(words: Sequence[FollowedWord], named: int, first_layer: int) -> go.Figure:
    """How far each word's vector turns after ``first_layer``; the first ``named`` are coloured."""
    coloured = dict(zip(range(named), LAYER_COLOURS, strict=False))
    grey = [place for place in range(len(words)) if place not in coloured]
    n_steps = len(words[0].turns) if words else 1
    ends = [first_layer + 0.7, n_steps + 0.3]
    drawn = [*grey, *coloured][-MAX_WORDS:]
    traces = [_turns_line(words[i], i, coloured.get(i), first_layer) for i in drawn]
    counted = f" (those before {first_layer + 1} do not count)" * bool(first_layer)
    if grey:
        name = "other words" if len(grey) > 1 else "another word"
        traces[0] |= {"name": name, "showlegend": True}
    return draw(
        traces,
        "How far each layer turns a word",
        number_axis(
            f"layer{counted}", range(first_layer + 1, n_steps + 1), zeroline=False, range=ends
        ),
        {"title": "turn (1: a right angle)", "rangemode": "tozero"},
        showlegend=True,
    )


def _turns_line(word: FollowedWord, place: int, colour: str | None, first_layer: int) -> Trace:
    name, steps = escape(shorten(word.word, 20)), np.arange(first_layer + 1, len(word.turns) + 1)
    hover = f"{name}, into layer %{{x}}<br>turn %{{y:.3f}}"
    look: Trace = {"width": 2, "size": 0, "showlegend": False, "legendgroup": "others"}
    if colour:
        look = {"width": 4, "size": 9, "showlegend": True}
    look |= {"name": name, "legendrank": place + 1}
    return line(steps, word.turns[first_layer:], colour or DISSIMILAR, hover, **look)


def diagonals_figure(diagonals: Mapping[int, np.ndarray], subject: str) -> go.Figure:
    """[layer - offset] cosines of layers, by offset (SBERT-WK, Figure 1 e-h)."""
    hover, traces = "layers %{x} and %{customdata}<br>cosine %{y:.3f}", []
    for colour, (offset, values) in zip(LAYER_COLOURS, diagonals.items(), strict=False):
        look: Trace = {"name": f"distance {offset}", "customdata": np.arange(len(values)) + offset}
        traces.append(line(np.arange(len(values)), values, colour, hover, **look))
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
    """[token, layer] SBERT-WK weights of the first 60 tokens, one panel per name."""
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
    rows, hovered = np.arange(len(tokens)), [[escape(token)] * len(layers) for token in tokens]
    for column, (name, values) in enumerate(drawn.items(), 1):
        hover = f"%{{customdata}}<br>layer %{{x}}<br>{name.lower()} %{{z:.3f}}"
        look: Trace = {"coloraxis": "coloraxis", "customdata": hovered}
        look |= cell_labels(values) if is_narrow else {}
        figure.add_trace(cells(values, layers, rows, hover, **look), row=1, col=column)
    scale = {"colorscale": "Cividis"} if low >= 0 else {}
    figure.update_xaxes(number_axis("layer", layers, **BARE))
    figure.update_yaxes(name_axis(tokens, 14, **TOP_DOWN, **BARE))
    return figure.update_layout(
        title="Layer weights by token",
        margin={"t": 78},
        height=170 + TOKEN_HEIGHT * len(tokens),
        coloraxis={"cmin": low, "cmax": high, "showscale": not is_narrow, **scale},
    )


# --- changed blocks ----------------------------------------------------------------------------


def blocks_figure(changes: Mapping[int, float], measure: str, moment: str) -> go.Figure:
    """How much each block changed, by its number."""
    spec = choose_format(list(changes.values()))
    labels = {"text": [number(value, spec) for value in changes.values()]}
    return draw(
        [bars(list(changes), list(changes.values()), BLUE, "block %{x}: %{y:.4~g}", **labels)],
        f"Change of each block, {moment}",
        number_axis("block", changes, **BARE),
        {"title": measure, "nticks": 5},
        showlegend=False,
    )


def marks_figure(norms: pd.DataFrame, *, measure: str, moment: str) -> go.Figure:
    """Delta norms by kind of layer and block; NaN where a block has no such layer."""
    finite = norms.to_numpy()[np.isfinite(norms)]
    high = float(finite.max(initial=0.0)) or 1.0
    low = min(float(finite.min(initial=high)), 0.9 * high)  # makes equal changes look equal
    blocks, rows = list(map(int, norms.columns)), np.arange(len(norms))
    names = [[escape(kind)] * len(blocks) for kind in norms.index]
    spec = choose_format(finite.tolist())
    labels = cell_values(norms.to_numpy(), lambda value: number(value, spec))
    look = {**CIVIDIS, **labels, "customdata": names}
    hover = "block %{x}<br>%{customdata}<br>%{z:.4~g}"
    return draw(
        [cells(norms.to_numpy(), blocks, rows, hover, (low, high), **look)],
        f"{measure}, {moment}",
        number_axis("block", blocks, **BARE),
        name_axis(list(map(kind_in_words, norms.index)), 28, **TOP_DOWN, **BARE),
    )


# --- words of a corpus -------------------------------------------------------------------------


def words_figure(table: pd.DataFrame) -> go.Figure:
    """Words by their variance across layers, as of `rank`."""
    words, variance, occurrences = table["word"].tolist(), table["variance"], table["occurrences"]
    hovered = [
        [escape(shorten(word, 60)), many(count, "occurrence")]
        for word, count in zip(words, occurrences.tolist(), strict=True)
    ]
    hover = "%{customdata[0]}: variance %{x:.2~g}<br>%{customdata[1]}"
    look: Trace = {"customdata": hovered, "cliponaxis": False, "size": 12}
    scale = "log" if variance.min() > 0 else "linear"
    return draw(
        [dots(variance, np.arange(len(words)), GREEN, hover, **look)],
        "How unevenly words change",
        {
            "title": "unevenness (variance of a word's turns)",
            "type": scale,
            "zeroline": False,
            "nticks": 4,
            "tickformat": ".2~g",
        },
        name_axis(words, 16, ticklabelstandoff=6, range=[len(words) - 0.4, -0.6], zeroline=False),
        showlegend=False,
        height=110 + _WORD_HEIGHT * max(3, len(words)),
    )


# --- scored pairs of sentences ------------------------------------------------------------------


def layer_figure(
    correlations: Mapping[str, Sequence[float]],
    coefficient: str,
    best: tuple[str, int] | None = None,
) -> go.Figure:
    """Correlation by layer (from 0) and pooling, NaN for none, with the ``best`` ringed."""
    hover = "layer %{x}: %{y:.3f}"
    traces = [
        _styled_line(
            range(len(values)), values, BLUE, hover, POOLING_NAMES[name], _POOLING_LOOKS[name]
        )
        for name, values in correlations.items()
    ]
    if best is not None:
        pooling, layer = best
        value = correlations[pooling][layer]
        look: Trace = {"mode": "markers+text", "textposition": "top center", "cliponaxis": False}
        look["marker"] = {"symbol": "circle-open", "line": {"width": 3}}
        text = [f"<b>{number(value, '.2f')}</b>"]
        traces.append(dots([layer], [value], BLUE, size=18, text=text, showlegend=False, **look))
    n_layers = max(map(len, correlations.values()), default=1)
    return draw(
        traces,
        "Correlation with human scores by layer",
        _whole_numbers("layer", 0, n_layers - 1),
        {"title": f"{coefficient} ↑", "zeroline": True},
    )


def _styled_line(
    x: Iterable[int],
    values: Sequence[float],
    colour: str,
    hover: str,
    name: str,
    look: tuple[str, str],
) -> Trace:
    dash, symbol = look
    trace = line(list(x), values, colour, hover, dash=dash, name=name)
    return trace | {"marker": {"size": 9, "symbol": symbol}}


def ablation_figure(values: Mapping[str, float], coefficient: str) -> go.Figure:
    """Correlation of each part of SBERT-WK, NaN for none, the plain mean first."""
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
    axis: str,
    coefficient: str,
) -> go.Figure:
    """Correlation over a setting by variant; ``plain`` is the last layer's mean."""
    hover = f"{axis} %{{x}}: %{{y:.3f}}"
    traces = []
    for variant, values in correlations.items():
        name = f"SBERT-WK, {VARIANT_NAMES[variant].lower()}"
        traces.append(_styled_line(settings, values, GREEN, hover, name, _VARIANT_LOOKS[variant]))
    ends, name = [settings[0], settings[-1]], "mean of the last layer"
    look: Trace = {"width": 2, "dash": "dash", "size": 0}
    traces.append(line(ends, [plain, plain], BLUE, f"{name}: %{{y:.3f}}", name=name, **look))
    x, y = _whole_numbers(axis, *ends), {"title": coefficient}
    return draw(traces, f"SBERT-WK by {axis}", x, y)


def scatter_figure(
    cosines: np.ndarray,
    scores: np.ndarray,
    sentences: Sequence[tuple[str, str]],
    kinds: Sequence[str] | None,
    title: str,
    *,
    axis: str = "cosine similarity",
) -> go.Figure:
    """Human scores against cosines, coloured by kind unless there are too many."""
    quoted = [
        [f"“{escape(shorten(sentence, _HOVERED_CHARACTERS))}”" for sentence in pair]
        for pair in sentences
    ]
    hover = np.array(["<br>".join(pair) for pair in quoted], dtype=object)
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


def _whole_numbers(title: str, first: int, last: int) -> dict[str, Any]:
    room = 0.04 * max(1, last - first)
    ends = {"range": [first - room, last + room], "tickformat": "d"}
    return number_axis(title, range(first, last + 1), **ends)
