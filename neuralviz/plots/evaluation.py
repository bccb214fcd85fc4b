"""Figures of evaluations and experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from neuralviz.evaluation.broken import Overlap
from neuralviz.evaluation.data import Measure
from neuralviz.evaluation.measures import count_kinds
from neuralviz.evaluation.probing import Confusion
from neuralviz.evaluation.results import Measured, QualityMap, Results, Yardstick
from neuralviz.evaluation.rows import find_swept_options
from neuralviz.evaluation.yardsticks import compute_leads
from neuralviz.headlines import write_lead, write_values
from neuralviz.headlines.evaluation import find_confused, name_kinds, short_name, title_yardstick
from neuralviz.plots.theme import (
    BLUE,
    DISSIMILAR,
    GROUND,
    NOT_MEASURED,
    SIMILAR,
    SMALL_FONT_SIZE,
    TOP_DOWN,
    VERMILLION,
    Trace,
    bars,
    cell_labels,
    cells,
    dots,
    draw,
    escape,
    line,
    method_colours,
    shorten,
    shorten_apart,
    symmetric_range,
    widen,
)
from neuralviz.words import number, percent

MAX_BINS = 60
ROW_HEIGHT = 48  # px: a dot with its value above
LABEL_LENGTH = 34  # characters
WITH_BASELINE = 80  # px above a figure with a named baseline
WIDE_RANGE = 20  # ratio of values from which a settings axis is logarithmic
_BAND = "rgba(0, 114, 178, 0.16)"
_CELL_FONT = {"textfont": {"size": SMALL_FONT_SIZE}}
_NAMES = {"showgrid": False, "ticks": ""}  # axis of names beside cells
_LINE_ROWS = 6  # height of a line figure, in rows
_OPTION_NAMES = {"layer_start": "first layer"}  # display names of options

Interval = tuple[float, float] | None
Published = tuple[float, str] | None  # value and model


def _rows_height(n_rows: int) -> int:
    return 120 + ROW_HEIGHT * max(2, n_rows)


@dataclass(frozen=True)
class Chart:
    """A number of methods, or of one method with several settings, and what stands around it."""

    labels: Sequence[str]
    values: Sequence[float]  # NaN for none
    intervals: Sequence[Interval]  # 95%
    title: str
    axis: str
    form: str = ".3f"  # of a value
    published: Sequence[Published] = ()
    baselines: Mapping[str, float] = field(default_factory=dict)  # those of accuracies
    among: Sequence[str] = ()  # all labels, also unfinished ones, to keep colours stable
    names: Sequence[str] = ()  # of the labels in sentences; by default the labels

    @property
    def ticks(self) -> dict[str, str]:
        """The format of the axis of values."""
        return {"tickformat": "~%"} if self.form.endswith("%") else {}

    @property
    def ends(self) -> list[float]:
        """All baselines, values and ends of intervals."""
        bounds = [end for interval in self.intervals for end in interval or ()]
        return [*self.baselines.values(), *np.array(self.values)[np.isfinite(self.values)], *bounds]


def interval_figure(chart: Chart) -> go.Figure:
    """Values with intervals, hollow diamonds for published ones, and a line per baseline."""
    names = shorten_apart(chart.names or chart.labels, LABEL_LENGTH)
    colours = method_colours(chart.among or chart.labels)
    rows = zip(names, chart.labels, chart.values, chart.intervals, strict=True)
    finite = [value for value in chart.values if np.isfinite(value)]
    texts = iter(write_values(finite, chart.form.endswith("%")))  # as headlines do
    traces = [
        _interval_dot(name, value, interval, colours[label], chart.form)
        | {"text": [next(texts) if np.isfinite(value) else ""]}
        for name, label, value, interval in rows
    ]
    papers = zip(names, chart.published, strict=False)
    diamonds = [(entry[0], name, entry[1]) for name, entry in papers if entry]
    y = {"categoryorder": "array", "categoryarray": names[::-1], "showgrid": True, "ticks": ""}
    figure = draw(
        traces + _published_traces(diamonds, value="x"),
        chart.title,
        {"title": _title_axis(chart), "nticks": 8, **chart.ticks},
        {**y, "range": [-0.6, len(names) - (0.15 if chart.baselines else 0.4)]},
        height=_rows_height(len(names)),
    )
    for place, (name, value) in enumerate(chart.baselines.items()):
        side = "left" if value < np.mean(widen(chart.ends)) else "right"
        text = f"{name} {percent(value)}"
        label = {"text": text, "xanchor": side, "yanchor": "bottom", "yshift": 18 * place}
        figure.add_vline(x=value, line=_baseline_look(place), annotation=label, layer="below")
    if chart.baselines:
        _move_labels(figure, list(chart.baselines.values()), chart)
        top = WITH_BASELINE + 18 * (len(chart.baselines) - 1)
        figure.update_layout(xaxis={"range": widen(chart.ends)}, margin={"t": top})
    return figure


def _move_labels(figure: go.Figure, lines: Sequence[float], chart: Chart) -> None:
    """Write values that a vertical line would cross beside it."""
    near = 0.06 * float(np.ptp(widen([*chart.ends, *lines])))
    for trace, value in zip(figure.data, chart.values, strict=False):
        if any(abs(value - line) < near for line in lines):
            trace.textposition = "top right"


def _title_axis(chart: Chart) -> str:
    noun, _, arrow = chart.axis.rpartition(" ")
    return f"{noun}, with 95% interval {arrow}".rstrip() if any(chart.intervals) else chart.axis


def _interval_dot(name: str, value: float, interval: Interval, colour: str, form: str) -> Trace:
    hover, error = f"{name}: %{{x:{form}}}", None
    if interval is not None:
        low, high = interval
        hover += f"<br>95% interval: {number(low, form)} to {number(high, form)}"
        error = {"type": "data", "symmetric": False, "thickness": 2.5, "width": 7}
        error |= {"array": [high - value], "arrayminus": [value - low]}
    look: Trace = {"mode": "markers+text", "textposition": "top center"}
    look |= {"textfont": {"size": SMALL_FONT_SIZE}, "cliponaxis": False, "showlegend": False}
    return dots([value], [name], colour, hover, size=13, error_x=error, name=name, **look)


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


def _baseline_look(place: int) -> dict[str, Any]:
    return {"dash": "dot" if place else "dash", "color": GROUND, "width": 2}


def product_histogram(
    similar: np.ndarray,
    dissimilar: np.ndarray,
    title: str,
    names: tuple[str, str] = ("similar", "dissimilar"),
    counts: tuple[int, int] = (0, 0),  # of all pairs, of which these may be a sample
) -> go.Figure:
    """The shares of cosines, [pair] of each kind, in bins; a line at each mean."""
    cosines = np.concatenate([similar, dissimilar])
    low, high = (float(cosines.min()), float(cosines.max())) if len(cosines) else (0.0, 1.0)
    fewer = min(len(similar), len(dissimilar))
    n_bins = int(np.clip(3 * np.sqrt(max(fewer, 1)), 16, MAX_BINS))
    edges = np.linspace(low, high if high > low else low + 1e-3, n_bins + 1)
    middles, traces = (edges[:-1] + edges[1:]) / 2, []
    kinds = ((names[1], DISSIMILAR, dissimilar), (names[0], SIMILAR, similar))
    for (kind, colour, values), n in zip(kinds, reversed(counts), strict=True):
        share = np.histogram(values, edges)[0] / max(1, len(values)) * 100
        drawn = f"{len(values):,}{' sampled' * (len(values) < n)}"
        hover, name = f"{kind}: %{{y:.2g}}%<br>around %{{x:.3f}}", f"{kind} ({drawn})"
        if colour == DISSIMILAR:
            traces.append(bars(middles, share, colour, hover, width=np.diff(edges), name=name))
            traces[-1]["marker"] |= {"opacity": 0.7, "line": {"width": 0}}
        else:  # an outline, behind which the bars are seen
            traces.append(line(middles, share, colour, hover, width=4, size=0, name=name))
            traces[-1]["line"]["shape"] = "hvh"
    x, y = {"title": "cosine similarity", "nticks": 8}, {"title": "pairs, %"}
    figure = draw(traces, title, x, y, bargap=0, height=360, margin={"t": WITH_BASELINE})
    for _, colour, values in kinds:
        if len(values):
            mean = float(values.mean())
            side = "right" if mean < cosines.mean() else "left"
            label = {"text": f"average {number(mean, '.2f')}", "xanchor": side, "yanchor": "bottom"}
            figure.add_vline(x=mean, line={"color": colour, "width": 4}, annotation=label)
    return figure


def overlap_figure(labels: Sequence[str], overlap: Overlap, title: str) -> go.Figure:
    """[row, row] share of errors in common, 0–1 or NaN (Eq. 3); the diagonal is grey."""
    share = np.where(np.eye(len(labels), dtype=bool), np.nan, overlap.share)
    names = shorten_apart(labels, LABEL_LENGTH)
    look = {"colorbar": {"title": {"text": "share"}}, "customdata": overlap.shared, **_CELL_FONT}
    hover = "%{y}<br>%{x}<br>I = %{z:.3f}, %{customdata:,} shared"
    matrix = cells(share, names, names, hover, (0, 1), **look, **cell_labels(share))
    x, y = {"tickangle": -35, **_NAMES}, {**_NAMES, **TOP_DOWN}
    height = 220 + 64 * len(labels)
    return draw([matrix], title, x, y, height=height, plot_bgcolor=NOT_MEASURED)


def confusion_figure(
    confusion: Confusion, title: str, place: tuple[int, int] | None = None
) -> go.Figure:
    """[own label, predicted label] shares of each label's texts; a frame around a ``place``."""
    names, counts = shorten_apart(confusion.labels, LABEL_LENGTH), confusion.counts
    share = counts / counts.sum(axis=1, keepdims=True)
    look = {"showscale": False, "customdata": counts, **_CELL_FONT, **cell_labels(share, percent)}
    hover = "label %{y}<br>taken for %{x}<br>%{customdata:,} texts, %{z:.1%}"
    axis = {"type": "category", **_NAMES}
    figure = draw(
        [cells(share, names, names, hover, (0, 1), **look)],
        title,
        {"tickangle": -35, "title": "taken for", **axis},
        {"title": "own label", **axis, **TOP_DOWN},
        height=240 + 36 * len(names),
    )
    if place is not None:
        (row, column), frame = place, {"color": VERMILLION, "width": 4}
        ends = {"y0": row - 0.5, "y1": row + 0.5, "x0": column - 0.5, "x1": column + 0.5}
        figure.add_shape(type="rect", line=frame, **ends)
    return figure


def quality_figure(
    maps: Sequence[QualityMap], title: str, ratios: Sequence[np.ndarray] | None = None
) -> go.Figure:
    """One heatmap per quality over the two others (section 3.1), of tau-c or its ratio.

    Colours of [fixed1, fixed2] ratios are centred at 1 and clipped to 0.5–1.5.
    """
    figure = make_subplots(
        cols=max(1, len(maps)),
        subplot_titles=[f"{escape(shorten(entry.quality, 20))} varies" for entry in maps],
        horizontal_spacing=0.08,
    )
    matrices = [entry.kendall_c for entry in maps] if ratios is None else ratios
    hover = "others fixed at %{y} and %{x}: %{text}"
    for column, (matrix, entry) in enumerate(zip(matrices, maps, strict=True), 1):
        x, y = ([f"{value:g}" for value in values] for values in (entry.fixed2, entry.fixed1))
        # a diverging scale is centred at 0: ratios are drawn minus 1
        drawn = matrix if ratios is None else matrix - 1
        look = {"coloraxis": "coloraxis", **cell_labels(matrix)}
        figure.add_trace(cells(drawn, x, y, hover, **look), row=1, col=column)
    colours = _quality_colours(matrices, ratios is not None)
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


def line_figure(chart: Chart, setting: str, settings: Sequence[float]) -> go.Figure:
    """A measure over one setting with 95% intervals and baselines; NaN is skipped."""
    order = [index for index in np.argsort(settings) if np.isfinite(chart.values[index])]
    x, y = [settings[index] for index in order], [chart.values[index] for index in order]
    intervals = [interval for index in order if (interval := chart.intervals[index]) is not None]
    traces = _band(x, intervals) if intervals and len(intervals) == len(order) else []
    hover = f"{escape(setting)} %{{x}}: %{{y:{chart.form}}}"
    traces.append(line(x, y, BLUE, hover, width=2.5, name=chart.axis, showlegend=False))
    traces[-1]["marker"]["color"] = BLUE
    papers = zip(settings, chart.published, strict=False)
    diamonds = [(value, *entry) for value, entry in papers if entry]
    written = {}
    if min(settings) > 0 and max(settings) > WIDE_RANGE * min(settings):
        written = {"type": "log", "tickvals": x, "ticktext": [f"{value:g}" for value in x]}
    figure = draw(
        traces + _published_traces(diamonds, value="y"),
        chart.title,
        {"title": escape(setting), **written},
        {"title": chart.axis, "nticks": 6, **chart.ticks},
        height=_rows_height(_LINE_ROWS),
    )
    for place, (name, value) in enumerate(chart.baselines.items()):
        label = {"text": name, "xanchor": "right", "x": 1, "yanchor": "bottom"}
        figure.add_hline(y=value, line=_baseline_look(place), annotation=label)
    return figure.update_yaxes(range=widen(chart.ends)) if chart.baselines else figure


def _band(x: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[Trace]:
    low, high = zip(*intervals, strict=True)
    look: Trace = {"width": 0, "size": 0, "name": "95% interval"}
    filled: Trace = {"fill": "tonexty", "fillcolor": _BAND}
    return [
        line(x, low, BLUE, showlegend=False, **look),
        line(x, high, BLUE, showlegend=True, **filled, **look),
    ]


def grid_figure(chart: Chart, settings: Mapping[str, Sequence[float]]) -> go.Figure:
    """A measure over two settings, by name."""
    down, across = (sorted(set(values)) for values in settings.values())
    matrix = np.full((len(down), len(across)), np.nan)
    for a, b, value in zip(*settings.values(), chart.values, strict=True):
        matrix[down.index(a), across.index(b)] = value
    x, y = ([f"{value:g}" for value in ends] for ends in (across, down))
    y_name, x_name = map(escape, settings)
    look: Trace = {"colorbar": {"title": {"text": chart.axis}}, **_CELL_FONT}
    labels = cell_labels(matrix, lambda value: number(value, chart.form))
    hover = f"{y_name} %{{y}}, {x_name} %{{x}}: %{{text}}"
    return draw(
        [cells(matrix, x, y, hover, **look, **labels)],
        chart.title,
        {"title": x_name, "type": "category", **_NAMES},
        {"title": y_name, "type": "category", **_NAMES, **TOP_DOWN},
        height=_rows_height(1 + len(down)),
    )


# --- results of an experiment ------------------------------------------------------------------


def yardstick_figure(results: Results, data: int, yardstick: Yardstick) -> go.Figure | None:
    """A yardstick for all rows of an experiment; None if there is nothing to draw."""
    measure = yardstick.measure
    measured = {
        row: result
        for row, _, result in results.finished(data)
        if measure != "paraphrases" and result.find_result(measure) is not None
    }
    if not measured:
        return None
    rows, among = list(measured), [row.label for row in results.rows]
    chart = Chart(
        [among[row] for row in rows],
        [yardstick.read(result) for result in measured.values()],
        [result.interval(yardstick.name) for result in measured.values()],
        escape(title_yardstick(results.data[data], measured[rows[0]], yardstick)),
        yardstick.axis,
        yardstick.form,
        [_read_published(results, data, row, yardstick.name) for row in rows],
        _find_baselines(yardstick, measured[rows[0]]),
        among,
        list(map(short_name(results), (among[row] for row in rows))),
    )
    swept = find_swept_options(results.rows)
    options = {_OPTION_NAMES.get(name, name.replace("_", " ")): swept[name] for name in swept}
    if len(options) == 1:
        ((name, settings),) = options.items()
        return line_figure(chart, name, [settings[row] for row in rows])
    if options:
        return grid_figure(chart, {name: [s[row] for row in rows] for name, s in options.items()})
    return interval_figure(chart)


def _find_baselines(yardstick: Yardstick, measured: Measured) -> dict[str, float]:
    """What guessing, and what words alone, reach of a share."""
    if yardstick.measure == "read-back":
        return {"most frequent words": yardstick.compute_chance(measured)}
    accuracy = measured.accuracies.get(yardstick.measure)
    if accuracy is None:
        return {}
    baselines = {"always the same guess": accuracy.baseline, "TF-IDF baseline": accuracy.tfidf}
    return {name: value for name, value in baselines.items() if value is not None}


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
    name = short_name(results)
    chart = Chart(
        [lead.second for lead in leads],
        [scale * lead.value for lead in leads],
        [lead.interval and (scale * lead.interval[0], scale * lead.interval[1]) for lead in leads],
        f"Lead of {escape(shorten(name(leads[0].first), LABEL_LENGTH))} over …",
        f"{unit} ",
        among=[row.label for row in results.rows],
        names=[name(lead.second) for lead in leads],
    )
    figure = interval_figure(chart)
    for trace, lead in zip(figure.data, leads, strict=True):
        text, _ = write_lead(lead.value, lead.interval, yardstick.is_share)
        trace.text = [text.partition(" ")[0]]
    figure.add_vline(x=0, line={"color": GROUND, "width": 2}, layer="below")
    figure.update_xaxes(range=widen([0.0, *chart.ends]))
    _move_labels(figure, [0.0], chart)
    if yardstick.measure in ("neighbours", "probe"):  # aligned with the figure beside it
        figure.update_layout(margin={"t": WITH_BASELINE + 18 * (yardstick.measure == "probe")})
    return figure


def histograms(results: Results, data: int) -> Iterator[tuple[int, go.Figure]]:
    for row, label, result in results.finished(data):
        if len(result.same) and len(result.diff):
            title = f"Cosine similarities with {escape(short_name(results)(label))}"
            same, other = name_kinds(results.data[data], escape)
            names = same.removeprefix("pairs of the "), other
            counts = count_kinds(results.data[data])
            yield row, product_histogram(result.same, result.diff, title, names, counts)


def common_figures(results: Results, data: int) -> Iterator[tuple[Measure, go.Figure]]:
    compared = results.compared.get(data)
    if compared is None:
        return
    labels = list(map(short_name(results), (results.rows[row].label for row in compared.rows)))
    for name, overlap in compared.overlaps.items():
        if np.isfinite(overlap.share).sum() >= 2 * 2:  # at least two rows have errors
            yield name, overlap_figure(labels, overlap, f"Shared errors: {name}")


def confusion_figures(
    results: Results, data: int
) -> Iterator[tuple[int, str, Confusion, go.Figure]]:
    for row, label, result in results.finished(data):
        for measure, confusion in result.confusions.items():
            reduced = confusion.merge_rarest()
            kind = f" ({measure})" if len(result.confusions) > 1 else ""
            title = f"Confused labels with {escape(short_name(results)(label))}{kind}"
            figure = confusion_figure(reduced, title, find_confused(confusion))
            yield row, measure, reduced, figure


def quality_figures(results: Results, data: int) -> Iterator[tuple[int, str, go.Figure]]:
    """Row, ``tau-c`` or ``ratio`` (of the first row by this one), and its figure."""
    first = None
    for row, label, result in results.finished(data):
        maps = result.paraphrases
        if not maps:
            continue
        yield row, "tau-c", quality_figure(maps, f"{escape(label)}: tau-c")
        if first is None:
            first = (label, maps)
            continue
        ratios = [a.ratio(b) for a, b in zip(first[1], maps, strict=True)]
        title = f"tau-c: {escape(first[0])} divided by {escape(label)}"
        yield row, "ratio", quality_figure(maps, title, ratios)
