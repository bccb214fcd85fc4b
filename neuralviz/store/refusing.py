"""What is said where the folder that everything is kept in cannot be read or written."""

from __future__ import annotations

import logging
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from neuralviz.errors import StoreError
from neuralviz.server_settings import server_settings

if TYPE_CHECKING:
    from pathlib import Path

PROBE_BYTES = 4096  # that a disk has to have room for

_log = logging.getLogger(__name__)


def folder_error(sentence: str, cannot: Literal["read", "write to"] = "write to") -> StoreError:
    """The error to raise where a folder cannot be used.

    Visitors of a server can mend nothing, and its paths are not for them: they are told what is
    the matter, and the log has the sentence.

    Args:
        sentence: says which folder, why, and what to do.
        cannot: what visitors are told.
    """
    settings = server_settings()
    if not (settings.open or settings.demo):
        return StoreError(sentence)
    _log.error("%s", sentence)
    return StoreError(
        f"This server cannot {cannot} its data folder. Tell whoever runs it: its log says why. "
        "Nothing saved earlier was lost."
    )


def why_not_writable(folder: Path) -> str:
    """Why nothing can be kept in a folder, or in one of those in it; empty where it can.

    A folder that is not there yet is made.
    """
    place = folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in [folder, *(entry for entry in folder.iterdir() if entry.is_dir())]:
            with suppress(FileNotFoundError), tempfile.TemporaryFile(dir=place) as file:
                file.write(bytes(PROBE_BYTES))  # another server may delete a folder meanwhile
    except OSError as error:
        return f"Cannot write to {place}: {error.strerror or error}."
    return ""
