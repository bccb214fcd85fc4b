"""What a model puts into a blank, before and after micro-tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from neuralviz.micro_tuning.blanks import percent
from neuralviz.plots.theme import AFTER, BEFORE, SMALL_FONT_SIZE, escape, shorten

if TYPE_CHECKING:
    from neuralviz.micro_tuning.blanks import FilledBlank

ON_STAGE = 6  # tokens whose bars have room for large letters


def blank_figure(blank: FilledBlank, title: str) -> go.Figure:
    """Two bars for each of the likeliest tokens, those of ``blank.candidates`` from top to bottom.

    On the stage there are the likeliest after micro-tuning, and the likeliest before it.
    """
    entries = blank.candidates
    places = list(range(len(entries)))
    names = [f"“{escape(shorten(entry.token, 18))}”" for entry in entries]
    figure = go.Figure()
    for name, colour, values in (
        ("before", BEFORE, [entry.before for entry in entries]),
        ("after", AFTER, [entry.after for entry in entries]),
    ):
        figure.add_bar(
            x=values,
            y=places,
            orientation="h",
            name=name,
            marker={"color": colour},
            text=[percent(value).replace("less than ", "&lt; ") for value in values],
            textposition="outside",
            constraintext="none",
            textfont={"size": SMALL_FONT_SIZE},
            cliponaxis=False,
            customdata=names,
            hovertemplate=f"%{{customdata}} {name}: %{{text}}<extra></extra>",
        )
    highest = max(max(entry.before, entry.after) for entry in entries)
    figure.update_layout(
        title=title,
        barmode="group",
        bargap=0.25,
        xaxis={
            "title": "probability",
            "tickformat": ".0%" if highest > 0.05 else "~p",
            "range": [0, min(highest * 1.25, 1.1)],
            "nticks": 6,
        },
        yaxis={
            "tickvals": places,
            "ticktext": names,
            "range": [len(entries) - 0.4, -0.6],
            "showgrid": False,
        },
        meta={"stage": {"yaxis.range": [min(len(entries), ON_STAGE) - 0.4, -0.6]}},
    )
    return figure


def blank_height(blank: FilledBlank) -> int:
    """px at which the bars of `blank_figure` can be read."""
    return 140 + 44 * len(blank.candidates)
