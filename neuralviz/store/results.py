"""Results of runs, kept on this machine for a while under the ids of their views.

Whoever has a view's id, which nobody can guess, has its texts; the key of the work leads to what
came of them. What came of a saved corpus has an id that is made of the corpus's, and goes with it.
Files are written beside and moved into place.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING

from neuralviz.paths import home
from neuralviz.server_settings import server_settings
from neuralviz.store.pruning import prune

if TYPE_CHECKING:
    from pathlib import Path

KEPT_BYTES = 1 << 30  # of all results; those that nobody has opened for longest go first
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]{1,24}")
_OF_CORPUS = "corpus-"


def keep_result(view: str, key: str, content: bytes) -> None:
    """Keep the result of a piece of work, in place of an earlier one.

    Args:
        view: id of the view that the work belongs to.
        key: all that the result depends on.
        content: the result.

    Raises:
        OSError: the folder cannot be written.
        ValueError: ``view`` is no id.
    """
    path = _path(view, key)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")  # two processes may write it
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    prune(path.parent, n_bytes=KEPT_BYTES, days=server_settings().keep_days)


def find_result(view: str, key: str) -> bytes | None:
    """The result that is kept of a piece of work; None when there is none."""
    try:
        path = _path(view, key)
        content = path.read_bytes()
        path.touch()
    except (OSError, ValueError):
        return None
    return content


def corpus_view(corpus_id: str) -> str:
    """The id under which the results of a saved corpus are kept."""
    return f"{_OF_CORPUS}{corpus_id}"


def is_of_corpus(view: str) -> bool:
    """Whether a saved corpus's results are kept under an id."""
    return view.startswith(_OF_CORPUS)


def forget_results(view: str) -> None:
    """Delete all that is kept under a view's id.

    Raises:
        OSError: a file cannot be deleted.
    """
    for path in (home() / "results").glob(f"{view}.*"):
        path.unlink(missing_ok=True)


def _path(view: str, key: str) -> Path:
    if not _VIEW_ID.fullmatch(view):
        raise ValueError(f"{view} is not a valid view ID")
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return home() / "results" / f"{view}.{digest}"
