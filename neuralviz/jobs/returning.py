"""What became of the runs of this machine's servers, for whoever comes back to their addresses.

A row says when a run began and how it ended, never what it was about: texts, settings and results
lie elsewhere. A server holds a lock while it is there; the unfinished runs of one whose lock is
free were ended by a crash, whatever the clocks say.
"""

from __future__ import annotations

import atexit
import logging
import secrets
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout

from neuralviz.paths import home
from neuralviz.server_settings import server_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuralviz.jobs.run import Run

WAIT = 5.0  # seconds for another process that writes
_COLUMNS = "id TEXT PRIMARY KEY, work TEXT, server TEXT, status TEXT, created REAL"
_log = logging.getLogger(__name__)

RunStatus = Literal["done", "stopped", "failed", "cut off", "not begun", "crashed", "elsewhere"]
"""How a run has ended: ``not begun`` where it failed before its turn came, as the server ended or
had too much to do; ``cut off`` where its worker ended before it did, ``crashed`` where its server
did, ``elsewhere`` where another server of this machine still carries it out.
"""

REASONS: dict[RunStatus, str] = {
    "done": "The result of this run is no longer saved. Press “Run again” to compute it again.",
    "stopped": "This run was stopped. Press “Run again” to start it again.",
    "failed": "This run failed. Press “Run again” to try once more.",
    "cut off": (
        "The process that did this work ended suddenly; the machine may be out of memory. Press "
        "“Run again” to start it again, with fewer or shorter texts if it ends again."
    ),
    "not begun": "This run did not begin. Press “Run again” to start it.",
    "crashed": "The server ended in the middle of this run. Press “Run again” to start it again.",
    "elsewhere": (
        "Another server of this machine is carrying out this run. Its result is shown here when it "
        "is over: reload the page later."
    ),
}
"""Why a run has no result to show."""


class RunTable:
    """The table in a folder, and this server's place in it.

    Nothing that a run does depends on it: where it cannot be written, runs are as good, and a
    warning is logged once.

    Args:
        folder: of the data.
        days: rows of runs that began longer ago are deleted; by default as the server is set.
    """

    def __init__(self, folder: Path | None = None, days: float | None = None) -> None:
        days = server_settings().keep_days if days is None else days
        self._folder = folder or home()
        self._server = secrets.token_hex(8)
        self._lock: FileLock | None = None
        self._is_silent = False
        self._kept_seconds = days * 86400
        self._forget_old()

    def add(self, run_id: str, work: str) -> None:
        """Note that a run was asked for; those of long ago are forgotten.

        Args:
            run_id: in its address.
            work: all that it depends on; the table has a digest of it.
        """
        self._forget_old()
        self._write(
            "INSERT OR REPLACE INTO runs (id, work, server, status, created) "
            "VALUES (?, ?, ?, 'queued', ?)",
            *(run_id, _digest_work(work), self._server, time.time()),
        )

    def end(self, run: Run[Any]) -> None:
        """Note how a run ended; not why it failed, which may quote a text."""
        status: str = run.status
        if run.status == "failed" and not run.started:
            status = "not begun"
        if run.was_cut_off:
            status = "cut off"
        self._write("UPDATE runs SET status = ? WHERE id = ?", status, run.id)

    def find_status(self, run_id: str, work: str) -> RunStatus | None:
        """What became of a run that is not under way here; None where it or its work is unknown.

        Args:
            run_id, work: as of `add`.
        """
        row = None
        with suppress(sqlite3.Error, OSError), self._open() as table:
            row = table.execute(
                "SELECT server, status FROM runs WHERE id = ? AND work = ?",
                (run_id, _digest_work(work)),
            ).fetchone()
        if row is None:
            return None
        server, status = row
        if status == "queued":
            status = "elsewhere" if self._is_up(server) else "crashed"
        return status

    def close(self) -> None:
        """Let others see that this server is gone."""
        if self._lock is not None:
            self._lock.release()
            with suppress(OSError):
                Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock = None

    def _forget_old(self) -> None:
        self._write("DELETE FROM runs WHERE created < ?", time.time() - self._kept_seconds)

    def _is_up(self, server: str) -> bool:
        """Whether another server holds its lock; the file of one that does not is deleted."""
        path = self._lock_of(server)
        if server == self._server or not path.exists():
            return False
        try:
            with FileLock(path, timeout=0):
                path.unlink(missing_ok=True)
        except Timeout:
            return True
        except OSError:
            pass
        return False

    def _lock_of(self, server: str) -> Path:
        return self._folder / "servers" / f"{server}.lock"

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        path = self._folder / "runs.sqlite"
        with closing(sqlite3.connect(path, timeout=WAIT)) as table, table:
            table.execute("PRAGMA journal_mode = WAL")
            table.execute(f"CREATE TABLE IF NOT EXISTS runs ({_COLUMNS})")
            yield table

    def _write(self, statement: str, *values: object) -> None:
        try:
            if self._lock is None:
                path = self._lock_of(self._server)
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock = FileLock(path)
                self._lock.acquire(timeout=0)
            with self._open() as table:
                table.execute(statement, values)
        except (sqlite3.Error, OSError) as error:
            if not self._is_silent:
                self._is_silent = True
                _log.warning("Runs are not noted, so links to them are not found: %s", error)


def _digest_work(work: str) -> str:
    return blake2b(work.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_lock = threading.Lock()
_table: RunTable | None = None


def run_table() -> RunTable:
    """The table as this process sees it."""
    global _table
    with _lock:
        if _table is None:
            _table = RunTable()
            atexit.register(_table.close)
        return _table
