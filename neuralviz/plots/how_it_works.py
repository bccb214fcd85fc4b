"""The figures of the ten steps from two texts to their cosine similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.theme import (
    AFTER,
    BEFORE,
    LAYER_COLOURS,
    SMALL_FONT_SIZE,
    VERMILLION,
    escape,
    shorten,
    symmetric_range,
)
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

EMBEDDING_COLUMNS = 48


def layer_label(name: str) -> str:
    """The end of a parameter's name: ``LayerNorm.weight``."""
    return ".".join(name.split(".")[-2:])


def overview_figure(stations: Sequence[str]) -> go.Figure:
    """The whole way at a glance: a line of stations, from the first at the top to the last.

    Args:
        stations: [step] what one gets there, in markup of plotly.
    """
    y = np.arange(len(stations))
    figure = go.Figure(
        go.Scatter(
            x=np.zeros(len(y)),
            y=y,
            mode="lines+markers+text",
            text=[f"   {station}" for station in stations],
            textposition="middle right",
            textfont_size=19,
            marker={"size": 16, "color": VERMILLION},
            line={"width": 3, "color": VERMILLION},
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    figure.update_layout(
        margin={"l": 16, "r": 0, "t": 16, "b": 16},
        xaxis={"visible": False, "range": [-0.02, 1], "fixedrange": True},
        yaxis={"visible": False, "range": [len(y) - 0.6, -0.4], "fixedrange": True},
    )
    return figure


def words_figure(
    words: Sequence[str], before: Sequence[float], after: Sequence[float], label: str
) -> go.Figure:
    """Probabilities of tokens at one masked position, before and after micro-tuning.

    Args:
        words: [word] tokens, likeliest last.
        before, after: [word] 0 … 1, NaN where it is not among the likeliest.
        label: the token that is masked there; it is set in bold.
    """
    names = [
        f"<b>{escape(word)} ✓</b>" if word == label else escape(word)
        for word in (shorten(word, 16) or word for word in words)
    ]
    figure = go.Figure()
    for name, values, colour in (
        ("after micro-tuning", after, AFTER),
        ("before", before, BEFORE),
    ):
        bar_lengths = np.nan_to_num(np.asarray(values, dtype=float))
        figure.add_bar(
            y=list(range(len(words))),
            x=bar_lengths,
            orientation="h",
            name=name,
            marker_color=colour,
            text=["" if np.isnan(v) else f"{v:.1%}" for v in values],
            textposition="outside",
            constraintext="none",
            textfont={"size": SMALL_FONT_SIZE},
            cliponaxis=False,
            customdata=names,
            hovertemplate="%{customdata}<br>%{x:.2%} " + name + "<extra></extra>",
        )
    figure.update_layout(
        bargap=0.25,
        legend_traceorder="reversed",
        margin={"l": 8, "r": 8, "t": 16, "b": 84},
        xaxis={"range": [0, 1.18], "tickvals": [0, 0.5, 1], "tickformat": ".0%",
               "title": {"text": "probability"}},
        yaxis={"tickvals": list(range(len(words))), "ticktext": names, "showgrid": False},
    )  # fmt: skip
    return figure


def losses_figure(
    tokens: Sequence[str], token_of: np.ndarray, before: np.ndarray, after: np.ndarray
) -> go.Figure:
    """Cross-entropy at every masked position, by token, and its mean.

    Args:
        tokens: [token].
        token_of: [position] the masked token.
        before, after: [position] cross-entropy in nats.
    """
    figure = go.Figure()
    for name, loss, colour, side in (
        ("before", before, BEFORE, -0.14),
        ("after micro-tuning", after, AFTER, 0.14),
    ):
        figure.add_scatter(
            x=token_of + side,
            y=loss,
            mode="markers",
            name=f"{name}, mean {loss.mean():.2f}",
            marker={"size": 11, "color": colour, "opacity": 0.75},
            customdata=[escape(tokens[i]) for i in token_of],
            hovertemplate="<b>%{customdata}</b> masked<br>%{y:.2f} nats<extra></extra>",
        )
        figure.add_hline(y=loss.mean(), line={"color": colour, "width": 2, "dash": "dash"})
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 16, "b": 120},
        xaxis={
            "tickvals": list(range(len(tokens))),
            "ticktext": [escape(shorten(token, 14)) for token in tokens],
            "autotickangles": [0, -60, -90],
            "showgrid": False,
            "zeroline": False,
        },
        yaxis={"title": {"text": "cross-entropy, nats"}, "rangemode": "tozero"},
    )
    return figure


def weights_figure(neurons: np.ndarray, before: np.ndarray, after: np.ndarray) -> go.Figure:
    """Some weights of a layer, before and after: a line from one to the other.

    Args:
        neurons: [neuron] their numbers.
        before, after: [neuron] their values.
    """
    x = np.arange(len(neurons))
    gap = np.full(len(neurons), np.nan)
    figure = go.Figure(
        go.Scatter(
            x=np.repeat(x, 3),
            y=np.stack([before, after, gap], axis=1).ravel(),
            mode="lines",
            line={"color": AFTER, "width": 3},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    for name, values, colour in (
        ("before", before, BEFORE),
        ("after micro-tuning", after, AFTER),
    ):
        figure.add_scatter(
            x=x,
            y=values,
            mode="markers",
            name=name,
            marker={"size": 13, "color": colour},
            customdata=neurons,
            hovertemplate="neuron %{customdata}<br>%{y:.4f} " + name + "<extra></extra>",
        )
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 16, "b": 110},
        xaxis={"title": {"text": "neuron"}, "tickvals": x, "ticktext": neurons.astype(str),
               "tickangle": -90, "showgrid": False, "zeroline": False},
        yaxis={"title": {"text": "weight"}},
    )  # fmt: skip
    return figure


def delta_figure(deltas: np.ndarray) -> go.Figure:
    """[epoch, dim] how far each weight of a layer is from where it started, epoch by epoch."""
    low, high = symmetric_range(deltas)
    n_epochs, dim = deltas.shape
    figure = go.Figure(
        go.Heatmap(
            z=deltas,
            x=np.arange(dim),
            y=np.arange(1, n_epochs + 1),
            zmin=low,
            zmax=high,
            hovertemplate="neuron %{x}, after epoch %{y}<br>delta %{z:.4f}<extra></extra>",
        )
    )
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 16, "b": 60},
        xaxis={"title": {"text": "neuron"}, "showgrid": False, "zeroline": False},
        yaxis={"title": {"text": "epoch"}, "showgrid": False,
               "zeroline": False, "dtick": max(1, n_epochs // 10)},
    )  # fmt: skip
    return figure


def norms_figure(names: Sequence[str], norms: np.ndarray) -> go.Figure:
    """[layer] norms of the deltas, and the 1 to which each is normalised."""
    figure = go.Figure(
        go.Bar(
            x=[layer_label(name) for name in names],
            y=norms,
            marker_color=_layer_colours(len(names)),
            text=[f"{norm:.3f}" for norm in norms],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}<br>norm %{y:.4f}<extra></extra>",
        )
    )
    figure.add_hline(y=1, line={"color": VERMILLION, "width": 3, "dash": "dash"})
    figure.add_annotation(
        text="<b>normalised to 1</b>", x=1, xref="paper", xanchor="right", y=1, yanchor="top",
        showarrow=False, font_color="#FFFFFF", bgcolor=VERMILLION, borderpad=4,
    )  # fmt: skip
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 16, "b": 16},
        yaxis={"title": {"text": "norm of the delta"},
               "range": [0, 1.15 * max(1.0, float(norms.max()))]},
        xaxis_showgrid=False,
    )  # fmt: skip
    return figure


def concatenated_figure(names: Sequence[str], vectors: Sequence[np.ndarray]) -> go.Figure:
    """Per layer, [dim] vectors in one row, one after the other."""
    figure = go.Figure()
    start = 0
    for name, vector, colour in zip(names, vectors, _layer_colours(len(names)), strict=True):
        figure.add_scatter(
            x=np.arange(start, start + len(vector)),
            y=vector,
            mode="lines",
            line={"color": colour, "width": 1.5},
            fill="tozeroy",
            name=layer_label(name),
            hovertemplate="value %{x}<br>%{y:.4f}<extra></extra>",
        )
        start += len(vector)
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 16, "b": 120},
        xaxis={"title": {"text": f"{start:,} values"}, "showgrid": False},
        yaxis={"title": {"text": "normalised delta"}},
    )
    return figure


def embedding_figure(embedding: np.ndarray) -> go.Figure:
    """[dim] an embedding folded into rows, as an image that can be recognised."""
    n_rows = -(-len(embedding) // EMBEDDING_COLUMNS)
    folded = np.full(n_rows * EMBEDDING_COLUMNS, np.nan)
    folded[: len(embedding)] = embedding
    number = np.arange(folded.size).reshape(n_rows, -1)
    low, high = symmetric_range(embedding)
    figure = go.Figure(
        go.Heatmap(
            z=folded.reshape(n_rows, -1),
            zmin=low,
            zmax=high,
            customdata=number,
            hovertemplate="value %{customdata}<br>%{z:.4f}<extra></extra>",
        )
    )
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 16, "b": 16},
        xaxis={"visible": False},
        yaxis={"visible": False, "autorange": "reversed"},
    )
    return figure


def product_figure(
    names: Sequence[str], sizes: Sequence[int], first: np.ndarray, embeddings: Sequence[np.ndarray]
) -> go.Figure:
    """The cosine similarities of an embedding to others as they add up, value by value.

    Args:
        names: [layer].
        sizes: [layer] values that each layer has in the embedding.
        first: [dim] the embedding.
        embeddings: [text] [dim] the others; the sum of the first of them has the layers'
            colours, the other sums are dashed.
    """
    ends = np.cumsum(sizes)
    figure = go.Figure()
    by_text = [np.append(0.0, np.cumsum(first * embedding)) for embedding in embeddings]
    low, high = min(map(np.min, by_text)), max(map(np.max, by_text))
    room = 0.12 * (high - low)  # for a line of text
    for text, sums in enumerate(by_text, 2):
        is_below = any(0 <= curve[-1] - sums[-1] < room for curve in by_text if curve is not sums)
        is_main = text == 2
        colours = _layer_colours(len(names)) if is_main else [BEFORE] * len(names)
        for name, size, end, colour in zip(names, sizes, ends, colours, strict=True):
            part = sums[end] - sums[end - size]
            figure.add_scatter(
                x=np.arange(end - size, end + 1),
                y=sums[end - size : end + 1],
                mode="lines",
                line={"color": colour, "width": 4} | ({} if is_main else {"dash": "dot"}),
                name=f"{layer_label(name)} {number(part, '+.3f')}",
                showlegend=is_main,
                hovertemplate=f"text {text}, after %{{x}} values<br>%{{y:.3f}}<extra></extra>",
            )
        figure.add_scatter(
            x=[ends[-1]], y=[sums[-1]], mode="markers+text",
            text=[f"<b>text {text}: {number(sums[-1], '.3f')}</b>"],
            textposition=f"{'bottom' if is_below else 'top'} left", textfont_size=20,
            marker={"size": 16, "color": colours[-1]}, showlegend=False, cliponaxis=False,
            hovertemplate=f"cosine similarity to text {text}: %{{y:.3f}}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(
        margin={"l": 8, "r": 16, "t": 24, "b": 120},
        xaxis={"title": {"text": "values summed"}, "showgrid": False, "zeroline": False,
               "range": [0, ends[-1] * 1.03]},
        yaxis={"title": {"text": "running sum"}, "range": [low - room, high + room]},
    )  # fmt: skip
    return figure


def _layer_colours(n_layers: int) -> list[str]:
    return [LAYER_COLOURS[i % len(LAYER_COLOURS)] for i in range(n_layers)]
