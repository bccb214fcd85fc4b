"""Where texts are read from: a name, and the bytes or the file that go by it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from neuralviz.errors import TextError
from neuralviz.reading.not_data import HEAD, check_is_content

TABLES = (
    *(".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather", ".xlsx"),
)
WITHOUT_NAMES = (".csv", ".tsv", ".xlsx")  # in which a row may name the columns, or none


@dataclass(frozen=True)
class Source:
    """A file to be read, uploaded or on this machine.

    Attributes:
        name: of the file; its ending says what it is, and messages have it.
        content: the bytes, or where they are.
        header: the line, or in a workbook the row, that names the columns; 0 where none does; None
            to find it. Other formats name their columns.
    """

    name: str
    content: bytes | Path
    header: int | None = None

    @classmethod
    def from_path(cls, path: Path, header: int | None = None) -> Source:
        """The file at a path.

        Args:
            path: of the file.
            header: as of the class.
        """
        return cls(path.name, path, header)

    @property
    def ending(self) -> str:
        """Of the name, in lower case and with its point; empty where it has none."""
        _, point, behind = self.name.lower().rpartition(".")
        return f".{behind}" if point else ""

    @property
    def is_table(self) -> bool:
        """Whether it is read as a table."""
        return self.ending in TABLES

    @cached_property
    def digest(self) -> str:
        """Hash of the name, the header and the content, for caches: of a path, its file now.

        Raises:
            TextError: there is no such file.
        """
        whole = hashlib.sha256(self.name.encode("utf-8", "surrogatepass") + b"\0")
        if self.header is not None:
            whole.update(f"header {self.header}\0".encode())
        if isinstance(self.content, bytes):
            whole.update(self.content)
        else:
            try:
                stat = self.content.stat()
            except OSError as error:
                raise self._describe_error(error) from error
            state = (str(self.content.resolve()), stat.st_size, stat.st_mtime_ns)
            whole.update(repr(state).encode("utf-8", "surrogatepass"))
        return whole.hexdigest()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The file to be read, at its beginning.

        What the system makes up while it is read, without end perhaps, counts as empty.

        Raises:
            TextError: it cannot be opened or read, it is no file, it is empty, or it stands for
                another one, as a pointer or an error page does.
        """
        if isinstance(self.content, bytes):
            with io.BytesIO(self.content) as file:
                yield self._check_head(file)
            return
        try:
            if self.content.exists():
                if not self.content.is_file():
                    raise TextError(f"{self.name} is not a regular file.")
                if not self.content.stat().st_size:
                    raise TextError(f"{self.name} is empty.")
            with self.content.open("rb") as file:
                yield self._check_head(file)
        except OSError as error:
            raise self._describe_error(error) from error

    def _describe_error(self, error: OSError) -> TextError:
        if isinstance(error, FileNotFoundError):
            return TextError(f"No such file: {self.name}.")
        return TextError(f"Could not read {self.name}: {error.strerror or error}.")

    def _check_head(self, file: IO[bytes]) -> IO[bytes]:
        head = file.read(HEAD)
        if not head:
            raise TextError(f"{self.name} is empty.")
        check_is_content(self.name, head)
        file.seek(0)
        return file
