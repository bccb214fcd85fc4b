"""Figures of an experiment's results, for the page and for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.evaluation.paraphrases import ratio
from neuralviz.evaluation.plan import find_swept_options
from neuralviz.evaluation.probed import Probed
from neuralviz.evaluation.results import NAMES
from neuralviz.evaluation.yardsticks import compute_leads
from neuralviz.headlines import write_lead
from neuralviz.plots.evaluation import (
    NO_BASELINES,
    WITH_BASELINE,
    Interval,
    Published,
    accuracy_figure,
    confusion_figure,
    error_figure,
    grid_figure,
    interval_figure,
    lead_figure,
    line_figure,
    overlap_figure,
    product_histogram,
    quality_figure,
)
from neuralviz.plots.theme import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.events import Measured
    from neuralviz.evaluation.probed import Confusion
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

COEFFICIENT_NAMES = {
    "spearman": "Spearman correlation",
    "kendall_c": "Kendall tau-c correlation",
    "kendall_b": "Kendall tau-b correlation",
    "pearson": "Pearson correlation",
}
BROKEN_NAMES = {"pairs": "Broken comparisons", "triplets": "Broken triplets"}
LINE_ROWS = 6  # a figure with a line is as high as one with so many rows
OPTION_NAMES = {"layer_start": "first layer"}  # options with another name in figures

Drawn = tuple["go.Figure", int] | None  # a figure, and how many rows it is high


def yardstick_figure(results: Results, data: int, yardstick: Yardstick) -> Drawn:
    """The figure of a yardstick for all rows of an experiment."""
    if yardstick.measure == "correlations":
        return correlation_figure(results, data, yardstick.name)
    if yardstick.measure in ("neighbours", "probe"):
        return _told_labels_figure(results, data, yardstick)
    if yardstick.measure in ("pairs", "triplets"):
        return broken_figure(results, data, yardstick.measure)
    return None


def correlation_figure(results: Results, data: int, name: str) -> Drawn:
    """A coefficient, e.g. ``spearman``, of all rows with its intervals, and what was published."""
    rows, labels, measured = _measured(results, data, lambda result: result.correlations and result)
    if not rows:
        return None
    papers = [results.published(data, row) for row in rows]
    published = [
        (getattr(paper, name), paper.model)
        if paper and getattr(paper, name, None) is not None
        else None
        for paper in papers
    ]
    values = [getattr(result.correlations, name) for result in measured]
    intervals = [result.intervals and getattr(result.intervals, name) for result in measured]
    written = (COEFFICIENT_NAMES[name], f"{NAMES[name]} ↑", published)
    return _swept_figure(results, rows, values, intervals, *written) or (
        interval_figure(labels, values, intervals, *written, among=_labels(results)),
        len(rows),
    )


def broken_figure(results: Results, data: int, name: str) -> Drawn:
    """The share of ``pairs`` or ``triplets`` that every row breaks."""
    rows, labels, counts = _measured(results, data, lambda result: getattr(result, name))
    if not rows:
        return None
    errors = [count.error for count in counts]
    strict = [count.wrong_strict / count.total for count in counts]
    title = f"{BROKEN_NAMES[name]} (of {counts[0].total:,})"
    percents, unknown = [100 * error for error in errors], [None] * len(rows)
    return _swept_figure(results, rows, percents, unknown, title, "error, % ↓") or (
        error_figure(labels, errors, strict, title, _labels(results)),
        len(rows),
    )


def _told_labels_figure(results: Results, data: int, yardstick: Yardstick) -> Drawn:
    """How often labels are told, by the nearest texts or by a probe."""
    rows, labels, shares = _measured(
        results, data, lambda result: result.accuracy_of(yardstick.measure)
    )
    if not rows:
        return None
    accuracies = [share.accuracy for share in shares]
    intervals = [share.interval for share in shares]
    baselines = {"majority baseline": shares[0].baseline}
    if isinstance(shares[0], Probed) and shares[0].tfidf is not None:
        baselines["TF-IDF baseline"] = shares[0].tfidf
    title = yardstick.title[:1].upper() + yardstick.title[1:]
    return _swept_figure(
        results, rows, accuracies, intervals, title, "accuracy ↑", (), baselines
    ) or (
        accuracy_figure(labels, accuracies, intervals, baselines, title, _labels(results)),
        len(rows),
    )


def _measured(
    results: Results, data: int, read: Callable[[Measured], Any]
) -> tuple[list[int], list[str], list[Any]]:
    """Rows, their labels, and what is read of them, where there is something."""
    known = [
        (row, label, value)
        for row, label, result in results.finished(data)
        if (value := read(result)) is not None
    ]
    rows, labels, values = zip(*known, strict=True) if known else ((), (), ())
    return list(rows), list(labels), list(values)


def lead_of_best(results: Results, data: int, yardstick: Yardstick) -> Drawn:
    """How far the best row is ahead of the others.

    None where there are fewer than two rows, where nobody knows an interval, or where the rows are
    a sweep, whose figure is a line.
    """
    all_leads = compute_leads(results, data, yardstick)
    best_leads = [lead for lead in all_leads if lead.first == all_leads[0].first]
    if not any(lead.interval for lead in best_leads) or find_swept_options(results.rows):
        return None
    scale, unit = (100, "percentage points") if yardstick.is_share else (1, "lead")
    figure = lead_figure(
        all_leads[0].first,
        [lead.second for lead in best_leads],
        [scale * lead.value for lead in best_leads],
        [
            lead.interval and (scale * lead.interval[0], scale * lead.interval[1])
            for lead in best_leads
        ],
        [
            write_lead(lead.value, lead.interval, yardstick.is_share)[0].partition(" ")[0]
            for lead in best_leads
        ],
        unit=unit,
        among=_labels(results),
    )
    if yardstick.measure in ("neighbours", "probe"):  # as high as the title of the figure beside it
        figure.update_layout(margin={"t": WITH_BASELINE + 18 * (yardstick.measure == "probe")})
    return figure, len(best_leads)


def _labels(results: Results) -> list[str]:
    """Labels of all rows, finished or not, so that no row changes its colour."""
    return [row.label for row in results.rows]


def _swept_figure(
    results: Results,
    rows: Sequence[int],
    values: Sequence[float],
    intervals: Sequence[Interval],
    title: str,
    axis: str,
    published: Sequence[Published] = (),
    baselines: Mapping[str, float] = NO_BASELINES,
) -> Drawn:
    """A measure over the options by which all rows differ, with gaps for rows that are missing.

    None where they are no sweep.
    """
    options = find_swept_options(results.rows)
    names = [OPTION_NAMES.get(name, name.replace("_", " ")) for name in options]
    if len(names) == 1:
        (all_values,) = options.values()
        settings = [all_values[row] for row in rows]
        figure = line_figure(
            names[0], settings, values, intervals, title, axis, published, baselines
        )
        if baselines:
            figure.update_yaxes(tickformat=".0%")
        return figure, LINE_ROWS
    if len(names) == 2:
        down, across = options.values()
        by_row = dict(zip(rows, values, strict=True))
        row_values = [by_row.get(row, np.nan) for row in range(len(results.rows))]
        figure = grid_figure((names[0], names[1]), (down, across), row_values, title, axis)
        return figure, 1 + len(set(down))
    return None


def histograms(results: Results, data: int) -> Iterator[tuple[int, go.Figure]]:
    """Row and its cosine similarities of similar and of dissimilar texts."""
    for row, label, result in results.finished(data):
        if len(result.same) and len(result.diff):
            title = f"Cosines by {escape(label)}"
            yield row, product_histogram(result.same, result.diff, title)


def common_figures(results: Results, data: int) -> Iterator[tuple[Measure, go.Figure, int]]:
    """Measure, the shared errors of the rows, and how many rows."""
    compared = results.compared.get(data)
    if compared is None:
        return
    labels = [results.rows[row].label for row in compared.rows]
    for name, overlap in compared.overlaps.items():
        if np.isfinite(overlap.share).sum() < 2 * 2:  # fewer than two rows break anything
            continue
        title = f"Shared errors: {name}"
        yield name, overlap_figure(labels, overlap.share, overlap.shared, title), len(labels)


def confusion_figures(
    results: Results, data: int
) -> Iterator[tuple[int, Measure, Confusion, go.Figure]]:
    """Row, measure, and which labels it takes for which, as many as can be read."""
    for row, label, result in results.finished(data):
        measures: tuple[Measure, ...] = ("neighbours", "probe")
        for measure in measures:
            confusion = result.confusion_of(measure)
            if confusion is not None:
                reduced = confusion.at_most()
                title = f"Confused labels by {escape(label)} ({measure})"
                yield row, measure, reduced, confusion_figure(reduced.labels, reduced.counts, title)


def quality_figures(results: Results, data: int) -> Iterator[tuple[int, str, go.Figure]]:
    """Row, ``tau-c`` or ``ratio``, and its maps; ratios are those of the first row by this one."""
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
        ratios = [ratio(a, b) for a, b in zip(first[1], maps, strict=True)]
        title = f"tau-c: {escape(first[0])} divided by {escape(label)}"
        yield row, "ratio", quality_figure(names, ratios, fixed, title, is_ratio=True)
