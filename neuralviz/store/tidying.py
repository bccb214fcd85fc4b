"""What compaction replaced is deleted when nobody reads it any more: at a cheap moment later."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from neuralviz.errors import StoreError
from neuralviz.store.database import SUPERSEDED_FOR, Database

INTERVAL = 3600.0  # seconds between two looks of a process at a store


def tidy_soon(folder: Path) -> threading.Thread:
    """`tidy` a store in the background, at most once an hour in a process.

    Args:
        folder: of its database.

    Returns:
        The thread that does it, or did it within the hour.
    """
    return _start_thread(folder, int(time.monotonic() / INTERVAL))


@lru_cache(maxsize=64)
def _start_thread(folder: Path, _hour: int) -> threading.Thread:
    thread = threading.Thread(target=tidy, args=(folder,), name="tidying")
    thread.start()  # a process waits for it at its end: it takes a moment
    return thread


def tidy(folder: Path) -> None:
    """Delete the files of tables that compaction replaced an hour ago or earlier.

    Nothing depends on it: what cannot be done now, for somebody is writing, is left to another
    time.
    """
    with suppress(StoreError, OSError):
        database = Database(folder)
        for table in database.tables():
            with suppress(StoreError, OSError):
                if _has_old_files(database, table):
                    database.write(partial(_delete_old_files, database, table), wait=0)


def _delete_old_files(database: Database, table: str) -> None:
    """Within a write."""
    if _has_old_files(database, table):  # nobody has written meanwhile
        database.open(table).optimize(cleanup_older_than=SUPERSEDED_FOR)


def _has_old_files(database: Database, table: str) -> bool:
    """Whether all that was replaced was so for long, and compaction would find nothing to do."""
    place = database.place(table)
    written = [path.stat().st_mtime for path in (place / "_versions").glob("*.manifest")]
    if len(written) < 2 or time.time() - max(written) < SUPERSEDED_FOR.total_seconds():
        return False
    with database.reading():
        stats: Any = database.open(table).stats()  # a dictionary, whatever its annotation says
    fragments = stats["fragment_stats"]
    n_files = len(list((place / "data").glob("*.lance")))
    return fragments["num_small_fragments"] < 2 and n_files > fragments["num_fragments"]
