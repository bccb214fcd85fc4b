"""Texts from files, folders and from what was pasted, cleaned, with notes on what was left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count as numbers
from pathlib import Path
from typing import Literal

from neuralviz.errors import TextError
from neuralviz.reading.lines import TextLines, count_unreadable, opened, tidy
from neuralviz.reading.table import MAX_CHARACTERS, Table
from neuralviz.reading.tables import is_table, read_table
from neuralviz.words import count, free_name, name_lines

Mode = Literal["line", "blank line", "one"]

MAX_TEXTS = 1_000_000
MAX_FILES = 200_000  # of a folder
LONG = 100_000  # characters: to embed a longer text takes so long that it has to be said
TEXT_COLUMNS = (
    *("text", "texts", "sentence", "sentences", "sentence1", "text1", "document", "content"),
    *("body", "abstract", "description", "review", "comment", "message", "tweet", "post"),
    *("passage", "paragraph", "utterance", "question", "query", "summary", "headline", "title"),
)
ID_COLUMNS = ("id", "_id", "ids", "text_id", "doc_id", "document_id", "uuid", "guid")
TEXT_ENDINGS = ("", ".txt", ".text", ".md")  # of the files of a folder that are texts

_NAMED_FILES = 5
_MOST_NOTES = 20


@dataclass(frozen=True)
class ReadTexts:
    """Texts in the order they came in.

    Attributes:
        texts: none of them blank.
        notes: sentences on what was left out or changed.
        ids: one a text, no two alike, if the file has a column of them.
        column: the column of the table that was read.
        columns: the columns that can be read.
        labels: the other columns, one value a text; what is missing is ``""``.
    """

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    column: str | None = None
    columns: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def first(self, n: int) -> ReadTexts:
        """The same with the first ``n`` texts alone."""
        return replace(
            self,
            texts=self.texts[:n],
            ids=None if self.ids is None else self.ids[:n],
            labels={name: values[:n] for name, values in self.labels.items()},
        )


# --- pasted --------------------------------------------------------------------------------------


def split_pasted(text: str, mode: Mode = "line") -> ReadTexts:
    """Split what was pasted: a text a line, a blank line between texts, or all as one text.

    Nothing at all gives no texts and no notes.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if mode == "one":
        parts = [text]
    elif mode == "line":
        parts = text.split("\n")
    else:
        parts = re.split(r"\n[^\S\n]*\n\s*", text)
    return ReadTexts(*_clean(parts, range(1, len(parts) + 1))[:2])


def join_pasted(texts: list[str]) -> tuple[str, Mode]:
    """What to paste, and in which mode, to get ``texts`` from ``split_pasted`` again.

    Blank lines inside one of several texts are lost.
    """
    if len(texts) == 1 and "\n" in texts[0]:
        return texts[0], "one"
    if any("\n" in text for text in texts):
        return "\n\n".join(re.sub(r"\n\s*\n", "\n", text) for text in texts), "blank line"
    return "\n".join(texts), "line"


# --- a file --------------------------------------------------------------------------------------


def read_texts(
    name: str,
    content: bytes | Path,
    column: str | None = None,
    *,
    mode: Mode = "line",
    id_column: str | None = None,
    max_texts: int | None = None,
) -> ReadTexts:
    """Read a file: a table by the ending of ``name`` (see ``tables.TABLES``), else plain text.

    Texts of more than ``MAX_CHARACTERS`` are left out and named.

    Args:
        name: file name; its ending counts, and messages have it.
        content: the file, in any usual encoding, or where it is; it is read as it comes.
        column: the column to read; by default guessed by its name (``TEXT_COLUMNS``), else the one
            with the longest texts.
        mode: where a text of plain text ends.
        id_column: the column of the ids; by default the first that is called like one
            (``ID_COLUMNS``). An id that is missing or was there before is made one of its own.
        max_texts: read so many rows or texts and no more; at most, and by default, ``MAX_TEXTS``.
            It is said when there are more.

    Raises:
        TextError: there is no text in it, it is no text file, it is no table, it has no such
            column, or it cannot be read.
    """
    most = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    if is_table(name):
        table = read_table(name, content, max_rows=most)
        read = _texts_of(name, table, column, id_column)
    elif column is not None or id_column is not None:
        wanted = id_column if column is None else column
        raise TextError(f"{name} is not a table, so it has no column “{wanted}”.")
    else:
        read = _plain_texts(name, content, mode, most)
    if not read.texts:
        raise TextError(" ".join([f"There is no text in {name}.", *read.notes]))
    return read


def _plain_texts(name: str, content: bytes | Path, mode: Mode, most: int) -> ReadTexts:
    parts: list[str] = []
    starts: list[int] = []
    n_texts = 0
    more: tuple[str, ...] = ()
    with opened(name, content) as file:
        lines = TextLines(name, file)
        with closing(iter(lines)) as numbered:
            for start, part in _parts(numbered, mode):
                blank = not part or part.isspace()
                if n_texts == most and not blank:
                    more = (
                        f"Only the first {count(most, 'text')} read of {name}; there are more.",
                    )
                    break
                parts.append(part[: MAX_CHARACTERS + 1])
                starts.append(start)
                n_texts += not blank
        notes = lines.notes
    texts, said, _ = _clean(parts, starts, blanks="line" if mode == "line" else "")
    return ReadTexts(texts, notes + said + more)


def _parts(lines: Iterator[tuple[int, str]], mode: Mode) -> Iterator[tuple[int, str]]:
    """What stands between two ends of a text, and the line it begins in.

    A part that is far too long for a text is cut, so that it is known for one and no more is held.
    """
    if mode == "line":
        yield from lines
        return
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
            break  # it is known for too long
    if held:
        yield start, "\n".join(held)


def _texts_of(name: str, table: Table, column: str | None, id_column: str | None) -> ReadTexts:
    columns = table.columns
    for wanted in (column, id_column):
        if wanted is not None and wanted not in columns:
            named = ", ".join(f"“{one[:40]}”" for one in columns) or "none"
            raise TextError(f"{name} has no column “{wanted}”; it has {named}.")
    if not columns:
        return ReadTexts((), table.notes)
    if column is None:
        column = _guess_column(name, table)
    parts = table.column(column)
    texts, notes, used = _clean(parts, table.lines, blanks="row", unit=table.unit)
    labels = {
        other: tuple([tidy(values[place]) for place in used])
        for other, values in zip(columns, table.values, strict=True)
        if other != column
    }
    if id_column is None:
        by_name = {other.strip().lower(): other for other in reversed(list(labels))}
        id_column = next((by_name[one] for one in ID_COLUMNS if one in by_name), None)
    ids: tuple[str, ...] | None = None
    if id_column is not None:
        ids, said = _unique(texts if id_column == column else labels[id_column])
        notes += said
    return ReadTexts(texts, notes + table.notes, ids, column, columns, labels)


def _clean(
    parts: Sequence[str], starts: Sequence[int], blanks: str = "", unit: str = "line"
) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """Texts without blanks and unreadable characters, notes that say so, and which parts they are.

    ``blanks`` is what a part without text is called; empty, it is not reported. ``starts`` is the
    line, or whatever ``unit`` is, that each part begins in.
    """
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
        notes.append(f"{count(unreadable, 'unreadable character')} replaced by blanks.")
    left_out = len(parts) - len(texts) - len(too_long)
    if blanks and left_out:
        notes.append(f"{left_out:,} {blanks}{'s' if left_out != 1 else ''} without text left out.")
    if too_long:
        notes.append(
            f"{count(len(too_long), 'text')} left out for more than {MAX_CHARACTERS:,} characters "
            f"({name_lines(too_long, unit)})."
        )
    longest = max(range(len(texts)), key=lambda at: len(texts[at]), default=0)
    if texts and len(texts[longest]) > LONG:
        notes.append(
            f"The longest text has {len(texts[longest]):,} characters "
            f"({name_lines([starts[used[longest]]], unit)}); to embed it may take minutes."
        )
    return tuple(texts), tuple(notes), used


def _unique(ids: Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Ids of which no two are alike and none is missing, with notes; None if all are missing."""
    taken = {one for one in ids if one}
    if not taken:
        return None, ()
    seen: dict[str, int] = {}  # how often, by id
    free = numbers(1)
    unique: list[str] = []
    repeated = missing = 0
    for one in ids:
        if not one:
            missing += 1
            one = next(text for number in free if (text := str(number)) not in taken)
        elif one in seen:
            repeated += 1
            first = one
            while one in taken:
                seen[first] += 1
                one = f"{first} ({seen[first]})"
        seen.setdefault(one, 1)
        taken.add(one)
        unique.append(one)
    notes = []
    if repeated:
        notes.append(
            f"{count(repeated, 'id')} there before; a number in brackets tells them apart."
        )
    if missing:
        notes.append(f"{count(missing, 'text')} without an id and got a number for one.")
    return tuple(unique), tuple(notes)


def _guess_column(file_name: str, table: Table) -> str:
    """The column named like one of texts, else the one with the longest texts on average.

    Raises:
        TextError: no column has a word in it.
    """
    by_name = {name.strip().lower(): name for name in reversed(table.columns)}
    named = [by_name[name] for name in TEXT_COLUMNS if name in by_name]
    for name in named:
        if any(map(str.strip, table.column(name))):
            return name
    lengths = [
        sum(map(len, values)) if any(map(_has_word, values)) else 0 for values in table.values
    ]
    if len(table) and not any(lengths):
        found = ", ".join(f"“{name[:40]}”" for name in table.columns[:12])
        sentence = (
            f"{file_name} has no column of texts: there is no word in {found}. Name the column of "
            "the texts “text”, whatever is in it."
        )
        raise TextError(" ".join([sentence, *table.notes]))
    return named[0] if named else table.columns[lengths.index(max(lengths))]


def _has_word(cell: str) -> bool:
    """Whether a cell holds more than numbers."""
    try:
        float(cell)
    except ValueError:
        return any(character.isalpha() for character in cell)
    return False


# --- several files -------------------------------------------------------------------------------


def read_files(
    files: Sequence[tuple[str, bytes | Path]],
    column: str | None = None,
    *,
    mode: Mode = "one",
    max_texts: int | None = None,
) -> ReadTexts:
    """Read several files one after the other.

    A text file is a text; a table is read as by ``read_texts`` and put below what came before,
    labels by their names. The label ``file`` is the name of the file, and ``folder``, where a name
    has one before a slash, that of its folder. Files that cannot be read are left out and named.

    Args:
        files: names, and the files or where they are.
        column: the column of texts in the tables; those that have none of this name are left out.
        mode: where a text of a text file ends; by default at the end of the file.
        max_texts: as in ``read_texts``, of all files together.

    Raises:
        TextError: there is no text in them.
    """
    return _read_each(files, [], "these files", column, mode, max_texts)


def read_folder(
    path: Path,
    column: str | None = None,
    *,
    mode: Mode = "one",
    max_texts: int | None = None,
    max_files: int = MAX_FILES,
) -> ReadTexts:
    """Read all files of a folder and of those in it by ``read_files``, in the order of their paths.

    Text files are those of ``TEXT_ENDINGS``. Left out and named are files that are hidden,
    unreadable or of another kind, links to folders, and links that lead out of the folder.

    Args:
        path: the folder.
        column, mode, max_texts: as in ``read_files``.
        max_files: that it may hold.

    Raises:
        TextError: there is no such folder, or no text in it, or too many files.
    """
    if not path.is_dir():
        raise TextError(f"There is no folder {path}.")
    files, skipped = _files_of(path, max_files)
    given = [(name, file) for file, name in files]
    return _read_each(given, skipped, f"the folder {path}", column, mode, max_texts)


def _read_each(
    files: Sequence[tuple[str, bytes | Path]],
    skipped: list[str],
    where: str,
    column: str | None,
    mode: Mode,
    max_texts: int | None,
) -> ReadTexts:
    most = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    found: list[tuple[str, ReadTexts]] = []
    n_texts, notes = 0, []
    for name, file in files:
        if n_texts >= most:
            notes.append(f"Only the first {count(most, 'text')} read; there are more files.")
            break
        wanted = column if is_table(name) else None
        try:
            read = read_texts(name, file, wanted, mode=mode, max_texts=most - n_texts)
        except TextError as error:
            skipped.append(str(error))
            continue
        found.append((name, read))
        n_texts += len(read.texts)
        notes += [note if name in note else f"{name}: {note}" for note in read.notes]
    if not found:
        raise TextError(" ".join([f"There is no text in {where}.", *_few(skipped)]))
    return _put_together(found, tuple(_few(skipped) + _few(notes, _MOST_NOTES)))


def _files_of(folder: Path, max_files: int) -> tuple[list[tuple[Path, str]], list[str]]:
    """The files to be read with their paths in the folder, and sentences on those that are not."""
    root = folder.resolve()
    files: list[tuple[Path, str]] = []
    skipped: list[str] = []

    def unreadable(error: OSError) -> None:
        where = Path(str(error.filename)).relative_to(folder).as_posix()
        skipped.append(f"{where} cannot be read: {error.strerror}.")

    n_entries = 0
    for top, inner, names in os.walk(folder, onerror=unreadable):
        n_entries += len(names)
        if n_entries > max_files:
            raise TextError(
                f"The folder {folder} holds more than {max_files:,} files; choose one in it, or "
                "put the texts into a table."
            )
        for entry in [*inner, *names]:
            file = Path(top) / entry
            name = tidy(file.relative_to(folder).as_posix())
            if entry.startswith("."):
                skipped.append(f"{name} is hidden.")
            elif entry in inner:
                if file.is_symlink():
                    skipped.append(f"{name} is a link to a folder.")
            elif file.is_symlink() and not _is_inside(file, root):
                skipped.append(f"{name} is a link that leads out of the folder.")
            elif not (is_table(name) or file.suffix.lower() in TEXT_ENDINGS):
                skipped.append(f"{name} is neither plain text nor a table.")
            else:
                files.append((file, name))
        inner[:] = [entry for entry in inner if not entry.startswith(".")]
    return sorted(files, key=lambda one: one[0].relative_to(folder).parts), sorted(skipped)


def _is_inside(file: Path, root: Path) -> bool:
    try:
        return file.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # links in a circle
        return False


def _few(sentences: Sequence[str], most: int = _NAMED_FILES) -> list[str]:
    """The first few of some sentences, and how many more there are."""
    more = len(sentences) - most
    return [*sentences[:most], *([f"{more:,} more of this kind."] if more > 0 else [])]


def _put_together(found: Sequence[tuple[str, ReadTexts]], notes: tuple[str, ...]) -> ReadTexts:
    """The texts of several files with the labels of all, and those that say where each is from."""
    columns = tuple(dict.fromkeys(name for _, read in found for name in read.columns))
    names = tuple(dict.fromkeys(name for _, read in found for name in read.labels))
    labels: dict[str, list[str]] = {name: [] for name in names}
    files: list[str] = []
    folders: list[str] = []
    ids: list[str] = []
    for file, read in found:
        n_texts = len(read.texts)
        for name, values in labels.items():
            values += read.labels.get(name, [""] * n_texts)
        files += [file] * n_texts
        folders += [file.rpartition("/")[0]] * n_texts
        ids += [""] * n_texts if read.ids is None else read.ids
    labels[free_name("file", columns)] = files
    if any(folders):
        labels[free_name("folder", columns)] = folders
    unique, said = _unique(ids)
    return ReadTexts(
        texts=tuple(text for _, read in found for text in read.texts),
        notes=notes + said,
        ids=unique,
        column=next((read.column for _, read in found if read.column is not None), None),
        columns=columns,
        labels={name: tuple(values) for name, values in labels.items()},
    )
