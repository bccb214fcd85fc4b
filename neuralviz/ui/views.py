"""The texts of a view, kept on this machine under an id that cannot be guessed.

An address holds settings and this id, never the texts.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING

from neuralviz.paths import home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEPT_VIEWS = 5000
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]{12}")


def save_texts(texts: Sequence[str], view_id: str | None = None) -> str:
    """Keep ``texts`` and return the id of their view; the oldest views beyond 5,000 are dropped.

    Args:
        texts: of the view.
        view_id: of the view to write over; by default a new one.

    Raises:
        OSError: the folder cannot be written.
        ValueError: ``view_id`` is not one.
    """
    view_id = view_id or secrets.token_urlsafe(9)
    if not _VIEW_ID.fullmatch(view_id):
        raise ValueError(f"{view_id} is not a valid view ID")
    folder = home() / "views"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f"{view_id}.part"
    part.write_text(json.dumps(list(texts)), "utf-8")
    part.replace(folder / f"{view_id}.json")
    _prune(folder)
    return view_id


def load_texts(view_id: str) -> list[str] | None:
    """The texts kept under ``view_id``; None when there are none or the id is not one."""
    if not _VIEW_ID.fullmatch(view_id):
        return None
    try:
        texts = json.loads((home() / "views" / f"{view_id}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return texts
    return None


def _prune(folder: Path) -> None:
    ages = []
    for path in folder.glob("*.json"):
        try:
            ages.append((path.stat().st_mtime_ns, path))
        except FileNotFoundError:  # another session pruned it
            continue
    for _, path in sorted(ages)[:-KEPT_VIEWS]:
        path.unlink(missing_ok=True)
