"""Tables of files that are read piece by piece, wherever they are, for corpora of any size."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from neuralviz.errors import ConnectionLostError, TextError, UnreadFileError
from neuralviz.reading.delimited import read_delimited_blocks
from neuralviz.reading.json_tables import read_json_lines_blocks
from neuralviz.reading.lines import tidy
from neuralviz.reading.not_data import HEAD, check_is_content
from neuralviz.reading.parquet_tables import read_group_sizes, read_parquet_blocks
from neuralviz.reading.table import drop_vectors
from neuralviz.words import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyarrow.fs import FileInfo

    from neuralviz.reading.table import Table

ENDINGS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv")
ROWS = 10_000  # of a block
OPENED_AT_ONCE = 16  # files
BYTES = 1 << 26  # of a part of a Parquet file, about
_WILD = ("*", "?", "[")
WAITS = (1.0, 4.0, 16.0)  # seconds before the file is opened again
_LASTING = (FileNotFoundError, PermissionError, IsADirectoryError)
BUFFER = 1 << 20  # bytes


@dataclass(frozen=True)
class FilePart:
    """A file, or some of its row groups, to be read by one process.

    Attributes:
        name: what people call the file: its path below what they named.
        path: in its file system.
        files: that file system, of pyarrow; it can be sent to another machine.
        groups: numbers of the row groups; empty for the whole file.
        header: as of `Source`.
    """

    name: str
    path: str
    files: FileSystem
    groups: tuple[int, ...] = ()
    header: int | None = None

    @property
    def ending(self) -> str:
        """Of the path, in lower case and with its point."""
        return "." + self.path.rpartition(".")[2].lower()

    def opened(self) -> IO[bytes]:
        """The file at its beginning; behind a network, one that outlives a failure of it.

        Raises:
            UnreadFileError: it cannot be opened.
            ConnectionLostError: the network does not answer.
        """
        try:
            if isinstance(self.files, LocalFileSystem):
                return self.files.open_input_file(self.path)
            again = partial(self.files.open_input_file, self.path)
            return io.BufferedReader(PatientFile(self.name, again), BUFFER)
        except (OSError, ValueError) as error:
            raise UnreadFileError(
                f"Could not read {self.name}: {_describe_error(error)}."
            ) from error

    def blocks(self) -> Iterator[Table]:
        """The rows, some thousand at once.

        Raises:
            TextError: as it is read: the file is damaged, or is none of its kind. What came before
                is good.
            UnreadFileError: it cannot be opened or read.
            ConnectionLostError: as it is read, from a network.
        """
        try:
            with self.opened() as file:
                if self.ending == ".parquet":
                    yield from read_parquet_blocks(self.name, file, self.groups)
                elif self.ending in (".csv", ".tsv"):
                    blocks = read_delimited_blocks(self.name, file, self.header)
                    yield from map(drop_vectors, blocks)
                else:
                    yield from read_json_lines_blocks(self.name, file, ROWS)
        except OSError as error:
            raise UnreadFileError(
                f"Could not read {self.name}: {_describe_error(error)}."
            ) from error


@dataclass(frozen=True)
class Parts:
    """Files to be read, and what is known of them before.

    Attributes:
        parts: in the order of their rows.
        notes: sentences on what was left out.
        digest: hash of the files as they are now: another one where a file has changed.
        n_broken: files that cannot be opened, which are named in the notes.
    """

    parts: tuple[FilePart, ...]
    notes: tuple[str, ...]
    digest: str
    n_broken: int = 0


def find_parts(paths: Sequence[str], header: int | None = None) -> Parts:
    """Find the files that paths, folders, patterns or URLs name.

    Folders are read with all that is in them, in the order of their paths. Hidden files, and files
    of no kind of `ENDINGS`, are left out.

    Args:
        paths: of this machine, or URLs that pyarrow's file systems read, such as ``s3://…``.
        header: of each CSV and TSV file, as of `Source`.

    Raises:
        TextError: one names nothing, or there is no file that can be read piece by piece.
    """
    parts_by_path: dict[tuple[str, str], tuple[FilePart, FileInfo]] = {}
    notes: list[str] = []
    for path in paths:
        files, name, infos = _list_files(path)
        for info in sorted(infos, key=lambda info: info.path.split("/")):
            part = FilePart(_name_below(info.path, name), info.path, files, header=header)
            hidden = any(step.startswith(".") for step in part.name.split("/"))
            if hidden or part.ending not in ENDINGS:
                reason = "hidden" if hidden else f"with --ray, only {joined(ENDINGS)} are read"
                notes.append(f"Skipped {part.name}: {reason}.")
            elif not info.size:
                notes.append(f"Skipped {part.name}: empty.")
            else:
                parts_by_path.setdefault((files.type_name, info.path), (part, info))
    if not parts_by_path:
        raise TextError(" ".join(["No file with texts was found.", *notes[:5]]))
    names = [part.name for part, _ in parts_by_path.values()]
    if len(set(names)) < len(names):  # from several folders: their whole paths tell them apart
        for key, (part, info) in parts_by_path.items():
            parts_by_path[key] = (replace(part, name=tidy(part.path)), info)
    parts: list[FilePart] = []
    n_broken = 0
    whole = hashlib.sha256(b"" if header is None else f"header {header}".encode())
    for _, info in parts_by_path.values():
        whole.update(repr((info.path, info.size, info.mtime_ns)).encode("utf-8", "surrogatepass"))
    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:  # in an object store, each takes its time
        for divided in pool.map(_try_to_divide, (part for part, _ in parts_by_path.values())):
            if isinstance(divided, str):
                notes.append(divided)
                n_broken += 1
            else:
                parts += divided
    if not parts:
        raise TextError(" ".join(notes[:5]))
    return Parts(tuple(parts), tuple(notes), whole.hexdigest(), n_broken)


def _try_to_divide(part: FilePart) -> list[FilePart] | str:
    """A file in its parts, or why it cannot be read."""
    try:
        return _divide(part)
    except TextError as error:
        return str(error)


def _divide(part: FilePart) -> list[FilePart]:
    """A Parquet file by its row groups, about `BYTES` at once; any other as it is.

    Raises:
        TextError: it cannot be opened, or is no Parquet file; see `check_is_content`.
    """
    with part.opened() as file:
        check_is_content(part.name, file.read(HEAD))
        if part.ending != ".parquet":
            return [part]
        file.seek(0)
        try:
            sizes = read_group_sizes(part.name, file)
        except OSError as error:
            raise UnreadFileError(
                f"Could not read {part.name}: {_describe_error(error)}."
            ) from error
    parts: list[FilePart] = []
    groups: list[int] = []
    n_bytes = 0
    for group, size in enumerate(sizes):
        groups.append(group)
        n_bytes += size
        if n_bytes >= BYTES or group == len(sizes) - 1:
            parts.append(FilePart(part.name, part.path, part.files, tuple(groups)))
            groups, n_bytes = [], 0
    return parts


def _list_files(path: str) -> tuple[FileSystem, str, list[FileInfo]]:
    """The file system of a path, what its files are named below, and the files."""
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
            fixed, pattern = (str(local), "") if local.exists() else _split_pattern(str(local))
            files, inner = LocalFileSystem(), fixed
        info = files.get_file_info(inner)
        if info.type == FileType.NotFound:
            raise TextError(f"No such file or folder: {path}.")
        if info.is_file:
            return files, inner.rpartition("/")[0], [info]
        inside = files.get_file_info(FileSelector(inner, recursive=True))
    except (OSError, ValueError, NotImplementedError) as error:
        raise TextError(f"Could not read {path}: {_describe_error(error)}.") from error
    infos = [entry for entry in inside if entry.is_file]
    if pattern:
        full_pattern = f"{inner.rstrip('/')}/{pattern}"
        infos = [entry for entry in infos if _matches(entry.path, full_pattern)]
        if not infos:
            raise TextError(f"No file matches {path}.")
    return files, inner, infos


def _matches(path: str, pattern: str) -> bool:
    """As shells do: a star stands for nothing with a slash in it, two stars for anything."""
    return _steps_match(path.split("/"), pattern.split("/"))


def _steps_match(steps: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not steps
    if patterns[0] == "**":
        return any(_steps_match(steps[start:], patterns[1:]) for start in range(len(steps) + 1))
    return bool(steps) and fnmatch(steps[0], patterns[0]) and _steps_match(steps[1:], patterns[1:])


def _split_pattern(path: str) -> tuple[str, str]:
    """A path up to its first step with a wildcard, and the rest; empty without one."""
    steps = path.split("/")
    for place, step in enumerate(steps):
        if any(sign in step for sign in _WILD):
            return "/".join(steps[:place]) or "/", "/".join(steps[place:])
    return path, ""


def _name_below(path: str, folder: str) -> str:
    """What people call a file: its path below a folder."""
    inside = path.removeprefix(folder).lstrip("/") if path.startswith(folder) else path
    return tidy(inside)


def _describe_error(error: Exception) -> str:
    """What a file system says, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()).rstrip(".")[:200]


class PatientFile(io.RawIOBase):
    """Bytes of a file that is opened again where it was, when reading fails.

    Args:
        name: what people call the file.
        open_again: opens it; what it returns can ``seek``, ``read``, ``size`` and ``close``.
        waits: seconds before each new try.

    Raises:
        ConnectionLostError: as it is read: no try succeeded.
        OSError: the file is gone, or must not be read.
    """

    def __init__(
        self, name: str, open_again: Callable[[], Any], waits: Sequence[float] = WAITS
    ) -> None:
        super().__init__()
        self._name, self._open_again, self._waits = name, open_again, waits
        self._file: Any = None
        self._at = 0
        self._size: int = self._retry(lambda file: file.size())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        n = min(len(view), max(0, self._size - self._at))

        def read(file: Any) -> bytes:
            file.seek(self._at)
            return file.read(n)

        content = self._retry(read) if n else b""
        view[: len(content)] = content
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _retry(self, ask: Callable[[Any], Any]) -> Any:
        """What the file answers; opened again while it does not."""
        for wait in (*self._waits, None):
            try:
                if self._file is None:
                    self._file = self._open_again()
                return ask(self._file)
            except _LASTING:
                raise
            except OSError as error:
                self._file = None
                if wait is None:
                    raise ConnectionLostError(self._name, error) from error
                time.sleep(wait)
        raise AssertionError
