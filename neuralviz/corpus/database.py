"""The embedded database (LanceDB) under a folder that corpora are kept in.

The folder can be copied to another machine, and several processes may use it at once. Every write
is one commit of one table: what was interrupted is not there at all.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table

FORMAT = 1
SUPERSEDED_FOR = timedelta(hours=1)  # how long readers may go on with what was replaced
_SOURCE = re.compile(r",? ?(location: )?/?[\w@./-]+\.rs:\d+(:\d+)?")
_FORBIDDEN = ("Permission denied", "os error 13", "Read-only file system", "os error 30")
_DISK_FULL = ("No space left", "os error 28", "File too large", "os error 27", "os error 122")

_REGISTRIES = {
    "corpora": ("id", "name", "created", "about"),
    "embedders": ("id", "created", "spec", "dim"),
    "maps": ("id", "corpus", "embedder", "created", "about", "fitted"),
}
"""Small tables that say what there is, and their columns."""


class Database:
    """Tables by name. Any thread may call any method; nothing is held open between calls.

    Args:
        folder: made when something is first kept in it.

    Raises:
        StoreError: a newer neuralviz wrote the folder, or it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._check_format()

    def open(self, table: str) -> Table:
        """A table as it is now."""
        return self._connect().open_table(table)

    def create(self, table: str, rows: pa.Table, *, overwrite: bool = False) -> None:
        """Make a table with rows."""
        self._prepare()
        mode = "overwrite" if overwrite and self._is_there(table) else "create"
        self._connect().create_table(table, rows, mode=mode)

    def make_room(self, table: str, schema: pa.Schema) -> None:
        """Make a table without rows, if it is not there yet."""
        self._prepare()
        self._connect().create_table(table, schema=schema, exist_ok=True)

    def drop(self, table: str) -> None:
        """Delete a table, if it is there."""
        with suppress(ValueError):  # not found
            self._connect().drop_table(table)

    def registry(self, name: str) -> Table:
        """One of the small tables that say what there is, made when it is missing."""
        import pyarrow as pa

        types = {"dim": pa.int32(), "fitted": pa.binary()}
        columns = [(column, types.get(column, pa.string())) for column in _REGISTRIES[name]]
        if not self._is_there(name):
            self.make_room(name, pa.schema(columns))
        return self.open(name)

    def entries(self, registry: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a registry, the oldest first; none when nothing has been kept."""
        if not self._is_there(registry):
            return []
        with self.reading():
            query = self.open(registry).search().select(list(columns or _REGISTRIES[registry]))
            return sorted(query.to_arrow().to_pylist(), key=lambda row: row["created"])

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, piece by piece."""
        with self.reading():
            yield from self.open(table).search().select(list(columns)).to_batches()

    @contextmanager
    def reading(self, missing: str = "") -> Iterator[None]:
        """Errors of reading as `StoreError`; ``missing`` is said when the table is gone."""
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            if missing and "not found" in str(error):
                raise StoreError(missing) from error
            raise StoreError(
                f"What is kept in {self.folder} cannot be read ({_reason(error)})."
            ) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Errors of writing as `StoreError`."""
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            if any(sign in str(error) for sign in _DISK_FULL):
                raise StoreError(
                    f"There is no room left on the disk of {self.folder}. What was kept before is "
                    "still there; make room and go on."
                ) from error
            if any(sign in str(error) for sign in _FORBIDDEN):
                raise StoreError(
                    f"Nothing can be written to {self.folder}; change its permissions, or set "
                    "NEURALVIZ_HOME to another folder."
                ) from error
            raise StoreError(
                f"It could not be kept in {self.folder} ({_reason(error)}). What was kept before "
                "is still there."
            ) from error

    def _connect(self) -> DBConnection:
        import lancedb

        return lancedb.connect(self.folder / "tables")

    def _is_there(self, table: str) -> bool:
        return (self.folder / "tables" / f"{table}.lance").is_dir()

    def _prepare(self) -> None:
        """Make the folder, and say in it which format it has."""
        path = self.folder / "format.json"
        if not path.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self.folder / f"{secrets.token_hex(6)}.part"
            part.write_text(json.dumps({"format": FORMAT}), "utf-8")
            part.replace(path)

    def _check_format(self) -> None:
        path = self.folder / "format.json"
        try:
            found = int(json.loads(path.read_text("utf-8"))["format"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} cannot be read, so neither can the corpora beside it; restore it, or set "
                "NEURALVIZ_HOME to another folder."
            ) from error
        if found != FORMAT:
            raise StoreError(
                f"The corpora in {self.folder} were kept by a newer neuralviz (format {found}; "
                f"this one reads {FORMAT}). Update neuralviz, or set NEURALVIZ_HOME to another "
                "folder; nothing was changed."
            )


def now() -> str:
    """The time as ISO 8601, UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def list_array(rows: np.ndarray) -> pa.Array:
    """A [row, value] array as a column of lists of one length."""
    import pyarrow as pa

    values = pa.array(np.ascontiguousarray(rows).ravel())
    return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])


def rows_of(lists: pa.Array) -> np.ndarray:
    """The [row, value] array of a column of lists of one length."""
    values = lists.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, lists.type.list_size)


def _reason(error: Exception) -> str:
    """What the database says, without the places in its source."""
    said = _SOURCE.sub("", " ".join(str(error).split()))
    return said.strip(" ,.")[:200] or type(error).__name__
