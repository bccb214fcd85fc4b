"""A report of an experiment: one page with every setting in it, that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from neuralviz import __version__
from neuralviz.errors import Stopped, never
from neuralviz.evaluation.broken import TIE
from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.plots.evaluation import rows_height
from neuralviz.plots.results import (
    broken_figure,
    common_figures,
    correlation_figure,
    histograms,
    neighbours_figure,
    quality_figures,
)
from neuralviz.plots.theme import style
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.results import Results

MAX_HISTOGRAMS = 4
_STYLE = """
body{font:17px/1.5 'Source Sans 3','Helvetica Neue',Arial,sans-serif;color:#1f2328;background:#fff;
max-width:1100px;margin:2.5rem auto;padding:0 1.2rem}h1{margin-bottom:.2rem}h2{margin-top:2.6rem}
table{border-collapse:collapse;font-size:15px;display:block;overflow-x:auto}
.settings td{white-space:normal}table{margin:0 0 1.4rem}
th,td{padding:.3rem .7rem;border-bottom:1px solid #e6e3dc;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}.note{color:#59616a;font-size:15px}
"""


def report_html(results: Results, *, should_stop: ShouldStop = never) -> str:
    """The page. Everything that a user gave is escaped in it.

    Args:
        results: of an experiment.
        should_stop: asked before every figure is written.

    Raises:
        Stopped: ``should_stop`` said so.
    """
    finished = f"{len(results.cells)} of {many(results.plan.n_cells, 'result')} finished."
    parts = [
        f"<h1>Evaluation</h1><p class='note'>neuralviz {escape(__version__)}. {finished} "
        f"Models: {escape(results.models())}. All settings are listed at the end.</p>"
    ]
    figures_drawn = 0
    for number, data in enumerate(results.data):
        parts.append(f"<h2>{escape(data.name)}</h2><p>{escape(data.describe())}.</p>")
        parts += [f"<p class='note'>{escape(note)}</p>" for note in data.notes]
        read = "; ".join(f"{role}: column “{column}”" for role, column in data.columns.items())
        parts.append(f"<p class='note'>Data hash: {data.digest}. {escape(read)}</p>")
        parts += [_table(*one) for one in results.tables(number)]
        parts += [f"<p class='note'>{escape(one)}</p>" for one in results.sentences(number)]
        if left_out := results.left_out(number):
            parts.append(f"<p class='note'>{escape(left_out)}</p>")
        parts.append(_published(results, number))
        for figure, height in data_figures(results, number):
            if should_stop():
                raise Stopped
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
        f"{_settings(results)}</body></html>"
    )


def data_figures(results: Results, number: int) -> Iterable[tuple[go.Figure, int]]:
    """Figures of a data set with their heights in px."""
    for name in COEFFICIENTS[:2]:
        if found := correlation_figure(results, number, name):
            yield found[0], rows_height(found[1])
    for name in ("pairs", "triplets"):
        if found := broken_figure(results, number, name):
            yield found[0], rows_height(found[1])
    if found := neighbours_figure(results, number):
        yield found[0], rows_height(found[1])
    for _, figure, n_rows in common_figures(results, number):
        yield figure, 180 + 60 * n_rows
    for _, figure in islice(histograms(results, number), MAX_HISTOGRAMS):
        yield figure, 380
    for _, _, figure in quality_figures(results, number):
        yield figure, 420


def _settings(results: Results) -> str:
    settings = results.settings()
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
        f"<h2>Settings</h2><p class='note'>Measures: {escape(asked)}; "
        f"{many(settings['neighbours'], 'neighbour')}; "
        f"{many(settings['bootstrap resamples'], 'bootstrap resample')}, seed "
        f"{settings['bootstrap seed']}. Cosine similarities that differ by less than {TIE:g} are "
        "ties, and ties count as broken.</p>"
        + _table(["method", "model", "precision", "options"], rows, "settings")
    )


def _published(results: Results, number: int) -> str:
    heads, lines = results.published_table(number)
    if not lines:
        return ""
    return "<h3>Published results, with the model used in the paper</h3>" + _table(heads, lines)


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]], kind: str = "") -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in line)}</tr>" for line in lines
    )
    return f"<table class='{kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
