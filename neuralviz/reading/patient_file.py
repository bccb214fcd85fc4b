"""A file behind a network, which may fail for a moment."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from neuralviz.errors import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Sequence

WAITS = (1.0, 4.0, 16.0)  # seconds before the file is opened again
_LASTING = (FileNotFoundError, PermissionError, IsADirectoryError)
BUFFER = 1 << 20  # bytes


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
