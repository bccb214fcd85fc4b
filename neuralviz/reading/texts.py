"""Read texts from files, folders or pasted text, with notes on what is left out."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Literal

from neuralviz.errors import LONG_TEXT, TextError
from neuralviz.reading.arrow_tables import INFO, SPLITS, STATE
from neuralviz.reading.delimited import ONE_COLUMN, Dialect, divide_records
from neuralviz.reading.source import Line, Source, TextLines, count_unreadable, is_json, tidy
from neuralviz.reading.table import (
    ID_COLUMNS,
    MAX_CHARACTERS,
    Table,
    blank_missing,
    flatten_texts,
    guess_column,
    is_usual_name,
    list_columns,
    match_names,
)
from neuralviz.reading.tables import read_table
from neuralviz.words import free_name, joined, many, name_lines

_DELETED = ("[deleted]", "[removed]")  # what Reddit has in place of a text
MAX_TEXTS = 1_000_000


@dataclass(frozen=True)
class ReadTexts:
    texts: tuple[str, ...]  # none of them blank
    notes: tuple[str, ...] = ()  # sentences on what was left out or changed
    ids: tuple[str, ...] | None = None  # one a text, no two alike, if the file has a column of them
    column: str | None = None  # the column of the table that was read
    columns: tuple[str, ...] = ()  # the columns that can be read
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # a value a text, or ""
    header_note: str = ""  # a sentence on the header of the table and its first row

    def first(self, n: int) -> ReadTexts:
        return replace(
            self,
            texts=self.texts[:n],
            ids=None if self.ids is None else self.ids[:n],
            labels={name: values[:n] for name, values in self.labels.items()},
        )


def read_texts(
    source: Source,
    column: str | None = None,
    *,
    mode: Mode = "line",
    id_column: str | None = None,
    max_texts: int | None = None,
) -> ReadTexts:
    """Read a file: a table by its ending (see ``source.TABLES``), else plain text.

    The column is by default that of `guess_column`, ids the first of ``ID_COLUMNS``; ``mode``
    divides plain text. Texts beyond ``max_texts`` or longer than ``MAX_CHARACTERS`` are left out,
    with a note. `TextError` without a text or such a column, or if unreadable.
    """
    limit = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    name = source.name
    if source.is_table:
        table = blank_missing(read_table(source, max_rows=limit))
        if table.columns and not len(table):
            listed = list_columns(table.columns)
            sentence = f"{name} contains no text: it has columns ({listed}) but no rows."
            raise TextError(" ".join([sentence, *table.notes]))
        read = _read_column(name, table, column, id_column)
    elif any(setting is not None for setting in (column, id_column, source.header)):
        title = id_column if column is None else column
        missing = "header line" if title is None else f"column “{title}”"
        raise TextError(f"{name} is plain text, not a table, so it has no {missing}.")
    else:
        read = _read_plain_texts(source, mode, limit)
    if not read.texts:
        raise TextError(" ".join([f"{name} contains no text.", *read.notes]))
    return read


def _read_plain_texts(source: Source, mode: Mode, limit: int) -> ReadTexts:
    parts: list[str] = []
    starts: list[int] = []
    n_texts = 0
    limit_notes: tuple[str, ...] = ()
    with source.opened() as file:
        lines = TextLines(source.name, file)
        with closing(iter(lines)) as numbered:
            texts, kind_note = split_texts(source.name, numbered, mode)
            for start, part in texts:
                is_blank = not part.strip()
                if n_texts == limit and not is_blank:
                    limit_notes = (f"Limited to the first {many(limit, 'text')} of {source.name}.",)
                    break
                parts.append(part[: MAX_CHARACTERS + 1])
                starts.append(start)
                n_texts += not is_blank
        notes = (kind_note, *lines.notes) if kind_note else lines.notes
    cleaned, cut_notes, _ = clean_texts(parts, starts, blanks="line" if mode == "line" else "")
    return ReadTexts(cleaned, notes + cut_notes + limit_notes)


def _read_column(name: str, table: Table, column: str | None, id_column: str | None) -> ReadTexts:
    columns = table.columns
    for title in (column, id_column):
        if title is not None and title not in columns:
            listed = list_columns(columns)
            raise TextError(f"{name} has no column “{title}”. Its columns are: {listed}.")
    if not columns:
        return ReadTexts((), table.notes)
    column = column or guess_column(name, table)
    texts, notes, used = clean_column(table, column)
    labels = {
        label: tuple([tidy(values[place]) for place in used])
        for label, values in zip(columns, table.values, strict=True)
        if label != column
    }
    if id_column is None:
        id_column = next(iter(match_names(list(labels), ID_COLUMNS)), None)
    ids: tuple[str, ...] | None = None
    if id_column is not None:
        ids, id_notes = make_ids_unique(texts if id_column == column else labels[id_column])
        notes += id_notes
    header_note = table.describe_header(name)
    return ReadTexts(texts, notes + table.notes, ids, column, columns, labels, header_note)


def clean_column(table: Table, column: str) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """A column's texts, notes, and rows, as `clean_texts`."""
    parts, nested_notes = flatten_texts(column, table.column(column))
    n_deleted = sum(map(parts.count, _DELETED))
    if n_deleted:
        parts = ["" if part in _DELETED else part for part in parts]
        nested_notes += (
            f"Read {joined([f'“{word}”' for word in _DELETED], 'or')} as no text "
            f"({many(n_deleted, 'row')}).",
        )
    texts, notes, used = clean_texts(parts, table.lines, blanks="row", unit=table.unit)
    return texts, notes + nested_notes, used


def clean_texts(
    parts: Sequence[str], starts: Sequence[int], blanks: str = "", unit: str = "line"
) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """Texts stripped and made readable, notes, and their places in ``parts``."""
    # ``starts``: the line, or other ``unit``, of each part; ``blanks``: what notes call empty parts
    texts, used, too_long = [], [], []
    unreadable = 0
    for place, part in enumerate(parts):
        text = tidy(part)
        unreadable += count_unreadable(part)
        if len(part) > MAX_CHARACTERS:
            too_long.append(starts[place])
        elif text:
            texts.append(text)
            used.append(place)
    notes = []
    if unreadable:
        notes.append(f"Replaced {many(unreadable, 'unreadable character')} with spaces.")
    left_out = len(parts) - len(texts) - len(too_long)
    if blanks and left_out:
        notes.append(f"Skipped {many(left_out, blanks)} without a text.")
    if too_long:
        notes.append(
            f"Skipped {many(len(too_long), 'text')} with more than {MAX_CHARACTERS:,} "
            f"characters ({name_lines(too_long, unit)})."
        )
    if (size := max(map(len, texts), default=0)) > LONG_TEXT:
        notes.append(f"The longest text has {size:,} characters.")
    return tuple(texts), tuple(notes), used


def make_ids_unique(ids: Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Unique ids, with notes; None if all are missing."""
    used_ids = set(filter(None, ids))
    if not used_ids:
        return None, ()
    n_missing = ids.count("")
    n_repeated = len(ids) - n_missing - len(used_ids)
    counters = defaultdict[str, Iterator[int]](lambda: count(2))
    free = map(str, count(1))
    earlier_ids: set[str] = set()
    unique: list[str] = []
    for text_id in ids:
        new_id = text_id
        if not text_id:
            new_id = next(number for number in free if number not in used_ids)
        elif text_id in earlier_ids:
            numbered = (f"{text_id} ({number})" for number in counters[text_id])
            new_id = next(name for name in numbered if name not in used_ids)
        earlier_ids.add(text_id)
        used_ids.add(new_id)
        unique.append(new_id)
    notes = []
    if n_repeated:
        notes.append(f"Added a number in brackets to {many(n_repeated, 'duplicate ID')}.")
    if n_missing:
        notes.append(f"Numbered {many(n_missing, 'text')} without an ID.")
    return tuple(unique), tuple(notes)


# --- plain text ----------------------------------------------------------------------------------

Mode = Literal["line", "blank line", "one"]

_HEAD = 100  # lines by which a kind is known
_FEWEST_LINES = 3  # lines that may be alike by more than chance
_TIMES = re.compile(r"\s*(?:\d+:)?\d+:\d\d[.,]\d+\s+-->\s.*")
_TAG = re.compile(r"</?[a-z][^<>]*+>|\{\\[^{}]*+\}", re.I)
_TOKEN = re.compile(
    r"\d+(?:[-.]\d+)?\t(?:[^\t]*\t){8}[^\t]*|\S+(?:[ \t]\S+){0,3}[ \t](?:O|[BIES]-\w+)"
)


def split_texts(name: str, lines: Iterator[Line], mode: Mode) -> tuple[Iterator[Line], str]:
    """The texts of a file with their first lines, and a note; refuses tables and JSON."""
    # a text that is far too long is cut, to bound memory
    if mode == "one":
        return _join_lines(lines, mode), ""
    head = list(islice(lines, _HEAD))
    filled = [line for _, line in head if line.strip()]
    lines = chain(head, lines)
    if any(map(_TIMES.fullmatch, filled[:_FEWEST_LINES])) or "".join(filled[:1]).startswith(
        "WEBVTT"
    ):
        note = f"{name} holds subtitles. Each is a text, without its number and times."
        return _take_cues(lines), note
    if kind := filled and _find_kind(name, filled):
        raise TextError(
            f"{name} is not plain text, but {kind}. Give it the ending of what it is (.csv, .tsv, "
            ".json, .jsonl), or save its texts as plain text or CSV."
        )
    return lines if mode == "line" else _join_lines(lines, mode), ""


def _find_kind(name: str, filled: Sequence[str]) -> str:
    """What a “plain text” is instead; empty if it is plain."""
    rows = [line for line in filled if not line.startswith("#")]
    n_tabs = {line.count("\t") for line in rows}
    is_indented = any(line.startswith("\t") for line in rows)
    if name.lower().endswith(".ipynb"):
        return "a notebook"
    if is_json(filled[0].strip()) or filled[0].startswith("window.YTD."):  # of a Twitter archive
        return "JSON"
    if len(filled) > 1 and all(line.startswith("__label__") for line in filled):
        return "texts behind labels, as fastText has them"
    if len(rows) >= _FEWEST_LINES and all(map(_TOKEN.fullmatch, rows)):
        return "a word a line, as a treebank or CoNLL data"
    if len(rows) >= _FEWEST_LINES and len(n_tabs) == 1 and n_tabs != {0} and not is_indented:
        return "a table with fields between tabs"
    for separator in ",;":
        titles = filled[0].split(separator)
        are_names = all(is_usual_name(title.strip(' "')) for title in titles)
        n_others = min((line.count(separator) for line in filled[1:]), default=0)
        if are_names and n_others >= len(titles) - 1 > 0:
            return f"a table with the columns {filled[0][:80]}"
    return ""


def _join_lines(lines: Iterator[Line], mode: Mode) -> Iterator[Line]:
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


# --- several files -------------------------------------------------------------------------------

MAX_FILES = 200_000  # of a folder
TEXT_ENDINGS = ("", ".txt", ".text", ".md")  # of the files of a folder that are texts
_NAMED_FILES = 5
_MOST_NOTES = 20


def read_files(
    files: Sequence[Source],
    column: str | None = None,
    *,
    mode: Mode = "one",
    max_texts: int | None = None,
    place: str = "these files",  # as a message on no text calls it
    skipped: Sequence[str] = (),  # sentences on what is left out already
) -> ReadTexts:
    """Read files as `read_texts`, one after the other; label ``file`` (and ``folder``) by name.

    Unreadable files, and tables without ``column``, are left out and named; ``max_texts`` counts
    all. `TextError` without a text.
    """
    limit = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    read_by_name: list[tuple[str, ReadTexts]] = []
    n_texts, notes, left_out = 0, [], list(skipped)
    for source in _leave_out_metadata(files):
        if n_texts >= limit:
            notes.append(f"Limited to the first {many(limit, 'text')}. There are more files.")
            break
        text_column = column if source.is_table else None
        try:
            read = read_texts(source, text_column, mode=mode, max_texts=limit - n_texts)
        except TextError as error:
            left_out.append(prefix_name(source.name, str(error)))
            continue
        read_by_name.append((source.name, read))
        n_texts += len(read.texts)
        notes += [prefix_name(source.name, note) for note in read.notes]
    left_out = shorten_list(left_out, _NAMED_FILES)
    if not read_by_name:
        raise TextError(" ".join([f"No text found in {place}.", *left_out]))
    return _join_files(read_by_name, (*left_out, *shorten_list(notes, _MOST_NOTES)))


def read_folder(
    path: Path, column: str | None = None, *, mode: Mode = "one", max_texts: int | None = None
) -> ReadTexts:
    """Read a folder and its subfolders by `read_files`, in the order of paths.

    Notes name files left out: hidden, unreadable, neither table nor `TEXT_ENDINGS`, and links to
    folders or out of the folder. `TextError` without folder or text, or for too many files.
    """
    if not path.is_dir():
        raise TextError(f"No such folder: {path}.")
    files, skipped = _list_files(path)
    place = f"the folder {path}"
    return read_files(files, column, mode=mode, max_texts=max_texts, place=place, skipped=skipped)


def _leave_out_metadata(files: Sequence[Source]) -> list[Source]:
    """The files without those that ``datasets`` writes beside its Arrow files."""
    if not any(source.ending == ".arrow" for source in files):
        return list(files)
    return [
        source
        for source in files
        if Path(source.name).name not in (STATE, INFO, SPLITS)
        and not Path(source.name).match("cache-*.arrow")
    ]


def prefix_name(name: str, note: str) -> str:
    return note if name in note else f"{name}: {note}"


def _list_files(folder: Path) -> tuple[list[Source], list[str]]:
    """Files to read, with relative paths, and notes on others."""
    root = folder.resolve()
    files: list[Path] = []
    skipped: list[str] = []

    def note_unreadable(error: OSError) -> None:
        path_inside = Path(str(error.filename)).relative_to(folder).as_posix()
        skipped.append(f"Could not read {path_inside}: {error.strerror}.")

    n_entries = 0
    for top, inner, names in os.walk(folder, onerror=note_unreadable):
        n_entries += len(names)
        if n_entries > MAX_FILES:
            raise TextError(
                f"The folder {folder} has more than {MAX_FILES:,} files. Choose a folder "
                "inside it, or put the texts in a table."
            )
        for entry in [*inner, *names]:
            file = Path(top) / entry
            path_inside = tidy(file.relative_to(folder).as_posix())
            reason = _find_reason_to_skip(file, root, is_folder=entry in inner)
            if reason:
                skipped.append(f"Skipped {path_inside}: {reason}.")
            elif entry not in inner:
                files.append(file)
        inner[:] = [entry for entry in inner if not entry.startswith(".")]
    sources = [Source(tidy(file.relative_to(folder).as_posix()), file) for file in sorted(files)]
    return sources, sorted(skipped)


def _find_reason_to_skip(file: Path, root: Path, *, is_folder: bool) -> str:
    if file.name.startswith("."):
        return "hidden"
    try:
        is_inside = file.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # links in a circle
        is_inside = False
    if file.is_symlink() and (is_folder or not is_inside):
        return "link to a folder, or out of this one"
    if is_folder:
        return ""
    is_read = Source.from_path(file).is_table or file.suffix.lower() in TEXT_ENDINGS
    return "" if is_read else "neither plain text nor a table"


def shorten_list(sentences: Sequence[str], n_shown: int) -> list[str]:
    n_more = len(sentences) - n_shown
    return [*sentences[:n_shown], *([f"And {n_more:,} more like this."] if n_more > 0 else [])]


def _join_files(read_by_name: Sequence[tuple[str, ReadTexts]], notes: tuple[str, ...]) -> ReadTexts:
    columns = tuple(dict.fromkeys(name for _, read in read_by_name for name in read.columns))
    reads = [read for _, read in read_by_name]
    labels = {
        name: tuple(v for read in reads for v in read.labels.get(name, [""] * len(read.texts)))
        for name in dict.fromkeys(chain.from_iterable(read.labels for read in reads))
    }
    files = tuple(file for file, read in read_by_name for _ in read.texts)
    labels[free_name("file", columns)] = files
    folders = {file: file.rpartition("/")[0] for file, _ in read_by_name}
    if any(folders.values()):
        labels[free_name("folder", columns)] = tuple(folders[file] for file in files)
    ids = [text_id for read in reads for text_id in read.ids or [""] * len(read.texts)]
    unique, id_notes = make_ids_unique(ids)
    return ReadTexts(
        texts=tuple(chain.from_iterable(read.texts for read in reads)),
        notes=notes + id_notes,
        ids=unique,
        column=next((read.column for read in reads if read.column is not None), None),
        columns=columns,
        labels=labels,
    )


# --- pasted texts --------------------------------------------------------------------------------

MAX_CELL = 32_767  # characters; a spreadsheet's cell holds no more


def split_pasted(text: str, mode: Mode = "line") -> ReadTexts:
    """Split pasted text by ``mode``; a quoted spreadsheet cell of several lines is one line."""
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
        cells = many(n_cells, "quoted cell")
        notes = (f"Read {cells} with line breaks as one text each.", *notes)
    return ReadTexts(texts, notes)


def _join_cells(lines: Sequence[str]) -> list[Line]:
    """Numbered lines, with those of a quoted cell joined."""
    # a sentence that begins with a quotation mark stays by itself, and so does more than a cell can
    # hold
    numbered: Iterator[Line] = (  # blanks behind the mark that ends a cell do not keep it open
        (place, line.rstrip() if line.rstrip().endswith('"') else line)
        for place, line in enumerate(lines, 1)
    )
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
    """Text and mode from which `split_pasted` gives ``texts`` again."""
    # except blank lines inside one of several texts
    if len(texts) == 1 and "\n" in texts[0]:
        return texts[0], "one"
    if any("\n" in text for text in texts):
        return "\n\n".join(re.sub(r"\n\s*\n", "\n", text) for text in texts), "blank line"
    if len(_join_cells(texts)) < len(texts):
        return "\n\n".join(texts), "blank line"
    return "\n".join(texts), "line"
