"""Figures of evaluations and experiments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from neuralviz.evaluation.plan import find_swept_options
from neuralviz.evaluation.yardsticks import compute_leads
from neuralviz.headlines import write_lead
from neuralviz.plots.parts import (
    GROUND,
    NAMES_OF_BARS,
    TOP_DOWN,
    Trace,
    bars,
    cell_labels,
    cells,
    dots,
    draw,
    label_bars,
    line,
    name_axis,
    widen,
)
from neuralviz.plots.theme import (
    BLUE,
    DISSIMILAR,
    SIMILAR,
    SMALL_FONT_SIZE,
    escape,
    method_colours,
    shorten,
    shorten_apart,
    symmetric_range,
)
from neuralviz.words import number, percent

if TYPE_CHECKING:
    from neuralviz.evaluation.broken import BrokenCount
    from neuralviz.evaluation.columns import Yardstick
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.probing import Confusion
    from neuralviz.evaluation.results import Results

MAX_BINS = 60
ROW_HEIGHT = 48  # px: a dot with its value above
LABEL_LENGTH = 34  # characters
WITH_BASELINE = 80  # px above a figure with a named baseline
NARROW = 0.2  # of the longest bar; too short for its value
WIDE_RANGE = 20  # ratio of values from which a settings axis is logarithmic
NO_BASELINES: Mapping[str, float] = MappingProxyType({})
_BAND = "rgba(0, 114, 178, 0.16)"
_PATTERNS = ("", "/", ".", "x")
_CELL_FONT = {"textfont": {"size": SMALL_FONT_SIZE}}
_NAMES = {"showgrid": False, "ticks": ""}  # axis of names beside cells
_BROKEN_NAMES = {"pairs": "Broken comparisons", "triplets": "Broken triplets"}
_LINE_ROWS = 6  # height of a line figure, in rows
_OPTION_NAMES = {"layer_start": "first layer"}  # display names of options

Interval = tuple[float, float] | None
Published = tuple[float, str] | None  # value and model


def _rows_height(n_rows: int) -> int:
    return 120 + ROW_HEIGHT * max(2, n_rows)


def interval_figure(
    labels: Sequence[str],
    values: Sequence[float],
    intervals: Sequence[Interval],
    title: str,
    axis: str,
    published: Sequence[Published] = (),
    *,
    written: str = ".2f",
    among: Sequence[str] = (),
) -> go.Figure:
    """Values (NaN for none) with 95% intervals, and hollow diamonds for published ones."""
    names = shorten_apart(labels, LABEL_LENGTH)
    colours = method_colours(among or labels)
    traces = [
        _interval_dot(name, value, interval, colours[label], written)
        for name, label, value, interval in zip(names, labels, values, intervals, strict=True)
    ]
    diamonds = [
        (entry[0], name, entry[1]) for name, entry in zip(names, published, strict=False) if entry
    ]
    y = {"categoryorder": "array", "categoryarray": names[::-1], "showgrid": True, "ticks": ""}
    return draw(
        traces + _published_traces(diamonds, value="x"),
        title,
        {"title": axis, "nticks": 8},
        {**y, "range": [-0.6, len(names) - 0.4]},
        height=_rows_height(len(names)),
    )


def _interval_dot(name: str, value: float, interval: Interval, colour: str, written: str) -> Trace:
    hover, error = f"{name}: %{{x:.3f}}", None
    if interval is not None:
        low, high = interval
        hover += f"<br>95% interval: {number(low, '.3f')} to {number(high, '.3f')}"
        error = _error_bar([value], [low], [high], thickness=2.5, width=7)
    text = [number(value, written) if np.isfinite(value) else ""]
    look: Trace = {"mode": "markers+text", "text": text, "textposition": "top center"}
    look |= {"textfont": {"size": SMALL_FONT_SIZE}, "cliponaxis": False, "showlegend": False}
    return dots([value], [name], colour, hover, size=13, error_x=error, name=name, **look)


def _error_bar(value: Any, low: Any, high: Any, **look: Any) -> dict[str, Any]:
    above, below = np.subtract(high, value).tolist(), np.subtract(value, low).tolist()
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, **look}


def _published_traces(diamonds: Sequence[tuple[Any, Any, str]], *, value: str) -> list[Trace]:
    """Hollow diamonds at (x, y, model); ``value`` names the axis of the value."""
    if not diamonds:
        return []
    x, y, models = zip(*diamonds, strict=True)
    names = [escape(model) for model in models]
    look = {"symbol": "diamond-open", "line": {"width": 2.5}}
    hover = f"published: %{{{value}:.3f}}<br>%{{customdata}}"
    name = f"published, {', '.join(dict.fromkeys(names))}"
    return [dots(x, y, GROUND, hover, size=13, marker=look, customdata=names, name=name)]


def _error_figure(
    labels: Sequence[str], counts: Sequence[BrokenCount], title: str, among: Sequence[str]
) -> go.Figure:
    colours, errors = method_colours(among), np.array([count.error for count in counts])
    positions = ["inside" if error > NARROW * errors.max() else "outside" for error in errors]
    shares = label_bars(
        errors * 100,
        shorten_apart(labels, LABEL_LENGTH),
        [colours[label] for label in labels],
        "%{y}: %{x:.4g}%<br>without ties %{customdata:.4g}%",
        [f"{error:.2%}" for error in errors],
        textposition=positions,
        customdata=np.array([count.wrong_strict / count.total for count in counts]) * 100,
    )
    x = {"title": "error, % ↓", "rangemode": "tozero", "nticks": 6}
    height = _rows_height(len(labels))
    return draw([shares], title, x, NAMES_OF_BARS, bargap=0.3, height=height)


def accuracy_figure(
    labels: Sequence[str],
    accuracies: Sequence[float],
    intervals: Sequence[Interval],
    baselines: Mapping[str, float],
    title: str,
    among: Sequence[str] = (),
) -> go.Figure:
    """Accuracies with intervals, and a line per baseline."""
    figure = interval_figure(
        labels, accuracies, intervals, title, "accuracy ↑", written=".1%", among=among
    )
    for place, (name, value) in enumerate(baselines.items()):
        written = {"text": name, "yanchor": "bottom", "yshift": 18 * place}
        figure.add_vline(x=value, line=_baseline_look(place), annotation=written)
    ends = [*baselines.values(), *(end for interval in intervals for end in interval or ())]
    return figure.update_layout(
        xaxis={"tickformat": ".0%", "range": widen(ends)},
        margin={"t": WITH_BASELINE + 18 * (len(baselines) - 1)},
    )


def _baseline_look(place: int) -> dict[str, Any]:
    return {"dash": "dot" if place else "dash", "color": GROUND, "width": 2}


def product_histogram(similar: np.ndarray, dissimilar: np.ndarray, title: str) -> go.Figure:
    cosines = np.concatenate([similar, dissimilar])
    low, high = (float(cosines.min()), float(cosines.max())) if len(cosines) else (0.0, 1.0)
    fewer = min(len(similar), len(dissimilar))
    n_bins = int(np.clip(3 * np.sqrt(max(fewer, 1)), 16, MAX_BINS))
    edges = np.linspace(low, high if high > low else low + 1e-3, n_bins + 1)
    middles, traces = (edges[:-1] + edges[1:]) / 2, []
    kinds = (("dissimilar", DISSIMILAR, dissimilar), ("similar", SIMILAR, similar))
    for kind, colour, values in kinds:
        share = np.histogram(values, edges)[0] / max(1, len(values)) * 100
        hover, name = f"{kind}: %{{y:.2g}}%<br>around %{{x:.3f}}", f"{kind} ({len(values):,})"
        traces.append(bars(middles, share, colour, hover, width=np.diff(edges), name=name))
        traces[-1]["marker"] |= {"opacity": 0.6, "line": {"width": 0}}
    x, y = {"title": "cosine similarity", "nticks": 8}, {"title": "pairs, %"}
    return draw(traces, title, x, y, barmode="overlay", bargap=0, height=360)


def overlap_figure(
    labels: Sequence[str], share: np.ndarray, shared: np.ndarray, title: str
) -> go.Figure:
    """[row, row] share of errors in common, 0–1 or NaN (Eq. 3)."""
    names = shorten_apart(labels, LABEL_LENGTH)
    look = {"colorbar": {"title": {"text": "I"}}, "customdata": shared, **_CELL_FONT}
    hover = "%{y}<br>%{x}<br>I = %{z:.3f}, %{customdata:,} shared"
    matrix = cells(share, names, names, hover, (0, 1), **look, **cell_labels(share))
    x, y = {"tickangle": -35, **_NAMES}, {**_NAMES, **TOP_DOWN}
    return draw([matrix], title, x, y, height=220 + 64 * len(labels))


def confusion_figure(labels: Sequence[str], counts: np.ndarray, title: str) -> go.Figure:
    """[own label, predicted label] shares of each label's texts."""
    names = shorten_apart(labels, LABEL_LENGTH)
    share = counts / counts.sum(axis=1, keepdims=True)
    bar = {"colorbar": {"title": {"text": "share"}, "tickformat": ".0%"}}
    look = {"customdata": counts, **bar, **_CELL_FONT, **cell_labels(share, percent)}
    hover = "label %{y}<br>predicted %{x}<br>%{customdata:,} texts, %{z:.1%}"
    axis = {"type": "category", **_NAMES}
    return draw(
        [cells(share, names, names, hover, (0, 1), **look)],
        title,
        {"tickangle": -35, "title": "predicted label", **axis},
        {"title": "own label", **axis, **TOP_DOWN},
        height=240 + 36 * len(labels),
    )


def quality_figure(
    qualities: Sequence[str],
    matrices: Sequence[np.ndarray],  # [fixed1, fixed2]
    fixed: Sequence[tuple[np.ndarray, np.ndarray]],
    title: str,
    *,
    is_ratio: bool = False,  # colours are centred at 1 and clipped to 0.5–1.5
) -> go.Figure:
    """One heatmap per quality over the two others (section 3.1), of tau-c or its ratio."""
    figure = make_subplots(
        cols=max(1, len(qualities)),
        subplot_titles=[f"{escape(shorten(name, 20))} varies" for name in qualities],
        horizontal_spacing=0.08,
    )
    hover = "others fixed at %{y} and %{x}: %{text}"
    for column, (matrix, (rows, columns)) in enumerate(zip(matrices, fixed, strict=True), 1):
        x, y = ([f"{value:g}" for value in values] for values in (columns, rows))
        # a diverging scale is centred at 0: ratios are drawn minus 1
        drawn = matrix - 1 if is_ratio else matrix
        look = {"coloraxis": "coloraxis", **cell_labels(matrix)}
        figure.add_trace(cells(drawn, x, y, hover, **look), row=1, col=column)
    colours = _quality_colours(matrices, is_ratio)
    figure.update_layout(title=title, coloraxis=colours, margin={"t": 90}, height=420)
    figure.update_xaxes(type="category", **_NAMES)
    return figure.update_yaxes(type="category", **_NAMES)


def _quality_colours(matrices: Sequence[np.ndarray], is_ratio: bool) -> dict[str, Any]:
    if is_ratio:
        names = {"tickvals": [-0.5, -0.25, 0, 0.25, 0.5],
                 "ticktext": ["≤ 0.5", "0.75", "1", "1.25", "≥ 1.5"]}  # fmt: skip
        return {"cmin": -0.5, "cmax": 0.5, "colorbar": {"title": {"text": "ratio"}, **names}}
    values = np.concatenate([np.zeros(1), *map(np.ravel, matrices)])
    finite = values[np.isfinite(values)]
    low, high = 0.0, float(finite.max()) or 1.0
    if finite.min() < 0:
        low, high = symmetric_range(finite)
    return {"cmin": low, "cmax": high, "colorbar": {"title": {"text": "tau-c"}}}


# --- sweeps ------------------------------------------------------------------------------------


def line_figure(
    setting: str,
    values: Sequence[float],
    measured: Sequence[float],
    intervals: Sequence[Interval],
    title: str,
    axis: str,
    published: Sequence[Published] = (),
    baselines: Mapping[str, float] = NO_BASELINES,
) -> go.Figure:
    """A measure over one setting with 95% intervals and baselines; NaN is skipped."""
    order = [index for index in np.argsort(values) if np.isfinite(measured[index])]
    x, y = [values[index] for index in order], [measured[index] for index in order]
    known = [interval for index in order if (interval := intervals[index]) is not None]
    traces = _band(x, known) if known and len(known) == len(order) else []
    hover = f"{escape(setting)} %{{x}}: %{{y:.3f}}"
    traces.append(line(x, y, BLUE, hover, width=2.5, name=axis, showlegend=False))
    traces[-1]["marker"]["color"] = BLUE
    diamonds = [(value, *entry) for value, entry in zip(values, published, strict=False) if entry]
    written = {}
    if min(values) > 0 and max(values) > WIDE_RANGE * min(values):
        written = {"type": "log", "tickvals": x, "ticktext": [f"{value:g}" for value in x]}
    figure = draw(
        traces + _published_traces(diamonds, value="y"),
        title,
        {"title": escape(setting), **written},
        {"title": axis, "nticks": 6},
        height=_rows_height(_LINE_ROWS),
    )
    for place, (name, value) in enumerate(baselines.items()):
        label = {"text": name, "xanchor": "right", "x": 1, "yanchor": "bottom"}
        figure.add_hline(y=value, line=_baseline_look(place), annotation=label)
    if baselines and x:
        ends = [end for interval in known for end in interval]
        figure.update_yaxes(range=widen([*baselines.values(), *y, *ends]))
    return figure


def _band(x: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[Trace]:
    low, high = zip(*intervals, strict=True)
    look: Trace = {"width": 0, "size": 0, "name": "95% interval"}
    filled: Trace = {"fill": "tonexty", "fillcolor": _BAND}
    return [
        line(x, low, BLUE, showlegend=False, **look),
        line(x, high, BLUE, showlegend=True, **filled, **look),
    ]


def grid_figure(
    settings: tuple[str, str],
    values: tuple[Sequence[float], Sequence[float]],
    measured: Sequence[float],
    title: str,
    axis: str,
) -> go.Figure:
    """A measure over two settings, NaN for none."""
    down, across = (sorted(set(setting_values)) for setting_values in values)
    matrix = np.full((len(down), len(across)), np.nan)
    for a, b, value in zip(*values, measured, strict=True):
        matrix[down.index(a), across.index(b)] = value
    x, y = ([f"{value:g}" for value in ends] for ends in (across, down))
    y_name, x_name = map(escape, settings)
    look: Trace = {"colorbar": {"title": {"text": axis}}, **_CELL_FONT}
    labels = cell_labels(matrix, lambda value: number(value, "#.3g").rstrip("."))
    hover = f"{y_name} %{{y}}, {x_name} %{{x}}: %{{text}}"
    return draw(
        [cells(matrix, x, y, hover, **look, **labels)],
        title,
        {"title": x_name, "type": "category", **_NAMES},
        {"title": y_name, "type": "category", **_NAMES, **TOP_DOWN},
        height=_rows_height(1 + len(down)),
    )


# --- neighbours of a corpus --------------------------------------------------------------------


def label_accuracy_figure(
    methods: Sequence[str],
    accuracies: Mapping[str, np.ndarray],  # [method, 3] value and interval, 0–1; NaN for none
    baselines: Mapping[str, float],  # accuracy of the most frequent label
    *,
    title: str = "k-NN accuracy",
) -> go.Figure:
    """k-NN accuracy per label column, with a bar per method."""
    colours, names = method_colours(methods), shorten_apart(methods, 40)
    values = 100 * np.array([np.asarray(shares, dtype=float) for shares in accuracies.values()])
    looks = [colours[method] for method in methods]
    traces = [
        _method_bars(name, values[:, i], looks[i], _PATTERNS[looks[:i].count(looks[i]) % 4])
        for i, name in enumerate(names)
    ]
    name = "majority baseline"
    for place, column in enumerate(accuracies):
        ends, level = [place - 0.45, place + 0.45], [100 * baselines[column]] * 2
        look: Trace = {"dash": "dash", "size": 0, "name": name, "legendgroup": "baseline"}
        look["showlegend"] = place == 0
        traces.append(line(ends, level, GROUND, f"{name}: %{{y:.1f}}%", **look))
    axis = {"range": [-0.5, len(accuracies) - 0.5], "showgrid": False}
    return draw(
        traces,
        escape(title),
        name_axis(list(accuracies), 16, **axis),
        {"title": "accuracy (higher is better)", "range": [0, 100], "ticksuffix": "%"},
        barmode="group",
        bargap=0.2,
        showlegend=True,
    )


def _method_bars(name: str, values: np.ndarray, colour: str, pattern: str) -> Trace:
    share, low, high = values.T
    bounds = "95% interval: %{customdata[0]:.1f}% to %{customdata[1]:.1f}%"
    look: Trace = {
        "error_y": _error_bar(share, low, high, thickness=2, width=5, color=GROUND),
        "customdata": values[:, 1:],
        "text": [percent(value / 100) for value in share],
        "textposition": "inside",
        "insidetextanchor": "middle",  # above the baseline
        "textangle": 0,
        "insidetextfont": {"color": "white", "size": SMALL_FONT_SIZE},
    }
    hover = f"%{{fullData.name}}<br>%{{y:.1f}}% ({bounds})"
    trace = bars(np.arange(len(values)), share, colour, hover, name=name, **look)
    shape = {"shape": pattern, "fillmode": "overlay", "fgcolor": "white", "fgopacity": 0.4}
    trace["marker"]["pattern"] = shape
    return trace


# --- results of an experiment ------------------------------------------------------------------


def yardstick_figure(results: Results, data: int, yardstick: Yardstick) -> go.Figure | None:
    """A yardstick for all rows of an experiment; None if there is nothing to draw."""
    measure = yardstick.measure
    measured = {
        row: result
        for row, _, result in results.finished(data)
        if measure != "paraphrases" and getattr(result, measure) is not None
    }
    if not measured:
        return None
    among = [row.label for row in results.rows]  # also unfinished ones, to keep colours stable
    rows, labels = list(measured), [among[row] for row in measured]
    values = [yardstick.read(result) for result in measured.values()]
    intervals = [yardstick.interval(result) for result in measured.values()]
    title, axis = yardstick.title[:1].upper() + yardstick.title[1:], yardstick.axis
    published: list[Published] = []
    baselines: dict[str, float] = {}
    counts: list[BrokenCount] = []
    if measure == "correlations":
        published = [_read_published(results, data, row, yardstick.name) for row in rows]
    elif measure in _BROKEN_NAMES:
        counts = [getattr(result, measure) for result in measured.values()]
        title = f"{_BROKEN_NAMES[measure]} (of {counts[0].total:,})"
        values, intervals = [100 * value for value in values], [None] * len(rows)
    else:
        first = measured[rows[0]]
        baselines = {"majority baseline": yardstick.chance(first)}
        if measure == "probe" and first.probe is not None and first.probe.tfidf is not None:
            baselines["TF-IDF baseline"] = first.probe.tfidf
    swept = _swept_figure(results, rows, values, intervals, title, axis, published, baselines)
    if swept is not None:
        return swept
    if counts:
        return _error_figure(labels, counts, title, among)
    if baselines:
        return accuracy_figure(labels, values, intervals, baselines, title, among)
    return interval_figure(labels, values, intervals, title, axis, published, among=among)


def _read_published(results: Results, data: int, row: int, name: str) -> Published:
    paper = results.published(data, row)
    return (paper.values[name], paper.model) if paper and name in paper.values else None


def lead_of_best(results: Results, data: int, yardstick: Yardstick) -> go.Figure | None:
    """The best row's lead over the others; None for one row, a sweep or no intervals."""
    all_leads = compute_leads(results, data, yardstick)
    leads = [lead for lead in all_leads if lead.first == all_leads[0].first]
    if not any(lead.interval for lead in leads) or find_swept_options(results.rows):
        return None
    scale, unit = (100, "percentage points") if yardstick.is_share else (1, "lead")
    values = [scale * lead.value for lead in leads]
    intervals = [
        lead.interval and (scale * lead.interval[0], scale * lead.interval[1]) for lead in leads
    ]
    figure = interval_figure(
        [lead.second for lead in leads],
        values,
        intervals,
        f"Lead of {escape(shorten(leads[0].first, LABEL_LENGTH))} over …",
        f"{unit} ↑",
        among=[row.label for row in results.rows],
    )
    for trace, lead in zip(figure.data, leads, strict=True):
        text, _ = write_lead(lead.value, lead.interval, yardstick.is_share)
        trace.text = [text.partition(" ")[0]]
    figure.add_vline(x=0, line={"color": GROUND, "width": 2}, layer="below")
    ends = [end for interval in intervals for end in interval or ()]
    figure.update_xaxes(range=widen([0.0, *values, *ends]))
    if yardstick.measure in ("neighbours", "probe"):  # aligned with the figure beside it
        figure.update_layout(margin={"t": WITH_BASELINE + 18 * (yardstick.measure == "probe")})
    return figure


def _swept_figure(
    results: Results,
    rows: Sequence[int],
    values: Sequence[float],
    intervals: Sequence[Interval],
    title: str,
    axis: str,
    published: Sequence[Published],
    baselines: Mapping[str, float],
) -> go.Figure | None:
    """A measure over the options in which the rows differ; None if they are no sweep."""
    options = find_swept_options(results.rows)
    names = [_OPTION_NAMES.get(name, name.replace("_", " ")) for name in options]
    if len(names) == 1:
        (all_values,) = options.values()
        settings = [all_values[row] for row in rows]
        figure = line_figure(
            names[0], settings, values, intervals, title, axis, published, baselines
        )
        return figure.update_yaxes(tickformat=".0%") if baselines else figure
    if len(names) == 2:
        down, across = options.values()
        by_row = dict(zip(rows, values, strict=True))
        row_values = [by_row.get(row, np.nan) for row in range(len(results.rows))]
        return grid_figure((names[0], names[1]), (down, across), row_values, title, axis)
    return None


def histograms(results: Results, data: int) -> Iterator[tuple[int, go.Figure]]:
    for row, label, result in results.finished(data):
        if len(result.same) and len(result.diff):
            title = f"Cosines by {escape(label)}"
            yield row, product_histogram(result.same, result.diff, title)


def common_figures(results: Results, data: int) -> Iterator[tuple[Measure, go.Figure]]:
    compared = results.compared.get(data)
    if compared is None:
        return
    labels = [results.rows[row].label for row in compared.rows]
    for name, overlap in compared.overlaps.items():
        if np.isfinite(overlap.share).sum() >= 2 * 2:  # at least two rows have errors
            title = f"Shared errors: {name}"
            yield name, overlap_figure(labels, overlap.share, overlap.shared, title)


def confusion_figures(
    results: Results, data: int
) -> Iterator[tuple[int, str, Confusion, go.Figure]]:
    for row, label, result in results.finished(data):
        for measure, confusion in result.confusions.items():
            reduced = _order_ranges(confusion.at_most())
            title = f"Confused labels by {escape(label)} ({measure})"
            yield row, measure, reduced, confusion_figure(reduced.labels, reduced.counts, title)


def _order_ranges(confusion: Confusion) -> Confusion:
    """Ranges such as ``3 to 5 words`` by the number that they begin with; other labels stay."""
    starts = [re.match(r"\d+", label) for label in confusion.labels]
    if not all(starts):
        return confusion
    order = np.argsort([int(start[0]) for start in starts if start], kind="stable")
    labels = tuple(confusion.labels[i] for i in order)
    return replace(confusion, labels=labels, counts=confusion.counts[np.ix_(order, order)])


def quality_figures(results: Results, data: int) -> Iterator[tuple[int, str, go.Figure]]:
    """Row, ``tau-c`` or ``ratio`` (of the first row by this one), and its figure."""
    first = None
    for row, label, result in results.finished(data):
        maps = result.paraphrases
        if not maps:
            continue
        names = [quality_map.quality for quality_map in maps]
        fixed = [(quality_map.fixed1, quality_map.fixed2) for quality_map in maps]
        matrices: list[np.ndarray] = [quality_map.kendall_c for quality_map in maps]
        yield row, "tau-c", quality_figure(names, matrices, fixed, f"tau-c by {escape(label)}")
        if first is None:
            first = (label, maps)
            continue
        ratios = [a.ratio(b) for a, b in zip(first[1], maps, strict=True)]
        title = f"tau-c: {escape(first[0])} divided by {escape(label)}"
        yield row, "ratio", quality_figure(names, ratios, fixed, title, is_ratio=True)
