"""Figures as standalone pages with their settings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape

import plotly.graph_objects as go

from neuralviz import __version__
from neuralviz.plots.theme import FONT, style

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
_STYLE = f"""
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
<style>{_STYLE}{style}</style>
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
