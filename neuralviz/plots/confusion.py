"""Which labels are taken for which, as a figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from neuralviz.plots.evaluation import LABEL_LENGTH
from neuralviz.plots.room import cell_labels
from neuralviz.plots.theme import SMALL_FONT_SIZE, shorten_apart
from neuralviz.words import percent


def confusion_figure(labels: Sequence[str], counts: np.ndarray, title: str) -> go.Figure:
    """Which labels are taken for which: shares of each label's texts, as a matrix.

    Args:
        labels: of the rows and columns.
        counts: [own label, predicted label] texts; every label has some.
        title: of the figure.
    """
    names = shorten_apart(labels, LABEL_LENGTH)
    share = counts / counts.sum(axis=1, keepdims=True)
    no_numbers = {"type": "category", "showgrid": False, "ticks": ""}
    figure = go.Figure(
        go.Heatmap(
            z=share,
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            colorbar={"title": {"text": "share"}, "tickformat": ".0%"},
            **cell_labels(share, percent),
            textfont={"size": SMALL_FONT_SIZE},
            customdata=counts,
            hovertemplate=(
                "label %{y}<br>predicted %{x}<br>%{customdata:,} texts, %{z:.1%}<extra></extra>"
            ),
        )
    )
    figure.update_layout(
        title=title,
        yaxis={"autorange": "reversed", "title": "own label", **no_numbers},
        xaxis={"tickangle": -35, "title": "predicted label", **no_numbers},
    )
    return figure
