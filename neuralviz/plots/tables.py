"""Tables of results as HTML, for the page and for the report: what is best stands out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from neuralviz.evaluation.in_words import ARROWS

if TYPE_CHECKING:
    from neuralviz.evaluation.in_words import Table

# Its colours come from the text around it, so that it fits light and dark pages.
TABLE_STYLE = """
.results{overflow-x:auto}.results table{border-collapse:collapse;margin:0 0 .6rem}
.results th,.results td{padding:.35rem .9rem .35rem 0;text-align:right;white-space:nowrap;
border-bottom:1px solid color-mix(in srgb,currentColor 16%,transparent);vertical-align:bottom}
.results th:first-child,.results td:first-child{text-align:left}
.results th{font-weight:600}.results th small{display:block;font-weight:400;opacity:.72}
.results .best{font-weight:700;background:rgba(0,158,115,.16);
box-shadow:inset 0 -2px 0 rgba(0,158,115,.9)}
.results .text{text-align:left;white-space:normal;min-width:14rem;vertical-align:top}
"""


def table_html(table: Table, columns: Sequence[int] | None = None) -> str:
    """A table; a column's head says which way is good, and the best values are bold on green.

    Args:
        table: everything in it is escaped.
        columns: numbers of those that are shown; all by default.
    """
    visible_columns = range(len(table.heads)) if columns is None else columns
    heads = "".join(
        f"<th>{_head(table.heads[column], table.better[column])}</th>" for column in visible_columns
    )
    lines = "".join(
        "<tr>"
        + "".join(_cell(line[column], (row, column) in table.best) for column in visible_columns)
        + "</tr>"
        for row, line in enumerate(table.lines)
    )
    return (
        f"<div class='results'><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def texts_html(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table whose cells may be long texts, left-aligned and broken into lines."""
    head = "".join(f"<th class='text'>{escape(title)}</th>" for title in heads)
    body = "".join(
        f"<tr>{''.join(f'<td class=text>{escape(cell)}</td>' for cell in line)}</tr>"
        for line in lines
    )
    return (
        f"<div class='results'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _head(head: str, better: str) -> str:
    direction = f"<small>{ARROWS[better]} {better}</small>" if better else ""
    return f"{escape(head)}{direction}"


def _cell(text: str, is_best: bool) -> str:
    return f"<td class='best'>{escape(text)}</td>" if is_best else f"<td>{escape(text)}</td>"
