"""The texts of plain text: lines, paragraphs, subtitles; tables with another ending are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Literal

from neuralviz.errors import TextError
from neuralviz.reading.headers import is_usual_name
from neuralviz.reading.lines import Line
from neuralviz.reading.source import is_json
from neuralviz.reading.table import MAX_CHARACTERS

Mode = Literal["line", "blank line", "one"]

_HEAD = 100  # lines by which a kind is known
_FEWEST = 3  # lines that may be alike by more than chance
_TIMES = re.compile(r"\s*(?:\d+:)?\d+:\d\d[.,]\d+\s+-->\s.*")
_TAG = re.compile(r"</?[a-z][^<>]*+>|\{\\[^{}]*+\}", re.I)
_TOKEN = re.compile(
    r"\d+(?:[-.]\d+)?\t(?:[^\t]*\t){8}[^\t]*|\S+(?:[ \t]\S+){0,3}[ \t](?:O|[BIES]-\w+)"
)
_FASTTEXT = "__label__"


def split_texts(name: str, lines: Iterator[Line], mode: Mode) -> tuple[Iterator[Line], str]:
    """The texts of a file, each with the line in which it begins, and a sentence on its kind.

    A text that is far too long is cut, so that it is known for one and no more is held.

    Args:
        name: of the file.
        lines: with their numbers.
        mode: where a text ends.

    Raises:
        TextError: it is a table or JSON, which another ending would let be read as such.
    """
    if mode == "one":
        return _join_lines(lines, mode), ""
    head = list(islice(lines, _HEAD))
    filled = [line for _, line in head if line.strip()]
    lines = chain(head, lines)
    if any(map(_TIMES.fullmatch, filled[:_FEWEST])) or (
        filled[:1] and filled[0].startswith("WEBVTT")
    ):
        note = f"{name} holds subtitles. Each is a text, without its number and times."
        return _take_cues(lines), note
    _refuse_table(name, filled)
    return lines if mode == "line" else _join_lines(lines, mode), ""


def _refuse_table(name: str, filled: Sequence[str]) -> None:
    """Refuse JSON, and lines of one number of fields, called plain text."""
    reason = ""
    rows = [line for line in filled if not line.startswith("#")]
    n_tabs = {line.count("\t") for line in rows}
    is_indented = any(line[0] == "\t" for line in rows)
    if name.lower().endswith(".ipynb"):
        reason = "is a notebook, which is not read. Save its texts as plain text or CSV."
    elif filled and filled[0].startswith("window.YTD."):
        reason = (
            "is a file of a Twitter archive. Delete what stands before its first bracket, and "
            "rename it to .json."
        )
    elif filled and is_json(filled[0].strip()):
        reason = "holds JSON, not plain text. Rename it to .json, or .jsonl if a line is an object."
    elif len(rows) >= _FEWEST and all(map(_TOKEN.fullmatch, rows)):
        reason = "is a treebank or CoNLL data, a word a line. Save its sentences, one a line."
    elif len(filled) > 1 and all(line.startswith(_FASTTEXT) for line in filled):
        reason = "has a label before each text, as fastText has it. Save both as a table."
    elif len(rows) >= _FEWEST and len(n_tabs) == 1 and 0 not in n_tabs and not is_indented:
        reason = (
            f"looks like a table: each line has {n_tabs.pop() + 1} fields between tabs. Rename it "
            "to .tsv to read it as one."
        )
    elif any(_are_columns(filled, separator) for separator in ",;"):
        reason = (
            f"looks like a table with the columns {filled[0][:80]}. Rename it to .csv to read it "
            "as one."
        )
    if reason:
        raise TextError(f"{name} {reason}")


def _are_columns(filled: Sequence[str], separator: str) -> bool:
    """Whether the first line names columns, and the others have as many fields."""
    titles = filled[0].split(separator) if len(filled) > 1 else []
    are_names = len(titles) > 1 and all(is_usual_name(title.strip(' "')) for title in titles)
    return are_names and all(line.count(separator) >= len(titles) - 1 for line in filled)


def _join_lines(lines: Iterator[Line], mode: Mode) -> Iterator[Line]:
    """What stands between blank lines, or all lines as one text."""
    held: list[str] = []
    start, size = 1, 0
    for number, line in lines:
        if mode == "blank line" and not line.strip():
            if held:
                yield start, "\n".join(held)
            held, size = [], 0
        elif size <= MAX_CHARACTERS + 1:
            start = start if held else number
            held.append(line)
            size += len(line) + 1
        elif mode == "one":
            break
    if held:
        yield start, "\n".join(held)


def _take_cues(lines: Iterator[Line]) -> Iterator[Line]:
    """The texts of subtitles, each with the line in which it begins."""
    cue: list[str] | None = None  # None outside of a cue
    start = 0
    for number, line in lines:
        if _TIMES.fullmatch(line):
            if cue is not None:  # without a blank line between, its last line may be a number
                yield start, " ".join(cue[:-1] if cue and cue[-1].isdecimal() else cue)
            cue, start = [], number + 1
        elif cue is not None and line.strip():
            cue.append(_TAG.sub("", line).strip())
        elif cue is not None:
            yield start, " ".join(cue)
            cue = None
    if cue is not None:
        yield start, " ".join(cue)
