"""Figures of an experiment's results, for the page and for the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.in_words import NAMES
from neuralviz.evaluation.leads import compute_leads
from neuralviz.evaluation.paraphrases import ratio
from neuralviz.evaluation.probed import Probed
from neuralviz.evaluation.sweeps import find_swept_options
from neuralviz.headlines import write_lead
from neuralviz.plots.confusion import confusion_figure
from neuralviz.plots.evaluation import (
    WITH_BASELINE,
    WrittenLead,
    accuracy_figure,
    error_figure,
    interval_figure,
    lead_figure,
    overlap_figure,
    product_histogram,
    quality_figure,
)
from neuralviz.plots.sweeps import NO_BASELINES, grid_figure, line_figure
from neuralviz.plots.theme import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.evaluation.confusion import Confusion
    from neuralviz.evaluation.data import Measure
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


def correlation_figure(results: Results, data: int, name: str) -> tuple[go.Figure, int] | None:
    """A coefficient of all rows with its intervals, and what was published, and how many rows.

    Args:
        results: of an experiment.
        data: number of the data set.
        name: of `Correlation`, e.g. ``spearman``.
    """
    measured = [
        (row, label, result) for row, label, result in results.finished(data) if result.correlations
    ]
    if not measured:
        return None
    papers = [results.published(data, row) for row, _, _ in measured]
    published = [
        (getattr(paper, name), paper.model)
        if paper and getattr(paper, name, None) is not None
        else None
        for paper in papers
    ]
    values = [getattr(result.correlations, name) for _, _, result in measured]
    intervals = [
        getattr(result.intervals, name) if result.intervals else None for _, _, result in measured
    ]
    title, axis = COEFFICIENT_NAMES[name], f"{NAMES[name]} ↑"
    return _swept_figure(
        results, [row for row, _, _ in measured], values, intervals, title, axis, published
    ) or (
        interval_figure(
            [label for _, label, _ in measured],
            values,
            intervals,
            title,
            axis,
            published,
            among=_labels(results),
        ),
        len(measured),
    )


def broken_figure(results: Results, data: int, name: str) -> tuple[go.Figure, int] | None:
    """The share of ``pairs`` or ``triplets`` that every row breaks, and how many rows."""
    counted = [(row, label, getattr(result, name)) for row, label, result in results.finished(data)]
    measured = [(row, label, result) for row, label, result in counted if result is not None]
    if not measured:
        return None
    errors = [result.error for _, _, result in measured]
    title = f"{BROKEN_NAMES[name]} (of {measured[0][2].total:,})"
    return _swept_figure(
        results, [row for row, _, _ in measured], [100 * error for error in errors],
        [None] * len(measured), title, "error, % ↓",
    ) or (
        error_figure(
            [label for _, label, _ in measured],
            errors,
            [result.wrong_strict / result.total for _, _, result in measured],
            title,
            _labels(results),
        ),
        len(measured),
    )  # fmt: skip


def shares_figure(
    results: Results, data: int, yardstick: Yardstick
) -> tuple[go.Figure, int] | None:
    """How often labels are told, by the nearest texts or by a probe, and how many rows."""
    shares = [
        (row, label, result.accuracy_of(yardstick.measure))
        for row, label, result in results.finished(data)
    ]
    measured = [(row, label, result) for row, label, result in shares if result is not None]
    if not measured:
        return None
    accuracies = [result.accuracy for _, _, result in measured]
    intervals = [result.interval for _, _, result in measured]
    first = measured[0][2]
    baselines = {"majority baseline": first.baseline}
    if isinstance(first, Probed) and first.tfidf is not None:
        baselines["TF-IDF baseline"] = first.tfidf
    title = yardstick.title[:1].upper() + yardstick.title[1:]
    return _swept_figure(
        results, [row for row, _, _ in measured], accuracies, intervals, title, "accuracy ↑",
        baselines=baselines,
    ) or (
        accuracy_figure(
            [label for _, label, _ in measured], accuracies, intervals, baselines, title,
            _labels(results),
        ),
        len(measured),
    )  # fmt: skip


def yardstick_figure(
    results: Results, data: int, yardstick: Yardstick
) -> tuple[go.Figure, int] | None:
    """The figure of a yardstick for all rows, and how many rows it is high."""
    if yardstick.measure == "correlations":
        return correlation_figure(results, data, yardstick.name)
    if yardstick.measure in ("neighbours", "probe"):
        return shares_figure(results, data, yardstick)
    if yardstick.measure in ("pairs", "triplets"):
        return broken_figure(results, data, yardstick.measure)
    return None


def lead_of_best(results: Results, data: int, yardstick: Yardstick) -> tuple[go.Figure, int] | None:
    """How far the best row is ahead of the others, and how many rows it is high.

    None where there are fewer than two rows, where nobody knows an interval, or where the rows are
    a sweep, whose figure is a line.
    """
    all_leads = compute_leads(results, data, yardstick)
    best_leads = [lead for lead in all_leads if lead.first == all_leads[0].first]
    if not any(lead.interval for lead in best_leads) or find_swept_options(results.rows):
        return None
    scale, unit = (100, "percentage points") if yardstick.is_share else (1, "")
    written = [
        WrittenLead(
            scale * lead.value,
            None if lead.interval is None else (scale * lead.interval[0], scale * lead.interval[1]),
            unit,
            write_lead(lead.value, lead.interval, yardstick.is_share)[0].partition(" ")[0],
        )
        for lead in best_leads
    ]
    figure = lead_figure(
        all_leads[0].first, [lead.second for lead in best_leads], written, _labels(results)
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
    intervals: Sequence[tuple[float, float] | None],
    title: str,
    axis: str,
    published: Sequence[tuple[float, str] | None] = (),
    baselines: Mapping[str, float] = NO_BASELINES,
) -> tuple[go.Figure, int] | None:
    """A measure over the options by which all rows differ, and how many rows it is high.

    None where they are no sweep. Rows that are missing leave a gap.
    """
    options = find_swept_options(results.rows)
    names = [OPTION_NAMES.get(name, name.replace("_", " ")) for name in options]
    if len(names) == 1:
        (all_values,) = options.values()
        option_values = [all_values[row] for row in rows]
        references = published or [None] * len(rows)
        figure = line_figure(
            names[0], option_values, values, intervals, title, axis, references, baselines
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
