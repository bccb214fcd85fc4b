"""Figures of an experiment's results, for the page and for the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.paraphrases import ratio
from neuralviz.evaluation.results import NAMES
from neuralviz.plots.evaluation import (
    accuracy_figure,
    error_figure,
    interval_figure,
    overlap_figure,
    product_histogram,
    quality_figure,
)
from neuralviz.plots.theme import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.results import Results

OVERLAP_OF: dict[Measure, str] = {"triplets": "triplets", "pairs": "pairs of pairs"}


def correlation_figure(results: Results, data: int, name: str) -> tuple[go.Figure, int] | None:
    """A coefficient of all rows with its intervals, and what was published, and how many rows.

    Args:
        results: of an experiment.
        data: number of the data set.
        name: of `Correlation`, e.g. ``spearman``.
    """
    known = [(at, label, one) for at, label, one in results.finished(data) if one.correlations]
    if not known:
        return None
    theirs = [results.published(data, at) for at, _, _ in known]
    published = [
        (getattr(one, name), one.model) if one and getattr(one, name, None) is not None else None
        for one in theirs
    ]
    figure = interval_figure(
        [label for _, label, _ in known],
        [getattr(one.correlations, name) for _, _, one in known],
        [getattr(one.intervals, name) if one.intervals else None for _, _, one in known],
        f"{NAMES[name]} of products and scores",
        NAMES[name],
        published,
    )
    return figure, len(known)


def broken_figure(results: Results, data: int, name: str) -> tuple[go.Figure, int] | None:
    """The share of ``pairs`` or ``triplets`` that every row breaks, and how many rows."""
    counted = [(label, getattr(one, name)) for _, label, one in results.finished(data)]
    known = [(label, one) for label, one in counted if one is not None]
    if not known:
        return None
    figure = error_figure(
        [label for label, _ in known],
        [one.error for _, one in known],
        [one.wrong_strict / one.total for _, one in known],
        f"{name.capitalize()} broken, of {known[0][1].total:,}",
    )
    return figure, len(known)


def neighbours_figure(results: Results, data: int) -> tuple[go.Figure, int] | None:
    """The accuracy of the nearest texts' labels, and how many rows."""
    counted = [(label, one.neighbours) for _, label, one in results.finished(data)]
    known = [(label, one) for label, one in counted if one is not None]
    if not known:
        return None
    figure = accuracy_figure(
        [label for label, _ in known],
        [one.accuracy for _, one in known],
        [one.interval for _, one in known],
        known[0][1].baseline,
        known[0][1].k,
    )
    return figure, len(known)


def histograms(results: Results, data: int) -> Iterator[tuple[int, go.Figure]]:
    """Row and its products of what is alike and what is not."""
    for at, label, one in results.finished(data):
        if len(one.same) and len(one.diff):
            title = f"Products by {escape(label)}"
            yield at, product_histogram(one.same, one.diff, title)


def common_figures(results: Results, data: int) -> Iterator[tuple[Measure, go.Figure, int]]:
    """Measure, what rows break in common, and how many rows."""
    compared = results.compared.get(data)
    if compared is None:
        return
    labels = [results.rows[at].label for at in compared.rows]
    for name, one in compared.overlaps.items():
        if np.isfinite(one.share).sum() < 2 * 2:  # fewer than two rows break anything
            continue
        title = f"Broken {OVERLAP_OF[name]} in common"
        yield name, overlap_figure(labels, one.share, one.shared, title), len(labels)


def quality_figures(results: Results, data: int) -> Iterator[tuple[int, str, go.Figure]]:
    """Row, ``tau-c`` or ``ratio``, and its maps; ratios are those of the first row by this one."""
    first = None
    for at, label, one in results.finished(data):
        maps = one.paraphrases
        if not maps:
            continue
        names = [each.quality for each in maps]
        fixed = [(each.fixed1, each.fixed2) for each in maps]
        matrices: list[np.ndarray] = [each.kendall_c for each in maps]
        yield at, "tau-c", quality_figure(names, matrices, fixed, f"tau-c by {escape(label)}")
        if first is None:
            first = (label, maps)
            continue
        ratios = [ratio(a, b) for a, b in zip(first[1], maps, strict=True)]
        title = f"tau-c by {escape(first[0])}, over that by {escape(label)}"
        yield at, "ratio", quality_figure(names, ratios, fixed, title, is_ratio=True)
