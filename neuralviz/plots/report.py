"""The report of an experiment as a standalone page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from itertools import count, islice
from pathlib import Path

import plotly.graph_objects as go

from neuralviz import __version__
from neuralviz.evaluation.broken import TIE
from neuralviz.evaluation.results import ARROWS, Results, Table
from neuralviz.evaluation.yardsticks import (
    INTERVALS,
    best_first,
    compute_leads,
    explain_measures,
    worst_cases,
    yardsticks_of,
)
from neuralviz.headlines import write_lead
from neuralviz.headlines.evaluation import describe_verdict, describe_worst, short_name
from neuralviz.plots import evaluation as plots
from neuralviz.plots.theme import FONT, shorten, style
from neuralviz.words import many
from neuralviz.words import number as written

MAX_HISTOGRAMS = 4  # and matrices of confused labels
LEFT_OUT = ("kendall_b", "pearson")  # only in the tables
MAX_LEADS = 15  # pairs of methods in the list: those of six methods
WORST_LISTED = 3  # of each method
QUOTED = 90  # characters of a text in a sentence
NAMES_SCRIPT = Path(__file__).with_name("names.js").read_text("utf-8")
TABLE_STYLE, _STYLE = (
    Path(__file__).with_name(name).read_text("utf-8") for name in ("tables.css", "report.css")
)


def report_html(results: Results) -> str:
    """The page, findings first; user text is escaped."""
    n_drawn = count()

    def draw(figures: Iterable[go.Figure]) -> Iterator[str]:
        return (figure_html(figure, with_library=next(n_drawn) == 0) for figure in figures)

    parts = [_summary_html(results)]
    for number, data in enumerate(results.data):
        finding = describe_verdict(results, number, name=_strong, quote=escape)
        parts.append(f"<h2>{escape(data.name)}</h2>" if len(results.data) > 1 else "")
        parts.append(f"<p class='headline'>{finding}</p>" if finding else "")
        parts.append(f"<p>{escape(data.describe())}.</p>")
        parts += draw(proof_figures(results, number))
        parts += _worst_html(results, number)
        parts += _tables_html(results, number)
        parts += draw(other_figures(results, number))
        read = "; ".join(f"{role}: column “{column}”" for role, column in data.columns.items())
        parts += [_note(note) for note in (*data.notes, f"Data hash: {data.digest}. {read}")]
    parts += [_explanation_html(results), _settings_html(results)]
    name = f": {results.data[0].name}" if len(results.data) == 1 else ""
    return page_html(About(f"Evaluation{name}"), "".join(parts), style=_STYLE + TABLE_STYLE)


def _note(text: str) -> str:
    return f"<p class='note'>{escape(text)}</p>"


def _strong(label: str) -> str:
    return f"<strong>{escape(label)}</strong>"


def _summary_html(results: Results) -> str:
    started = results.begun.replace("T", " ").removesuffix("Z")
    labels = "; ".join(row.label for row in results.rows)
    return (
        f"<p class='note'>{escape(started)} UTC, neuralviz {escape(results.version)}. "
        f"{len(results.cells)} of {many(results.plan.n_cells, 'result')} finished.<br>"
        f"Methods: {escape(labels)}. Models: {escape(results.models())}. "
        "All settings are listed at the end.</p>"
    )


def _tables_html(results: Results, number: int) -> list[str]:
    parts = ["<h3>All numbers</h3>"]
    parts += [table_html(table) for table in results.tables(number) if table.heads]
    parts += [_note(note) for note in results.sentences(number)]
    parts.append(_leads_html(results, number))
    published = results.published_table(number)
    if published.lines:
        parts.append("<h3>Published results, with the model used in the paper</h3>")
        parts.append(table_html(published))
    return parts


def _leads_html(results: Results, number: int) -> str:
    yardstick = next(iter(yardsticks_of(results, number)), None)
    all_leads = compute_leads(results, number, yardstick) if yardstick else []
    if yardstick is None or not any(lead.interval for lead in all_leads):
        return ""
    lines = []
    for lead in all_leads if len(all_leads) <= MAX_LEADS else all_leads[: len(results.rows) - 1]:
        value, bounds = write_lead(lead.value, lead.interval, yardstick.is_share)
        decided = "significant" if lead.is_decided else "not significant"
        lines.append([lead.first, lead.second, value, bounds, decided])
    heads = ["A", "B", f"A − B, lead in {yardstick.title}", "95% interval", "difference"]
    table = Table(heads, lines, [""] * len(heads))
    return f"<h3>Differences on the same data</h3>{table_html(table)}"


def _worst_html(results: Results, number: int) -> list[str]:
    """Each method's worst errors, best method first."""
    data = results.data[number]
    name = short_name(results, _strong)
    parts = []
    yardstick = next(iter(yardsticks_of(results, number)), None)
    for label, measured in best_first(results, number, yardstick) if yardstick else ():
        sentence = describe_worst(data, measured, name(label), _quote)
        parts += [f"<p>{sentence}</p>"] if sentence else []
        for cases in list(worst_cases(data, measured).values())[:1]:
            lines = [
                [cell if isinstance(cell, str) else written(cell, ".3g") for cell in line]
                for line in cases[:WORST_LISTED].itertuples(index=False)
            ]
            parts.append(_texts_html(cases.columns, lines))
    return ["<h3>What each method gets most wrong</h3>", *parts] if parts else []


def _quote(text: str) -> str:
    return f"“{escape(shorten(text, QUOTED))}”"


def _explanation_html(results: Results) -> str:
    numbers = range(len(results.data))
    sentences = dict.fromkeys(line for n in numbers for line in explain_measures(results, n))
    lines = "".join(f"<p>{escape(sentence)}</p>" for sentence in [*sentences, INTERVALS])
    return f"<h2>How to read this</h2>{lines}"


def proof_figures(results: Results, number: int) -> Iterator[go.Figure]:
    for yardstick in yardsticks_of(results, number)[:1]:
        for make_figure in (plots.yardstick_figure, plots.lead_of_best):
            figure = make_figure(results, number, yardstick)
            if figure is not None:
                yield figure


def other_figures(results: Results, number: int) -> Iterator[go.Figure]:
    for yardstick in yardsticks_of(results, number)[1:]:
        figure = plots.yardstick_figure(results, number, yardstick)
        if figure is not None and yardstick.name not in LEFT_OUT:
            yield figure
    for drawings in (
        plots.common_figures(results, number),
        islice(plots.confusion_figures(results, number), MAX_HISTOGRAMS),
        islice(plots.histograms(results, number), MAX_HISTOGRAMS),
        plots.quality_figures(results, number),
    ):
        for *_, figure in drawings:
            yield figure


def _settings_html(results: Results) -> str:
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
    measure_names = measures if isinstance(measures, str) else ", ".join(measures)
    note = _note(
        f"Measures: {measure_names}; {many(settings['neighbours'], 'neighbour')}; "
        f"{many(settings['bootstrap resamples'], 'bootstrap resample')}, seed "
        f"{settings['bootstrap seed']}. Cosine similarities that differ by less than {TIE:g} are "
        "ties, and ties count as broken."
    )
    table = _texts_html(["method", "model", "precision", "options"], rows)
    return f"<h2>Settings</h2>{note}{table}"


# --- tables ------------------------------------------------------------------------------------


def table_html(table: Table, columns: Sequence[int] | None = None) -> str:
    positions = range(len(table.heads)) if columns is None else columns
    heads = []
    for column in positions:
        better = table.better[column]
        direction = f"<small>{ARROWS[better]} {better}</small>" if better else ""
        heads.append(f"<th>{escape(table.heads[column])}{direction}</th>")
    lines = []
    for row, line in enumerate(table.lines):
        looks = [" class='best'" if (row, column) in table.best else "" for column in positions]
        cells = zip(looks, positions, strict=True)
        lines.append([f"<td{look}>{escape(line[column])}</td>" for look, column in cells])
    return _assemble_table(heads, lines)


def _texts_html(heads: Iterable[str], lines: Sequence[Sequence[str]]) -> str:
    return _assemble_table(
        [f"<th class='text'>{escape(title)}</th>" for title in heads],
        [[f"<td class=text>{escape(cell)}</td>" for cell in line] for line in lines],
    )


def _assemble_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return (
        f"<div class='results'><table><thead><tr>{''.join(heads)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


LONGEST_PART = 40  # characters of each part of a file name
_NOT_IN_FILE_NAMES = re.compile(r"[^\w.+]+")
_NOT_IN_ASCII_NAMES = re.compile(r"(?:[^a-z0-9.]|(?<!\d)\.|\.(?!\d))+")


@dataclass(frozen=True)
class About:
    """Title, settings and file names of a figure outside the app."""

    title: str = ""  # in a few words; plain text
    settings: Mapping[str, str] = field(default_factory=dict)  # by name
    files: tuple[str, ...] = ()  # parts of its file names: a text, methods, settings

    @property
    def line(self) -> str:
        return " · ".join(f"{name}: {value}" for name, value in self.settings.items())


NOTHING = About()
_PAGE_STYLE = f"""
body {{ font-family: {FONT}; margin: 1.5rem; color: #1F2328; background: white }}
h1 {{ font-size: 1.5rem; margin: 0 0 .5rem }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0 0 1rem }}
dt {{ color: #5A6169 }} dd {{ margin: 0 }} footer {{ color: #5A6169; margin-top: 1rem }}
"""


def standalone_html(figure: go.Figure, provenance: About = NOTHING) -> str:
    """A page with the figure and its settings; works offline, as it has plotly.js (5 MB)."""
    page = go.Figure(figure).update_layout(autosize=True, width=None, height=None)
    for _, changes in (page.layout.meta or {}).get("from_width", ()):
        page.update_layout({path.replace(".", "_"): value for path, value in changes.items()})
    drawn = figure_html(page, with_library=True)
    return page_html(provenance, drawn, title=figure.layout.title.text or "")


def figure_html(figure: go.Figure, *, with_library: bool) -> str:
    """A figure on white as part of a page, with plotly.js if needed."""
    style(figure, dark=False).update_layout(paper_bgcolor="white")
    config = {"displaylogo": False, "responsive": True, "showSendToCloud": False}
    return figure.to_html(full_html=False, include_plotlyjs=with_library, config=config)


def page_html(provenance: About, body: str, *, style: str = "", title: str = "") -> str:
    """A page with title, settings and date; ``title`` is the fallback for the browser tab."""
    settings = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in provenance.settings.items()
    )
    settings = f"<dl>{settings}</dl>" if settings else ""
    heading = f"<h1>{escape(provenance.title)}</h1>" if provenance.title else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(provenance.title or title or "neuralviz")}</title>
<style>{_PAGE_STYLE}{style}</style>
</head>
<body>
{heading}
{settings}
{body}
<footer>neuralviz {__version__}, {datetime.now(UTC):%Y-%m-%d}</footer>
</body>
</html>
"""


def file_name(name: str, provenance: About = NOTHING) -> str:
    """Lower-case file name with settings: ``losses-the-river-rose-10-epochs``."""
    named = _NOT_IN_FILE_NAMES.sub("-", name).strip("-.").lower()
    return "-".join(filter(None, [named, *map(_file_name_part, provenance.files)])) or "neuralviz"


def _file_name_part(words: str) -> str:
    """The first words in ASCII; may be empty."""
    plain = unicodedata.normalize("NFKD", words[:1000]).encode("ascii", "ignore").decode().lower()
    joined = _NOT_IN_ASCII_NAMES.sub("-", plain).strip("-")
    if len(joined) <= LONGEST_PART:
        return joined
    cut = joined[: LONGEST_PART + 1]
    return cut.rpartition("-")[0] or cut[:-1]
