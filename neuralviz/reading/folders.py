"""Texts from several files, and from the files of a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import INFO, SPLITS, STATE
from neuralviz.reading.lines import tidy
from neuralviz.reading.source import Source
from neuralviz.reading.texts import MAX_TEXTS, Mode, ReadTexts, make_ids_unique, read_texts
from neuralviz.words import free_name, many

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
) -> ReadTexts:
    """Read several files, each as by `read_texts`, one below the other, labels by their names.

    The label ``file`` is the name of the file, and ``folder``, where a name has one before a slash,
    that of its folder. Files that cannot be read, or lack a ``column``, are left out and named.
    ``max_texts`` is of all files together. A `TextError` where there is no text in them.
    """
    return _read_sources(files, [], "these files", column, mode, max_texts)


def read_folder(
    path: Path,
    column: str | None = None,
    *,
    mode: Mode = "one",
    max_texts: int | None = None,
    max_files: int = MAX_FILES,
) -> ReadTexts:
    """Read all files of a folder and of those in it by ``read_files``, in the order of their paths.

    Left out and named are files that are hidden, unreadable or neither table nor `TEXT_ENDINGS`,
    links to folders, and links that lead out of the folder. A `TextError` where there is no such
    folder, no text in it, or too many files.
    """
    if not path.is_dir():
        raise TextError(f"No such folder: {path}.")
    files, skipped = _list_files(path, max_files)
    return _read_sources(files, skipped, f"the folder {path}", column, mode, max_texts)


def _leave_out_metadata(files: Sequence[Source]) -> list[Source]:
    """Files without those in which a saved data set says what it is, and without its caches."""
    paths = [(source, *source.name.rpartition("/")[::2]) for source in files]
    with_arrow = {folder for _, folder, name in paths if name.lower().endswith(".arrow")}
    parents = {folder.rpartition("/")[0] for folder in with_arrow}
    saved = {folder for _, folder, name in paths if name == STATE and folder in with_arrow}
    return [
        source
        for source, folder, name in paths
        if not (folder in with_arrow and name in (STATE, INFO))
        and not (folder in parents and name == SPLITS)
        and not (folder in saved and name.startswith("cache-"))
    ]


def _read_sources(
    files: Sequence[Source],
    skipped: list[str],
    place: str,
    column: str | None,
    mode: Mode,
    max_texts: int | None,
) -> ReadTexts:
    limit = MAX_TEXTS if max_texts is None else min(max_texts, MAX_TEXTS)
    read_by_name: list[tuple[str, ReadTexts]] = []
    n_texts, notes = 0, []
    for source in _leave_out_metadata(files):
        if n_texts >= limit:
            notes.append(f"Limited to the first {many(limit, 'text')}. There are more files.")
            break
        text_column = column if source.is_table else None
        try:
            read = read_texts(source, text_column, mode=mode, max_texts=limit - n_texts)
        except TextError as error:
            skipped.append(prefix_name(source.name, str(error)))
            continue
        read_by_name.append((source.name, read))
        n_texts += len(read.texts)
        notes += [prefix_name(source.name, note) for note in read.notes]
    skipped = shorten_list(skipped, _NAMED_FILES)
    if not read_by_name:
        raise TextError(" ".join([f"No text found in {place}.", *skipped]))
    return _join_files(read_by_name, (*skipped, *shorten_list(notes, _MOST_NOTES)))


def prefix_name(name: str, note: str) -> str:
    """A sentence on a file, with its name if it has it not yet."""
    return note if name in note else f"{name}: {note}"


def _list_files(folder: Path, max_files: int) -> tuple[list[Source], list[str]]:
    """The files to be read with their paths in the folder, and sentences on those that are not."""
    root = folder.resolve()
    files: list[Path] = []
    skipped: list[str] = []

    def note_unreadable(error: OSError) -> None:
        path_inside = Path(str(error.filename)).relative_to(folder).as_posix()
        skipped.append(f"Could not read {path_inside}: {error.strerror}.")

    n_entries = 0
    for top, inner, names in os.walk(folder, onerror=note_unreadable):
        n_entries += len(names)
        if n_entries > max_files:
            raise TextError(
                f"The folder {folder} has more than {max_files:,} files. Choose a folder "
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
    files.sort(key=lambda file: file.relative_to(folder).parts)
    sources = [Source(tidy(file.relative_to(folder).as_posix()), file) for file in files]
    return sources, sorted(skipped)


def _find_reason_to_skip(file: Path, root: Path, *, is_folder: bool) -> str:
    if file.name.startswith("."):
        return "hidden"
    if is_folder:
        return "link to a folder" if file.is_symlink() else ""
    try:
        is_inside = not file.is_symlink() or file.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # links in a circle
        is_inside = False
    if not is_inside:
        return "link to a file outside the folder"
    is_read = Source.from_path(file).is_table or file.suffix.lower() in TEXT_ENDINGS
    return "" if is_read else "neither plain text nor a table"


def shorten_list(sentences: Sequence[str], n_shown: int) -> list[str]:
    """The first few of some sentences, and how many more there are."""
    n_more = len(sentences) - n_shown
    return [*sentences[:n_shown], *([f"And {n_more:,} more like this."] if n_more > 0 else [])]


def _join_files(read_by_name: Sequence[tuple[str, ReadTexts]], notes: tuple[str, ...]) -> ReadTexts:
    columns = tuple(dict.fromkeys(name for _, read in read_by_name for name in read.columns))
    names = tuple(dict.fromkeys(name for _, read in read_by_name for name in read.labels))
    labels: dict[str, list[str]] = {name: [] for name in names}
    files: list[str] = []
    folders: list[str] = []
    ids: list[str] = []
    for file, read in read_by_name:
        n_texts = len(read.texts)
        for name, values in labels.items():
            values += read.labels.get(name, [""] * n_texts)
        files += [file] * n_texts
        folders += [file.rpartition("/")[0]] * n_texts
        ids += [""] * n_texts if read.ids is None else read.ids
    labels[free_name("file", columns)] = files
    if any(folders):
        labels[free_name("folder", columns)] = folders
    unique, id_notes = make_ids_unique(ids)
    return ReadTexts(
        texts=tuple(text for _, read in read_by_name for text in read.texts),
        notes=notes + id_notes,
        ids=unique,
        column=next((read.column for _, read in read_by_name if read.column is not None), None),
        columns=columns,
        labels={name: tuple(values) for name, values in labels.items()},
    )
