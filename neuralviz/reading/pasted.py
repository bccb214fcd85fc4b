"""Texts from what was pasted, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from neuralviz.reading.delimited import ONE_COLUMN, Dialect, divide_records
from neuralviz.reading.lines import Line
from neuralviz.reading.texts import Mode, ReadTexts, clean_texts
from neuralviz.words import many

MAX_CELL = 32_767  # characters; a spreadsheet's cell holds no more


def split_pasted(text: str, mode: Mode = "line") -> ReadTexts:
    """Split what was pasted: a text a line, a blank line between texts, or all as one text.

    Nothing at all gives no texts and no notes. A cell of several lines, as a spreadsheet copies it
    (in quotation marks, those inside it doubled), is one line.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if mode == "line":
        numbered = _join_cells(text.split("\n"))
    else:
        parts = [text] if mode == "one" else re.split(r"\n[^\S\n]*\n\s*", text)
        numbered = list(enumerate(parts, 1))
    starts, parts = [start for start, _ in numbered], [part for _, part in numbered]
    texts, notes, used = clean_texts(parts, starts)
    n_cells = sum("\n" in parts[place] for place in used) if mode == "line" else 0
    if n_cells:
        cells = f"{many(n_cells, 'quoted cell')} with line breaks"
        notes = (f"Read {cells} as {'one text' if n_cells == 1 else 'one text each'}.", *notes)
    return ReadTexts(texts, notes)


def _join_cells(lines: Sequence[str]) -> list[Line]:
    """Lines with their numbers, those of a quoted cell joined and without its quotation marks.

    A line that only begins with a quotation mark, as a sentence does, stays by itself: nowhere in
    a cell is there a mark that is not doubled, until one ends the line. So do the lines of what
    would be more than a cell can hold.
    """
    numbered: Iterator[Line] = ((place, line.rstrip()) for place, line in enumerate(lines, 1))
    joined: list[Line] = []
    for record in divide_records(numbered, Dialect(ONE_COLUMN), 1):
        end = record.end
        cell = record.fields[0] if record.fields else ""
        if end - record.line > 1 and len(cell) <= MAX_CELL:
            joined.append((record.line, cell))
        else:
            joined += enumerate(lines[record.line - 1 : end - 1], record.line)
    return joined


def join_pasted(texts: list[str]) -> tuple[str, Mode]:
    """What to paste, and in which mode, to get ``texts`` from ``split_pasted`` again.

    Blank lines inside one of several texts are lost.
    """
    if len(texts) == 1 and "\n" in texts[0]:
        return texts[0], "one"
    if any("\n" in text for text in texts):
        return "\n\n".join(re.sub(r"\n\s*\n", "\n", text) for text in texts), "blank line"
    if len(_join_cells(texts)) < len(texts):
        return "\n\n".join(texts), "blank line"
    return "\n".join(texts), "line"
