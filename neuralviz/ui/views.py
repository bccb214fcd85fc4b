"""The inputs of a view, saved on this machine under an id that cannot be guessed.

An address holds settings and this id, never the texts. What came of them is kept under the same id
(`store.results`).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import threading
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from neuralviz.paths import home
from neuralviz.reading.source import Source
from neuralviz.store.pruning import prune

if TYPE_CHECKING:
    from pathlib import Path

KEPT_VIEWS = 5000
KEPT_BYTES = 1 << 30  # of all views; the views opened longest ago are deleted first
KEPT_DAYS = 365  # since a view was last opened
LARGEST_FILE = 1 << 26  # bytes; of a larger file only the texts are saved
_making_key = threading.Lock()  # two sessions may need the first key together
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]{12}")


@dataclass(frozen=True)
class View:
    """Texts, and the file they were read from.

    Attributes:
        texts: as they are used.
        file: what was uploaded, if anything was.
        choices: how the file was read, by name: the column of the texts, for example.
    """

    texts: tuple[str, ...] = ()
    file: Source | None = None
    choices: tuple[tuple[str, str], ...] = ()


def save_view(view: View, view_id: str | None = None) -> str:
    """Save a view and return its id; deletes the views opened longest ago.

    Args:
        view: texts and file.
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
    record: dict[str, Any] = {"texts": view.texts, "choices": view.choices}
    content = view.file.content if view.file is not None else None
    if view.file is not None and isinstance(content, bytes) and len(content) <= LARGEST_FILE:
        record["file"] = view.file.name
        _write(folder / f"{view_id}.file", content)
    _write(folder / f"{view_id}.json", json.dumps(record).encode())
    prune(folder, n_bytes=KEPT_BYTES, days=KEPT_DAYS, most=KEPT_VIEWS, unit=attrgetter("stem"))
    return view_id


def save_once(view: View) -> str:
    """Save a view under an id computed from it: the same view has the same id on this machine.

    A secret of the machine goes into it, so that nobody can work it out from the texts.

    Raises:
        OSError: the folder cannot be written.
    """
    content = [view.texts, view.file and [view.file.name, view.file.digest], view.choices]
    digest = hashlib.blake2b(json.dumps(content).encode(), key=_secret(), digest_size=9)
    return save_view(view, urlsafe_b64encode(digest.digest()).decode())


def _secret() -> bytes:
    """32 bytes that only this machine knows."""
    path = home() / "views.key"
    with _making_key:
        if not path.exists():
            home().mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(path, secrets.token_bytes(32))
            path.chmod(0o600)
    return path.read_bytes()


def load_view(view_id: str) -> View | None:
    """The view saved under ``view_id``; None when there is none or the id is not valid.

    Also reads the lists of texts that were written before views had files.
    """
    if not _VIEW_ID.fullmatch(view_id):
        return None
    path = home() / "views" / f"{view_id}.json"
    try:
        record = json.loads(path.read_text("utf-8"))
        if isinstance(record, list):
            record = {"texts": record}
        texts = tuple(record["texts"])
        choices = tuple((str(name), str(value)) for name, value in record.get("choices", ()))
        file = None
        if "file" in record:
            content = path.with_suffix(".file")
            file = Source(str(record["file"]), content.read_bytes())
            content.touch()
        path.touch()
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not all(isinstance(text, str) for text in texts):
        return None
    return View(texts, file, choices)


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")  # others may write it, too
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)  # on a full disk
