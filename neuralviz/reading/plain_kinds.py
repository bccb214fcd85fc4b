"""Plain text that is more than lines of texts: subtitles, treebanks, tables with another ending."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from neuralviz.errors import TextError
from neuralviz.reading.headers import is_usual_name
from neuralviz.reading.source import is_json

Lines = Iterator[tuple[int, str]]
HEAD = 100  # lines by which a kind is known
_HEAD_CHARACTERS = 1 << 18
_FEWEST = 3  # lines that may be alike by more than chance
_TIMES = re.compile(r"\s*(?:\d+:)?\d+:\d\d[.,]\d+\s+-->\s.*")
_TAG = re.compile(r"</?[a-z][^<>]*+>|\{\\[^{}]*+\}", re.I)
_TREEBANK_TEXT = "# text = "
_TOKEN = re.compile(r"\d+(?:[-.]\d+)?\t(?:[^\t]*\t){8}[^\t]*")
_ENTITY = re.compile(r"\S+(?:[ \t]\S+){0,3}[ \t](?:O|[BIES]-\w+)")
_FASTTEXT = "__label__"


def take_head(lines: Lines) -> list[tuple[int, str]]:
    """The first lines, some thousand characters at most beyond the first."""
    head: list[tuple[int, str]] = []
    size = 0
    for number, line in lines:
        head.append((number, line))
        size += len(line)
        if len(head) == HEAD or size > _HEAD_CHARACTERS:
            break
    return head


def find_kind(name: str, head: Sequence[str]) -> tuple[Callable[[Lines], Lines] | None, str]:
    """How the texts are taken out of lines, and a sentence on it; None where lines are texts.

    Args:
        name: of the file.
        head: its first lines.

    Raises:
        TextError: it is a table or JSON, which another ending would let be read as such.
    """
    filled = [line for line in head if line.strip()]
    if any(map(_TIMES.fullmatch, filled[:_FEWEST])) or "".join(filled[:1]).startswith("WEBVTT"):
        return take_cues, f"{name} holds subtitles. Each is a text, without its number and times."
    tokens = [line for line in filled if not line.startswith("#")]
    if tokens and all(map(_TOKEN.fullmatch, tokens)):
        if any(line.startswith(_TREEBANK_TEXT) for line in filled):
            return take_sentences, f"{name} is a treebank (CoNLL-U). Its sentences are the texts."
        return (
            None,
            f"{name} looks like a treebank (CoNLL-U): each line, a word, is read as a text.",
        )
    if len(tokens) >= _FEWEST and all(map(_ENTITY.fullmatch, tokens)):
        return None, f"{name} looks like CoNLL data: each line, a word, is read as a text."
    _refuse_table(name, filled)
    if len(filled) > 1 and all(line.startswith(_FASTTEXT) for line in filled):
        return None, (
            f"The lines of {name} begin with a label as fastText has it, which is read as a part "
            "of the text. Save texts and labels as a table to keep them apart."
        )
    return None, ""


def _refuse_table(name: str, filled: Sequence[str]) -> None:
    """Refuse JSON, and lines of one number of fields, called plain text.

    Raises:
        TextError: it is one of these.
    """
    if name.lower().endswith(".ipynb"):
        raise TextError(
            f"{name} is a notebook, which is not read. Save its texts as plain text or CSV."
        )
    if filled and filled[0].startswith("window.YTD."):
        raise TextError(
            f"{name} is a file of a Twitter archive. Delete what stands before its first bracket, "
            "and rename it to .json."
        )
    if filled and is_json(filled[0].strip()):
        raise TextError(
            f"{name} holds JSON, not plain text. Rename it to .json, or to .jsonl if each line is "
            "an object."
        )
    rows = [line for line in filled if not line.startswith("#")]
    n_tabs = {line.count("\t") for line in rows}
    is_indented = any(line[0] == "\t" for line in rows)
    if len(rows) >= _FEWEST and len(n_tabs) == 1 and 0 not in n_tabs and not is_indented:
        raise TextError(
            f"{name} looks like a table: each line has {n_tabs.pop() + 1} fields between tabs. "
            "Rename it to .tsv to read it as one."
        )
    for separator in ",;":
        titles = filled[0].split(separator) if len(filled) > 1 else []
        are_names = len(titles) > 1 and all(is_usual_name(title.strip(' "')) for title in titles)
        if are_names and all(line.count(separator) >= len(titles) - 1 for line in filled):
            raise TextError(
                f"{name} looks like a table with the columns {filled[0][:80]}. Rename it to .csv "
                "to read it as one."
            )


def take_cues(lines: Lines) -> Lines:
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


def take_sentences(lines: Lines) -> Lines:
    """The sentences of a treebank, each with its line."""
    for number, line in lines:
        if line.startswith(_TREEBANK_TEXT):
            yield number, line.removeprefix(_TREEBANK_TEXT)
