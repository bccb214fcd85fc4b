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
    """Read several files one after the other.

    A text file is a text; a table is read as by ``read_texts`` and put below what came before,
    labels by their names. The label ``file`` is the name of the file, and ``folder``, where a name
    has one before a slash, that of its folder. Files that cannot be read are left out and named.

    Args:
        files: in this order.
        column: the column of texts in the tables; those that have none of this name are left out.
        mode: where a text of a text file ends; by default at the end of the file.
        max_texts: as in ``read_texts``, of all files together.

    Raises:
        TextError: there is no text in them.
    """
    return _read_sources(_leave_out_metadata(files), [], "these files", column, mode, max_texts)


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
        raise TextError(f"No such folder: {path}.")
    files, skipped = _list_files(path, max_files)
    sources = _leave_out_metadata([Source(name, file) for file, name in files])
    return _read_sources(sources, skipped, f"the folder {path}", column, mode, max_texts)


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
    for source in files:
        name = source.name
        if n_texts >= limit:
            notes.append(f"Limited to the first {many(limit, 'text')}. There are more files.")
            break
        text_column = column if source.is_table else None
        try:
            read = read_texts(source, text_column, mode=mode, max_texts=limit - n_texts)
        except TextError as error:
            reason = str(error)
            skipped.append(reason if name in reason else f"Could not read {name}: {reason}")
            continue
        read_by_name.append((name, read))
        n_texts += len(read.texts)
        notes += [note if name in note else f"{name}: {note}" for note in read.notes]
    if not read_by_name:
        raise TextError(" ".join([f"No text found in {place}.", *_shorten_list(skipped)]))
    return _join_files(
        read_by_name, tuple(_shorten_list(skipped) + _shorten_list(notes, _MOST_NOTES))
    )


def _list_files(folder: Path, max_files: int) -> tuple[list[tuple[Path, str]], list[str]]:
    """The files to be read with their paths in the folder, and sentences on those that are not."""
    root = folder.resolve()
    files: list[tuple[Path, str]] = []
    skipped: list[str] = []

    def unreadable(error: OSError) -> None:
        path_inside = Path(str(error.filename)).relative_to(folder).as_posix()
        skipped.append(f"Could not read {path_inside}: {error.strerror}.")

    n_entries = 0
    for top, inner, names in os.walk(folder, onerror=unreadable):
        n_entries += len(names)
        if n_entries > max_files:
            raise TextError(
                f"The folder {folder} has more than {max_files:,} files. Choose a folder "
                "inside it, or put the texts in a table."
            )
        for entry in [*inner, *names]:
            file = Path(top) / entry
            name = tidy(file.relative_to(folder).as_posix())
            if entry.startswith("."):
                skipped.append(f"Skipped {name}: hidden.")
            elif entry in inner:
                if file.is_symlink():
                    skipped.append(f"Skipped {name}: link to a folder.")
            elif file.is_symlink() and not _is_inside(file, root):
                skipped.append(f"Skipped {name}: link to a file outside the folder.")
            elif not (Source(name, file).is_table or file.suffix.lower() in TEXT_ENDINGS):
                skipped.append(f"Skipped {name}: neither plain text nor a table.")
            else:
                files.append((file, name))
        inner[:] = [entry for entry in inner if not entry.startswith(".")]
    return sorted(files, key=lambda entry: entry[0].relative_to(folder).parts), sorted(skipped)


def _is_inside(file: Path, root: Path) -> bool:
    try:
        return file.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # links in a circle
        return False


def _shorten_list(sentences: Sequence[str], n_shown: int = _NAMED_FILES) -> list[str]:
    """The first few of some sentences, and how many more there are."""
    n_more = len(sentences) - n_shown
    return [*sentences[:n_shown], *([f"And {n_more:,} more like this."] if n_more > 0 else [])]


def _join_files(read_by_name: Sequence[tuple[str, ReadTexts]], notes: tuple[str, ...]) -> ReadTexts:
    """The texts of several files with the labels of all, and those that say where each is from."""
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
