"""Folders whose contents are dropped when nobody has opened them for long, or there is no room."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path


def prune(
    folder: Path,
    *,
    n_bytes: int,
    days: float,
    max_units: int | None = None,
    unit: Callable[[Path], str] = attrgetter("name"),
    spare: Callable[[Path], bool] = lambda _: False,
) -> None:
    """Delete what is too old, and what was opened longest ago where there is too much.

    Args:
        folder: of files and folders; when one was opened is when a file of it was changed last.
        n_bytes: there is room for.
        days: since it was last opened that a file is kept.
        max_units: units that are kept; by default as many as there is room for.
        unit: what of a path says which files belong together, and come and go so.
        spare: whether a path must not be deleted, asked of those that would be.
    """
    units: dict[str, tuple[float, int, list[Path]]] = {}
    for path in folder.iterdir():
        try:
            itself = path.stat()
            inside = path.rglob("*") if stat.S_ISDIR(itself.st_mode) else ()
            files = [itself, *(entry.stat() for entry in inside)]
        except FileNotFoundError:  # another session pruned it
            continue
        opened, size, paths = units.get(unit(path), (0.0, 0, []))
        units[unit(path)] = (
            max(opened, *(status.st_mtime for status in files)),
            size + sum(status.st_size for status in files),
            [*paths, path],
        )
    oldest = time.time() - days * 86400
    newest_first = sorted(units.values(), key=lambda group: group[0], reverse=True)
    for place, (opened, size, paths) in enumerate(newest_first):
        n_bytes -= size
        if n_bytes < 0 or opened < oldest or (max_units is not None and place >= max_units):
            for path in paths:
                if not spare(path):
                    _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
