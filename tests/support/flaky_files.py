"""A file system behind a network that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem


class _Flaky:
    """A file of which so many reads succeed each time it is opened."""

    closed = False

    def __init__(self, path: str, reads: int) -> None:
        self._file, self._reads = Path(path).open("rb"), reads  # noqa: SIM115

    def read(self, n: int = -1) -> bytes:
        if not self._reads:
            raise OSError("connection reset")
        self._reads -= 1
        return self._file.read(n)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Handler(FileSystemHandler):
    def __init__(self, reads: int) -> None:
        self.reads = reads

    def get_type_name(self) -> str:
        return "flaky"

    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(_Flaky(path, self.reads), mode="r")

    def get_file_info(self, paths: list[str]) -> Any:
        return LocalFileSystem().get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return LocalFileSystem().get_file_info(selector)

    open_input_stream = open_input_file

    def _nothing(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = _nothing
    delete_root_dir_contents = move = open_append_stream = open_output_stream = _nothing

    def normalize_path(self, path: str) -> str:
        return path


def flaky_files(reads: int) -> PyFileSystem:
    """This machine's files; so many reads of each succeed before the connection is lost."""
    return PyFileSystem(_Handler(reads))
