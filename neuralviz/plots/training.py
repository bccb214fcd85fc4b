"""Figures of a training: loss, accuracy by layer and step, and where the texts moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from neuralviz.headlines.training import trained_part
from neuralviz.maps.frames import find_moved_most
from neuralviz.plots.point_colours import COLOURS
from neuralviz.plots.room import FEW_COLUMNS, spaced_ticks
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import BEFORE, PAIR_COLOURS, escape, shorten
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.training.record import Lesson

SMOOTHED = 10  # steps
ACCURACY_ROOM = 0.1  # the least that an axis of accuracies spans
TRAILS = 50  # texts that moved most
FAR = 0.005  # share of the points that may lie beyond each side: a few must not shrink all others
_GROUPS = COLOURS[:10]


def describe_training(lessons: Sequence[Lesson], corpus: str, model_id: str) -> About:
    """The description of a training for its figures and tables."""
    first = lessons[0].settings
    return About(
        f"Training on “{corpus}”",
        {
            "pairs": " and ".join(lesson.settings.pairs.kind for lesson in lessons),
            "model": model_id,
            "trained": trained_part(first),
            "steps": f"{lessons[0].steps:,}",
            "batch size": f"{first.batch_size:,}",
            "learning rate": f"{first.peak_rate:g}",
            "seed": f"{first.seed}",
        },
    )


def training_loss_figure(lessons: Sequence[Lesson]) -> go.Figure:
    """Loss by step, a line for every way to make pairs, over the loss of each batch.

    Args:
        lessons: so far.
    """
    figure = go.Figure()
    for lesson in lessons:
        kind = lesson.settings.pairs.kind
        steps = np.arange(1, lesson.step + 1)
        colour = PAIR_COLOURS[kind]
        figure.add_scatter(
            x=steps, y=lesson.loss, mode="markers", showlegend=False,
            marker={"color": colour, "size": 5, "opacity": 0.35},
            hovertemplate=f"{kind}<br>step %{{x}}: loss %{{y:.3f}}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            x=steps, y=smooth(lesson.loss), name=kind, mode="lines",
            line={"color": colour, "width": 4}, hoverinfo="skip",
        )  # fmt: skip
    n_steps = max([lesson.steps for lesson in lessons] or [1])
    figure.update_layout(
        title="Loss",
        xaxis={"title": "step", "range": [0, max(n_steps, 1) + 0.5]},
        yaxis={"title": "loss, nats", "rangemode": "tozero"},
        showlegend=len(lessons) > 1,
    )
    return figure


def smooth(values: np.ndarray) -> np.ndarray:
    """[step] mean of each value and those just before it, ten in all; NaN is left out."""
    is_known = np.isfinite(values)
    sums = np.cumsum(np.concatenate([[0.0], np.where(is_known, values, 0.0)]))
    counts = np.cumsum(np.concatenate([[0], is_known]))
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - SMOOTHED)
    n = counts[ends] - counts[starts]
    return np.where(n > 0, (sums[ends] - sums[starts]) / np.maximum(n, 1), np.nan)


def accuracy_by_layer_figure(lessons: Sequence[Lesson], label: str) -> go.Figure:
    """10-NN accuracy at every layer, before and as far as the training is (crops paper, Fig. 4b).

    Args:
        lessons: those with at least one snapshot with an accuracy are drawn.
        label: what texts are told apart by.
    """
    figure = go.Figure()
    measured = [lesson for lesson in lessons if len(lesson.accuracy)]
    if measured:
        before = measured[0].accuracy[0]
        _add_layers(figure, before, "before", BEFORE, "dot")
    for lesson in measured:
        if len(lesson.accuracy) > 1:
            kind = lesson.settings.pairs.kind
            name = kind if lesson.is_over else f"{kind}, so far"
            _add_layers(figure, lesson.accuracy[-1], name, PAIR_COLOURS[kind], "solid")
    n_layers = measured[0].accuracy.shape[1] if measured else 1
    figure.update_layout(
        title=f"10-NN accuracy of “{escape(shorten(label, 20))}” by layer",
        xaxis={"title": "layer", "tickvals": spaced_ticks(range(n_layers))},
        yaxis=_accuracy_axis(lessons),
        showlegend=True,
    )
    return figure


def accuracy_by_step_figure(lessons: Sequence[Lesson], label: str) -> go.Figure:
    """10-NN accuracy at the last layer over the steps: of the table, which has no other layer.

    Args:
        lessons: those with at least one snapshot with an accuracy are drawn.
        label: what texts are told apart by.
    """
    figure = go.Figure()
    for lesson in lessons:
        if not len(lesson.accuracy):
            continue
        kind = lesson.settings.pairs.kind
        figure.add_scatter(
            x=[snapshot.step for snapshot in lesson.snapshots], y=lesson.accuracy[:, -1], name=kind,
            mode="lines+markers", line={"color": PAIR_COLOURS[kind], "width": 4},
            marker={"size": 9},
            hovertemplate=f"{kind}<br>step %{{x}}: %{{y:.1%}}<extra></extra>",
        )  # fmt: skip
    steps = max([lesson.steps for lesson in lessons] or [1])
    if whole := next(
        (lesson.untrained for lesson in lessons if lesson.untrained is not None), None
    ):
        figure.add_scatter(
            x=[0, steps], y=[whole, whole], name="whole model, untrained", mode="lines",
            line={"color": BEFORE, "width": 3, "dash": "dot"},
            hovertemplate="whole model, untrained: %{y:.1%}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(
        title=f"10-NN accuracy of “{escape(shorten(label, 20))}”",
        xaxis={"title": "step", "range": [-0.02 * steps, 1.02 * steps]},
        yaxis=_accuracy_axis(lessons, -1),
        showlegend=len(figure.data) > 1,
    )
    return figure


def _accuracy_axis(lessons: Sequence[Lesson], layer: int | None = None) -> dict[str, Any]:
    """An axis around all accuracies, or those at one layer; one value has ten points around it."""
    chosen = slice(None) if layer is None else layer
    accuracies = [lesson.accuracy[:, chosen].ravel() for lesson in lessons if len(lesson.accuracy)]
    if layer is not None:
        accuracies += [
            np.array([lesson.untrained]) for lesson in lessons if lesson.untrained is not None
        ]
    values = np.concatenate(accuracies or [np.array([0.5])])
    margin = max(ACCURACY_ROOM / 2, 0.06 * float(np.ptp(values)))
    low, high = float(values.min()) - margin, float(values.max()) + margin
    return {"title": "accuracy", "tickformat": ".0%", "range": [max(low, -0.02), min(high, 1.02)]}


def _add_layers(figure: go.Figure, accuracy: np.ndarray, name: str, colour: str, dash: str) -> None:
    figure.add_scatter(
        x=np.arange(len(accuracy)),
        y=accuracy,
        name=name,
        mode="lines+markers",
        line={"color": colour, "width": 4, "dash": dash},
        marker={"size": 9},
        hovertemplate=f"{name}<br>layer %{{x}}: %{{y:.1%}}<extra></extra>",
    )


def accuracy_map_figure(
    lesson: Lesson, drawn_lessons: Sequence[Lesson], *, name: str = ""
) -> go.Figure:
    """10-NN accuracy as a map of layers and snapshots; the last layer is at the top.

    Args:
        lesson: with at least one snapshot with an accuracy.
        drawn_lessons: all that are drawn side by side, to share their colours.
        name: of the training; by default how its pairs are made.
    """
    name = escape(shorten(name, 40)) or lesson.settings.pairs.kind.capitalize()
    accuracy = lesson.accuracy
    accuracies = [drawn.accuracy for drawn in drawn_lessons if len(drawn.accuracy)]
    steps = [snapshot.step for snapshot in lesson.snapshots]
    is_narrow = len(steps) <= FEW_COLUMNS
    columns = np.arange(len(steps))
    ticks = spaced_ticks(columns)
    figure = go.Figure(
        go.Heatmap(
            z=accuracy.T,
            x=columns,
            y=np.arange(accuracy.shape[1]),
            customdata=np.tile(steps, (accuracy.shape[1], 1)),
            zmin=min(values.min() for values in accuracies),
            zmax=max(values.max() for values in accuracies),
            texttemplate="%{z:.0%}" if is_narrow else None,
            showscale=not is_narrow,
            colorbar={"tickformat": ".0%"},
            hovertemplate="step %{customdata}, layer %{y}: %{z:.1%}<extra></extra>",
        )
    )
    figure.update_layout(
        title=f"{name}: accuracy at every layer",
        xaxis={
            "title": "step",
            "tickvals": ticks,
            "ticktext": [f"{steps[i]:,}" if steps[i] else "before" for i in ticks],
            "showgrid": False,
        },
        yaxis={
            "title": "layer",
            "tickvals": spaced_ticks(range(accuracy.shape[1])),
            "showgrid": False,
            "zeroline": False,
        },
    )
    return figure


def colours_of_groups(groups: Sequence[str]) -> dict[str, str]:
    """Colours of the largest groups, by name; all others are grey."""
    largest = [
        name for name, _ in Counter(group for group in groups if group).most_common(len(_GROUPS))
    ]
    return dict(zip(sorted(largest), _GROUPS, strict=False))


def moving_map_figure(
    maps: np.ndarray,
    snapshot: int,
    steps: Sequence[int],
    texts: Sequence[str],
    groups: Sequence[str],
    colours: dict[str, str],
) -> go.Figure:
    """The texts after some steps, with trails of those that moved most from before till then.

    The frame is that of all snapshots, but for a few points that are far from all others.

    Args:
        maps: [snapshot, text, 2] in one frame.
        snapshot: number of the snapshot.
        steps: [snapshot] that were made.
        texts, groups: of every point; the groups have ``colours``.
        colours: by group; what has none is grey.
    """
    figure = go.Figure()
    if snapshot:
        for text in find_moved_most(maps[: snapshot + 1], TRAILS):
            trail = maps[: snapshot + 1, text]
            figure.add_scatter(
                x=trail[:, 0], y=trail[:, 1], mode="lines", showlegend=False, hoverinfo="skip",
                line={"color": colours.get(groups[text], BEFORE), "width": 1.5},
                opacity=0.6,
            )  # fmt: skip
    for name in [*colours, ""]:
        members = [
            i for i, group in enumerate(groups) if (group if group in colours else "") == name
        ]
        if not members:
            continue
        figure.add_scatter(
            x=maps[snapshot, members, 0],
            y=maps[snapshot, members, 1],
            mode="markers",
            name=escape(shorten(name, 24)) if name else "others",
            marker={"color": colours.get(name, BEFORE), "size": 7, "opacity": 0.85},
            customdata=[[escape(shorten(texts[i], 90)), escape(groups[i])] for i in members],
            hovertemplate="%{customdata[1]}<br>%{customdata[0]}<extra></extra>",
        )
    low, high = np.quantile(maps, FAR, axis=(0, 1)), np.quantile(maps, 1 - FAR, axis=(0, 1))
    margin = 0.08 * (high - low)
    axis = {"visible": False}
    moment = f"after {many(steps[snapshot], 'step')}" if steps[snapshot] else "before"
    figure.update_layout(
        title=f"Map {moment}",
        xaxis={**axis, "range": [low[0] - margin[0], high[0] + margin[0]]},
        yaxis={**axis, "range": [low[1] - margin[1], high[1] + margin[1]]},
        showlegend=True,
    )
    return figure
