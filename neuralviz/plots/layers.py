"""Figures of layer dynamics and SBERT-WK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.subplots import make_subplots

from neuralviz.layers.settings import POOLING_NAMES
from neuralviz.plots.theme import (
    AFTER,
    BARE,
    BEFORE,
    BLUE,
    CIVIDIS,
    DISSIMILAR,
    FEW_COLUMNS,
    GREEN,
    LAYER_COLOURS,
    NOT_MEASURED,
    TOP_DOWN,
    VERMILLION,
    Trace,
    bar_title,
    bars,
    cell_labels,
    cells,
    dots,
    draw,
    escape,
    format_two_places,
    line,
    name_axis,
    number_axis,
    shorten,
    symmetric_range,
)
from neuralviz.words import many, number, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.layers.geometry import FollowedWord
    from neuralviz.micro_tuning.lens import Lens

MAX_TOKENS = 60
MOST_GUESSES = 16  # tokens side by side with room for guesses in their cells
_MOST_SHARES = 10  # words with a bar of their own
_LEAST_SHARE = 0.005  # of what is drawn beside them
TOKEN_HEIGHT = 26  # px
_POOLING_LOOKS = {  # all pooled vectors share one colour
    "mean": ("solid", "circle"),
    "cls": ("dash", "square"),
    "sep": ("dot", "diamond"),
    "last": ("dashdot", "triangle-up"),
}
_HOVERED_CHARACTERS = 70


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
    is_narrow = len(cosines) <= FEW_COLUMNS
    look = {**CIVIDIS, **bar_title("cosine"), "showscale": not is_narrow}
    look |= cell_labels(values) if is_narrow else {}
    axis = number_axis("layer", layers, constrain="domain", **BARE)
    limits = _limits(values) if len(cosines) > 1 else (0.0, 1.0)
    return draw(
        [cells(values, layers, layers, hover, limits, **look)],
        f"Cosine between layers: {escape(subject)}",
        axis,
        {**axis, **TOP_DOWN, "scaleanchor": "x"},
        plot_bgcolor=NOT_MEASURED,
    )


def word_shares_figure(
    words: Sequence[FollowedWord], n_named: int, punctuation: float
) -> tuple[go.Figure, dict[str, Sequence[Any]]]:
    """Shares of an embedding: words, the first ``n_named`` coloured, and all else; also a table."""
    first_words = words[: _MOST_SHARES + (len(words) == _MOST_SHARES + 1)]  # one more is named
    total = sum(word.importance for word in words)
    remainders = {
        many(len(words) - len(first_words), "other"): total
        - sum(word.importance for word in first_words),
        "punctuation": punctuation,
        "[start]": 1 - total - punctuation,
    }
    remainders = {name: share for name, share in remainders.items() if share > _LEAST_SHARE}
    names = [*(word.word for word in first_words), *remainders]
    shares = [*(word.importance for word in first_words), *remainders.values()]
    colours = [GREEN if place < n_named else DISSIMILAR for place in range(len(names))]
    look: Trace = {"text": list(map(percent, shares)), "textposition": "outside"}
    look |= {"customdata": list(map(escape, names)), "cliponaxis": False}
    hover = "%{customdata}: %{y:.1%}"
    figure = draw(
        [bars(np.arange(len(names)), shares, colours, hover, **look)],
        "How much each word counts",
        name_axis(names, 14, showgrid=False),
        {"tickformat": ".0%", "rangemode": "tozero", "nticks": 5},
        bargap=0.25,
    )
    return figure, {"word": names, "share": shares}


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


# --- what is read from every layer -------------------------------------------------------------

_LENS_MEASURES = {True: ("probability", ".0%"), False: ("cosine", ".2f")}  # by has_head


def lens_figure(lens: Lens, title: str, chosen: int | None = None) -> go.Figure:
    """The probability of each masked token at every layer, with the best guess in the cell.

    Without a head, its cosine, and the nearest token. ``chosen`` is a position, which gets a frame.
    """
    tokens, (measure, form) = lens.names, _LENS_MEASURES[lens.has_head]
    guesses = np.array([[row[0] for row in layers] for layers in lens.words], dtype=object).T
    write = percent if lens.has_head else format_two_places
    quoted = np.vectorize(lambda word, share: f"“{escape(word)}” {write(share)}", otypes=[object])
    listed = [["<br>".join(cell) for cell in row] for row in quoted(lens.words, lens.shares)]
    matrix = cells(
        lens.values.T,
        np.arange(len(tokens)),
        np.arange(lens.values.shape[1]),
        f"layer %{{y}}: the right token has %{{z:{form}}}<br>%{{customdata}}",
        (0, 1),
        customdata=np.array(listed, dtype=object).T,
        colorbar={"title": {"text": measure, "side": "right"}, "tickformat": form},
    )
    if len(tokens) <= MOST_GUESSES:
        room = max(9, 100 // len(tokens))
        written = [[escape(shorten(guess, room)) for guess in row] for row in guesses]
        matrix |= {"text": written, "texttemplate": "%{text}", "textfont": {"size": 12}}
    names = name_axis(tokens, 12, autotickangles=[0, -45, -90], ticks="", **BARE)
    y = {"title": "layer", "dtick": 1, **BARE}
    figure = draw([matrix | CIVIDIS], title, names, y)
    if chosen is not None:
        figure.add_vrect(chosen - 0.5, chosen + 0.5, line={"color": VERMILLION, "width": 3})
    return figure


def leads_figure(sides: Mapping[str, np.ndarray], word: str, *, has_head: bool) -> go.Figure:
    """A token's [layer] probability or cosine at every layer, by ``before`` and ``after``."""
    (measure, form), write = _LENS_MEASURES[has_head], percent if has_head else format_two_places
    colours = {"before": BEFORE, "after": AFTER}
    traces = []
    for moment, values in sides.items():
        named = {len(values) - 1, int(np.nan_to_num(values, nan=-np.inf).argmax())}
        texts = [write(float(value)) * (i in named) for i, value in enumerate(values)]
        hover, name = f"layer %{{x}}, {moment}: %{{y:{form}}}", f"{moment} training"
        look: Trace = {"text": texts, "textposition": "top center", "cliponaxis": False}
        traces.append(line(np.arange(len(values)), values, colours[moment], hover, name=name))
        traces[-1] |= {**look, "mode": "lines+markers+text"}
    title = f"{measure.capitalize()} of “{escape(word)}” at every layer"
    y = {"title": measure, "tickformat": form.replace("0", "1~"), "rangemode": "tozero"}
    return draw(traces, title, {"title": "layer", "dtick": 1}, y)


# --- scored pairs of sentences ------------------------------------------------------------------


def layer_figure(
    correlations: Mapping[str, Sequence[float]], best: tuple[str, int] | None = None
) -> go.Figure:
    """Spearman by layer (from 0) and pooling, NaN for none, with the ``best`` ringed."""
    hover = "layer %{x}: %{y:.3f}"
    traces = []
    for name, values in correlations.items():
        dash, symbol = _POOLING_LOOKS[name]
        trace = line(list(range(len(values))), values, BLUE, hover, dash=dash)
        trace |= {"name": POOLING_NAMES[name], "marker": {"size": 9, "symbol": symbol}}
        traces.append(trace)
    if best is not None:
        pooling, layer = best
        value = correlations[pooling][layer]
        look: Trace = {"mode": "markers+text", "textposition": "top center", "cliponaxis": False}
        look["marker"] = {"symbol": "circle-open", "line": {"width": 3}}
        text = [f"<b>{number(value, '.2f')}</b>"]
        traces.append(dots([layer], [value], BLUE, size=18, text=text, showlegend=False, **look))
    last = max(map(len, correlations.values()), default=1) - 1
    room = 0.04 * max(1, last)
    return draw(
        traces,
        "Correlation with human scores by layer",
        number_axis("layer", range(last + 1), range=[-room, last + room], tickformat="d"),
        {"title": "Spearman ↑", "zeroline": True},
    )


def scatter_figure(
    cosines: np.ndarray,
    scores: np.ndarray,
    sentences: Sequence[tuple[str, str]],
    title: str,
    *,
    axis: str = "cosine similarity",
) -> go.Figure:
    """Human scores against cosines; a point's box has its two sentences."""
    quoted = [
        [f"“{escape(shorten(sentence, _HOVERED_CHARACTERS))}”" for sentence in pair]
        for pair in sentences
    ]
    trace = dots(
        cosines,
        scores,
        DISSIMILAR,
        f"%{{customdata}}<br>score %{{y:.3~g}}, {axis} %{{x:.3f}}",
        marker={"opacity": 0.75, "symbol": "circle"},
        name="pairs",
        customdata=np.array(["<br>".join(pair) for pair in quoted], dtype=object),
    )
    x, y = {"title": axis, "nticks": 8}, {"title": "human score"}
    return draw([trace], title, x, y, showlegend=False)
