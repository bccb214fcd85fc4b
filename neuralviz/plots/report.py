"""A report of an experiment: one page with every setting in it, that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.evaluation.data import ParaphraseData, ScoredData
from neuralviz.evaluation.paraphrases import ratio
from neuralviz.evaluation.results import NAMES
from neuralviz.plots.evaluation import (
    error_figure,
    interval_figure,
    overlap_figure,
    product_histogram,
    quality_figure,
    rows_height,
)
from neuralviz.plots.theme import style

if TYPE_CHECKING:
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.results import Results

MAX_HISTOGRAMS = 4
OVERLAP_OF: dict[Measure, str] = {"triplets": "triplets", "pairs": "pairs of pairs"}
_STYLE = """
body{font:17px/1.5 'Source Sans 3','Helvetica Neue',Arial,sans-serif;color:#1f2328;background:#fff;
max-width:1100px;margin:2.5rem auto;padding:0 1.2rem}h1{margin-bottom:.2rem}h2{margin-top:2.6rem}
table{border-collapse:collapse;font-size:15px;display:block;overflow-x:auto}
th,td{padding:.3rem .7rem;border-bottom:1px solid #e6e3dc;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}.note{color:#59616a;font-size:15px}
"""


def report_html(results: Results) -> str:
    """The page. Everything that a user gave is escaped in it."""
    parts = [_about(results)]
    figures_drawn = 0
    for number, data in enumerate(results.data):
        parts.append(f"<h2>{escape(data.name)}</h2><p>{escape(data.describe())}.</p>")
        parts += [f"<p class='note'>{escape(note)}</p>" for note in data.notes]
        parts += [_table(*one) for one in results.tables(number)]
        parts += _failures(results, number)
        parts.append(_published(results, number))
        for figure, height in data_figures(results, number):
            page = style(go.Figure(figure), dark=False)
            page.update_layout(height=height, paper_bgcolor="white")
            parts.append(
                page.to_html(
                    full_html=False,
                    include_plotlyjs=not figures_drawn,
                    config={"displaylogo": False, "responsive": True, "showSendToCloud": False},
                )
            )
            figures_drawn += 1
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Evaluation</title><style>{_STYLE}</style></head><body>{''.join(parts)}"
        "</body></html>"
    )


def data_figures(results: Results, number: int) -> Iterable[tuple[go.Figure, int]]:
    """Figures of a data set with their heights in px."""
    rows = [at for at in range(len(results.rows)) if results.measured(number, at)]
    labels = [results.rows[at].label for at in rows]
    yield from _correlation_figures(results, number, rows, labels)
    for name in ("pairs", "triplets"):
        counted = [(at, getattr(results.measured(number, at), name)) for at in rows]
        known = [(results.rows[at].label, one) for at, one in counted if one is not None]
        if known:
            errors = [one.error for _, one in known]
            strict = [one.wrong_strict / one.total for _, one in known]
            title = f"{name.capitalize()} broken, of {known[0][1].total:,}"
            figure = error_figure([label for label, _ in known], errors, strict, title)
            yield figure, rows_height(len(known))
    compared = results.compared.get(number)
    if compared is not None:
        names = [results.rows[at].label for at in compared.rows]
        for measure, one in compared.overlaps.items():
            title = f"Broken {OVERLAP_OF[measure]} in common"
            yield overlap_figure(names, one.share, one.shared, title), 180 + 60 * len(names)
    for at in rows[:MAX_HISTOGRAMS]:
        measured = results.measured(number, at)
        assert measured is not None
        if len(measured.same) and len(measured.diff):
            title = f"Products by {escape(results.rows[at].label)}"
            yield product_histogram(measured.same, measured.diff, title), 380
    if isinstance(results.data[number], ParaphraseData):
        yield from _quality_figures(results, number, rows)


def _correlation_figures(
    results: Results, number: int, rows: Sequence[int], labels: Sequence[str]
) -> Iterable[tuple[go.Figure, int]]:
    if not isinstance(results.data[number], ScoredData):
        return
    found = [results.measured(number, at) for at in rows]
    if not any(one is not None and one.correlations is not None for one in found):
        return
    for name in COEFFICIENTS[:2]:
        values = [
            np.nan if one is None or one.correlations is None else getattr(one.correlations, name)
            for one in found
        ]
        intervals = [
            None if one is None or one.intervals is None else getattr(one.intervals, name)
            for one in found
        ]
        theirs = [results.published(number, at) for at in rows]
        known = [
            None if one is None or getattr(one, name) is None else (getattr(one, name), one.model)
            for one in theirs
        ]
        figure = interval_figure(
            labels, values, intervals, f"{NAMES[name]} of products and scores", NAMES[name], known
        )
        yield figure, rows_height(len(labels))


def _quality_figures(
    results: Results, number: int, rows: Sequence[int]
) -> Iterable[tuple[go.Figure, int]]:
    first = None
    for at in rows:
        measured = results.measured(number, at)
        if measured is None or not measured.paraphrases:
            continue
        maps = measured.paraphrases
        names = [one.quality for one in maps]
        fixed = [(one.fixed1, one.fixed2) for one in maps]
        label = escape(results.rows[at].label)
        yield quality_figure(names, [m.kendall_c for m in maps], fixed, f"tau-c, {label}"), 420
        if first is None:
            first = (label, maps)
            continue
        ratios = [ratio(one, other) for one, other in zip(first[1], maps, strict=True)]
        title = f"tau-c of {first[0]} by that of {label}"
        yield quality_figure(names, ratios, fixed, title, is_ratio=True), 420


def _about(results: Results) -> str:
    settings = results.settings()
    done = f"{len(results.cells)} of {len(results.rows) * len(results.data)} cells are finished."
    rows = [
        [
            row["label"],
            row["model"] if isinstance(row["model"], str) else " + ".join(row["model"].values()),
            row["precision"] or "",
            "; ".join(
                f"{name} {value}" if len(row["options"]) == 1 else f"{method}.{name} {value}"
                for method, options in row["options"].items()
                for name, value in options.items()
            )
            or "defaults",
        ]
        for row in settings["rows"]
    ]
    measures = settings["measures"]
    asked = measures if isinstance(measures, str) else ", ".join(measures)
    return (
        "<h1>Evaluation</h1>"
        f"<p class='note'>neuralviz {escape(results.as_record()['neuralviz'])}; measures: "
        f"{escape(asked)}; {settings['neighbours']} neighbours; {settings['bootstrap resamples']} "
        f"bootstrap resamples. {done} Products that differ by less than 1e-7 are ties, and a tie "
        "counts as broken.</p>" + _table(["method", "model", "precision", "options"], rows)
    )


def _published(results: Results, number: int) -> str:
    known = [(row, results.published(number, at)) for at, row in enumerate(results.rows)]
    lines = [
        [
            row.label,
            one.model,
            *("" if value is None else f"{value:.3f}" for value in
              (one.spearman, one.kendall_c, one.kendall_b)),
            *("" if value is None else f"{value:,}" for value in (one.pairs, one.triplets)),
            one.source,
        ]
        for row, one in known
        if one is not None
    ]  # fmt: skip
    if not lines:
        return ""
    heads = ["method", "model", "Spearman", "tau-c", "tau-b", "pairs broken", "triplets broken",
             "paper"]  # fmt: skip
    return "<h3>As published, with the model that was measured there</h3>" + _table(heads, lines)


def _failures(results: Results, number: int) -> list[str]:
    said = []
    for at, row in enumerate(results.rows):
        cell = results.cells.get((number, at))
        if cell is None:
            continue
        reasons = [cell.error] if cell.error else []
        if cell.measured is not None:
            reasons += [f"{name}: {why}" for name, why in cell.measured.failed.items()]
        said += [f"<p class='note'>{escape(row.label)}: {escape(why)}</p>" for why in reasons]
    compared = results.compared.get(number)
    if compared is not None and compared.error:
        said.append(f"<p class='note'>{escape(compared.error)}</p>")
    return said


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in line)}</tr>" for line in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
