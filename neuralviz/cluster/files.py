"""Files of any size and place, read piece by piece; loads no Ray."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from neuralviz.errors import TextError, UnreadFileError
from neuralviz.reading.arrow_tables import read_group_sizes, read_parquet
from neuralviz.reading.delimited import read_delimited, restore_cells
from neuralviz.reading.source import HEAD, check_is_content, tidy
from neuralviz.reading.table import drop_vectors
from neuralviz.reading.tables import read_json_lines
from neuralviz.words import joined

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo

    from neuralviz.reading.table import Table

ENDINGS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv")
OPENED_AT_ONCE = 16  # files
BYTES = 1 << 26  # of a part of a Parquet file, about
_WILD = ("*", "?", "[")


@dataclass(frozen=True)
class FilePart:
    """A file, or some of its row groups, for one process."""

    name: str  # what people call the file: its path below what they named
    path: str  # in its file system
    files: FileSystem  # that file system, of pyarrow; it can be sent to another machine
    groups: tuple[int, ...] = ()  # numbers of the row groups; empty for the whole file
    header: int | None = None  # as of `Source`; of CSV and TSV files

    @property
    def ending(self) -> str:
        return "." + self.path.rpartition(".")[2].lower()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file; UnreadFileError if the connection fails, not the content."""
        try:
            with self.files.open_input_file(self.path) as file:
                try:
                    yield file
                except TextError as error:
                    if isinstance(error.__cause__, OSError):
                        file.seek(0)
                        file.read(1)  # an OSError where it is the connection, not the content
                    raise
        except OSError as error:
            raise UnreadFileError(
                f"Could not read {self.name}: {_describe_error(error)}."
            ) from error

    def blocks(self) -> Iterator[Table]:
        """Blocks of some thousand rows; TextError if damaged, UnreadFileError if out of reach."""
        with self.opened() as file:
            if self.ending == ".parquet":
                yield from read_parquet(self.name, file, groups=self.groups)
            elif self.ending in (".csv", ".tsv"):
                blocks = read_delimited(self.name, file, header=self.header)
                yield from map(drop_vectors, map(restore_cells, blocks))
            else:
                yield from read_json_lines(self.name, file)

    def divide(self) -> list[FilePart]:
        with self.opened() as file:
            check_is_content(self.name, file.read(HEAD))
            if self.ending != ".parquet":
                return [self]
            file.seek(0)
            sizes = read_group_sizes(self.name, file)
        together: list[list[int]] = []
        n_bytes = 0
        for group, size in enumerate(sizes):
            n_bytes += size
            if not together or n_bytes > BYTES:
                together.append([])
                n_bytes = size
            together[-1].append(group)
        return [replace(self, groups=tuple(groups)) for groups in together]


@dataclass(frozen=True)
class Parts:
    parts: tuple[FilePart, ...]  # in the order of their rows
    notes: tuple[str, ...]  # sentences on what was left out
    digest: str  # hash of the files as they are now: another one where a file has changed
    n_broken: int = 0  # files that cannot be opened, which are named in the notes


def find_parts(paths: Sequence[str], header: int | None = None) -> Parts:
    """Find files by paths, folders, patterns or URLs such as ``s3://…``.

    Folders are read recursively, by path, without hidden files and those not in `ENDINGS`. Raises
    TextError if one finds nothing, or no file can be read piece by piece.
    """
    parts_by_path: dict[tuple[str, str], FilePart] = {}
    notes: list[str] = []
    whole = hashlib.sha256(b"" if header is None else f"header {header}".encode())
    for path in paths:
        files, folder, infos = _list_files(path)
        for info in sorted(infos, key=lambda info: info.path.split("/")):
            inside = info.path.removeprefix(folder).lstrip("/")
            part = FilePart(tidy(inside), info.path, files, header=header)
            hidden = any(step.startswith(".") for step in part.name.split("/"))
            key = (files.type_name, info.path)
            if hidden or part.ending not in ENDINGS:
                reason = "hidden" if hidden else f"with --ray, only {joined(ENDINGS)} are read"
                notes.append(f"Skipped {part.name}: {reason}.")
            elif not info.size:
                notes.append(f"Skipped {part.name}: empty.")
            elif key not in parts_by_path:
                parts_by_path[key] = part
                state = repr((info.path, info.size, info.mtime_ns))
                whole.update(state.encode("utf-8", "surrogatepass"))
    if not parts_by_path:
        raise TextError(" ".join(["No file with texts was found.", *notes[:5]]))
    found_parts = list(parts_by_path.values())
    if len({part.name for part in found_parts}) < len(found_parts):  # from several folders
        found_parts = [replace(part, name=tidy(part.path)) for part in found_parts]
    parts: list[FilePart] = []
    n_broken = 0
    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:  # in an object store, each takes its time
        for divided in pool.map(_try_to_divide, found_parts):
            if isinstance(divided, str):
                notes.append(divided)
                n_broken += 1
            else:
                parts += divided
                if not divided:
                    notes.append("Skipped a Parquet file without rows.")
    if not parts:
        raise TextError(" ".join(notes[:5]))
    return Parts(tuple(parts), tuple(notes), whole.hexdigest(), n_broken)


def _try_to_divide(part: FilePart) -> list[FilePart] | str:
    try:
        return part.divide()
    except TextError as error:
        return str(error)


def _list_files(path: str) -> tuple[FileSystem, str, list[FileInfo]]:
    """The file system, the base folder for names, and the files of a path."""
    if path.startswith(("http://", "https://")):
        raise TextError(
            f"Web addresses cannot be read in pieces: {path}. Download the file, or put it into an "
            "object store (s3://, gs://, …)."
        )
    try:
        if "://" in path:
            fixed, pattern = _split_pattern(path)
            files, inner = FileSystem.from_uri(fixed)
        else:
            local = Path(path).expanduser().absolute()
            fixed, pattern = (str(local), []) if local.exists() else _split_pattern(str(local))
            files, inner = LocalFileSystem(), fixed
        info = files.get_file_info(inner)
        if info.type == FileType.NotFound:
            raise TextError(f"No such file or folder: {path}.")
        if info.is_file:
            return files, inner.rpartition("/")[0], [info]
        entries = files.get_file_info(FileSelector(inner, recursive=True))
    except (OSError, ValueError, NotImplementedError) as error:
        raise TextError(f"Could not read {path}: {_describe_error(error)}.") from error
    infos = [entry for entry in entries if entry.is_file]
    if pattern:
        steps = [*inner.rstrip("/").split("/"), *pattern]
        infos = [entry for entry in infos if _steps_match(entry.path.split("/"), steps)]
        if not infos:
            raise TextError(f"No file matches {path}.")
    return files, inner, infos


def _steps_match(steps: list[str], patterns: list[str]) -> bool:
    """Match as shells do: ``*`` within a step, ``**`` across steps."""
    if not patterns:
        return not steps
    if patterns[0] == "**":
        return any(_steps_match(steps[start:], patterns[1:]) for start in range(len(steps) + 1))
    return bool(steps) and fnmatch(steps[0], patterns[0]) and _steps_match(steps[1:], patterns[1:])


def _split_pattern(path: str) -> tuple[str, list[str]]:
    """The path before its first wildcard, and the steps from there."""
    steps = path.split("/")
    for place, step in enumerate(steps):
        if any(sign in step for sign in _WILD):
            return "/".join(steps[:place]) or "/", steps[place:]
    return path, []


def _describe_error(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()).rstrip(".")[:200]
