"""Texts from what was pasted, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from neuralviz.reading.texts import Mode, ReadTexts, clean_texts
from neuralviz.words import many

MAX_CELL = 32_767  # characters; a spreadsheet's cell holds no more
_INSIDE = '[^"]*+(?:""[^"]*+)*+'  # a quoted cell
_OPENING = re.compile(f'"{_INSIDE}')
_WITHIN = re.compile(_INSIDE)
_CLOSING = re.compile(rf'{_INSIDE}"\s*')


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


def _join_cells(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Lines with their numbers, those of a quoted cell joined and without its quotation marks.

    A line that only begins with a quotation mark, as a sentence does, stays by itself: nowhere in
    a cell is there a mark that is not doubled, until one ends the line. So do the lines of what
    would be more than a cell can hold.
    """
    joined: list[tuple[int, str]] = []
    start = 0
    while start < len(lines):
        end = start + 1
        if _OPENING.fullmatch(lines[start]):
            size = _size(lines[start])
            while size <= MAX_CELL and end < len(lines) and _WITHIN.fullmatch(lines[end]):
                size += 1 + _size(lines[end])
                end += 1
            if end < len(lines) and _CLOSING.fullmatch(lines[end]):
                cell = "\n".join(lines[start : end + 1]).rstrip()[1:-1].replace('""', '"')
                if len(cell) <= MAX_CELL:
                    joined.append((start + 1, cell))
                    start = end + 1
                    continue
        joined += enumerate(lines[start:end], start + 1)
        start = end
    return joined


def _size(line: str) -> int:
    """The characters of a cell's line when it is read: two marks are one, a single one is none."""
    return len(line) - (line.count('"') + 1) // 2


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
