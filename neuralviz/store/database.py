"""The LanceDB database of a corpus folder: writers take turns by a lock, readers never wait."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from filelock import FileLock, Timeout
from pyarrow import compute

from neuralviz.errors import StoreError
from neuralviz.files import folder_error, write_bytes_beside

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.query import LanceQueryBuilder
    from lancedb.table import Table

FORMAT = 2  # labels as they are written
SUPERSEDED_FOR = timedelta(hours=1)  # how long readers may use replaced files
LEFT_OVER_FOR = timedelta(days=7)  # unfinished corpora; as Lance keeps uncommitted files
ROWS_AT_ONCE = 1 << 18  # rows per read
WAIT = 60.0  # seconds to wait for other writers
PATIENCE = 3600.0  # seconds to wait after long work: compaction may take that long
_SOURCE = re.compile(r",? ?(location: )?/?[\w@./-]+\.rs:\d+(:\d+)?")

Rows = Sequence[int] | np.ndarray

_REGISTRIES = {  # columns of the tables that list what is stored
    "corpora": ("id", "name", "created", "about"),
    "embedders": ("id", "created", "spec", "dim"),
    "indexes": ("id", "created", "about"),
    "maps": ("id", "corpus", "embedder", "created", "about", "fitted"),
}
LOOKED_UP = 5000  # keys per condition
AS_LONG_AS = 4  # rows scanned in the time of one look-up
INTERVAL = 3600.0  # seconds between two runs of `tidy`


class Database:
    """LanceDB tables by name; thread-safe. The first write creates the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._check_format()

    def open(self, table: str) -> Table:
        return self._connect().open_table(table)

    def create(
        self, table: str, rows: pa.Table | None = None, schema: pa.Schema | None = None
    ) -> None:
        """Create a table within `lock`; without rows, only if it does not exist."""
        self._connect().create_table(table, data=rows, schema=schema, exist_ok=rows is None)

    def place(self, table: str) -> Path:
        """The path of a table, for code that accesses it directly."""
        return self.folder / "tables" / f"{table}.lance"

    def tables(self) -> list[str]:
        """List all tables, including those left by a killed process."""
        return sorted(path.stem for path in (self.folder / "tables").glob("*.lance"))

    def drop(self, table: str) -> None:
        """Delete a table if it exists."""
        with suppress(ValueError):  # not found
            self._connect().drop_table(table)

    def registry(self, name: str) -> Table:
        """Open a registry within `lock`; create it if it does not exist."""
        types = {"dim": pa.int32(), "fitted": pa.binary()}
        columns = [(column, types.get(column, pa.string())) for column in _REGISTRIES[name]]
        if not self._is_there(name):
            self.create(name, schema=pa.schema(columns))
        return self.open(name)

    def entries(self, registry: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a registry, oldest first."""
        if not self._is_there(registry):
            return []
        with self.reading():
            query = self.open(registry).search().select(list(columns or _REGISTRIES[registry]))
            return sorted(query.to_arrow().to_pylist(), key=lambda row: row["created"])

    def forget(self, registry: str, **values: str) -> None:
        """Delete registry rows with these values, and the tables of the deleted entries."""
        forgotten = [row for row in self.entries(registry) if values.items() <= row.items()]
        if not forgotten:
            return
        condition = " AND ".join(f"{column} = '{value}'" for column, value in values.items())
        with self.lock():
            self.registry(registry).delete(condition)
            for content in (json.loads(row["about"]) for row in forgotten):
                self.drop(content["table"])
                self.drop(content["fit"])

    @contextmanager
    def reading(self, missing: str = "") -> Iterator[None]:
        """Convert read errors to `StoreError`; ``missing`` is the message for a missing table."""
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            if missing and "not found" in str(error):
                raise StoreError(missing) from error
            sentence = f"Could not read the saved corpora in {self.folder}"
            raise folder_error(f"{sentence} ({_describe_error(str(error))}).", "read") from error

    @contextmanager
    def lock(self, wait: float = WAIT) -> Iterator[None]:
        """Hold the write lock. Not reentrant; StoreError on failure or timeout."""
        try:
            self._prepare()
            with FileLock(self.folder / "writing.lock", timeout=wait):
                yield
        except Timeout as error:
            raise StoreError(
                "Another process is writing to the saved corpora. Try again when it has "
                "finished. Nothing was lost."
            ) from error
        except (OSError, RuntimeError, ValueError) as error:
            raise self.refusal(str(error) or type(error).__name__) from error

    def refusal(self, message: str) -> StoreError:
        """Build the error for a failed write."""
        return folder_error(
            f"Could not save to {self.folder} ({_describe_error(message)}). Check its free space "
            "and permissions, or set NEURALVIZ_HOME to another folder. Nothing saved earlier was "
            "lost."
        )

    def _connect(self) -> DBConnection:
        os.environ.setdefault("LANCEDB_LOG", "error")  # otherwise logs every new table
        import lancedb

        return lancedb.connect(self.folder / "tables")

    def _is_there(self, table: str) -> bool:
        """Whether the table has data; a killed process may leave an empty folder."""
        return any((self.place(table) / "_versions").glob("*.manifest"))

    def _prepare(self) -> None:
        """Create the folder and record the format version."""
        path = self.folder / "format.json"
        if not path.exists():
            write_bytes_beside(path, json.dumps({"format": FORMAT}).encode())

    def _check_format(self) -> None:
        path = self.folder / "format.json"
        try:
            stored_format = json.loads(path.read_text("utf-8"))["format"]
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            stored_format = "unreadable"
        if stored_format != FORMAT:
            raise folder_error(
                "This version of neuralviz cannot read the corpora here: the format in "
                f"{path} is {stored_format}, not {FORMAT}. Use the version that saved them, "
                "or set NEURALVIZ_HOME to another folder. Nothing was changed.",
                "read",
            )


def all_rows(query: LanceQueryBuilder) -> pa.Table:
    """Fetch all results at once; LanceDB's default of 1,000 rows a batch is slow."""
    return query.to_batches(ROWS_AT_ONCE).read_all()


def read_rows(table: Table, columns: Sequence[str], rows: Rows | None = None) -> pa.Table:
    """Columns of all rows in their order, or of ``rows`` by number, in the order asked for."""
    if rows is None:
        content = all_rows(table.search().select(list(columns)).with_row_id(True))
        row_ids = content["_rowid"].to_numpy()
        if (row_ids[1:] < row_ids[:-1]).any():
            content = content.take(pa.array(np.argsort(row_ids)))
        return content.drop_columns("_rowid")
    different, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
    if not len(different):
        return table.schema.empty_table().select(list(columns))
    content = table.take_offsets(different.tolist()).select(list(columns)).to_arrow()
    if len(content) < len(different):
        raise StoreError("A text was deleted in the meantime. Open the corpus again.")
    return content.take(pa.array(places))


def current_time() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def list_array(rows: np.ndarray) -> pa.Array:
    """Convert [row, value] to a column of fixed-size lists."""
    values = pa.array(np.ascontiguousarray(rows).ravel())
    return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])


def rows_of(lists: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Convert a column of fixed-size lists to [row, value]."""
    values = compute.list_flatten(lists).to_numpy(zero_copy_only=False)
    return values.reshape(-1, lists.type.list_size)


def _describe_error(message: str) -> str:
    """The database's message without source locations."""
    return _SOURCE.sub("", " ".join(message.split())).strip(" ,.")[:200]


def rows_with_keys(
    table: Table, keys: np.ndarray | None, columns: Sequence[str], *, with_places: bool = False
) -> Iterator[pa.RecordBatch]:
    """Batches of the rows with these distinct keys, and perhaps others; all rows for None.

    They have the key, ``columns``, and ``_rowid`` if ``with_places``.
    """
    queries = [table.search()]
    n_rows = table.count_rows()
    if keys is not None and len(keys) * AS_LONG_AS <= n_rows and has_index(table, "key"):
        parts = range(0, len(keys), LOOKED_UP)
        queries = [table.search().where(key_in(keys[start : start + LOOKED_UP])) for start in parts]
    for query in queries:
        yield from query.select(["key", *columns]).with_row_id(with_places).to_batches(ROWS_AT_ONCE)


def has_index(table: Table, column: str) -> bool:
    return any(index.columns == [column] for index in table.list_indices())


def key_in(keys: np.ndarray) -> str:
    """SQL condition for rows with one of the keys; pads the zeros that numpy strips."""
    n_bytes = keys.dtype.itemsize
    literals = [f"X'{key.ljust(n_bytes, bytes(1)).hex()}'" for key in keys.tolist()]
    return f"key IN ({', '.join(literals)})"


def tidy_soon(folder: Path) -> threading.Thread:
    """Run `tidy` in the background, at most once an hour per process."""
    return _start_thread(folder, int(time.monotonic() / INTERVAL))


@lru_cache(maxsize=64)
def _start_thread(folder: Path, _hour: int) -> threading.Thread:
    thread = threading.Thread(target=tidy, args=(folder,), name="tidying")
    thread.start()  # not a daemon: a process waits for it on exit
    return thread


def tidy(folder: Path) -> None:
    """Delete replaced files after an hour, unfinished corpora after a week, unless in use."""
    with suppress(StoreError, OSError):
        database = Database(folder)
        announced = {f"texts-{row['id']}" for row in database.entries("corpora")}
        for table in database.tables():
            with suppress(StoreError, OSError):
                if table not in announced:
                    with database.lock(wait=0):
                        _tidy_table(database, table)


def _tidy_table(database: Database, table: str) -> None:
    """Tidy vectors and unannounced texts within `Database.lock`."""
    place = database.place(table)
    age = timedelta(seconds=time.time() - max(path.stat().st_mtime for path in place.rglob("*")))
    if table.startswith("texts-") and age > LEFT_OVER_FOR:
        database.drop(table)
    n_versions = len(list((place / "_versions").glob("*.manifest")))
    if table.startswith("vectors-") and age > SUPERSEDED_FOR and n_versions > 1:
        database.open(table).optimize(cleanup_older_than=SUPERSEDED_FOR)
