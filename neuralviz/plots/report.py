"""Pages that need no network: the report of an experiment, and the parts of any page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape, unescape
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

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

if TYPE_CHECKING:
    import pandas as pd

MAX_HISTOGRAMS = 4  # and matrices of confused labels
LEFT_OUT = ("kendall_b", "pearson")  # only in the tables
MAX_LEADS = 15  # pairs of methods in the list: those of six methods
LONG_CELL = 30  # characters, from which on a column has a least width
WORST_LISTED = 3  # of each method
QUOTED = 90  # characters of a text in a sentence
NAMES_SCRIPT = Path(__file__).with_name("names.js").read_text("utf-8")
TABLE_STYLE, _STYLE, _SORT = (
    Path(__file__).with_name(name).read_text("utf-8")
    for name in ("tables.css", "page.css", "sort_tables.js")
)


def report_html(results: Results) -> str:
    """The page, findings first; user text is escaped."""
    parts = [_summary_html(results)]
    for number, data in enumerate(results.data):
        finding = describe_verdict(results, number, name=_strong, quote=escape)
        parts.append(f"<h2>{escape(data.name)}</h2>" if len(results.data) > 1 else "")
        parts.append(f"<p class='headline'>{finding}</p>" if finding else "")
        parts.append(f"<p>{escape(data.describe())}.</p>")
        parts += map(figure_html, proof_figures(results, number))
        parts += _worst_html(results, number)
        parts += _tables_html(results, number)
        parts += map(figure_html, other_figures(results, number))
        read = "; ".join(f"{role}: column “{column}”" for role, column in data.columns.items())
        parts += [note_html(note) for note in (*data.notes, f"Data hash: {data.digest}. {read}")]
    parts += [_explanation_html(results), _settings_html(results)]
    name = f": {results.data[0].name}" if len(results.data) == 1 else ""
    return page_html(About(f"Evaluation{name}"), "".join(parts))


def note_html(text: str) -> str:
    return f"<p class='note'>{escape(text)}</p>" if text else ""


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
    parts += [note_html(note) for note in results.sentences(number)]
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
    note = note_html(
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
        direction = f" <span title='{better}'>{ARROWS[better]}</span>" if better else ""
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
        [[_cell_html(cell) for cell in line] for line in lines],
    )


def _assemble_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return (
        f"<div class='results'><table><thead><tr>{''.join(heads)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def frame_html(frame: pd.DataFrame, title: str = "", formats: Mapping[str, str] = {}) -> str:
    """A table of texts and numbers; ``formats`` are those of numbers by column, as ``%.2f``."""
    heads = [f"<th class='text'>{escape(str(name))}</th>" for name in frame.columns]
    written_formats = [formats.get(str(name), "") for name in frame.columns]
    lines = [
        [_cell_html(value, look) for value, look in zip(row, written_formats, strict=True)]
        for row in frame.itertuples(index=False, name=None)
    ]
    return (f"<h3>{escape(title)}</h3>" if title else "") + _assemble_table(heads, lines)


def _cell_html(value: Any, look: str = "") -> str:
    if value is None or value != value:  # NaN
        return "<td class=text></td>"
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        cell = look % number if look else written(number, ".5g")
        return f"<td class=text data-value='{number!r}'>{escape(cell)}</td>"
    long = " long" * (len(str(value)) > LONG_CELL)
    return f"<td class='text{long}'>{escape(str(value))}</td>"


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
        """The settings; what has no name stands for itself."""
        return " · ".join(
            f"{name}: {value}" if name else value for name, value in self.settings.items()
        )


NOTHING = About()
# a browser that opens the page asks no server for anything, not even for an icon
_OFFLINE = (
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; img-src data: blob:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'\">"
    "<link rel=icon href='data:,'>"
)
WORD_JOINER = "\u2060"  # invisible, in users' texts as markdown
_TAG = re.compile(r"</?[a-z][^<>]*>")
_BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
_ITALICS = re.compile(r"\*(.+?)\*", re.DOTALL)
_ESCAPED = re.compile(r"\\([^\sA-Za-z0-9])")


def plain_text(label: str) -> str:
    """What a label of plotly's says, without its markup."""
    return unescape(_TAG.sub("", label.replace("<br>", " ")))


def sentence_html(sentence: str) -> str:
    """A headline in markdown: its first paragraph in large type, the others as notes."""
    first, *notes = filter(None, sentence.split("\n\n"))
    return "".join(
        f"<p class='{look}'>{_inline_html(paragraph)}</p>"
        for look, paragraph in [("headline", first), *(("note", note) for note in notes)]
    )


def _inline_html(markdown: str) -> str:
    """Bold type, italics and escaped characters; nothing else of markdown is in headlines."""
    # what is escaped is kept apart, or an asterisk of a user's would begin bold type
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(escape(match[1]))
        return f"\0{len(kept) - 1}\0"

    bold = _BOLD.sub(r"<strong>\1</strong>", escape(_ESCAPED.sub(keep, markdown), quote=False))
    marked = _ITALICS.sub(r"<em>\1</em>", bold)
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], marked).replace(WORD_JOINER, "")


def figure_html(figure: go.Figure, height: int | None = None) -> str:
    """A figure on white as part of a page."""
    page = go.Figure(figure).update_layout(autosize=True, width=None)
    page.update_layout(height=height or page.layout.height, paper_bgcolor="white")
    for _, changes, *lowest in (page.layout.meta or {}).get("from_width", ()):
        if lowest and (page.layout.height or 420) < lowest[0]:
            continue
        page.update_layout({path.replace(".", "_"): value for path, value in changes.items()})
    config = {"displayModeBar": False, "responsive": True, "showSendToCloud": False}
    return style(page, dark=False).to_html(full_html=False, include_plotlyjs=False, config=config)


def page_html(provenance: About, body: str) -> str:
    """A page with title, settings and date, which works offline: with figures it has 5 MB.

    A click on a table's head sorts it.
    """
    settings = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in provenance.settings.items()
    )
    settings = f"<dl>{settings}</dl>" if settings else ""
    heading = f"<h1>{escape(provenance.title)}</h1>" if provenance.title else ""
    library = f"<script>{get_plotlyjs()}</script>" if "Plotly." in body else ""
    sorting = f"<script>{_SORT}</script>" if "<table" in body else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">{_OFFLINE}
<meta name="viewport" content="width=device-width">
<title>{escape(provenance.title or "neuralviz")}</title>
<style>body {{ font-family: {FONT} }}
{_STYLE}{TABLE_STYLE}</style>
{library}
</head>
<body>
{heading}
{settings}
{body}
<footer>neuralviz {__version__}, {datetime.now(UTC):%Y-%m-%d}</footer>
{sorting}
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
