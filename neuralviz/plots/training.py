"""Figures of trainings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from neuralviz.headlines import write_values
from neuralviz.headlines.training import trained_part
from neuralviz.plots.corpus_map import COLOURS
from neuralviz.plots.report import About
from neuralviz.plots.theme import (
    BARE,
    BEFORE,
    FEW_COLUMNS,
    PAIR_COLOURS,
    Trace,
    bar_title,
    cells,
    dots,
    draw,
    escape,
    line,
    number_axis,
    shorten,
)
from neuralviz.words import many

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.training.record import Lesson

SMOOTHED = 10  # steps
_LEAST_SPAN = 0.2  # of shares on an axis, so that small differences look small
ACCURACY = {
    "title": "texts predicted right",
    "tickformatstops": [
        {"dtickrange": [None, 0.0099], "value": ".1%"},
        {"dtickrange": [0.0099, None], "value": ".0%"},
    ],
    "minallowed": -0.02,
    "maxallowed": 1.02,
}
FAR = 0.005  # share of outliers cut off at each side
_GROUPS = COLOURS[:10]


def describe_training(lessons: Sequence[Lesson], corpus: str, model_id: str) -> About:
    first = lessons[0].settings
    return About(
        f"Training on “{corpus}”",
        {
            "pairs": " and ".join(lesson.settings.pairs for lesson in lessons),
            "model": model_id,
            "trained": trained_part(first),
            "steps": f"{lessons[0].steps:,}",
            "batch size": f"{first.batch_size:,}",
            "learning rate": f"{first.peak_rate:g}",
            "seed": f"{first.seed}",
        },
    )


def training_loss_figure(lessons: Sequence[Lesson]) -> go.Figure:
    """Loss by step, smoothed and per batch, for each way to make pairs."""
    traces = []
    for lesson in lessons:
        kind = lesson.settings.pairs
        steps, colour = np.arange(1, lesson.step + 1), PAIR_COLOURS[kind]
        hover, look = f"{kind}<br>step %{{x}}: loss %{{y:.3f}}", {"opacity": 0.7}
        prefix = f"{kind}, " if len(lessons) > 1 else ""
        traces += [
            dots(steps, lesson.loss, colour, hover, size=5, marker=look, name=f"{prefix}batch"),
            line(steps, smooth(lesson.loss), colour, width=4, size=0, name=f"{prefix}mean of ten"),
        ]
    n_steps = max([lesson.steps for lesson in lessons] or [1])
    return draw(
        traces,
        "Loss",
        {"title": "step", "range": [0, max(n_steps, 1) + 0.5]},
        {"title": "loss, nats", "rangemode": "tozero"},
        showlegend=True,
    )


def smooth(values: np.ndarray) -> np.ndarray:
    """[step] mean of up to ten latest values; ignores NaN."""
    finite = pd.Series(values).where(np.isfinite(values))
    return finite.rolling(SMOOTHED, min_periods=1).mean().to_numpy()


# --- accuracy ----------------------------------------------------------------------------------


def accuracy_by_layer_figure(lessons: Sequence[Lesson], label: str) -> go.Figure:
    """10-NN accuracy by layer, before and after training (crops paper, Fig. 4b)."""
    measured = [lesson for lesson in lessons if len(lesson.accuracy)]
    n_layers = measured[0].accuracy.shape[1]
    drawn = [(lesson.accuracy[0], "before", BEFORE, "dot") for lesson in measured[:1]]
    for lesson in measured:
        if len(lesson.accuracy) > 1:
            kind = lesson.settings.pairs
            name = kind if lesson.is_over else f"{kind}, so far"
            drawn.append((lesson.accuracy[-1], name, PAIR_COLOURS[kind], "solid"))
    traces = []
    for accuracy, name, colour, dash in drawn:
        hover = f"{name}<br>layer %{{x}}: %{{y:.1%}}"
        look: Trace = {"width": 4, "dash": dash, "name": name}
        traces.append(line(np.arange(n_layers), accuracy, colour, hover, **look))
    return draw(
        traces,
        f"Correct predictions of “{escape(shorten(label, 20))}” by layer",
        number_axis("layer", range(n_layers)),
        ACCURACY,
        showlegend=True,
    )


def accuracy_by_step_figure(lessons: Sequence[Lesson], label: str) -> go.Figure:
    """10-NN accuracy at the last layer by step."""
    lines = {lesson.settings.pairs: lesson for lesson in lessons if len(lesson.accuracy)}
    ends = [float(lesson.accuracy[-1, -1]) for lesson in lines.values()]
    starts = [float(lesson.accuracy[0, -1]) for lesson in lines.values()][:1]
    shares = write_values(ends + starts, is_share=True)
    traces, steps = list[Trace](), list[int]()
    for (kind, lesson), share in zip(lines.items(), shares, strict=False):
        steps = [snapshot.step for snapshot in lesson.snapshots]
        hover, last = f"{kind}<br>step %{{x}}: %{{y:.1%}}", lesson.accuracy[:, -1]
        side = "top right" if last[-1] == max(ends) else "bottom right"
        words = [""] * (len(steps) - 1) + [f"{kind}<br>{share}"]
        look: Trace = {"text": words, "textposition": side}
        traces.append(line(steps, last, PAIR_COLOURS[kind], hover, width=4, name=kind, **look))
        traces[-1]["mode"] += "+text"
    n_steps = max([lesson.steps for lesson in lessons] or [1])
    accuracies = np.concatenate([trace["y"] for trace in traces] or [[0, 1]])
    room = max(0.1 * np.ptp(accuracies), (_LEAST_SPAN - np.ptp(accuracies)) / 2)
    figure = draw(
        traces,
        f"Correct predictions of “{escape(shorten(label, 20))}”",
        {"title": "step", "range": [-0.2 * n_steps, 1.35 * n_steps], "tickvals": steps},
        ACCURACY | {"range": [accuracies.min() - room, accuracies.max() + room]},
        showlegend=False,
    )
    look = {"xanchor": "right", "xshift": -8, "showarrow": False}
    for level in starts:
        figure.add_annotation(x=0, y=level, text=shares[len(ends)], **look)
    return figure


def accuracy_map_figure(lesson: Lesson, drawn_lessons: Sequence[Lesson]) -> go.Figure:
    """10-NN accuracy by layer and snapshot; ``drawn_lessons`` share the colours."""
    title = "Accuracy at every layer"
    if len(drawn_lessons) > 1:
        title = f"{lesson.settings.pairs.capitalize()}: accuracy at every layer"
    accuracies = [drawn.accuracy for drawn in drawn_lessons if len(drawn.accuracy)]
    n_layers = lesson.accuracy.shape[1]
    moments = [f"{shot.step:,}" if shot.step else "before" for shot in lesson.snapshots]
    is_narrow = len(moments) <= FEW_COLUMNS
    look: Trace = bar_title("texts predicted right") | {"showscale": not is_narrow}
    look["colorbar"]["tickformat"] = ".0%"
    look["texttemplate"] = "%{z:.0%}" if is_narrow else None
    look["limits"] = min(map(np.min, accuracies)), max(map(np.max, accuracies))
    hover = "step %{x}, layer %{y}: %{z:.1%}"
    accuracy_map = cells(lesson.accuracy.T, moments, np.arange(n_layers), hover, **look)
    x = {"title": "step", "type": "category", "showgrid": False}
    return draw([accuracy_map], title, x, number_axis("layer", range(n_layers), **BARE))


# --- the map -----------------------------------------------------------------------------------


def _colours_of_groups(groups: Sequence[str]) -> dict[str, str]:
    """Colours of the largest groups; others are grey."""
    largest = Counter(group for group in groups if group).most_common(len(_GROUPS))
    return dict(zip(sorted(name for name, _ in largest), _GROUPS, strict=False))


def moving_map_figure(
    maps: np.ndarray,  # [snapshot, text, 2]
    snapshot: int,
    steps: Sequence[int],
    texts: Sequence[str],
    groups: Sequence[str],
    followed: Sequence[int],  # numbers of texts
) -> go.Figure:
    """Texts at a snapshot, ``followed`` ones with where they were; ``maps`` set a common frame."""
    colours = _colours_of_groups(groups)
    ends, named = maps[[0, snapshot]], bool(snapshot and len(followed))
    traces = _draw_lines(ends, [colours.get(group, BEFORE) for group in groups], followed) * named
    hover = "%{customdata[1]}<br>%{customdata[0]}"
    coloured = [group if group in colours else "" for group in groups]
    for name in [*colours, ""]:
        members = [i for i, group in enumerate(coloured) if group == name]
        hovered = [[escape(shorten(texts[i], 90)), escape(groups[i])] for i in members]
        (x, y), colour = maps[snapshot, members].T, colours.get(name, BEFORE)
        look: Trace = {"size": 7, "marker": {"opacity": 0.75}, "customdata": hovered}
        if members:
            name = escape(shorten(name, 24)) if name else "others"
            traces.append(dots(x, y, colour, hover, name=name, **look))
    low, high = np.quantile(maps, FAR, axis=(0, 1)), np.quantile(maps, 1 - FAR, axis=(0, 1))
    margin = 0.08 * (high - low)
    frame = np.stack([low - margin, high + margin], axis=1)
    x_axis, y_axis = ({"visible": False, "range": axis_ends} for axis_ends in frame)
    moment = f"after {many(steps[snapshot], 'step')}" if steps[snapshot] else "before"
    return draw(traces, f"Map {moment}", x_axis, y_axis, showlegend=True)


def _draw_lines(ends: np.ndarray, colours: Sequence[str], followed: Sequence[int]) -> list[Trace]:
    """Lines of followed texts from rings to large dots, at their [moment, text, 2] ``ends``."""
    hidden: Trace = {"showlegend": False}
    x, y = ends[..., 0], ends[..., 1]
    lines = [line(x[:, i], y[:, i], colours[i], size=0, **hidden) for i in followed]
    (x, now_x), (y, now_y) = x[:, followed], y[:, followed]
    ring: Trace = {"size": 14, "marker": {"symbol": "circle-open", "line": {"width": 2}}}
    rings = dots(x, y, BEFORE, name="before training", **ring)
    return [*lines, rings, dots(now_x, now_y, [colours[i] for i in followed], size=14, **hidden)]
