"""The runs of this machine's servers: what became of each, for whoever comes back to its address.

A row says when a run began and how it ended, never what it was about: texts, settings and results
lie elsewhere. A server holds a lock while it is there; the unfinished runs of one whose lock is
free were ended by a crash, whatever the clocks say.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout

from neuralviz.paths import home
from neuralviz.server_settings import server_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT = 5.0  # seconds for another process that writes
_COLUMNS = """
    id TEXT PRIMARY KEY, work TEXT NOT NULL, server TEXT NOT NULL, status TEXT NOT NULL,
    created REAL NOT NULL, finished REAL
"""
_log = logging.getLogger(__name__)

FinalStatus = Literal["done", "stopped", "failed", "cut off", "not begun"]
RunStatus = Literal["queued", "crashed", "elsewhere"] | FinalStatus


@dataclass(frozen=True)
class KnownRun:
    """The entry of a run in the table.

    Attributes:
        id: in the address.
        work: a digest of what was done, which tells it from other work.
        status: ``queued`` until it ends; ``not begun`` where it failed before its turn came, as the
            server ended or had too much to do; ``cut off`` where its worker ended before it did,
            ``crashed`` where its server did, ``elsewhere`` where another server of this machine
            still carries it out.
    """

    id: str
    work: str
    status: RunStatus


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
        """Note that a run was asked for; those of long ago are forgotten."""
        self._forget_old()
        self._write(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, 'queued', ?, NULL)",
            *(run_id, work, self._server, time.time()),
        )

    def _forget_old(self) -> None:
        self._write("DELETE FROM runs WHERE created < ?", time.time() - self._kept_seconds)

    def end(self, run_id: str, status: FinalStatus) -> None:
        """Note how a run ended; not why it failed, which may quote a text."""
        self._write(
            "UPDATE runs SET status = ?, finished = ? WHERE id = ?", status, time.time(), run_id
        )

    def find(self, run_id: str) -> KnownRun | None:
        """The entry of a run; None where there is none."""
        row = None
        with suppress(sqlite3.Error, OSError), self._open() as table:
            row = table.execute(
                "SELECT work, server, status FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
        if row is None:
            return None
        work, server, status = row
        if status == "queued" and server != self._server:
            status = "elsewhere" if self._is_up(server) else "crashed"
        return KnownRun(run_id, work, status)

    def close(self) -> None:
        """Let others see that this server is gone."""
        if self._lock is not None:
            self._lock.release()
            with suppress(OSError):
                Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock = None

    def _is_up(self, server: str) -> bool:
        """Whether a server holds its lock; the file of one that does not is deleted."""
        path = self._lock_of(server)
        if not path.exists():
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
